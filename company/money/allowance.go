package money

import (
	"cmp"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// An Allowance is all that the work on an issue, and on what is made below it, may
// cost: what a caller of POST /api/v1/execute has left for it. It is a limit of its
// own beside the budgets of agent, project and company, stops nobody but the work it
// is for, and never passes. Metered calls are paid from it by reservations, so that
// they can not exceed it; what is reported counts, and may.
type Allowance struct {
	Issue string     `cbor:"1,keyasint" json:"issueId"` // the one it was given to
	Limit core.Money `cbor:"2,keyasint" json:"limit"`
	Spent core.Money `cbor:"3,keyasint,omitempty" json:"spent"`
	Held  core.Money `cbor:"4,keyasint,omitempty" json:"held"`
}

// Allowances lie under c/<company>/allowance/<issue>. One outlives its issue, as
// what was made below that may go on.
var Allowances = ledger.NewTable[string, Allowance]("allowance")

// MaxAllowance bounds an allowance, as a reservation is bounded.
const MaxAllowance = MaxReservation

// AllowanceOf returns the allowance that the work on an issue is paid from.
func AllowanceOf(tx *ledger.Tx, i entity.Issue) (Allowance, bool) {
	if i.Allowance == "" {
		return Allowance{}, false
	}
	return Allowances.Get(tx, i.Company, i.Allowance)
}

// AllowanceOfRun names the allowance that a run is paid from, "" for none: that of
// the issue that it is about. It is the same for all of the run's life.
func AllowanceOfRun(tx *ledger.Tx, of, run string) string {
	if run == "" {
		return ""
	}
	if r := entity.RunTable.Look(tx, of, run); r != nil {
		return allowanceOfIssue(tx, of, r.Context.IssueID)
	}
	return ""
}

// allowanceOfIssue is asked with every cost event, so nothing is copied.
func allowanceOfIssue(tx *ledger.Tx, of, issue string) string {
	if issue == "" {
		return ""
	}
	if i := entity.IssueTable.Look(tx, of, issue); i != nil {
		return i.Allowance
	}
	return ""
}

// Left is what may still be spent or held.
func (a Allowance) Left() core.Money { return a.Limit - a.Spent - a.Held }

// allow gives a new issue the allowance of the run that makes it, if nothing else
// does, or one of its own. What is paid from one has none of its own, or whoever
// works under it could give themselves more.
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
		return i, ledger.Refuse(ledger.Invalid, nil, "An allowance must be above 0 and at most %d USD", MaxAllowance.Cents()/100)
	}
	i.Allowance = i.ID
	Allowances.Put(c.Tx, i.Company, i.ID, Allowance{Issue: i.ID, Limit: *limit})
	return i, nil
}

// countAllowance adds to what is held and spent of an allowance, "" for none.
func countAllowance(tx *ledger.Tx, company, issue string, held, spent core.Money) {
	if issue == "" || held == 0 && spent == 0 {
		return
	}
	if a, ok := Allowances.Get(tx, company, issue); ok {
		a.Held, a.Spent = max(a.Held+held, 0), a.Spent.Plus(spent)
		Allowances.Put(tx, company, issue, a)
	}
}

// allowanceOfCost names the allowance that a reported event counts against.
func (e CostEvent) allowanceOfCost(tx *ledger.Tx) string {
	return cmp.Or(AllowanceOfRun(tx, e.Company, string(e.Run)), allowanceOfIssue(tx, e.Company, string(e.Issue)))
}

// refuse says that a call does not fit what is left of an allowance.
func (a Allowance) refuse(least core.Money) error {
	return errBudget("budget_exceeded", core.Object{}.Str("scopeType", "issue").Str("scopeId", a.Issue).Str("windowKind", "lifetime").
		Int("amountLimit", a.Limit.Cents()).Int("amountObserved", a.Spent.Cents()).Int("amountHeld", a.Held.Cents()).Int("amountAsked", least.Cents()).Close(),
		"What the work on this issue may cost does not allow this call.")
}

// exhausted reports whether a run's allowance has nothing left that a call of it
// could be given: all was spent, and nothing of it is held.
func exhausted(r entity.Run, tx *ledger.Tx) bool {
	a, ok := Allowances.Get(tx, r.Company, allowanceOfIssue(tx, r.Company, r.Context.IssueID))
	return ok && a.Spent >= a.Limit
}
