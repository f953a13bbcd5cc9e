package apitest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/selvage-mesh/selvage/api/mcp"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

// WithHeaders adds headers to each request of a client.
type WithHeaders map[string]string

func (h WithHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for k, v := range h {
		r.Header.Set(k, v)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func Connect(t testing.TB, transport sdk.Transport, protocol string) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	session, err := client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	if got := session.InitializeResult().ProtocolVersion; got != protocol {
		t.Errorf("agreed on protocol %s, want %s", got, protocol)
	}
	return session
}

// OverHTTP connects to /mcp of a node; pick is the query's "tools", of which "" is none.
func (h *Harness) OverHTTP(t testing.TB, protocol, pick string, headers WithHeaders) *sdk.ClientSession {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	at := s.URL + "/mcp"
	if pick != "" {
		at += "?tools=" + url.QueryEscape(pick)
	}
	return Connect(t, &sdk.StreamableClientTransport{Endpoint: at, HTTPClient: &http.Client{Transport: headers},
		MaxRetries: -1}, protocol)
}

// OverStdio connects to what `selvage mcp` runs, which calls a node over HTTP.
func (h *Harness) OverStdio(t testing.TB, protocol, pick string, c mcp.Caller) *sdk.ClientSession {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	tools, err := Tools()
	if err != nil {
		t.Fatal(err)
	}
	listed, err := mcp.NewPick(tools, pick)
	if err != nil {
		t.Fatal(err)
	}
	c.Base = s.URL + "/api/" // the variable may end so
	theirIn, ourOut := io.Pipe()
	ourIn, theirOut := io.Pipe()
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		done <- mcp.Stdio(ctx, tools, listed, "test", c, theirIn, theirOut, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		cancel()
		ourOut.Close()
		ourIn.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return Connect(t, &sdk.IOTransport{Reader: ourIn, Writer: ourOut}, protocol)
}

// Running invokes an agent and starts its run on the harness's node.
func (h *Harness) Running(of ledger.CompanyID, agent string, board ...string) (run string) {
	h.T.Helper()
	return h.Start(of, h.Call("POST", "/api/agents/"+agent+"/heartbeat/invoke", `{}`, board...).Want(h.T, 202, "").
		Field(h.T, "id"))
}

// Start starts a queued run on the harness's node.
func (h *Harness) Start(of ledger.CompanyID, run string) string {
	h.T.Helper()
	node := string(h.Node.Keys.ID())
	me, mine := ledger.Actor{Type: "node", ID: node}, ledger.Credential{Kind: "node", ID: node}
	h.SubmitAs(me, mine, "run.place", of, company.Place{Run: run, Node: node, Session: h.Node.Sess})
	h.SubmitAs(me, mine, "run.start", of, company.Start{Run: run, LogStore: "local_file", LogRef: "x.ndjson"})
	return run
}

// Traced returns what the record says an agent did, and the calls in it.
func (h *Harness) Traced(t *testing.T, query, run string) (made, tools []string) {
	var rows []entity.ActivityRow
	if err := json.Unmarshal(h.Call("GET", query, "").Want(t, 200, "").Body, &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		made = append(made, r.Action+" "+map[bool]string{true: "of the run", false: "of no run"}[string(r.Run) == run])
		var d struct {
			Calls []skill.ToolCall `json:"calls"`
		}
		if r.Action == "mcp.tool_called" && json.Unmarshal(r.Details, &d) == nil {
			for _, c := range d.Calls {
				tools = append(tools, fmt.Sprint(c.Tool, " ", c.Status))
			}
		}
	}
	return made, tools
}

// FlushTraces notes what waits, without waiting for its time.
func (h *Harness) FlushTraces() {
	for _, cmd := range h.Traces.Take() {
		if err := h.SubmitTrace(cmd); err != nil && cmd.Run != "" {
			cmd.Run = ""
			h.SubmitTrace(cmd)
		}
	}
}
