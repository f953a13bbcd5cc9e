package company

import (
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// working gives an agent a run that works on an issue, as its node would.
func (d *desk) working(t testing.TB, agent string, i Issue) string {
	t.Helper()
	run := d.run(agent)
	r, _ := runs.Get(d.tx, d.company, run)
	r.Context.IssueID = i.ID
	d.storeRun(r)
	return run
}

func TestAPausedTreeRests(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, bob := d.agent("Ada"), d.agent("Bob")
	root := d.issue(t, CreateIssue{})
	mid := d.issue(t, CreateIssue{Parent: root.ID})
	leaf := d.issue(t, CreateIssue{Parent: mid.ID, Assignee: ada, Status: IssueTodo})
	other := d.issue(t, CreateIssue{Assignee: bob, Status: IssueTodo})
	run := d.working(t, ada, leaf)
	d.must(t, as{ada, run}, "issue.checkout", CheckOutIssue{Issue: leaf.ID, Agent: ada, Expected: []IssueStatus{IssueTodo}}, nil)

	wantRefusal(t, d.do(board, "tree.hold", HoldTree{ID: d.id(), Issue: root.ID, Mode: "resume"}, nil), ledger.Conflict, "")
	wantRefusal(t, d.do(board, "tree.hold", HoldTree{ID: d.id(), Issue: root.ID, Mode: "freeze"}, nil), ledger.Invalid, "")
	var h TreeHold
	d.must(t, board, "tree.hold", HoldTree{ID: d.id(), Issue: root.ID, Mode: "pause", Reason: "think again"}, &h)
	if r, _ := runs.Get(d.tx, d.company, run); r.Status != RunCancelled {
		t.Errorf("the run is %s", r.Status)
	}
	if live := LiveRunsOfAgent(d.tx, d.company, ada); len(live) != 0 {
		t.Errorf("runs after the pause: %+v", live)
	}
	if r := refused(t, d.do(board, "tree.hold", HoldTree{ID: d.id(), Issue: root.ID, Mode: "pause"}, nil)); r.ErrCode != "issue_tree_held" {
		t.Errorf("a second pause: %+v", r)
	}
	for _, i := range []Issue{root, mid, leaf, d.issue(t, CreateIssue{Parent: leaf.ID})} {
		if got, ok := HeldBy(d.tx, d.load(i.ID)); !ok || got.ID != h.ID {
			t.Errorf("%s is not held", i.Identifier)
		}
	}
	if _, ok := HeldBy(d.tx, other); ok {
		t.Error("another tree is held")
	}
	asAda := as{ada, d.run(ada)}
	d.must(t, board, "issue.update", UpdateIssue{Issue: leaf.ID, Status: IssueTodo}, nil)
	if r := refused(t, d.do(asAda, "issue.checkout", CheckOutIssue{Issue: leaf.ID, Agent: ada, Expected: []IssueStatus{IssueTodo}}, nil)); r.ErrCode != "issue_tree_held" || r.Code != ledger.Conflict {
		t.Errorf("checkout: %+v", r)
	}
	if r := refused(t, d.do(asAda, "issue.update", UpdateIssue{Issue: leaf.ID, Status: IssueInProgress}, nil)); r.ErrCode != "issue_tree_held" {
		t.Errorf("by a change: %+v", r)
	}
	d.endRun(asAda.run)
	before := len(LiveRunsOfAgent(d.tx, d.company, bob))
	d.must(t, board, "issue.update", UpdateIssue{Issue: leaf.ID, Assignee: &bob}, nil)
	if n := len(LiveRunsOfAgent(d.tx, d.company, bob)); n != before {
		t.Error("somebody is woken for a held issue")
	}
	if w := WakeupsOf(d.tx, d.company, bob); len(w) == 0 || w[0].Error != "issue.tree_held" && w[len(w)-1].Error != "issue.tree_held" {
		t.Errorf("the wake was %+v", w)
	}

	d.must(t, board, "tree.release", ReleaseTree{Issue: root.ID, Hold: h.ID}, &h)
	if live := LiveRunsOfAgent(d.tx, d.company, bob); h.Status != "released" || len(live) != before+1 || live[len(live)-1].Context.WakeReason != "issue_tree_resumed" {
		t.Errorf("after the release: %+v", live)
	}
	if n, _ := treeHoldCounts.Get(d.tx, d.company, d.company); n.Pauses != 0 {
		t.Errorf("%d pauses are counted", n.Pauses)
	}
	wantRefusal(t, d.do(board, "tree.release", ReleaseTree{Issue: root.ID, Hold: h.ID}, nil), ledger.Conflict, "")
	wantRefusal(t, d.do(board, "tree.release", ReleaseTree{Issue: mid.ID, Hold: h.ID}, nil), ledger.NotFound, "")
}

func TestAPauseCanWaitForTheRunsAtWork(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	root := d.issue(t, CreateIssue{})
	leaf := d.issue(t, CreateIssue{Parent: root.ID})
	hold := HoldTree{ID: d.id(), Issue: root.ID, Mode: "pause", Strategy: "after_active_runs_finish"}
	wantRefusal(t, d.do(board, "tree.hold", hold, nil), ledger.Unprocessable, "")
	run := d.working(t, ada, leaf)
	d.must(t, board, "tree.hold", hold, nil)
	r, _ := runs.Get(d.tx, d.company, run)
	if _, ok := HeldBy(d.tx, leaf); !ok || r.Status != RunRunning {
		t.Fatalf("held %v, the run is %s", ok, r.Status)
	}
	d.must(t, board, "run.cancel", Cancel{Run: run}, nil)
	if _, ok := HeldBy(d.tx, leaf); ok {
		t.Error("the hold outlives the run that it waited for")
	}
}

func TestACancelledTreeComesBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	root := d.issue(t, CreateIssue{Status: IssueBacklog})
	done := d.issue(t, CreateIssue{Parent: root.ID})
	d.must(t, board, "issue.update", UpdateIssue{Issue: done.ID, Status: IssueDone}, nil)
	work := d.issue(t, CreateIssue{Parent: root.ID, Assignee: ada, Status: IssueInProgress})
	var h TreeHold
	d.must(t, board, "tree.hold", HoldTree{ID: d.id(), Issue: root.ID, Mode: "cancel"}, &h)
	if d.load(root.ID).Status != IssueCancelled || d.load(work.ID).Status != IssueCancelled || d.load(done.ID).Status != IssueDone || len(h.Members) != 2 {
		t.Fatalf("%+v", h)
	}
	d.must(t, board, "tree.hold", HoldTree{ID: d.id(), Issue: root.ID, Mode: "restore"}, nil)
	if a, b := d.load(root.ID).Status, d.load(work.ID).Status; a != IssueBacklog || b != IssueTodo {
		t.Errorf("restored to %s and %s", a, b)
	}
	if len(TreeHoldsOf(d.tx, root)) != 2 {
		t.Errorf("%+v", TreeHoldsOf(d.tx, root))
	}
	wantRefusal(t, d.do(board, "tree.hold", HoldTree{ID: d.id(), Issue: root.ID, Mode: "restore"}, nil), ledger.Conflict, "")
	d.must(t, board, "tree.hold", HoldTree{ID: d.id(), Issue: root.ID, Mode: "pause"}, nil)
	d.must(t, board, "issue.delete", DeleteIssue{Issue: root.ID}, nil)
	if n, _ := treeHoldCounts.Get(d.tx, d.company, d.company); n.Pauses != 0 || len(TreeHoldsOf(d.tx, root)) != 0 {
		t.Error("the holds outlive their issue")
	}
	big := d.issue(t, CreateIssue{})
	for range MaxTreeMoves {
		d.issue(t, CreateIssue{Parent: big.ID})
	}
	wantRefusal(t, d.do(board, "tree.hold", HoldTree{ID: d.id(), Issue: big.ID, Mode: "cancel"}, nil), ledger.Unprocessable, "")
}
