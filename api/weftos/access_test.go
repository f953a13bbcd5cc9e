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
	ada := h.NewAgent(ledger.CompanyID(of), "Ada", "true")
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

// Whoever asks about an act on a path is told what the policy says of it: for an agent, and at nodes for a person by
// name.
func TestThePolicyOfAPathIsExplained(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	ada := h.NewAgent(ledger.CompanyID(of), "Ada", "true")
	ask := func(route, who string) apitest.Answer {
		return h.Call("POST", route, `{"action":"node.cordon","agent_id":"`+who+`","context":{"target":"/network/peers/n1"}}`)
	}
	grant := func(subject, what string) {
		h.Call("POST", "/api/v1/tree/grants", `{"path":"/network/peers","subject":"`+subject+`",`+what+`}`).Want(t, 201, "")
	}
	const explain, decide = "/api/v1/govern/explain", "/api/v1/govern"
	const board = "user:local-board"
	grant("*", `"deny":true`)
	ask(explain, ada).Want(t, 200, `{"dimension":"access","from":1,"to":0,"why":"the access policy of the resource tree `+
		`denies it: the agent may not change /network/peers/n1: on /network/peers for * it is denied"}`)
	ask(decide, ada).Want(t, 200, `"decision":"deny"`)
	ask(decide, board).Want(t, 200, `"decision":"permit"`)
	grant("agent:"+ada, `"role":"admin"`)
	ask(explain, ada).Want(t, 200, `{"dimension":"access","from":1,"to":1,`)
	grant(board, `"deny":true`)
	ask(explain, board).Want(t, 200, board+" may not change /network/peers/n1: on /network/peers for "+board)
	ask(decide, board).Want(t, 200, `"decision":"deny"`)
}
