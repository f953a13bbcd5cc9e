package work_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestDocumentsThroughTheAPI(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	issue := "/api/issues/" + h.IssueOf(ledger.CompanyID(h.Company("Acme")), "Plan it")
	path := issue + "/documents/plan"
	h.Call("GET", path, "").Want(t, 404, "Document not found")
	h.Call("PUT", path, `{"format":"html","body":"x"}`).Want(t, 400, "format")
	h.Call("PUT", path, `{"format":"markdown"}`).Want(t, 400, "body")
	h.Call("PUT", issue+"/documents/No%20Key", `{"format":"markdown","body":"x"}`).Want(t, 400, "Invalid document key")
	long := strings.Repeat("a \"quoted\" line\n", 40_000) // more than fits in one command
	text, _ := json.Marshal(long)
	first := h.Call("PUT", path, fmt.Sprintf(`{"format":"markdown","title":"Plan","body":%s}`, text)).Want(t, 201, "").
		Field(t, "latestRevisionId")
	if got := h.Call("GET", path, "").Want(t, 200, "").Field(t, "body"); got != long {
		t.Errorf("read %d bytes, wrote %d", len(got), len(long))
	}
	h.Call("PUT", path, `{"format":"markdown","body":"y","baseRevisionId":"00000000-0000-4000-8000-000000000000"}`).
		Want(t, 409, `"currentRevisionId":"`+first+`"`)
	second := h.Call("PUT", path, `{"format":"markdown","body":"y","baseRevisionId":"`+first+`"}`).
		Want(t, 200, `"latestBody"`)
	if second.Field(t, "body") != "y" || second.Field(t, "latestBody") != long || second.Field(t, "title") != "Plan" {
		t.Errorf("answered %.200s", second.Body)
	}
	h.Call("GET", issue, "").Want(t, 200, `"planDocument":{"id"`)
	h.Call("POST", path+"/revisions/"+first+"/restore", "{}").Want(t, 200, `"latestRevisionNumber":3`)
	h.Call("GET", path+"/annotations", "").Want(t, 200, "[]")
	h.Call("DELETE", path, "").Want(t, 200, `"ok":true`)
	h.Call("GET", issue+"/documents", "").Want(t, 200, "[]")
	h.Call("PUT", path, `{"format":"markdown","body":"`+strings.Repeat("x", 3<<20)+`"}`).
		Want(t, 413, "A document has at most 2097152 bytes")
}
