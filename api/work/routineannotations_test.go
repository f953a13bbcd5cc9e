package work_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
)

func TestRemarksOnTheDescriptionOfARoutine(t *testing.T) {
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	routine := h.Call("POST", "/api/companies/"+of+"/routines",
		`{"title":"Report","description":"Read the logs, then write."}`).Want(t, 201, "").Field(t, "id")
	text := func() (id, number string) {
		d := h.Call("GET", "/api/routines/"+routine, "").Want(t, 200, "").
			Decode(t).(map[string]any)["descriptionDocument"].(map[string]any)
		return d["latestRevisionId"].(string), string(rune('0' + int(d["latestRevisionNumber"].(float64))))
	}
	on := "/api/routines/" + routine + "/description/annotations"
	rev, number := text()
	body := `{"baseRevisionId":"` + rev + `","baseRevisionNumber":` + number +
		`,"selector":{"quote":{"exact":"the logs"},"position":{"normalizedStart":5,"normalizedEnd":13,` +
		`"markdownStart":5,"markdownEnd":13}},"body":"Which?"}`
	h.Call("GET", on, "").Want(t, 200, "[]")
	h.Call("POST", on, strings.Replace(body, "the logs", "no logs", 1)).
		Want(t, 422, "The revision does not contain the selected text")
	h.Call("POST", on, strings.Replace(body, rev, api.NewID(), 1)).Want(t, 409, "The description has no such revision")
	a := h.Call("POST", on, body).Want(t, 201, `"anchorState":"active"`)
	if a.Field(t, "routineId") != routine || a.Decode(t).(map[string]any)["issueId"] != nil {
		t.Errorf("%s", a.Body)
	}
	thread := on + "/" + a.Field(t, "id")
	h.Call("POST", thread+"/comments", `{"body":"Those of the night."}`).Want(t, 201, "Those of the night")
	h.Call("POST", thread+"/comments", `{"body":"x","issueCommentId":"`+api.NewID()+`"}`).Want(t, 404, "Comment not found")
	h.Call("PATCH", thread, `{"status":"resolved"}`).Want(t, 200, `"resolvedByUserId":"local-board"`)
	h.Call("GET", on+"?status=open", "").Want(t, 200, "[]")
	h.Call("GET", on+"?status=all&includeComments=true", "").
		Want(t, 200, `"body":"Which?"`) // the request of the board's issue page
	h.Call("GET", on+"?status=all&includeComments=false", "").Want(t, 200, `"comments":[]`)
	h.Call("GET", on+"?status=gone", "").Want(t, 400, "open, resolved or all")
	h.Call("GET", on+"?includeComments=maybe", "").Want(t, 400, "includeComments")
	h.Call("PATCH", "/api/routines/"+routine, `{"description":"Only write."}`).Want(t, 200, "")
	h.Call("GET", thread, "").Want(t, 200, `"anchorState":"orphaned"`)
	h.Call("POST", on, strings.Replace(body, "Which?", "About what was", 1)).
		Want(t, 201, "orphaned") // on an older revision
	h.Call("GET", on+"/"+api.NewID(), "").Want(t, 404, "Annotation thread not found")
	h.Call("DELETE", "/api/routines/"+routine, "").Want(t, 200, "")
	h.Call("GET", on, "").Want(t, 404, "Routine not found")
}
