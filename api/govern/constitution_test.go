package govern_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
)

// An agent's command passes the gate: denied with the rule, or waiting for the board, which carries it out. Each
// decision is listed and replayed, and the constitution says which version is in force.
func TestCommandsPassTheGate(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	ada := h.Call("POST", "/api/companies/"+of+"/agents", `{"name":"Ada","adapterType":"process"}`).Want(t, 201, "").
		Field(t, "id")
	asAda := "Authorization: Bearer " + h.Call("POST", "/api/agents/"+ada+"/keys", `{"name":"k"}`).Want(t, 201, "").
		Field(t, "token")
	const at = "/api/v1/govern/amendments"
	h.Call("GET", "/api/v1/govern/rules", "").Want(t, 200, `"version":1`)
	h.Call("POST", at,
		`{"rules":[{"id":"ACM-1","branch":"executive","severity":"critical","on":["goal.create"],`+
			`"when":"nonsense","reason":"no"}]}`).
		Want(t, 422, `rule ACM-1: when: does not compile for the executive branch`)
	h.Call("POST", at,
		`{"rules":[{"id":"ACM-1","branch":"executive","severity":"critical","on":["goal.create"],"when":"rank == `+
			`\"worker\"","reason":"{act} is for managers"},
		{"id":"ACM-2","branch":"executive","severity":"blocking","on":["label.create"],"when":"rank != `+
			`\"board\"","reason":"{act} is for people"}]}`).Want(t, 201, `"status":"proposed"`)
	h.Call("POST", at, `{}`, asAda).Want(t, 403, "Board access required")
	h.Call("POST", "/api/v1/govern/review", `{"amendmentId":"1"}`).Want(t, 200, `"summary":"would have denied 0 of `)
	h.Call("POST", at+"/1/enact", "").Want(t, 403, "has 0 of the 1 signatures")
	h.Call("POST", at+"/1/sign", `{}`).Want(t, 200, `"signed":1`)
	h.Call("POST", at+"/1/enact", "").Want(t, 200, `"status":"in_force"`)
	h.Call("GET", "/api/v1/govern/rules", "").Want(t, 200, `"version":2`)
	h.Call("GET", "/api/v1/govern/rules?version=1", "").Want(t, 200, `"inForce":false`)

	goal, label := "/api/companies/"+of+"/goals", "/api/companies/"+of+"/labels"
	h.Call("POST", goal, `{"title":"Grow"}`, asAda).
		Want(t, 403, `Denied by rule ACM-1 of the constitution: Goal create is for managers`)
	waits := h.Call("POST", label, `{"name":"bug","color":"#ff0000"}`, asAda).Want(t, 409, `"code":"approval_required"`)
	details := waits.Decode(t).(map[string]any)["details"].(map[string]any)
	h.Call("GET", label, "").Want(t, 200, `[]`)
	// The board sees what it approves; an agent sees that something waits.
	approval := fmt.Sprintf("/api/approvals/%s", details["approvalId"])
	h.Call("GET", approval, "").Want(t, 200, `"payload":{"color":"#ff0000","id":`)
	h.Call("GET", "/api/companies/"+of+"/approvals?status=pending", "").Want(t, 200, `"name":"bug"`)
	if a := h.Call("GET", approval, "", asAda).Want(t, 200, `"kind":"label.create"`); strings.Contains(string(a.Body),
		"bug") {
		t.Errorf("an agent sees the command: %s", a.Body)
	}
	h.Call("POST", fmt.Sprintf("/api/approvals/%s/approve", details["approvalId"]), `{}`).
		Want(t, 200, `"status":"approved"`)
	h.Call("GET", label, "").Want(t, 200, `"name":"bug"`)
	h.Call("GET", "/api/v1/govern/decisions?decision=deny", "").Want(t, 200, `"spoken_rules":["ACM-1"]`)
	h.Call("GET", "/api/v1/govern/decisions?rule=ACM-2&limit=1", "", asAda).Want(t, 200, `"answer":"approved"`)
	h.Call("GET", "/api/v1/govern/decisions?decision=maybe", "").Want(t, 400, "want permit, warn, escalate or deny")
	h.Call("POST", "/api/v1/govern/replay", `{}`).Want(t, 200, `"replayed":3,"same":3`)
	h.Call("POST", "/api/v1/govern/replay", `{"version":1}`).Want(t, 200, `"same":0`)
	other := h.Call("POST", "/api/companies/"+h.Company("Other")+"/agents", `{"name":"Bob","adapterType":"process"}`).
		Want(t, 201, "").Field(t, "id")
	asBob := "Authorization: Bearer " + h.Call("POST", "/api/agents/"+other+"/keys", `{"name":"k"}`).Want(t, 201, "").
		Field(t, "token")
	h.Call("GET", "/api/v1/govern/decisions", "", asBob).Want(t, 200, `[]`)
	h.Call("GET", "/api/v1/govern/decisions/"+fmt.Sprint(details["decisionId"]), "", asBob).
		Want(t, 404, "Decision not found")
}

// Packs come into force at once where the board has no signing keys. Afterwards a key signs what the answer says.
func TestPacksAndKeys(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	h.Call("POST", "/api/v1/govern/packs/none/apply", "").Want(t, 404, "Pack not found")
	h.Call("POST", "/api/v1/govern/packs/strict/apply", "").Want(t, 200, `"status":"in_force"`)
	h.Call("GET", "/api/v1/govern/rules", "").Want(t, 200, `"environment":"prod"`)
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	public := base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
	h.Call("POST", "/api/v1/govern/amendments", `{"keys":[{"name":"Ada","publicKey":"`+public+`"}]}`).Want(t, 201, "")
	h.Call("POST", "/api/v1/govern/amendments/2/sign", `{}`).Want(t, 200, "")
	h.Call("POST", "/api/v1/govern/amendments/2/enact", "").Want(t, 200, "")
	id := h.Call("GET", "/api/v1/govern/rules", "").Want(t, 200, `"requiredSignatures":1`).
		Decode(t).(map[string]any)["signingKeys"].([]any)[0].(map[string]any)["id"].(string)
	a := h.Call("POST", "/api/v1/govern/packs/relaxed/apply", "").Want(t, 200, `"status":"proposed"`)
	h.Call("POST", "/api/v1/govern/amendments/3/sign", `{}`).Want(t, 403, "sign with one of them")
	signature := base64.StdEncoding.EncodeToString(ed25519.Sign(key, []byte(a.Field(t, "message"))))
	h.Call("POST", "/api/v1/govern/amendments/3/sign", `{"keyId":"`+id+`","signature":"`+signature+`"}`).
		Want(t, 200, `"signed":1`)
	h.Call("POST", "/api/v1/govern/amendments/3/enact", "").Want(t, 200, `"version":4`)
}

// The environment of a place holds for what is asked about it.
func TestEnvironments(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	h.Call("PUT", "/api/v1/govern/place", `{"environment":"prod"}`).Want(t, 200, `"threshold":0.3`)
	h.Call("PUT", "/api/v1/govern/place", `{"companyId":"`+of+`","environment":"staging"}`).Want(t, 200, `"threshold":0.6`)
	h.Call("GET", "/api/v1/govern/place?companyId="+of, "").Want(t, 200, `"environment":"staging"`)
	h.Call("POST", "/api/v1/govern", `{"action":"fs.stat","agent_id":"a","context":{"company_id":"`+of+`"}}`).
		Want(t, 200, `"threshold":0.6`)
	h.Call("POST", "/api/v1/govern", `{"action":"fs.stat","agent_id":"a"}`).Want(t, 200, `"threshold":0.3`)
	h.Call("PUT", "/api/v1/govern/place", `{"environment":"moon"}`).Want(t, 400, "environment")
}
