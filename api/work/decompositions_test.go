package work_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
)

func TestPlansAreDecomposedAndTextsExtracted(t *testing.T) {
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	issue := h.Call("POST", "/api/companies/"+of+"/issues",
		`{"title":"Plan the bracket","description":"See https://example.com/bracket."}`).Want(t, 201, "").Field(t, "id")
	on := "/api/issues/" + issue
	rev := h.Call("PUT", on+"/documents/plan", `{"title":"Plan","format":"markdown","body":"draw, cut"}`).Want(t, 201, "").
		Field(t, "latestRevisionId")
	body := `{"acceptedPlanRevisionId":"` + rev +
		`","children":[{"title":"Draw"},{"title":"Cut","blockedByIssueIds":["#1"]}]}`
	h.Call("GET", on+"/accepted-plan-decompositions", "").Want(t, 200, "[]")
	h.Call("POST", on+"/accepted-plan-decompositions", body).
		Want(t, 422, "acceptedPlanRevisionId must have an accepted plan confirmation")
	h.Call("POST", on+"/accepted-plan-decompositions", strings.Replace(body, "#1", "first", 1)).
		Want(t, 400, "blockedByIssueIds")
	h.Call("POST", on+"/accepted-plan-decompositions", `{"acceptedPlanRevisionId":"`+rev+`","children":[]}`).
		Want(t, 400, "children")
	ask := h.Call("POST", on+"/interactions",
		`{"kind":"request_confirmation","payload":{"version":1,"prompt":"Agreed?",`+
			`"target":{"type":"issue_document","issueId":"`+issue+`","key":"plan","revisionId":"`+rev+`","revisionNumber":1}}}`).
		Want(t, 201, "").Field(t, "id")
	h.Call("POST", on+"/interactions/"+ask+"/accept", `{}`).Want(t, 200, "")
	h.Call("POST", on+"/accepted-plan-decompositions", body).Want(t, 200, `"newlyCreatedChildIssueIds":["`)
	h.Call("POST", on+"/accepted-plan-decompositions", body).Want(t, 200, `"newlyCreatedChildIssueIds":[]`)
	h.Call("GET", on+"/accepted-plan-decompositions", "").Want(t, 200, `"identifier":"ACM-3","title":"Cut"`)

	// No adapter's session has a goal; the answer says so with a code that clients branch
	// on.
	agent := h.Call("POST", "/api/companies/"+of+"/agents", `{"name":"Ada","adapterType":"process"}`).Want(t, 201, "").
		Field(t, "id")
	h.Call("GET", on+"/runner-goal", "").Want(t, 200, `"reasonCode":"no_agent_selected"`)
	act := `{"requestId":"r","agentId":"` + agent + `","expectedRevision":0,"action":"create","objective":"x"}`
	h.Call("POST", on+"/runner-goal/actions", act).Want(t, 422, `"code":"agent_not_assigned"`)
	h.Call("POST", on+"/runner-goal/actions", strings.Replace(act, agent, api.NewID(), 1)).Want(t, 404, "Agent not found")
	h.Call("PATCH", on, `{"assigneeAgentId":"`+agent+`"}`).Want(t, 200, "")
	h.Call("GET", on+"/runner-goal", "").Want(t, 200, `"adapterType":"process"`)
	h.Call("POST", on+"/runner-goal/actions", act).Want(t, 422, `"code":"persistent_session_goal_extension_required"`)

	find := "/api/companies/" + of + "/search/extract?contains="
	h.Call("GET", find+"bracket&kind=url", "").Want(t, 200, `"value":"https://example.com/bracket"`)
	h.Call("GET", find+"draw&scope=documents", "").Want(t, 200, `"documentKey":"plan"`)
	h.Call("GET", find+"BRACKET&scope=issues&status=done", "").Want(t, 200, `"results":[]`)
	for query, why := range map[string]string{"x": "contains must be at least 2 characters", "xx&kind=all": "kind must be",
		"xx&scope=x": "scope must be", "xx&status=x": "Invalid status",
		"xx&updatedWithin=9y":                         "Invalid updatedWithin",
		"xx&updatedWithin=9d&updatedAfter=2026-01-01": "cannot be used together", "xx&limit=x": "Invalid limit"} {
		h.Call("GET", find+query, "").Want(t, 400, why)
	}
}
