package money_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/api/work"
)

func TestApprovalsThroughTheAPI(t *testing.T) {
	t.Parallel()
	h := apitest.NewTeam(t)
	in := "/api/companies/" + string(h.Company)
	issue := h.Call("POST", in+"/issues", `{"title":"Find a coder"}`).Want(t, 201, "").Field(t, "id")

	// What is wrong with a body is said with the field; nothing comes of it.
	h.Call("POST", in+"/approvals", `{"type":"hire_agent"}`).Want(t, 400, `"path":["payload"]`)
	h.Call("POST", in+"/approvals", `{"type":"hire_agent","payload":[]}`).Want(t, 400, `"path":["payload"]`)
	h.Call("POST", in+"/approvals", `{"type":"hire_agent","payload":{"role":"qa"}}`).Want(t, 400, "payload.name")
	h.Call("POST", in+"/approvals", `{"type":"hire_agent","payload":{"name":"Carl","title":"`+strings.Repeat("x",
		501)+`"}}`).Want(t, 400, "title of an agent is longer than 500 bytes")
	h.Call("POST", in+"/approvals", `{"type":"request_board_approval","payload":{},"issueIds":["x"]}`).
		Want(t, 400, `"path":["issueIds",0]`)
	h.Call("GET", in+"/approvals?status=maybe", "").Want(t, 400, "Invalid status")
	h.Call("GET", "/api/approvals/"+issue, "").Want(t, 404, "Approval not found")
	h.Call("POST", "/api/approvals/nonsense/approve", `{}`).Want(t, 404, "Approval not found")
	h.Call("POST", "/api/companies/"+issue+"/approvals", `{"type":"request_board_approval","payload":{}}`).
		Want(t, 404, "Company not found")

	// An agent asks, comments and resubmits; it does not decide.
	asked := h.Call("POST", in+"/approvals", `{"type":"hire_agent","issueIds":["`+issue+`"],"payload":{"name":"Carl",
		"adapterConfig":{"command":"/bin/true","env":{"A":"`+apitest.Canary+`"},"apiKey":"`+apitest.Canary+`"}}}`, h.As()).
		Want(t, 201, `"requestedByUserId":null`)
	one := "/api/approvals/" + asked.Field(t, "id")
	for _, verb := range []string{"approve", "reject", "request-revision", "cancel"} {
		h.Call("POST", one+"/"+verb, `{}`, h.As()).Want(t, 403, "Board access required")
	}
	h.Call("POST", one+"/comments", `{"body":"please"}`, h.As()).Want(t, 201, `"authorUserId":null`)
	h.Call("POST", one+"/comments", `{"body":""}`).Want(t, 400, `"path":["body"]`)
	h.Call("POST", one+"/request-revision", `{"decisionNote":"a title?"}`).Want(t, 200, `"status":"revision_requested"`)
	h.Call("POST", one+"/resubmit", `{"payload":{"name":"Carl","title":"Coder","adapterConfig":{"command":"/bin/true"}}}`,
		h.As()).Want(t, 200, `"status":"pending"`)
	h.Call("POST", one+"/resubmit", `{}`, h.As()).Want(t, 422, "Only revision requested approvals can be resubmitted")
	h.Call("GET", in+"/dashboard", "").Want(t, 200, `"pendingApprovals":1`)
	h.Call("GET", in+"/sidebar-badges", "").Want(t, 200, `"approvals":1`)
	h.Call("POST", one+"/approve", `{"decisionNote":7}`).Want(t, 400, `"path":["decisionNote"]`)
	h.Call("POST", one+"/approve", `{"decisionNote":"ok"}`).Want(t, 200, `"status":"approved"`)
	h.Call("GET", in+"/agents", "").Want(t, 200, `"name":"Carl"`)
	h.Call("GET", in+"/sidebar-badges", "").Want(t, 200, `"approvals":0`)
	h.Call("GET", "/api/issues/"+issue+"/approvals", "", h.As()).Want(t, 200, `"status":"approved"`)
	h.Call("GET", one+"/issues", "", h.As()).Want(t, 200, `"title":"Find a coder"`)

	// Links, both ways.
	other := h.Call("POST", in+"/issues", `{"title":"Another"}`).Want(t, 201, "").Field(t, "id")
	h.Call("POST", "/api/issues/"+other+"/approvals", `{"approvalId":"`+asked.Field(t, "id")+`"}`).
		Want(t, 201, `"status":"approved"`)
	h.Call("DELETE", "/api/issues/"+other+"/approvals/"+asked.Field(t, "id"), "").Want(t, 200, `"ok":true`)
	h.Call("GET", "/api/issues/"+other+"/approvals", "").Want(t, 200, "[]")
	h.Call("POST", "/api/issues/"+other+"/approvals", `{"approvalId":"`+other+`"}`).Want(t, 404, "Approval not found")

	// Nothing shows a secret, nor to another company that there is anything.
	for _, path := range []string{one, in + "/approvals", in + "/activity", "/api/v1/mesh/ledger/entries", in + "/agents",
		one + "/issues"} {
		if a := h.Call("GET", path, "").Want(t, 200, ""); strings.Contains(string(a.Body), apitest.Canary) {
			t.Errorf("%s shows a secret: %s", path, a.Body)
		}
	}
	rival := h.Harness.Company("Rival")
	spy := h.Call("POST", "/api/companies/"+rival+"/agents", `{"name":"Spy"}`).Want(t, 201, "").Field(t, "id")
	token := h.Call("POST", "/api/agents/"+spy+"/keys", `{"name":"k"}`).Want(t, 201, "").Field(t, "token")
	as := "Authorization: Bearer " + token
	h.Call("GET", one, "", as).Want(t, 404, "Approval not found")
	h.Call("POST", one+"/comments", `{"body":"hm"}`, as).Want(t, 404, "Approval not found")
	h.Call("GET", in+"/approvals", "", as).Want(t, 403, "Agent key cannot access another company")
	h.Call("POST", in+"/agent-hires", `{"name":"Mole"}`, as).Want(t, 403, "Agent key cannot access another company")
}

func TestAHireThatIsRefusedAnswersWhyAndStaysOpen(t *testing.T) {
	t.Parallel()
	h := apitest.NewTeam(t)
	in := "/api/companies/" + string(h.Company)
	id := h.Call("POST", in+"/approvals", `{"type":"hire_agent","payload":{"name":"Carl","reportsTo":"`+h.Worker+`"}}`).
		Want(t, 201, "").Field(t, "id")
	h.Call("POST", "/api/agents/"+h.Worker+"/terminate", "").Want(t, 200, "")
	h.Call("POST", "/api/approvals/"+id+"/approve", `{}`).Want(t, 409, `"error":"Cannot report to terminated agents"`).
		Want(t, 409, `"status":"pending"`)
	h.Call("GET", "/api/approvals/"+id, "").Want(t, 200, `"refused":{"error":"Cannot report to terminated agents"`)
	h.Call("POST", "/api/approvals/"+id+"/reject", `{}`).Want(t, 200, `"refused":null`)
}

func TestHiresThroughTheAPI(t *testing.T) {
	t.Parallel()
	h := apitest.NewTeam(t)
	in := "/api/companies/" + string(h.Company)
	h.Call("POST", in+"/agent-hires", `{"role":"qa"}`).Want(t, 400, `"path":["name"]`)
	h.Call("POST", in+"/agent-hires",
		`{"name":"Quinn","role":"qa","desiredSkills":["paperclip",{"key":"x","versionId":null}]}`).
		Want(t, 201, `"approval":null`)

	// An agent's hire always asks, and the agent that waits has no way in.
	asked := h.Call("POST", in+"/agent-hires", `{"name":"Dora","desiredSkills":["paperclip"],"budgetMonthlyCents":700,
		"adapterConfig":{"env":{"A":"`+apitest.Canary+`"}},"permissions":{"canAssignTasks":true}}`, h.As()).
		Want(t, 201, `"status":"pending_approval"`)
	if strings.Contains(string(asked.Body), apitest.Canary) {
		t.Errorf("a hire shows a secret: %s", asked.Body)
	}
	list := h.Call("GET", in+"/approvals?status=pending&type=hire_agent", "").Want(t, 200, `"desiredSkills":["paperclip"]`)
	var waiting []struct{ ID, AgentID string }
	if err := json.Unmarshal(list.Body, &waiting); err != nil || len(waiting) != 1 {
		t.Fatalf("waiting: %s, %v", list.Body, err)
	}
	id, dora := waiting[0].ID, waiting[0].AgentID
	h.Call("POST", "/api/agents/"+dora+"/keys", `{"name":"k"}`).Want(t, 409, "pending approval")
	h.Call("POST", "/api/agents/"+dora+"/heartbeat/invoke", "").Want(t, 409, "not invokable")
	h.Call("POST", "/api/approvals/"+id+"/approve", `{}`).Want(t, 200, `"status":"approved"`)
	h.Call("GET", "/api/agents/"+dora, "").Want(t, 200, `"status":"idle"`).Want(t, 200, `"budgetMonthlyCents":700`)

	h.Call("PATCH", "/api/agents/"+h.Worker+"/permissions", `{"canCreateAgents":false,"canAssignTasks":false}`).
		Want(t, 200, `"canCreateAgents":false`)
	h.Call("POST", in+"/agent-hires", `{"name":"Evan"}`, h.As()).Want(t, 403, "Missing permission: agents:create")
	h.Call("POST", in+"/agents", `{"name":"Evan"}`, h.As()).Want(t, 403, "Board access required")
}

func TestTheStrategyGateThroughTheAPI(t *testing.T) {
	t.Parallel()
	h := apitest.NewTeam(t)
	in := "/api/companies/" + string(h.Company)
	token := h.Call("POST", "/api/agents/"+h.Boss+"/keys", `{"name":"k"}`).Want(t, 201, "").Field(t, "token")
	run := h.Running(h.Company, h.Boss)
	as := []string{"Authorization: Bearer " + token, "X-Paperclip-Run-Id: " + run}
	h.Call("POST", in+"/issues", `{"title":"a draft","assigneeAgentId":"`+h.Worker+`"}`, as...).
		Want(t, 201, `"status":"backlog"`)
	h.Call("POST", in+"/issues", `{"title":"now","status":"todo","assigneeAgentId":"`+h.Worker+`"}`, as...).
		Want(t, 409, `"code":"ceo_strategy_required"`)
	h.Call("GET", in, "").Want(t, 200, `"requireBoardApprovalForCeoStrategy":true`).
		Want(t, 200, `"strategyApprovalId":null`)
	id := h.Call("POST", in+"/approvals", `{"type":"approve_ceo_strategy","payload":{"plan":"conquer"}}`, as...).
		Want(t, 201, "").Field(t, "id")
	h.Call("POST", "/api/approvals/"+id+"/approve", `{}`).Want(t, 200, "")
	h.Call("GET", in, "").Want(t, 200, `"strategyApprovalId":"`+id+`"`)
	h.Call("POST", in+"/issues", `{"title":"now","status":"todo","assigneeAgentId":"`+h.Worker+`"}`, as...).
		Want(t, 201, `"status":"todo"`)
	h.Call("PATCH", in, `{"requireBoardApprovalForCeoStrategy":false}`).
		Want(t, 200, `"requireBoardApprovalForCeoStrategy":false`)
}

func TestAttentionListsWhatWaitsForAPerson(t *testing.T) {
	t.Parallel()
	h := apitest.NewTeam(t)
	in := "/api/companies/" + string(h.Company)
	h.Call("GET", in+"/attention", "").Want(t, 200, `"totalCount":0`).Want(t, 200, `"approval":0`)
	issue := h.Call("POST", in+"/issues",
		`{"title":"Stuck","status":"blocked","unblockDescriptor":{"owner":"board","action":"Pay the bill"}}`).
		Want(t, 201, "").Field(t, "id")
	h.Call("POST", in+"/approvals",
		`{"type":"request_board_approval","payload":{"summary":"a yacht"},"issueIds":["`+issue+`"]}`, h.As()).Want(t, 201, "")
	h.Call("PATCH", "/api/agents/"+h.Worker+"/budgets", `{"budgetMonthlyCents":100}`).Want(t, 200, "")
	spend := func(cents string) {
		h.Call("POST", in+"/cost-events",
			`{"agentId":"`+h.Worker+`","provider":"x","model":"y","costCents":`+cents+
				`,"occurredAt":"2026-11-21T03:00:00.000Z"}`).Want(t, 201, "")
	}
	spend("85")
	h.Call("GET", in+"/attention", "").Want(t, 200, `"budget_alert":1`).Want(t, 200, `"summaryExcerpt":"a yacht"`).
		Want(t, 200, `"originAgentName":"Bob Builder"`).
		Want(t, 200, `"whyNow":"Pay the bill"`).Want(t, 200, `"approval":1`)
	spend("20") // now the hard stop asks, instead of the warning
	all := h.Call("GET", in+"/attention", "", h.As()).Want(t, 200, `"budget_alert":0`).Want(t, 200, `"approval":2`)
	var feed work.AttentionFeed
	if err := json.Unmarshal(all.Body, &feed); err != nil {
		t.Fatal(err)
	}
	seen := []string{}
	for cursor := ""; ; {
		var page work.AttentionFeed
		a := h.Call("GET", in+"/attention?limit=1&cursor="+cursor, "").Want(t, 200, "")
		if err := json.Unmarshal(a.Body, &page); err != nil || len(page.Items) != 1 || page.Total != feed.Total {
			t.Fatalf("a page: %v %s", err, a.Body)
		}
		seen = append(seen, page.Items[0].ID)
		if cursor = string(page.NextCursor); cursor == "" {
			break
		}
	}
	for n, i := range feed.Items {
		if n >= len(seen) || seen[n] != i.ID || i.Rank != n+1 {
			t.Errorf("page by page %v, at once %s at %d", seen, i.ID, n)
		}
	}
	h.Call("GET", in+"/attention?cursor=nonsense", "").Want(t, 400, "Invalid cursor")
	h.Call("GET", in+"/attention?activitySince=2099-01-01", "").Want(t, 200, `"totalCount":0`)
}
