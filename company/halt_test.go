package company_test

import (
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestAStopCancelsAllCompanies(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	session := d.Open("one")
	const n = company.MaxStoppedRuns + 5
	for range n {
		id := d.Run(ada)
		r, _ := entity.RunTable.Get(d.Tx, d.Company, id)
		r.Node, r.Session, r.Owed = "one", session, true
		entity.RunTable.Put(d.Tx, d.Company, id, r)
		d.Tx.Set(entity.SessionKey(session, id), []byte(d.Company))
	}
	var out company.Stopped
	d.Must(t, companytest.Board, "mesh.stop", company.StopAll{Reason: "drill"}, &out)
	if out.Cancelled != company.MaxStoppedRuns || !out.More {
		t.Errorf("the first step: %+v", out)
	}
	out = company.Stopped{}
	if err := d.OfNode("one", session, "mesh.quiesce", company.Quiesce{}, &out); err != nil ||
		out.Cancelled != n-company.MaxStoppedRuns || out.More {
		t.Errorf("the second step: %+v, %v", out, err)
	}
	if left := company.RunningRuns(d.Tx, n); len(left) != 0 {
		t.Errorf("%d runs are left", len(left))
	}
	h, ok := entity.Halted(d.Tx)
	if !ok || h.Reason != "drill" || h.At == 0 {
		t.Errorf("halted: %+v", h)
	}
	if err := d.OfNode("one", session, "budget.reserve", money.Reserve{ID: d.ID(), Agent: ada, Want: 1,
		Until: core.TimeOf(d.Now)}, nil); companytest.Refused(t, err).ErrCode != "mesh_stopped" {
		t.Errorf("money is set aside: %v", err)
	}
	d.Must(t, companytest.Board, "mesh.resume", company.ResumeAll{}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, "mesh.resume", company.ResumeAll{}, nil), ledger.Conflict,
		"The mesh is not stopped")
	companytest.WantRefusal(t, d.OfNode("one", session, "mesh.quiesce", company.Quiesce{}, nil), ledger.Conflict,
		"The mesh is not stopped")
	if err := d.OfNode("one", session, "budget.reserve", money.Reserve{ID: d.ID(), Agent: ada, Want: 1,
		Until: core.TimeOf(d.Now)}, nil); err != nil {
		t.Error(err)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "node.cordon", company.Cordon{Node: "nobody"}, nil),
		ledger.NotFound, "Node not found")
	for _, name := range []string{company.KindMeshStop, company.KindNodeCordon} {
		if kind, _ := company.KindOf(name); kind.From&company.FromAgent != 0 {
			t.Errorf("an agent may give %s", name)
		}
	}
}

// Runs that come to nothing count in a row; one that comes to something, and
// those that tell neither way, do not.
func TestFruitlessRuns(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		run              entity.Run
		fruitless, tells bool
	}{
		{entity.Run{Status: entity.RunFailed}, true, true},
		{entity.Run{Status: entity.RunTimedOut}, true, true},
		{entity.Run{Status: entity.RunCancelled}, false, false},
		{entity.Run{Status: entity.RunInterrupted}, false, false},
		{entity.Run{Status: entity.RunSucceeded, LivenessState: "advanced"}, false, true},
		{entity.Run{Status: entity.RunSucceeded, LivenessState: "empty_response"}, false,
			true}, // a program that says nothing
		{entity.Run{Status: entity.RunSucceeded, LivenessState: "empty_response", Context: entity.RunContext{IssueID: "i"}},
			true, true},
		{entity.Run{Status: entity.RunSucceeded, LivenessState: "needs_followup", Context: entity.RunContext{IssueID: "i"}},
			true, true},
	} {
		if f, tells := care.Fruitless(tc.run); f != tc.fruitless || tells != tc.tells {
			t.Errorf("%+v: %v, %v", tc.run.Status, f, tells)
		}
	}
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	i := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Assignee: ada})
	for n := range entity.DefaultFruitlessRuns {
		if a, _ := entity.AgentTable.Get(d.Tx, d.Company, ada); a.Status == entity.AgentPaused {
			t.Fatalf("paused after %d runs", n)
		}
		r, _ := entity.RunTable.Get(d.Tx, d.Company, d.Run(ada))
		r.Context.IssueID = i.ID
		c := d.Context(companytest.Board, "run.finish", nil)
		c.Cmd.Actor = ledger.Actor{Type: "node", ID: "one"}
		company.EndRun(c, r, company.Outcome{Status: entity.RunFailed, Error: "no"})
	}
	a, _ := entity.AgentTable.Get(d.Tx, d.Company, ada)
	blocked := d.Load(i.ID)
	if a.Status != entity.AgentPaused || a.PauseReason != entity.PausedForNoProgress ||
		blocked.Status != entity.IssueBlocked || len(care.RecoveriesOf(d.Tx, blocked)) != 1 {
		t.Errorf("the agent is %s, %q; its issue %s with %d recoveries", a.Status, a.PauseReason, blocked.Status,
			len(care.RecoveriesOf(d.Tx, blocked)))
	}
}
