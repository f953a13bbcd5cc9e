package api

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestApprovalsThroughTheAPI(t *testing.T) {
	t.Parallel()
	h := newTeam(t)
	in := "/api/companies/" + h.company
	issue := h.call("POST", in+"/issues", `{"title":"Find a coder"}`).want(t, 201, "").field(t, "id")

	// What is wrong with a body is said with the field; nothing comes of it.
	h.call("POST", in+"/approvals", `{"type":"hire_agent"}`).want(t, 400, `"path":["payload"]`)
	h.call("POST", in+"/approvals", `{"type":"hire_agent","payload":[]}`).want(t, 400, `"path":["payload"]`)
	h.call("POST", in+"/approvals", `{"type":"hire_agent","payload":{"role":"qa"}}`).want(t, 400, "payload.name")
	h.call("POST", in+"/approvals", `{"type":"hire_agent","payload":{"name":"Carl","title":"`+strings.Repeat("x", 501)+`"}}`).want(t, 400, "title of an agent is longer than 500 bytes")
	h.call("POST", in+"/approvals", `{"type":"request_board_approval","payload":{},"issueIds":["x"]}`).want(t, 400, `"path":["issueIds",0]`)
	h.call("GET", in+"/approvals?status=maybe", "").want(t, 400, "Invalid status")
	h.call("GET", "/api/approvals/"+issue, "").want(t, 404, "Approval not found")
	h.call("POST", "/api/approvals/nonsense/approve", `{}`).want(t, 404, "Approval not found")
	h.call("POST", "/api/companies/"+issue+"/approvals", `{"type":"request_board_approval","payload":{}}`).want(t, 404, "Company not found")

	// An agent asks, comments and resubmits; it does not decide.
	asked := h.call("POST", in+"/approvals", `{"type":"hire_agent","issueIds":["`+issue+`"],"payload":{"name":"Carl",
		"adapterConfig":{"command":"/bin/true","env":{"A":"`+canary+`"},"apiKey":"`+canary+`"}}}`, h.as()).want(t, 201, `"requestedByUserId":null`)
	one := "/api/approvals/" + asked.field(t, "id")
	for _, verb := range []string{"approve", "reject", "request-revision", "cancel"} {
		h.call("POST", one+"/"+verb, `{}`, h.as()).want(t, 403, "Board access required")
	}
	h.call("POST", one+"/comments", `{"body":"please"}`, h.as()).want(t, 201, `"authorUserId":null`)
	h.call("POST", one+"/comments", `{"body":""}`).want(t, 400, `"path":["body"]`)
	h.call("POST", one+"/request-revision", `{"decisionNote":"a title?"}`).want(t, 200, `"status":"revision_requested"`)
	h.call("POST", one+"/resubmit", `{"payload":{"name":"Carl","title":"Coder","adapterConfig":{"command":"/bin/true"}}}`, h.as()).want(t, 200, `"status":"pending"`)
	h.call("POST", one+"/resubmit", `{}`, h.as()).want(t, 422, "Only revision requested approvals can be resubmitted")
	h.call("GET", in+"/dashboard", "").want(t, 200, `"pendingApprovals":1`)
	h.call("GET", in+"/sidebar-badges", "").want(t, 200, `"approvals":1`)
	h.call("POST", one+"/approve", `{"decisionNote":7}`).want(t, 400, `"path":["decisionNote"]`)
	h.call("POST", one+"/approve", `{"decisionNote":"ok"}`).want(t, 200, `"status":"approved"`)
	h.call("GET", in+"/agents", "").want(t, 200, `"name":"Carl"`)
	h.call("GET", in+"/sidebar-badges", "").want(t, 200, `"approvals":0`)
	h.call("GET", "/api/issues/"+issue+"/approvals", "", h.as()).want(t, 200, `"status":"approved"`)
	h.call("GET", one+"/issues", "", h.as()).want(t, 200, `"title":"Find a coder"`)

	// Links, both ways.
	other := h.call("POST", in+"/issues", `{"title":"Another"}`).want(t, 201, "").field(t, "id")
	h.call("POST", "/api/issues/"+other+"/approvals", `{"approvalId":"`+asked.field(t, "id")+`"}`).want(t, 201, `"status":"approved"`)
	h.call("DELETE", "/api/issues/"+other+"/approvals/"+asked.field(t, "id"), "").want(t, 200, `"ok":true`)
	h.call("GET", "/api/issues/"+other+"/approvals", "").want(t, 200, "[]")
	h.call("POST", "/api/issues/"+other+"/approvals", `{"approvalId":"`+other+`"}`).want(t, 404, "Approval not found")

	// Nothing shows a secret, nor to another company that there is anything.
	for _, path := range []string{one, in + "/approvals", in + "/activity", "/api/v1/mesh/ledger/entries", in + "/agents", one + "/issues"} {
		if a := h.call("GET", path, "").want(t, 200, ""); strings.Contains(string(a.body), canary) {
			t.Errorf("%s shows a secret: %s", path, a.body)
		}
	}
	rival := h.harness.company("Rival")
	spy := h.call("POST", "/api/companies/"+rival+"/agents", `{"name":"Spy"}`).want(t, 201, "").field(t, "id")
	token := h.call("POST", "/api/agents/"+spy+"/keys", `{"name":"k"}`).want(t, 201, "").field(t, "token")
	as := "Authorization: Bearer " + token
	h.call("GET", one, "", as).want(t, 404, "Approval not found")
	h.call("POST", one+"/comments", `{"body":"hm"}`, as).want(t, 404, "Approval not found")
	h.call("GET", in+"/approvals", "", as).want(t, 403, "Agent key cannot access another company")
	h.call("POST", in+"/agent-hires", `{"name":"Mole"}`, as).want(t, 403, "Agent key cannot access another company")
}

func TestAHireThatIsRefusedAnswersWhyAndStaysOpen(t *testing.T) {
	t.Parallel()
	h := newTeam(t)
	in := "/api/companies/" + h.company
	id := h.call("POST", in+"/approvals", `{"type":"hire_agent","payload":{"name":"Carl","reportsTo":"`+h.worker+`"}}`).want(t, 201, "").field(t, "id")
	h.call("POST", "/api/agents/"+h.worker+"/terminate", "").want(t, 200, "")
	h.call("POST", "/api/approvals/"+id+"/approve", `{}`).want(t, 409, `"error":"Cannot report to terminated agents"`).want(t, 409, `"status":"pending"`)
	h.call("GET", "/api/approvals/"+id, "").want(t, 200, `"refused":{"error":"Cannot report to terminated agents"`)
	h.call("POST", "/api/approvals/"+id+"/reject", `{}`).want(t, 200, `"refused":null`)
}

func TestHiresThroughTheAPI(t *testing.T) {
	t.Parallel()
	h := newTeam(t)
	in := "/api/companies/" + h.company
	h.call("POST", in+"/agent-hires", `{"role":"qa"}`).want(t, 400, `"path":["name"]`)
	h.call("POST", in+"/agent-hires", `{"name":"Quinn","role":"qa","desiredSkills":["paperclip",{"key":"x","versionId":null}]}`).want(t, 201, `"approval":null`)

	// An agent's hire always asks, and the agent that waits has no way in.
	asked := h.call("POST", in+"/agent-hires", `{"name":"Dora","desiredSkills":["paperclip"],"budgetMonthlyCents":700,
		"adapterConfig":{"env":{"A":"`+canary+`"}},"permissions":{"canAssignTasks":true}}`, h.as()).want(t, 201, `"status":"pending_approval"`)
	if strings.Contains(string(asked.body), canary) {
		t.Errorf("a hire shows a secret: %s", asked.body)
	}
	list := h.call("GET", in+"/approvals?status=pending&type=hire_agent", "").want(t, 200, `"desiredSkills":["paperclip"]`)
	var waiting []struct{ ID, AgentID string }
	if err := json.Unmarshal(list.body, &waiting); err != nil || len(waiting) != 1 {
		t.Fatalf("waiting: %s, %v", list.body, err)
	}
	id, dora := waiting[0].ID, waiting[0].AgentID
	h.call("POST", "/api/agents/"+dora+"/keys", `{"name":"k"}`).want(t, 409, "pending approval")
	h.call("POST", "/api/agents/"+dora+"/heartbeat/invoke", "").want(t, 409, "not invokable")
	h.call("POST", "/api/approvals/"+id+"/approve", `{}`).want(t, 200, `"status":"approved"`)
	h.call("GET", "/api/agents/"+dora, "").want(t, 200, `"status":"idle"`).want(t, 200, `"budgetMonthlyCents":700`)

	h.call("PATCH", "/api/agents/"+h.worker+"/permissions", `{"canCreateAgents":false,"canAssignTasks":false}`).want(t, 200, `"canCreateAgents":false`)
	h.call("POST", in+"/agent-hires", `{"name":"Evan"}`, h.as()).want(t, 403, "Missing permission: agents:create")
	h.call("POST", in+"/agents", `{"name":"Evan"}`, h.as()).want(t, 403, "Board access required")
}

func TestTheStrategyGateThroughTheAPI(t *testing.T) {
	t.Parallel()
	h := newTeam(t)
	in := "/api/companies/" + h.company
	token := h.call("POST", "/api/agents/"+h.boss+"/keys", `{"name":"k"}`).want(t, 201, "").field(t, "token")
	run := h.running(h.company, h.boss)
	as := []string{"Authorization: Bearer " + token, "X-Paperclip-Run-Id: " + run}
	h.call("POST", in+"/issues", `{"title":"a draft","assigneeAgentId":"`+h.worker+`"}`, as...).want(t, 201, `"status":"backlog"`)
	h.call("POST", in+"/issues", `{"title":"now","status":"todo","assigneeAgentId":"`+h.worker+`"}`, as...).want(t, 409, `"code":"ceo_strategy_required"`)
	h.call("GET", in, "").want(t, 200, `"requireBoardApprovalForCeoStrategy":true`).want(t, 200, `"strategyApprovalId":null`)
	id := h.call("POST", in+"/approvals", `{"type":"approve_ceo_strategy","payload":{"plan":"conquer"}}`, as...).want(t, 201, "").field(t, "id")
	h.call("POST", "/api/approvals/"+id+"/approve", `{}`).want(t, 200, "")
	h.call("GET", in, "").want(t, 200, `"strategyApprovalId":"`+id+`"`)
	h.call("POST", in+"/issues", `{"title":"now","status":"todo","assigneeAgentId":"`+h.worker+`"}`, as...).want(t, 201, `"status":"todo"`)
	h.call("PATCH", in, `{"requireBoardApprovalForCeoStrategy":false}`).want(t, 200, `"requireBoardApprovalForCeoStrategy":false`)
}

func TestAttentionListsWhatWaitsForAPerson(t *testing.T) {
	t.Parallel()
	h := newTeam(t)
	in := "/api/companies/" + h.company
	h.call("GET", in+"/attention", "").want(t, 200, `"totalCount":0`).want(t, 200, `"approval":0`)
	issue := h.call("POST", in+"/issues", `{"title":"Stuck","status":"blocked","unblockDescriptor":{"owner":"board","action":"Pay the bill"}}`).want(t, 201, "").field(t, "id")
	h.call("POST", in+"/approvals", `{"type":"request_board_approval","payload":{"summary":"a yacht"},"issueIds":["`+issue+`"]}`, h.as()).want(t, 201, "")
	h.call("PATCH", "/api/agents/"+h.worker+"/budgets", `{"budgetMonthlyCents":100}`).want(t, 200, "")
	spend := func(cents string) {
		h.call("POST", in+"/cost-events", `{"agentId":"`+h.worker+`","provider":"x","model":"y","costCents":`+cents+`,"occurredAt":"2026-11-21T03:00:00.000Z"}`).want(t, 201, "")
	}
	spend("85")
	h.call("GET", in+"/attention", "").want(t, 200, `"budget_alert":1`).want(t, 200, `"summaryExcerpt":"a yacht"`).want(t, 200, `"originAgentName":"Bob Builder"`).
		want(t, 200, `"whyNow":"Pay the bill"`).want(t, 200, `"approval":1`)
	spend("20") // now the hard stop asks, instead of the warning
	all := h.call("GET", in+"/attention", "", h.as()).want(t, 200, `"budget_alert":0`).want(t, 200, `"approval":2`)
	var feed attentionFeed
	if err := json.Unmarshal(all.body, &feed); err != nil {
		t.Fatal(err)
	}
	seen := []string{}
	for cursor := ""; ; {
		var page attentionFeed
		a := h.call("GET", in+"/attention?limit=1&cursor="+cursor, "").want(t, 200, "")
		if err := json.Unmarshal(a.body, &page); err != nil || len(page.Items) != 1 || page.Total != feed.Total {
			t.Fatalf("a page: %v %s", err, a.body)
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
	h.call("GET", in+"/attention?cursor=nonsense", "").want(t, 400, "Invalid cursor")
	h.call("GET", in+"/attention?activitySince=2099-01-01", "").want(t, 200, `"totalCount":0`)
}
