package api

import (
	"testing"
)

// What a request asks for besides plain fields reaches the rules and shows in answers.
func TestRequestsAreCarriedOutInFull(t *testing.T) {
	h := newHarness(t)
	of := h.company("Orders")
	in := "/api/companies/" + of
	made := h.call("POST", in+"/projects", `{"name":"Site","repositoryUrls":["https://example.org/a.git","https://example.org/b","https://EXAMPLE.org/a.git"]}`).want(t, 201, `"repoUrl":"https://example.org/a.git"`)
	if n := len(made.decode(t).(map[string]any)["workspaces"].([]any)); n != 2 {
		t.Errorf("%d workspaces, want 2", n)
	}
	project := made.field(t, "id")
	h.call("POST", in+"/projects", `{"name":"Two","repositoryUrls":["https://example.org/a.git"],"workspace":{"cwd":"/tmp"}}`).want(t, 422, "either workspace or repositoryUrls")
	h.call("POST", in+"/projects", `{"name":"Two","repositoryIds":["7"]}`).want(t, 422, "give repositoryUrls")
	h.call("POST", in+"/projects", `{"name":"Two","repositoryUrls":["no url"]}`).want(t, 400, "repositoryUrls")

	agent, rev := h.newAgent(of, "Ada", "true"), h.newAgent(of, "Rev", "true")
	source := h.call("POST", in+"/issues", `{"title":"Source","status":"todo","assigneeAgentId":"`+agent+`","projectId":"`+project+`"}`).want(t, 201, "").field(t, "id")
	h.start(of, firstOf(t, h.call("GET", in+"/heartbeat-runs?issueId="+source, "")))
	space := firstOf(t, h.call("GET", in+"/execution-workspaces", ""))
	inherit := `"inheritExecutionWorkspaceFromIssueId":"` + source + `"`
	next := h.call("POST", in+"/issues", `{"title":"Next",`+inherit+`}`).want(t, 201, `"executionWorkspaceId":"`+space+`"`).want(t, 201, `"projectId":"`+project+`"`).field(t, "id")
	h.call("GET", "/api/issues/"+next+"/heartbeat-context", "").want(t, 200, `"currentExecutionWorkspace":{"id":"`+space+`"`)
	h.call("POST", "/api/issues/"+source+"/children", `{"title":"Part",`+inherit+`}`).want(t, 201, space)
	plain := h.call("POST", in+"/issues", `{"title":"Plain"}`).want(t, 201, "").field(t, "id")
	h.call("PATCH", "/api/issues/"+plain, `{`+inherit+`}`).want(t, 200, space)
	elsewhere := h.call("POST", "/api/companies/"+h.company("Elsewhere")+"/issues", `{"title":"Theirs"}`).want(t, 201, "").field(t, "id")
	h.call("POST", in+"/issues", `{"title":"x","inheritExecutionWorkspaceFromIssueId":"`+elsewhere+`"}`).want(t, 404, "inherit")

	work := h.call("POST", in+"/issues", `{"title":"Work","status":"in_progress","assigneeUserId":"local-board","executionPolicy":{"stages":[{"type":"review","participants":[{"type":"agent","agentId":"`+rev+`"}]}]}}`).want(t, 201, "").field(t, "id")
	h.call("PATCH", "/api/issues/"+work, `{"reviewRequest":{"instructions":"Look at the welds"}}`).want(t, 422, "no_stage_pending")
	h.call("PATCH", "/api/issues/"+work, `{"reviewRequest":{}}`).want(t, 400, "instructions")
	h.call("PATCH", "/api/issues/"+work, `{"status":"done","comment":"Look","reviewRequest":{"instructions":"Look at the welds"}}`).want(t, 200, `"reviewRequest":{"instructions":"Look at the welds"}`)
	h.call("GET", "/api/issues/"+work+"/heartbeat-context", "").want(t, 200, `"reviewRequest":{"instructions":"Look at the welds"}`)
	h.call("PATCH", "/api/issues/"+work, `{"reviewRequest":null}`).want(t, 200, `"reviewRequest":null`)
}

// An issue in review names the confirmation by which that is asked for, and its review
// policy says who decides it.
func TestAReviewIsAskedForByAnInteraction(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	in := "/api/companies/" + h.company("Reviews")
	issue := "/api/issues/" + h.call("POST", in+"/issues", `{"title":"Work","status":"in_progress","assigneeUserId":"local-board","reviewPolicy":"not_creator"}`).want(t, 201, "").field(t, "id")
	asked := h.call("POST", issue+"/interactions", `{"kind":"request_confirmation","payload":{"version":1,"prompt":"Good?"}}`).want(t, 201, "").field(t, "id")
	name := `"reviewInteractionId":"` + asked + `"`
	h.call("PATCH", issue, `{"title":"Works",`+name+`}`).want(t, 422, "in_review")
	h.call("PATCH", issue, `{"status":"in_review","reviewInteractionId":"`+NewID()+`"}`).want(t, 404, "no such interaction")
	h.call("PATCH", issue, `{"status":"in_review",`+name+`}`).want(t, 200, `"reviewInteractionId":{"from":null,"to":"`+asked+`"}`)
	h.call("POST", issue+"/interactions/"+asked+"/accept", `{}`).want(t, 403, "review_policy_denied")
	h.call("PATCH", issue, `{"reviewPolicy":"human_only"}`).want(t, 200, "")
	h.call("POST", issue+"/interactions/"+asked+"/accept", `{}`).want(t, 200, `"status":"accepted"`)
}
