package node

import (
	"context"
	"errors"

	"github.com/selvage-mesh/selvage/company/app"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// keepApps gives the commands for apps while this node leads, as soon as a node has said that a process ended. What
// only time decides, and what failed here, is left to keepHouse.
func (n *Node) keepApps(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.appNews:
		}
		if !n.consensus.IsLeader() {
			continue
		}
		var due []ledger.Command
		err := n.ledger.View(func(tx *ledger.Tx) error {
			due = n.decidedApps(tx, core.TimeOf(n.consensus.Now()))
			return nil
		})
		for _, cmd := range due[:min(len(due), maxChores)] {
			err = errors.Join(err, n.carryOut(ctx, cmd))
		}
		if err != nil && ctx.Err() == nil {
			n.log.Debug("apps", "error", err) // keepHouse may have been first
		}
	}
}

// decidedApps returns commands for the apps whose upgrade is decided, and for those of which a program of a hook ended.
func (n *Node) decidedApps(tx *ledger.Tx, now core.Time) (due []ledger.Command) {
	for _, of := range entity.Companies(tx) {
		for _, id := range app.Due(tx, of.ID, now) {
			due = append(due, n.command(app.KindSettle, of.ID, app.Change{ID: id}))
		}
	}
	return due
}
