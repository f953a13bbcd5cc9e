package companytest

import (
	"testing"

	"github.com/selvage-mesh/selvage/company/entity"
)

// Working gives an agent a run that works on an issue, as its node would.
func (d *Desk) Working(t testing.TB, agent string, i entity.Issue) string {
	t.Helper()
	run := d.Run(agent)
	r, _ := entity.RunTable.Get(d.Tx, d.Company, run)
	r.Context.IssueID = i.ID
	d.StoreRun(r)
	return run
}
