package company

import (
	"slices"

	"github.com/selvage-mesh/selvage/ledger"
)

// SetBudget is the payload of budget.set: the limit of one scope in one window.
// A nil field keeps what the policy has, or takes the default when it is new.
type SetBudget struct {
	Type        ScopeType  `cbor:"1,keyasint"`
	Scope       string     `cbor:"2,keyasint"`
	Window      WindowKind `cbor:"3,keyasint,omitempty"` // empty: the calendar month, for a project its lifetime
	Amount      Money      `cbor:"4,keyasint,omitempty"`
	WarnPercent *int64     `cbor:"5,keyasint,omitempty"`
	HardStop    *bool      `cbor:"6,keyasint,omitempty"`
	Notify      *bool      `cbor:"7,keyasint,omitempty"`
	Active      *bool      `cbor:"8,keyasint,omitempty"`
}

// ResolveIncident is the payload of budget.resolve.
type ResolveIncident struct {
	Incident string `cbor:"1,keyasint"`
	Action   string `cbor:"2,keyasint"`           // raise_budget_and_resume or keep_paused
	Amount   *Money `cbor:"3,keyasint,omitempty"` // the new limit when raising
	Note     string `cbor:"4,keyasint,omitempty"`
}

// DefaultWarnPercent is where a warning is given unless a policy says otherwise.
const DefaultWarnPercent = 80

const (
	KindBudgetSet     = "budget.set"
	KindBudgetResolve = "budget.resolve"
	KindBudgetSweep   = "budget.sweep"
)

var budgetKinds = []Kind{
	{Name: KindBudgetSet, From: FromBoard | FromAgent, Traits: Importable, Do: ledger.Typed(setBudget)},
	{Name: KindBudgetResolve, From: FromBoard, Do: ledger.Typed(resolveIncident)},
	{Name: KindBudgetSweep, From: FromBoard | FromNode, Do: ledger.Typed(sweepBudgets)},
}

func setBudget(c *ledger.Context, p SetBudget) (any, error) {
	if err := maySetBudget(c, p); err != nil {
		return nil, err
	}
	if !scopeExists(c.Tx, c.Cmd.Company, p.Type, p.Scope) {
		return nil, ledger.Refuse(ledger.NotFound, nil, "%s not found", scopeTitle(p.Type))
	}
	if p.Window != "" && !slices.Contains(WindowKinds, p.Window) {
		return nil, ledger.Refuse(ledger.Invalid, nil, "windowKind is not a window: %s", snippet(string(p.Window), 40))
	}
	b, err := setPolicy(c, p)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// maySetBudget lets the board set any limit, and a manager those of the agents
// below it.
func maySetBudget(c *ledger.Context, p SetBudget) error {
	if !isAgent(c) {
		return nil
	}
	if p.Type == ScopeAgent && p.Scope != c.Cmd.Actor.ID && manages(c.Tx, c.Cmd.Company, c.Cmd.Actor.ID, p.Scope) {
		return nil
	}
	return errBoardOnly()
}

// setPolicy puts a limit in place and at once stops or frees the scope that it
// is for. Creating an agent or a company with a budget uses it too.
func setPolicy(c *ledger.Context, p SetBudget) (ScopeBudget, error) {
	company, now := c.Cmd.Company, TimeOf(c.Now)
	if p.Window == "" {
		p.Window = WindowMonth
	}
	b := BudgetOf(c.Tx, company, p.Type, p.Scope, now)
	policy, ok := b.Policy(p.Window)
	if !ok {
		b = b.seed(p.Window, now)
		policy = BudgetPolicy{ID: derivedID("budget-policy", company, string(p.Type), p.Scope, string(p.Window)), Window: p.Window,
			WarnPercent: DefaultWarnPercent, HardStop: true, Notify: true, Active: true, CreatedAt: now}
	}
	policy.Amount, policy.UpdatedAt = p.Amount, now
	set(&policy.WarnPercent, p.WarnPercent)
	set(&policy.HardStop, p.HardStop)
	set(&policy.Notify, p.Notify)
	set(&policy.Active, p.Active)
	b = b.with(policy).rollSlots(now, 0)
	c.Record(ledger.Change{Action: "budget.policy_upserted", EntityType: "budget_policy", EntityID: policy.ID,
		Details: jsonObject{}.int("amount", policy.Amount.Cents()).str("scopeId", b.ID).str("scopeType", string(b.Type)).str("windowKind", string(policy.Window)).close()})
	if err := enforce(c, b); err != nil {
		return b, err
	}
	b = BudgetOf(c.Tx, company, b.Type, b.ID, now)
	if _, over := b.Exceeded(); over {
		return b, nil
	}
	if !ScopePaused(c.Tx, company, b.Type, b.ID) {
		return b, nil
	}
	if err := resumeScope(c, b.Type, b.ID); err != nil {
		return b, err
	}
	return b, resumeWork(c)
}

func resolveIncident(c *ledger.Context, p ResolveIncident) (any, error) {
	company, now := c.Cmd.Company, TimeOf(c.Now)
	if isAgent(c) {
		return nil, errBoardOnly()
	}
	in, ok := incidents.Get(c.Tx, company, p.Incident)
	if !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Budget incident not found")
	}
	if in.Status != "open" {
		return nil, ledger.Refuse(ledger.Conflict, jsonObject{}.str("status", in.Status).close(), "Budget incident is already resolved")
	}
	details := jsonObject{}.str("action", p.Action)
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
		if _, err := setPolicy(c, SetBudget{Type: in.Type, Scope: in.Scope, Window: in.Window, Amount: *p.Amount}); err != nil {
			return nil, err
		}
		details = details.int("amount", p.Amount.Cents())
	case "keep_paused":
		closeIncident(c, in.ID, "dismissed")
		details = details.null("amount", "")
	default:
		return nil, ledger.Refuse(ledger.Invalid, nil, "Unknown action %q", p.Action)
	}
	c.Record(ledger.Change{Action: "budget.incident_resolved", EntityType: "budget_incident", EntityID: in.ID,
		Details: details.str("scopeId", in.Scope).str("scopeType", string(in.Type)).close()})
	in, _ = incidents.Get(c.Tx, company, in.ID)
	return in, nil
}

func scopeTitle(t ScopeType) string {
	switch t {
	case ScopeAgent:
		return "Agent"
	case ScopeProject:
		return "Project"
	}
	return "Company"
}
