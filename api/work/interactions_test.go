package work_test

import (
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestInteractionsAndProductsThroughTheAPI(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	issue := "/api/issues/" + h.IssueOf(ledger.CompanyID(h.Company("Acme")), "Ask")
	path := issue + "/interactions"
	for body, field := range map[string]string{
		`{}`:                            `["kind"]`,
		`{"kind":"guess","payload":{}}`: `["kind"]`,
		`{"kind":"suggest_tasks","payload":{"version":1,` +
			`"tasks":[]}}`: `["payload","tasks"]`,
		`{"kind":"suggest_tasks","payload":{"version":2,"tasks":[{"clientKey":"a",` +
			`"title":"x"}]}}`: `["payload","version"]`,
		`{"kind":"request_confirmation","payload":{"version":1}}`: `["payload","prompt"]`,
		`{"kind":"request_confirmation","payload":7}`:             `["payload"]`,
		`{"kind":"ask_user_questions","payload":{"version":1,"questions":[{"id":"q","prompt":"?",` +
			`"selectionMode":"some","options":[]}]}}`: `["payload","questions",0,"selectionMode"]`,
	} {
		h.Call("POST", path, body).Want(t, 400, `"path":`+field)
	}
	id := h.Call("POST", path,
		`{"kind":"request_checkbox_confirmation","resolverPolicy":"board_only","payload":{"version":1,`+
			`"prompt":"?","options":[{"id":"a","label":"A"}]}}`).
		Want(t, 201, `"allowDeclineReason":true`).Want(t, 201, `"effectiveResolverPolicy":"human_only"`).Field(t, "id")
	h.Call("POST", path+"/"+id+"/accept", `{"selectedOptionIds":["a"]}`).Want(t, 200, `"selectedOptionIds":["a"]`)
	h.Call("POST", path+"/"+id+"/accept", `{}`).Want(t, 409, "already been resolved")
	h.Call("POST", path+"/"+api.NewID()+"/accept", `{}`).Want(t, 404, "Interaction not found")
	once := `{"kind":"request_confirmation","idempotencyKey":"k","payload":{"version":1,"prompt":"?"}}`
	first := h.Call("POST", path, once).Want(t, 201, "").Field(t, "id")
	if again := h.Call("POST", path, once).Field(t, "id"); again != first {
		t.Error("the same key made two interactions")
	}
	h.Call("POST", path+"/"+first+"/cancel", `{}`).Want(t, 200, `"status":"cancelled"`)

	verdicts := `{"kind":"request_item_verdicts","payload":{"version":1,"prompt":"?","items":[{"id":"a","label":"A"}]}}`
	id = h.Call("POST", path, verdicts).Want(t, 201, `"allowBulkApprove":true`).Field(t, "id")
	h.Call("POST", path+"/"+id+"/verdicts", `{"verdicts":[{"id":"a","verdict":"burn"}]}`).Want(t, 400, "verdict")
	h.Call("POST", path+"/"+id+"/verdicts", `{"verdicts":[{"id":"a","verdict":"defer"}]}`).
		Want(t, 200, `"deferredCount":1`)
	id = h.Call("POST", path, verdicts).Want(t, 201, "").Field(t, "id")
	h.Call("POST", path+"/"+id+"/skip", `{"reason":"later"}`).Want(t, 200, `"outcome":"skipped"`)
	id = h.Call("POST", path, verdicts).Want(t, 201, "").Field(t, "id")
	h.Call("POST", path+"/"+id+"/withdraw", `{}`).Want(t, 200, `"outcome":"withdrawn"`)

	h.Call("POST", issue+"/work-products", `{"type":"commit","provider":"git","title":"x","metadata":7}`).
		Want(t, 400, "metadata")
	id = h.Call("POST", issue+"/work-products", `{"type":"commit","provider":"git","title":"x"}`).Want(t, 201, "").
		Field(t, "id")
	h.Call("PATCH", "/api/work-products/"+id, `{"status":"gone"}`).Want(t, 400, "status")
	h.Call("PATCH", "/api/work-products/"+id, `{"status":"merged","summary":"s"}`).Want(t, 200, `"status":"merged"`)
	h.Call("GET", issue, "").Want(t, 200, `"workProducts":[{"id":"`+id)
	h.Call("DELETE", "/api/work-products/"+id, "").Want(t, 200, "")
	h.Call("PATCH", "/api/work-products/"+id, `{}`).Want(t, 404, "Work product not found")
}
