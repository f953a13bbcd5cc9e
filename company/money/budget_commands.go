package money

import (
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// SetBudget is the payload of budget.set: the limit of one scope in one window. A nil field
// keeps the policy's value, or takes the default in a new policy.
type SetBudget struct {
	Type        entity.ScopeType `cbor:"1,keyasint"`
	Scope       string           `cbor:"2,keyasint"`
	Window      WindowKind       `cbor:"3,keyasint,omitempty"` // empty: the calendar month, for a project the lifetime
	Amount      core.Money       `cbor:"4,keyasint,omitempty"`
	WarnPercent *int64           `cbor:"5,keyasint,omitempty"`
	HardStop    *bool            `cbor:"6,keyasint,omitempty"`
	Notify      *bool            `cbor:"7,keyasint,omitempty"`
	Active      *bool            `cbor:"8,keyasint,omitempty"`
}

// ResolveIncident is the payload of budget.resolve.
type ResolveIncident struct {
	Incident string      `cbor:"1,keyasint"`
	Action   string      `cbor:"2,keyasint"`           // raise_budget_and_resume or keep_paused
	Amount   *core.Money `cbor:"3,keyasint,omitempty"` // the new limit, when raising
	Note     string      `cbor:"4,keyasint,omitempty"`
}

// DefaultWarnPercent is the warning threshold of a policy that sets none.
const DefaultWarnPercent = 80

const (
	KindBudgetSet     = "budget.set"
	KindBudgetResolve = "budget.resolve"
	KindBudgetSweep   = "budget.sweep"
)

var budgetKinds = []company.Kind{
	{Name: KindBudgetSet, From: company.FromBoard | company.FromAgent, Traits: company.Importable,
		Weight: company.Weights.Spending.With(budgetFacts), Do: ledger.Typed(setBudget)},
	{Name: KindBudgetResolve, From: company.FromBoard, Weight: company.Weights.Answering,
		Do: ledger.Typed(resolveIncident)},
	{Name: KindBudgetSweep, From: company.FromBoard | company.FromNode, Weight: company.Weights.Upkeep,
		Do: ledger.Typed(sweepBudgets)},
}

// budgetFacts tells the gate how much money a new limit allows.
func budgetFacts(cmd *ledger.Command, known *governance.Context) {
	var p SetBudget
	if ledger.Unmarshal(cmd.Payload, &p) == nil {
		known.Amount = min(max(p.Amount.Cents(), 0), governance.MaxAmount)
	}
}

func setBudget(c *ledger.Context, p SetBudget) (any, error) {
	if err := maySetBudget(c, p); err != nil {
		return nil, err
	}
	if !ScopeExists(c.Tx, c.Cmd.Company, p.Type, p.Scope) {
		return nil, ledger.Refuse(ledger.NotFound, nil, "%s not found", scopeTitle(p.Type))
	}
	if p.Window != "" && !slices.Contains(WindowKinds, p.Window) {
		return nil, ledger.Refuse(ledger.Invalid, nil, "windowKind is not a window: %s", core.Snippet(string(p.Window), 40))
	}
	b, err := setPolicy(c, p)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// maySetBudget lets the board set every limit, and a manager those of the agents below it.
func maySetBudget(c *ledger.Context, p SetBudget) error {
	if !core.IsAgent(c) {
		return nil
	}
	if p.Type == entity.ScopeAgent && p.Scope != c.Cmd.Actor.ID && entity.Manages(c.Tx, c.Cmd.Company,
		c.Cmd.Actor.ID, p.Scope) {
		return nil
	}
	return core.ErrBoardOnly()
}

// setPolicy stores a limit and immediately stops or resumes its scope. Creating an agent or
// a company with a budget uses it too.
func setPolicy(c *ledger.Context, p SetBudget) (ScopeBudget, error) {
	of, now := c.Cmd.Company, core.TimeOf(c.Now)
	if p.Window == "" {
		p.Window = WindowMonth
	}
	b := BudgetOf(c.Tx, of, p.Type, p.Scope, now)
	policy, ok := b.Policy(p.Window)
	if !ok {
		b = b.seed(p.Window, now)
		policy = BudgetPolicy{ID: core.DerivedID("budget-policy", string(of), string(p.Type), p.Scope, string(p.Window)),
			Window:      p.Window,
			WarnPercent: DefaultWarnPercent, HardStop: true, Notify: true, Active: true, CreatedAt: now}
	}
	policy.Amount, policy.UpdatedAt = p.Amount, now
	core.Assign(&policy.WarnPercent, p.WarnPercent)
	core.Assign(&policy.HardStop, p.HardStop)
	core.Assign(&policy.Notify, p.Notify)
	core.Assign(&policy.Active, p.Active)
	b = b.with(policy).rollSlots(now, 0)
	c.Record(ledger.Change{Action: "budget.policy_upserted", EntityType: "budget_policy", EntityID: policy.ID,
		Details: core.Object{}.Int("amount", policy.Amount.Cents()).Str("scopeId", b.ID).Str("scopeType", string(b.Type)).
			Str("windowKind", string(policy.Window)).Close()})
	if err := enforce(c, b); err != nil {
		return b, err
	}
	b = BudgetOf(c.Tx, of, b.Type, b.ID, now)
	if _, over := b.Exceeded(); over {
		return b, nil
	}
	if !entity.ScopePaused(c.Tx, of, b.Type, b.ID) {
		return b, nil
	}
	if err := resumeScope(c, b.Type, b.ID); err != nil {
		return b, err
	}
	return b, resumeWork(c)
}

func resolveIncident(c *ledger.Context, p ResolveIncident) (any, error) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	if core.IsAgent(c) {
		return nil, core.ErrBoardOnly()
	}
	in, ok := Incidents.Get(c.Tx, company, p.Incident)
	if !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Budget incident not found")
	}
	if in.Status != "open" {
		return nil, ledger.Refuse(ledger.Conflict, core.Object{}.Str("status", in.Status).Close(),
			"Budget incident is already resolved")
	}
	details := core.Object{}.Str("action", p.Action)
	switch p.Action {
	case "raise_budget_and_resume":
		b := BudgetOf(c.Tx, company, in.Type, in.Scope, now)
		if p.Amount == nil {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "Budget amount is required to raise the budget")
		}
		if *p.Amount <= b.Spent(in.Window) {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "New budget must exceed current observed spend")
		}
		closeIncident(c, in.ID, "resolved")
		if _, err := setPolicy(c, SetBudget{Type: in.Type, Scope: in.Scope, Window: in.Window,
			Amount: *p.Amount}); err != nil {
			return nil, err
		}
		details = details.Int("amount", p.Amount.Cents())
	case "keep_paused":
		closeIncident(c, in.ID, "dismissed")
		details = details.Null("amount", "")
	default:
		return nil, ledger.Refuse(ledger.Invalid, nil, "Unknown action %q", p.Action)
	}
	c.Record(ledger.Change{Action: "budget.incident_resolved", EntityType: "budget_incident", EntityID: in.ID,
		Details: details.Str("scopeId", in.Scope).Str("scopeType", string(in.Type)).Close()})
	in, _ = Incidents.Get(c.Tx, company, in.ID)
	return in, nil
}

func scopeTitle(t entity.ScopeType) string {
	switch t {
	case entity.ScopeAgent:
		return "Agent"
	case entity.ScopeProject:
		return "Project"
	}
	return "Company"
}
