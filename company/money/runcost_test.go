package money_test

import (
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
)

// What a run told that it cost besides the gateway is booked once, on its issue,
// as reported, whatever the run ended with; it counts in the budgets, and stops a
// scope that it takes over its limit.
func TestWhatARunTellsThatItCost(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	i := d.Issue(t, company.CreateIssue{Title: "Work", Status: entity.IssueTodo, Assignee: ada})
	node := func(run string, f func(r *entity.Run)) entity.Run {
		r, _ := entity.RunTable.Get(d.Tx, d.Company, run)
		r.Node, r.Session, r.Owed, r.Context.IssueID = "one", 7, true, i.ID
		if f != nil {
			f(&r)
		}
		entity.RunTable.Put(d.Tx, d.Company, run, r)
		return r
	}
	finish := func(run string, o company.Outcome) {
		t.Helper()
		c := d.Context(companytest.Board, "run.finish", nil)
		c.Cmd.Actor.Type, c.Cmd.Actor.ID, c.Session = "node", "one", 7
		if _, err := company.FinishRun(c, company.Finish{Run: run, Outcome: o}); err != nil {
			t.Fatal(err)
		}
	}
	event := func(run string) (e money.CostEvent, ok bool) {
		row, ok := d.Tx.Get(money.CostIDKey(d.Company, money.RunCostEvent(run)))
		if ok {
			e, ok = money.CostEvents.Get(d.Tx, d.Company, string(row))
		}
		return e, ok
	}
	told := &entity.RunCost{Provider: "anthropic", Model: "claude", BillingType: "metered_api",
		Usage: entity.Usage{InputTokens: 100, OutputTokens: 20, CachedInputTokens: 3}, Cost: core.Cents(40), Priced: true}

	first := node(d.Run(ada), nil)
	finish(first.ID, company.Outcome{Status: entity.RunSucceeded, Cost: told})
	e, ok := event(first.ID)
	if !ok || e.Cost != core.Cents(40) || e.CostStatus != "reported" || e.Reservation != "" || string(e.Run) != first.ID ||
		string(e.Issue) != i.ID || e.InputTokens != 100 || e.CachedInputTokens != 3 {
		t.Errorf("booked as %+v, %v", e, ok)
	}
	// The same run once more, by the command for what came too late.
	say := func(run, by string) error {
		c := d.Context(companytest.Board, "run.cost", money.TellCost{Run: run, Cost: *told})
		c.Cmd.Actor.Type, c.Cmd.Actor.ID = "node", by
		_, err := d.Mux["run.cost"](c)
		return err
	}
	if err := say(first.ID, "one"); err != nil {
		t.Error(err)
	}
	if b := money.BudgetOf(d.Tx, d.Company, entity.ScopeAgent, ada, core.TimeOf(d.Now)); b.Lifetime != core.Cents(40) {
		t.Errorf("%d cents are counted, want 40 once", b.Lifetime.Cents())
	}
	if say(first.ID, "another") == nil {
		t.Error("another node told what a run cost")
	}

	// A run that was cancelled, and one whose session was over.
	second := node(d.Run(ada), func(r *entity.Run) { r.Status = entity.RunCancelled })
	finish(second.ID, company.Outcome{Status: entity.RunCancelled, Cost: told})
	third := node(d.Run(ada), func(r *entity.Run) { r.Status, r.Owed = entity.RunInterrupted, false })
	if err := say(third.ID, "one"); err != nil {
		t.Error(err)
	}
	// One of which nobody knows the price.
	fourth := node(d.Run(ada), nil)
	finish(fourth.ID, company.Outcome{Status: entity.RunFailed, Cost: &entity.RunCost{Provider: "x",
		Usage: entity.Usage{InputTokens: 5}, Cost: core.Cents(1)}})
	if e, ok := event(fourth.ID); !ok || e.CostStatus != "unpriced" || e.Cost != 0 || e.InputTokens != 5 ||
		e.Model != "unknown" {
		t.Errorf("without a price it is booked as %+v, %v", e, ok)
	}
	if b := money.BudgetOf(d.Tx, d.Company, entity.ScopeAgent, ada, core.TimeOf(d.Now)); b.Lifetime != core.Cents(120) {
		t.Errorf("%d cents are counted, want 120", b.Lifetime.Cents())
	}

	// What is beyond a limit is booked all the same, and stops the agent.
	d.Must(t, companytest.Board, "budget.set", money.SetBudget{Type: entity.ScopeAgent, Scope: ada,
		Window: money.WindowLifetime, Amount: core.Cents(130)}, nil)
	fifth := node(d.Run(ada), nil)
	finish(fifth.ID, company.Outcome{Status: entity.RunSucceeded, Cost: told})
	if a, _ := entity.AgentTable.Get(d.Tx, d.Company, ada); a.Status != entity.AgentPaused ||
		a.PauseReason != entity.PausedForBudget {
		t.Errorf("the agent is %s, %q", a.Status, a.PauseReason)
	}
	if r, _ := entity.RunTable.Get(d.Tx, d.Company, fifth.ID); r.Status != entity.RunSucceeded {
		t.Errorf("the run whose cost stopped its agent is %s", r.Status)
	}
}
