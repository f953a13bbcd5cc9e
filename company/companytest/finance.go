package companytest

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/money"
)

func (d *Desk) Book(kind, biller string, cents int64, change func(*money.FinanceEvent)) error {
	e := money.FinanceEvent{ID: d.ID(), Kind: kind, Biller: biller, Amount: core.Cents(cents),
		OccurredAt: core.TimeOf(d.Now)}
	if change != nil {
		change(&e)
	}
	return d.Do(Board, "finance.book", e, nil)
}
