package scheduler

import (
	"context"

	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// fireMonitors wakes the agents that wait for something outside the mesh, at the time
// that they asked for.
func (l *Leader) fireMonitors(ctx context.Context) error {
	var due []care.DueMonitor
	err := view(ctx, l.cfg.Node, func(tx *ledger.Tx) error {
		due = care.DueMonitors(tx, core.TimeOf(l.cfg.Now()), ticksPerLook)
		return nil
	})
	if err != nil {
		return err
	}
	return each(due, func(d care.DueMonitor) error {
		_, err := l.submit(ctx, care.KindIssueMonitor, d.Company, d.CheckMonitor)
		return err
	})
}
