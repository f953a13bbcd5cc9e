package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/selvage-mesh/selvage/adapter"
	"github.com/selvage-mesh/selvage/adapter/courier"
	"github.com/selvage-mesh/selvage/adapter/runlog"
	"github.com/selvage-mesh/selvage/adapter/service"
	"github.com/selvage-mesh/selvage/api/mcp"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/llm"
	"github.com/selvage-mesh/selvage/mind"
	"github.com/selvage-mesh/selvage/recall"
	"github.com/selvage-mesh/selvage/sandbox"
)

// A Node is the part of a node that the API uses.
type Node interface {
	// Submit submits a command and returns its final outcome. An error means that the outcome is
	// unknown, or that there is none.
	Submit(ctx context.Context, c ledger.Command) (ledger.Receipt, error)
	// View calls f with the state in the given mode and returns the raft index that the state has
	// at least.
	View(ctx context.Context, at ledger.Read, f func(*ledger.Tx) error) (applied uint64, err error)
	// Entries yields the entries above a height and waits for new ones.
	Entries(ctx context.Context, after uint64) iter.Seq2[ledger.Entry, error]
}

// ErrBind means that an address is not allowed in a mode.
var ErrBind = errors.New("refused to listen")

// CheckBind returns an error if the API may not listen on addr (host:port) in a mode
// (people.LocalTrusted or people.Authenticated). Without authentication only loopback is
// allowed.
func CheckBind(addr, mode string) error {
	switch mode {
	case people.Authenticated, people.LocalTrusted:
	default:
		return fmt.Errorf("%w: mode %q is neither %s nor %s", ErrBind, mode, people.LocalTrusted, people.Authenticated)
	}
	loopback, err := Loopback(addr)
	if err != nil || loopback || mode == people.Authenticated {
		return err
	}
	return fmt.Errorf("%w on %s: without authentication the API is for this machine only; use 127.0.0.1, [::1] or localhost, or a mesh with --auth %s", ErrBind, addr, people.Authenticated)
}

// Loopback reports whether an address (host:port) is reachable from this machine only.
func Loopback(addr string) (bool, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false, fmt.Errorf("HTTP address %q: %w", addr, err)
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback(), nil
}

// A Standing is a node's connection to its mesh.
type Standing struct {
	Quorum bool            // a leader was heard within the election time-out
	Leader identity.NodeID // "" when there is none
	Age    time.Duration   // since this node last knew that its state was current
}

// A Quorum is which voters a node hears, without itself.
type Quorum struct {
	Heard, Silent []string // names
	Of            string   // what they are: "others" (default), "voters" for a node that is not one
	Enough        bool     // those heard, with the node, are a majority
	Leaderless    time.Duration
}

// text describes a node's quorum: "n1 hears 0 of 2 others (n2 and n3 are silent)".
func (q Quorum) text(node string) string {
	s := fmt.Sprintf("%s hears %d of %d %s", node, len(q.Heard), len(q.Heard)+len(q.Silent), cmp.Or(q.Of, "others"))
	switch n := len(q.Silent); {
	case n == 1:
		s += " (" + q.Silent[0] + " is silent)"
	case n > 1:
		s += " (" + strings.Join(q.Silent[:n-1], ", ") + " and " + q.Silent[n-1] + " are silent)"
	}
	return s
}

// A Table is what a server serves: routes, and handlers outside the document.
type Table struct {
	Routes   []Route
	Handlers []Handler
}

// A Handler is served under a pattern of [http.ServeMux] and is not in the document.
type Handler struct {
	Pattern string
	Serve   func(s *Server, w http.ResponseWriter, r *http.Request)
}

// Config is what a server needs. Node and Serves are required. Routes whose function is nil
// answer 503.
type Config struct {
	Node    Node
	Serves  Table
	Name    string // of the node
	Version string // of the program
	NodeID  identity.NodeID
	Mesh    identity.MeshID // the instance in run tokens
	// Sign signs domain ‖ msg with this node's key. Nil: what the node says is not signed.
	Sign func(domain string, msg []byte) []byte

	// DataKeys returns the mesh's data keys, the current one first, then those of earlier epochs.
	// They sign run tokens. Nil on a node without them.
	DataKeys func() []identity.DataKey
	// DigestKey returns the key for digests of requests, which is the same on all nodes and never
	// changes; false: this node does not have it. Nil: digests have no key.
	DigestKey func() (key [32]byte, ok bool)
	// Tools signs and runs tools; nil: there is no sandbox.
	Tools *ToolBench
	// Unseal opens what was sealed with a data key of any epoch. By default it tries DataKeys.
	Unseal func(ctx context.Context, aad, sealed []byte) ([]byte, error)
	// Ready returns nil while the node can serve; see /readyz.
	Ready func(ctx context.Context) error
	// Standing is called for each answer, so it must be cheap.
	Standing func() Standing
	// Quorum is called for answers about a lost quorum.
	Quorum func() Quorum
	// RunLog reads a piece of a run's log from any node; the error wraps runlog.ErrNoLog when
	// there is none.
	RunLog func(ctx context.Context, run entity.Run, offset, limit int64) (runlog.Chunk, error)
	// NodeLog reads a piece of a log on a node, such as that of a workspace operation; errors are
	// those of RunLog.
	NodeLog func(ctx context.Context, on identity.NodeID, ref string, offset, limit int64) (runlog.Chunk, error)
	// Services calls the services of the mesh; nil: this node calls none.
	Services *service.Registry
	// ChargeTool counts a call of a tool on the process of a run of this node, and refuses it at
	// the limit. Optional.
	ChargeTool func(run string) error
	// Processes asks a node about its processes. Boot says where this node is in its life; nil:
	// it runs.
	Processes Processes
	// Post carries the messages of this node's processes; PostOf asks a node about its messages.
	Post   *courier.Courier
	PostOf func(ctx context.Context, on identity.NodeID, ask PostAsk) (PostAnswer, error)
	Boot   func() (kernel.KernelState, kernel.Phase)
	// Offers looks on a node what it offers to agents.
	Offers func(ctx context.Context, on identity.NodeID, look adapter.Look) ([]adapter.Offer, error)
	// Variable reads a variable of this node's environment: a vendor's key that an
	// administrator wants to be kept. nil: none has a value.
	Variable func(name string) string
	// ProbeAdapter checks on a node whether it has what an adapter needs.
	ProbeAdapter func(ctx context.Context, on identity.NodeID, kind string,
		config json.RawMessage) ([]adapter.Finding, error)
	// Models makes the model calls of runs.
	Models *llm.Gateway
	// Recall searches what companies remember; nil: this node has no index of it.
	Recall *recall.Recall
	// Mind says what this node's mind did; nil: it has none.
	Mind func() mind.Stat
	// Blobs stores the bytes of attachments and images.
	Blobs Blobs
	// GitHubArchives is where packages are fetched from; default: GitHub.
	GitHubArchives string
	// CreateToken creates a join token for the caller; its text is shown once.
	CreateToken func(ctx context.Context, by ledger.Actor, with ledger.Credential, uses int,
		ttl time.Duration) (string, error)
	// Joins are the nodes that ask to join.
	Joins Joins
	// Leave removes this node from the mesh for good.
	Leave func(ctx context.Context) error
	// Operator has the functions for operators.
	Operator Operator
	// Backup writes a sealed backup of the mesh, with files if requested.
	Backup func(ctx context.Context, w io.Writer, to []identity.Recipient, files bool) error
	// Unseat removes a node from the raft configuration before it is revoked.
	Unseat func(ctx context.Context, id identity.NodeID) error
	// Alive reports whether gossip considers a node alive.
	Alive func(identity.NodeID) bool
	// Program returns the program version of a live node, "" if unknown.
	Program func(identity.NodeID) string
	// Latency returns the round-trip time from this node to another, if it is connected.
	Latency func(identity.NodeID) (time.Duration, bool)
	// Raft returns the state of consensus on this node.
	Raft func() (consensus.Stats, []consensus.Server)
	// Verify checks the whole chain of this node again.
	Verify func(ctx context.Context) (ledger.Verified, error)
	// Head returns the newest entry's height and the applied raft index, for /readyz and streams.
	Head func() (height, applied uint64)

	// Collectors are added to /metrics. Stats functions return values by name
	// ("selvage_ledger_entries_total") at each scrape.
	Collectors []prometheus.Collector
	Stats      []func() []Stat

	// Board, if set, serves the pages at "/": everything that is not the API's.
	Board http.Handler
	// Hosts are further allowed names in the Host header, besides loopback's and, where everybody
	// needs a credential, addresses. Other names would allow DNS rebinding.
	Hosts []string
	// MetricsFrom are the networks that may read /metrics without a credential where people sign
	// in; runs on this machine may not.
	MetricsFrom []netip.Prefix
	// FromRun reports whether a run of any node holds the client's end of a local TCP connection;
	// an error: unknown. Nil: there are no runs.
	FromRun func(client, server netip.AddrPort) (bool, error)
	// ClaimCode is required of a user on another machine to become the first administrator; ""
	// requires none.
	ClaimCode string
	// Proxied says that all requests come through a proxy that encrypts, and that its
	// X-Forwarded-For and X-Forwarded-Proto are true.
	Proxied bool
	Logger  *slog.Logger // default: discards
}

// Server serves HTTP. Make one with New; its goroutine follows the feed until Close.
type Server struct {
	Cfg       Config
	Log       *slog.Logger
	Started   time.Time
	Mux       *http.ServeMux
	Table     []Route
	byPattern map[string]*Route      // the same, by "METHOD path"
	Openapi   func() ([]byte, error) // made at the first request
	metrics   *metrics
	origin    *http.CrossOriginProtection
	hosts     map[string]bool
	mode      atomic.Value // string, see Mode
	learning  sync.Mutex   // see learnMode
	Hasher    hasher
	Limits    limits
	Keys      keyCache
	strong    chan struct{} // bounds reads of the newest state for unknown bearers
	answered  atomic.Uint64 // raft index of the newest command that this node answered
	Behind    chan struct{} // bounds callers who wait for a height before they are authenticated
	slots     chan struct{} // bounds requests
	Streams   chan struct{} // bounds streams
	Looks     chan struct{} // bounds searches for callers
	Tools     chan struct{} // bounds running tools
	// Executing bounds the callers who wait for the end of a task.
	Executing chan struct{}
	Traces    traces
	Imports   chan struct{} // one token for each running import or export
	// PageKey is the key of the words in the forms of this node's pages, where nobody signs in.
	PageKey [32]byte
	// ImportJobs bounds the imports that continue after their answer.
	ImportJobs chan struct{}
	uploads    chan struct{} // bounds uploads
	// Asked is called for each parameter that a handler reads, for a test that routes document
	// their parameters.
	Asked func(r *Route, name string)

	Ctx    context.Context // ends with Close
	cancel context.CancelFunc
	Wg     sync.WaitGroup
}

// New builds the table of routes and starts to follow the feed.
func New(cfg Config) (*Server, error) {
	cfg.Version = cmp.Or(cfg.Version, "dev")
	if cfg.Node == nil {
		return nil, errors.New("api: no node")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{Cfg: cfg, Log: cfg.Logger, Started: time.Now().UTC(), origin: http.NewCrossOriginProtection(),
		hosts: map[string]bool{}, Hasher: newHasher(), strong: make(chan struct{}, 4), Behind: make(chan struct{}, maxBehind),
		slots: make(chan struct{}, MaxConcurrent), Streams: make(chan struct{}, MaxStreams),
		Looks: make(chan struct{}, maxLooks), Executing: make(chan struct{}, maxExecuting),
		Tools: make(chan struct{}, maxToolsAtWork), uploads: make(chan struct{}, maxUploads),
		Imports: make(chan struct{}, maxImports), ImportJobs: make(chan struct{}, maxImportJobs)}
	rand.Read(s.PageKey[:])
	for _, h := range cfg.Hosts {
		s.hosts[strings.ToLower(h)] = true
	}
	s.Ctx, s.cancel = context.WithCancel(context.Background())
	var err error
	if s.metrics, err = newMetrics(cfg); err != nil {
		return nil, err
	}
	if err := s.mount(); err != nil {
		return nil, err
	}
	after := uint64(0)
	if cfg.Head != nil {
		after, _ = cfg.Head()
	}
	s.LearnMode(s.Ctx, 0)
	s.Wg.Go(func() { s.followKeys(after) })
	s.Wg.Go(s.traceTools)
	return s, nil
}

// Close ends streams and the goroutine that follows the feed, and waits for both.
func (s *Server) Close() error {
	s.cancel()
	s.Wg.Wait()
	return nil
}

// Config returns what the server was made with.
func (s *Server) Config() Config { return s.Cfg }

// HTTP returns an HTTP server for s with its time-outs. The caller serves and shuts it down,
// then closes s.
func (s *Server) HTTP() *http.Server {
	return &http.Server{Handler: s, ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout,
		WriteTimeout: bodyTimeout + RequestTimeout + WriteTimeout, // streams set their own deadlines
		IdleTimeout:  idleTimeout, MaxHeaderBytes: MaxHeader, ConnState: NewConns(MaxConns).State, ConnContext: s.ConnContext,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug)}
}

// ServeHTTP assigns the request ID, applies the bounds and access checks, and logs.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	id := requestID(r)
	rec := &recorder{ResponseWriter: w}
	h := rec.Header()
	h.Set(headerRequestID, id)
	h.Set("X-Content-Type-Options", "nosniff")
	s.standing(h)
	r = r.WithContext(context.WithValue(r.Context(), idKey{}, id))
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			s.Log.Error("handler panicked", "request", id, "method", r.Method, "path", pathOf(r), "panic", fmt.Sprint(p),
				"stack", stack())
			if rec.status == 0 {
				WriteJSON(rec, http.StatusInternalServerError, ErrorBody{Error: internalError})
			}
		}
		took := time.Since(began)
		s.metrics.answered(r, rec.status, took)
		s.Log.LogAttrs(r.Context(), levelOf(rec.status), "request", slog.String("request", id),
			slog.String("method", r.Method),
			slog.String("path", pathOf(r)), slog.Int("status", rec.status), slog.Duration("took", took))
	}()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		s.refuse(rec, r, Unavailable("Too many requests at once; try again"))
		return
	}
	if err := s.checkDoor(r); err != nil {
		s.refuse(rec, r, err)
		return
	}
	if err := s.checkHost(r); err != nil {
		s.refuse(rec, r, err)
		return
	}
	if err := s.origin.Check(r); err != nil {
		s.refuse(rec, r, errOrigin)
		return
	}
	s.Mux.ServeHTTP(rec, r)
}

// checkHost refuses names that are not this machine's: with DNS rebinding, a page of another
// site could act as the board.
func (s *Server) checkHost(r *http.Request) error {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || s.hosts[host] {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && (ip.Unmap().IsLoopback() || s.Mode() == people.Authenticated) {
		return nil // an address can not be rebound
	}
	return Forbidden("Host header is not a name of this node")
}

// Serve runs one route.
func (s *Server) Serve(route *Route, w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(route.Timeout, RequestTimeout))
	defer cancel()
	if route.Timeout > RequestTimeout {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(bodyTimeout + route.Timeout + WriteTimeout))
	}
	rc := &Request{HTTP: r.WithContext(ctx), ID: IdOf(r), Server: s, Route: route, W: w}
	if err := rc.Open(); err != nil {
		s.refuse(w, r, err)
		return
	}
	defer s.trace(rc, w, time.Now())
	if err := rc.checkIdleBody(); err != nil {
		s.refuse(w, r, err)
		return
	}
	rc.began = s.applied()
	resp, err := route.Handle(rc)
	if rc.mayBeBehind(err) {
		resp, err = route.Handle(rc)
	}
	rc.travelBack(w.Header())
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if resp.Stream != nil {
		cancel() // the stream lives as long as its caller and bounds itself
		for k, v := range resp.Header {
			w.Header()[k] = v
		}
		if err := resp.Stream(w, r); err != nil {
			s.refuse(w, r, err)
		}
		return
	}
	s.answer(w, r, route, resp)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, route *Route, resp Response) {
	for k, v := range resp.Header {
		w.Header()[k] = v
	}
	status := cmp.Or(resp.Status, route.Status, http.StatusOK)
	if status == http.StatusNoContent {
		w.WriteHeader(status)
		return
	}
	switch body := resp.Body.(type) {
	case []byte:
		if resp.ContentType != "" {
			writeBytes(w, status, resp.ContentType, body)
			return
		}
	case string:
		if resp.ContentType != "" {
			writeBytes(w, status, resp.ContentType, []byte(body))
			return
		}
	}
	if err := WriteJSON(w, status, resp.Body); err != nil {
		s.refuse(w, r, err)
	}
}

// refuse answers an error; failures are logged with the request's ID.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) && s.Ctx.Err() == nil {
		err = Unavailable("The caller went away") // nobody reads it; it is logged
	}
	if rec, ok := w.(*recorder); ok && rec.status != 0 {
		s.Log.Debug("answer broke off", "request", IdOf(r), "error", err)
		return
	}
	status, body, failure := AnswerOf(err)
	if errors.Is(err, consensus.ErrNoQuorum) {
		s.tellQuorum(&body, errors.Is(err, consensus.ErrOutcomeUnknown))
		s.standing(w.Header()) // the quorum was lost while the caller waited
	}
	if failure {
		s.Log.Error("request failed", "request", IdOf(r), "method", r.Method, "path", pathOf(r), "error", err)
	}
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		if w.Header().Get("Retry-After") == "" {
			w.Header().Set("Retry-After", strconv.Itoa(int(RetryAfter/time.Second)))
		}
	}
	if route := s.routeOf(r); route != nil && route.Kernel {
		WriteJSON(w, status, KernelBodyOf(status, body))
		return
	}
	WriteJSON(w, status, body)
}

func WriteJSON(w http.ResponseWriter, status int, v any) error {
	b, err := EncodeJSON(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	writeBytes(w, status, "application/json; charset=utf-8", b)
	return nil
}

func EncodeJSON(v any) ([]byte, error) {
	if b, ok := v.(json.RawMessage); ok {
		return b, nil
	}
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	buf.b.Reset()
	if err := buf.enc.Encode(filled(v)); err != nil {
		return nil, err
	}
	b := buf.b.Bytes()
	return append(make([]byte, 0, len(b)), b[:len(b)-1]...), nil // without Encode's line break
}

func writeBytes(w http.ResponseWriter, status int, contentType string, b []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(b)))
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "private, no-store")
	}
	w.WriteHeader(status)
	if _, err := w.Write(b); err != nil && !errors.Is(err, io.ErrShortWrite) {
		return // the caller went away
	}
}

// Joins has the node's functions for nodes that ask to join, owner keys and the mesh's keys.
type Joins interface {
	// JoinRequests lists the nodes that wait at any member, by code.
	JoinRequests(ctx context.Context) []JoinRequest
	// Approve admits the node that shows a code, for the caller.
	Approve(ctx context.Context, by ledger.Actor, with ledger.Credential, code string) (identity.NodeID, error)
	// Refuse rejects the node that shows a code; false: there is none.
	Refuse(ctx context.Context, code string) bool
	// AddOwner adds an owner key to the mesh, a new one when text is "", and returns it.
	AddOwner(ctx context.Context, by ledger.Actor, with ledger.Credential, text, note string) (string, error)
	// RotateKeys creates new data and gossip keys, for the caller.
	RotateKeys(ctx context.Context, by ledger.Actor, with ledger.Credential) error
}

// An Operator has a node's functions for operators.
type Operator struct {
	Autopilot func(context.Context) (consensus.AutopilotState, error)
	// OwnView is this node's own view, used while there is no leader.
	OwnView func() consensus.AutopilotState
	Doctor  func(context.Context) []Check
	// Scrub starts to read everything that this node stores; Scrubbed returns its progress.
	Scrub, Scrubbed func() ScrubState
	// Logs returns at most limit lines after seq, oldest first.
	Logs func(after uint64, limit int) []LogLine
	// Transfer makes the leader transfer leadership.
	Transfer func(context.Context) error
}

// mount registers the table and the handler for everything else.
func (s *Server) mount() (err error) {
	defer func() {
		if p := recover(); p != nil { // ServeMux panics on patterns that overlap
			err = fmt.Errorf("api: routes: %v", p)
		}
	}()
	s.Mux = http.NewServeMux()
	s.Table, s.byPattern = slices.Clone(s.Cfg.Serves.Routes), map[string]*Route{}
	for i := range s.Table {
		route := &s.Table[i]
		name := route.Method + " " + route.Path
		if s.byPattern[name] != nil {
			return fmt.Errorf("api: two routes for %s", name)
		}
		s.byPattern[name] = route
		s.Mux.HandleFunc(name, func(w http.ResponseWriter, r *http.Request) { s.Serve(route, w, r) })
	}
	// Most nodes never serve the description, and it takes more memory than everything else at
	// rest.
	s.Openapi = sync.OnceValues(func() ([]byte, error) { return Describe(s.Cfg.Version, s.Table) })
	tools := sync.OnceValues(func() (http.Handler, error) {
		doc, err := s.Openapi()
		if err != nil {
			return nil, err
		}
		tools, err := ToolsOf(doc)
		if err != nil {
			return nil, err
		}
		return mcp.Handler(tools, s.Cfg.Version, s.Log, s), nil
	})
	s.Mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		h, err := tools()
		if err != nil {
			s.Log.Error("the routes can not be described", "error", err)
			WriteJSON(w, http.StatusInternalServerError, ErrorBody{Error: internalError})
			return
		}
		h.ServeHTTP(w, r)
	})
	for _, p := range s.Cfg.Serves.Handlers {
		s.Mux.HandleFunc(p.Pattern, func(w http.ResponseWriter, r *http.Request) { p.Serve(s, w, r) })
	}
	s.Mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) {
		WriteJSON(w, http.StatusNotFound, ErrorBody{Error: "API route not found"})
	})
	s.Mux.HandleFunc("GET /metrics", s.serveMetrics)
	if s.Cfg.Board != nil {
		s.Mux.Handle("/", s.Cfg.Board)
	} else {
		s.Mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			WriteJSON(w, http.StatusNotFound, ErrorBody{Error: "Not found"})
		})
	}
	return nil
}

// routeOf returns the row of a request, or nil.
func (s *Server) routeOf(r *http.Request) *Route {
	_, pattern := s.Mux.Handler(r)
	return s.byPattern[pattern]
}

// A ToolBench signs and runs tools.
type ToolBench struct {
	Mesh string
	// Sign signs a statement with this node's key.
	Sign func(skill.ToolStatement) (node string, signature []byte)
	// Check returns what is wrong with a module, as a *sandbox.Error.
	Check func(ctx context.Context, module []byte) error
	// Run runs a module to its end; it stops as soon as the use is no longer allowed.
	Run func(ctx context.Context, use skill.ToolUse, module []byte, call sandbox.Call) (sandbox.Result, error)
}

// A JoinRequest is a node that asks to join.
type JoinRequest struct {
	Code         string // shown on both sides: a person compares
	Node         identity.NodeID
	Name         string
	Labels       []string
	Address      string // where it was seen
	Asked, Until int64  // ms since 1970
}

// Stream takes a slot for a stream, or refuses.
func (s *Server) Stream() (leave func(), err error) {
	if s.Ctx.Err() != nil {
		return nil, Unavailable("This node is closing")
	}
	select {
	case s.Streams <- struct{}{}:
	default:
		return nil, Unavailable("Too many event streams; try another node")
	}
	s.metrics.streams.Inc()
	s.Wg.Add(1)
	return func() {
		s.metrics.streams.Dec()
		<-s.Streams
		s.Wg.Done()
	}, nil
}

// A Check is one result of a node's doctor.
type Check struct {
	Name  string `json:"name"`
	Level string `json:"level"` // one of the levels above
	Found string `json:"found"` // one sentence: what was found
	Do    string `json:"do"`    // what to do; "" for nothing
}

// A LogLine is one line of a node's log, as it was written.
type LogLine struct {
	Seq  uint64 `json:"seq"` // counts from 1 in the life of the process
	Line string `json:"line"`
}

// A ScrubState is the progress and the findings of a scrub.
type ScrubState struct {
	EverySeconds int64          `json:"everySeconds" doc:"within what time all is read once; 0: only on demand"`
	Running      bool           `json:"running"`
	Demanded     bool           `json:"demanded" doc:"somebody asked for it, so it hurries"`
	Began        time.Time      `json:"began,omitzero" doc:"the scrub under way, or the last one"`
	Ended        *time.Time     `json:"ended,omitempty" doc:"the last one that read everything"`
	Rounds       uint64         `json:"rounds" doc:"that read everything, since the node was started"`
	Bytes        int64          `json:"bytes" doc:"read by this scrub"`
	TotalBytes   int64          `json:"totalBytes" doc:"that it has to read"`
	AllBytes     int64          `json:"-"` // read by all since the node was started
	Damaged      int            `json:"damaged" doc:"files that it found damaged"`
	Mended       int            `json:"mended" doc:"of those, put right with a peer's bytes"`
	AllDamaged   uint64         `json:"-"` // by all since the node was started
	Found        []ScrubFinding `json:"found" doc:"the first 100 of them"`
	Error        string         `json:"error,omitempty" doc:"why it broke off"`
}

// A ScrubFinding is a damaged file.
type ScrubFinding struct {
	What   string    `json:"what" doc:"store or blob"`
	File   string    `json:"file"`
	Mended bool      `json:"mended"`
	Error  string    `json:"error,omitempty"`
	At     time.Time `json:"at"`
}

// Routes returns the table, for tools that are made from it.
func (s *Server) Routes() []Route { return s.Table }
