package company

import "github.com/selvage-mesh/selvage/ledger"

// A bug wraps a handler and does something wrong, with which the tests show that their
// checks find it; nil does nothing.
type bug func(h ledger.Handler) ledger.Handler

// in returns h with the bug in it.
func (b bug) in(h ledger.Handler) ledger.Handler {
	if b == nil {
		return h
	}
	return b(h)
}

// keptLocks leaves an issue locked when its run has ended.
func keptLocks(h ledger.Handler) ledger.Handler {
	return func(c *ledger.Context) ([]byte, error) {
		var held []Issue
		for _, i := range issues.All(c.Tx, c.Cmd.Company) {
			if i.Held() {
				held = append(held, i)
			}
		}
		v, err := h(c)
		if err != nil {
			return v, err
		}
		for _, was := range held {
			now, ok := issues.Get(c.Tx, was.Company, was.ID)
			if r, known := RunByID(c.Tx, was.CheckoutRun); !ok || now.Held() || !known || r.Status.Live() {
				continue
			}
			next := now
			next.CheckoutRun, next.Fence = was.CheckoutRun, was.Fence
			storeIssue(c.Tx, now, next)
		}
		return v, err
	}
}

// uncountedHolds grants reservations as if nothing were held.
func uncountedHolds(h ledger.Handler) ledger.Handler {
	return func(c *ledger.Context) ([]byte, error) {
		was := map[string]Money{}
		for id, b := range budgets.All(c.Tx, c.Cmd.Company) {
			was[id], b.Held = b.Held, 0
			putBudget(c.Tx, c.Cmd.Company, b)
		}
		v, err := h(c)
		for id, held := range was {
			b, _ := budgets.Get(c.Tx, c.Cmd.Company, id)
			b.Held += held
			putBudget(c.Tx, c.Cmd.Company, b)
		}
		return v, err
	}
}
