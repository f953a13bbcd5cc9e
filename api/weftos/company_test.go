package weftos_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
)

// The documented example, shown in the kernel's types: testdata/example.json has the four answers, with names in place
// of IDs.
func TestTheDocumentedCompanyIsShownInTheKernelsTypes(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := h.Call("POST", "/api/companies", `{"name":"Acme AI Corp","description":"Automated code review company"}`).
		Want(t, 201, "").Field(t, "id")
	in := "/api/companies/" + of
	ceo := h.Call("POST", in+"/agents",
		`{"name":"agent-ceo","role":"ceo","adapterType":"process","budgetMonthlyCents":10000}`).Want(t, 201, "").
		Field(t, "id")
	reviewer := h.Call("POST", in+"/agents",
		`{"name":"agent-reviewer","role":"engineer","adapterType":"process","reportsTo":"`+ceo+
			`","budgetMonthlyCents":2000,"runtimeConfig":{"heartbeat":{"enabled":true,"intervalSec":300}}}`).Want(t, 201, "").
		Field(t, "id")
	ship := h.Call("POST", in+"/goals",
		`{"title":"ship-v1","level":"company","status":"active","ownerAgentId":"`+ceo+`"}`).Want(t, 201, "").Field(t, "id")
	review := h.Call("POST", in+"/goals",
		`{"title":"review-prs","level":"agent","status":"planned","parentId":"`+ship+`","ownerAgentId":"`+reviewer+`"}`).
		Want(t, 201, "").Field(t, "id")
	h.Call("POST", in+"/issues", `{"title":"One","goalId":"`+review+`","status":"done"}`).Want(t, 201, "")
	h.Call("POST", in+"/issues", `{"title":"Two","goalId":"`+review+`"}`).Want(t, 201, "")

	names := strings.NewReplacer(of, "acme", ceo, "agent-ceo", reviewer, "agent-reviewer", ship, "ship-v1", review,
		"review-prs")
	got := map[string]json.RawMessage{}
	for _, view := range []string{"", "/org", "/goals", "/heartbeats"} {
		text := names.Replace(string(h.Call("GET", "/api/v1/companies/"+of+view, "").Want(t, 200, "").Body))
		text = regexp.MustCompile(`"created_at":"[^"]*Z"`).ReplaceAllString(text, `"created_at":"2026-01-01T00:00:00Z"`)
		got["/api/v1/companies/acme"+view] = json.RawMessage(text)
	}
	b, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/example.json")
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != strings.TrimSpace(string(want)) {
		t.Errorf("got\n%s\nwant\n%s", b, want)
	}

	asCEO := "Authorization: Bearer " + h.Call("POST", "/api/agents/"+ceo+"/keys", `{"name":"k"}`).Want(t, 201, "").
		Field(t, "token")
	h.Call("GET", "/api/v1/companies/"+of+"/org", "", asCEO).Want(t, 200, `"agent_id":"`+reviewer+`"`)
	h.Call("GET", "/api/v1/companies/"+h.Company("Other")+"/org", "", asCEO).Want(t, 403, `"code":"FORBIDDEN"`)
	h.Call("GET", "/api/v1/companies/00000000-0000-4000-8000-000000000000/goals", "").Want(t, 404, `"code":"NOT_FOUND"`)
}
