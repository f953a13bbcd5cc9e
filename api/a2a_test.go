package api_test

import (
	"encoding/json"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
)

// taskIn returns the ID of the task of an answer.
func taskIn(t *testing.T, a apitest.Answer) string {
	t.Helper()
	var said struct {
		Result struct{ Task struct{ ID string } }
	}
	if err := json.Unmarshal(a.Body, &said); err != nil || said.Result.Task.ID == "" {
		t.Fatalf("no task in %s", a.Body)
	}
	return said.Result.Task.ID
}

// What does not fit the A2A protocol is refused with its codes, in both bindings, and in both versions.
func TestBadRequestsOfA2A(t *testing.T) {
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	ada := h.Call("POST", "/api/companies/"+of+"/agents", `{"name":"Ada","role":"engineer","adapterType":"process"}`).
		Want(t, 201, "").Field(t, "id")
	h.Call("POST", "/api/agents/"+ada+"/pause", `{}`).Want(t, 200, "")
	rpc := func(method, params, want string) apitest.Answer {
		t.Helper()
		return h.Call("POST", "/a2a/"+ada, `{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":`+params+`}`).
			Want(t, 200, want)
	}
	h.Call("GET", "/.well-known/agent-card.json", "").Want(t, 200, `"tags":["Acme","engineer"]`)
	h.Call("GET", "/a2a/Ada/.well-known/agent-card.json", "").Want(t, 200, `"protocolVersion":"1.0"`)
	h.Call("GET", "/a2a/Eve/.well-known/agent-card.json", "").Want(t, 404, "Agent not found")
	h.Call("GET", "/a2a", "").Want(t, 405, "POST a JSON-RPC request")
	for body, want := range map[string]string{`{`: "-32700", `[]`: "-32600",
		`{"jsonrpc":"1.0","id":1,"method":"GetTask"}`: "-32600", `{"jsonrpc":"2.0","id":{},"method":"GetTask"}`: "-32600",
		`{"jsonrpc":"2.0","id":1,"method":"Fly"}`: "-32601"} {
		h.Call("POST", "/a2a", body).Want(t, 200, want)
	}
	rpc("GetTask", `{"id":5}`, "-32602")
	rpc("GetTask", `{"id":"none"}`, "-32001")
	rpc("SendMessage", `{}`, "message: required")
	rpc("SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{}]}}`, "-32005")
	rpc("SendMessage", `{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}}`, "-32602")
	rpc("SendMessage", `{"message":{"role":"ROLE_USER","parts":[{"text":"x"}]}}`, "message.messageId")
	rpc("ListTasks", `{"pageSize":1000}`, "pageSize: 1 to 100")
	rpc("ListTasks", `{"pageToken":"x"}`, "pageToken")
	rpc("SendMessage",
		`{"message":{"messageId":"m0","role":"ROLE_USER","parts":[{"text":"x"}]},`+
			`"configuration":{"returnImmediately":true,"taskPushNotificationConfig":{"url":"ftp://x"}}}`,
		"url: an http or https address")

	// The same message is the same task, in the form of each version.
	const message = `{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"Weld"},` +
		`{"data":{"arm":1}}]},"configuration":{"returnImmediately":true}}`
	first := rpc("SendMessage", message, `"state":"TASK_STATE_SUBMITTED"`)
	id := taskIn(t, first)
	if again := taskIn(t, rpc("SendMessage", message, "")); again != id {
		t.Errorf("sent twice, it is the tasks %s and %s", id, again)
	}
	rpc("message/send",
		`{"message":{"kind":"message","messageId":"m1","role":"user","parts":[{"kind":"text","text":"Weld"}]},`+
			`"configuration":{"blocking":false}}`, `"kind":"task"`)
	rpc("tasks/get", `{"id":"`+id+`"}`, `"state":"submitted"`)
	h.Call("GET", "/a2a/tasks/"+id, "").Want(t, 200, `"text":"Weld\n\n`)
	h.Call("POST", "/a2a/tasks/"+id+":fly", "{}").Want(t, 404, "METHOD_NOT_FOUND")
	h.Call("POST", "/a2a/tasks/"+id+":cancel", "{}").Want(t, 200, "TASK_STATE_CANCELED")
	h.Call("POST", "/a2a/tasks/"+id+":cancel", "{}").Want(t, 400, "TASK_NOT_CANCELABLE")
	h.Call("GET", "/a2a/tasks/"+id+":subscribe", "").Want(t, 400, "UNSUPPORTED_OPERATION")
}
