package money

import (
	"cmp"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

type fatBudget struct {
	SpentMonthlyCents core.Money  `json:"spentMonthlyCents"`
	Policies          []fatPolicy `json:"policies"`
}

type fatPolicy struct {
	Window WindowKind `json:"windowKind"`
	Amount core.Money `json:"amountCents"`
}

// Rules are what money adds to the kernel.
var Rules = company.Rules{
	Kinds: slices.Concat(costKinds, budgetKinds, reservationKinds, financeKinds, runCostKinds, approvalKinds, hireKinds,
		modelKinds),
	Causes: causes,
	Forget: map[string]func(tx *ledger.Tx, id string, row []byte){"approval": func(tx *ledger.Tx, id string,
		_ []byte) {
		tx.Delete(ApprovalCompanyKey(id))
	}},
	CompanyStored: func(c *ledger.Context, was, row entity.Company, p entity.SaveCompany) error {
		if p.Budget == nil || was.ID == "" && *p.Budget <= 0 {
			return nil
		}
		return limits{}.Set(c, entity.ScopeCompany, string(row.ID), *p.Budget)
	},
	AgentEnds: cancelHire,
	AgentDeleted: func(c *ledger.Context, a entity.Agent) {
		dropHire(c.Tx, a)
		dropIncidents(c, a)
		BudgetTable.Delete(c.Tx, a.Company, scopeKey(entity.ScopeAgent, a.ID))
	},
	IssueDeleted: func(c *ledger.Context, i entity.Issue) { dropApprovalLinks(c.Tx, i) },
	CheckWake: func(tx *ledger.Tx, company ledger.CompanyID, _ entity.Issue, w entity.Wake) error {
		if w.Approval != "" && !tx.Has(Approvals.Key(company, w.Approval)) {
			return ledger.Refuse(ledger.NotFound, nil, "Approval not found")
		}
		return nil
	},
	Spent: func(tx *ledger.Tx, r entity.Run) error {
		if exhausted(r, tx) {
			return ledger.Refuse(ledger.Conflict, nil, "what the work on the issue may cost is spent")
		}
		return nil
	},
	Awaits: func(tx *ledger.Tx, i entity.Issue) bool {
		return slices.ContainsFunc(ApprovalsOfIssue(tx, i.Company, i.ID), func(a Approval) bool { return a.Status.Open() })
	},
	Limits:    limits{},
	Approvals: questions{},
	Sealed: func(tx *ledger.Tx, company ledger.CompanyID) (out []conceal.SealedConfig) {
		for _, p := range ModelProvidersOf(tx, company) {
			if p.Sealed != "" {
				out = append(out, conceal.SealedConfig{Type: "model_provider", ID: p.ID, Owner: p.ID,
					Values: []conceal.SealedValue{{Path: ModelKeyPath, Sealed: p.Sealed}}})
			}
		}
		if company == "" {
			return out
		}
		for id, d := range approvalDrafts.All(tx, company) {
			if a, ok := Approvals.Get(tx, company, id); ok {
				o := conceal.SealedConfig{Type: "approval", ID: id, Owner: cmp.Or(string(a.Agent), core.DerivedID("hire", id))}
				o.Collect("", d.Payload)
				out = append(out, o)
			}
		}
		return out
	},
	Reseal: map[string]func(c *ledger.Context, p conceal.Reseal) error{
		"model_provider": func(c *ledger.Context, p conceal.Reseal) error {
			m, ok := ModelProviderOf(c.Tx, c.Cmd.Company, p.ID)
			if !ok || m.Sealed != p.Old[0] {
				return errNoModelProvider()
			}
			m.Sealed = p.New[0]
			putModelProvider(c.Tx, m)
			return nil
		},
		"approval": func(c *ledger.Context, p conceal.Reseal) error {
			d, ok := approvalDrafts.Get(c.Tx, c.Cmd.Company, p.ID)
			if !ok {
				return errNoApproval()
			}
			d.Payload = p.Config(d.Payload)
			approvalDrafts.Put(c.Tx, c.Cmd.Company, p.ID, d)
			return nil
		},
	},
}

// limits implements the kernel's port for budgets.
type limits struct{}

func (limits) Set(c *ledger.Context, t entity.ScopeType, id string, limit core.Money) error {
	_, err := setPolicy(c, SetBudget{Type: t, Scope: id, Amount: limit})
	return err
}

func (limits) Limit(tx *ledger.Tx, company ledger.CompanyID, agent string, now core.Time) core.Money {
	limit, _ := AgentBudget(tx, company, agent, now)
	return limit
}

func (limits) Today(tx *ledger.Tx, of ledger.CompanyID, agent string, now core.Time) core.Money {
	return BudgetOf(tx, of, entity.ScopeAgent, agent, now).Day
}

func (limits) Told(tx *ledger.Tx, of ledger.CompanyID, agent string, now core.Time) any {
	b := BudgetOf(tx, of, entity.ScopeAgent, agent, now)
	budget := fatBudget{SpentMonthlyCents: b.Month, Policies: []fatPolicy{}}
	for _, p := range b.Policies {
		budget.Policies = append(budget.Policies, fatPolicy{p.Window, p.Amount})
	}
	return budget
}

func (limits) MayResume(c *ledger.Context, t entity.ScopeType, id string) error {
	b := BudgetOf(c.Tx, c.Cmd.Company, t, id, core.TimeOf(c.Now))
	if p, over := b.Exceeded(); over {
		return refuseBudget(b, p)
	}
	return nil
}

func (limits) Renew(c *ledger.Context, agent, project string) error {
	if err := overBudget(c, agent, project); err != nil {
		return err
	}
	return renewScopes(c, agent, project)
}

func (limits) Allow(c *ledger.Context, i entity.Issue, limit *core.Money) (entity.Issue, error) {
	return allow(c, i, limit)
}

func (limits) Book(c *ledger.Context, r entity.Run, told *entity.RunCost) error {
	return bookRunCost(c, r, told)
}
