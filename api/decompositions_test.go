package api

import (
	"strings"
	"testing"
)

func TestPlansAreDecomposedAndTextsExtracted(t *testing.T) {
	h := newHarness(t)
	of := h.company("Acme")
	issue := h.call("POST", "/api/companies/"+of+"/issues", `{"title":"Plan the bracket","description":"See https://example.com/bracket."}`).want(t, 201, "").field(t, "id")
	on := "/api/issues/" + issue
	rev := h.call("PUT", on+"/documents/plan", `{"title":"Plan","format":"markdown","body":"draw, cut"}`).want(t, 201, "").field(t, "latestRevisionId")
	body := `{"acceptedPlanRevisionId":"` + rev + `","children":[{"title":"Draw"},{"title":"Cut","blockedByIssueIds":["#1"]}]}`
	h.call("GET", on+"/accepted-plan-decompositions", "").want(t, 200, "[]")
	h.call("POST", on+"/accepted-plan-decompositions", body).want(t, 422, "acceptedPlanRevisionId must have an accepted plan confirmation")
	h.call("POST", on+"/accepted-plan-decompositions", strings.Replace(body, "#1", "first", 1)).want(t, 400, "blockedByIssueIds")
	h.call("POST", on+"/accepted-plan-decompositions", `{"acceptedPlanRevisionId":"`+rev+`","children":[]}`).want(t, 400, "children")
	ask := h.call("POST", on+"/interactions", `{"kind":"request_confirmation","payload":{"version":1,"prompt":"Agreed?","target":{"type":"issue_document","issueId":"`+issue+`","key":"plan","revisionId":"`+rev+`","revisionNumber":1}}}`).want(t, 201, "").field(t, "id")
	h.call("POST", on+"/interactions/"+ask+"/accept", `{}`).want(t, 200, "")
	h.call("POST", on+"/accepted-plan-decompositions", body).want(t, 200, `"newlyCreatedChildIssueIds":["`)
	h.call("POST", on+"/accepted-plan-decompositions", body).want(t, 200, `"newlyCreatedChildIssueIds":[]`)
	h.call("GET", on+"/accepted-plan-decompositions", "").want(t, 200, `"identifier":"ACM-3","title":"Cut"`)

	// No session keeps a goal of its own, and says so in words a client can branch on.
	agent := h.call("POST", "/api/companies/"+of+"/agents", `{"name":"Ada","adapterType":"process"}`).want(t, 201, "").field(t, "id")
	h.call("GET", on+"/runner-goal", "").want(t, 200, `"reasonCode":"no_agent_selected"`)
	act := `{"requestId":"r","agentId":"` + agent + `","expectedRevision":0,"action":"create","objective":"x"}`
	h.call("POST", on+"/runner-goal/actions", act).want(t, 422, `"code":"agent_not_assigned"`)
	h.call("POST", on+"/runner-goal/actions", strings.Replace(act, agent, NewID(), 1)).want(t, 404, "Agent not found")
	h.call("PATCH", on, `{"assigneeAgentId":"`+agent+`"}`).want(t, 200, "")
	h.call("GET", on+"/runner-goal", "").want(t, 200, `"adapterType":"process"`)
	h.call("POST", on+"/runner-goal/actions", act).want(t, 422, `"code":"persistent_session_goal_extension_required"`)

	find := "/api/companies/" + of + "/search/extract?contains="
	h.call("GET", find+"bracket&kind=url", "").want(t, 200, `"value":"https://example.com/bracket"`)
	h.call("GET", find+"draw&scope=documents", "").want(t, 200, `"documentKey":"plan"`)
	h.call("GET", find+"BRACKET&scope=issues&status=done", "").want(t, 200, `"results":[]`)
	for query, why := range map[string]string{"x": "contains must be at least 2 characters", "xx&kind=all": "kind must be", "xx&scope=x": "scope must be", "xx&status=x": "Invalid status",
		"xx&updatedWithin=9y": "Invalid updatedWithin", "xx&updatedWithin=9d&updatedAfter=2026-01-01": "cannot be used together", "xx&limit=x": "Invalid limit"} {
		h.call("GET", find+query, "").want(t, 400, why)
	}
}
