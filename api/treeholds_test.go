package api

import "testing"

func TestTreeHoldsThroughTheAPI(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := h.company("Acme")
	root := h.issueOf(of, "Root")
	child := h.call("POST", "/api/issues/"+root+"/children", `{"title":"Child"}`).want(t, 201, "").field(t, "id")
	path := "/api/issues/" + root
	h.call("GET", path+"/tree-control/state", "").want(t, 200, `{"activePauseHold":null}`)
	for _, body := range []string{`{}`, `{"mode":"stop"}`, `{"mode":"pause","x":1}`, `{"mode":"pause","metadata":[]}`, `{"mode":"pause","releasePolicy":{"strategy":"never"}}`} {
		h.call("POST", path+"/tree-holds", body).want(t, 400, "")
	}
	h.call("POST", path+"/tree-control/preview", `{"mode":"cancel"}`).want(t, 200, `"totals":{"totalIssues":2,"affectedIssues":2`).want(t, 200, `"nextStatus":"cancelled"`)
	held := h.call("POST", path+"/tree-holds", `{"mode":"pause","reason":"wait","metadata":{"a":1}}`).want(t, 200, `"status":"active"`)
	id := held.decode(t).(map[string]any)["hold"].(map[string]any)["id"].(string)
	h.call("POST", path+"/tree-holds", `{"mode":"pause"}`).want(t, 409, `"code":"issue_tree_held"`)
	h.call("GET", "/api/issues/"+child+"/tree-control/state", "").want(t, 200, `"isRoot":false`).want(t, 200, id)
	h.call("GET", path+"/tree-holds", "").want(t, 200, `"metadata":{"a":1}`)
	h.call("GET", path+"/tree-holds/"+id, "").want(t, 200, `"reason":"wait"`)
	h.call("GET", path+"/tree-holds/"+NewID(), "").want(t, 404, "hold not found")
	h.call("POST", path+"/tree-holds/"+id+"/release", `{"reason":"go"}`).want(t, 200, `"status":"released"`)
	h.call("POST", path+"/tree-holds/"+id+"/release", `{}`).want(t, 409, "already released")
	h.call("POST", path+"/tree-holds", `{"mode":"cancel"}`).want(t, 200, "")
	h.call("GET", "/api/issues/"+child, "").want(t, 200, `"status":"cancelled"`)
	h.call("POST", path+"/tree-holds", `{"mode":"restore"}`).want(t, 200, `"statusBefore":"cancelled"`)
	h.call("GET", "/api/issues/"+child, "").want(t, 200, `"status":"backlog"`)
}
