package scheduler

import (
	"context"
	"slices"

	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A sweep is the position of the leader's search through the issues of agents. A new
// leader begins at the start.
type sweep struct {
	company ledger.CompanyID
	from    []byte // see company.Stranded
}

// recoverStranded recovers a few of the open issues that nothing continues. Each call
// goes on where the last one ended.
func (l *Leader) recoverStranded(ctx context.Context) error {
	now := l.cfg.Clock()
	if l.looked != 0 && now-l.looked < strandedEvery {
		return nil
	}
	l.looked = max(now, 1)
	var all []entity.Issue
	reads := strandedReads
	err := view(ctx, l.cfg.Node, func(tx *ledger.Tx) error {
		if _, halted := entity.Halted(tx); halted {
			return nil
		}
		at := core.TimeOf(l.cfg.Now())
		rows := entity.Companies(tx)
		first := max(0, slices.IndexFunc(rows, func(row entity.Company) bool { return row.ID == l.sweep.company }))
		for _, row := range rows[first:] {
			if row.Status != "active" {
				continue
			}
			var from, next []byte
			if row.ID == l.sweep.company {
				from = l.sweep.from
			}
			var found []entity.Issue
			found, next, reads = care.Stranded(tx, row.ID, at, from, strandedPerLook-len(all), reads)
			all = append(all, found...)
			if next != nil {
				l.sweep = sweep{row.ID, next}
				return nil
			}
		}
		l.sweep = sweep{}
		return nil
	})
	if err != nil {
		return err
	}
	return each(all, func(i entity.Issue) error {
		_, err := l.submit(ctx, care.KindIssueRecover, i.Company, care.RecoverIssue{Issue: i.ID})
		return err
	})
}
