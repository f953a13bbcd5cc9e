package api

import "testing"

func TestExecutionPoliciesThroughTheAPI(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := h.company("Acme")
	for _, policy := range []string{`7`, `{"stages":[{"type":"guess","participants":[{"type":"user","userId":"u"}]}]}`, `{"stages":[{"type":"review"}]}`,
		`{"stages":[{"type":"review","participants":[{"type":"agent"}]}]}`, `{"stages":[],"maxReviewRounds":0}`} {
		h.call("POST", "/api/companies/"+of+"/issues", `{"title":"x","executionPolicy":`+policy+`}`).want(t, 400, "")
	}
	h.call("POST", "/api/companies/"+of+"/issues", `{"title":"x","executionPolicy":{"stages":[{"type":"review","participants":[{"type":"user","userId":"somebody"}]}]}}`).want(t, 404, "participants.0.userId")
	eve := h.call("POST", "/api/companies/"+of+"/agents", `{"name":"Eve"}`).want(t, 201, "").field(t, "id")
	id := h.call("POST", "/api/companies/"+of+"/issues", `{"title":"Work","status":"in_progress","assigneeUserId":"`+LocalBoard+`","executionPolicy":{"mode":"normal","stages":[{"type":"review","participants":[{"type":"agent","agentId":"`+eve+`"}]}]}}`).
		want(t, 201, `"executionState":null`).field(t, "id")
	h.call("PATCH", "/api/issues/"+id, `{"status":"done"}`).want(t, 200, `"status":"in_review"`).want(t, 200, `"currentParticipant":{"type":"agent","agentId":"`+eve+`","userId":null}`)
	h.call("GET", "/api/issues/"+id+"/execution-decisions", "").want(t, 200, "[]")
	h.call("PATCH", "/api/issues/"+id, `{"executionPolicy":null}`).want(t, 200, `"executionPolicy":null`)
	h.call("PATCH", "/api/issues/"+id, `{"status":"done"}`).want(t, 200, `"status":"done"`)
}
