package companytest

import (
	"testing"

	"github.com/selvage-mesh/selvage/company"
)

// Working gives an agent a run that works on an issue, as its node would.
func (d *Desk) Working(t testing.TB, agent string, i company.Issue) string {
	t.Helper()
	run := d.Run(agent)
	r, _ := company.RunTable.Get(d.Tx, d.Company, run)
	r.Context.IssueID = i.ID
	d.StoreRun(r)
	return run
}
