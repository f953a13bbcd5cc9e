package api

import "testing"

func TestSearchFindsWhatPeopleWrote(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := h.company("Acme")
	in := "/api/companies/" + of
	issue := h.issueOf(of, "Build an arm")
	h.issueOf(of, "Build a leg")
	h.call("POST", "/api/issues/"+issue+"/comments", `{"body":"The Zirconium joint squeaks"}`).want(t, 201, "")
	h.call("PUT", "/api/issues/"+issue+"/documents/plan", `{"format":"markdown","body":"# Plan\n\nOil the palladium bearing"}`).want(t, 201, "")
	h.call("POST", in+"/projects", `{"name":"Zirconium mine"}`).want(t, 201, "")
	for q, text := range map[string]string{
		"zirconium":           `"matchedFields":["comment"]`,
		"PALLADIUM":           `"matchedFields":["document"]`,
		"arm+zirconium":       `"countsByType":{"agent":0,"artifact":0,"comment":1,"document":0,"issue":1,"project":0}`,
		"palladium+zirconium": `"matchedFields":["document","comment"]`,
		"mine":                `"type":"project"`,
	} {
		h.call("GET", in+"/search?q="+q, "").want(t, 200, text)
	}
	h.call("GET", in+"/search?q=leg+zirconium", "").want(t, 200, `"results":[]`)
	for _, q := range []string{"squeaks", "palladium"} {
		h.call("GET", in+"/issues?q="+q, "").want(t, 200, issue)
	}
	h.call("GET", in+"/issues?q=rust", "").want(t, 200, "[]")
	id := h.call("GET", "/api/issues/"+issue+"/comments", "").decode(t).([]any)[0].(map[string]any)["id"].(string)
	h.call("DELETE", "/api/issues/"+issue+"/comments/"+id, "").want(t, 200, "")
	h.call("GET", in+"/issues?q=squeaks", "").want(t, 200, "[]")
}
