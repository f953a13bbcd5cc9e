package company

import (
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// What the work on an issue may cost holds for all who work on it and below it,
// whatever the budgets allow, and nobody who works under it can give themselves more.
func TestAnAllowanceIsNotExceeded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, bob := d.agent("Ada"), d.agent("Bob")
	session := d.open("n1")
	for _, bad := range []Money{0, -1, MaxAllowance + 1} {
		wantRefusal(t, d.do(board, "issue.create", CreateIssue{ID: d.id(), Title: "Bad", Allowance: new(bad)}, nil), ledger.Invalid, "")
	}
	i := d.issue(t, CreateIssue{Title: "One", Assignee: ada, Allowance: new(Cents(100))})
	running := func(agent, issue string) string {
		id := d.run(agent)
		r, _ := runs.Get(d.tx, d.company, id)
		r.Status, r.Node, r.Session, r.Context.IssueID = RunRunning, "n1", session, issue
		runs.Put(d.tx, d.company, id, r)
		return id
	}
	run := running(ada, i.ID)
	reserve := func(agent, run string, want, least, slice Money) (r Reservation, err error) {
		err = d.ofNode("n1", session, "budget.reserve", Reserve{ID: d.id(), Agent: agent, Run: run, Want: want, Least: least, Slice: slice, Until: TimeOf(d.now) + 60_000}, &r)
		return r, err
	}
	left := func(held, spent Money) {
		t.Helper()
		a, ok := AllowanceOf(d.tx, i)
		if !ok || a.Held != held || a.Spent != spent || a.Left() != Cents(100)-held-spent {
			t.Errorf("the allowance is %+v, want %d held and %d spent", a, held, spent)
		}
	}
	slice, err := reserve(ada, run, Cents(40), 0, Cents(90))
	if err != nil || slice.Amount != Cents(40) || slice.Allowance != NullText(i.ID) {
		t.Fatalf("a slice is %+v, %v; want no more than the call", slice, err)
	}
	left(Cents(40), 0)

	// What is made below it, and what a run under it makes anywhere, is paid from it.
	var below, beside IssueResult
	who := as{ada, run}
	d.must(t, who, "issue.create", CreateIssue{ID: d.id(), Title: "Below", Parent: i.ID, Assignee: bob}, &below)
	d.must(t, who, "issue.create", CreateIssue{ID: d.id(), Title: "Beside", Assignee: bob}, &beside)
	for _, made := range []Issue{below.Issue, beside.Issue} {
		if made.Allowance != i.ID {
			t.Errorf("%s is paid from %q", made.Title, made.Allowance)
		}
	}
	wantRefusal(t, d.do(who, "issue.create", CreateIssue{ID: d.id(), Title: "More", Allowance: new(Cents(1000))}, nil), ledger.Unprocessable, "")
	other := running(bob, below.Issue.ID)
	_, err = reserve(bob, other, Cents(61), 0, 0)
	if r := wantRefusal(t, err, ledger.Conflict, ""); r.ErrCode != "budget_exceeded" || detail(t, r)["scopeType"] != "issue" || detail(t, r)["scopeId"] != i.ID {
		t.Errorf("refused as %s %s", r.ErrCode, r.Detail)
	}
	part, err := reserve(bob, other, Cents(80), Cents(10), 0)
	if err != nil || part.Amount != Cents(60) {
		t.Fatalf("a part is %+v, %v", part, err)
	}
	left(Cents(100), 0)
	if _, err = reserve(ada, running(ada, ""), Cents(500), 0, 0); err != nil {
		t.Errorf("a run about nothing: %v", err)
	}

	settle := func(r Reservation, cost Money) {
		t.Helper()
		if err := d.ofNode("n1", session, "budget.settle", Settle{Reservation: r.ID, Calls: []Metered{d.call(cost)}, Close: true}, nil); err != nil {
			t.Fatal(err)
		}
	}
	settle(slice, Cents(30))
	left(Cents(60), Cents(30))
	settle(part, Cents(20))
	left(0, Cents(50))

	// What is lost and written off is spent; what is reported counts, and may exceed.
	lost, err := reserve(ada, run, Cents(10), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	d.shut(session)
	d.must(t, board, "budget.writeoff", WriteOff{Reservation: lost.ID}, nil)
	left(0, Cents(60))
	report := CostEvent{ID: d.id(), Agent: ada, Run: NullText(run), Provider: "p", Model: "m", Cost: Cents(70), OccurredAt: TimeOf(d.now)}
	d.must(t, board, "cost.report", ReportCost{report}, nil)
	left(0, Cents(130))

	// Nothing is begun any more.
	next := d.run(bob)
	r, _ := runs.Get(d.tx, d.company, next)
	r.Status, r.Node, r.Session, r.Context.IssueID = RunQueued, "n1", session, below.Issue.ID
	runs.Put(d.tx, d.company, next, r)
	if err := d.byNode("n1", "run.start", Start{Run: next}); err != nil {
		t.Fatal(err)
	}
	if r, _ = runs.Get(d.tx, d.company, next); r.Status != RunCancelled || r.ErrorCode != "budget_refused" {
		t.Errorf("a run is %s %s %s", r.Status, r.ErrorCode, r.Error)
	}
}
