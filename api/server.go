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
	"github.com/selvage-mesh/selvage/adapter/runlog"
	"github.com/selvage-mesh/selvage/api/mcp"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/llm"
	"github.com/selvage-mesh/selvage/recall"
	"github.com/selvage-mesh/selvage/sandbox"
)

// A Node is what the API needs of the node that it runs on.
type Node interface {
	// Submit carries out a command and returns its one final outcome; an error
	// means that the outcome is not known, or that there is none.
	Submit(ctx context.Context, c ledger.Command) (ledger.Receipt, error)
	// View runs f on the state in the given mode and returns the raft index that
	// the state has at least.
	View(ctx context.Context, at ledger.Read, f func(*ledger.Tx) error) (applied uint64, err error)
	// Entries yields the entries above a height and waits for new ones.
	Entries(ctx context.Context, after uint64) iter.Seq2[ledger.Entry, error]
}

// ErrBind says that an address may not be listened on in a mode.
var ErrBind = errors.New("refused to listen")

// CheckBind reports whether the API may listen on addr (host:port) in a mode
// (company.LocalTrusted or company.Authenticated). Without authentication only
// loopback will do.
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

// Loopback reports whether an address (host:port) is one of this machine only.
func Loopback(addr string) (bool, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false, fmt.Errorf("HTTP address %q: %w", addr, err)
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback(), nil
}

// A Standing says how a node stands with its mesh.
type Standing struct {
	Quorum bool            // a leader was heard of within the election time-out
	Leader identity.NodeID // "" when there is none
	Age    time.Duration   // since this node last knew that its state was current
}

// A Quorum is which of the voters, without itself, a node hears.
type Quorum struct {
	Heard, Silent []string // names
	Of            string   // what they are: "others" (default), "voters" for a node that is none
	Enough        bool     // those that are heard, with the node, are a majority
	Leaderless    time.Duration
}

// text says how a node stands with its quorum: "n1 hears 0 of 2 others (n2 and n3 are silent)".
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

// A Table is what a server serves: routes, and handlers that are no routes.
type Table struct {
	Routes   []Route
	Handlers []Handler
}

// A Handler is served under a pattern of [http.ServeMux] and is in no document.
type Handler struct {
	Pattern string
	Serve   func(s *Server, w http.ResponseWriter, r *http.Request)
}

// Config is what a server needs. Node and Serves are required; without the others the
// routes that need them answer 503.
type Config struct {
	Node    Node
	Serves  Table
	Name    string // of the node
	Version string // of the program
	NodeID  identity.NodeID
	Mesh    identity.MeshID // the instance that run tokens name

	// DataKeys gives the mesh's data keys, the current one first, that of the
	// epochs before after it: they sign run tokens. Nil on a node without them.
	DataKeys func() []identity.DataKey
	// DigestKey gives the key of digests of requests, the same on all nodes at all
	// times; false: this node does not hold it. Nil: digests have no key.
	DigestKey func() (key [32]byte, ok bool)
	// Tools signs and runs tools; nil: there is no sandbox.
	Tools *ToolBench
	// Unseal opens what was sealed with a data key of any epoch; the default tries
	// those of DataKeys.
	Unseal func(ctx context.Context, aad, sealed []byte) ([]byte, error)
	// Ready returns nil while the node can serve; see /readyz.
	Ready func(ctx context.Context) error
	// Standing is asked for each answer, so it must be cheap.
	Standing func() Standing
	// Quorum is asked for what is told of a lost quorum.
	Quorum func() Quorum
	// RunLog reads a piece of a run's log, wherever it lies; the error wraps
	// runlog.ErrNoLog when there is none.
	RunLog func(ctx context.Context, run entity.Run, offset, limit int64) (runlog.Chunk, error)
	// NodeLog reads a piece of a log that lies on a node, such as that of a
	// workspace operation; the error is as for RunLog.
	NodeLog func(ctx context.Context, on identity.NodeID, ref string, offset, limit int64) (runlog.Chunk, error)
	// Offers looks on a node what it offers to agents.
	Offers func(ctx context.Context, on identity.NodeID, look adapter.Look) ([]adapter.Offer, error)
	// Variable reads a variable of this node's environment: a vendor's key that an
	// administrator wants to be kept. nil: none has a value.
	Variable func(name string) string
	// ProbeAdapter looks on a node whether it has what an adapter needs.
	ProbeAdapter func(ctx context.Context, on identity.NodeID, kind string, config json.RawMessage) ([]adapter.Finding, error)
	// Models makes the model calls of runs.
	Models *llm.Gateway
	// Recall searches what companies remember; nil: this node has no index of it.
	Recall *recall.Recall
	// Blobs keeps the bytes of attachments and images.
	Blobs Blobs
	// GitHubArchives is where packages are fetched from; default: GitHub.
	GitHubArchives string
	// CreateToken makes a join token on behalf of whoever asks; the text is shown once.
	CreateToken func(ctx context.Context, by ledger.Actor, with ledger.Credential, uses int, ttl time.Duration) (string, error)
	// Joins are the nodes that ask to be let in.
	Joins Joins
	// Leave takes this node out of the mesh for good.
	Leave func(ctx context.Context) error
	// Operator is what operators look at.
	Operator Operator
	// Backup writes a sealed backup of the mesh, with files on demand.
	Backup func(ctx context.Context, w io.Writer, to []identity.Recipient, files bool) error
	// Unseat takes a node out of the consensus group, before it is revoked.
	Unseat func(ctx context.Context, id identity.NodeID) error
	// Alive reports whether gossip holds a node to be alive.
	Alive func(identity.NodeID) bool
	// Program tells the version of a live node's program, "" when it is not known.
	Program func(identity.NodeID) string
	// Raft tells how consensus stands on this node.
	Raft func() (consensus.Stats, []consensus.Server)
	// Verify re-checks the whole chain of this node.
	Verify func(ctx context.Context) (ledger.Verified, error)
	// Head returns the newest entry's height and the applied raft index, for /readyz and streams.
	Head func() (height, applied uint64)

	// Collectors go into /metrics; Stats functions give counters by name
	// ("selvage_ledger_entries_total") that are read at each scrape.
	Collectors []prometheus.Collector
	Stats      []func() []Stat

	// Board, when set, serves what is not the API's: the pages at "/".
	Board http.Handler
	// Hosts are further names that a Host header may have, beside loopback's and,
	// where everybody shows a credential, addresses (DNS rebinding would bring others).
	Hosts []string
	// MetricsFrom are the networks that read /metrics without a credential where
	// people sign in; runs on this machine do not.
	MetricsFrom []netip.Prefix
	// FromRun reports whether the client's end of a TCP connection of this machine is
	// held by a run of any node; an error: it can not be told. Nil: there are none.
	FromRun func(client, server netip.AddrPort) (bool, error)
	// ClaimCode is what who is not on this machine must know to become the first
	// administrator; "" asks nobody for it.
	ClaimCode string
	// Proxied says that all requests come from a proxy that encrypts, and that its
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
	Openapi   func() ([]byte, error) // made when it is asked for first
	metrics   *metrics
	origin    *http.CrossOriginProtection
	hosts     map[string]bool
	mode      atomic.Value // string, see Mode
	learning  sync.Mutex   // see learnMode
	Hasher    hasher
	Limits    limits
	Keys      keyCache
	strong    chan struct{} // bounds strong looks for unknown bearers
	answered  atomic.Uint64 // raft index of the newest command that this node answered
	Behind    chan struct{} // bounds callers who wait for a height before they are known
	slots     chan struct{} // bounds requests
	Streams   chan struct{} // bounds streams
	Looks     chan struct{} // bounds looks after callers
	Tools     chan struct{} // bounds the tools at work
	// Executing bounds those who wait for the end of a task.
	Executing chan struct{}
	Traces    traces
	Imports   chan struct{} // one token an import or export under way
	// PageKey is what the words in the forms of this node's pages follow from,
	// where nobody signs in.
	PageKey [32]byte
	// ImportJobs bounds the imports that go on after their answer.
	ImportJobs chan struct{}
	uploads    chan struct{} // bounds uploads
	// Asked is told of each parameter that a handler looks for, where a test wants to
	// know whether routes name what they take.
	Asked func(r *Route, name string)

	Ctx    context.Context // ends with Close
	cancel context.CancelFunc
	Wg     sync.WaitGroup
}

// New makes the table of routes and starts to follow the feed.
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
		slots: make(chan struct{}, MaxConcurrent), Streams: make(chan struct{}, MaxStreams), Looks: make(chan struct{}, maxLooks), Executing: make(chan struct{}, maxExecuting), Tools: make(chan struct{}, maxToolsAtWork), uploads: make(chan struct{}, maxUploads),
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

// HTTP returns a server for s with its time-outs set; the caller serves and
// shuts it down, then closes s.
func (s *Server) HTTP() *http.Server {
	return &http.Server{Handler: s, ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout,
		WriteTimeout: bodyTimeout + RequestTimeout + WriteTimeout, // streams set their own deadlines
		IdleTimeout:  idleTimeout, MaxHeaderBytes: MaxHeader, ConnState: NewConns(MaxConns).State, ConnContext: s.ConnContext,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug)}
}

// ServeHTTP gives the request an ID, holds the bounds and the doors, and logs.
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
			s.Log.Error("handler panicked", "request", id, "method", r.Method, "path", pathOf(r), "panic", fmt.Sprint(p), "stack", stack())
			if rec.status == 0 {
				WriteJSON(rec, http.StatusInternalServerError, ErrorBody{Error: internalError})
			}
		}
		took := time.Since(began)
		s.metrics.answered(r, rec.status, took)
		s.Log.LogAttrs(r.Context(), levelOf(rec.status), "request", slog.String("request", id), slog.String("method", r.Method),
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

// checkHost refuses names that are not this machine's: a page of another site
// whose name was pointed here would otherwise be the board.
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
		return nil // no name was pointed anywhere
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
		cancel() // the stream lives as long as its caller, and bounds itself
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
		err = Unavailable("The caller went away") // nobody reads it; the log says it
	}
	if rec, ok := w.(*recorder); ok && rec.status != 0 {
		s.Log.Debug("answer broke off", "request", IdOf(r), "error", err)
		return
	}
	status, body, failure := AnswerOf(err)
	if errors.Is(err, consensus.ErrNoQuorum) {
		s.tellQuorum(&body, errors.Is(err, consensus.ErrOutcomeUnknown))
		s.standing(w.Header()) // it was lost while the caller waited
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

// Joins is what a node can do about nodes that ask to be let in, about owner keys
// and about the mesh's keys.
type Joins interface {
	// JoinRequests lists who waits at any member, by code.
	JoinRequests(ctx context.Context) []JoinRequest
	// Approve lets in the node that shows a code, on behalf of whoever asks.
	Approve(ctx context.Context, by ledger.Actor, with ledger.Credential, code string) (identity.NodeID, error)
	// Refuse sends the node that shows a code away; false: there is none.
	Refuse(ctx context.Context, code string) bool
	// AddOwner tells the mesh of an owner key, a new one when text is "", and returns it.
	AddOwner(ctx context.Context, by ledger.Actor, with ledger.Credential, text, note string) (string, error)
	// RotateKeys draws new data and gossip keys, on behalf of whoever asks.
	RotateKeys(ctx context.Context, by ledger.Actor, with ledger.Credential) error
}

// An Operator is what a node lets its operators look at and do.
type Operator struct {
	Autopilot func(context.Context) (consensus.AutopilotState, error)
	// OwnView is what this node sees itself, for when no leader tells.
	OwnView func() consensus.AutopilotState
	Doctor  func(context.Context) []Check
	// Scrub begins to read all that this node keeps, and Scrubbed tells how far that is.
	Scrub, Scrubbed func() ScrubState
	// Logs returns at most limit lines after seq, the oldest first.
	Logs func(after uint64, limit int) []LogLine
	// Transfer makes the leader hand leadership on.
	Transfer func(context.Context) error
}

// mount registers the table, and what answers everything else.
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
	// Most nodes are never asked for the description, which takes more memory than
	// all else that they need at rest.
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

// routeOf returns the row that a request is for, or nil.
func (s *Server) routeOf(r *http.Request) *Route {
	_, pattern := s.Mux.Handler(r)
	return s.byPattern[pattern]
}

// A ToolBench is what the API needs to sign tools and to run them.
type ToolBench struct {
	Mesh string
	// Sign signs a statement with the key of this node.
	Sign func(skill.ToolStatement) (node string, signature []byte)
	// Check tells what is wrong with a module, by a *sandbox.Error.
	Check func(ctx context.Context, module []byte) error
	// Run runs a module to its end, which comes as soon as the use may not go on.
	Run func(ctx context.Context, use skill.ToolUse, module []byte, call sandbox.Call) (sandbox.Result, error)
}

// A JoinRequest is a node that asks to be let in.
type JoinRequest struct {
	Code         string // shown on both sides: a person compares
	Node         identity.NodeID
	Name         string
	Labels       []string
	Address      string // where it was seen
	Asked, Until int64  // ms since 1970
}

// Stream takes a place among the streams, or refuses.
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

// A Check is one thing that a node's doctor looked at.
type Check struct {
	Name  string `json:"name"`
	Level string `json:"level"` // one of the levels above
	Found string `json:"found"` // one sentence
	Do    string `json:"do"`    // what to do about it; "" when there is nothing
}

// A LogLine is one line of a node's log, as it was written.
type LogLine struct {
	Seq  uint64 `json:"seq"` // counts from 1 in the life of the process
	Line string `json:"line"`
}

// A ScrubState is how far a node is with reading all that it keeps, and what it found.
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

// A ScrubFinding is a file that is damaged.
type ScrubFinding struct {
	What   string    `json:"what" doc:"store or blob"`
	File   string    `json:"file"`
	Mended bool      `json:"mended"`
	Error  string    `json:"error,omitempty"`
	At     time.Time `json:"at"`
}

// Routes returns the table, for tools that are made from it.
func (s *Server) Routes() []Route { return s.Table }
