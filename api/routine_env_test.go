package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A routine's variables reach the runs of its issues, over those of the project
// and the agent and under those of the runtime, and nothing else sees them.
func TestVariablesOfARoutineReachItsRunsAndNothingElse(t *testing.T) {
	h := apitest.NewWorkingHarness(t)
	of := h.Company("Acme")
	in := "/api/companies/" + of
	const layered = `[ "$ONE" = agent ] && [ "$TWO" = project ] && [ "$THREE" = routine ] && [ "$FOUR" = routine ` +
		`] && [ "$PAPERCLIP_AGENT_ID" != routine ] || exit 7
case "$API_TOKEN" in c?nary-*) echo "the token is $API_TOKEN";; *) exit 8;; esac`
	agent := h.NewAgent(ledger.CompanyID(of), "Ada", layered)
	h.Call("PATCH", "/api/agents/"+agent,
		fmt.Sprintf(`{"adapterConfig":{"command":"/bin/sh","args":["-c",%q],"timeoutSec":120,"graceSec":1,
		"env":{"ONE":"agent","TWO":"agent","THREE":"agent","API_TOKEN":"none"}}}`, layered)).Want(t, 200, "")
	project := h.Call("POST", in+"/projects", `{"name":"Rig","env":{"TWO":"project","THREE":"project"}}`).Want(t, 201, "").
		Field(t, "id")
	secret := h.Call("POST", in+"/secrets", `{"name":"TOKEN","value":"canary-of-a-secret"}`).Want(t, 201, "").
		Field(t, "id")
	routine := h.Call("POST", in+"/routines", `{"title":"Daily","assigneeAgentId":"`+agent+`","projectId":"`+project+`",
		"env":{"THREE":"routine","FOUR":{"type":"plain","value":"routine"},"PAPERCLIP_AGENT_ID":"routine",`+
		`"API_TOKEN":"canary-of-a-routine"}}`).Want(t, 201, "").Field(t, "id")
	fire := func(token string) {
		t.Helper()
		issue := h.Call("POST", "/api/routines/"+routine+"/run", `{}`).Want(t, 202, "").Field(t, "linkedIssueId")
		h.Rest()
		var run entity.Run
		h.Until("the run of the routine's issue", func(tx *ledger.Tx) bool {
			for r := range entity.RunsOfIssue(tx, ledger.CompanyID(of), issue) {
				run = r
			}
			return run.ID != ""
		})
		if run.Status != entity.RunSucceeded || run.ExitCode == nil || *run.ExitCode != 0 {
			t.Errorf("with %s the run %s: %s %v", token, run.Status, run.ErrorCode, run.ExitCode)
		}
		for _, path := range []string{"/api/heartbeat-runs/" + run.ID, "/api/heartbeat-runs/" + run.ID + "/events",
			"/api/heartbeat-runs/" + run.ID + "/log",
			"/api/routines/" + routine, "/api/routines/" + routine + "/revisions", "/api/routines/" + routine + "/runs",
			in + "/routines", in + "/activity",
			"/api/issues/" + issue, "/api/v1/ledger/entries?limit=1000", "/api/secrets/" + secret + "/usage"} {
			if a := h.Call("GET", path, ""); strings.Contains(string(a.Body), "canary") {
				t.Errorf("GET %s shows a secret: %s", path, a.Body)
			}
		}
		h.Call("PATCH", "/api/issues/"+issue, `{"status":"done"}`).Want(t, 200, "")
	}
	fire("a plain value")
	h.Call("PATCH", "/api/routines/"+routine,
		`{"env":{"THREE":{"type":"plain","value":"***REDACTED***"},"FOUR":{"type":"plain","value":"***REDACTED***"},
		"API_TOKEN":{"type":"secret_ref","secretId":"`+secret+`"}}}`).Want(t, 200, `"secret_ref"`)
	fire("a reference")
	h.Until("the state to be looked at", func(tx *ledger.Tx) bool {
		for k, v := range tx.Prefix(ledger.Key("c", of, "")) {
			if strings.Contains(string(v), "canary") {
				t.Errorf("%q holds a secret in the clear", k)
			}
		}
		return true
	})
	if strings.Contains(h.Log.String(), "canary") {
		t.Error("the log shows a secret")
	}
}
