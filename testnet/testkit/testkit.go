// Package testkit starts real nodes in a test's own process and talks to them
// as clients do: sockets on loopback, HTTP, agents with keys and live runs.
//
// Nothing in it is simulated but, by default, the agents' work: a run stays alive
// until somebody cancels it ([Hold]). Everything closes with the test.
package testkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage-mesh/selvage/api/described"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/kit"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/scheduler"
	"github.com/selvage-mesh/selvage/testnet"
)

const (
	// settle bounds every wait for what must come about by itself; generous,
	// because the machine may be small and busy.
	settle = 2 * time.Minute
	// poll is how often a waiting helper looks again.
	poll = 20 * time.Millisecond
	// openTries bounds how often a node is opened anew because somebody took the
	// HTTP port that was free a moment before.
	openTries = 5
	// idle is how long a connection is kept for the next call: less than nodes keep it,
	// or a call may meet its end.
	idle = 30 * time.Second
	// maxAnswer bounds what is read of one answer, in bytes.
	maxAnswer = 32 << 20
	// logTail is how much of a failed test's log is shown, in bytes.
	logTail = 8 << 10
	// lastWords bounds what closing waits for runs to end and to be told of.
	lastWords = 2 * time.Second
	// lease is longer than the default, so that agents stay at work on a machine that is too busy to
	// say so in time; tests of losing it set their own.
	lease = 18 * time.Second
	// slots is how many runs a node carries out at once: tests want many agents alive.
	slots = 64
)

// A Bed is a running mesh. Its nodes all vote; the first founded it.
type Bed struct {
	Nodes []*node.Node
	// Logs are what the nodes have logged, from debug up, in the order of Nodes.
	Logs []*Log

	t      testing.TB
	client *http.Client
	seen   atomic.Uint64
	holds  []*Hold
	confs  []node.Config // as the nodes were opened, in the order of Nodes
	dead   map[*node.Node]bool
	// keepPort has a node that is started again listen for peers where it did, at a port that no
	// outgoing connection of this machine gets meanwhile.
	keepPort bool
	ports    map[string]int // for peers, by the node's name
}

// Mesh starts n nodes on loopback and waits until all vote. Each tune may change
// a node's configuration, of which i is the number from 0.
func Mesh(t testing.TB, n int, tune ...func(i int, c *node.Config)) *Bed {
	t.Helper()
	return mesh(t, n, false, tune...)
}

// meshOnItsPorts is Mesh whose nodes are found where they were when they are started again.
func meshOnItsPorts(t testing.TB, n int, tune ...func(i int, c *node.Config)) *Bed {
	t.Helper()
	return mesh(t, n, true, tune...)
}

func mesh(t testing.TB, n int, keepPort bool, tune ...func(i int, c *node.Config)) *Bed {
	t.Helper()
	b := &Bed{t: t, keepPort: keepPort, dead: map[*node.Node]bool{}, ports: map[string]int{},
		client: &http.Client{Timeout: settle,
			Transport: &http.Transport{MaxIdleConnsPerHost: 256, IdleConnTimeout: idle}}}
	dir := t.TempDir()
	t.Cleanup(b.close)
	token := ""
	for i := range n {
		log, hold := &Log{}, NewHold()
		b.holds = append(b.holds, hold)
		b.Logs = append(b.Logs, log)
		began := node.Config{
			Dir: filepath.Join(dir, fmt.Sprintf("n%d", i+1)), Name: fmt.Sprintf("n%d", i+1), MeshName: "testkit",
			Version: "testkit",
			Join:    token, Size: node.SizeSmall, Slots: slots, Lease: lease, Machine: fmt.Sprintf("testkit-%d", i+1),
			Wall:          kit.Clock(t),
			Logger:        slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Adapters:      map[string]scheduler.Adapter{"process": hold},
			TuneConsensus: func(c *consensus.Config) { c.Stabilisation = 200 * time.Millisecond },
		}
		for _, f := range tune {
			f(i, &began)
		}
		b.confs = append(b.confs, began)
		b.Nodes = append(b.Nodes, b.open(began))
		if i == 0 && n > 1 {
			var err error
			if token, err = b.Nodes[0].CreateToken(t.Context(), n, time.Hour); err != nil {
				t.Fatal("make a join token:", err)
			}
		}
	}
	b.Until("all nodes vote and know their leader", func() bool {
		leaders := 0
		for _, n := range b.Nodes {
			switch n.Role() {
			case "leader":
				leaders++
			case "non-voter":
				return false
			}
			if n.Ready(t.Context()) != nil {
				return false
			}
		}
		return leaders == 1
	})
	return b
}

// Kill ends a node as if its process had died; it stays in Nodes, and answers
// nothing.
func (b *Bed) Kill(on int) {
	b.t.Helper()
	b.dead[b.Nodes[on]] = true
	b.Nodes[on].Kill()
}

// Restart closes a node, unless it was killed, and opens it again on its
// directory, under other ports; it returns when the node is ready.
func (b *Bed) Restart(on int) {
	b.t.Helper()
	if n := b.Nodes[on]; !b.dead[n] {
		if err := n.Close(); err != nil {
			b.t.Fatalf("close %s: %v", n.Name(), err)
		}
	}
	b.Nodes[on] = b.open(b.confs[on])
	b.Until("the node that was started again is ready", func() bool { return b.Nodes[on].Ready(b.t.Context()) == nil })
}

// open starts a node on ports that are free.
func (b *Bed) open(conf node.Config) *node.Node {
	b.t.Helper()
	n, err := b.tryOpen(conf)
	if err != nil {
		b.t.Fatalf("open %s: %v", conf.Name, err)
	}
	return n
}

// tryOpen is open for a node that may refuse to start.
func (b *Bed) tryOpen(conf node.Config) (n *node.Node, err error) {
	b.t.Helper()
	for range openTries {
		// The port is found out before the node opens: runs are told where to call.
		l, listenErr := net.Listen("tcp", "127.0.0.1:0")
		if listenErr != nil {
			b.t.Fatal(listenErr)
		}
		conf.HTTP = l.Addr().String()
		l.Close()
		peers := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}
		if b.keepPort {
			if b.ports[conf.Name] == 0 {
				if b.ports[conf.Name], listenErr = testnet.FreePorts(1); listenErr != nil {
					b.t.Fatal(listenErr)
				}
			}
			peers.Port = b.ports[conf.Name]
		}
		udp, listenErr := net.ListenUDP("udp", peers)
		if listenErr != nil {
			b.t.Fatal(listenErr)
		}
		b.ports[conf.Name] = udp.LocalAddr().(*net.UDPAddr).Port
		if cut, ok := conf.Conn.(*Cut); ok {
			cut.PacketConn = udp
		} else {
			conf.Conn = udp
		}
		ctx, cancel := context.WithTimeout(b.t.Context(), settle)
		n, err = node.Open(ctx, conf)
		cancel()
		if err == nil {
			return n, nil
		}
		if errors.Is(err, node.ErrDamaged) {
			continue // found after the sockets were in use; it is rebuilt now
		}
		if op := (*net.OpError)(nil); !errors.As(err, &op) || op.Op != "listen" {
			break
		}
	}
	return nil, err
}

// close ends the held runs first: nodes that all close at once can not tell each
// other of runs any more, and would wait for one another until their patience ends.
func (b *Bed) close() {
	b.client.CloseIdleConnections()
	live := func() (n int) {
		for _, h := range b.holds {
			n += h.live()
		}
		return n
	}
	for deadline := time.Now().Add(lastWords); ; time.Sleep(poll) {
		for _, h := range b.holds {
			h.end()
		}
		if live() == 0 || time.Now().After(deadline) {
			break
		}
	}
	for _, n := range b.Nodes {
		if b.dead[n] {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), lastWords)
		_ = n.Ready(ctx) // what the runs had to say is applied
		cancel()
	}
	var wg sync.WaitGroup
	for _, n := range b.Nodes {
		wg.Go(func() {
			if b.dead[n] {
				_ = n.Close() // one that stopped by itself is still to be closed
				return
			}
			select {
			case err := <-n.Failed():
				b.t.Errorf("%s stopped by itself: %v", n.Name(), err)
			default:
			}
			if err := n.Close(); err != nil {
				b.t.Errorf("close %s: %v", n.Name(), err)
			}
		})
	}
	wg.Wait()
	if b.t.Failed() {
		for i, l := range b.Logs {
			s := l.String()
			b.t.Logf("log of n%d ends:\n%s", i+1, s[max(0, len(s)-logTail):])
		}
	}
}

// Patient bounds every wait for what comes about by itself.
var Patient = kit.Wait{Most: settle, Every: poll}

// Until waits until done, and fails the test when it takes too long.
func (b *Bed) Until(what string, done func() bool) {
	b.t.Helper()
	Patient.Until(b.t, what, done)
}

// Leader returns the number of the node that leads.
func (b *Bed) Leader() (leader int) {
	b.t.Helper()
	b.Until("a node leads", func() bool {
		for i, n := range b.Nodes {
			if n.IsLeader() {
				leader = i
				return true
			}
		}
		return false
	})
	return leader
}

// An Answer is what came back of a call.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Call sends one request to a node: body is JSON as it is sent ([]byte), or what
// becomes it, nil for none; out takes the answer's JSON when the status is 2xx, or
// is nil; headers are names and values in turn. The error is of the connection,
// or of an answer that out does not fit. It may be used by many at once.
//
// What it is answered, and what is taken of it, is held to the description of the
// API, whatever the test is about.
func (b *Bed) Call(on int, method, path string, body, out any, headers ...string) (a Answer, err error) {
	sent, err := sentOf(body)
	if err != nil {
		return a, err
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.URL(on, path), bytes.NewReader(sent))
	if err != nil {
		return a, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := b.client.Do(req)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	a.Status, a.Header = res.StatusCode, res.Header
	if h, err := strconv.ParseUint(a.Header.Get("X-Selvage-Height"), 10, 64); err == nil {
		for old := b.seen.Load(); h > old && !b.seen.CompareAndSwap(old, h); old = b.seen.Load() {
		}
	}
	if a.Body, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer)); err != nil {
		return a, err
	}
	if err := described.Differs(req, sent, a.Status, a.Header, a.Body); err != nil {
		b.t.Errorf("on n%d: %v", on+1, err)
	}
	if out != nil && a.Status/100 == 2 {
		if err := json.Unmarshal(a.Body, out); err != nil {
			return a, fmt.Errorf("%s %s answered %s: %w", method, path, a.Body, err)
		}
	}
	return a, nil
}

// sentOf is a body as it is sent.
func sentOf(body any) ([]byte, error) {
	switch v := body.(type) {
	case nil:
		return nil, nil
	case []byte:
		return v, nil
	}
	return json.Marshal(body)
}

// URL is where a node serves path.
func (b *Bed) URL(on int, path string) string { return "http://" + b.Nodes[on].HTTPAddr() + path }

// Ask is Call that asks again, as clients are told to: while the mesh has no leader or,
// on a busy machine, has had none for longer than callers wait, or the node is busy or
// behind what was seen, when nothing was done; and while it is not
// known whether it was done, a POST under an Idempotency-Key, and all else but a DELETE
// because it does the same when it is done twice.
func (b *Bed) Ask(on int, method, path string, body, out any, headers ...string) (Answer, error) {
	if method == http.MethodPost && !slices.Contains(headers, "Idempotency-Key") {
		headers = append(slices.Clone(headers), "Idempotency-Key", uuid.NewString())
	}
	again := func(a Answer) bool {
		var is struct{ Code string }
		if a.Status != http.StatusServiceUnavailable || json.Unmarshal(a.Body, &is) != nil {
			return false
		}
		switch is.Code {
		case "no_leader", "no_quorum", "busy", "behind":
			return true
		case "outcome_unknown", "timeout":
			return method != http.MethodDelete
		}
		return false
	}
	a, err := b.Call(on, method, path, body, out, headers...)
	for deadline := time.Now().Add(settle); err == nil && again(a) && time.Now().Before(deadline); {
		time.Sleep(poll)
		a, err = b.Call(on, method, path, body, out, headers...)
	}
	return a, err
}

// Do is Ask that wants a 2xx; everything else is an error.
func (b *Bed) Do(on int, method, path string, body, out any, headers ...string) (Answer, error) {
	a, err := b.Ask(on, method, path, body, out, headers...)
	if err == nil && a.Status/100 != 2 {
		err = fmt.Errorf("%s %s on n%d: %d %s", method, path, on+1, a.Status, a.Body)
	}
	return a, err
}

// Must is Do that fails the test at once; only the test's own goroutine may use it.
func (b *Bed) Must(on int, method, path string, body, out any, headers ...string) Answer {
	b.t.Helper()
	a, err := b.Do(on, method, path, body, out, headers...)
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

// Seen are the headers of a read that misses nothing of what any call of this bed
// was answered so far.
func (b *Bed) Seen() []string {
	return []string{"X-Selvage-Height", strconv.FormatUint(b.seen.Load(), 10)}
}

// Strong are the headers of a read that misses nothing.
var Strong = []string{"X-Selvage-Read", "strong"}

// Company creates a company and returns its ID.
func (b *Bed) Company(name string) ledger.CompanyID {
	b.t.Helper()
	var row struct{ ID ledger.CompanyID }
	b.Must(0, "POST", "/api/companies", map[string]any{"name": name}, &row)
	return row.ID
}

// Issue creates an unassigned issue that is to do, and returns its ID.
func (b *Bed) Issue(on int, of ledger.CompanyID, title string) string {
	b.t.Helper()
	var row struct{ ID string }
	b.Must(on, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": title, "status": "todo",
		"allowDuplicate": true}, &row)
	return row.ID
}

// An Agent is one that works: it has a key, and a run that goes on.
type Agent struct {
	ID, Name   string
	KeyID, Key string // the key's row and its token, a secret
	Run        string // "" when it was not invoked
}

// As are the headers by which the agent calls, under its run.
func (a Agent) As(more ...string) []string {
	h := append([]string{"Authorization", "Bearer " + a.Key}, more...)
	if a.Run != "" {
		h = append(h, "X-Paperclip-Run-Id", a.Run)
	}
	return h
}

// Hire creates a process agent with a key, without a run.
func (b *Bed) Hire(on int, of ledger.CompanyID, name string, adapterConfig map[string]any) (a Agent, err error) {
	a.Name = name
	if adapterConfig == nil {
		adapterConfig = map[string]any{"command": "/bin/true"}
	}
	var row, key struct{ ID, Token string }
	_, err = b.Do(on, "POST", "/api/companies/"+string(of)+"/agents",
		map[string]any{"name": name, "role": "engineer", "adapterType": "process", "adapterConfig": adapterConfig},
		&row, Strong...)
	if err != nil {
		return a, err
	}
	a.ID = row.ID
	_, err = b.Do(on, "POST", "/api/agents/"+a.ID+"/keys", map[string]any{"name": "test"}, &key, Strong...)
	a.KeyID, a.Key = key.ID, key.Token
	return a, err
}

// Invoke starts a run of the agent and waits until it is at work.
func (b *Bed) Invoke(on int, a *Agent) error {
	var run struct{ ID, Status string }
	if _, err := b.Do(on, "POST", "/api/agents/"+a.ID+"/heartbeat/invoke", map[string]any{}, &run, Strong...); err != nil {
		return err
	}
	a.Run = run.ID
	for deadline := time.Now().Add(settle); ; time.Sleep(poll) {
		if _, err := b.Do(on, "GET", "/api/heartbeat-runs/"+a.Run, nil, &run, Strong...); err != nil {
			return err
		}
		switch {
		case run.Status == string(entity.RunRunning):
			return nil
		case !entity.RunStatus(run.Status).Live() || time.Now().After(deadline):
			return fmt.Errorf("run of %s is %s, want running", a.Name, run.Status)
		}
	}
}

// Agents hires n agents through all nodes in turn and gives each a live run.
func (b *Bed) Agents(of ledger.CompanyID, n int) []Agent {
	b.t.Helper()
	agents, errs := make([]Agent, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range agents {
		wg.Go(func() {
			on := i % len(b.Nodes)
			if agents[i], errs[i] = b.Hire(on, of, fmt.Sprintf("Agent %d", i+1), nil); errs[i] == nil {
				errs[i] = b.Invoke(on, &agents[i])
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		b.t.Fatal(err)
	}
	return agents
}

// Agent hires one agent with a key and a live run.
func (b *Bed) Agent(of ledger.CompanyID) Agent {
	b.t.Helper()
	return b.Agents(of, 1)[0]
}

// Heads waits until all nodes have applied the same raft index, and checks that
// chain head and digest are the same then.
func (b *Bed) Heads() ledger.Position {
	b.t.Helper()
	at := make([]ledger.Position, len(b.Nodes))
	b.Until("all nodes stand at the same index", func() bool {
		for i, n := range b.Nodes {
			at[i] = n.Ledger().Position()
		}
		for _, p := range at {
			if p.Applied != at[0].Applied {
				return false
			}
		}
		return true
	})
	for i, p := range at {
		if p.Height != at[0].Height || p.Head != at[0].Head || p.Digest != at[0].Digest {
			b.t.Fatalf("n%d and n1 differ at index %d: height %d and %d, head %x and %x, digest %x and %x",
				i+1, p.Applied, p.Height, at[0].Height, p.Head, at[0].Head, p.Digest, at[0].Digest)
		}
	}
	return at[0]
}

// Idle waits until no node carries a run out: a run that was cancelled is over
// before its children are gone and its log is closed.
func (b *Bed) Idle() {
	b.t.Helper()
	b.Until("no run is at work", func() bool {
		for on := range b.Nodes {
			if !strings.Contains(string(b.Must(on, "GET", "/metrics", nil, nil).Body), "\nselvage_runs_here 0\n") {
				return false
			}
		}
		return true
	})
}

// A Log keeps what is written to it. It is safe for concurrent use.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
