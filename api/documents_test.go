package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestDocumentsThroughTheAPI(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	issue := "/api/issues/" + h.issueOf(h.company("Acme"), "Plan it")
	path := issue + "/documents/plan"
	h.call("GET", path, "").want(t, 404, "Document not found")
	h.call("PUT", path, `{"format":"html","body":"x"}`).want(t, 400, "format")
	h.call("PUT", path, `{"format":"markdown"}`).want(t, 400, "body")
	h.call("PUT", issue+"/documents/No%20Key", `{"format":"markdown","body":"x"}`).want(t, 400, "Invalid document key")
	long := strings.Repeat("a \"quoted\" line\n", 40_000) // more than one command holds
	text, _ := json.Marshal(long)
	first := h.call("PUT", path, fmt.Sprintf(`{"format":"markdown","title":"Plan","body":%s}`, text)).want(t, 201, "").field(t, "latestRevisionId")
	if got := h.call("GET", path, "").want(t, 200, "").field(t, "body"); got != long {
		t.Errorf("read %d bytes, wrote %d", len(got), len(long))
	}
	h.call("PUT", path, `{"format":"markdown","body":"y","baseRevisionId":"00000000-0000-4000-8000-000000000000"}`).want(t, 409, `"currentRevisionId":"`+first+`"`)
	second := h.call("PUT", path, `{"format":"markdown","body":"y","baseRevisionId":"`+first+`"}`).want(t, 200, `"latestBody"`)
	if second.field(t, "body") != "y" || second.field(t, "latestBody") != long || second.field(t, "title") != "Plan" {
		t.Errorf("answered %.200s", second.body)
	}
	h.call("GET", issue, "").want(t, 200, `"planDocument":{"id"`)
	h.call("POST", path+"/revisions/"+first+"/restore", "{}").want(t, 200, `"latestRevisionNumber":3`)
	h.call("GET", path+"/annotations", "").want(t, 200, "[]")
	h.call("DELETE", path, "").want(t, 200, `"ok":true`)
	h.call("GET", issue+"/documents", "").want(t, 200, "[]")
	h.call("PUT", path, `{"format":"markdown","body":"`+strings.Repeat("x", 3<<20)+`"}`).want(t, 413, "")
}
