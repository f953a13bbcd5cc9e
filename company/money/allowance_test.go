package money_test

import (
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// What the work on an issue may cost holds for all who work on it and below it,
// whatever the budgets allow, and nobody who works under it can give themselves more.
func TestAnAllowanceIsNotExceeded(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	session := d.Open("n1")
	for _, bad := range []core.Money{0, -1, money.MaxAllowance + 1} {
		companytest.WantRefusal(t, d.Do(companytest.Board, "issue.create", company.CreateIssue{ID: d.ID(), Title: "Bad",
			Allowance: new(bad)}, nil), ledger.Invalid, "An allowance must be above 0 and at most 10000000 USD")
	}
	i := d.Issue(t, company.CreateIssue{Title: "One", Assignee: ada, Allowance: new(core.Cents(100))})
	running := func(agent, issue string) string {
		id := d.Run(agent)
		r, _ := entity.RunTable.Get(d.Tx, d.Company, id)
		r.Status, r.Node, r.Session, r.Context.IssueID = entity.RunRunning, "n1", session, issue
		entity.RunTable.Put(d.Tx, d.Company, id, r)
		return id
	}
	run := running(ada, i.ID)
	reserve := func(agent, run string, want, least, slice core.Money) (r money.Reservation, err error) {
		err = d.OfNode("n1", session, "budget.reserve", money.Reserve{ID: d.ID(), Agent: agent, Run: run, Want: want,
			Least: least, Slice: slice, Until: core.TimeOf(d.Now) + 60_000}, &r)
		return r, err
	}
	left := func(held, spent core.Money) {
		t.Helper()
		a, ok := money.AllowanceOf(d.Tx, i)
		if !ok || a.Held != held || a.Spent != spent || a.Left() != core.Cents(100)-held-spent {
			t.Errorf("the allowance is %+v, want %d held and %d spent", a, held, spent)
		}
	}
	slice, err := reserve(ada, run, core.Cents(40), 0, core.Cents(90))
	if err != nil || slice.Amount != core.Cents(40) || slice.Allowance != core.NullText(i.ID) {
		t.Fatalf("a slice is %+v, %v; want no more than the call", slice, err)
	}
	left(core.Cents(40), 0)

	// What is made below it, and what a run under it makes anywhere, is paid from it.
	var below, beside entity.IssueResult
	who := companytest.As{Agent: ada, Run: run}
	d.Must(t, who, "issue.create", company.CreateIssue{ID: d.ID(), Title: "Below", Parent: i.ID, Assignee: bob}, &below)
	d.Must(t, who, "issue.create", company.CreateIssue{ID: d.ID(), Title: "Beside", Assignee: bob}, &beside)
	for _, made := range []entity.Issue{below.Issue, beside.Issue} {
		if made.Allowance != i.ID {
			t.Errorf("%s is paid from %q", made.Title, made.Allowance)
		}
	}
	companytest.WantRefusal(t, d.Do(who, "issue.create", company.CreateIssue{ID: d.ID(), Title: "More",
		Allowance: new(core.Cents(1000))}, nil), ledger.Unprocessable,
		"The work is paid from the allowance of another issue already; leave out what it may cost")
	other := running(bob, below.Issue.ID)
	_, err = reserve(bob, other, core.Cents(61), 0, 0)
	if r := companytest.WantRefusal(t, err, ledger.Conflict,
		"What the work on this issue may cost does not allow this call."); r.ErrCode != "budget_exceeded" ||
		companytest.Detail(t, r)["scopeType"] != "issue" || companytest.Detail(t, r)["scopeId"] != i.ID {
		t.Errorf("refused as %s %s", r.ErrCode, r.Detail)
	}
	part, err := reserve(bob, other, core.Cents(80), core.Cents(10), 0)
	if err != nil || part.Amount != core.Cents(60) {
		t.Fatalf("a part is %+v, %v", part, err)
	}
	left(core.Cents(100), 0)
	if _, err = reserve(ada, running(ada, ""), core.Cents(500), 0, 0); err != nil {
		t.Errorf("a run about nothing: %v", err)
	}

	settle := func(r money.Reservation, cost core.Money) {
		t.Helper()
		if err := d.OfNode("n1", session, "budget.settle", money.Settle{Reservation: r.ID,
			Calls: []money.Metered{d.Call(cost)}, Close: true}, nil); err != nil {
			t.Fatal(err)
		}
	}
	settle(slice, core.Cents(30))
	left(core.Cents(60), core.Cents(30))
	settle(part, core.Cents(20))
	left(0, core.Cents(50))

	// What is lost and written off is spent; what is reported counts, and may exceed.
	lost, err := reserve(ada, run, core.Cents(10), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	d.Shut(session)
	d.Must(t, companytest.Board, "budget.writeoff", money.WriteOff{Reservation: lost.ID}, nil)
	left(0, core.Cents(60))
	report := money.CostEvent{ID: d.ID(), Agent: ada, Run: core.NullText(run), Provider: "p", Model: "m",
		Cost: core.Cents(70), OccurredAt: core.TimeOf(d.Now)}
	d.Must(t, companytest.Board, "cost.report", money.ReportCost{Event: report}, nil)
	left(0, core.Cents(130))

	// Nothing is begun any more.
	next := d.Run(bob)
	r, _ := entity.RunTable.Get(d.Tx, d.Company, next)
	r.Status, r.Node, r.Session, r.Context.IssueID = entity.RunQueued, "n1", session, below.Issue.ID
	entity.RunTable.Put(d.Tx, d.Company, next, r)
	if err := d.ByNode("n1", "run.start", company.Start{Run: next}); err != nil {
		t.Fatal(err)
	}
	if r, _ = entity.RunTable.Get(d.Tx, d.Company, next); r.Status != entity.RunCancelled ||
		r.ErrorCode != "budget_refused" {
		t.Errorf("a run is %s %s %s", r.Status, r.ErrorCode, r.Error)
	}
}
