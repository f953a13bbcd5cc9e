package models

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/testnet/testkit"
)

// overheard passes requests on to a base URL and keeps their bodies.
func overheard(t *testing.T, base string) (at string, said func() string) {
	t.Helper()
	to, err := url.Parse(strings.TrimSuffix(base, "/v1"))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var bodies []string
	proxy := httputil.NewSingleHostReverseProxy(to)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		bodies = append(bodies, string(b))
		mu.Unlock()
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL + "/v1", func() string { mu.Lock(); defer mu.Unlock(); return strings.Join(bodies, "\n") }
}

// The default agent takes an issue through its whole pipeline in the sandbox of
// its node, thinking with a real model on the same machine: it is told its skill,
// what it kept, found by what it means, and what was sent to it, its calls are paid, and what the model
// came to stands on the issue, however little so small a model knows.
func TestTheDefaultAgentThinksWithARealModel(t *testing.T) {
	at, said := overheard(t, server(t, "embeds"))
	dir := t.TempDir()
	b := testkit.Mesh(t, 1, func(_ int, c *node.Config) {
		c.Adapters, c.Shim = nil, shimtest.Command
		c.Dir = filepath.Join(dir, c.Name)
	})
	of := b.Company("Acme")
	b.Must(0, "POST", "/api/companies/"+string(of)+"/model-providers", map[string]any{"name": "box", "kind": "llamacpp",
		"baseUrl": at,
		"models": []map[string]string{{"name": "local/gemma", "as": "gemma"},
			{"name": "local/gemma-embed", "as": "gemma"}}}, nil)
	b.Must(0, "PUT", "/api/companies/"+string(of)+"/model-prices", map[string]any{"model": "box/*", "input": 1_000_000_000,
		"output": 1_000_000_000}, nil)
	var skill struct{ Key string }
	b.Must(0, "POST", "/api/companies/"+string(of)+"/skills", map[string]any{"name": "colours", "slug": "colours",
		"markdown": "---\nname: colours\ndescription: How to choose a colour for the arm.\n---\nOnly ever choose " +
			"primary colours."}, &skill)
	var agent, issue struct{ ID string }
	b.Must(0, "POST", "/api/companies/"+string(of)+"/agents", map[string]any{"name": "Ada", "adapterType": "wasm",
		"adapterConfig": map[string]any{"env": map[string]string{"AGENT_MODEL": "local/gemma", "AGENT_MAX_TOKENS": "24"},
			"timeoutSec": 170}}, &agent)
	b.Must(0, "POST", "/api/agents/"+agent.ID+"/skills/sync",
		map[string]any{"mode": "add", "desiredSkills": []string{skill.Key}}, nil)
	b.Must(0, "PUT", "/api/agents/"+agent.ID+"/memory/globex.taste",
		map[string]any{"value": "Globex dislikes green paint."}, nil) // no word of the issue's
	b.Must(0, "PUT", "/api/agents/"+agent.ID+"/memory/lunch", map[string]any{"value": "We eat at noon."}, nil)
	b.Must(0, "POST", "/api/agents/"+agent.ID+"/messages", map[string]any{"type": "note",
		"payload": map[string]string{"text": "The arm is for Globex."}}, nil)
	b.Must(0, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": "Choose a colour for the arm",
		"status": "todo", "assigneeAgentId": agent.ID}, &issue)

	type ended struct {
		ID, Status, Error string
		ResultJSON        struct {
			Result string
			Score  float64
			Told   struct {
				IssueStatus string
				Rounds      int
				Tokens      int
				Profile     struct {
					Type string `json:"task_type"`
				}
				Route struct{ Models []string }
			}
			Stderr string
		}
	}
	var run ended
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		var runs []struct{ RunID, Status string }
		b.Must(0, "GET", "/api/issues/"+issue.ID+"/runs", nil, &runs, testkit.Strong...)
		if n := len(runs); n > 0 && runs[n-1].Status != "running" && runs[n-1].Status != "queued" {
			b.Must(0, "GET", "/api/heartbeat-runs/"+runs[n-1].RunID, nil, &run)
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no run has ended after %s: %+v", patience, runs)
		}
	}
	told := run.ResultJSON.Told
	if run.Status != "succeeded" || told.Rounds < 1 || told.Tokens < 100 || told.Profile.Type == "" ||
		len(told.Route.Models) == 0 || told.Route.Models[0] != "local/gemma" ||
		run.ResultJSON.Score <= 0 || run.ResultJSON.Score > 1 || run.ResultJSON.Result == "" {
		t.Fatalf("the run is %+v", run)
	}
	var row struct{ Status string }
	var comments []struct{ Body, AuthorAgentID string }
	b.Must(0, "GET", "/api/issues/"+issue.ID, nil, &row, testkit.Strong...)
	b.Must(0, "GET", "/api/issues/"+issue.ID+"/comments", nil, &comments, testkit.Strong...)
	if !slices.Contains([]string{"done", "in_review", "blocked"}, row.Status) || len(comments) == 0 ||
		comments[0].AuthorAgentID != agent.ID {
		t.Errorf("the issue is %s, with comments %+v", row.Status, comments)
	}
	for _, want := range []string{"Only ever choose primary colours.", "globex.taste: Globex dislikes green paint.",
		"The arm is for Globex.", "Choose a colour for the arm", `"name":"finish"`} {
		if !strings.Contains(said(), want) {
			t.Errorf("the model was not told %q", want)
		}
	}
	var inbox []any
	if b.Must(0, "GET", "/api/agents/"+agent.ID+"/messages", nil, &inbox, testkit.Strong...); len(inbox) != 0 {
		t.Errorf("the inbox has %v", inbox)
	}
	// What it keeps was embedded, and what came of the issue is kept.
	var kept []struct{ Key, Value string }
	b.Must(0, "GET", "/api/agents/"+agent.ID+"/memory", nil, &kept, testkit.Strong...)
	vectors, done := "", ""
	for _, m := range kept {
		switch {
		case strings.HasPrefix(m.Key, "vec."):
			vectors = m.Value
		case strings.HasPrefix(m.Key, "done."):
			done = m.Value
		}
	}
	if strings.Count(vectors, `"v":`) != 2 || !strings.Contains(vectors, `"m":"local/gemma-embed"`) ||
		!strings.HasPrefix(done, "Choose a colour for the arm (") {
		t.Errorf("it keeps %.2000v", kept)
	}
	b.Until("its calls are booked", func() bool {
		paid, embedded := false, 0
		if _, err := b.Nodes[0].View(t.Context(), ledger.Read{Mode: ledger.ReadStrong}, func(tx *ledger.Tx) error {
			for e := range money.CostsOfAgentSince(tx, of, agent.ID, 0) {
				paid = paid || e.Biller == "box" && e.Model == "gemma" && e.InputTokens+e.CachedInputTokens > 100 &&
					e.OutputTokens > 0 && e.Cost > 0
				if e.OutputTokens == 0 && e.InputTokens > 0 && e.Cost > 0 {
					embedded++
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return paid && embedded == 2 // the question, and the two texts
	})
	t.Logf("the issue is %s, score %.2f, %d rounds, %d tokens: %.200q", row.Status, run.ResultJSON.Score, told.Rounds,
		told.Tokens, run.ResultJSON.Result)
}
