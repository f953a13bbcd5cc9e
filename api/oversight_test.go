package api_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestWhatAgentsDidIsTakenAlong(t *testing.T) {
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	in := "/api/companies/" + string(of)
	ada := h.Call("POST", in+"/agents",
		`{"name":"Ada","adapterType":"process","adapterConfig":{"command":"/bin/true"},`+
			`"runtimeConfig":{"heartbeat":{"enabled":true,"intervalSec":300}}}`).Want(t, 201, "").Field(t, "id")
	key := "Authorization: Bearer " + h.Call("POST", "/api/agents/"+ada+"/keys", `{"name":"k"}`).Want(t, 201, "").
		Field(t, "token")
	h.Call("POST", in+"/issues", `{"title":"Theirs","assigneeAgentId":"`+ada+`","status":"todo"}`).Want(t, 201, "")
	run := "X-Paperclip-Run-Id: " + h.Start(of, apitest.FirstOf(t, h.Call("GET", in+"/heartbeat-runs", "")))
	h.Call("POST", in+"/issues", `{"title":"=HYPERLINK(\"x\"), by Ada"}`, key, run).Want(t, 201, "")
	a := h.Call("GET", in+"/audit/agent-actions.csv", "").Want(t, 200, "issue.created")
	if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/csv") ||
		!strings.Contains(a.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("%v", a.Header)
	}
	lines := strings.Split(strings.TrimSpace(string(a.Body)), "\r\n")
	if !strings.HasPrefix(lines[0], "createdAt,action,actorType") || !strings.Contains(string(a.Body),
		`"'=HYPERLINK(""x""), by Ada"`) {
		t.Errorf("%s", a.Body)
	}
	h.Call("GET", in+"/activity?action=audit.exported", "").Want(t, 200, `"userId":"local-board"`)
	h.Call("GET", in+"/audit/agent-actions.csv", "", key).Want(t, 403, "Board access required")

	h.Call("GET", "/api/instance/scheduler-heartbeats", "").
		Want(t, 200, `"intervalSec":300,"heartbeatEnabled":true,"schedulerActive":true`)

	// The hire of an agent is approved by its own name too.
	h.Call("PATCH", in, `{"requireBoardApprovalForNewAgents":true}`).Want(t, 200, "")
	bob := h.Call("POST", in+"/agent-hires", `{"name":"Bob","adapterType":"process"}`).Want(t, 201, "").
		Decode(t).(map[string]any)["agent"].(map[string]any)["id"].(string)
	h.Call("POST", "/api/agents/"+bob+"/approve", `{}`, key).Want(t, 403, "Board access required")
	h.Call("POST", "/api/agents/"+bob+"/approve", `{}`).Want(t, 200, `"status":"idle"`)
	h.Call("POST", "/api/agents/"+bob+"/approve", `{}`).Want(t, 409, "Only pending approval agents can be approved")
	h.Call("GET", in+"/approvals?status=approved", "").Want(t, 200, bob)
}
