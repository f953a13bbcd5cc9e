package company

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// SettleCompany is the payload of company.settle, by which the leader continues what one
// command could not finish: ending the runs of a paused or archived company.
type SettleCompany struct{}

// CompanyToSettle reports whether company.settle would end a run: a company that takes no
// runs still has live ones.
func CompanyToSettle(tx *ledger.Tx, company ledger.CompanyID) bool {
	row, ok := entity.CompanyTable.Get(tx, company, company)
	return ok && row.Rests() && len(entity.RunsInScope(tx, company, entity.ScopeCompany, string(company), 1)) > 0
}

func settleCompany(c *ledger.Context, _ SettleCompany) (any, error) {
	row, ok := entity.CompanyTable.Get(c.Tx, c.Cmd.Company, c.Cmd.Company)
	if !ok {
		return nil, ErrNoCompany()
	}
	if !row.Rests() {
		return nil, ledger.Refuse(ledger.Conflict, core.StatusDetail("companyId", string(row.ID), row.Status),
			"The company is neither paused nor archived")
	}
	denied, why := DeniedCompany, "Cancelled: the company is "+string(row.Status)
	if row.PauseReason == entity.PausedForBudget {
		denied, why = DeniedBudget, "Cancelled: the budget hard-stop of the company was reached"
	}
	ended := entity.RunsInScope(c.Tx, row.ID, entity.ScopeCompany, string(row.ID), MaxStoppedRuns)
	if len(ended) == 0 {
		return nil, ledger.Refuse(ledger.Conflict, core.StatusDetail("companyId", string(row.ID), row.Status),
			"Nothing is at work in the company")
	}
	for _, r := range ended {
		DenyLive(c, r, denied, why)
	}
	c.Record(ledger.Change{Action: "company.settled", EntityType: "company", EntityID: string(row.ID),
		Details: core.Object{}.Int("runs", int64(len(ended))).Close()})
	return nil, nil
}
