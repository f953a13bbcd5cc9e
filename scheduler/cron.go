package scheduler

import (
	"context"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/cron"
	"github.com/selvage-mesh/selvage/ledger"
)

// fireCron fires the kernel's jobs that are due. A time that was submitted twice, by two
// leaders or after a lost answer, is refused the second time.
func (l *Leader) fireCron(ctx context.Context) error {
	type due struct {
		company ledger.CompanyID
		tick    cron.Tick
	}
	var all []due
	err := view(ctx, l.cfg.Node, func(tx *ledger.Tx) error {
		now := core.TimeOf(l.cfg.Now())
		for _, j := range cron.Due(tx, now, ticksPerLook) {
			most := 1
			if j.Missed == cron.MissedAll {
				most = cron.MaxLate
			}
			t := cron.Tick{Name: j.Name, Due: j.Due}
			t.Next, t.Left, t.Problem = afterDue(j.Cron, j.Zone, j.Due, now, most)
			all = append(all, due{j.Company, t})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return each(all, func(d due) error {
		_, err := l.submit(ctx, cron.KindTick, d.company, d.tick)
		return err
	})
}
