package scheduler

import (
	"context"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/ledger"
)

// recoverStranded does something about the issues that nothing brings on, a few
// at each look.
func (l *Leader) recoverStranded(ctx context.Context) error {
	now := l.cfg.Clock()
	if l.looked != 0 && now-l.looked < strandedEvery {
		return nil
	}
	l.looked = max(now, 1)
	var all []company.Issue
	err := view(ctx, l.cfg.Node, func(tx *ledger.Tx) error {
		if _, halted := company.Halted(tx); halted {
			return nil
		}
		at := company.TimeOf(l.cfg.Now())
		for _, row := range company.Companies(tx) {
			if row.Status == "active" && len(all) < strandedPerLook {
				all = append(all, company.Stranded(tx, row.ID, at, strandedPerLook-len(all))...)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return each(all, func(i company.Issue) error {
		_, err := l.submit(ctx, "issue.recover", i.Company, company.RecoverIssue{Issue: i.ID})
		return err
	})
}
