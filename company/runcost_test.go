package company

import "testing"

// What a run told that it cost besides the gateway is booked once, on its issue,
// as reported, whatever the run ended with; it counts in the budgets, and stops a
// scope that it takes over its limit.
func TestWhatARunTellsThatItCost(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	i := d.issue(t, CreateIssue{Title: "Work", Status: IssueTodo, Assignee: ada})
	node := func(run string, f func(r *Run)) Run {
		r, _ := runs.Get(d.tx, d.company, run)
		r.Node, r.Session, r.Owed, r.Context.IssueID = "one", 7, true, i.ID
		if f != nil {
			f(&r)
		}
		runs.Put(d.tx, d.company, run, r)
		return r
	}
	finish := func(run string, o Outcome) {
		t.Helper()
		c := d.context(board, "run.finish", nil)
		c.Cmd.Actor.Type, c.Cmd.Actor.ID, c.Session = "node", "one", 7
		if _, err := finishRun(c, Finish{Run: run, Outcome: o}); err != nil {
			t.Fatal(err)
		}
	}
	event := func(run string) (e CostEvent, ok bool) {
		row, ok := d.tx.Get(costIDKey(d.company, runCostEvent(run)))
		if ok {
			e, ok = costEvents.Get(d.tx, d.company, string(row))
		}
		return e, ok
	}
	told := &RunCost{Provider: "anthropic", Model: "claude", BillingType: "metered_api", Usage: Usage{InputTokens: 100, OutputTokens: 20, CachedInputTokens: 3}, Cost: Cents(40), Priced: true}

	first := node(d.run(ada), nil)
	finish(first.ID, Outcome{Status: RunSucceeded, Cost: told})
	e, ok := event(first.ID)
	if !ok || e.Cost != Cents(40) || e.CostStatus != "reported" || e.Reservation != "" || string(e.Run) != first.ID || string(e.Issue) != i.ID || e.InputTokens != 100 || e.CachedInputTokens != 3 {
		t.Errorf("booked as %+v, %v", e, ok)
	}
	// The same run once more, by the command for what came too late.
	say := func(run, by string) error {
		c := d.context(board, "run.cost", TellCost{run, *told})
		c.Cmd.Actor.Type, c.Cmd.Actor.ID = "node", by
		_, err := d.mux["run.cost"](c)
		return err
	}
	if err := say(first.ID, "one"); err != nil {
		t.Error(err)
	}
	if b := BudgetOf(d.tx, d.company, ScopeAgent, ada, TimeOf(d.now)); b.Lifetime != Cents(40) {
		t.Errorf("%d cents are counted, want 40 once", b.Lifetime.Cents())
	}
	if say(first.ID, "another") == nil {
		t.Error("another node told what a run cost")
	}

	// A run that was cancelled, and one whose session was over.
	second := node(d.run(ada), func(r *Run) { r.Status = RunCancelled })
	finish(second.ID, Outcome{Status: RunCancelled, Cost: told})
	third := node(d.run(ada), func(r *Run) { r.Status, r.Owed = RunInterrupted, false })
	if err := say(third.ID, "one"); err != nil {
		t.Error(err)
	}
	// One of which nobody knows the price.
	fourth := node(d.run(ada), nil)
	finish(fourth.ID, Outcome{Status: RunFailed, Cost: &RunCost{Provider: "x", Usage: Usage{InputTokens: 5}, Cost: Cents(1)}})
	if e, ok := event(fourth.ID); !ok || e.CostStatus != "unpriced" || e.Cost != 0 || e.InputTokens != 5 || e.Model != "unknown" {
		t.Errorf("without a price it is booked as %+v, %v", e, ok)
	}
	if b := BudgetOf(d.tx, d.company, ScopeAgent, ada, TimeOf(d.now)); b.Lifetime != Cents(120) {
		t.Errorf("%d cents are counted, want 120", b.Lifetime.Cents())
	}

	// What is beyond a limit is booked all the same, and stops the agent.
	d.must(t, board, "budget.set", SetBudget{Type: ScopeAgent, Scope: ada, Window: WindowLifetime, Amount: Cents(130)}, nil)
	fifth := node(d.run(ada), nil)
	finish(fifth.ID, Outcome{Status: RunSucceeded, Cost: told})
	if a, _ := agents.Get(d.tx, d.company, ada); a.Status != AgentPaused || a.PauseReason != pausedForBudget {
		t.Errorf("the agent is %s, %q", a.Status, a.PauseReason)
	}
	if r, _ := runs.Get(d.tx, d.company, fifth.ID); r.Status != RunSucceeded {
		t.Errorf("the run whose cost stopped its agent is %s", r.Status)
	}
}
