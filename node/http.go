package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/routes"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ui"
)

// serving is the HTTP part of a node.
type serving struct {
	api  *api.Server
	port net.Listener // bound early: gossip and runs are told the address
	addr string       // of port, "" if there is none
	cert *servedCert  // nil: plaintext
	// near is a loopback listener without TLS, for processes of this machine. It is port
	// itself if that is one.
	near     net.Listener
	nearAddr string
}

// encrypt returns l with TLS; a nil certificate means plaintext.
func (c *servedCert) encrypt(l net.Listener) net.Listener {
	if c == nil {
		return l
	}
	// Live-event sockets hijack their connection, which HTTP/2 does not allow.
	return tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{c.pair},
		NextProtos: []string{"http/1.1"}})
}

const (
	// ClaimFile is the file of the data directory with the code that lets its reader become
	// the first administrator from another machine.
	ClaimFile = "claim-code"
	// claimCodeLength is the length of rand.Text: 128 bits.
	claimCodeLength = 26
	claimAlphabet   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	// nearFile stores the port of the loopback listener, so that runs that outlive a restart
	// of the node find it again.
	nearFile = "http-loopback"
	// modeWait bounds how long a node that has just joined, or serves beyond loopback, waits
	// for the mesh's authentication mode before it serves.
	modeWait = 10 * time.Second
	// endpointRetry is the interval at which a node retries to announce its address.
	endpointRetry = 5 * time.Second
)

// openPort binds the address of the API, so that the announced port is the real one.
// Until [Node.openAPI] requests are told that the node boots.
func (n *Node) openPort(context.Context) (err error) {
	if n.conf.HTTP == "none" {
		return nil
	}
	l, err := n.bind(n.conf.HTTP)
	if err != nil {
		return fmt.Errorf("HTTP port (another node may have it; choose one with --http): %w", err)
	}
	defer func() {
		if err == nil {
			n.serveBoot()
		}
	}()
	s := &n.serving
	s.port, s.addr = l, l.Addr().String()
	if n.conf.encrypts() {
		if s.cert, err = n.certificate(); err != nil {
			return err
		}
	}
	if s.cert == nil && !n.conf.BehindProxy { // on loopback, see Validate
		s.near, s.nearAddr = l, s.addr
		return nil
	}
	return n.bindNear()
}

// bind listens on addr; the listener closes with the node.
func (n *Node) bind(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	p := &port{TCPListener: l.(*net.TCPListener)}
	n.opened("port", p.release)
	return p, nil
}

// bindNear listens on loopback, on the previous port if that is free.
func (n *Node) bindNear() error {
	file := filepath.Join(n.conf.Dir, nearFile)
	last, _ := os.ReadFile(file)
	var l net.Listener
	var err error
	if addr := strings.TrimSpace(string(last)); addr != "" {
		if local, bad := api.Loopback(addr); local && bad == nil {
			l, _ = n.bind(addr) // another process may use it now
		}
	}
	if l == nil {
		if l, err = n.bind("127.0.0.1:0"); err != nil {
			return fmt.Errorf("loopback port for runs: %w", err)
		}
	}
	n.serving.near, n.serving.nearAddr = l, l.Addr().String()
	return os.WriteFile(file, []byte(n.serving.nearAddr+"\n"), 0o600)
}

// boundHTTP is the address that others are told: the bound one, or the configured one if
// none is bound.
func (n *Node) boundHTTP() string { return cmp.Or(n.serving.addr, n.conf.HTTP) }

// nearHTTP is the address for processes of this machine: loopback, no TLS.
func (n *Node) nearHTTP() string { return cmp.Or(n.serving.nearAddr, n.boundHTTP()) }

// openAPI serves the HTTP API. A node opens it last, so that every request finds a
// complete node.
func (n *Node) openAPI(ctx context.Context) error {
	if err := n.checkMode(ctx); err != nil {
		return err
	}
	code, err := n.claimCode()
	if err != nil {
		return err
	}
	board, err := ui.Handler(ui.Config{Mesh: string(n.Mesh()), Name: n.conf.Name,
		Ready: func() bool { return n.standing().Quorum }, Peers: n.servingPeers})
	if err != nil {
		return err
	}
	s, err := api.New(api.Config{
		Serves:    routes.Serves(),
		Processes: n.processes, Post: n.work.post, PostOf: n.postOf, Boot: n.boot.Status, ChargeTool: n.chargeTool,
		Services: n.work.services,
		Node:     asked{n}, Name: n.conf.Name, Version: n.conf.Version, NodeID: n.ID(), Mesh: n.Mesh(), Logger: n.log,
		Sign: n.keys.Sign, Wall: n.conf.Wall,
		DataKeys: n.keyring.dataKeys, DigestKey: n.digestKey, Unseal: n.unseal, Tools: n.tools(), Ready: n.Ready,
		Standing: n.standing, Quorum: n.quorum, RunLog: n.RunLog, NodeLog: n.runLog, ProbeAdapter: n.probeAdapter,
		Offers: n.offers, Variable: os.Getenv, Blobs: n.blobs, Models: n.models, Recall: n.recall, Mind: n.thinking,
		CreateToken: n.createToken, Joins: n, Leave: n.Leave, Unseat: n.consensus.Remove, Alive: n.alive, Program: n.program,
		Latency: n.transport.Latency, Raft: n.raftInfo,
		Verify: func(ctx context.Context) (ledger.Verified, error) { return n.ledger.Verify(ctx, nil) },
		Operator: api.Operator{Autopilot: n.consensus.Autopilot, OwnView: n.consensus.OwnView, Doctor: n.Doctor,
			Scrub: n.Scrub, Scrubbed: n.Scrubbed, Logs: n.logLines, Transfer: n.consensus.TransferLeadership},
		Backup: func(ctx context.Context, w io.Writer, to []identity.Recipient, files bool) error {
			_, err := n.Backup(ctx, w, to, files)
			return err
		},
		Head: func() (height, applied uint64) {
			p := n.ledger.Position()
			return p.Height, p.Applied
		},
		Stats: []func() []api.Stat{n.stats, n.meshStats, n.tally.stats, n.kernelStats, n.postStats},
		Board: board,
		Hosts: n.httpNames(), Proxied: n.conf.BehindProxy, ClaimCode: code, FromRun: shim.FromRun,
		MetricsFrom: n.conf.MetricsFrom,
	})
	if err != nil {
		return err
	}
	n.serving.api = s
	n.work.api.Store(s)
	n.opened("api", s.Close)
	at := n.serving
	if at.port == nil {
		return nil
	}
	n.serveOn(s, at.port, at.cert)
	if at.near != at.port {
		n.serveOn(s, at.near, nil)
	}
	if at.cert != nil {
		n.spawn(n.announceEndpoint)
	}
	return nil
}

// claimCode returns the code with which a reader of the data directory becomes the first
// administrator from another machine.
func (n *Node) claimCode() (string, error) {
	path := filepath.Join(n.conf.Dir, ClaimFile)
	b, err := os.ReadFile(path)
	if code := strings.TrimSpace(string(b)); err == nil && len(code) >= claimCodeLength &&
		strings.Trim(code, claimAlphabet) == "" {
		return code, nil
	}
	if !errors.Is(err, os.ErrNotExist) { // a code that others can guess is worse than none
		n.log.Warn("the claim code is damaged, and another one is drawn", "file", path, "error", err)
	}
	code := rand.Text()
	return code, writeWhole(path, []byte(code+"\n"))
}

// Unclaimed reports whether people sign in on this mesh and none of them is its
// administrator yet.
func (n *Node) Unclaimed(ctx context.Context) bool {
	unclaimed := false
	_, err := n.View(ctx, ledger.Read{Mode: ledger.ReadStale}, func(tx *ledger.Tx) error {
		_, _, founded := ledger.Founding(tx)
		unclaimed = founded && people.SignsIn(tx) && !people.Claimed(tx)
		return nil
	})
	return err == nil && unclaimed
}

// serveOn serves the API on a listener until the node closes.
func (n *Node) serveOn(s *api.Server, l net.Listener, cert *servedCert) {
	server := s.HTTP()
	p := l.(*port)
	l = cert.encrypt(p.hire())
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	n.opened("http", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
		defer cancel()
		err := server.Shutdown(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close() // streams do not end by themselves
		}
		if serve := <-done; !errors.Is(serve, http.ErrServerClosed) {
			err = errors.Join(err, serve)
		}
		n.bootOn(p, cert) // until the rest has closed
		return err
	})
}

// checkMode refuses to serve on a mesh whose mode differs from the configured one, and
// beyond loopback on a mesh that requires no credentials. If the node can not learn the
// mode it serves: each request checks again, and nobody is trusted while the mode is
// unknown.
func (n *Node) checkMode(ctx context.Context) error {
	if n.conf.HTTP == "none" {
		return nil
	}
	mode := ""
	read := func(tx *ledger.Tx) error {
		if _, _, founded := ledger.Founding(tx); founded {
			mode = people.AuthMode(tx)
		}
		return nil
	}
	local, err := api.Loopback(n.conf.HTTP)
	if err != nil {
		return err
	}
	if _, err := n.View(ctx, ledger.Read{Mode: ledger.ReadStale}, read); err != nil {
		return err
	}
	if mode != "" && local && !n.conf.BehindProxy && n.conf.Auth == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, modeWait)
	defer cancel()
	if _, err := n.View(ctx, ledger.Read{Mode: ledger.ReadStrong}, read); err != nil || mode == "" {
		n.log.Warn("serve without having heard how people sign in on this mesh", "error", err)
		return nil
	}
	if n.conf.Auth != "" && n.conf.Auth != mode {
		return fmt.Errorf("%w: this node is told that the mode is %s, its mesh's is %s, which an administrator changes "+
			"for all nodes (selvage auth mode)", api.ErrBind, n.conf.Auth, mode)
	}
	if n.conf.BehindProxy && mode != people.Authenticated {
		return fmt.Errorf("%w behind a proxy: the mesh asks nobody for a credential; its mode is %s", api.ErrBind, mode)
	}
	return api.CheckBind(n.conf.HTTP, mode)
}

// httpNames returns the host names of the API, without addresses.
func (n *Node) httpNames() []string {
	if local, err := api.Loopback(n.conf.HTTP); n.conf.HTTP == "none" || err != nil || local && !n.conf.BehindProxy {
		return n.conf.HTTPNames
	}
	names := append([]string{}, n.conf.HTTPNames...)
	if host, _, err := net.SplitHostPort(n.conf.HTTP); err == nil && host != "" && net.ParseIP(host) == nil {
		names = append(names, host)
	}
	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	return names
}

// API returns the node's HTTP handler, for meshes in one process.
func (n *Node) API() http.Handler { return n.serving.api }

// HTTPAddr returns the address of the API, "" if it is not served.
func (n *Node) HTTPAddr() string { return n.serving.addr }

// HTTPURL returns the base URL of the API at the bound address, "" if it is not served.
func (n *Node) HTTPURL() string {
	switch s := n.serving; {
	case s.addr == "":
		return ""
	case s.cert != nil:
		return "https://" + s.addr
	default:
		return "http://" + s.addr
	}
}

// LocalURL returns the base URL of the API for this machine: loopback, without TLS.
func (n *Node) LocalURL() string {
	if n.serving.nearAddr == "" {
		return ""
	}
	return "http://" + n.serving.nearAddr
}

// Fingerprint returns the SHA-256 of the API's certificate in hex, "" without one.
func (n *Node) Fingerprint() string {
	if n.serving.cert == nil {
		return ""
	}
	return n.serving.cert.fingerprint
}

// servingPeers returns the addresses at which the other members have announced that they
// serve.
func (n *Node) servingPeers() (urls []string) {
	_, _ = n.View(context.Background(), ledger.Read{Mode: ledger.ReadStale}, func(tx *ledger.Tx) error {
		for _, peer := range ledger.Roster(tx) {
			if e, ok := people.EndpointOf(tx, string(peer.ID)); ok && peer.Member() && peer.ID != n.ID() {
				urls = append(urls, e.URL)
			}
		}
		return nil
	}) // without a state there are none
	return urls
}

// announceEndpoint announces the address of this node's API when it has changed.
func (n *Node) announceEndpoint(ctx context.Context) {
	for ctx.Err() == nil {
		var said people.Endpoint
		_, err := n.View(ctx, ledger.Read{Mode: ledger.ReadStale}, func(tx *ledger.Tx) error {
			said, _ = people.EndpointOf(tx, string(n.ID()))
			return nil
		})
		if err == nil && said.URL == n.HTTPURL() && said.Fingerprint == n.Fingerprint() {
			return
		}
		if err == nil {
			submit, cancel := context.WithTimeout(ctx, submitTimeout)
			_, err = n.submit(submit, n.command(people.KindInstanceEndpoint, "", people.SetEndpoint{URL: n.HTTPURL(),
				Fingerprint: n.Fingerprint()}))
			cancel()
		}
		if err != nil {
			n.log.Debug("tell where the API is served", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(endpointRetry): // check whether it was applied
		}
	}
}
