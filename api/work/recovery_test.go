package work_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestARunThatSaysNothingIsAskedAgainAndThenAPersonDecides(t *testing.T) {
	h := apitest.NewWorkingHarness(t)
	of := ledger.CompanyID(h.Company("Quiet"))
	agent := h.NewAgent(of, "Mum", "echo busy")
	issue := h.Assign(of, agent, "Say something")
	h.Until("two runs", func(tx *ledger.Tx) bool {
		n := 0
		for r := range entity.RunsOfIssue(tx, of, issue) {
			if !r.Status.Live() {
				n++
			}
		}
		return n == 2
	})
	h.Rest()
	shown := h.Call("GET", "/api/issues/"+issue, "").Want(t, 200, `"status":"blocked"`).
		Want(t, 200, `"kind":"missing_disposition"`)
	shown.Want(t, 200, `"state":"escalated"`)
	if runs := h.Call("GET", "/api/issues/"+issue+"/runs", "").Decode(t).([]any); len(runs) != 2 {
		t.Fatalf("%d runs, want the first and one that asks again", len(runs))
	}
	if list := h.Call("GET", "/api/issues/"+issue+"/comments", "").Decode(t).([]any); len(list) != 1 ||
		list[0].(map[string]any)["authorType"] != "system" {
		t.Fatalf("comments %v, want one of the system", list)
	}
	action := h.Call("GET", "/api/issues/"+issue+"/recovery-actions", "").Want(t, 200, `"status":"active"`).
		Decode(t).(map[string]any)["active"].(map[string]any)["id"].(string)
	resolve := "/api/issues/" + issue + "/recovery-actions/resolve"
	for body, want := range map[string]int{
		`{"outcome":"restored"}`:                                                            400,
		`{"outcome":"shrugged","sourceIssueStatus":"todo"}`:                                 400,
		`{"outcome":"restored","sourceIssueStatus":"blocked"}`:                              422,
		`{"outcome":"restored","sourceIssueStatus":"done","actionId":"` + string(of) + `"}`: 404,
	} {
		if a := h.Call("POST", resolve, body); a.Status != want {
			t.Errorf("%s: answered %d %s, want %d", body, a.Status, a.Body, want)
		}
	}
	h.Call("POST", resolve,
		`{"outcome":"restored","sourceIssueStatus":"done","actionId":"`+action+`","resolutionNote":"seen to"}`).
		Want(t, 200, `"status":"done"`)
	h.Call("GET", "/api/issues/"+issue+"/recovery-actions", "").Want(t, 200, `"active":null`).
		Want(t, 200, `"resolutionNote":"seen to"`)
	h.Call("GET", "/api/issues/"+issue, "").Want(t, 200, `"activeRecoveryAction":null`).
		Want(t, 200, `"successfulRunHandoff":null`)
	h.Call("POST", resolve, `{"outcome":"restored","sourceIssueStatus":"todo"}`).
		Want(t, 404, "Active recovery action not found")
}

func TestWhoMovesAnIssueOutOfBlockedResolvesItsRecovery(t *testing.T) {
	h := apitest.NewWorkingHarness(t)
	of := ledger.CompanyID(h.Company("Moved"))
	issue := h.Assign(of, h.NewAgent(of, "Mum", "true"), "Say something")
	h.Rest()
	h.Call("GET", "/api/issues/"+issue, "").Want(t, 200, `"status":"blocked"`)
	h.Call("PATCH", "/api/issues/"+issue, `{"status":"done"}`).Want(t, 200, "")
	h.Call("GET", "/api/issues/"+issue+"/recovery-actions", "").Want(t, 200, `"active":null`).
		Want(t, 200, `"outcome":"restored"`)
}

// The agent finds its issue checked out, comments, and closes it: one run, and its own
// comment wakes nobody.
func TestAnAgentThatDecidesIsNotAskedAgain(t *testing.T) {
	h := apitest.NewWorkingHarness(t)
	of := ledger.CompanyID(h.Company("Done"))
	script := `
api() { curl -sf -X "$1" -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: ` +
		`$PAPERCLIP_RUN_ID" -H 'Content-Type: application/json' -d "$3" "$PAPERCLIP_API_URL/api/$2"; }
case "$PAPERCLIP_WAKE_PAYLOAD_JSON" in *'"checkedOutByHarness":true'*) echo held;; esac
api POST issues/$PAPERCLIP_TASK_ID/comments '{"body":"working on it"}' >/dev/null && api PATCH ` +
		`issues/$PAPERCLIP_TASK_ID '{"status":"done"}' >/dev/null && echo closed`
	issue := h.Assign(of, h.NewAgent(of, "Doer", script), "Do it")
	h.Rest()
	h.Call("GET", "/api/issues/"+issue, "").Want(t, 200, `"status":"done"`)
	runs := h.Call("GET", "/api/issues/"+issue+"/runs", "").Decode(t).([]any)
	if len(runs) != 1 {
		t.Fatalf("%d runs, want one", len(runs))
	}
	run := runs[0].(map[string]any)["runId"].(string)
	shown := h.Call("GET", "/api/heartbeat-runs/"+run, "")
	for _, want := range []string{`"livenessState":"completed"`, `"chosenSource":"existing_issue_comment"`,
		`"checkedOutByHarness":true`, `held\nclosed\n`} {
		if !strings.Contains(string(shown.Body), want) {
			t.Errorf("run without %s: %s", want, shown.Body)
		}
	}
}

// A cancelled run counts as ended at once, but it holds its issue until its child
// processes have exited: here one that ignores TERM and must be killed.
func TestACancelledRunHoldsItsIssueUntilItsChildrenAreGone(t *testing.T) {
	h := apitest.NewWorkingHarness(t)
	of := ledger.CompanyID(h.Company("Stubborn"))
	agent := h.NewAgent(of, "Mule", `trap "" TERM; echo here; while :; do sleep 0.05; done`)
	issue := h.Assign(of, agent, "Stand still")
	var run entity.Run
	h.Until("output", func(tx *ledger.Tx) bool {
		for r := range entity.RunsOfIssue(tx, of, issue) {
			run = r
		}
		return run.LastOutputSeq > 1
	})
	h.Call("POST", "/api/heartbeat-runs/"+run.ID+"/cancel", `{}`).Want(t, 200, `"status":"cancelled"`)
	h.Call("GET", "/api/issues/"+issue, "").Want(t, 200, `"checkoutRunId":"`+run.ID+`"`)
	// Nobody else can check it out in the meantime.
	other := h.NewAgent(of, "Other", "true")
	h.Call("POST", "/api/issues/"+issue+"/checkout", `{"agentId":"`+other+`","expectedStatuses":["todo","in_progress"]}`).
		Want(t, 409, "Issue checkout conflict")
	h.Until("the end of the children", func(tx *ledger.Tx) bool {
		r, _ := entity.RunOf(tx, of, run.ID)
		return !r.Owed
	})
	h.Call("GET", "/api/issues/"+issue, "").Want(t, 200, `"checkoutRunId":null`)
	h.Call("GET", "/api/heartbeat-runs/"+run.ID, "").Want(t, 200, `"status":"cancelled"`).
		Want(t, 200, `"executionControlDeadlineAt":null`)
}

// A session is resumed only under the configuration that it was started with.
func TestAnotherConfigurationBeginsAnotherSession(t *testing.T) {
	h := apitest.NewWorkingHarness(t)
	of := ledger.CompanyID(h.Company("Fresh"))
	agent := h.NewAgent(of, "Ada", "true")
	prints := map[string]bool{}
	for _, script := range []string{"true", "true", "exit 0"} {
		h.Call("PATCH", "/api/agents/"+agent, fmt.Sprintf(`{"adapterConfig":{"command":"/bin/sh","args":["-c",%q]}}`,
			script)).Want(t, 200, "")
		run := h.Call("POST", "/api/agents/"+agent+"/heartbeat/invoke", `{}`).Want(t, 202, "").Field(t, "id")
		h.Rest()
		result := h.Call("GET", "/api/heartbeat-runs/"+run, "").Decode(t).(map[string]any)["resultJson"].(map[string]any)
		prints[result["configFreshness"].(map[string]any)["session"].(map[string]any)["nextFingerprint"].(string)] = true
	}
	if len(prints) != 2 {
		t.Errorf("%d fingerprints of two configurations", len(prints))
	}
}
