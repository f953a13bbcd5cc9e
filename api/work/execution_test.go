package work_test

import (
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
)

func TestExecutionPoliciesThroughTheAPI(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	for policy, at := range map[string]string{
		`7`: `]`,
		`{"stages":[{"type":"guess","participants":[{"type":"user","userId":"u"}]}]}`: `,"stages",0,"type"]`,
		`{"stages":[{"type":"review"}]}`:                                              `,"stages",0,"participants"]`,
		`{"stages":[{"type":"review","participants":[{"type":"agent"}]}]}`:            `,"stages",0,"participants",0]`,
		`{"stages":[],"maxReviewRounds":0}`:                                           `,"maxReviewRounds"]`,
	} {
		h.Call("POST", "/api/companies/"+of+"/issues", `{"title":"x","executionPolicy":`+policy+`}`).
			Want(t, 400, `"path":["executionPolicy"`+at)
	}
	h.Call("POST", "/api/companies/"+of+"/issues",
		`{"title":"x","executionPolicy":{"stages":[{"type":"review","participants":[{"type":"user",`+
			`"userId":"somebody"}]}]}}`).Want(t, 404, "participants.0.userId")
	eve := h.Call("POST", "/api/companies/"+of+"/agents", `{"name":"Eve"}`).Want(t, 201, "").Field(t, "id")
	id := h.Call("POST", "/api/companies/"+of+"/issues",
		`{"title":"Work","status":"in_progress","assigneeUserId":"`+api.LocalBoard+
			`","executionPolicy":{"mode":"normal","stages":[{"type":"review","participants":[{"type":"agent","agentId":"`+eve+
			`"}]}]}}`).
		Want(t, 201, `"executionState":null`).Field(t, "id")
	h.Call("PATCH", "/api/issues/"+id, `{"status":"done"}`).Want(t, 200, `"status":"in_review"`).
		Want(t, 200, `"currentParticipant":{"type":"agent","agentId":"`+eve+`","userId":null}`)
	h.Call("GET", "/api/issues/"+id+"/execution-decisions", "").Want(t, 200, "[]")
	h.Call("PATCH", "/api/issues/"+id, `{"executionPolicy":null}`).Want(t, 200, `"executionPolicy":null`)
	h.Call("PATCH", "/api/issues/"+id, `{"status":"done"}`).Want(t, 200, `"status":"done"`)
}
