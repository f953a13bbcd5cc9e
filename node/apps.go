package node

import (
	"github.com/selvage-mesh/selvage/company/app"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// decidedApps returns commands for the apps whose upgrade is decided by the runs since, or by the end of its time.
func (n *Node) decidedApps(tx *ledger.Tx, now core.Time) (due []ledger.Command) {
	for _, of := range entity.Companies(tx) {
		for a := range app.All(tx, of.ID) {
			if h, _ := app.HealthOf(tx, a, now); h != app.Unknown {
				due = append(due, n.command(app.KindSettle, of.ID, app.Change{ID: a.ID}))
			}
		}
	}
	return due
}
