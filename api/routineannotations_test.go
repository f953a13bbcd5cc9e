package api

import (
	"strings"
	"testing"
)

func TestRemarksOnTheDescriptionOfARoutine(t *testing.T) {
	h := newHarness(t)
	of := h.company("Acme")
	routine := h.call("POST", "/api/companies/"+of+"/routines", `{"title":"Report","description":"Read the logs, then write."}`).want(t, 201, "").field(t, "id")
	text := func() (id, number string) {
		d := h.call("GET", "/api/routines/"+routine, "").want(t, 200, "").decode(t).(map[string]any)["descriptionDocument"].(map[string]any)
		return d["latestRevisionId"].(string), string(rune('0' + int(d["latestRevisionNumber"].(float64))))
	}
	on := "/api/routines/" + routine + "/description/annotations"
	rev, number := text()
	body := `{"baseRevisionId":"` + rev + `","baseRevisionNumber":` + number + `,"selector":{"quote":{"exact":"the logs"},"position":{"normalizedStart":5,"normalizedEnd":13,"markdownStart":5,"markdownEnd":13}},"body":"Which?"}`
	h.call("GET", on, "").want(t, 200, "[]")
	h.call("POST", on, strings.Replace(body, "the logs", "no logs", 1)).want(t, 422, "The revision does not contain the selected text")
	h.call("POST", on, strings.Replace(body, rev, NewID(), 1)).want(t, 409, "The description has no such revision")
	a := h.call("POST", on, body).want(t, 201, `"anchorState":"active"`)
	if a.field(t, "routineId") != routine || a.decode(t).(map[string]any)["issueId"] != nil {
		t.Errorf("%s", a.body)
	}
	thread := on + "/" + a.field(t, "id")
	h.call("POST", thread+"/comments", `{"body":"Those of the night."}`).want(t, 201, "Those of the night")
	h.call("POST", thread+"/comments", `{"body":"x","issueCommentId":"`+NewID()+`"}`).want(t, 404, "Comment not found")
	h.call("PATCH", thread, `{"status":"resolved"}`).want(t, 200, `"resolvedByUserId":"local-board"`)
	h.call("GET", on+"?status=open", "").want(t, 200, "[]")
	h.call("GET", on+"?status=all&includeComments=true", "").want(t, 200, `"body":"Which?"`) // as the page of an issue asks
	h.call("GET", on+"?status=all&includeComments=false", "").want(t, 200, `"comments":[]`)
	h.call("GET", on+"?status=gone", "").want(t, 400, "open, resolved or all")
	h.call("GET", on+"?includeComments=maybe", "").want(t, 400, "includeComments")
	h.call("PATCH", "/api/routines/"+routine, `{"description":"Only write."}`).want(t, 200, "")
	h.call("GET", thread, "").want(t, 200, `"anchorState":"orphaned"`)
	h.call("POST", on, strings.Replace(body, "Which?", "About what was", 1)).want(t, 201, "orphaned") // a kept version
	h.call("GET", on+"/"+NewID(), "").want(t, 404, "Annotation thread not found")
	h.call("DELETE", "/api/routines/"+routine, "").want(t, 200, "")
	h.call("GET", on, "").want(t, 404, "Routine not found")
}
