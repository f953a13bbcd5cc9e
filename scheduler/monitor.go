package scheduler

import (
	"context"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/ledger"
)

// fireMonitors wakes the agents that wait for something outside, when the time
// has come at which they wished to look again.
func (l *Leader) fireMonitors(ctx context.Context) error {
	var due []company.DueMonitor
	err := view(ctx, l.cfg.Node, func(tx *ledger.Tx) error {
		due = company.DueMonitors(tx, company.TimeOf(l.cfg.Now()), ticksPerLook)
		return nil
	})
	if err != nil {
		return err
	}
	return each(due, func(d company.DueMonitor) error {
		_, err := l.submit(ctx, company.KindIssueMonitor, d.Company, d.CheckMonitor)
		return err
	})
}
