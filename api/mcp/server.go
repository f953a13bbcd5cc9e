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
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Instructions are what a model reads first about the tools.
const Instructions = "Tools named paperclip… are the usual work of an agent; start with paperclipInboxLite. Tools named selvage… reach the rest of the API. " +
	"An answer with the members error and status is a refusal: read it, it says what may be done instead."

// callerOf finds out for whom a tool is called.
type callerOf func(*mcp.CallToolRequest) *Caller

// newServer offers tools; each call is made by the caller that of returns.
func newServer(tools []*Tool, version string, log *slog.Logger, of callerOf) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "selvage", Version: version}, &mcp.ServerOptions{Instructions: Instructions, Logger: log, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	slots := make(chan struct{}, maxCalls)
	for _, t := range tools {
		s.AddTool(&mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: t.Schema,
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: t.ReadOnly}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
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
			args := Arguments{}
			if raw := bytes.TrimSpace(req.Params.Arguments); len(raw) > 0 && string(raw) != "null" {
				if err := json.Unmarshal(raw, &args); err != nil {
					return result(nil, badArgument{"The arguments are not a JSON object"}), nil
				}
			}
			return result(t.call(ctx, of(req), args)), nil
		})
	}
	return s
}

// result is a tool's answer: JSON as indented text. What the API refuses is a
// plain answer, {error, status, method, path, body}, as clients expect it;
// arguments that do not fit and calls that got no answer are errors.
func result(value json.RawMessage, err error) *mcp.CallToolResult {
	if no, ok := errors.AsType[*refused](err); ok {
		value, err = encode(no), nil
	}
	if err != nil {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: string(encode(map[string]string{"error": err.Error()}))}}}
	}
	var text bytes.Buffer
	var plain string
	switch {
	case json.Unmarshal(value, &plain) == nil:
		text.WriteString(plain)
	case json.Indent(&text, value, "", "  ") != nil:
		text.Write(value)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text.String()}}}
}

// Names of request headers that a client of /mcp may send besides its bearer.
const (
	HeaderCompany = "X-Paperclip-Company-Id"
	HeaderAgent   = "X-Paperclip-Agent-Id"
	// headerRemote carries the client's address from the door to the tools; it is
	// set here, whatever came in.
	headerRemote = "X-Selvage-Mcp-Remote"
)

// Handler serves the tools over streamable HTTP, without sessions, so that any
// node can answer any request. Each call goes to api, a handler of this process,
// with the bearer of the client. The caller has checked Host and Origin.
// "?tools=contract" offers the contract's tools only.
func Handler(tools []*Tool, version string, log *slog.Logger, api http.Handler) http.Handler {
	of := func(req *mcp.CallToolRequest) *Caller {
		h := http.Header{}
		if req.Extra != nil && req.Extra.Header != nil {
			h = req.Extra.Header
		}
		key, _ := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
		return &Caller{Transport: within{api}, Base: "http://localhost", Key: strings.TrimSpace(key), Remote: h.Get(headerRemote),
			Company: h.Get(HeaderCompany), Agent: h.Get(HeaderAgent), Run: h.Get(headerRun)}
	}
	all, few := newServer(tools, version, log, of), newServer(Contract(tools), version, log, of)
	choose := func(r *http.Request) *mcp.Server {
		if r.URL.Query().Get("tools") == "contract" {
			return few
		}
		return all
	}
	h := mcp.NewStreamableHTTPHandler(choose, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: MaxMessage, Logger: log,
		DisableLocalhostProtection: true}) // the API's own door has looked at Host and Origin, and knows the node's names
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.Header.Set(headerRemote, r.RemoteAddr)
		h.ServeHTTP(w, r)
	})
}

// Stdio serves the tools over a pair of streams until in ends or ctx does.
func Stdio(ctx context.Context, tools []*Tool, version string, c Caller, in io.ReadCloser, out io.WriteCloser, log *slog.Logger) error {
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	c.Base = strings.TrimSuffix(strings.TrimSuffix(c.Base, "/"), "/api")
	s := newServer(tools, version, log, func(*mcp.CallToolRequest) *Caller { one := c; return &one })
	err := s.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out, MaxLineLength: MaxMessage})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

// within makes requests to a handler of this process.
type within struct{ h http.Handler }

func (t within) RoundTrip(r *http.Request) (res *http.Response, err error) {
	defer func() {
		if p := recover(); p != nil { // a handler that cuts its answer off says so by a panic
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

// An answer collects what a handler writes, up to the bound of tools.
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
