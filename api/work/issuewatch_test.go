package work_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// While an agent runs, comments of people are queued. They can be changed and removed,
// and are delivered at once when they interrupt the run.
func TestCommentsWaitForTheNextRun(t *testing.T) {
	h := apitest.NewWorkingHarness(t)
	of := ledger.CompanyID(h.Company("Queue"))
	// The run that receives the comments ends, and so do those that ask about the issue
	// afterwards.
	mark := filepath.Join(t.TempDir(), "told")
	agent := h.NewAgent(of, "Busy",
		`case "$PAPERCLIP_WAKE_PAYLOAD_JSON" in *issue_commented*) echo told; : >`+mark+`;; esac; [ ! -e `+mark+
			` ] || exit 0; echo here; while :; do sleep 0.05; done`)
	issue := h.Assign(of, agent, "Work")
	path := "/api/issues/" + issue
	var run entity.Run
	h.Until("a run at work", func(tx *ledger.Tx) bool {
		for r := range entity.RunsOfIssue(tx, of, issue) {
			run = r
		}
		return run.LastOutputSeq > 0
	})
	h.Call("GET", path+"/queued-comments", "").Want(t, 200, `"queueId":null`).Want(t, 200, `"targetRunId":"`+run.ID+`"`)
	first := h.Call("POST", path+"/comments", `{"body":"first"}`).Want(t, 201, "").Field(t, "id")
	second := h.Call("POST", path+"/comments", `{"body":"2nd"}`).Want(t, 201, "").Field(t, "id")
	q := h.Call("GET", path+"/queued-comments", "").Want(t, 200, `"state":"deferred"`)
	said := func(q apitest.Answer, more string) string {
		return fmt.Sprintf(`{"queueId":%q,"revision":%q%s}`, q.Field(t, "queueId"), q.Field(t, "revision"), more)
	}
	stale := said(q, "")
	q = h.Call("PATCH", path+"/queued-comments/"+second, said(q, `,"body":"second"`)).Want(t, 200, `"second"`)
	h.Call("DELETE", path+"/queued-comments/"+first, stale).Want(t, 409, "comment_queue_changed")
	q = h.Call("PUT", path+"/queued-comments/order", said(q, fmt.Sprintf(`,"orderedCommentIds":[%q,%q]`, second, first))).
		Want(t, 200, "")
	q = h.Call("DELETE", path+"/queued-comments/"+first, said(q, "")).Want(t, 200, "")
	if n := len(q.Decode(t).(map[string]any)["entries"].([]any)); n != 1 {
		t.Fatalf("%d comments wait", n)
	}
	h.Call("POST", path+"/queued-comments/"+second+"/steer", said(q, `,"targetRunId":"`+run.ID+`"`)).
		Want(t, 409, "interrupt it instead")
	h.Call("POST", path+"/queued-comments/interrupt", said(q, `,"targetRunId":null`)).
		Want(t, 409, `"code":"comment_queue_changed"`)
	h.Call("POST", path+"/queued-comments/interrupt", said(q, `,"targetRunId":"`+run.ID+`"`)).Want(t, 200, "")
	h.Until("the comment to be told", func(tx *ledger.Tx) bool {
		for r := range entity.RunsOfIssue(tx, of, issue) {
			if r.StdoutExcerpt != nil && strings.Contains(*r.StdoutExcerpt, "told") {
				return true
			}
		}
		return false
	})
	h.Rest()
}

// A comment of the board interrupts the current run, alone or with a change of the
// issue. One that resumes reopens a closed issue: its agent is woken at once.
func TestCommentsInterruptAndResume(t *testing.T) {
	h := apitest.NewWorkingHarness(t)
	of := ledger.CompanyID(h.Company("Orders"))
	agent := h.NewAgent(of, "Busy",
		`echo "woken: $PAPERCLIP_WAKE_REASON"; [ "$PAPERCLIP_WAKE_REASON" = issue_assigned ] || exit 0; while :; `+
			`do sleep 0.05; done`)
	for n, tc := range []struct {
		method, path, stop, bare string
		status                   int
	}{
		{"POST", "/comments", `{"body":"Stop","interrupt":true}`, "", 201},
		{"PATCH", "", `{"comment":"Stop","interrupt":true}`, `{"interrupt":true,"resume":true}`, 200},
	} {
		issue := h.Assign(of, agent, fmt.Sprint("Work ", n))
		path := "/api/issues/" + issue
		var at entity.Run
		h.Until("a run at work", func(tx *ledger.Tx) bool {
			for r := range entity.RunsOfIssue(tx, of, issue) {
				at = r
			}
			return at.LastOutputSeq > 0
		})
		key := h.Call("POST", "/api/agents/"+agent+"/keys", `{"name":"own"}`).Want(t, 201, "").Field(t, "token")
		own := []string{"X-Paperclip-Run-Id: " + at.ID, "Authorization: Bearer " + key}
		h.Call(tc.method, path+tc.path, tc.stop, own...).Want(t, 403, "Only the board can interrupt a run")
		if tc.bare != "" {
			h.Call(tc.method, path, tc.bare).Want(t, 400, "belong to a comment")
		}
		h.Call(tc.method, path+tc.path, tc.stop).Want(t, tc.status, "")
		h.Call("GET", "/api/heartbeat-runs/"+at.ID, "").Want(t, 200, `"status":"cancelled"`).
			Want(t, 200, "Interrupted by a comment of the board")
		h.Call("GET", path, "").Want(t, 200, `"assigneeAgentId":"`+agent+`"`)
		told := func(tx *ledger.Tx) (n int) {
			for r := range entity.RunsOfIssue(tx, of, issue) {
				if r.StdoutExcerpt != nil && strings.Contains(*r.StdoutExcerpt, "woken: issue_commented") {
					n++
				}
			}
			return n
		}
		h.Until("the comment to be told", func(tx *ledger.Tx) bool { return told(tx) == 1 })
		h.Rest()
		h.Call("PATCH", path, `{"status":"cancelled"}`).Want(t, 200, "")
		if n == 0 {
			h.Call("POST", path+"/comments", `{"body":"Go on","resume":true}`).Want(t, 201, "")
		} else {
			h.Call("PATCH", path, `{"comment":"Go on","resume":true}`).Want(t, 200, "")
		}
		h.Call("GET", path, "").Want(t, 200, `"cancelledAt":null`)
		h.Until("the agent to be told that it goes on", func(tx *ledger.Tx) bool { return told(tx) == 2 })
		h.Rest()
	}
	idle := h.Call("POST", "/api/companies/"+string(of)+"/issues", `{"title":"Later","status":"backlog"}`).
		Want(t, 201, "").Field(t, "id")
	h.Call("POST", "/api/issues/"+idle+"/comments", `{"body":"Go on","resume":true}`).Want(t, 409, "issue_not_resumable")
	h.Call("POST", "/api/issues/"+idle+"/comments", `{"body":"Stop","interrupt":true}`).Want(t, 201, "")
}

func TestWatchdogsAndMonitorsThroughTheAPI(t *testing.T) {
	h := apitest.NewWorkingHarness(t)
	of := ledger.CompanyID(h.Company("Watch"))
	agent, watcher := h.NewAgent(of, "Ada", "echo hello"), h.NewAgent(of, "Wendy", "echo watched")
	issue := h.Call("POST", "/api/companies/"+string(of)+"/issues",
		`{"title":"Stall","assigneeAgentId":"`+agent+`","status":"backlog"}`).Want(t, 201, `"watchdog":null`).Field(t, "id")
	path := "/api/issues/" + issue
	h.Call("PUT", path+"/watchdog", `{}`).Want(t, 400, `"agentId"`)
	h.Call("PUT", path+"/watchdog", `{"agentId":"`+api.NewID()+`"}`).Want(t, 404, "Agent not found")
	h.Call("PUT", path+"/watchdog", `{"agentId":"`+watcher+`","instructions":"`+strings.Repeat("x", 4001)+`"}`).
		Want(t, 400, `"instructions"`)
	h.Call("PUT", path+"/watchdog", `{"agentId":"`+watcher+`","instructions":"Tell the board"}`).
		Want(t, 200, `"triggerCount":0`)
	h.Call("GET", path, "").Want(t, 200, `"watchdog":{"id":`)
	// Another company's agent is not found.
	other := ledger.CompanyID(h.Company("Elsewhere"))
	h.Call("PUT", path+"/watchdog", `{"agentId":"`+h.NewAgent(other, "Eve", "true")+`"}`).Want(t, 404, "Agent not found")
	h.Call("PATCH", path, `{"status":"todo"}`).Want(t, 200, "")
	h.Rest()
	h.Call("GET", path, "").Want(t, 200, `"status":"blocked"`)
	h.Call("GET", path+"/watchdog", "").Want(t, 200, `"triggerCount":1`)
	h.Call("GET", path+"/diagnostics/wakes", "").Want(t, 200, `"issue_watchdog"`).Want(t, 200, `"missing_disposition"`)
	h.Call("GET", path+"/diagnostics/blockers", "").Want(t, 200, `"recoveryAction":true`).
		Want(t, 200, "recovery action waits for a person")
	h.Call("GET", path+"/diagnostics/subtree", "").Want(t, 200, `"needsAttentionCount":1`)
	h.Call("DELETE", path+"/watchdog", "").Want(t, 200, `"Tell the board"`)
	h.Call("GET", path+"/watchdog", "").Want(t, 200, "null")
	h.Call("DELETE", path+"/watchdog", "").Want(t, 404, "Issue watchdog not found")

	// A monitor that is due wakes its agent; the leader does it.
	waiting := h.Call("POST", "/api/companies/"+string(of)+"/issues",
		`{"title":"Wait","assigneeAgentId":"`+agent+`","status":"in_review"}`).Want(t, 201, `"monitorNextCheckAt":null`).
		Field(t, "id")
	set := func(monitor string) apitest.Answer {
		return h.Call("PATCH", "/api/issues/"+waiting, `{"executionPolicy":{"monitor":`+monitor+`}}`)
	}
	set(`{}`).Want(t, 400, `"nextCheckAt"`)
	set(`{"nextCheckAt":"soon"}`).Want(t, 400, `"nextCheckAt"`)
	set(`{"nextCheckAt":"2026-01-01T00:00:00.000Z","maxAttempts":101}`).Want(t, 400, `"maxAttempts"`)
	set(`{"nextCheckAt":"2026-01-01T00:00:00.000Z","recoveryPolicy":"hope"}`).Want(t, 400, `"recoveryPolicy"`)
	soon := h.Node.Wall().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")
	set(`{"nextCheckAt":"`+soon+`","notes":"the build"}`).Want(t, 200, `"monitorNextCheckAt":"`+soon+`"`)
	h.Call("GET", "/api/issues/"+waiting, "").Want(t, 200, `"monitorNotes":"the build","monitorScheduledBy":"board"`)
	h.Call("POST", "/api/issues/"+waiting+"/monitor/check-now", `{}`).Want(t, 200, `{"ok":true}`)
	h.Call("GET", "/api/issues/"+waiting, "").Want(t, 200, `"monitorAttemptCount":1`).
		Want(t, 200, `"executionPolicy":null`)
	set(`{"nextCheckAt":"2026-01-01T00:00:00.000Z"}`).Want(t, 200, "")
	h.Until("the monitor to fire", func(tx *ledger.Tx) bool {
		i, _ := entity.IssueOf(tx, of, waiting)
		return i.Monitor != nil && i.Monitor.NextAt == 0
	})
	h.Rest()
	h.Call("GET", "/api/issues/"+waiting+"/diagnostics/wakes", "").Want(t, 200, `"issue_monitor_due"`)
}

// An agent in a watchdog run reports a fault. The new issue is outside the tree that it
// watches, and names what it is about. No other caller can report one.
func TestAWatchdogReportsAFault(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	in := "/api/companies/" + string(of)
	wendy := h.Call("POST", in+"/agents", `{"name":"Wendy","adapterConfig":{"command":"true"}}`).Want(t, 201, "").
		Field(t, "id")
	token := h.Call("POST", "/api/agents/"+wendy+"/keys", `{"name":"k"}`).Want(t, 201, "").Field(t, "token")
	project := h.Call("POST", in+"/projects", `{"name":"Site"}`).Want(t, 201, "").Field(t, "id")
	top := h.Call("POST", in+"/issues", `{"title":"Top","projectId":"`+project+`","billingCode":"B1"}`).Want(t, 201, "")
	leaf := h.Call("POST", "/api/issues/"+top.Field(t, "id")+"/children",
		`{"title":"Leaf","status":"todo","assigneeAgentId":"`+wendy+`"}`).Want(t, 201, "").Field(t, "id")
	run := h.Start(of, apitest.FirstOf(t, h.Call("GET", in+"/heartbeat-runs", "")))
	as := []string{"Authorization: Bearer " + token, "X-Paperclip-Run-Id: " + run}
	report := func(more string) string {
		return `{"title":"It fails","description":"It does.","parentId":"` + leaf +
			`","watchdogDiscovery":{"kind":"platform_bug","evidenceMarkdown":"Twice."}` + more + `}`
	}
	h.Call("POST", in+"/issues", report(""), as...).Want(t, 403, "watchdogDiscovery is for an agent")
	h.Call("PUT", "/api/issues/"+top.Field(t, "id")+"/watchdog", `{"agentId":"`+wendy+`"}`).Want(t, 200, "")
	h.Call("POST", in+"/issues", report("")).
		Want(t, 403, "watchdogDiscovery is for an agent in a run for an issue that it looks after; make the issue without it")
	h.Call("POST", in+"/issues", `{"title":"x","watchdogDiscovery":{"kind":"bug"}}`, as...).
		Want(t, 400, at("watchdogDiscovery.kind"))
	h.Call("POST", "/api/issues/"+leaf+"/children", report(""), as...).Want(t, 422, "no part of an issue")
	made := h.Call("POST", in+"/issues", report(""), as...).Want(t, 201, `"parentId":null`).
		Want(t, 201, `"originKind":"task_watchdog_product_bug"`).
		Want(t, 201, `"originId":"`+top.Field(t, "id")+`"`).Want(t, 201, `"originRunId":"`+run+`"`).
		Want(t, 201, `"projectId":"`+project+`"`).Want(t, 201, `"billingCode":"B1"`)
	text := made.Field(t, "description")
	for _, part := range []string{"It does.\n\n## Found by a watchdog\n", "While it looked after [" +
		top.Field(t, "identifier") + "](/", "platform_bug", "\n\nTwice."} {
		if !strings.Contains(text, part) {
			t.Errorf("the text is %q, without %q", text, part)
		}
	}
	h.Call("POST", in+"/issues", `{"title":"Long","description":"`+strings.Repeat("x",
		entity.MaxText-10)+`","watchdogDiscovery":{"kind":"product_bug"}}`, as...).
		Want(t, 413, "description and evidenceMarkdown have more than 200000 bytes together")
	h.Call("POST", in+"/issues", `{"title":"Own","watchdogDiscovery":null}`).Want(t, 201, `"originKind":"manual"`)
}
