package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

	"github.com/selvage-mesh/selvage/api/mcp"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/consensus"
)

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
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	s := &Server{Cfg: cfg, Log: cfg.Logger, Started: cfg.Wall().UTC(), origin: http.NewCrossOriginProtection(),
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
	s.Openapi = sync.OnceValues(func() ([]byte, error) {
		if s.Cfg.Serves.Describe != nil {
			return s.Cfg.Serves.Describe(s.Cfg.Version)
		}
		return Describe(s.Cfg.Version, s.Table)
	})
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

// Routes returns the table, for tools that are made from it.
func (s *Server) Routes() []Route { return s.Table }
