package testkit

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/selvage-mesh/selvage/company"
)

// A call of a model that the access policy or a rule denies is answered in the form that clients of models know,
// reaches no upstream, costs nothing, and is on the chain. What is permitted is metered, and is in the decision log of
// the run.
func TestDeniedModelCalls(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":`+
			`{"role":"assistant","content":"on"},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`)
	}))
	defer up.Close()
	b := Mesh(t, 1, working(t.TempDir()))
	of := b.Company("Acme")
	in, tree := "/api/companies/"+string(of), "/companies/"+string(of)
	b.Must(0, "POST", in+"/model-providers", map[string]any{"name": "up", "kind": "llamacpp", "baseUrl": up.URL,
		"models": []map[string]string{{"name": "m"}}}, nil)
	ada, token := b.waits(of)
	call := func() Answer {
		t.Helper()
		a, err := b.Ask(0, "POST", "/llm/v1/chat/completions", map[string]any{"model": "m", "max_tokens": 20,
			"messages": []any{map[string]any{"role": "user", "content": "on?"}}}, nil, "Authorization", "Bearer "+token)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	tokens := func() (n int64) { // that were metered
		var rows []struct{ InputTokens, OutputTokens int64 }
		b.Must(0, "GET", in+"/costs/by-agent", nil, &rows, b.Seen()...)
		for _, r := range rows {
			n += r.InputTokens + r.OutputTokens
		}
		return n
	}
	denied := func(what, told, next, chain string) {
		t.Helper()
		a := call()
		var is struct {
			Error struct{ Message, Type, Code string }
		}
		if err := json.Unmarshal(a.Body, &is); err != nil || a.Status != http.StatusForbidden ||
			is.Error.Type != "permission_error" || is.Error.Code != company.GovernanceDenied ||
			!strings.HasPrefix(is.Error.Message, told) || !strings.HasSuffix(is.Error.Message, next) {
			t.Errorf("%s: %d %s, want %q … %q", what, a.Status, a.Body, told, next)
		}
		b.Until(what+" is on the chain", func() bool { return b.decidedOf(of, ada.Run) == chain })
		if n := asked.Load(); n != 0 {
			t.Errorf("%s: the upstream was asked %d times", what, n)
		}
	}
	grant := map[string]any{"path": tree + "/models/up/m", "subject": "*", "deny": true}
	b.Must(0, "POST", "/api/v1/tree/grants", grant, nil)
	policy := "deny model.call by ACCESS-POLICY"
	denied("a model that the policy keeps from all",
		"Denied by the access policy of the resource tree: the agent may not use "+tree+"/models/up/m: on ",
		"A person who may change this path can grant it: selvage tree grant", policy)
	b.Must(0, "DELETE", "/api/v1/tree/grants?path="+tree+"/models/up/m&subject=*", nil, nil)
	b.law("T-1", "critical", "model.call")
	denied("a model call under a critical rule", "Denied by rule T-1 of the constitution: ",
		"Do something else, or ask a person: selvage govern decisions shows them why", "deny model.call by T-1, "+policy)
	if n := tokens(); n != 0 {
		t.Errorf("%d tokens were metered of calls that were denied", n)
	}
	b.law("T-1", "critical", "tool.execute")
	if a := call(); a.Status != http.StatusOK {
		t.Fatalf("a call that nothing denies: %d %s", a.Status, a.Body)
	}
	b.Until("the call is metered", func() bool { return tokens() == 7 })
	b.closedDecisions(t, ada.Run)
}
