package api

import "testing"

func TestInteractionsAndProductsThroughTheAPI(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	issue := "/api/issues/" + h.issueOf(h.company("Acme"), "Ask")
	path := issue + "/interactions"
	for _, body := range []string{
		`{}`, `{"kind":"guess","payload":{}}`, `{"kind":"suggest_tasks","payload":{"version":1,"tasks":[]}}`, `{"kind":"suggest_tasks","payload":{"version":2,"tasks":[{"clientKey":"a","title":"x"}]}}`,
		`{"kind":"request_confirmation","payload":{"version":1}}`, `{"kind":"request_confirmation","payload":7}`,
		`{"kind":"ask_user_questions","payload":{"version":1,"questions":[{"id":"q","prompt":"?","selectionMode":"some","options":[]}]}}`,
	} {
		h.call("POST", path, body).want(t, 400, "")
	}
	id := h.call("POST", path, `{"kind":"request_checkbox_confirmation","resolverPolicy":"board_only","payload":{"version":1,"prompt":"?","options":[{"id":"a","label":"A"}]}}`).
		want(t, 201, `"allowDeclineReason":true`).want(t, 201, `"effectiveResolverPolicy":"human_only"`).field(t, "id")
	h.call("POST", path+"/"+id+"/accept", `{"selectedOptionIds":["a"]}`).want(t, 200, `"selectedOptionIds":["a"]`)
	h.call("POST", path+"/"+id+"/accept", `{}`).want(t, 409, "already been resolved")
	h.call("POST", path+"/"+NewID()+"/accept", `{}`).want(t, 404, "Interaction not found")
	once := `{"kind":"request_confirmation","idempotencyKey":"k","payload":{"version":1,"prompt":"?"}}`
	first := h.call("POST", path, once).want(t, 201, "").field(t, "id")
	if again := h.call("POST", path, once).field(t, "id"); again != first {
		t.Error("the same key made two interactions")
	}
	h.call("POST", path+"/"+first+"/cancel", `{}`).want(t, 200, `"status":"cancelled"`)

	verdicts := `{"kind":"request_item_verdicts","payload":{"version":1,"prompt":"?","items":[{"id":"a","label":"A"}]}}`
	id = h.call("POST", path, verdicts).want(t, 201, `"allowBulkApprove":true`).field(t, "id")
	h.call("POST", path+"/"+id+"/verdicts", `{"verdicts":[{"id":"a","verdict":"burn"}]}`).want(t, 400, "verdict")
	h.call("POST", path+"/"+id+"/verdicts", `{"verdicts":[{"id":"a","verdict":"defer"}]}`).want(t, 200, `"deferredCount":1`)
	id = h.call("POST", path, verdicts).want(t, 201, "").field(t, "id")
	h.call("POST", path+"/"+id+"/skip", `{"reason":"later"}`).want(t, 200, `"outcome":"skipped"`)
	id = h.call("POST", path, verdicts).want(t, 201, "").field(t, "id")
	h.call("POST", path+"/"+id+"/withdraw", `{}`).want(t, 200, `"outcome":"withdrawn"`)

	h.call("POST", issue+"/work-products", `{"type":"commit","provider":"git","title":"x","metadata":7}`).want(t, 400, "metadata")
	id = h.call("POST", issue+"/work-products", `{"type":"commit","provider":"git","title":"x"}`).want(t, 201, "").field(t, "id")
	h.call("PATCH", "/api/work-products/"+id, `{"status":"gone"}`).want(t, 400, "status")
	h.call("PATCH", "/api/work-products/"+id, `{"status":"merged","summary":"s"}`).want(t, 200, `"status":"merged"`)
	h.call("GET", issue, "").want(t, 200, `"workProducts":[{"id":"`+id)
	h.call("DELETE", "/api/work-products/"+id, "").want(t, 200, "")
	h.call("PATCH", "/api/work-products/"+id, `{}`).want(t, 404, "Work product not found")
}
