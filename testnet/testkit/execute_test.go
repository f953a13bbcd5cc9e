package testkit

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/scheduler"
)

// An execution is what an answer to POST /api/v1/execute says.
type executed struct {
	Result        *string
	Score         float64
	TokensUsed    *int64  `json:"tokens_used"`
	ChainHash     *string `json:"chain_hash"`
	ExecutionID   string  `json:"execution_id"`
	Status        string
	RunID         *string  `json:"run_id"`
	NodeID        *string  `json:"node_id"`
	Runs          int      `json:"runs"`
	CostUSD       *float64 `json:"cost_usd"`
	DurationMS    *int64   `json:"duration_ms"`
	Error         *string
	URL           string
	Code, Message string
	BudgetUSD     *float64 `json:"budget_remaining_usd"`
}

// A task is given to a node that carries nothing out, by the board and by an agent's
// key, and read on a third: the answer is the same everywhere, a repetition with the
// same key is the same execution and begins nothing, a run that is cancelled or takes
// too long ends the wait with a clear answer, and so does the end of patience.
func TestATaskIsExecutedElsewhere(t *testing.T) {
	t.Parallel()
	work := working(t.TempDir())
	b := Mesh(t, 3, func(i int, c *node.Config) {
		if work(i, c); i != 1 {
			c.Adapters = map[string]scheduler.Adapter{} // it carries out nothing
		}
	})
	of, marks := b.Company("Acme"), t.TempDir()
	hire := func(name, script string, more ...any) Agent {
		config := map[string]any{"command": "/bin/sh", "args": []string{"-c", script}, "graceSec": 1}
		for i := 0; i+1 < len(more); i += 2 {
			config[more[i].(string)] = more[i+1]
		}
		a, err := b.Hire(0, of, name, config)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	quick := hire("Quick", "echo x >> "+marks+"/times; echo did it")
	late := hire("Late", "sleep 300", "timeoutSec", 1)
	slow := hire("Slow", "sleep 300")
	execute := func(on int, body map[string]any, headers ...string) (e executed, a Answer) {
		t.Helper()
		a, err := b.Ask(on, "POST", "/api/v1/execute", body, nil, append(b.Seen(), headers...)...)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(a.Body, &e); err != nil {
			t.Fatal(err)
		}
		return e, a
	}
	task := func(a Agent, more ...any) map[string]any {
		body := map[string]any{"agent_id": a.ID, "task": "Do it", "context": map[string]any{"company_id": of,
			"budget_remaining_usd": 1.5, "heartbeat_seq": 7}}
		for i := 0; i+1 < len(more); i += 2 {
			body[more[i].(string)] = more[i+1]
		}
		return body
	}

	first, a := execute(0, task(quick), "Idempotency-Key", "once")
	if a.Status != 200 || first.Status != "succeeded" || first.Result == nil ||
		strings.TrimSpace(*first.Result) != "did it" || first.Score != 0.5 || first.TokensUsed == nil ||
		*first.TokensUsed != 0 ||
		first.CostUSD == nil || *first.CostUSD != 0 || first.DurationMS == nil || *first.DurationMS < 0 ||
		first.NodeID == nil || *first.NodeID != string(b.Nodes[1].ID()) || first.Error != nil {
		t.Fatalf("the answer is %d %s", a.Status, a.Body)
	}
	for i, n := range b.Nodes {
		kind := ""
		_, err := n.View(t.Context(), ledger.Read{Mode: ledger.ReadStrong}, func(tx *ledger.Tx) error {
			for at, _ := n.Ledger().Head(); at > 0; at-- {
				if e, ok := ledger.EntryAt(tx, at); ok && hex.EncodeToString(e.Hash[:]) == *first.ChainHash {
					kind = e.Kind
				}
			}
			return nil
		})
		if err != nil || kind != "run.finish" {
			t.Errorf("on node %d the chain's hash is of an entry %q, %v", i, kind, err)
		}
	}
	var again executed
	b.Must(2, "GET", first.URL, nil, &again, Strong...)
	if again.ExecutionID != first.ExecutionID || *again.ChainHash != *first.ChainHash || *again.RunID != *first.RunID ||
		*again.Result != *first.Result {
		t.Errorf("another node tells of %+v, want %+v", again, first)
	}
	// Asked again with the same key, on another node: the same execution.
	if e, a := execute(2, task(quick), "Idempotency-Key", "once"); a.Status != 200 || e.ExecutionID != first.ExecutionID ||
		e.Runs != first.Runs || *e.ChainHash != *first.ChainHash {
		t.Errorf("a repetition answers %d %s", a.Status, a.Body)
	}
	if e, a := execute(2, task(quick, "task", "Do another"), "Idempotency-Key", "once"); a.Status != 422 || e.Code == "" ||
		e.Message == "" {
		t.Errorf("another task with the same key answers %d %s", a.Status, a.Body)
	}
	if got := strings.Fields(readFile(b, marks+"/times")); len(got) != first.Runs {
		t.Errorf("the task was begun %d times, want %d", len(got), first.Runs)
	}
	// The run takes longer than it may.
	if e, a := execute(0, task(late)); a.Status != 200 || e.Status != "failed" || e.Score != 0 || e.Error == nil ||
		!strings.Contains(*e.Error, "Timed out after 1s") || e.ChainHash == nil {
		t.Errorf("a run that takes too long answers %d %s", a.Status, a.Body)
	}
	// The caller waits no longer, by an agent's key; then the run is cancelled on a third
	// node while another caller waits for it.
	boss := hire("Boss", "sleep 300")
	if err := b.Invoke(0, &boss); err != nil {
		t.Fatal(err)
	}
	e, a := execute(0, task(slow, "timeout_ms", 200), append(boss.As(), "Idempotency-Key", "slow")...)
	if a.Status != 202 || e.Result != nil || e.ChainHash != nil || e.Status != "queued" && e.Status != "running" ||
		e.URL == "" {
		t.Fatalf("one who does not wait is told %d %s", a.Status, a.Body)
	}
	b.Until("it runs", func() bool { b.Must(2, "GET", e.URL, nil, &e, Strong...); return e.Status == "running" })
	type answered struct {
		e executed
		a Answer
	}
	over := make(chan answered, 1)
	go func() {
		a, err := b.Ask(0, "POST", "/api/v1/execute", task(slow, "timeout_ms", 600_000), nil,
			append(boss.As(), "Idempotency-Key", "slow")...)
		got := answered{a: a}
		if err == nil {
			_ = json.Unmarshal(a.Body, &got.e) // what does not fit shows below
		}
		over <- got
	}()
	time.Sleep(200 * time.Millisecond)
	b.Must(2, "POST", "/api/heartbeat-runs/"+*e.RunID+"/cancel", map[string]any{}, nil, b.Seen()...)
	select {
	case got := <-over:
		if got.a.Status != 200 || got.e.Status != "cancelled" || got.e.Score != 0 || got.e.ExecutionID != e.ExecutionID ||
			got.e.Error == nil || got.e.ChainHash == nil {
			t.Errorf("who waits for a run that is cancelled is told %d %s", got.a.Status, got.a.Body)
		}
	case <-time.After(settle):
		t.Error("who waits for a run that was cancelled goes on waiting")
	}
	b.Must(0, "POST", "/api/agents/"+boss.ID+"/pause", map[string]any{}, nil) // the mesh closes sooner
	b.Idle()
}

// What a caller has left for a task is a limit: calls at the gateway are refused
// before they would exceed it, also where no budget is set, and the answer says so.
// Work that comes out with less is not disturbed.
func TestATaskCostsNoMoreThanIsLeft(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w,
			`{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,`+
				`"message":{"role":"assistant","content":"on"},"finish_reason":"stop"}],`+
				`"usage":{"prompt_tokens":500,"completion_tokens":200,"total_tokens":700}}`)
	}))
	defer up.Close()
	b := Mesh(t, 1, working(t.TempDir()))
	of := b.Company("Acme")
	b.Must(0, "POST", "/api/companies/"+string(of)+"/model-providers", map[string]any{"name": "up", "kind": "llamacpp",
		"baseUrl": up.URL, "models": []map[string]string{{"name": "m"}}, "labels": []string{"near=up"}}, nil)
	// Only nodes of a label may ask the upstream, and an operator gives it while the node works.
	b.Must(0, "PATCH", "/api/v1/mesh/nodes/"+string(b.Nodes[0].ID()),
		map[string]any{"labels": map[string]string{"near": "up"}}, nil)
	// A cent for a token, so that each call costs 7 USD and sets about 23 aside before.
	b.Must(0, "PUT", "/api/companies/"+string(of)+"/model-prices", map[string]any{"model": "*", "input": 1_000_000_000_000,
		"output": 1_000_000_000_000}, nil)
	call := `curl -s -o $OUT -w '%{http_code}\n' -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H 'Content-Type: ` +
		`application/json' \
 -d '{"model":"m","max_tokens":200,"messages":[{"role":"user","content":"on?"}]}' ` +
		`$PAPERCLIP_API_URL/llm/v1/chat/completions`
	hire := func(name, script string) Agent {
		a, err := b.Hire(0, of, name, map[string]any{"command": "/bin/sh", "args": []string{"-c", script},
			"env": map[string]any{"OUT": filepath.Join(t.TempDir(), "out")}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	all := hire("Spender",
		`n=0; while [ $n -lt 50 ]; do n=$((n+1)); code=$(`+call+`); [ $code = 200 ] || { cat $OUT; exit 7; }; done; exit 0`)
	execute := func(a Agent, usd float64) (e executed, answer Answer) {
		t.Helper()
		answer, err := b.Ask(0, "POST", "/api/v1/execute", map[string]any{"agent_id": a.ID, "task": "Spend",
			"timeout_ms": 600_000, "context": map[string]any{"company_id": of, "budget_remaining_usd": usd}}, nil, b.Seen()...)
		if err == nil {
			err = json.Unmarshal(answer.Body, &e)
		}
		if err != nil {
			t.Fatal(err)
		}
		return e, answer
	}
	e, a := execute(all, 60)
	if a.Status != 200 || e.Status != "failed" || e.Code != "BUDGET_EXHAUSTED" || e.Error == nil || e.CostUSD == nil ||
		*e.CostUSD < 7 || *e.CostUSD > 60 || e.BudgetUSD == nil || *e.BudgetUSD != 60-*e.CostUSD {
		t.Errorf("what costs more than there is: %d %s", a.Status, a.Body)
	}
	var runs []struct{ ID, Status, ErrorCode string }
	b.Must(0, "GET", "/api/companies/"+string(of)+"/heartbeat-runs?agentId="+all.ID, nil, &runs, Strong...)
	if len(runs) != 1 || runs[0].ErrorCode != "budget_refused" {
		t.Errorf("its runs are %+v, want one that is not tried again", runs)
	}
	once := hire("Saver", `code=$(`+call+`); [ $code = 200 ]`)
	if e, a := execute(once, 60); a.Status != 200 || e.Status != "succeeded" || e.Code != "" || e.CostUSD == nil ||
		*e.CostUSD != 7*float64(e.Runs) || *e.BudgetUSD != 60-*e.CostUSD {
		t.Errorf("what costs less: %d %s", a.Status, a.Body)
	}
	// Less than one call: it never leaves.
	if e, a := execute(once, 0.01); a.Status != 200 || e.Status != "failed" || e.Code != "BUDGET_EXHAUSTED" ||
		*e.CostUSD != 0 {
		t.Errorf("what can not begin: %d %s", a.Status, a.Body)
	}
	for _, a := range []Agent{all, once} {
		b.Must(0, "POST", "/api/agents/"+a.ID+"/pause", map[string]any{}, nil)
	}
	b.Idle()
}
