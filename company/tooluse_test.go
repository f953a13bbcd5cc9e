package company

import (
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// What was allowed to begin ends for each reason for which it would be refused now,
// and with the run that asked for it; what a person began ends for fewer.
func TestWhatIsAtWorkEndsForEachDenial(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change                 func(t *testing.T, d *desk, agent, run string)
		agent, person, command Denial // of a tool of an agent, of a person, and of a command in a workspace
	}{
		"nothing":  {func(*testing.T, *desk, string, string) {}, "", "", ""},
		"the stop": {func(t *testing.T, d *desk, _, _ string) { d.must(t, board, "mesh.stop", StopAll{}, nil) }, DeniedMeshStopped, DeniedMeshStopped, DeniedMeshStopped},
		"a pause":  {func(t *testing.T, d *desk, a, _ string) { d.must(t, board, "agent.pause", ChangeAgent{Agent: a}, nil) }, DeniedAgent, "", DeniedAgent},
		"its end": {func(t *testing.T, d *desk, a, _ string) {
			d.must(t, board, "agent.terminate", ChangeAgent{Agent: a}, nil)
		}, DeniedAgent, "", DeniedAgent},
		"its deletion":      {func(t *testing.T, d *desk, a, _ string) { d.must(t, board, "agent.delete", ChangeAgent{Agent: a}, nil) }, DeniedAgent, "", DeniedAgent},
		"no progress":       {func(_ *testing.T, d *desk, a, _ string) { pauseFor(d, a, pausedForNoProgress) }, DeniedNoProgress, "", DeniedNoProgress},
		"its budget":        {func(_ *testing.T, d *desk, a, _ string) { pauseFor(d, a, pausedForBudget) }, DeniedBudget, "", DeniedBudget},
		"the company":       {func(t *testing.T, d *desk, _, _ string) { d.must(t, board, "company.pause", ChangeCompany{}, nil) }, DeniedCompany, "", DeniedCompany},
		"its archive":       {func(t *testing.T, d *desk, _, _ string) { d.must(t, board, "company.archive", ChangeCompany{}, nil) }, DeniedCompany, "", DeniedCompany},
		"its deletion, too": {func(t *testing.T, d *desk, _, _ string) { d.must(t, board, "company.delete", ChangeCompany{}, nil) }, DeniedCompany, DeniedCompany, DeniedCompany},
		"its limit": {func(t *testing.T, d *desk, a, _ string) {
			limit := Cents(100)
			d.must(t, board, "company.update", SaveCompany{Budget: &limit}, nil)
			if err := d.cost(board, a, 100); err != nil {
				t.Fatal(err)
			}
		}, DeniedBudget, "", DeniedBudget},
		"its run is cancelled": {func(t *testing.T, d *desk, _, run string) { d.must(t, board, "run.cancel", Cancel{Run: run}, nil) }, DeniedRunOver, "", DeniedRunOver},
		"its run was denied": {func(_ *testing.T, d *desk, _, run string) {
			r, _ := runs.Get(d.tx, d.company, run)
			denyLive(d.context(board, "", nil), r, DeniedBudget, "Cancelled: the budget hard-stop of the project was reached")
		}, DeniedBudget, "", DeniedBudget},
		"its run is over": {func(_ *testing.T, d *desk, _, run string) {
			r, _ := runs.Get(d.tx, d.company, run)
			r.Status = RunSucceeded
			runs.Put(d.tx, d.company, run, r)
		}, DeniedRunOver, "", ""},
		"its version is revoked": {func(_ *testing.T, d *desk, _, _ string) {
			toolRows.Put(d.tx, d.company, "count", Tool{Company: d.company, Name: "count", Versions: []ToolVersion{{Version: 1, Revoked: true}, {Version: 2}}})
		}, DeniedTool, DeniedTool, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			ada := d.agent("Ada")
			run := d.run(ada)
			toolRows.Put(d.tx, d.company, "count", Tool{Company: d.company, Name: "count", Versions: []ToolVersion{{Version: 1}, {Version: 2}}})
			other := d.agent("Bob")
			of := d.company
			c.change(t, d, ada, run)
			use := ToolUse{Company: of, Name: "count", Version: 1, By: ledger.Actor{Type: "agent", ID: ada}, Run: run}
			if got := use.Over(d.tx); got != c.agent {
				t.Errorf("a tool of the agent: %q, want %q", got, c.agent)
			}
			use.By, use.Run = ledger.Actor{Type: "user", ID: LocalBoard}, ""
			if got := use.Over(d.tx); got != c.person {
				t.Errorf("a tool of a person: %q, want %q", got, c.person)
			}
			if got := (WorkspaceOperation{Company: of, Run: NullText(run)}).Over(d.tx); got != c.command {
				t.Errorf("a command of the agent: %q, want %q", got, c.command)
			}
			if got := (WorkspaceOperation{Company: of}).Over(d.tx); got != c.person && c.person != DeniedTool {
				t.Errorf("a command of a person: %q, want %q", got, c.person)
			}
			// What is one agent's alone ends nothing of another.
			if use.By = (ledger.Actor{Type: "agent", ID: other}); c.person == "" && c.agent != DeniedCompany && name != "its limit" {
				if got := use.Over(d.tx); got != "" {
					t.Errorf("a tool of another agent: %q", got)
				}
			}
		})
	}
}

func pauseFor(d *desk, agent, reason string) {
	a, _ := agents.Get(d.tx, d.company, agent)
	a.Status, a.PauseReason = AgentPaused, NullText(reason)
	agents.Put(d.tx, a.Company, a.ID, a)
}

// More is at work in a company that is paused than one command ends: the leader's
// next commands end the rest, and none while the company is at work.
func TestAPausedCompanyIsSettled(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	n := 0
	for _, name := range []string{"Ada", "Bob", "Cid"} {
		for agent := d.agent(name); n%MaxLiveRuns != MaxLiveRuns-1; n++ {
			d.run(agent)
		}
		n++
	}
	wantRefusal(t, d.byLeader("company.settle", SettleCompany{}), ledger.Conflict, "The company is neither paused nor archived")
	if CompanyToSettle(d.tx, d.company) {
		t.Error("a company at work is to be settled")
	}
	d.must(t, board, "company.pause", ChangeCompany{}, nil)
	rounds := 0
	for ; CompanyToSettle(d.tx, d.company); rounds++ {
		if rounds > 5 {
			t.Fatal("it does not end")
		}
		if err := d.byLeader("company.settle", SettleCompany{}); err != nil {
			t.Fatal(err)
		}
	}
	if rounds != 1 {
		t.Errorf("it took %d more commands, want 1", rounds)
	}
}
