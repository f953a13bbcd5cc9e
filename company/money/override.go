package money

import (
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// An override is the waiting command of a budget approval: set the limit of one scope and
// window to Amount. Without a scope or an amount there is nothing to execute.
type override struct {
	Type   entity.ScopeType
	Scope  string
	Window WindowKind
	Amount *core.Money
}

// overrideOf reads an override from a payload: scopeType, scopeId, windowKind and
// proposedAmount, or amount, in whole cents.
func overrideOf(payload json.RawMessage) (o override, err error) {
	var p struct {
		Type     entity.ScopeType `json:"scopeType"`
		Scope    string           `json:"scopeId"`
		Window   WindowKind       `json:"windowKind"`
		Proposed *int64           `json:"proposedAmount"`
		Amount   *int64           `json:"amount"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return o, ledger.Refuse(ledger.Invalid, nil, "payload does not describe a budget")
	}
	o = override{Type: p.Type, Scope: p.Scope, Window: p.Window}
	if p.Proposed == nil {
		p.Proposed = p.Amount
	}
	if p.Proposed != nil {
		if *p.Proposed < 0 || *p.Proposed > maxHireBudget {
			return o, ledger.Refuse(ledger.Invalid, nil, "payload.amount is out of range")
		}
		o.Amount = new(core.Cents(*p.Proposed))
	}
	if o.Window != "" && !slices.Contains(WindowKinds, o.Window) {
		return o, ledger.Refuse(ledger.Invalid, nil, "payload.windowKind is not a window: %s", o.Window)
	}
	if o.Type != "" && !slices.Contains([]entity.ScopeType{entity.ScopeCompany, entity.ScopeAgent,
		entity.ScopeProject}, o.Type) {
		return o, ledger.Refuse(ledger.Invalid, nil, "payload.scopeType is not a scope: %s", o.Type)
	}
	return o, nil
}

// askForOverride asks the board about a hard stop. The payload has the spent money and the
// limit; it proposes the spent money plus one more budget. It returns the approval's ID.
func askForOverride(c *ledger.Context, b ScopeBudget, p BudgetPolicy, in BudgetIncident) string {
	company := c.Cmd.Company
	payload := core.Object{}.Str("scopeType", string(in.Type)).Str("scopeId", in.Scope).Str("scopeName",
		ScopeName(c.Tx, company, b.Type, b.ID)).
		Str("metric", "billed_cents").Str("windowKind", string(in.Window)).Raw("windowStart", momentJSON(in.Start)).
		Raw("windowEnd", momentJSON(in.End)).
		Str("policyId", in.Policy).Int("budgetAmount", in.Limit.Cents()).Int("observedAmount", in.Observed.Cents()).
		Int("warnPercent", p.WarnPercent).
		Str("thresholdType", in.Threshold).Int("proposedAmount", in.Observed.Plus(in.Limit).Cents()).
		Str("guidance", "Approve to raise the limit and let the scope go on, or reject to keep it paused.").Close()
	v, _ := core.ParseJSON(payload)
	a, err := openApproval(c, Approval{ID: core.DerivedID("budget-approval", in.ID), Company: company,
		Type: ApprovalBudget, Incident: core.NullText(in.ID), Payload: core.FormatJSON(v)}, nil)
	if err != nil {
		panic("company: " + err.Error()) // the ID is derived from the incident's, which is new
	}
	return a.ID
}

// momentJSON writes a time that is never null: a lifetime begins at zero.
func momentJSON(t core.Time) []byte {
	if t == 0 {
		return []byte(`"1970-01-01T00:00:00.000Z"`)
	}
	return t.AppendJSON(nil)
}

// overrideBudget raises the limit of an approval, to amount if the board names one. It closes
// the incident and resumes the scope.
func overrideBudget(c *ledger.Context, a Approval, payload json.RawMessage, amount *core.Money) error {
	o, err := overrideOf(payload)
	if err != nil {
		return err
	}
	if amount != nil {
		o.Amount = amount
	}
	if o.Type == "" || o.Scope == "" || o.Amount == nil {
		return nil // a question without a command
	}
	if !ScopeExists(c.Tx, a.Company, o.Type, o.Scope) {
		return ledger.Refuse(ledger.NotFound, nil, "%s not found", scopeTitle(o.Type))
	}
	if o.Window == "" {
		o.Window = WindowMonth
	}
	if err := raiseBudget(c, o); err != nil {
		return err
	}
	closeIncident(c, string(a.Incident), "resolved")
	return nil
}

// raiseBudget sets a limit above the spent money.
func raiseBudget(c *ledger.Context, o override) error {
	b := BudgetOf(c.Tx, c.Cmd.Company, o.Type, o.Scope, core.TimeOf(c.Now))
	if *o.Amount <= b.Spent(o.Window) {
		return ledger.Refuse(ledger.Unprocessable, nil, "New budget must exceed current observed spend")
	}
	_, err := setPolicy(c, SetBudget{Type: o.Type, Scope: o.Scope, Window: o.Window, Amount: *o.Amount})
	return err
}

// pastIncidents returns up to limit open incidents whose window ended before now.
func pastIncidents(tx *ledger.Tx, company ledger.CompanyID, now core.Time, limit int) []BudgetIncident {
	var out []BudgetIncident
	for id := range incidentsOpen.IDs(tx, company, "open", false) {
		if in, ok := Incidents.Get(tx, company, id); ok && now >= in.End {
			if out = append(out, in); len(out) == limit {
				break
			}
		}
	}
	return out
}

// dropIncidents closes the open incidents of an agent that is deleted.
func dropIncidents(c *ledger.Context, a entity.Agent) {
	b, _ := BudgetTable.Get(c.Tx, a.Company, scopeKey(entity.ScopeAgent, a.ID))
	for _, p := range b.Policies {
		if in, ok := Incidents.Get(c.Tx, a.Company, p.Hard); ok {
			settleApproval(c, in.Approval, ApprovalCancelled)
		}
		closeIncident(c, p.Soft, "resolved")
		closeIncident(c, p.Hard, "resolved")
	}
}
