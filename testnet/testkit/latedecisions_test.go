package testkit

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/scheduler"
)

// A lateRun is what the mesh says of a run whose node was lost.
type lateRun struct {
	Status, NodeID string
	DecisionLog    *struct {
		Permits, Lost uint64
		Bytes         int64
		SHA256        string
		KeptAt        string
		Late          bool
	}
}

// The decision log of a run outlives the death of its node: the leader closes the run without one, the node tells of it
// when it is back, and other nodes keep it.
func TestADeadNodesDecisionLogIsToldLate(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":`+
			`{"role":"assistant","content":"on"},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`)
	}))
	defer up.Close()
	work := working(t.TempDir())
	b := Mesh(t, 3, func(i int, c *node.Config) {
		if work(i, c); i != 2 {
			c.Adapters = map[string]scheduler.Adapter{}
		}
	})
	of := b.Company("Acme")
	b.Must(0, "POST", "/api/companies/"+string(of)+"/model-providers", map[string]any{"name": "up", "kind": "llamacpp",
		"baseUrl": up.URL, "models": []map[string]string{{"name": "m"}}}, nil)
	ada, token := b.waits(of)
	for range 2 {
		b.Must(2, "POST", "/llm/v1/chat/completions", map[string]any{"model": "m", "max_tokens": 20,
			"messages": []any{map[string]any{"role": "user", "content": "on?"}}}, nil,
			append(b.Seen(), "Authorization", "Bearer "+token)...)
	}
	var run lateRun
	read := func() lateRun {
		run = lateRun{}
		b.Must(0, "GET", "/api/heartbeat-runs/"+ada.Run, nil, &run, b.Seen()...)
		return run
	}
	if read(); run.Status != "running" || run.NodeID != string(b.Nodes[2].ID()) {
		t.Fatalf("before its node dies: %+v", run)
	}
	b.Kill(2)
	b.Until("the run is closed as lost", func() bool { return read().Status == "interrupted" })
	if run.DecisionLog != nil {
		t.Fatalf("its node is dead, but the mesh knows of a decision log: %+v", run.DecisionLog)
	}
	b.Restart(2)
	b.Until("the node has told of the decision log, and others keep it", func() bool {
		d := read().DecisionLog
		return d != nil && d.KeptAt != ""
	})
	d := run.DecisionLog
	if d.Permits != 2 || d.Lost != 0 || !d.Late {
		t.Errorf("told %+v, want 2 permits, late", d)
	}
	b.Kill(2)
	var page struct{ Content string }
	b.Must(1, "GET", "/api/heartbeat-runs/"+ada.Run+"/log?decisions=true", nil, &page, b.Seen()...)
	sum := sha256.Sum256([]byte(page.Content))
	if hex.EncodeToString(sum[:]) != d.SHA256 ||
		strings.Count(page.Content, `"action":"model.call","decision":"permit"`) != 2 {
		t.Errorf("another node has %q, told %+v", page.Content, d)
	}
}
