package api

import (
	"strings"
	"testing"
)

func TestWhatAgentsDidIsTakenAlong(t *testing.T) {
	h := newHarness(t)
	of := h.company("Acme")
	in := "/api/companies/" + of
	ada := h.call("POST", in+"/agents", `{"name":"Ada","adapterType":"process","adapterConfig":{"command":"/bin/true"},"runtimeConfig":{"heartbeat":{"enabled":true,"intervalSec":300}}}`).want(t, 201, "").field(t, "id")
	key := "Authorization: Bearer " + h.call("POST", "/api/agents/"+ada+"/keys", `{"name":"k"}`).want(t, 201, "").field(t, "token")
	h.call("POST", in+"/issues", `{"title":"Theirs","assigneeAgentId":"`+ada+`","status":"todo"}`).want(t, 201, "")
	run := "X-Paperclip-Run-Id: " + h.start(of, firstOf(t, h.call("GET", in+"/heartbeat-runs", "")))
	h.call("POST", in+"/issues", `{"title":"=HYPERLINK(\"x\"), by Ada"}`, key, run).want(t, 201, "")
	a := h.call("GET", in+"/audit/agent-actions.csv", "").want(t, 200, "issue.created")
	if !strings.HasPrefix(a.header.Get("Content-Type"), "text/csv") || !strings.Contains(a.header.Get("Content-Disposition"), "attachment") {
		t.Errorf("%v", a.header)
	}
	lines := strings.Split(strings.TrimSpace(string(a.body)), "\r\n")
	if !strings.HasPrefix(lines[0], "createdAt,action,actorType") || !strings.Contains(string(a.body), `"'=HYPERLINK(""x""), by Ada"`) {
		t.Errorf("%s", a.body)
	}
	h.call("GET", in+"/activity?action=audit.exported", "").want(t, 200, `"userId":"local-board"`)
	h.call("GET", in+"/audit/agent-actions.csv", "", key).want(t, 403, "Board access required")

	h.call("GET", "/api/instance/scheduler-heartbeats", "").want(t, 200, `"intervalSec":300,"heartbeatEnabled":true,"schedulerActive":true`)

	// The hire of an agent is approved by its own name too.
	h.call("PATCH", in, `{"requireBoardApprovalForNewAgents":true}`).want(t, 200, "")
	bob := h.call("POST", in+"/agent-hires", `{"name":"Bob","adapterType":"process"}`).want(t, 201, "").decode(t).(map[string]any)["agent"].(map[string]any)["id"].(string)
	h.call("POST", "/api/agents/"+bob+"/approve", `{}`, key).want(t, 403, "Board access required")
	h.call("POST", "/api/agents/"+bob+"/approve", `{}`).want(t, 200, `"status":"idle"`)
	h.call("POST", "/api/agents/"+bob+"/approve", `{}`).want(t, 409, "Only pending approval agents can be approved")
	h.call("GET", in+"/approvals?status=approved", "").want(t, 200, bob)
}
