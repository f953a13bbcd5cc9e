package company

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// stoppedWork is a scope that its budget stopped in the middle of work: an issue in
// progress, one that waited for its run, one that came while the scope was stopped,
// and a run about no issue.
type stoppedWork struct {
	*desk
	ada, project           string
	scope                  ScopeType
	id                     string
	at, waits, later, held Issue
	free                   string // the run about no issue
	comment                string // of which the run at work was told
}

func stopInTheMiddle(t *testing.T, scope ScopeType) *stoppedWork {
	t.Helper()
	d := newDesk(t)
	s := &stoppedWork{desk: d, ada: d.hired("Ada"), project: d.project("Arm"), scope: scope}
	s.id = map[ScopeType]string{ScopeCompany: d.company, ScopeAgent: s.ada, ScopeProject: s.project}[scope]
	issue := func() Issue { return d.issue(t, CreateIssue{Status: IssueTodo, Project: s.project, Assignee: s.ada}) }
	s.at, s.waits, s.held = d.issue(t, CreateIssue{Status: IssueTodo, Project: s.project}), issue(), issue()
	s.comment = d.id()
	d.must(t, board, "comment.create", CreateComment{ID: s.comment, Issue: s.at.ID, Body: "Look here"}, nil)
	at := d.onIssue(t, s.ada, s.at)
	r, _ := RunOf(d.tx, d.company, at.run)
	r.Context.CommentID, r.Context.CommentIDs, r.Context.ResponsibleUserID = s.comment, []string{s.comment}, "somebody"
	d.storeRun(r)
	s.free = d.run(s.ada)
	d.must(t, board, "budget.set", SetBudget{Type: scope, Scope: s.id, Window: WindowMonth, Amount: Cents(10)}, nil)
	d.must(t, board, "cost.report", ReportCost{CostEvent{ID: d.id(), Agent: s.ada, Project: NullText(s.project), Provider: "p", Model: "m", Cost: Cents(10)}}, nil)
	if !ScopePaused(d.tx, d.company, scope, s.id) {
		t.Fatalf("the %s is not stopped", scope)
	}
	if scope == ScopeProject { // what waits is ended when it would start
		for _, r := range LiveRunsOfAgent(d.tx, d.company, s.ada) {
			if r.ID == s.free {
				continue
			}
			r.Node, r.Session = "n1", 1
			d.storeRun(r)
			if err := d.byNode("n1", "run.start", Start{Run: r.ID}); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.must(t, board, "tree.hold", HoldTree{Issue: s.held.ID, ID: d.id(), Mode: "pause"}, nil)
	s.later = issue()
	for _, i := range []Issue{s.at, s.waits, s.held, s.later} {
		if n := len(LiveRunsOnIssue(d.tx, d.load(i.ID))); n != 0 {
			t.Fatalf("%s: %d runs live while the scope is stopped", i.Title, n)
		}
	}
	return s
}

// goesOn lets the scope go on in one of the ways that there are.
func (s *stoppedWork) goesOn(t *testing.T, way string) {
	t.Helper()
	set := SetBudget{Type: s.scope, Scope: s.id, Window: WindowMonth, Amount: Cents(100)}
	switch way {
	case "resolve":
		open := OpenIncidents(s.tx, s.company, TimeOf(s.now))
		s.must(t, board, "budget.resolve", ResolveIncident{Incident: open[0].ID, Action: "raise_budget_and_resume", Amount: new(Cents(100))}, nil)
	case "raise":
		s.must(t, board, "budget.set", set, nil)
	case "removed":
		set.Amount = 0
		s.must(t, board, "budget.set", set, nil)
	case "inactive":
		set.Active = new(false)
		s.must(t, board, "budget.set", set, nil)
	case "no hard stop":
		set.Amount, set.HardStop = Cents(10), new(false)
		s.must(t, board, "budget.set", set, nil)
	case "month":
		s.now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
		s.must(t, board, "budget.sweep", SweepBudgets{}, nil)
	case "month, found by a checkout":
		s.now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
		other := s.issue(t, CreateIssue{Status: IssueTodo, Project: s.project})
		s.must(t, board, "issue.checkout", CheckOutIssue{Issue: other.ID, Agent: s.ada, Expected: []IssueStatus{IssueTodo}}, nil)
		s.must(t, board, "budget.sweep", SweepBudgets{}, nil)
	}
}

// However a budget comes to let its scope go on, what it stopped goes on in the same
// entry: what was at work, with the words that it was told of and for whom it was; what
// waited; and what came meanwhile. A run about no issue belongs to no project. What is on
// hold stays.
func TestWhatABudgetStoppedGoesOn(t *testing.T) {
	t.Parallel()
	for _, scope := range []ScopeType{ScopeAgent, ScopeProject, ScopeCompany} {
		for _, way := range []string{"resolve", "raise", "removed", "inactive", "no hard stop", "month", "month, found by a checkout"} {
			t.Run(fmt.Sprintf("%s %s", scope, way), func(t *testing.T) {
				s := stopInTheMiddle(t, scope)
				s.goesOn(t, way)
				for _, i := range []Issue{s.at, s.waits, s.later} {
					if n := len(LiveRunsOnIssue(s.tx, s.load(i.ID))); n != 1 {
						t.Errorf("%s has %d runs, want 1", i.Identifier, n)
					}
				}
				if n := len(LiveRunsOnIssue(s.tx, s.load(s.held.ID))); n != 0 {
					t.Errorf("what is on hold has %d runs", n)
				}
				r := LiveRunsOnIssue(s.tx, s.load(s.at.ID))[0]
				if !slices.Equal(r.Context.CommentIDs, []string{s.comment}) || r.Context.ResponsibleUserID != "somebody" || r.Context.WakeReason != budgetResumed {
					t.Errorf("what was at work goes on about %+v", r.Context)
				}
				free := slices.DeleteFunc(LiveRunsOfAgent(s.tx, s.company, s.ada), func(r Run) bool { return r.Context.IssueID != "" || r.ID == s.free })
				if want := map[bool]int{true: 0, false: 1}[scope == ScopeProject]; len(free) != want {
					t.Errorf("%d runs about no issue, want %d", len(free), want)
				}
				if BudgetsToSweep(s.tx, s.company, TimeOf(s.now)) {
					t.Error("something is left to sweep")
				}
				before := len(LiveRunsOfAgent(s.tx, s.company, s.ada))
				s.must(t, board, "budget.sweep", SweepBudgets{}, nil)
				if n := len(LiveRunsOfAgent(s.tx, s.company, s.ada)); n != before {
					t.Errorf("%d runs, %d after another sweep", before, n)
				}
			})
		}
	}
}

// What a person decided while the budget had stopped the work is not undone by a raise.
func TestARaiseLeavesWhatAPersonDecided(t *testing.T) {
	t.Parallel()
	status := func(to IssueStatus) func(*testing.T, *stoppedWork) {
		return func(t *testing.T, s *stoppedWork) {
			s.must(t, board, "issue.update", UpdateIssue{Issue: s.at.ID, Status: to}, nil)
		}
	}
	for name, decide := range map[string]func(*testing.T, *stoppedWork){
		"cancelled": status(IssueCancelled), "backlog": status(IssueBacklog), "done": status(IssueDone),
		"nobody's": func(t *testing.T, s *stoppedWork) {
			s.must(t, board, "issue.update", UpdateIssue{Issue: s.at.ID, Status: IssueTodo, Assignee: new("")}, nil)
		},
		"held": func(t *testing.T, s *stoppedWork) {
			s.must(t, board, "tree.hold", HoldTree{Issue: s.at.ID, ID: s.desk.id(), Mode: "pause"}, nil)
		},
		"the agent is paused": func(t *testing.T, s *stoppedWork) { s.must(t, board, "agent.pause", ChangeAgent{Agent: s.ada}, nil) },
		"the company is paused": func(t *testing.T, s *stoppedWork) {
			s.must(t, board, "company.pause", ChangeCompany{}, nil)
		},
		"everything is stopped": func(t *testing.T, s *stoppedWork) { s.must(t, board, "mesh.stop", StopAll{}, nil) },
	} {
		for _, scope := range []ScopeType{ScopeAgent, ScopeProject, ScopeCompany} {
			t.Run(name+" "+string(scope), func(t *testing.T) {
				s := stopInTheMiddle(t, scope)
				decide(t, s)
				s.goesOn(t, "raise")
				if n := len(LiveRunsOnIssue(s.tx, s.load(s.at.ID))); n != 0 {
					t.Errorf("%d runs", n)
				}
				if name != "everything is stopped" {
					return
				}
				s.must(t, board, "mesh.resume", ResumeAll{}, nil)
				s.must(t, board, "budget.sweep", SweepBudgets{}, nil)
				if n := len(LiveRunsOnIssue(s.tx, s.load(s.at.ID))); n != 1 {
					t.Errorf("when work may begin again, %d runs", n)
				}
			})
		}
	}
}

// One command wakes some of a large company's work; the sweeps go on until all has
// begun, nothing twice.
func TestAResumedCompanyGoesOnInParts(t *testing.T) {
	t.Parallel()
	const people, each = 9, 40
	d := newDesk(t)
	d.must(t, board, "budget.set", SetBudget{Type: ScopeCompany, Scope: d.company, Amount: Cents(10)}, nil)
	var crew []string
	for n := range people {
		crew = append(crew, d.hired(fmt.Sprintf("Agent %d", n)))
	}
	d.must(t, board, "cost.report", ReportCost{CostEvent{ID: d.id(), Agent: crew[0], Provider: "p", Model: "m", Cost: Cents(10)}}, nil)
	for _, a := range crew {
		for range each {
			d.issue(t, CreateIssue{Status: IssueTodo, Assignee: a})
		}
	}
	if n := len(LiveRunsOf(d.tx, d.company)); n != 0 {
		t.Fatalf("%d runs in a stopped company", n)
	}
	d.must(t, board, "budget.set", SetBudget{Type: ScopeCompany, Scope: d.company, Amount: Cents(100)}, nil)
	first := len(LiveRunsOf(d.tx, d.company))
	if first < maxResumed || first >= maxResumed+MaxLiveRuns {
		t.Errorf("the raise woke %d", first)
	}
	sweeps := 0
	for ; BudgetsToSweep(d.tx, d.company, TimeOf(d.now)); sweeps++ {
		if sweeps > people {
			t.Fatal("it does not come to an end")
		}
		d.must(t, board, "budget.sweep", SweepBudgets{}, nil)
	}
	if n := len(LiveRunsOf(d.tx, d.company)); n != people*each || sweeps == 0 {
		t.Errorf("after %d sweeps %d of %d runs", sweeps, n, people*each)
	}
	// Stopped anew before it is done, the rest waits for the next raise.
	d.must(t, board, "budget.set", SetBudget{Type: ScopeCompany, Scope: d.company, Amount: Cents(10)}, nil)
	if workToResume(d.tx, d.company) {
		t.Error("a stopped company is to go on")
	}
}
