package company

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// What goes is not named any more by what stays: a row that did would refuse
// every later change of its own, since what it names is not there.

// leaderless takes an agent that goes from the projects that it leads and the
// goals that it owns.
func leaderless(c *ledger.Context, agent string) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	for id, p := range ProjectTable.All(c.Tx, company) {
		if string(p.Lead) == agent {
			p.Lead, p.UpdatedAt = "", now
			ProjectTable.Put(c.Tx, company, id, p)
		}
	}
	for id, g := range Goals.All(c.Tx, company) {
		if string(g.Owner) == agent { // whose root it is does not change, see storeGoal
			g.Owner, g.UpdatedAt = "", now
			Goals.Put(c.Tx, company, id, g)
		}
	}
}
