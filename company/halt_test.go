package company

import (
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

func TestAStopCancelsAllCompanies(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	session := d.open("one")
	const n = maxStoppedRuns + 5
	for range n {
		id := d.run(ada)
		r, _ := runs.Get(d.tx, d.company, id)
		r.Node, r.Session, r.Owed = "one", session, true
		runs.Put(d.tx, d.company, id, r)
		d.tx.Set(sessionKey(session, id), []byte(d.company))
	}
	var out Stopped
	d.must(t, board, "mesh.stop", StopAll{Reason: "drill"}, &out)
	if out.Cancelled != maxStoppedRuns || !out.More {
		t.Errorf("the first step: %+v", out)
	}
	out = Stopped{}
	if err := d.ofNode("one", session, "mesh.quiesce", Quiesce{}, &out); err != nil || out.Cancelled != n-maxStoppedRuns || out.More {
		t.Errorf("the second step: %+v, %v", out, err)
	}
	if left := RunningRuns(d.tx, n); len(left) != 0 {
		t.Errorf("%d runs are left", len(left))
	}
	h, ok := Halted(d.tx)
	if !ok || h.Reason != "drill" || h.At == 0 {
		t.Errorf("halted: %+v", h)
	}
	if err := d.ofNode("one", session, "budget.reserve", Reserve{ID: d.id(), Agent: ada, Want: 1, Until: TimeOf(d.now)}, nil); refused(t, err).ErrCode != "mesh_stopped" {
		t.Errorf("money is set aside: %v", err)
	}
	d.must(t, board, "mesh.resume", ResumeAll{}, nil)
	wantRefusal(t, d.do(board, "mesh.resume", ResumeAll{}, nil), ledger.Conflict, "The mesh is not stopped")
	wantRefusal(t, d.ofNode("one", session, "mesh.quiesce", Quiesce{}, nil), ledger.Conflict, "The mesh is not stopped")
	if err := d.ofNode("one", session, "budget.reserve", Reserve{ID: d.id(), Agent: ada, Want: 1, Until: TimeOf(d.now)}, nil); err != nil {
		t.Error(err)
	}
	wantRefusal(t, d.do(board, "node.cordon", Cordon{Node: "nobody"}, nil), ledger.NotFound, "Node not found")
	for _, name := range []string{KindMeshStop, KindNodeCordon} {
		if kind, _ := KindOf(name); kind.From&FromAgent != 0 {
			t.Errorf("an agent may give %s", name)
		}
	}
}

// Runs that come to nothing count in a row; one that comes to something, and
// those that tell neither way, do not.
func TestFruitlessRuns(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		run              Run
		fruitless, tells bool
	}{
		{Run{Status: RunFailed}, true, true},
		{Run{Status: RunTimedOut}, true, true},
		{Run{Status: RunCancelled}, false, false},
		{Run{Status: RunInterrupted}, false, false},
		{Run{Status: RunSucceeded, LivenessState: "advanced"}, false, true},
		{Run{Status: RunSucceeded, LivenessState: "empty_response"}, false, true}, // a program that says nothing
		{Run{Status: RunSucceeded, LivenessState: "empty_response", Context: RunContext{IssueID: "i"}}, true, true},
		{Run{Status: RunSucceeded, LivenessState: "needs_followup", Context: RunContext{IssueID: "i"}}, true, true},
	} {
		if f, tells := tc.run.fruitless(); f != tc.fruitless || tells != tc.tells {
			t.Errorf("%+v: %v, %v", tc.run.Status, f, tells)
		}
	}
	d := newDesk(t)
	ada := d.agent("Ada")
	i := d.issue(t, CreateIssue{Status: IssueTodo, Assignee: ada})
	for n := range DefaultFruitlessRuns {
		if a, _ := agents.Get(d.tx, d.company, ada); a.Status == AgentPaused {
			t.Fatalf("paused after %d runs", n)
		}
		r, _ := runs.Get(d.tx, d.company, d.run(ada))
		r.Context.IssueID = i.ID
		c := d.context(board, "run.finish", nil)
		c.Cmd.Actor = ledger.Actor{Type: "node", ID: "one"}
		endRun(c, r, Outcome{Status: RunFailed, Error: "no"})
	}
	a, _ := agents.Get(d.tx, d.company, ada)
	blocked := d.load(i.ID)
	if a.Status != AgentPaused || a.PauseReason != pausedForNoProgress || blocked.Status != IssueBlocked || len(RecoveriesOf(d.tx, blocked)) != 1 {
		t.Errorf("the agent is %s, %q; its issue %s with %d recoveries", a.Status, a.PauseReason, blocked.Status, len(RecoveriesOf(d.tx, blocked)))
	}
}
