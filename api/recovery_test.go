package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/ledger"
)

// newAgent makes an agent that runs a shell script, and returns its ID.
func (h *harness) newAgent(of, name, script string) string {
	h.t.Helper()
	return h.call("POST", "/api/companies/"+of+"/agents", fmt.Sprintf(`{"name":%q,"role":"engineer","adapterType":"process","adapterConfig":{"command":"/bin/sh","args":["-c",%q],"timeoutSec":20,"graceSec":1}}`,
		name, script)).want(h.t, 201, "").field(h.t, "id")
}

// assign makes an issue for an agent, and returns its ID.
func (h *harness) assign(of, agent, title string) string {
	h.t.Helper()
	return h.call("POST", "/api/companies/"+of+"/issues", fmt.Sprintf(`{"title":%q,"status":"todo","assigneeAgentId":%q}`, title, agent)).
		want(h.t, 201, "").field(h.t, "id")
}

func TestARunThatSaysNothingIsAskedAgainAndThenAPersonDecides(t *testing.T) {
	h := newWorkingHarness(t)
	of := h.company("Quiet")
	agent := h.newAgent(of, "Mum", "echo busy")
	issue := h.assign(of, agent, "Say something")
	h.until("two runs", func(tx *ledger.Tx) bool {
		n := 0
		for r := range company.RunsOfIssue(tx, of, issue) {
			if !r.Status.Live() {
				n++
			}
		}
		return n == 2
	})
	h.rest()
	shown := h.call("GET", "/api/issues/"+issue, "").want(t, 200, `"status":"blocked"`).want(t, 200, `"kind":"missing_disposition"`)
	shown.want(t, 200, `"state":"escalated"`)
	if runs := h.call("GET", "/api/issues/"+issue+"/runs", "").decode(t).([]any); len(runs) != 2 {
		t.Fatalf("%d runs, want the first and one that asks again", len(runs))
	}
	if list := h.call("GET", "/api/issues/"+issue+"/comments", "").decode(t).([]any); len(list) != 1 || list[0].(map[string]any)["authorType"] != "system" {
		t.Fatalf("comments %v, want one of the system", list)
	}
	action := h.call("GET", "/api/issues/"+issue+"/recovery-actions", "").want(t, 200, `"status":"active"`).decode(t).(map[string]any)["active"].(map[string]any)["id"].(string)
	resolve := "/api/issues/" + issue + "/recovery-actions/resolve"
	for body, want := range map[string]int{
		`{"outcome":"restored"}`:                                                    400,
		`{"outcome":"shrugged","sourceIssueStatus":"todo"}`:                         400,
		`{"outcome":"restored","sourceIssueStatus":"blocked"}`:                      422,
		`{"outcome":"restored","sourceIssueStatus":"done","actionId":"` + of + `"}`: 404,
	} {
		if a := h.call("POST", resolve, body); a.status != want {
			t.Errorf("%s: answered %d %s, want %d", body, a.status, a.body, want)
		}
	}
	h.call("POST", resolve, `{"outcome":"restored","sourceIssueStatus":"done","actionId":"`+action+`","resolutionNote":"seen to"}`).want(t, 200, `"status":"done"`)
	h.call("GET", "/api/issues/"+issue+"/recovery-actions", "").want(t, 200, `"active":null`).want(t, 200, `"resolutionNote":"seen to"`)
	h.call("GET", "/api/issues/"+issue, "").want(t, 200, `"activeRecoveryAction":null`).want(t, 200, `"successfulRunHandoff":null`)
	h.call("POST", resolve, `{"outcome":"restored","sourceIssueStatus":"todo"}`).want(t, 404, "")
}

func TestWhoMovesAnIssueOutOfBlockedResolvesItsRecovery(t *testing.T) {
	h := newWorkingHarness(t)
	of := h.company("Moved")
	issue := h.assign(of, h.newAgent(of, "Mum", "true"), "Say something")
	h.rest()
	h.call("GET", "/api/issues/"+issue, "").want(t, 200, `"status":"blocked"`)
	h.call("PATCH", "/api/issues/"+issue, `{"status":"done"}`).want(t, 200, "")
	h.call("GET", "/api/issues/"+issue+"/recovery-actions", "").want(t, 200, `"active":null`).want(t, 200, `"outcome":"restored"`)
}

// The agent finds its issue checked out, comments, and closes it: one run, and
// its own comment wakes nobody.
func TestAnAgentThatDecidesIsNotAskedAgain(t *testing.T) {
	h := newWorkingHarness(t)
	of := h.company("Done")
	script := `
api() { curl -sf -X "$1" -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: $PAPERCLIP_RUN_ID" -H 'Content-Type: application/json' -d "$3" "$PAPERCLIP_API_URL/api/$2"; }
case "$PAPERCLIP_WAKE_PAYLOAD_JSON" in *'"checkedOutByHarness":true'*) echo held;; esac
api POST issues/$PAPERCLIP_TASK_ID/comments '{"body":"working on it"}' >/dev/null && api PATCH issues/$PAPERCLIP_TASK_ID '{"status":"done"}' >/dev/null && echo closed`
	issue := h.assign(of, h.newAgent(of, "Doer", script), "Do it")
	h.rest()
	h.call("GET", "/api/issues/"+issue, "").want(t, 200, `"status":"done"`)
	runs := h.call("GET", "/api/issues/"+issue+"/runs", "").decode(t).([]any)
	if len(runs) != 1 {
		t.Fatalf("%d runs, want one", len(runs))
	}
	run := runs[0].(map[string]any)["runId"].(string)
	shown := h.call("GET", "/api/heartbeat-runs/"+run, "")
	for _, want := range []string{`"livenessState":"completed"`, `"chosenSource":"existing_issue_comment"`, `"checkedOutByHarness":true`, `held\nclosed\n`} {
		if !strings.Contains(string(shown.body), want) {
			t.Errorf("run without %s: %s", want, shown.body)
		}
	}
}
