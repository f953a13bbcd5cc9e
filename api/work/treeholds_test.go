package work_test

import (
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestTreeHoldsThroughTheAPI(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	root := h.IssueOf(of, "Root")
	child := h.Call("POST", "/api/issues/"+root+"/children", `{"title":"Child"}`).Want(t, 201, "").Field(t, "id")
	path := "/api/issues/" + root
	h.Call("GET", path+"/tree-control/state", "").Want(t, 200, `{"activePauseHold":null}`)
	for body, says := range map[string]string{
		`{}`: `"path":["mode"]`, `{"mode":"stop"}`: `"path":["mode"]`, `{"mode":"pause","x":1}`: `Unrecognized key: \"x\"`,
		`{"mode":"pause","metadata":[]}`:                        `"path":["metadata"]`,
		`{"mode":"pause","releasePolicy":{"strategy":"never"}}`: `"path":["releasePolicy","strategy"]`,
	} {
		h.Call("POST", path+"/tree-holds", body).Want(t, 400, says)
	}
	h.Call("POST", path+"/tree-control/preview", `{"mode":"cancel"}`).
		Want(t, 200, `"totals":{"totalIssues":2,"affectedIssues":2`).Want(t, 200, `"nextStatus":"cancelled"`)
	held := h.Call("POST", path+"/tree-holds", `{"mode":"pause","reason":"wait","metadata":{"a":1}}`).
		Want(t, 200, `"status":"active"`)
	id := held.Decode(t).(map[string]any)["hold"].(map[string]any)["id"].(string)
	h.Call("POST", path+"/tree-holds", `{"mode":"pause"}`).Want(t, 409, `"code":"issue_tree_held"`)
	h.Call("GET", "/api/issues/"+child+"/tree-control/state", "").Want(t, 200, `"isRoot":false`).Want(t, 200, id)
	h.Call("GET", path+"/tree-holds", "").Want(t, 200, `"metadata":{"a":1}`)
	h.Call("GET", path+"/tree-holds/"+id, "").Want(t, 200, `"reason":"wait"`)
	h.Call("GET", path+"/tree-holds/"+api.NewID(), "").Want(t, 404, "hold not found")
	h.Call("POST", path+"/tree-holds/"+id+"/release", `{"reason":"go"}`).Want(t, 200, `"status":"released"`)
	h.Call("POST", path+"/tree-holds/"+id+"/release", `{}`).Want(t, 409, "already released")
	h.Call("POST", path+"/tree-holds", `{"mode":"cancel"}`).Want(t, 200, "")
	h.Call("GET", "/api/issues/"+child, "").Want(t, 200, `"status":"cancelled"`)
	h.Call("POST", path+"/tree-holds", `{"mode":"restore"}`).Want(t, 200, `"statusBefore":"cancelled"`)
	h.Call("GET", "/api/issues/"+child, "").Want(t, 200, `"status":"backlog"`)
}
