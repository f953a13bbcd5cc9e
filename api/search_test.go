package api_test

import (
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestSearchFindsWhatPeopleWrote(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	in := "/api/companies/" + string(of)
	issue := h.IssueOf(of, "Build an arm")
	h.IssueOf(of, "Build a leg")
	h.Call("POST", "/api/issues/"+issue+"/comments", `{"body":"The Zirconium joint squeaks"}`).Want(t, 201, "")
	h.Call("PUT", "/api/issues/"+issue+"/documents/plan",
		`{"format":"markdown","body":"# Plan\n\nOil the palladium bearing"}`).Want(t, 201, "")
	h.Call("POST", in+"/projects", `{"name":"Zirconium mine"}`).Want(t, 201, "")
	for q, text := range map[string]string{
		"zirconium":           `"matchedFields":["comment"]`,
		"PALLADIUM":           `"matchedFields":["document"]`,
		"arm+zirconium":       `"countsByType":{"agent":0,"artifact":0,"comment":1,"document":0,"issue":1,"project":0}`,
		"palladium+zirconium": `"matchedFields":["document","comment"]`,
		"mine":                `"type":"project"`,
	} {
		h.Call("GET", in+"/search?q="+q, "").Want(t, 200, text)
	}
	h.Call("GET", in+"/search?q=leg+zirconium", "").Want(t, 200, `"results":[]`)
	for _, q := range []string{"squeaks", "palladium"} {
		h.Call("GET", in+"/issues?q="+q, "").Want(t, 200, issue)
	}
	h.Call("GET", in+"/issues?q=rust", "").Want(t, 200, "[]")
	id := h.Call("GET", "/api/issues/"+issue+"/comments", "").Decode(t).([]any)[0].(map[string]any)["id"].(string)
	h.Call("DELETE", "/api/issues/"+issue+"/comments/"+id, "").Want(t, 200, "")
	h.Call("GET", in+"/issues?q=squeaks", "").Want(t, 200, "[]")
}
