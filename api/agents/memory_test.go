package agents_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestMemoryAndMessagesThroughTheAPI(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	ada, bob := h.NewAgent(of, "Ada", "true"), h.NewAgent(of, "Bob", "true")
	bear := func(agent string) string {
		return "Authorization: Bearer " + h.Call("POST", "/api/agents/"+agent+"/keys", `{"name":"k"}`).Want(t, 201, "").
			Field(t, "token")
	}
	asAda, asBob := bear(ada), bear(bob)
	at := "/api/agents/" + ada + "/memory"
	h.Call("GET", at, "", asAda).Want(t, 200, "[]")
	h.Call("PUT", at+"/customer.globex", `{"value":"Globex pays late, and wants the arm in blue."}`, asAda).
		Want(t, 200, `"key":"customer.globex"`)
	h.Call("PUT", at+"/customer.initech", `{"value":"Initech wants cover sheets on the reports."}`, asAda).Want(t, 200, "")
	h.Call("PUT", at+"/lunch", `{"value":"At noon."}`).Want(t, 200, `"agentId":"`+ada)
	h.Call("PUT", at+"/lunch", `{"text":"At noon."}`, asAda).Want(t, 400, "value")
	h.Call("PUT", at+"/two%20words", `{"value":""}`, asAda).Want(t, 400, "A key has")
	h.Call("GET", at+"/lunch", "", asAda).Want(t, 200, `"value":"At noon."`)
	h.Call("GET", at+"/dinner", "", asAda).Want(t, 404, "Memory not found")
	for question, want := range map[string]string{"who wants reports, and the cover?": "customer.initech",
		"GLOBEX": "customer.globex", "blue arm": "customer.globex", "lunch": "lunch"} {
		list := h.Call("GET", at+"?q="+strings.ReplaceAll(question, " ", "+"), "", asAda).Want(t, 200, "").Decode(t).([]any)
		if len(list) == 0 || list[0].(map[string]any)["key"] != want || list[0].(map[string]any)["score"].(float64) <= 0 {
			t.Errorf("%s: recalled %v, want %s first", question, list, want)
		}
	}
	h.Call("GET", at+"?q=zebra", "", asAda).Want(t, 200, "[]")
	h.Call("GET", at+"?limit=0", "", asAda).Want(t, 400, "limit")
	if list := h.Call("GET", at+"?limit=2", "", asAda).Decode(t).([]any); len(list) != 2 {
		t.Errorf("%d memories, want 2", len(list))
	}
	const readsOwn, changesOwn = "An agent reads its own memory and messages only",
		"Only the board or the agent itself can do that"
	for _, call := range [][3]string{
		{"GET", at, readsOwn}, {"GET", at + "/lunch", readsOwn}, {"GET", "/api/agents/" + ada + "/messages", readsOwn},
		{"DELETE", at + "/lunch", changesOwn},
	} {
		h.Call(call[0], call[1], "", asBob).Want(t, 403, call[2])
	}
	h.Call("PUT", at+"/lunch", `{"value":"Never."}`, asBob).Want(t, 403, "Only the board or the agent itself can do that")
	h.Call("DELETE", at+"/lunch", "", asAda).Want(t, 200, "")
	h.Call("GET", at+"/lunch", "", asAda).Want(t, 404, "Memory not found")

	inbox := "/api/agents/" + bob + "/messages"
	first := h.Call("POST", inbox, `{"type":"question","correlationId":"q1","payload":{"text":"Which arm?"}}`, asAda).
		Want(t, 201, `"fromId":"`+ada).Field(t, "id")
	h.Call("POST", inbox, `{}`).Want(t, 201, `"payload":{}`)
	h.Call("POST", inbox, `{"payload":{"text":"`+strings.Repeat("x", 17_000)+`"}}`, asAda).
		Want(t, 400, `"path":["payload"]`)
	h.Call("GET", inbox, "", asBob).Want(t, 200, `"correlationId":"q1"`)
	h.Call("POST", inbox+"/take", `{"ids":["`+first+`"]}`, asAda).
		Want(t, 403, "Only the board or the agent itself can do that")
	h.Call("POST", inbox+"/take", `{"ids":["`+first+`"]}`, asBob).Want(t, 200, `"taken":1`)
	if list := h.Call("GET", inbox, "", asBob).Decode(t).([]any); len(list) != 1 {
		t.Errorf("%d messages are left, want 1", len(list))
	}

	other := ledger.CompanyID(h.Company("Globex"))
	eve := bear(h.NewAgent(other, "Eve", "true"))
	h.Call("POST", inbox, `{"payload":{}}`, eve).Want(t, 404, "Agent not found")
	h.Call("GET", at, "", eve).Want(t, 404, "Agent not found")
}
