package api

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/api/mcp"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

// Calls that agents make through tools are recorded, reads too. They wait here for a moment
// and become one entry for each run with calls, by the agent itself. So GET
// /api/companies/:id/activity?agentId=… shows what an agent did, and no call waits for its
// record. Records that a node holds when it dies are lost; commands among the calls have
// their own entries.
type traces struct {
	mu      sync.Mutex // guards the rest
	waiting []traced
	omitted map[tracer]int64
}

// A tracer is the actor whose calls are recorded.
type tracer struct {
	Actor      ledger.Actor
	credential ledger.Credential
	Company    ledger.CompanyID
	Run        string
}

type traced struct {
	By   tracer
	Call skill.ToolCall
}

// ChargeTool counts a request that a run makes through a tool. company says that it executes a
// tool of its company, which counts also without the header.
func (rc *Request) ChargeTool(company bool) error {
	through := rc.HTTP.Header.Get(mcp.HeaderTool) != ""
	if rc.Run == "" || !rc.IsAgent() || rc.Server.Cfg.ChargeTool == nil || through == company {
		return nil
	}
	return rc.Server.Cfg.ChargeTool(rc.Run)
}

// trace records a request that an agent made through a tool.
func (s *Server) trace(rc *Request, w http.ResponseWriter, began time.Time) {
	tool := rc.HTTP.Header.Get(mcp.HeaderTool)
	if tool == "" || !rc.IsAgent() || rc.Company == "" {
		return
	}
	if len(tool) > 64 || !harmless(tool) {
		tool = "unnamed"
	}
	status := http.StatusOK
	if rec, ok := w.(*recorder); ok && rec.status != 0 {
		status = rec.status
	}
	took := time.Since(began)
	s.Log.Info("tool called", "request", rc.ID, "tool", tool, "agent", rc.Actor.ID, "run", rc.Run, "method",
		rc.HTTP.Method, "path", pathOf(rc.HTTP),
		"status", status, "took", took)
	s.Traces.Add(traced{tracer{rc.Actor, rc.Credential, rc.Company, rc.Run},
		skill.ToolCall{Tool: tool, Method: rc.HTTP.Method,
			Path: Cut(withoutTokens(rc.HTTP.URL.Path), tracedPaths), Status: status, At: core.TimeOf(began),
			Took: took.Milliseconds()}})
}

func (t *traces) Add(c traced) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) < traceQueue {
		t.waiting = append(t.waiting, c)
		return
	}
	if t.omitted == nil {
		t.omitted = map[tracer]int64{}
	}
	if len(t.omitted) < traceQueue {
		t.omitted[c.By]++
	}
}

// Take empties the queue into commands, with each actor's calls in order.
func (t *traces) Take() []ledger.Command {
	t.mu.Lock()
	waiting, omitted := t.waiting, t.omitted
	t.waiting, t.omitted = nil, nil
	t.mu.Unlock()
	var order []tracer
	calls := map[tracer][]skill.ToolCall{}
	for _, c := range waiting {
		if _, known := calls[c.By]; !known {
			order = append(order, c.By)
		}
		calls[c.By] = append(calls[c.By], c.Call)
	}
	var out []ledger.Command
	for _, by := range order {
		for all, left := calls[by], omitted[by]; len(all) > 0; left = 0 {
			n := min(len(all), skill.MaxTracedCalls)
			p := skill.TraceTools{Calls: all[:n], Omitted: left}
			all = all[n:]
			cmd := ledger.Command{Kind: skill.KindToolTrace, Company: by.Company, Actor: by.Actor, Credential: by.credential,
				Run: by.Run, Payload: ledger.Marshal(p)}
			rand.Read(cmd.Salt[:])
			out = append(out, cmd)
		}
	}
	return out
}

// traceTools turns recorded calls into entries until the server closes.
func (s *Server) traceTools() {
	tick := time.NewTicker(traceEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.Ctx.Done():
			return
		case <-tick.C:
		}
		for _, cmd := range s.Traces.Take() {
			err := s.SubmitTrace(cmd)
			if err != nil && cmd.Run != "" && cmd.Credential.Kind == "agent_key" {
				cmd.Run = "" // the agent named a run of another
				err = s.SubmitTrace(cmd)
			}
			if err != nil {
				s.Log.Warn("tool calls left no trace in the record", "agent", cmd.Actor.ID, "run", cmd.Run, "error", err)
			}
		}
	}
}

func (s *Server) SubmitTrace(cmd ledger.Command) error {
	ctx, cancel := context.WithTimeout(s.Ctx, RequestTimeout)
	defer cancel()
	r, err := s.Cfg.Node.Submit(ctx, cmd)
	if err != nil {
		return err
	}
	return r.Err()
}
