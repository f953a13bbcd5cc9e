package api

import (
	"encoding/json"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/ledger"
)

// Each starter company comes in by its name's package and works: every agent of it
// runs, its task is done by whom it is for, and its routine makes an issue.
func TestStartersComeInAndWork(t *testing.T) {
	h, runs := newWorkingHarness(t), map[string]string{}
	for _, name := range portable.Starters() {
		files, _ := portable.Starter(name)
		m, _, err := portable.Read(files)
		if err != nil {
			t.Fatal(err)
		}
		overrides := map[string]any{} // what is on this machine, instead of a vendor's program
		for _, a := range m.Agents {
			overrides[a.Slug] = map[string]any{"adapterType": "process", "adapterConfig": map[string]any{"command": "/bin/echo", "args": []string{name}}}
		}
		text, err := json.Marshal(overrides)
		if err != nil {
			t.Fatal(err)
		}
		var done imported
		if err := json.Unmarshal(h.call("POST", "/api/companies/import", importOf(t, exported{Files: files}, `{"mode":"new_company"}`, `,"adapterOverrides":`+string(text))).want(t, 200, "").body, &done); err != nil {
			t.Fatal(err)
		}
		if len(done.Agents) != len(m.Agents) || len(done.Routines) != 1 || len(done.Warnings) > 0 {
			t.Errorf("%s came in as %+v", name, done)
		}
		for _, a := range done.Agents {
			runs[name+": "+a.Name] = h.call("POST", "/api/agents/"+*a.ID+"/heartbeat/invoke", `{}`).want(t, 202, "").field(t, "id")
		}
		h.call("PATCH", "/api/routines/"+*done.Routines[0].ID, `{"status":"active"}`).want(t, 200, "")
		h.call("POST", "/api/routines/"+*done.Routines[0].ID+"/run", `{}`).want(t, 202, `"status":"issue_created"`)
	}
	for who, run := range runs {
		h.until("a run of "+who, func(tx *ledger.Tx) bool {
			r, ok := company.RunByID(tx, run)
			return ok && r.Status == company.RunSucceeded
		})
	}
}
