package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// callerOf returns who makes a request.
type callerOf func(mcp.Request) *Caller

// pickOf returns the tools that a client wants to have listed.
type pickOf func(mcp.Request) (Pick, error)

// newServer offers tools. The caller that of returns makes each call. All tools can be
// called by name; a client lists those of its pick.
func newServer(tools []*Tool, version string, log *slog.Logger, of callerOf, picked pickOf) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "selvage", Version: version},
		&mcp.ServerOptions{Logger: log, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	slots := make(chan struct{}, maxCalls)
	s.AddReceivingMiddleware(listing(picked, of, slots))
	for _, t := range tools {
		s.AddTool(&mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: t.Schema,
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: t.ReadOnly}},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return inTurn(ctx, slots, func() *mcp.CallToolResult {
					args := Arguments{}
					if raw := bytes.TrimSpace(req.Params.Arguments); len(raw) > 0 && string(raw) != "null" {
						if err := json.Unmarshal(raw, &args); err != nil {
							return result(nil, badArgument{"The arguments are not a JSON object"})
						}
					}
					return result(t.call(ctx, of(req), args))
				})
			})
	}
	return s
}

// inTurn makes a call when there is a slot for it.
func inTurn(ctx context.Context, slots chan struct{}, call func() *mcp.CallToolResult) (*mcp.CallToolResult, error) {
	wait := time.NewTimer(callWait)
	defer wait.Stop()
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-wait.C:
		return result(nil, badArgument{"Too many tools are at work; try again"}), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return call(), nil
}

// listing removes the tools outside the client's pick from a list, and adds
// instructions and the tools of the caller's company. It also calls these.
func listing(picked pickOf, of callerOf, slots chan struct{}) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, ok := req.(*mcp.CallToolRequest); ok && strings.HasPrefix(call.Params.Name, ofOffer) {
				return inTurn(ctx, slots, func() *mcp.CallToolResult {
					return callOffer(ctx, of(req), call.Params.Name, bytes.TrimSpace(call.Params.Arguments))
				})
			}
			res, err := next(ctx, method, req)
			if err != nil {
				return res, err
			}
			pick, err := picked(req)
			switch res := res.(type) {
			case *mcp.ListToolsResult:
				res.Tools = slices.DeleteFunc(res.Tools, func(t *mcp.Tool) bool { return !pick.has(t.Name) })
				if list, ok := req.(*mcp.ListToolsRequest); ok && pick.finds && (list.Params == nil || list.Params.Cursor == "") {
					addOffers(ctx, of(req), res)
				}
			case *mcp.InitializeResult:
				res.Instructions = pick.instructions()
			case *mcp.DiscoverResult:
				res.Instructions = pick.instructions()
			}
			return res, err
		}
	}
}

// result is a tool's answer: JSON as indented text. A refusal of the API is an error
// with {error, status, method, path, body}, except for the contract's tools, whose
// clients expect a plain answer. Invalid arguments and failed calls are errors of every
// tool.
func result(value json.RawMessage, err error) *mcp.CallToolResult {
	said := &mcp.CallToolResult{IsError: err != nil}
	if no, ok := errors.AsType[*refused](err); ok {
		said.IsError = !no.plain
		value, err = encode(no), nil
	}
	if err != nil {
		said.Content = []mcp.Content{&mcp.TextContent{Text: string(encode(map[string]string{"error": err.Error()}))}}
		return said
	}
	var text bytes.Buffer
	var plain string
	switch {
	case json.Unmarshal(value, &plain) == nil:
		text.WriteString(plain)
	case json.Indent(&text, value, "", "  ") != nil:
		text.Write(value)
	}
	said.Content = []mcp.Content{&mcp.TextContent{Text: text.String()}}
	return said
}

// Request headers that a client of /mcp may send besides its bearer token.
const (
	HeaderCompany = "X-Paperclip-Company-Id"
	HeaderAgent   = "X-Paperclip-Agent-Id"
	// headerRemote and headerPick carry the client's address and the query's "tools" from
	// Handler to the tools. Handler always overwrites them.
	headerRemote = "X-Selvage-Mcp-Remote"
	headerPick   = "X-Selvage-Mcp-Tools"
)

// Handler serves the tools over streamable HTTP, without sessions, so that any node can
// answer any request. Each call goes to api, a handler of this process, with the
// client's bearer token. The caller has checked Host and Origin. The query's "tools"
// selects the listed tools, as in [NewPick].
func Handler(tools []*Tool, version string, log *slog.Logger, api http.Handler) http.Handler {
	of := func(req mcp.Request) *Caller {
		h := headerOf(req)
		key, _ := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
		return &Caller{Transport: within{api}, Base: "http://localhost", Key: strings.TrimSpace(key),
			Remote:  h.Get(headerRemote),
			Company: h.Get(HeaderCompany), Agent: h.Get(HeaderAgent), Run: h.Get(headerRun)}
	}
	picked := func(req mcp.Request) (Pick, error) { return NewPick(tools, headerOf(req).Get(headerPick)) }
	s := newServer(tools, version, log, of, picked)
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: MaxMessage, Logger: log,
			DisableLocalhostProtection: true}) // the API's handler has checked Host and Origin, and knows the node's names
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		words := strings.Join(r.URL.Query()["tools"], ",")
		if _, err := NewPick(tools, words); err != nil {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.WriteHeader(http.StatusBadRequest)
			w.Write(encode(map[string]string{"error": err.Error()}))
			return
		}
		r = r.Clone(r.Context())
		r.Header.Set(headerRemote, r.RemoteAddr)
		r.Header.Set(headerPick, words)
		h.ServeHTTP(w, r)
	})
}

// headerOf returns the HTTP header of the message's request, empty over stdio.
func headerOf(req mcp.Request) http.Header {
	if extra := req.GetExtra(); extra != nil && extra.Header != nil {
		return extra.Header
	}
	return http.Header{}
}

// Stdio serves the tools over a pair of streams until in or ctx ends, and lists those of
// pick.
func Stdio(ctx context.Context, tools []*Tool, pick Pick, version string, c Caller, in io.ReadCloser,
	out io.WriteCloser, log *slog.Logger) error {
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	c.Base = strings.TrimSuffix(strings.TrimSuffix(c.Base, "/"), "/api")
	s := newServer(tools, version, log, func(mcp.Request) *Caller { one := c; return &one },
		func(mcp.Request) (Pick, error) { return pick, nil })
	err := s.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out, MaxLineLength: MaxMessage})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

// within sends requests to a handler of this process.
type within struct{ h http.Handler }

func (t within) RoundTrip(r *http.Request) (res *http.Response, err error) {
	defer func() {
		if p := recover(); p != nil { // a handler that aborts its answer panics
			err = fmt.Errorf("the answer was cut off: %v", p)
		}
	}()
	r.Host = "localhost"
	r.RequestURI = r.URL.RequestURI()
	r.RemoteAddr = cmp.Or(r.RemoteAddr, "127.0.0.1:0")
	if r.Body == nil {
		r.Body = http.NoBody
	}
	a := &answer{header: http.Header{}, status: http.StatusOK}
	t.h.ServeHTTP(a, r)
	return &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(&a.body), Request: r}, nil
}

// An answer collects what a handler writes, up to maxAnswer.
type answer struct {
	header http.Header
	status int
	wrote  bool
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if !a.wrote {
		a.status, a.wrote = status, true
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.wrote = true
	if a.body.Len()+len(b) > maxAnswer+1 {
		a.body.Write(b[:max(0, maxAnswer+1-a.body.Len())])
		return 0, io.ErrShortWrite
	}
	return a.body.Write(b)
}
