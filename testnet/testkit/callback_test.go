package testkit

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/selvage-mesh/selvage/node"
)

// An agent behind a URL is invoked, says that it has begun, and tells the end of
// its run to another node than the one that waits.
func TestAWebhookCallsBack(t *testing.T) {
	t.Parallel()
	type invoked struct {
		RunID    string
		Callback struct{ URL, Token string }
	}
	calls := make(chan invoked, 1)
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in invoked
		_ = json.NewDecoder(r.Body).Decode(&in)
		w.WriteHeader(http.StatusAccepted)
		calls <- in
	}))
	defer agent.Close()
	work := working(t.TempDir())
	b := Mesh(t, 3, func(i int, c *node.Config) {
		work(i, c)
		c.Private = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	of := b.Company("Acme")
	var a struct{ ID string }
	b.Must(0, "POST", "/api/companies/"+string(of)+"/agents", map[string]any{"name": "Far", "adapterType": "http",
		"adapterConfig": map[string]any{"url": agent.URL, "callback": true}}, &a)
	issue := b.Issue(0, of, "Paint it")
	var run struct {
		ID, Status string
		ResultJSON struct {
			Summary    string
			CalledBack bool
			Result     struct{ Coats int }
		}
		UsageJSON struct{ InputTokens int }
	}
	b.Must(0, "POST", "/api/agents/"+a.ID+"/wakeup", map[string]any{"source": "on_demand",
		"payload": map[string]any{"issueId": issue}}, &run)
	in := <-calls
	tell := map[string]any{"status": "succeeded", "summary": "It is blue.", "result": map[string]int{"coats": 2},
		"usage": map[string]int{"inputTokens": 40, "outputTokens": 2}}
	path := "/api/heartbeat-runs/" + in.RunID + "/callback"
	if ans, _ := b.Do(1, "POST", path, tell, nil, "Authorization",
		"Bearer not-a-token"); ans.Status != http.StatusUnauthorized {
		t.Errorf("a stranger was answered %d", ans.Status)
	}
	for on := range b.Nodes { // any node will do, once
		ans, _ := b.Do(on, "POST", path, tell, nil, "Authorization", "Bearer "+in.Callback.Token)
		if want := map[bool]int{true: http.StatusOK, false: http.StatusConflict}[on == 0]; ans.Status != want &&
			ans.Status != http.StatusUnauthorized {
			t.Errorf("n%d answered %d, want %d", on+1, ans.Status, want)
		}
	}
	b.Until("the run ends", func() bool {
		b.Must(0, "GET", "/api/heartbeat-runs/"+in.RunID, nil, &run)
		return run.Status != "running"
	})
	if run.Status != "succeeded" || run.ResultJSON.Summary != "It is blue." || run.ResultJSON.Result.Coats != 2 ||
		!run.ResultJSON.CalledBack || run.UsageJSON.InputTokens != 40 {
		t.Errorf("the run is %+v", run)
	}
}
