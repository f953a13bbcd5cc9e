package companytest

import (
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A bug wraps a handler and does something wrong, with which the tests show that their
// checks find it; nil does nothing.
type Bug func(h ledger.Handler) ledger.Handler

// In returns h with the bug in it.
func (b Bug) In(h ledger.Handler) ledger.Handler {
	if b == nil {
		return h
	}
	return b(h)
}

// KeptLocks leaves an issue locked when its run has ended.
func KeptLocks(h ledger.Handler) ledger.Handler {
	return func(c *ledger.Context) ([]byte, error) {
		var held []entity.Issue
		for _, i := range entity.IssueTable.All(c.Tx, c.Cmd.Company) {
			if i.Held() {
				held = append(held, i)
			}
		}
		v, err := h(c)
		if err != nil {
			return v, err
		}
		for _, was := range held {
			now, ok := entity.IssueTable.Get(c.Tx, was.Company, was.ID)
			if r, known := entity.RunByID(c.Tx, was.CheckoutRun); !ok || now.Held() || !known || r.Status.Live() {
				continue
			}
			next := now
			next.CheckoutRun, next.Fence = was.CheckoutRun, was.Fence
			company.StoreIssue(c.Tx, now, next)
		}
		return v, err
	}
}
