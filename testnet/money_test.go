package testnet

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A node is killed in the middle of a streamed model call. What the call could cost
// at most stays held against the limit while the node is away, so that the retry
// elsewhere can not overspend it, whatever the upstream did; when the node is back,
// it tells of the call, which is booked once, at its worst case, and nothing is held.
func TestACallOfAKilledNodeIsSettled(t *testing.T) {
	p := processes(t)
	const limit = 4_000 // cents; a token costs one, and a call sets about 2,300 aside
	var asked atomic.Int64
	over := make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w,
			strings.Repeat(`data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,`+
				`"delta":{"content":"word "}}]}`+"\n\n", 5))
		w.(http.Flusher).Flush()
		select { // it never comes to its end
		case <-r.Context().Done():
		case <-over:
		}
	}))
	t.Cleanup(func() { close(over); up.CloseClientConnections(); up.Close() })

	company, _ := newIssue(t, p)
	of := "/api/companies/" + string(company)
	must(t, p, "POST", of+"/model-providers", map[string]any{"name": "up", "kind": "llamacpp", "baseUrl": up.URL,
		"models": []map[string]string{{"name": "m"}}}, nil)
	must(t, p, "PUT", of+"/model-prices", map[string]any{"model": "*", "input": 1_000_000_000_000,
		"output": 1_000_000_000_000}, nil)
	must(t, p, "POST", of+"/budgets/policies", map[string]any{"scopeType": "company", "scopeId": company,
		"windowKind": "lifetime", "amount": limit}, nil)
	var agent answer
	must(t, p, "POST", of+"/agents", map[string]any{"name": "Talker", "role": "engineer", "adapterType": "process",
		"adapterConfig": map[string]any{
			"command": "/bin/sh", "args": []string{"-c",
				`exec curl -sSN -f -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H 'Content-Type: application/json' \
 -d '{"model":"m","stream":true,"max_tokens":100,"messages":[{"role":"user","content":"say something"}]}' ` +
					`$PAPERCLIP_API_URL/llm/v1/chat/completions`}}}, &agent)
	must(t, p, "POST", of+"/issues", map[string]any{"title": "Talk", "status": "todo", "assigneeAgentId": agent.ID}, nil)

	type run struct{ ID, Status, ErrorCode, NodeID string }
	runs := func() (rows []run) {
		must(t, p, "GET", of+"/heartbeat-runs?agentId="+agent.ID, nil, &rows, "X-Selvage-Read", "strong")
		return rows
	}
	type held struct {
		ID, NodeID, Status string
		Amount, Held       int64 // cents
		Lost, Uncertain    bool
	}
	reservations := func() (rows []held) {
		must(t, p, "GET", of+"/budgets/reservations", nil, &rows, "X-Selvage-Read", "strong")
		return rows
	}
	spent := func() int64 {
		var sum struct{ SpendCents int64 }
		must(t, p, "GET", of+"/costs/summary", nil, &sum, "X-Selvage-Read", "strong")
		return sum.SpendCents
	}
	within(time.Minute).Until(t, "the call is under way", func() bool { return asked.Load() == 1 })
	first, before := runs()[0], reservations()
	if len(before) != 1 || before[0].Held == 0 || before[0].Held > limit || before[0].NodeID != first.NodeID {
		t.Fatalf("under way is %+v of run %+v", before, first)
	}
	victim := ""
	for _, n := range p.Status(t.Context()) {
		if n.ID == first.NodeID {
			victim = n.Name
		}
	}
	if err := p.Kill(victim); err != nil {
		t.Fatal(err)
	}
	within(time.Minute).Until(t, "the run of the killed node is lost, and its money held", func() bool {
		rows := reservations()
		return len(rows) == 1 && rows[0].Lost && rows[0].Held == before[0].Held
	})
	// The retry finds too little left: its call never leaves.
	within(time.Minute).Until(t, "the retry has failed for want of money", func() bool {
		rows := runs()
		return len(rows) > 1 && rows[0].Status == "failed" && rows[0].ErrorCode == "budget_refused"
	})
	if n := asked.Load(); n != 1 || spent() != 0 {
		t.Errorf("the upstream was asked %d times, and %d cents are booked, while the money of the first call was held", n,
			spent())
	}
	if err := p.Start(t.Context(), victim); err != nil {
		t.Fatal(err)
	}
	within(time.Minute).Until(t, "the node that is back has told of its call",
		func() bool { return len(reservations()) == 0 })
	if got := spent(); got != before[0].Held || got > limit {
		t.Errorf("booked are %d cents, want what was granted, %d", got, before[0].Held)
	}
	time.Sleep(time.Second) // whatever else it would tell
	if got := spent(); got != before[0].Held || len(reservations()) != 0 {
		t.Errorf("afterwards %d cents are booked and %+v is held", got, reservations())
	}
}
