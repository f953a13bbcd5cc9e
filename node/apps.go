package node

import (
	"github.com/selvage-mesh/selvage/company/app"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// decidedApps returns commands for the apps whose upgrade is decided, and for those of which a program of a hook ended.
func (n *Node) decidedApps(tx *ledger.Tx, now core.Time) (due []ledger.Command) {
	for _, of := range entity.Companies(tx) {
		for _, id := range app.Due(tx, of.ID, now) {
			due = append(due, n.command(app.KindSettle, of.ID, app.Change{ID: id}))
		}
	}
	return due
}
