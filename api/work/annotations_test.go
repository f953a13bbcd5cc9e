package work_test

import (
	"fmt"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestAnnotationsThroughTheAPI(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	issue := "/api/issues/" + h.IssueOf(ledger.CompanyID(h.Company("Acme")), "Plan it")
	doc := issue + "/documents/plan"
	path := doc + "/annotations"
	h.Call("GET", path, "").Want(t, 404, "Document not found")
	first := h.Call("PUT", doc, `{"format":"markdown","body":"# Plan\n\nbuild the arm first"}`).Want(t, 201, "").
		Field(t, "latestRevisionId")
	h.Call("GET", path, "").Want(t, 200, "[]")
	body := func(revision string, number int, exact string) string {
		return fmt.Sprintf(`{"baseRevisionId":%q,"baseRevisionNumber":%d,"selector":{"quote":{"exact":%q,`+
			`"prefix":"build "},"position":{"normalizedStart":6,"normalizedEnd":13,"markdownStart":14,`+
			`"markdownEnd":21}},"body":"Which arm?"}`, revision, number, exact)
	}
	h.Call("POST", path, `{"body":"x"}`).Want(t, 400, "selector")
	h.Call("POST", path, body(first, 1, "the leg")).Want(t, 422, "The revision does not contain the selected text")
	h.Call("POST", path, body(first, 2, "the arm")).Want(t, 409, "currentRevisionId")
	h.Call("POST", path, body(api.NewID(), 1, "the arm")).Want(t, 409, "currentRevisionId")
	id := h.Call("POST", path, body(first, 1, "the arm")).Want(t, 201, `"anchorState":"active"`).
		Want(t, 201, `"body":"Which arm?"`).Field(t, "id")
	h.Call("POST", path+"/"+id+"/comments", `{"body":"The left one","issueCommentId":"`+api.NewID()+`"}`).
		Want(t, 404, "Comment not found")
	h.Call("POST", path+"/"+id+"/comments", `{"body":" "}`).Want(t, 400, "A comment needs a text")
	h.Call("POST", path+"/"+id+"/comments", `{"body":"The left one"}`).Want(t, 201, `"body":"The left one"`)
	h.Call("PATCH", path+"/"+id, `{"status":"gone"}`).Want(t, 400, "status")
	h.Call("PATCH", path+"/"+id, `{"status":"resolved"}`).Want(t, 200, `"resolvedByUserId":"`+api.LocalBoard)
	h.Call("GET", path+"?status=open", "").Want(t, 200, "[]")
	h.Call("GET", path+"?status=all&includeComments=true", "").
		Want(t, 200, `"body":"Which arm?"`) // the request of the board's issue page
	h.Call("GET", path+"?status=all&includeComments=false", "").Want(t, 200, `"comments":[]`)
	h.Call("GET", path+"?status=gone", "").Want(t, 400, "open, resolved or all")
	h.Call("GET", path+"?includeComments=maybe", "").Want(t, 400, "includeComments")
	h.Call("POST", path+"/"+id+"/comments", `{"body":"Or not"}`).Want(t, 201, `"status":"open"`)
	h.Call("PUT", doc, `{"format":"markdown","body":"# Plan","baseRevisionId":"`+first+`"}`).Want(t, 200, "")
	h.Call("GET", path+"/"+id, "").Want(t, 200, `"anchorState":"orphaned"`).Want(t, 200, `"currentRevisionNumber":2`)
	h.Call("GET", path+"/"+api.NewID(), "").Want(t, 404, "Annotation thread not found")
	h.Call("DELETE", doc, "").Want(t, 200, "")
	h.Call("PUT", doc, `{"format":"markdown","body":"again"}`).Want(t, 201, "")
	h.Call("GET", path, "").Want(t, 200, "[]")
}
