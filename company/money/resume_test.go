package money_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
)

// stoppedWork is a scope that its budget stopped in the middle of work: an issue in
// progress, one that waited for its run, one that came while the scope was stopped,
// and a run about no issue.
type stoppedWork struct {
	*companytest.Desk
	ada, project           string
	scope                  entity.ScopeType
	id                     string
	at, waits, later, held entity.Issue
	free                   string // the run about no issue
	comment                string // of which the run at work was told
}

func stopInTheMiddle(t *testing.T, scope entity.ScopeType) *stoppedWork {
	t.Helper()
	d := companytest.NewDesk(t)
	s := &stoppedWork{Desk: d, ada: d.Hired("Ada"), project: d.Project("Arm"), scope: scope}
	s.id = map[entity.ScopeType]string{entity.ScopeCompany: string(d.Company), entity.ScopeAgent: s.ada,
		entity.ScopeProject: s.project}[scope]
	issue := func() entity.Issue {
		return d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Project: s.project, Assignee: s.ada})
	}
	s.at, s.waits, s.held = d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Project: s.project}), issue(), issue()
	s.comment = d.ID()
	d.Must(t, companytest.Board, "comment.create", entity.CreateComment{ID: s.comment, Issue: s.at.ID,
		Body: "Look here"}, nil)
	at := d.OnIssue(t, s.ada, s.at)
	r, _ := entity.RunOf(d.Tx, d.Company, at.Run)
	r.Context.CommentID, r.Context.CommentIDs, r.Context.ResponsibleUserID = s.comment, []string{s.comment}, "somebody"
	d.StoreRun(r)
	s.free = d.Run(s.ada)
	d.Must(t, companytest.Board, "budget.set", money.SetBudget{Type: scope, Scope: s.id, Window: money.WindowMonth,
		Amount: core.Cents(10)}, nil)
	d.Must(t, companytest.Board, "cost.report", money.ReportCost{Event: money.CostEvent{ID: d.ID(), Agent: s.ada,
		Project: core.NullText(s.project), Provider: "p", Model: "m", Cost: core.Cents(10)}}, nil)
	if !entity.ScopePaused(d.Tx, d.Company, scope, s.id) {
		t.Fatalf("the %s is not stopped", scope)
	}
	if scope == entity.ScopeProject { // what waits is ended when it would start
		for _, r := range entity.LiveRunsOfAgent(d.Tx, d.Company, s.ada) {
			if r.ID == s.free {
				continue
			}
			r.Node, r.Session = "n1", 1
			d.StoreRun(r)
			if err := d.ByNode("n1", "run.start", company.Start{Run: r.ID}); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.Must(t, companytest.Board, "tree.hold", care.HoldTree{Issue: s.held.ID, ID: d.ID(), Mode: "pause"}, nil)
	s.later = issue()
	for _, i := range []entity.Issue{s.at, s.waits, s.held, s.later} {
		if n := len(entity.LiveRunsOnIssue(d.Tx, d.Load(i.ID))); n != 0 {
			t.Fatalf("%s: %d runs live while the scope is stopped", i.Title, n)
		}
	}
	return s
}

// goesOn lets the scope go on in one of the ways that there are.
func (s *stoppedWork) goesOn(t *testing.T, way string) {
	t.Helper()
	set := money.SetBudget{Type: s.scope, Scope: s.id, Window: money.WindowMonth, Amount: core.Cents(100)}
	switch way {
	case "resolve":
		open := money.OpenIncidents(s.Tx, s.Company, core.TimeOf(s.Now))
		s.Must(t, companytest.Board, "budget.resolve", money.ResolveIncident{Incident: open[0].ID,
			Action: "raise_budget_and_resume", Amount: new(core.Cents(100))}, nil)
	case "raise":
		s.Must(t, companytest.Board, "budget.set", set, nil)
	case "removed":
		set.Amount = 0
		s.Must(t, companytest.Board, "budget.set", set, nil)
	case "inactive":
		set.Active = new(false)
		s.Must(t, companytest.Board, "budget.set", set, nil)
	case "no hard stop":
		set.Amount, set.HardStop = core.Cents(10), new(false)
		s.Must(t, companytest.Board, "budget.set", set, nil)
	case "month":
		s.Now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
		s.Must(t, companytest.Board, "budget.sweep", money.SweepBudgets{}, nil)
	case "month, found by a checkout":
		s.Now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
		other := s.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Project: s.project})
		s.Must(t, companytest.Board, "issue.checkout", company.CheckOutIssue{Issue: other.ID, Agent: s.ada,
			Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)
		s.Must(t, companytest.Board, "budget.sweep", money.SweepBudgets{}, nil)
	}
}

// However a budget comes to let its scope go on, what it stopped goes on in the same
// entry: what was at work, with the words that it was told of and for whom it was; what
// waited; and what came meanwhile. A run about no issue belongs to no project. What is on
// hold stays.
func TestWhatABudgetStoppedGoesOn(t *testing.T) {
	t.Parallel()
	for _, scope := range []entity.ScopeType{entity.ScopeAgent, entity.ScopeProject, entity.ScopeCompany} {
		for _, way := range []string{"resolve", "raise", "removed", "inactive", "no hard stop", "month",
			"month, found by a checkout"} {
			t.Run(fmt.Sprintf("%s %s", scope, way), func(t *testing.T) {
				s := stopInTheMiddle(t, scope)
				s.goesOn(t, way)
				for _, i := range []entity.Issue{s.at, s.waits, s.later} {
					if n := len(entity.LiveRunsOnIssue(s.Tx, s.Load(i.ID))); n != 1 {
						t.Errorf("%s has %d runs, want 1", i.Identifier, n)
					}
				}
				if n := len(entity.LiveRunsOnIssue(s.Tx, s.Load(s.held.ID))); n != 0 {
					t.Errorf("what is on hold has %d runs", n)
				}
				r := entity.LiveRunsOnIssue(s.Tx, s.Load(s.at.ID))[0]
				if !slices.Equal(r.Context.CommentIDs, []string{s.comment}) || r.Context.ResponsibleUserID != "somebody" ||
					r.Context.WakeReason != money.BudgetResumed {
					t.Errorf("what was at work goes on about %+v", r.Context)
				}
				free := slices.DeleteFunc(entity.LiveRunsOfAgent(s.Tx, s.Company, s.ada),
					func(r entity.Run) bool { return r.Context.IssueID != "" || r.ID == s.free })
				if want := map[bool]int{true: 0, false: 1}[scope == entity.ScopeProject]; len(free) != want {
					t.Errorf("%d runs about no issue, want %d", len(free), want)
				}
				if money.BudgetsToSweep(s.Tx, s.Company, core.TimeOf(s.Now)) {
					t.Error("something is left to sweep")
				}
				before := len(entity.LiveRunsOfAgent(s.Tx, s.Company, s.ada))
				s.Must(t, companytest.Board, "budget.sweep", money.SweepBudgets{}, nil)
				if n := len(entity.LiveRunsOfAgent(s.Tx, s.Company, s.ada)); n != before {
					t.Errorf("%d runs, %d after another sweep", before, n)
				}
			})
		}
	}
}

// What a person decided while the budget had stopped the work is not undone by a raise.
func TestARaiseLeavesWhatAPersonDecided(t *testing.T) {
	t.Parallel()
	status := func(to entity.IssueStatus) func(*testing.T, *stoppedWork) {
		return func(t *testing.T, s *stoppedWork) {
			s.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: s.at.ID, Status: to}, nil)
		}
	}
	for name, decide := range map[string]func(*testing.T, *stoppedWork){
		"cancelled": status(entity.IssueCancelled), "backlog": status(entity.IssueBacklog), "done": status(entity.IssueDone),
		"nobody's": func(t *testing.T, s *stoppedWork) {
			s.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: s.at.ID, Status: entity.IssueTodo,
				Assignee: new("")}, nil)
		},
		"held": func(t *testing.T, s *stoppedWork) {
			s.Must(t, companytest.Board, "tree.hold", care.HoldTree{Issue: s.at.ID, ID: s.Desk.ID(), Mode: "pause"}, nil)
		},
		"the agent is paused": func(t *testing.T, s *stoppedWork) {
			s.Must(t, companytest.Board, "agent.pause", company.ChangeAgent{Agent: s.ada}, nil)
		},
		"the company is paused": func(t *testing.T, s *stoppedWork) {
			s.Must(t, companytest.Board, "company.pause", company.ChangeCompany{}, nil)
		},
		"everything is stopped": func(t *testing.T, s *stoppedWork) {
			s.Must(t, companytest.Board, "mesh.stop",
				company.StopAll{}, nil)
		},
	} {
		for _, scope := range []entity.ScopeType{entity.ScopeAgent, entity.ScopeProject, entity.ScopeCompany} {
			t.Run(name+" "+string(scope), func(t *testing.T) {
				s := stopInTheMiddle(t, scope)
				decide(t, s)
				s.goesOn(t, "raise")
				if n := len(entity.LiveRunsOnIssue(s.Tx, s.Load(s.at.ID))); n != 0 {
					t.Errorf("%d runs", n)
				}
				if name != "everything is stopped" {
					return
				}
				s.Must(t, companytest.Board, "mesh.resume", company.ResumeAll{}, nil)
				s.Must(t, companytest.Board, "budget.sweep", money.SweepBudgets{}, nil)
				if n := len(entity.LiveRunsOnIssue(s.Tx, s.Load(s.at.ID))); n != 1 {
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
	d := companytest.NewDesk(t)
	d.Must(t, companytest.Board, "budget.set", money.SetBudget{Type: entity.ScopeCompany, Scope: string(d.Company),
		Amount: core.Cents(10)}, nil)
	var crew []string
	for n := range people {
		crew = append(crew, d.Hired(fmt.Sprintf("Agent %d", n)))
	}
	d.Must(t, companytest.Board, "cost.report", money.ReportCost{Event: money.CostEvent{ID: d.ID(), Agent: crew[0],
		Provider: "p", Model: "m", Cost: core.Cents(10)}}, nil)
	for _, a := range crew {
		for range each {
			d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Assignee: a})
		}
	}
	if n := len(entity.LiveRunsOf(d.Tx, d.Company)); n != 0 {
		t.Fatalf("%d runs in a stopped company", n)
	}
	d.Must(t, companytest.Board, "budget.set", money.SetBudget{Type: entity.ScopeCompany, Scope: string(d.Company),
		Amount: core.Cents(100)}, nil)
	first := len(entity.LiveRunsOf(d.Tx, d.Company))
	if first < money.MaxResumed || first >= money.MaxResumed+entity.MaxLiveRuns {
		t.Errorf("the raise woke %d", first)
	}
	sweeps := 0
	for ; money.BudgetsToSweep(d.Tx, d.Company, core.TimeOf(d.Now)); sweeps++ {
		if sweeps > people {
			t.Fatal("it does not come to an end")
		}
		d.Must(t, companytest.Board, "budget.sweep", money.SweepBudgets{}, nil)
	}
	if n := len(entity.LiveRunsOf(d.Tx, d.Company)); n != people*each || sweeps == 0 {
		t.Errorf("after %d sweeps %d of %d runs", sweeps, n, people*each)
	}
	// Stopped anew before it is done, the rest waits for the next raise.
	d.Must(t, companytest.Board, "budget.set", money.SetBudget{Type: entity.ScopeCompany, Scope: string(d.Company),
		Amount: core.Cents(10)}, nil)
	if money.WorkToResume(d.Tx, d.Company) {
		t.Error("a stopped company is to go on")
	}
}
