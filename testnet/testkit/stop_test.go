package testkit

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/purse"
)

// A stop holds everywhere within the lease: on the node that is told, on one that
// follows, and on one that is cut off and hears of nothing. No program is left, no
// model is called, and no money is given; the tokens of the runs are worth nothing.
func TestAStopHoldsOnEveryNode(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a lease to end")
	}
	t.Parallel()
	const lease = 6 * time.Second
	cut, work := &Cut{}, working(t.TempDir())
	b := Mesh(t, 3, func(i int, c *node.Config) {
		work(i, c)
		if c.Lease = lease; i == 2 {
			c.Conn = cut
		}
	})
	var mu sync.Mutex
	called := map[string]time.Time{} // when a model was called last, by node
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		called[strings.Split(r.URL.Path, "/")[1]] = time.Now()
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w,
			`{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,`+
				`"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}],`+
				`"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	}))
	t.Cleanup(up.Close)
	of, out := b.Company("Acme"), t.TempDir()
	b.Must(0, "PUT", "/api/companies/"+string(of)+"/model-prices", map[string]any{"model": "*", "input": 1_000_000,
		"output": 1_000_000}, nil)
	// It has a child of its own session, and both go on whatever they are told.
	const script = `trap '' TERM; umask 077; printf %s "$PAPERCLIP_API_KEY" >$OUT/part.$NODE; mv $OUT/part.$NODE ` +
		`$OUT/$NODE.token
setsid /bin/sh -c 'trap "" TERM; while :; do date +%s.%N >$OUT/$NODE.child; sleep 0.05; done' &
while :; do curl -s --max-time 5 -o /dev/null -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H 'Content-Type: ` +
		`application/json' \
 -d '{"model":"'$NODE'","max_tokens":5,"messages":[{"role":"user","content":"on?"}]}' ` +
		`$PAPERCLIP_API_URL/llm/v1/chat/completions; date +%s.%N >$OUT/$NODE.self; sleep 0.05; done`
	agents := make([]Agent, 3)
	for on, n := range b.Nodes {
		name := fmt.Sprintf("n%d", on+1)
		b.Must(0, "POST", "/api/companies/"+string(of)+"/model-providers", map[string]any{"name": name, "kind": "llamacpp",
			"baseUrl": up.URL + "/" + name,
			"models":  []map[string]string{{"name": name, "as": "m"}}}, nil)
		var row struct{ ID string }
		b.Must(0, "POST", "/api/companies/"+string(of)+"/agents", map[string]any{"name": name, "role": "engineer",
			"adapterType": "process",
			"adapterConfig": map[string]any{"command": "/bin/sh", "args": []string{"-c", script}, "graceSec": 1,
				"env": map[string]any{"OUT": out, "NODE": name}},
			"runtimeConfig": map[string]any{"placement": map[string]any{"node": string(n.ID())}}}, &row, Strong...)
		agents[on] = Agent{ID: row.ID, Name: name}
		if err := b.Invoke(0, &agents[on]); err != nil {
			t.Fatal(err)
		}
	}
	for on := range b.Nodes {
		for _, what := range []string{"child", "self", "token"} {
			readFile(b, filepath.Join(out, fmt.Sprintf("n%d.%s", on+1, what)))
		}
	}
	cut.Off()
	told := time.Now()
	b.Must(0, "POST", "/api/v1/mesh/stop", map[string]any{"reason": "drill"}, nil)
	for left := -1; left != 0; time.Sleep(poll) {
		if left = len(marked("OUT=" + out)); left != 0 && time.Since(told) > time.Minute {
			t.Fatalf("%d processes are left %s after the stop", left, time.Since(told))
		}
	}
	// When each did something last, it tells itself: on a busy machine this test sees it later.
	for on := range b.Nodes {
		for _, what := range []string{"child", "self"} {
			f, err := os.Stat(filepath.Join(out, fmt.Sprintf("n%d.%s", on+1, what)))
			if err != nil {
				t.Fatal(err)
			}
			if late := f.ModTime().Sub(told); late > lease {
				t.Errorf("a process of n%d, %s, was at work %s after the stop", on+1, what, late)
			}
		}
	}
	t.Logf("the last process was gone %s after the stop, of a lease of %s", time.Since(told).
		Round(time.Millisecond), lease)
	gone := time.Now()
	time.Sleep(time.Until(told.Add(lease)))
	mu.Lock()
	for name, at := range called {
		if at.After(gone) {
			t.Errorf("%s called a model %s after the stop", name, at.Sub(told))
		}
	}
	if len(called) != 3 {
		t.Errorf("models were called on %d nodes only; the test shows nothing", len(called))
	}
	mu.Unlock()
	for on, n := range b.Nodes {
		_, err := n.Purse().Reserve(t.Context(), money.SpendAsk{Company: of, Agent: agents[on].ID, Want: 1,
			Run: agents[on].Run})
		if err == nil || on == 2 && !errors.Is(err, purse.ErrNoAuthority) {
			t.Errorf("n%d gives money after the stop: %v", on+1, err)
		}
	}
	for on := range 2 {
		token := readFile(b, filepath.Join(out, fmt.Sprintf("n%d.token", on+1)))
		if got, err := b.Call(0, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": "Late"}, nil,
			"Authorization", "Bearer "+token); err != nil || got.Status != 401 {
			t.Errorf("the token of a run that was stopped: %v %d, want 401", err, got.Status)
		}
	}
	b.refused(0, 409, "POST", "/api/agents/"+agents[0].ID+"/heartbeat/invoke", map[string]any{})
	for _, a := range agents {
		if s := b.fields(0, "/api/heartbeat-runs/"+a.Run)["status"]; s != "cancelled" && s != "interrupted" {
			t.Errorf("the run of %s is %v", a.Name, s)
		}
	}
	for on := range b.Nodes { // nothing is left of the runs, and nothing is to be told
		b.Kill(on)
	}
}
