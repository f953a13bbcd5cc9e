package api

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/ledger"
)

// While an agent is at work, what people say to it waits, can be changed and
// taken back, and is told at once when they interrupt it.
func TestCommentsWaitForTheNextRun(t *testing.T) {
	h := newWorkingHarness(t)
	of := h.company("Queue")
	// The run that is told, and those that ask what becomes of the issue after it, end.
	mark := filepath.Join(t.TempDir(), "told")
	agent := h.newAgent(of, "Busy", `case "$PAPERCLIP_WAKE_PAYLOAD_JSON" in *issue_commented*) echo told; : >`+mark+`;; esac; [ ! -e `+mark+` ] || exit 0; echo here; while :; do sleep 0.05; done`)
	issue := h.assign(of, agent, "Work")
	path := "/api/issues/" + issue
	var run company.Run
	h.until("a run at work", func(tx *ledger.Tx) bool {
		for r := range company.RunsOfIssue(tx, of, issue) {
			run = r
		}
		return run.LastOutputSeq > 0
	})
	h.call("GET", path+"/queued-comments", "").want(t, 200, `"queueId":null`).want(t, 200, `"targetRunId":"`+run.ID+`"`)
	first := h.call("POST", path+"/comments", `{"body":"first"}`).want(t, 201, "").field(t, "id")
	second := h.call("POST", path+"/comments", `{"body":"2nd"}`).want(t, 201, "").field(t, "id")
	q := h.call("GET", path+"/queued-comments", "").want(t, 200, `"state":"deferred"`)
	said := func(q answer, more string) string {
		return fmt.Sprintf(`{"queueId":%q,"revision":%q%s}`, q.field(t, "queueId"), q.field(t, "revision"), more)
	}
	stale := said(q, "")
	q = h.call("PATCH", path+"/queued-comments/"+second, said(q, `,"body":"second"`)).want(t, 200, `"second"`)
	h.call("DELETE", path+"/queued-comments/"+first, stale).want(t, 409, "comment_queue_changed")
	q = h.call("PUT", path+"/queued-comments/order", said(q, fmt.Sprintf(`,"orderedCommentIds":[%q,%q]`, second, first))).want(t, 200, "")
	q = h.call("DELETE", path+"/queued-comments/"+first, said(q, "")).want(t, 200, "")
	if n := len(q.decode(t).(map[string]any)["entries"].([]any)); n != 1 {
		t.Fatalf("%d comments wait", n)
	}
	h.call("POST", path+"/queued-comments/"+second+"/steer", said(q, `,"targetRunId":"`+run.ID+`"`)).want(t, 409, "interrupt it instead")
	h.call("POST", path+"/queued-comments/interrupt", said(q, `,"targetRunId":null`)).want(t, 409, "")
	h.call("POST", path+"/queued-comments/interrupt", said(q, `,"targetRunId":"`+run.ID+`"`)).want(t, 200, "")
	h.until("the comment to be told", func(tx *ledger.Tx) bool {
		for r := range company.RunsOfIssue(tx, of, issue) {
			if r.StdoutExcerpt != nil && strings.Contains(*r.StdoutExcerpt, "told") {
				return true
			}
		}
		return false
	})
	h.rest()
}

// A comment of the board interrupts the run at work, by itself or with a change of the
// issue, and one that resumes opens what was closed: its agent is told at once.
func TestCommentsInterruptAndResume(t *testing.T) {
	h := newWorkingHarness(t)
	of := h.company("Orders")
	agent := h.newAgent(of, "Busy", `echo "woken: $PAPERCLIP_WAKE_REASON"; [ "$PAPERCLIP_WAKE_REASON" = issue_assigned ] || exit 0; while :; do sleep 0.05; done`)
	for n, tc := range []struct {
		method, path, stop, bare string
		status                   int
	}{
		{"POST", "/comments", `{"body":"Stop","interrupt":true}`, "", 201},
		{"PATCH", "", `{"comment":"Stop","interrupt":true}`, `{"interrupt":true,"resume":true}`, 200},
	} {
		issue := h.assign(of, agent, fmt.Sprint("Work ", n))
		path := "/api/issues/" + issue
		var at company.Run
		h.until("a run at work", func(tx *ledger.Tx) bool {
			for r := range company.RunsOfIssue(tx, of, issue) {
				at = r
			}
			return at.LastOutputSeq > 0
		})
		key := h.call("POST", "/api/agents/"+agent+"/keys", `{"name":"own"}`).want(t, 201, "").field(t, "token")
		own := []string{"X-Paperclip-Run-Id: " + at.ID, "Authorization: Bearer " + key}
		h.call(tc.method, path+tc.path, tc.stop, own...).want(t, 403, "Only the board can interrupt a run")
		if tc.bare != "" {
			h.call(tc.method, path, tc.bare).want(t, 400, "belong to a comment")
		}
		h.call(tc.method, path+tc.path, tc.stop).want(t, tc.status, "")
		h.call("GET", "/api/heartbeat-runs/"+at.ID, "").want(t, 200, `"status":"cancelled"`).want(t, 200, "Interrupted by a comment of the board")
		h.call("GET", path, "").want(t, 200, `"assigneeAgentId":"`+agent+`"`)
		told := func(tx *ledger.Tx) (n int) {
			for r := range company.RunsOfIssue(tx, of, issue) {
				if r.StdoutExcerpt != nil && strings.Contains(*r.StdoutExcerpt, "woken: issue_commented") {
					n++
				}
			}
			return n
		}
		h.until("the comment to be told", func(tx *ledger.Tx) bool { return told(tx) == 1 })
		h.rest()
		h.call("PATCH", path, `{"status":"cancelled"}`).want(t, 200, "")
		if n == 0 {
			h.call("POST", path+"/comments", `{"body":"Go on","resume":true}`).want(t, 201, "")
		} else {
			h.call("PATCH", path, `{"comment":"Go on","resume":true}`).want(t, 200, "")
		}
		h.call("GET", path, "").want(t, 200, `"cancelledAt":null`)
		h.until("the agent to be told that it goes on", func(tx *ledger.Tx) bool { return told(tx) == 2 })
		h.rest()
	}
	idle := h.call("POST", "/api/companies/"+of+"/issues", `{"title":"Later","status":"backlog"}`).want(t, 201, "").field(t, "id")
	h.call("POST", "/api/issues/"+idle+"/comments", `{"body":"Go on","resume":true}`).want(t, 409, "issue_not_resumable")
	h.call("POST", "/api/issues/"+idle+"/comments", `{"body":"Stop","interrupt":true}`).want(t, 201, "")
}

func TestWatchdogsAndMonitorsThroughTheAPI(t *testing.T) {
	h := newWorkingHarness(t)
	of := h.company("Watch")
	agent, watcher := h.newAgent(of, "Ada", "echo hello"), h.newAgent(of, "Wendy", "echo watched")
	issue := h.call("POST", "/api/companies/"+of+"/issues", `{"title":"Stall","assigneeAgentId":"`+agent+`","status":"backlog"}`).want(t, 201, `"watchdog":null`).field(t, "id")
	path := "/api/issues/" + issue
	h.call("PUT", path+"/watchdog", `{}`).want(t, 400, `"agentId"`)
	h.call("PUT", path+"/watchdog", `{"agentId":"`+NewID()+`"}`).want(t, 404, "Agent not found")
	h.call("PUT", path+"/watchdog", `{"agentId":"`+watcher+`","instructions":"`+strings.Repeat("x", 4001)+`"}`).want(t, 400, `"instructions"`)
	h.call("PUT", path+"/watchdog", `{"agentId":"`+watcher+`","instructions":"Tell the board"}`).want(t, 200, `"triggerCount":0`)
	h.call("GET", path, "").want(t, 200, `"watchdog":{"id":`)
	// Another company's agent is none here.
	other := h.company("Elsewhere")
	h.call("PUT", path+"/watchdog", `{"agentId":"`+h.newAgent(other, "Eve", "true")+`"}`).want(t, 404, "Agent not found")
	h.call("PATCH", path, `{"status":"todo"}`).want(t, 200, "")
	h.rest()
	h.call("GET", path, "").want(t, 200, `"status":"blocked"`)
	h.call("GET", path+"/watchdog", "").want(t, 200, `"triggerCount":1`)
	h.call("GET", path+"/diagnostics/wakes", "").want(t, 200, `"issue_watchdog"`).want(t, 200, `"missing_disposition"`)
	h.call("GET", path+"/diagnostics/blockers", "").want(t, 200, `"recoveryAction":true`).want(t, 200, "recovery action waits for a person")
	h.call("GET", path+"/diagnostics/subtree", "").want(t, 200, `"needsAttentionCount":1`)
	h.call("DELETE", path+"/watchdog", "").want(t, 200, `"Tell the board"`)
	h.call("GET", path+"/watchdog", "").want(t, 200, "null")
	h.call("DELETE", path+"/watchdog", "").want(t, 404, "Issue watchdog not found")

	// A monitor that is due wakes its agent; the leader sees to it.
	waiting := h.call("POST", "/api/companies/"+of+"/issues", `{"title":"Wait","assigneeAgentId":"`+agent+`","status":"in_review"}`).want(t, 201, `"monitorNextCheckAt":null`).field(t, "id")
	set := func(monitor string) answer {
		return h.call("PATCH", "/api/issues/"+waiting, `{"executionPolicy":{"monitor":`+monitor+`}}`)
	}
	set(`{}`).want(t, 400, `"nextCheckAt"`)
	set(`{"nextCheckAt":"soon"}`).want(t, 400, `"nextCheckAt"`)
	set(`{"nextCheckAt":"2026-01-01T00:00:00.000Z","maxAttempts":101}`).want(t, 400, `"maxAttempts"`)
	set(`{"nextCheckAt":"2026-01-01T00:00:00.000Z","recoveryPolicy":"hope"}`).want(t, 400, `"recoveryPolicy"`)
	soon := time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")
	set(`{"nextCheckAt":"`+soon+`","notes":"the build"}`).want(t, 200, `"monitorNextCheckAt":"`+soon+`"`)
	h.call("GET", "/api/issues/"+waiting, "").want(t, 200, `"monitorNotes":"the build","monitorScheduledBy":"board"`)
	h.call("POST", "/api/issues/"+waiting+"/monitor/check-now", `{}`).want(t, 200, `{"ok":true}`)
	h.call("GET", "/api/issues/"+waiting, "").want(t, 200, `"monitorAttemptCount":1`).want(t, 200, `"executionPolicy":null`)
	set(`{"nextCheckAt":"2026-01-01T00:00:00.000Z"}`).want(t, 200, "")
	h.until("the monitor to fire", func(tx *ledger.Tx) bool {
		i, _ := company.IssueOf(tx, of, waiting)
		return i.Monitor != nil && i.Monitor.NextAt == 0
	})
	h.rest()
	h.call("GET", "/api/issues/"+waiting+"/diagnostics/wakes", "").want(t, 200, `"issue_monitor_due"`)
}

// An agent at work as a watchdog reports a fault that it came upon: the issue is outside
// what it looks after, and says what it is about. Nobody else does.
func TestAWatchdogReportsAFault(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := h.company("Acme")
	in := "/api/companies/" + of
	wendy := h.call("POST", in+"/agents", `{"name":"Wendy","adapterConfig":{"command":"true"}}`).want(t, 201, "").field(t, "id")
	token := h.call("POST", "/api/agents/"+wendy+"/keys", `{"name":"k"}`).want(t, 201, "").field(t, "token")
	project := h.call("POST", in+"/projects", `{"name":"Site"}`).want(t, 201, "").field(t, "id")
	top := h.call("POST", in+"/issues", `{"title":"Top","projectId":"`+project+`","billingCode":"B1"}`).want(t, 201, "")
	leaf := h.call("POST", "/api/issues/"+top.field(t, "id")+"/children", `{"title":"Leaf","status":"todo","assigneeAgentId":"`+wendy+`"}`).want(t, 201, "").field(t, "id")
	run := h.start(of, firstOf(t, h.call("GET", in+"/heartbeat-runs", "")))
	as := []string{"Authorization: Bearer " + token, "X-Paperclip-Run-Id: " + run}
	report := func(more string) string {
		return `{"title":"It fails","description":"It does.","parentId":"` + leaf + `","watchdogDiscovery":{"kind":"platform_bug","evidenceMarkdown":"Twice."}` + more + `}`
	}
	h.call("POST", in+"/issues", report(""), as...).want(t, 403, "watchdogDiscovery is for an agent")
	h.call("PUT", "/api/issues/"+top.field(t, "id")+"/watchdog", `{"agentId":"`+wendy+`"}`).want(t, 200, "")
	h.call("POST", in+"/issues", report("")).want(t, 403, "")
	h.call("POST", in+"/issues", `{"title":"x","watchdogDiscovery":{"kind":"bug"}}`, as...).want(t, 400, at("watchdogDiscovery.kind"))
	h.call("POST", "/api/issues/"+leaf+"/children", report(""), as...).want(t, 422, "no part of an issue")
	made := h.call("POST", in+"/issues", report(""), as...).want(t, 201, `"parentId":null`).want(t, 201, `"originKind":"task_watchdog_product_bug"`).
		want(t, 201, `"originId":"`+top.field(t, "id")+`"`).want(t, 201, `"originRunId":"`+run+`"`).want(t, 201, `"projectId":"`+project+`"`).want(t, 201, `"billingCode":"B1"`)
	text := made.field(t, "description")
	for _, part := range []string{"It does.\n\n## Found by a watchdog\n", "While it looked after [" + top.field(t, "identifier") + "](/", "platform_bug", "\n\nTwice."} {
		if !strings.Contains(text, part) {
			t.Errorf("the text is %q, without %q", text, part)
		}
	}
	h.call("POST", in+"/issues", `{"title":"Long","description":"`+strings.Repeat("x", company.MaxText-10)+`","watchdogDiscovery":{"kind":"product_bug"}}`, as...).want(t, 413, "")
	h.call("POST", in+"/issues", `{"title":"Own","watchdogDiscovery":null}`).want(t, 201, `"originKind":"manual"`)
}
