package api

import (
	"strings"
	"testing"
)

func TestMemoryAndMessagesThroughTheAPI(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := h.company("Acme")
	ada, bob := h.newAgent(of, "Ada", "true"), h.newAgent(of, "Bob", "true")
	bear := func(agent string) string {
		return "Authorization: Bearer " + h.call("POST", "/api/agents/"+agent+"/keys", `{"name":"k"}`).want(t, 201, "").field(t, "token")
	}
	asAda, asBob := bear(ada), bear(bob)
	at := "/api/agents/" + ada + "/memory"
	h.call("GET", at, "", asAda).want(t, 200, "[]")
	h.call("PUT", at+"/customer.globex", `{"value":"Globex pays late, and wants the arm in blue."}`, asAda).want(t, 200, `"key":"customer.globex"`)
	h.call("PUT", at+"/customer.initech", `{"value":"Initech wants cover sheets on the reports."}`, asAda).want(t, 200, "")
	h.call("PUT", at+"/lunch", `{"value":"At noon."}`).want(t, 200, `"agentId":"`+ada)
	h.call("PUT", at+"/lunch", `{"text":"At noon."}`, asAda).want(t, 400, "value")
	h.call("PUT", at+"/two%20words", `{"value":""}`, asAda).want(t, 400, "A key has")
	h.call("GET", at+"/lunch", "", asAda).want(t, 200, `"value":"At noon."`)
	h.call("GET", at+"/dinner", "", asAda).want(t, 404, "Memory not found")
	for question, want := range map[string]string{"who wants reports, and the cover?": "customer.initech", "GLOBEX": "customer.globex", "blue arm": "customer.globex", "lunch": "lunch"} {
		list := h.call("GET", at+"?q="+strings.ReplaceAll(question, " ", "+"), "", asAda).want(t, 200, "").decode(t).([]any)
		if len(list) == 0 || list[0].(map[string]any)["key"] != want || list[0].(map[string]any)["score"].(float64) <= 0 {
			t.Errorf("%s: recalled %v, want %s first", question, list, want)
		}
	}
	h.call("GET", at+"?q=zebra", "", asAda).want(t, 200, "[]")
	h.call("GET", at+"?limit=0", "", asAda).want(t, 400, "limit")
	if list := h.call("GET", at+"?limit=2", "", asAda).decode(t).([]any); len(list) != 2 {
		t.Errorf("%d memories, want 2", len(list))
	}
	for _, call := range [][2]string{{"GET", at}, {"GET", at + "/lunch"}, {"DELETE", at + "/lunch"}, {"GET", "/api/agents/" + ada + "/messages"}} {
		h.call(call[0], call[1], "", asBob).want(t, 403, "")
	}
	h.call("PUT", at+"/lunch", `{"value":"Never."}`, asBob).want(t, 403, "")
	h.call("DELETE", at+"/lunch", "", asAda).want(t, 200, "")
	h.call("GET", at+"/lunch", "", asAda).want(t, 404, "")

	inbox := "/api/agents/" + bob + "/messages"
	first := h.call("POST", inbox, `{"type":"question","correlationId":"q1","payload":{"text":"Which arm?"}}`, asAda).want(t, 201, `"fromId":"`+ada).field(t, "id")
	h.call("POST", inbox, `{}`).want(t, 201, `"payload":{}`)
	h.call("POST", inbox, `{"payload":{"text":"`+strings.Repeat("x", 17_000)+`"}}`, asAda).want(t, 400, `"path":["payload"]`)
	h.call("GET", inbox, "", asBob).want(t, 200, `"correlationId":"q1"`)
	h.call("POST", inbox+"/take", `{"ids":["`+first+`"]}`, asAda).want(t, 403, "")
	h.call("POST", inbox+"/take", `{"ids":["`+first+`"]}`, asBob).want(t, 200, `"taken":1`)
	if list := h.call("GET", inbox, "", asBob).decode(t).([]any); len(list) != 1 {
		t.Errorf("%d messages are left, want 1", len(list))
	}

	other := h.company("Globex")
	eve := bear(h.newAgent(other, "Eve", "true"))
	h.call("POST", inbox, `{"payload":{}}`, eve).want(t, 404, "")
	h.call("GET", at, "", eve).want(t, 404, "")
}
