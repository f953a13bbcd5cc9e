package work_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// An agent whose run failed is listed until it is dismissed, and is listed again when it
// fails again.
func TestWhatWaitsForAPersonIsListedUntilPutAside(t *testing.T) {
	h := apitest.NewWorkingHarness(t)
	of := ledger.CompanyID(h.Company("Desk"))
	agent := h.NewAgent(of, "Faily", "exit 3")
	fail := func() {
		t.Helper()
		h.Call("POST", "/api/agents/"+agent+"/heartbeat/invoke", `{}`).Want(t, 202, "")
		h.Rest()
	}
	fail()
	in := "/api/companies/" + string(of)
	feed := h.Call("GET", in+"/attention", "").Want(t, 200, `"agent_error_alert":1`).
		Want(t, 200, "Process exited with code 3").Decode(t).(map[string]any)
	key := feed["items"].([]any)[0].(map[string]any)["dismissalKey"].(string)
	h.Call("POST", in+"/inbox-dismissals", `{"itemKey":"`+key+`"}`).Want(t, 200, `"kind":"dismiss"`)
	h.Call("POST", in+"/inbox-dismissals", `{"itemKey":"elsewhere"}`).Want(t, 400, "itemKey")
	h.Call("GET", in+"/attention", "").Want(t, 200, `"totalCount":0`)
	h.Call("GET", in+"/attention?includeDismissed=true", "").Want(t, 200, `"totalCount":1`)
	fail()
	h.Call("GET", in+"/attention", "").Want(t, 200, `"totalCount":1`)
	later := h.Node.Wall().Add(time.Hour).UTC().Format(time.RFC3339)
	h.Call("POST", in+"/inbox-dismissals", `{"itemKey":"`+key+`","kind":"snooze"}`).
		Want(t, 400, "snoozedUntil is needed to snooze")
	h.Call("POST", in+"/inbox-dismissals", `{"itemKey":"`+key+`","kind":"snooze","snoozedUntil":"`+later+`"}`).
		Want(t, 200, `"kind":"snooze"`)
	h.Call("GET", in+"/attention", "").Want(t, 200, `"totalCount":0`)
	h.Call("DELETE", in+"/inbox-dismissals/"+url.PathEscape(key), "").Want(t, 200, "")
	h.Call("DELETE", in+"/inbox-dismissals/"+url.PathEscape(key), "").Want(t, 404, "Inbox dismissal not found")
	h.Call("GET", in+"/attention", "").Want(t, 200, `"totalCount":1`)
	// A successful run clears the error.
	h.Call("PATCH", "/api/agents/"+agent, `{"adapterConfig":{"command":"/bin/sh","args":["-c","exit 0"]}}`).
		Want(t, 200, "")
	fail()
	h.Call("GET", in+"/attention", "").Want(t, 200, `"totalCount":0`)
	h.Call("GET", "/api/agents/"+agent, "").Want(t, 200, `"errorReason":null`)
}

// A question on an issue is listed until it is answered, unless an agent is to answer
// it.
func TestQuestionsWaitForAPerson(t *testing.T) {
	h := apitest.NewTeam(t)
	in := "/api/companies/" + string(h.Company)
	issue := h.Call("POST", in+"/issues", `{"title":"Gas"}`).Want(t, 201, "").Field(t, "id")
	ask := func(more string) string {
		return h.Call("POST", "/api/issues/"+issue+"/interactions",
			`{"kind":"request_confirmation","payload":{"version":1,"prompt":"Argon?"}`+more+`}`).Want(t, 201, "").Field(t, "id")
	}
	ask(`,"addresseeAgentId":"` + h.Worker + `"`)
	h.Call("GET", in+"/attention", "").Want(t, 200, `"issue_thread_interaction":0`)
	id := ask(`,"title":"Which gas"`)
	h.Call("GET", in+"/attention", "").Want(t, 200, `"issue_thread_interaction":1`).Want(t, 200, `"title":"Which gas"`).
		Want(t, 200, `"dismissalKey":"attention:interaction:`+id+`"`)
	h.Call("POST", "/api/issues/"+issue+"/interactions/"+id+"/accept", `{}`).Want(t, 200, "")
	h.Call("GET", in+"/attention", "").Want(t, 200, `"issue_thread_interaction":0`)
}

// One query tells what an agent did in a window: the runs that began and ended, and what
// was done under them.
func TestWhatAnAgentDidAtATimeIsOneQuery(t *testing.T) {
	h := apitest.NewWorkingHarness(t)
	of := ledger.CompanyID(h.Company("Audit"))
	busy := h.NewAgent(of, "Busy",
		`curl -sf -X POST -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: `+
			`$PAPERCLIP_RUN_ID" -H 'Content-Type: application/json' -d '{"body":"hello"}' `+
			`"$PAPERCLIP_API_URL/api/issues/$PAPERCLIP_TASK_ID/comments" >/dev/null`)
	other := h.NewAgent(of, "Other", "true")
	early := h.Node.Wall()
	h.Assign(of, other, "Nothing")
	h.Rest()
	time.Sleep(5 * time.Millisecond) // the window has whole milliseconds; earlier entries must fall into an earlier one
	begun := h.Node.Wall()
	issue := h.Assign(of, busy, "Greet")
	h.Rest()
	run := ""
	h.Until("a run", func(tx *ledger.Tx) bool {
		for r := range entity.RunsOfIssue(tx, of, issue) {
			run = r.ID
		}
		return run != ""
	})
	time.Sleep(5 * time.Millisecond)
	ended := h.Node.Wall()
	actions := func(query string) string {
		t.Helper()
		var out []string
		for _, it := range h.Call("GET", "/api/companies/"+string(of)+"/audit/agent-actions?"+query, "").Want(t, 200, "").
			Decode(t).(map[string]any)["items"].([]any) {
			row := it.(map[string]any)
			if row["actorType"] != "agent" || row["agentId"] == nil {
				t.Errorf("%s: %v", query, row)
			}
			out = append(out, row["agentId"].(string)[:0]+row["action"].(string))
		}
		return strings.Join(out, " ")
	}
	window := "from=" + begun.UTC().Format("2006-01-02T15:04:05.000Z") + "&to=" + ended.UTC().
		Format("2006-01-02T15:04:05.000Z")
	did := actions("agentId=" + busy + "&" + window)
	for _, want := range []string{"environment.lease_acquired", "issue.comment_added", "environment.lease_released"} {
		if !strings.Contains(did, want) {
			t.Errorf("in the window: %s, want %s", did, want)
		}
	}
	if did := actions("agentId=" + busy + "&to=" + early.UTC().Format("2006-01-02T15:04:05.000Z")); did != "" {
		t.Errorf("before it was asked the agent did %s", did)
	}
	if did := actions("agentId=" + other + "&" + window); did != "" {
		t.Errorf("another agent did %s in the window", did)
	}
	if did := actions("runId=" + run); did != "environment.lease_released issue.comment_added environment.lease_acquired" {
		t.Errorf("under the run: %s", did)
	}
	h.Call("GET", "/api/companies/"+string(of)+"/audit/agent-actions?from=yesterday", "").Want(t, 400, "from")
}

func TestVotesStayWithTheirIssue(t *testing.T) {
	h := apitest.NewHarness(t)
	of := h.Company("Votes")
	issue := h.Call("POST", "/api/companies/"+of+"/issues", `{"title":"Rate me"}`).Want(t, 201, "").Field(t, "id")
	comment := h.Call("POST", "/api/issues/"+issue+"/comments", `{"body":"well"}`).Want(t, 201, "").Field(t, "id")
	at := "/api/issues/" + issue + "/feedback-votes"
	h.Call("POST", at, `{"targetType":"issue_comment","targetId":"`+comment+`","vote":"sideways"}`).Want(t, 400, "vote")
	h.Call("POST", at, `{"targetType":"issue_comment","targetId":"`+issue+`","vote":"up"}`).
		Want(t, 404, "Comment not found")
	h.Call("POST", at, `{"targetType":"issue_comment","targetId":"`+comment+`","vote":"up"}`).Want(t, 201, `"vote":"up"`)
	h.Call("POST", at,
		`{"targetType":"issue_comment","targetId":"`+comment+`","vote":"down","reason":"on second thought"}`).
		Want(t, 201, `"vote":"down"`)
	if all := h.Call("GET", at, "").Decode(t).([]any); len(all) != 1 {
		t.Errorf("%d votes, want one", len(all))
	}
}
