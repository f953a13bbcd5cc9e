package api

import (
	"fmt"
	"testing"
)

func TestAnnotationsThroughTheAPI(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	issue := "/api/issues/" + h.issueOf(h.company("Acme"), "Plan it")
	doc := issue + "/documents/plan"
	path := doc + "/annotations"
	h.call("GET", path, "").want(t, 404, "Document not found")
	first := h.call("PUT", doc, `{"format":"markdown","body":"# Plan\n\nbuild the arm first"}`).want(t, 201, "").field(t, "latestRevisionId")
	h.call("GET", path, "").want(t, 200, "[]")
	body := func(revision string, number int, exact string) string {
		return fmt.Sprintf(`{"baseRevisionId":%q,"baseRevisionNumber":%d,"selector":{"quote":{"exact":%q,"prefix":"build "},"position":{"normalizedStart":6,"normalizedEnd":13,"markdownStart":14,"markdownEnd":21}},"body":"Which arm?"}`,
			revision, number, exact)
	}
	h.call("POST", path, `{"body":"x"}`).want(t, 400, "selector")
	h.call("POST", path, body(first, 1, "the leg")).want(t, 422, "The revision does not contain the selected text")
	h.call("POST", path, body(first, 2, "the arm")).want(t, 409, "currentRevisionId")
	h.call("POST", path, body(NewID(), 1, "the arm")).want(t, 409, "currentRevisionId")
	id := h.call("POST", path, body(first, 1, "the arm")).want(t, 201, `"anchorState":"active"`).want(t, 201, `"body":"Which arm?"`).field(t, "id")
	h.call("POST", path+"/"+id+"/comments", `{"body":"The left one","issueCommentId":"`+NewID()+`"}`).want(t, 404, "Comment not found")
	h.call("POST", path+"/"+id+"/comments", `{"body":" "}`).want(t, 400, "")
	h.call("POST", path+"/"+id+"/comments", `{"body":"The left one"}`).want(t, 201, `"body":"The left one"`)
	h.call("PATCH", path+"/"+id, `{"status":"gone"}`).want(t, 400, "status")
	h.call("PATCH", path+"/"+id, `{"status":"resolved"}`).want(t, 200, `"resolvedByUserId":"`+LocalBoard)
	h.call("GET", path+"?status=open", "").want(t, 200, "[]")
	h.call("GET", path+"?status=all&includeComments=true", "").want(t, 200, `"body":"Which arm?"`) // as the page of an issue asks
	h.call("GET", path+"?status=all&includeComments=false", "").want(t, 200, `"comments":[]`)
	h.call("GET", path+"?status=gone", "").want(t, 400, "open, resolved or all")
	h.call("GET", path+"?includeComments=maybe", "").want(t, 400, "includeComments")
	h.call("POST", path+"/"+id+"/comments", `{"body":"Or not"}`).want(t, 201, `"status":"open"`)
	h.call("PUT", doc, `{"format":"markdown","body":"# Plan","baseRevisionId":"`+first+`"}`).want(t, 200, "")
	h.call("GET", path+"/"+id, "").want(t, 200, `"anchorState":"orphaned"`).want(t, 200, `"currentRevisionNumber":2`)
	h.call("GET", path+"/"+NewID(), "").want(t, 404, "Annotation thread not found")
	h.call("DELETE", doc, "").want(t, 200, "")
	h.call("PUT", doc, `{"format":"markdown","body":"again"}`).want(t, 201, "")
	h.call("GET", path, "").want(t, 200, "[]")
}
