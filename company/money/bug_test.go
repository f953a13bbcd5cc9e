package money_test

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// uncountedHolds grants reservations as if nothing were held.
func uncountedHolds(h ledger.Handler) ledger.Handler {
	return func(c *ledger.Context) ([]byte, error) {
		was := map[string]core.Money{}
		for id, b := range money.BudgetTable.All(c.Tx, c.Cmd.Company) {
			was[id], b.Held = b.Held, 0
			money.PutBudget(c.Tx, c.Cmd.Company, b)
		}
		v, err := h(c)
		for id, held := range was {
			b, _ := money.BudgetTable.Get(c.Tx, c.Cmd.Company, id)
			b.Held += held
			money.PutBudget(c.Tx, c.Cmd.Company, b)
		}
		return v, err
	}
}
