package skill_test

import (
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

// An allowed execution ends for each reason for which it would now be refused, and with the
// run that asked for it. An execution that a person started ends for fewer reasons.
func TestWhatIsAtWorkEndsForEachDenial(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change                 func(t *testing.T, d *companytest.Desk, agent, run string)
		agent, person, command company.Denial // of a tool of an agent, of a person, and of a command in a workspace
	}{
		"nothing": {func(*testing.T, *companytest.Desk, string, string) {}, "", "", ""},
		"the stop": {func(t *testing.T, d *companytest.Desk, _, _ string) {
			d.Must(t, companytest.Board, "mesh.stop", company.StopAll{}, nil)
		}, company.DeniedMeshStopped, company.DeniedMeshStopped, company.DeniedMeshStopped},
		"a pause": {func(t *testing.T, d *companytest.Desk, a, _ string) {
			d.Must(t, companytest.Board, "agent.pause", company.ChangeAgent{Agent: a}, nil)
		}, company.DeniedAgent, "", company.DeniedAgent},
		"its end": {func(t *testing.T, d *companytest.Desk, a, _ string) {
			d.Must(t, companytest.Board, "agent.terminate", company.ChangeAgent{Agent: a}, nil)
		}, company.DeniedAgent, "", company.DeniedAgent},
		"its deletion": {func(t *testing.T, d *companytest.Desk, a, _ string) {
			d.Must(t, companytest.Board, "agent.delete", company.ChangeAgent{Agent: a}, nil)
		}, company.DeniedAgent, "", company.DeniedAgent},
		"no progress": {func(_ *testing.T, d *companytest.Desk, a, _ string) { pauseFor(d, a, entity.PausedForNoProgress) },
			company.DeniedNoProgress, "", company.DeniedNoProgress},
		"its budget": {func(_ *testing.T, d *companytest.Desk, a, _ string) { pauseFor(d, a, entity.PausedForBudget) },
			company.DeniedBudget, "", company.DeniedBudget},
		"the company": {func(t *testing.T, d *companytest.Desk, _, _ string) {
			d.Must(t, companytest.Board, "company.pause", company.ChangeCompany{}, nil)
		}, company.DeniedCompany, "", company.DeniedCompany},
		"its archive": {func(t *testing.T, d *companytest.Desk, _, _ string) {
			d.Must(t, companytest.Board, "company.archive", company.ChangeCompany{}, nil)
		}, company.DeniedCompany, "", company.DeniedCompany},
		"its deletion, too": {func(t *testing.T, d *companytest.Desk, _, _ string) {
			d.Must(t, companytest.Board, "company.delete", company.ChangeCompany{}, nil)
		}, company.DeniedCompany, company.DeniedCompany, company.DeniedCompany},
		"its limit": {func(t *testing.T, d *companytest.Desk, a, _ string) {
			limit := core.Cents(100)
			d.Must(t, companytest.Board, "company.update", entity.SaveCompany{Budget: &limit}, nil)
			if err := d.Cost(companytest.Board, a, 100); err != nil {
				t.Fatal(err)
			}
		}, company.DeniedBudget, "", company.DeniedBudget},
		"its run is cancelled": {func(t *testing.T, d *companytest.Desk, _, run string) {
			d.Must(t, companytest.Board, "run.cancel", company.Cancel{Run: run}, nil)
		}, company.DeniedRunOver, "", company.DeniedRunOver},
		"its run was denied": {func(_ *testing.T, d *companytest.Desk, _, run string) {
			r, _ := entity.RunTable.Get(d.Tx, d.Company, run)
			company.DenyLive(d.Context(companytest.Board, "", nil), r, company.DeniedBudget,
				"Cancelled: the budget hard-stop of the project was reached")
		}, company.DeniedBudget, "", company.DeniedBudget},
		"its run is over": {func(_ *testing.T, d *companytest.Desk, _, run string) {
			r, _ := entity.RunTable.Get(d.Tx, d.Company, run)
			r.Status = entity.RunSucceeded
			entity.RunTable.Put(d.Tx, d.Company, run, r)
		}, company.DeniedRunOver, "", ""},
		"its version is revoked": {func(_ *testing.T, d *companytest.Desk, _, _ string) {
			skill.ToolRows.Put(d.Tx, d.Company, "count", skill.Tool{Company: d.Company, Name: "count",
				Versions: []skill.ToolVersion{{Version: 1, Revoked: true}, {Version: 2}}})
		}, company.DeniedTool, company.DeniedTool, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := companytest.NewDesk(t)
			ada := d.Agent("Ada")
			run := d.Run(ada)
			skill.ToolRows.Put(d.Tx, d.Company, "count", skill.Tool{Company: d.Company, Name: "count",
				Versions: []skill.ToolVersion{{Version: 1}, {Version: 2}}})
			other := d.Agent("Bob")
			of := d.Company
			c.change(t, d, ada, run)
			use := skill.ToolUse{Company: of, Name: "count", Version: 1, By: ledger.Actor{Type: "agent", ID: ada}, Run: run}
			if got := use.Over(d.Tx); got != c.agent {
				t.Errorf("a tool of the agent: %q, want %q", got, c.agent)
			}
			use.By, use.Run = ledger.Actor{Type: "user", ID: people.LocalBoard}, ""
			if got := use.Over(d.Tx); got != c.person {
				t.Errorf("a tool of a person: %q, want %q", got, c.person)
			}
			if got := (place.WorkspaceOperation{Company: of, Run: core.NullText(run)}).Over(d.Tx); got != c.command {
				t.Errorf("a command of the agent: %q, want %q", got, c.command)
			}
			if got := (place.WorkspaceOperation{Company: of}).Over(d.Tx); got != c.person && c.person != company.DeniedTool {
				t.Errorf("a command of a person: %q, want %q", got, c.person)
			}
			// A denial of one agent does not end executions of another.
			if use.By = (ledger.Actor{Type: "agent", ID: other}); c.person == "" && c.agent != company.DeniedCompany &&
				name != "its limit" {
				if got := use.Over(d.Tx); got != "" {
					t.Errorf("a tool of another agent: %q", got)
				}
			}
		})
	}
}

func pauseFor(d *companytest.Desk, agent, reason string) {
	a, _ := entity.AgentTable.Get(d.Tx, d.Company, agent)
	a.Status, a.PauseReason = entity.AgentPaused, core.NullText(reason)
	entity.AgentTable.Put(d.Tx, a.Company, a.ID, a)
}

// A paused company has more executions than one command ends. The leader's next commands end
// the rest; while the company is active they end none.
func TestAPausedCompanyIsSettled(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	n := 0
	for _, name := range []string{"Ada", "Bob", "Cid"} {
		for agent := d.Agent(name); n%entity.MaxLiveRuns != entity.MaxLiveRuns-1; n++ {
			d.Run(agent)
		}
		n++
	}
	companytest.WantRefusal(t, d.ByLeader("company.settle", company.SettleCompany{}), ledger.Conflict,
		"The company is neither paused nor archived")
	if company.CompanyToSettle(d.Tx, d.Company) {
		t.Error("a company at work is to be settled")
	}
	d.Must(t, companytest.Board, "company.pause", company.ChangeCompany{}, nil)
	rounds := 0
	for ; company.CompanyToSettle(d.Tx, d.Company); rounds++ {
		if rounds > 5 {
			t.Fatal("it does not end")
		}
		if err := d.ByLeader("company.settle", company.SettleCompany{}); err != nil {
			t.Fatal(err)
		}
	}
	if rounds != 1 {
		t.Errorf("it took %d more commands, want 1", rounds)
	}
}
