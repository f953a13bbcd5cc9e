package api_test

import (
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/ledger"
)

// What a request asks for besides plain fields reaches the rules and shows in answers.
func TestRequestsAreCarriedOutInFull(t *testing.T) {
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Orders"))
	in := "/api/companies/" + string(of)
	made := h.Call("POST", in+"/projects",
		`{"name":"Site","repositoryUrls":["https://example.org/a.git","https://example.org/b","https://EXAMPLE.org/a.git"]}`).
		Want(t, 201, `"repoUrl":"https://example.org/a.git"`)
	if n := len(made.Decode(t).(map[string]any)["workspaces"].([]any)); n != 2 {
		t.Errorf("%d workspaces, want 2", n)
	}
	project := made.Field(t, "id")
	h.Call("POST", in+"/projects",
		`{"name":"Two","repositoryUrls":["https://example.org/a.git"],"workspace":{"cwd":"/tmp"}}`).
		Want(t, 422, "either workspace or repositoryUrls")
	h.Call("POST", in+"/projects", `{"name":"Two","repositoryIds":["7"]}`).Want(t, 422, "give repositoryUrls")
	h.Call("POST", in+"/projects", `{"name":"Two","repositoryUrls":["no url"]}`).Want(t, 400, "repositoryUrls")

	agent, rev := h.NewAgent(of, "Ada", "true"), h.NewAgent(of, "Rev", "true")
	source := h.Call("POST", in+"/issues",
		`{"title":"Source","status":"todo","assigneeAgentId":"`+agent+`","projectId":"`+project+`"}`).Want(t, 201, "").
		Field(t, "id")
	h.Start(of, apitest.FirstOf(t, h.Call("GET", in+"/heartbeat-runs?issueId="+source, "")))
	space := apitest.FirstOf(t, h.Call("GET", in+"/execution-workspaces", ""))
	inherit := `"inheritExecutionWorkspaceFromIssueId":"` + source + `"`
	next := h.Call("POST", in+"/issues", `{"title":"Next",`+inherit+`}`).
		Want(t, 201, `"executionWorkspaceId":"`+space+`"`).Want(t, 201, `"projectId":"`+project+`"`).Field(t, "id")
	h.Call("GET", "/api/issues/"+next+"/heartbeat-context", "").
		Want(t, 200, `"currentExecutionWorkspace":{"id":"`+space+`"`)
	h.Call("POST", "/api/issues/"+source+"/children", `{"title":"Part",`+inherit+`}`).Want(t, 201, space)
	plain := h.Call("POST", in+"/issues", `{"title":"Plain"}`).Want(t, 201, "").Field(t, "id")
	h.Call("PATCH", "/api/issues/"+plain, `{`+inherit+`}`).Want(t, 200, space)
	elsewhere := h.Call("POST", "/api/companies/"+h.Company("Elsewhere")+"/issues", `{"title":"Theirs"}`).Want(t, 201, "").
		Field(t, "id")
	h.Call("POST", in+"/issues", `{"title":"x","inheritExecutionWorkspaceFromIssueId":"`+elsewhere+`"}`).
		Want(t, 404, "inherit")

	work := h.Call("POST", in+"/issues",
		`{"title":"Work","status":"in_progress","assigneeUserId":"local-board",`+
			`"executionPolicy":{"stages":[{"type":"review","participants":[{"type":"agent","agentId":"`+rev+`"}]}]}}`).
		Want(t, 201, "").Field(t, "id")
	h.Call("PATCH", "/api/issues/"+work, `{"reviewRequest":{"instructions":"Look at the welds"}}`).
		Want(t, 422, "no_stage_pending")
	h.Call("PATCH", "/api/issues/"+work, `{"reviewRequest":{}}`).Want(t, 400, "instructions")
	h.Call("PATCH", "/api/issues/"+work,
		`{"status":"done","comment":"Look","reviewRequest":{"instructions":"Look at the welds"}}`).
		Want(t, 200, `"reviewRequest":{"instructions":"Look at the welds"}`)
	h.Call("GET", "/api/issues/"+work+"/heartbeat-context", "").
		Want(t, 200, `"reviewRequest":{"instructions":"Look at the welds"}`)
	h.Call("PATCH", "/api/issues/"+work, `{"reviewRequest":null}`).Want(t, 200, `"reviewRequest":null`)
}

// An issue in review names the confirmation by which that is asked for, and its review
// policy says who decides it.
func TestAReviewIsAskedForByAnInteraction(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	in := "/api/companies/" + h.Company("Reviews")
	issue := "/api/issues/" + h.Call("POST", in+"/issues",
		`{"title":"Work","status":"in_progress","assigneeUserId":"local-board","reviewPolicy":"not_creator"}`).
		Want(t, 201, "").Field(t, "id")
	asked := h.Call("POST", issue+"/interactions",
		`{"kind":"request_confirmation","payload":{"version":1,"prompt":"Good?"}}`).Want(t, 201, "").Field(t, "id")
	name := `"reviewInteractionId":"` + asked + `"`
	h.Call("PATCH", issue, `{"title":"Works",`+name+`}`).Want(t, 422, "in_review")
	h.Call("PATCH", issue, `{"status":"in_review","reviewInteractionId":"`+api.NewID()+`"}`).
		Want(t, 404, "no such interaction")
	h.Call("PATCH", issue, `{"status":"in_review",`+name+`}`).
		Want(t, 200, `"reviewInteractionId":{"from":null,"to":"`+asked+`"}`)
	h.Call("POST", issue+"/interactions/"+asked+"/accept", `{}`).Want(t, 403, "review_policy_denied")
	h.Call("PATCH", issue, `{"reviewPolicy":"human_only"}`).Want(t, 200, "")
	h.Call("POST", issue+"/interactions/"+asked+"/accept", `{}`).Want(t, 200, `"status":"accepted"`)
}
