package money

import (
	"cmp"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// An Allowance limits what the work on an issue, and on issues created below it, may cost in
// total: the budget that a caller of POST /api/v1/execute has left. It is separate from the
// budgets of agent, project and company, stops only the work that it is for, and has no
// window. Metered calls are paid from it by reservations, so they can not exceed it.
// Reported costs count too, and can.
type Allowance struct {
	Issue string     `cbor:"1,keyasint" json:"issueId"` // the issue that it was given to
	Limit core.Money `cbor:"2,keyasint" json:"limit"`
	Spent core.Money `cbor:"3,keyasint,omitempty" json:"spent"`
	Held  core.Money `cbor:"4,keyasint,omitempty" json:"held"`
}

// Allowances are keyed by c/<company>/allowance/<issue>. An allowance outlives its issue,
// because issues created below it may continue.
var Allowances = ledger.NewTable[string, Allowance]("allowance")

// MaxAllowance bounds an allowance, like a reservation.
const MaxAllowance = MaxReservation

// AllowanceOf returns the allowance that pays for the work on an issue.
func AllowanceOf(tx *ledger.Tx, i entity.Issue) (Allowance, bool) {
	if i.Allowance == "" {
		return Allowance{}, false
	}
	return Allowances.Get(tx, i.Company, i.Allowance)
}

// AllowanceOfRun returns the issue whose allowance pays for a run, "" for none: that of the
// run's issue. It does not change during the run.
func AllowanceOfRun(tx *ledger.Tx, of ledger.CompanyID, run string) string {
	if run == "" {
		return ""
	}
	if r := entity.RunTable.Look(tx, of, run); r != nil {
		return allowanceOfIssue(tx, of, r.Context.IssueID)
	}
	return ""
}

// allowanceOfIssue is called for every cost event, so it copies nothing.
func allowanceOfIssue(tx *ledger.Tx, of ledger.CompanyID, issue string) string {
	if issue == "" {
		return ""
	}
	if i := entity.IssueTable.Look(tx, of, issue); i != nil {
		return i.Allowance
	}
	return ""
}

// Left returns what may still be spent or held.
func (a Allowance) Left() core.Money { return a.Limit - a.Spent - a.Held }

// allow gives a new issue the allowance of the run that creates it, otherwise one of its
// own. Work that is paid from an allowance can not get another one, because an agent could
// then raise its own limit.
func allow(c *ledger.Context, i entity.Issue, limit *core.Money) (entity.Issue, error) {
	if i.Allowance == "" {
		i.Allowance = AllowanceOfRun(c.Tx, i.Company, c.Cmd.Run)
	}
	switch {
	case limit == nil:
		return i, nil
	case i.Allowance != "":
		return i, ledger.Refuse(ledger.Unprocessable, core.Object{}.Str("issueId", i.Allowance).Close(),
			"The work is paid from the allowance of another issue already; leave out what it may cost")
	}
	if *limit <= 0 || *limit > MaxAllowance {
		return i, ledger.Refuse(ledger.Invalid, nil, "An allowance must be above 0 and at most %d USD",
			MaxAllowance.Cents()/100)
	}
	i.Allowance = i.ID
	Allowances.Put(c.Tx, i.Company, i.ID, Allowance{Issue: i.ID, Limit: *limit})
	return i, nil
}

// countAllowance adds to the held and spent money of an allowance, "" for none.
func countAllowance(tx *ledger.Tx, company ledger.CompanyID, issue string, held, spent core.Money) {
	if issue == "" || held == 0 && spent == 0 {
		return
	}
	if a, ok := Allowances.Get(tx, company, issue); ok {
		a.Held, a.Spent = max(a.Held+held, 0), a.Spent.Plus(spent)
		Allowances.Put(tx, company, issue, a)
	}
}

// allowanceOfCost returns the allowance that a reported event counts against.
func (e CostEvent) allowanceOfCost(tx *ledger.Tx) string {
	return cmp.Or(AllowanceOfRun(tx, e.Company, string(e.Run)), allowanceOfIssue(tx, e.Company, string(e.Issue)))
}

// refuse returns the refusal of a call that does not fit into the rest of an allowance.
func (a Allowance) refuse(least core.Money) error {
	return errBudget("budget_exceeded", core.Object{}.Str("scopeType", "issue").Str("scopeId", a.Issue).Str("windowKind",
		"lifetime").
		Int("amountLimit", a.Limit.Cents()).Int("amountObserved", a.Spent.Cents()).Int("amountHeld", a.Held.Cents()).
		Int("amountAsked", least.Cents()).Close(),
		"What the work on this issue may cost does not allow this call.")
}

// exhausted reports whether a run's allowance has nothing left for a call: all of it was
// spent, and nothing is held.
func exhausted(r entity.Run, tx *ledger.Tx) bool {
	a, ok := Allowances.Get(tx, r.Company, allowanceOfIssue(tx, r.Company, r.Context.IssueID))
	return ok && a.Spent >= a.Limit
}
