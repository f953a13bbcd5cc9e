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
	return h.call("POST", "/api/companies/"+of+"/agents", fmt.Sprintf(`{"name":%q,"role":"engineer","adapterType":"process","adapterConfig":{"command":"/bin/sh","args":["-c",%q],"timeoutSec":120,"graceSec":1}}`,
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

// A cancelled run is over at once for whoever asks, and what it holds stays held
// until its children are gone: here until one that does not listen to TERM was
// killed.
func TestACancelledRunHoldsItsIssueUntilItsChildrenAreGone(t *testing.T) {
	h := newWorkingHarness(t)
	of := h.company("Stubborn")
	agent := h.newAgent(of, "Mule", `trap "" TERM; echo here; while :; do sleep 0.05; done`)
	issue := h.assign(of, agent, "Stand still")
	var run company.Run
	h.until("output", func(tx *ledger.Tx) bool {
		for r := range company.RunsOfIssue(tx, of, issue) {
			run = r
		}
		return run.LastOutputSeq > 1
	})
	h.call("POST", "/api/heartbeat-runs/"+run.ID+"/cancel", `{}`).want(t, 200, `"status":"cancelled"`)
	h.call("GET", "/api/issues/"+issue, "").want(t, 200, `"checkoutRunId":"`+run.ID+`"`)
	// Nobody else can take it meanwhile.
	other := h.newAgent(of, "Other", "true")
	h.call("POST", "/api/issues/"+issue+"/checkout", `{"agentId":"`+other+`","expectedStatuses":["todo","in_progress"]}`).want(t, 409, "Issue checkout conflict")
	h.until("the end of the children", func(tx *ledger.Tx) bool {
		r, _ := company.RunOf(tx, of, run.ID)
		return !r.Owed
	})
	h.call("GET", "/api/issues/"+issue, "").want(t, 200, `"checkoutRunId":null`)
	h.call("GET", "/api/heartbeat-runs/"+run.ID, "").want(t, 200, `"status":"cancelled"`).want(t, 200, `"executionControlDeadlineAt":null`)
}

// A session is not resumed under another configuration than it was begun with.
func TestAnotherConfigurationBeginsAnotherSession(t *testing.T) {
	h := newWorkingHarness(t)
	of := h.company("Fresh")
	agent := h.newAgent(of, "Ada", "true")
	prints := map[string]bool{}
	for _, script := range []string{"true", "true", "exit 0"} {
		h.call("PATCH", "/api/agents/"+agent, fmt.Sprintf(`{"adapterConfig":{"command":"/bin/sh","args":["-c",%q]}}`, script)).want(t, 200, "")
		run := h.call("POST", "/api/agents/"+agent+"/heartbeat/invoke", `{}`).want(t, 202, "").field(t, "id")
		h.rest()
		result := h.call("GET", "/api/heartbeat-runs/"+run, "").decode(t).(map[string]any)["resultJson"].(map[string]any)
		prints[result["configFreshness"].(map[string]any)["session"].(map[string]any)["nextFingerprint"].(string)] = true
	}
	if len(prints) != 2 {
		t.Errorf("%d fingerprints of two configurations", len(prints))
	}
}
