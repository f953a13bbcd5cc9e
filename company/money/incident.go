package money

import (
	"cmp"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A BudgetIncident is a threshold that was crossed in one window.
type BudgetIncident struct {
	ID         string           `cbor:"1,keyasint"`
	Policy     string           `cbor:"2,keyasint"`
	Type       entity.ScopeType `cbor:"3,keyasint"`
	Scope      string           `cbor:"4,keyasint"`
	Window     WindowKind       `cbor:"5,keyasint"`
	Start      core.Time        `cbor:"6,keyasint,omitempty"`
	End        core.Time        `cbor:"7,keyasint"`
	Threshold  string           `cbor:"8,keyasint"` // soft or hard
	Limit      core.Money       `cbor:"9,keyasint"`
	Observed   core.Money       `cbor:"10,keyasint"`
	Status     string           `cbor:"11,keyasint"` // open, resolved or dismissed
	ResolvedAt core.Time        `cbor:"12,keyasint,omitempty"`
	CreatedAt  core.Time        `cbor:"13,keyasint"`
	UpdatedAt  core.Time        `cbor:"14,keyasint"`
	// Approval asks the board about a hard stop; "" for a warning.
	Approval string `cbor:"15,keyasint,omitempty"`
}

var (
	Incidents = ledger.NewTable[string, BudgetIncident]("budget-incident").
			Beside(ledger.Indexed(incidentsOpen, func(in *BudgetIncident) string { return in.Status }))
	incidentsOpen = ledger.NewIndex[string, string]("budget-incident-status")
)

// Incident returns one incident of company.
func Incident(tx *ledger.Tx, company ledger.CompanyID, id string) (BudgetIncident, bool) {
	return Incidents.Get(tx, company, id)
}

// OpenIncidents returns the open incidents of current windows, newest first.
func OpenIncidents(tx *ledger.Tx, company ledger.CompanyID, now core.Time) []BudgetIncident {
	out := []BudgetIncident{}
	for id := range incidentsOpen.IDs(tx, company, "open", false) {
		if in, ok := Incidents.Get(tx, company, id); ok && now < in.End {
			out = append(out, in)
		}
	}
	slices.SortStableFunc(out, func(a, b BudgetIncident) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	return out
}

// MaxIncidents bounds a list of incidents; it has the newest.
const MaxIncidents = 500

// IncidentsOf returns the newest incidents with a status, "" for any.
func IncidentsOf(tx *ledger.Tx, company ledger.CompanyID, status string) []BudgetIncident {
	out := []BudgetIncident{}
	for _, in := range Incidents.All(tx, company) {
		if status == "" || in.Status == status {
			out = append(out, in)
		}
	}
	slices.SortStableFunc(out, func(a, b BudgetIncident) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	return out[:min(len(out), MaxIncidents)]
}

// enforce opens and closes incidents as the sums require, stores b, and pauses the scope when
// a hard stop is reached.
func enforce(c *ledger.Context, b ScopeBudget) error {
	now := core.TimeOf(c.Now)
	for _, p := range b.Policies {
		spent := b.Spent(p.Window)
		p.Since = p.Window.Window(now).From
		if p.Window.Rolling() { // its incidents end only when everything that they counted has left the window
			p.Hard, p.Soft = lasting(c.Tx, c.Cmd.Company, p.Hard, now), lasting(c.Tx, c.Cmd.Company, p.Soft, now)
		}
		switch p.Status(spent) {
		case "hard_stop":
			if p.Hard == "" {
				closeIncident(c, p.Soft, "resolved")
				p.Hard = openIncident(c, b, p, "hard", spent)
			}
		case "warning":
			closeIncident(c, p.Hard, "resolved")
			p.Hard = ""
			if p.Soft == "" {
				p.Soft = openIncident(c, b, p, "soft", spent)
			}
		default:
			closeIncident(c, p.Hard, "resolved")
			closeIncident(c, p.Soft, "resolved")
			p.Hard, p.Soft = "", ""
		}
		b = b.with(p)
	}
	putBudget(c.Tx, c.Cmd.Company, b)
	if _, over := b.Exceeded(); over {
		return pauseScope(c, b.Type, b.ID)
	}
	return nil
}

// openIncident records a crossed threshold and returns the incident's ID.
func openIncident(c *ledger.Context, b ScopeBudget, p BudgetPolicy, threshold string, spent core.Money) string {
	now := core.TimeOf(c.Now)
	w := p.Window.Window(now)
	if unit, n := p.Window.Rolls(); n > 0 {
		w.To += unit * n // by then everything counted now has left the window
	}
	in := BudgetIncident{ID: core.DerivedID("budget-incident", p.ID, threshold, ledger.Order(c.Height)), Policy: p.ID,
		Type: b.Type, Scope: b.ID,
		Window: p.Window, Start: w.From, End: w.To, Threshold: threshold, Limit: p.Amount, Observed: spent, Status: "open",
		CreatedAt: now, UpdatedAt: now}
	if threshold == "hard" {
		in.Approval = askForOverride(c, b, p, in)
	}
	Incidents.Put(c.Tx, c.Cmd.Company, in.ID, in)
	c.Record(ledger.Change{Action: "budget." + threshold + "_threshold_crossed", EntityType: "budget_incident",
		EntityID: in.ID,
		Details: core.Object{}.Str("scopeId", in.Scope).Str("scopeType", string(in.Type)).Int("amountLimit",
			in.Limit.Cents()).Int("amountObserved", in.Observed.Cents()).Close()})
	return in.ID
}

// lasting returns id until the incident's window has ended, then "".
func lasting(tx *ledger.Tx, company ledger.CompanyID, id string, now core.Time) string {
	if in, ok := Incidents.Get(tx, company, id); id == "" || !ok || now >= in.End {
		return ""
	}
	return id
}

// closeIncident closes an open incident with a status. It does nothing for "" and closed ones.
func closeIncident(c *ledger.Context, id, status string) {
	in, ok := Incidents.Get(c.Tx, c.Cmd.Company, id)
	if id == "" || !ok || in.Status != "open" {
		return
	}
	in.Status, in.ResolvedAt, in.UpdatedAt = status, core.TimeOf(c.Now), core.TimeOf(c.Now)
	Incidents.Put(c.Tx, c.Cmd.Company, id, in)
	to := ApprovalCancelled // no decision: a window has ended, or a manager changed the limit
	if core.IsBoard(c) {
		to = map[string]ApprovalStatus{"resolved": ApprovalApproved, "dismissed": ApprovalRejected}[status]
	}
	settleApproval(c, in.Approval, to)
}
