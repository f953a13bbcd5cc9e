package govern_test

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/ledger"
)

// law brings one rule into force.
func law(t *testing.T, h *apitest.Harness, id, severity, on, when string) {
	t.Helper()
	a := h.Call("POST", "/api/v1/govern/amendments", `{"rules":[{"id":"`+id+`","branch":"executive","severity":"`+severity+
		`","on":["`+on+`"],"when":"`+when+`","reason":"{act} is against `+id+`"}]}`).Want(t, 201, "").Field(t, "id")
	h.Call("POST", "/api/v1/govern/amendments/"+a+"/sign", `{}`).Want(t, 200, "")
	h.Call("POST", "/api/v1/govern/amendments/"+a+"/enact", "").Want(t, 200, `"in_force"`)
}

// staff makes a company with an agent, and returns the header with the agent's key.
func staff(t *testing.T, h *apitest.Harness) (of, ada, asAda string) {
	t.Helper()
	of = h.Company("Acme")
	ada = h.Call("POST", "/api/companies/"+of+"/agents",
		`{"name":"Ada","role":"engineer","adapterType":"process","adapterConfig":{"command":"true"}}`).Want(t, 201, "").
		Field(t, "id")
	return of, ada, "Authorization: Bearer " + h.Call("POST", "/api/agents/"+ada+"/keys", `{"name":"k"}`).Want(t, 201, "").
		Field(t, "token")
}

// Whoever carries out acts for agents asks for a permit, and uses it once. The token is bound to the act, and nobody
// changes it or makes another.
func TestPermitsOverHTTP(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	_, ada, asAda := staff(t, h)
	h.Call("POST", "/api/v1/govern/permits", `{"action":"fs.read_file","agent_id":"nobody"}`).
		Want(t, 404, "no agent of this mesh")
	h.Call("POST", "/api/v1/govern/permits",
		`{"action":"fs.read_file","agent_id":"`+ada+`","arguments":{},"arguments_sha256":"`+strings.Repeat("a", 64)+`"}`).
		Want(t, 400, "not both")
	p := h.Call("POST", "/api/v1/govern/permits",
		`{"action":"fs.read_file","agent_id":"`+ada+`","once":true,"arguments":{"path":"a","n":1},"ttl_seconds":60}`, asAda).
		Want(t, 201, `"status":"granted"`)
	token, id := p.Field(t, "token"), p.Field(t, "id")
	if p.Field(t, "arguments_sha256") != govern.ArgumentsOf([]byte(`{"n":1, "path":"a"}`)) {
		t.Errorf("the hash of the arguments: %s", p.Field(t, "arguments_sha256"))
	}
	h.Call("POST", "/api/v1/govern/verify", `{"token":"`+token+`"}`).Want(t, 200, `"kind":"permit","valid":true`)
	at := strings.LastIndexByte(token, '.') + 1
	signature, err := base64.RawURLEncoding.DecodeString(token[at:])
	if err != nil {
		t.Fatal(err)
	}
	signature[0] ^= 1
	forged := token[:at] + base64.RawURLEncoding.EncodeToString(signature)
	for bad, why := range map[string]string{forged: "no member of the mesh has signed it", "permit1.x.y": "token:",
		strings.Replace(token, "permit1", "attest1", 1): "token:"} {
		h.Call("POST", "/api/v1/govern/verify", `{"token":"`+bad+`"}`).Want(t, 403, why)
		h.Call("POST", "/api/v1/govern/use", `{"token":"`+bad+`","action":"fs.read_file","agent_id":"`+ada+`"}`).
			Want(t, 403, why)
	}
	use := `{"token":"` + token + `","action":"%","agent_id":"` + ada + `","arguments":{"path":"#","n":1}}`
	fill := strings.NewReplacer("%", "fs.read_file", "#", "a").Replace
	h.Call("POST", "/api/v1/govern/use", strings.NewReplacer("%", "fs.read_file", "#", "b").Replace(use)).
		Want(t, 403, "for another act")
	h.Call("POST", "/api/v1/govern/use", strings.NewReplacer("%", "fs.stat", "#", "a").Replace(use)).
		Want(t, 403, "for another act")
	h.Call("POST", "/api/v1/govern/use", fill(use)).Want(t, 200, `"status":"used"`)
	h.Call("POST", "/api/v1/govern/use", fill(use)).Want(t, 409, `The permit is used`)
	h.Call("POST", "/api/v1/govern/verify", `{"token":"`+token+`"}`).Want(t, 200, `"valid":false,"status":"used"`)
	h.Call("GET", "/api/v1/govern/permits?status=used", "").Want(t, 200, id)
	h.Call("GET", "/api/v1/govern/permits?status=granted", "").Want(t, 200, `[]`)
	h.Call("GET", "/api/v1/govern/permits?status=so", "").Want(t, 400, "Invalid status")
	// Another company's agent sees none of it.
	_, _, asBob := other(t, h)
	h.Call("GET", "/api/v1/govern/permits/"+id, "", asBob).Want(t, 404, "Permit not found")
	h.Call("POST", "/api/v1/govern/use", fill(use), asBob).Want(t, 404, "Permit not found")
	h.Call("POST", "/api/v1/govern/verify", `{"token":"`+token+`"}`, asBob).Want(t, 404, "Permit not found")
}

func other(t *testing.T, h *apitest.Harness) (of, agent, as string) {
	t.Helper()
	of = h.Company("Other")
	agent = h.Call("POST", "/api/companies/"+of+"/agents",
		`{"name":"Bob","role":"engineer","adapterType":"process","adapterConfig":{"command":"true"}}`).Want(t, 201, "").
		Field(t, "id")
	return of, agent, "Authorization: Bearer " + h.Call("POST", "/api/agents/"+agent+"/keys", `{"name":"k"}`).
		Want(t, 201, "").Field(t, "token")
}

// A permit that a rule lets wait is granted by the approval; a critical rule denies it. It can be revoked.
func TestAPermitWaitsForAPerson(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	_, ada, asAda := staff(t, h)
	law(t, h, "T-1", "blocking", "fs.read_file", "true")
	ask := `{"action":"fs.read_file","agent_id":"` + ada + `","arguments":{"x":1}}`
	w := h.Call("POST", "/api/v1/govern/permits", ask, asAda).Want(t, 201, `"status":"waiting"`)
	approval := w.Field(t, "approvalId")
	h.Call("POST", "/api/approvals/"+approval+"/approve", `{}`).Want(t, 200, "")
	p := h.Call("GET", "/api/v1/govern/permits/"+approval, "", asAda).Want(t, 200, `"status":"granted"`)
	if again := h.Call("POST", "/api/v1/govern/permits", ask, asAda).Want(t, 201, `"granted"`); again.Field(t, "id") !=
		p.Field(t, "id") {
		t.Error("asked again, it is another permit")
	}
	h.Call("POST", "/api/v1/govern/permits/"+approval+"/revoke", "", asAda).Want(t, 403, "oard")
	h.Call("POST", "/api/v1/govern/permits/"+approval+"/revoke", "").Want(t, 200, `"status":"revoked"`)
	h.Call("POST", "/api/v1/govern/use", `{"token":"`+p.Field(t, "token")+`","action":"fs.read_file","agent_id":"`+ada+
		`","arguments":{"x":1}}`).Want(t, 409, "The permit is revoked")
	law(t, h, "T-1", "critical", "fs.read_file", "true")
	h.Call("POST", "/api/v1/govern/permits", ask, asAda).Want(t, 403, `Denied by rule T-1`)
	h.Call("GET", "/api/v1/govern/decisions?decision=deny", "").Want(t, 200, `"action":"fs.read_file"`)
}

// What the gate says is signed, and names the entry of the chain that it knows; both can be checked later.
func TestAnswersAreAttested(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	const question = `{"action":"execute_shell_command","agent_id":"agent-reviewer","context":{"risk":0.7}}`
	r := h.Call("POST", "/api/v1/govern", question).Want(t, 200, `"attestation":"attest1.`)
	var head string
	if err := h.Node.Ledger.View(func(tx *ledger.Tx) error {
		e, _ := ledger.EntryAt(tx, tx.Position().Height)
		head = hex.EncodeToString(e.Hash[:])
		return nil
	}); err != nil || r.Field(t, "chain_hash") != head {
		t.Errorf("chain_hash %s, the newest entry is %s: %v", r.Field(t, "chain_hash"), head, err)
	}
	h.Company("Later")
	v := h.Call("POST", "/api/v1/govern/verify", `{"token":"`+r.Field(t, "attestation")+`"}`).
		Want(t, 200, `"kind":"attestation","valid":true`)
	v.Want(t, 200, `"onChain":true`)
	if v.Field(t, "arguments_sha256") != govern.ArgumentsOf([]byte(question)) || v.Field(t, "decision") != "deny" ||
		v.Field(t, "chain_hash") != head {
		t.Errorf("attested %s", v.Body)
	}
	v.Want(t, 200, `"effect_vector":[0.7,0.5,0.3,0.8,0.6]`)
}
