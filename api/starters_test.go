package api_test

import (
	"encoding/json"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/api/transfer"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/ledger"
)

// Each starter company comes in by its name's package and works: every agent of it
// runs, its task is done by whom it is for, and its routine makes an issue.
func TestStartersComeInAndWork(t *testing.T) {
	h, runs := apitest.NewWorkingHarness(t), map[string]string{}
	for _, name := range portable.Starters() {
		files, _ := portable.Starter(name)
		m, _, err := portable.Read(files)
		if err != nil {
			t.Fatal(err)
		}
		overrides := map[string]any{} // what is on this machine, instead of a vendor's program
		for _, a := range m.Agents {
			overrides[a.Slug] = map[string]any{"adapterType": "process", "adapterConfig": map[string]any{"command": "/bin/echo",
				"args": []string{name}}}
		}
		text, err := json.Marshal(overrides)
		if err != nil {
			t.Fatal(err)
		}
		var done transfer.Imported
		if err := json.Unmarshal(h.Call("POST", "/api/companies/import", apitest.ImportOf(t, transfer.Exported{Files: files},
			`{"mode":"new_company"}`, `,"adapterOverrides":`+string(text))).Want(t, 200, "").Body, &done); err != nil {
			t.Fatal(err)
		}
		if len(done.Agents) != len(m.Agents) || len(done.Routines) != 1 || len(done.Warnings) > 0 {
			t.Errorf("%s came in as %+v", name, done)
		}
		for _, a := range done.Agents {
			runs[name+": "+a.Name] = h.Call("POST", "/api/agents/"+*a.ID+"/heartbeat/invoke", `{}`).Want(t, 202, "").
				Field(t, "id")
		}
		h.Call("PATCH", "/api/routines/"+*done.Routines[0].ID, `{"status":"active"}`).Want(t, 200, "")
		h.Call("POST", "/api/routines/"+*done.Routines[0].ID+"/run", `{}`).Want(t, 202, `"status":"issue_created"`)
	}
	for who, run := range runs {
		h.Until("a run of "+who, func(tx *ledger.Tx) bool {
			r, ok := entity.RunByID(tx, run)
			return ok && r.Status == entity.RunSucceeded
		})
	}
}
