package api

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/ledger"
)

// An agent whose run failed waits for a person until it is put aside, and comes
// back when it fails again.
func TestWhatWaitsForAPersonIsListedUntilPutAside(t *testing.T) {
	h := newWorkingHarness(t)
	of := h.company("Desk")
	agent := h.newAgent(of, "Faily", "exit 3")
	fail := func() {
		t.Helper()
		h.call("POST", "/api/agents/"+agent+"/heartbeat/invoke", `{}`).want(t, 202, "")
		h.rest()
	}
	fail()
	in := "/api/companies/" + of
	feed := h.call("GET", in+"/attention", "").want(t, 200, `"agent_error_alert":1`).want(t, 200, "Process exited with code 3").decode(t).(map[string]any)
	key := feed["items"].([]any)[0].(map[string]any)["dismissalKey"].(string)
	h.call("POST", in+"/inbox-dismissals", `{"itemKey":"`+key+`"}`).want(t, 200, `"kind":"dismiss"`)
	h.call("POST", in+"/inbox-dismissals", `{"itemKey":"elsewhere"}`).want(t, 400, "itemKey")
	h.call("GET", in+"/attention", "").want(t, 200, `"totalCount":0`)
	h.call("GET", in+"/attention?includeDismissed=true", "").want(t, 200, `"totalCount":1`)
	fail()
	h.call("GET", in+"/attention", "").want(t, 200, `"totalCount":1`)
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	h.call("POST", in+"/inbox-dismissals", `{"itemKey":"`+key+`","kind":"snooze"}`).want(t, 400, "")
	h.call("POST", in+"/inbox-dismissals", `{"itemKey":"`+key+`","kind":"snooze","snoozedUntil":"`+later+`"}`).want(t, 200, `"kind":"snooze"`)
	h.call("GET", in+"/attention", "").want(t, 200, `"totalCount":0`)
	h.call("DELETE", in+"/inbox-dismissals/"+url.PathEscape(key), "").want(t, 200, "")
	h.call("DELETE", in+"/inbox-dismissals/"+url.PathEscape(key), "").want(t, 404, "")
	h.call("GET", in+"/attention", "").want(t, 200, `"totalCount":1`)
	// A run that ends well clears the error.
	h.call("PATCH", "/api/agents/"+agent, `{"adapterConfig":{"command":"/bin/sh","args":["-c","exit 0"]}}`).want(t, 200, "")
	fail()
	h.call("GET", in+"/attention", "").want(t, 200, `"totalCount":0`)
	h.call("GET", "/api/agents/"+agent, "").want(t, 200, `"errorReason":null`)
}

// What is asked on an issue waits for a person until it is answered, unless an agent
// is to answer.
func TestQuestionsWaitForAPerson(t *testing.T) {
	h := newTeam(t)
	in := "/api/companies/" + h.company
	issue := h.call("POST", in+"/issues", `{"title":"Gas"}`).want(t, 201, "").field(t, "id")
	ask := func(more string) string {
		return h.call("POST", "/api/issues/"+issue+"/interactions", `{"kind":"request_confirmation","payload":{"version":1,"prompt":"Argon?"}`+more+`}`).want(t, 201, "").field(t, "id")
	}
	ask(`,"addresseeAgentId":"` + h.worker + `"`)
	h.call("GET", in+"/attention", "").want(t, 200, `"issue_thread_interaction":0`)
	id := ask(`,"title":"Which gas"`)
	h.call("GET", in+"/attention", "").want(t, 200, `"issue_thread_interaction":1`).want(t, 200, `"title":"Which gas"`).want(t, 200, `"dismissalKey":"attention:interaction:`+id+`"`)
	h.call("POST", "/api/issues/"+issue+"/interactions/"+id+"/accept", `{}`).want(t, 200, "")
	h.call("GET", in+"/attention", "").want(t, 200, `"issue_thread_interaction":0`)
}

// What did this agent do at that time? One query tells: the runs that began and
// ended, and what was done under them.
func TestWhatAnAgentDidAtATimeIsOneQuery(t *testing.T) {
	h := newWorkingHarness(t)
	of := h.company("Audit")
	busy := h.newAgent(of, "Busy", `curl -sf -X POST -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: $PAPERCLIP_RUN_ID" -H 'Content-Type: application/json' -d '{"body":"hello"}' "$PAPERCLIP_API_URL/api/issues/$PAPERCLIP_TASK_ID/comments" >/dev/null`)
	other := h.newAgent(of, "Other", "true")
	early := time.Now()
	h.assign(of, other, "Nothing")
	h.rest()
	time.Sleep(5 * time.Millisecond) // the window has whole milliseconds, and what came before ends in an earlier one
	begun := time.Now()
	issue := h.assign(of, busy, "Greet")
	h.rest()
	run := ""
	h.until("a run", func(tx *ledger.Tx) bool {
		for r := range company.RunsOfIssue(tx, of, issue) {
			run = r.ID
		}
		return run != ""
	})
	time.Sleep(5 * time.Millisecond)
	ended := time.Now()
	actions := func(query string) string {
		t.Helper()
		var out []string
		for _, it := range h.call("GET", "/api/companies/"+of+"/audit/agent-actions?"+query, "").want(t, 200, "").decode(t).(map[string]any)["items"].([]any) {
			row := it.(map[string]any)
			if row["actorType"] != "agent" || row["agentId"] == nil {
				t.Errorf("%s: %v", query, row)
			}
			out = append(out, row["agentId"].(string)[:0]+row["action"].(string))
		}
		return strings.Join(out, " ")
	}
	window := "from=" + begun.UTC().Format("2006-01-02T15:04:05.000Z") + "&to=" + ended.UTC().Format("2006-01-02T15:04:05.000Z")
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
	h.call("GET", "/api/companies/"+of+"/audit/agent-actions?from=yesterday", "").want(t, 400, "from")
}

func TestVotesStayWithTheirIssue(t *testing.T) {
	h := newHarness(t)
	of := h.company("Votes")
	issue := h.call("POST", "/api/companies/"+of+"/issues", `{"title":"Rate me"}`).want(t, 201, "").field(t, "id")
	comment := h.call("POST", "/api/issues/"+issue+"/comments", `{"body":"well"}`).want(t, 201, "").field(t, "id")
	at := "/api/issues/" + issue + "/feedback-votes"
	h.call("POST", at, `{"targetType":"issue_comment","targetId":"`+comment+`","vote":"sideways"}`).want(t, 400, "vote")
	h.call("POST", at, `{"targetType":"issue_comment","targetId":"`+issue+`","vote":"up"}`).want(t, 404, "Comment not found")
	h.call("POST", at, `{"targetType":"issue_comment","targetId":"`+comment+`","vote":"up"}`).want(t, 201, `"vote":"up"`)
	h.call("POST", at, `{"targetType":"issue_comment","targetId":"`+comment+`","vote":"down","reason":"on second thought"}`).want(t, 201, `"vote":"down"`)
	if all := h.call("GET", at, "").decode(t).([]any); len(all) != 1 {
		t.Errorf("%d votes, want one", len(all))
	}
}
