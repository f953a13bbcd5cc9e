package weftos_test

import (
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/ledger"
)

// A policy of the tree denies an agent's request, a grant permits it, and replay decides the denial the same again.
func TestTheGateReadsTheTree(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	ada := h.Call("POST", "/api/companies/"+of+"/agents",
		`{"name":"Ada","role":"engineer","adapterType":"process","adapterConfig":{"command":"true"}}`).Want(t, 201, "").
		Field(t, "id")
	key := h.Call("POST", "/api/agents/"+ada+"/keys", `{"name":"k"}`).Want(t, 201, "").Field(t, "token")
	run := h.Running(ledger.CompanyID(of), ada)
	label := func(name string) apitest.Answer {
		return h.Call("POST", "/api/companies/"+of+"/labels", `{"name":"`+name+`","color":"#ff0000"}`,
			"Authorization: Bearer "+key, "X-Paperclip-Run-Id: "+run)
	}
	at := "/companies/" + of
	label("before").Want(t, 201, "")
	h.Call("POST", "/api/v1/tree/grants", `{"path":"`+at+`","subject":"*","deny":true}`).Want(t, 201, "")
	label("closed").Want(t, 403, "Denied by the access policy of the resource tree: the agent may not use "+at)
	h.Call("GET", "/api/v1/govern/decisions?rule=ACCESS-POLICY", "").Want(t, 200, `"branch":"access"`)
	h.Call("GET", "/api/v1/tree/access?path="+at+"&action=use&subject=agent:"+ada, "").Want(t, 200, `"allowed":false`)
	h.Call("POST", "/api/v1/tree/grants", `{"path":"`+at+`","subject":"agent:`+ada+`","role":"operator"}`).Want(t, 201, "")
	h.Call("GET", "/api/v1/tree/access?path="+at+"&action=use&subject=agent:"+ada, "").Want(t, 200, `"allowed":true`)
	label("granted").Want(t, 201, "")
	h.Call("POST", "/api/v1/govern/replay", `{}`).Want(t, 200, `"replayed":1,"same":1`)
}
