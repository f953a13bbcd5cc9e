package care_test

import (
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestAPausedTreeRests(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	root := d.Issue(t, company.CreateIssue{})
	mid := d.Issue(t, company.CreateIssue{Parent: root.ID})
	leaf := d.Issue(t, company.CreateIssue{Parent: mid.ID, Assignee: ada, Status: entity.IssueTodo})
	other := d.Issue(t, company.CreateIssue{Assignee: bob, Status: entity.IssueTodo})
	run := d.Working(t, ada, leaf)
	d.Must(t, companytest.As{Agent: ada, Run: run}, "issue.checkout", company.CheckOutIssue{Issue: leaf.ID, Agent: ada,
		Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)

	companytest.WantRefusal(t, d.Do(companytest.Board, "tree.hold", care.HoldTree{ID: d.ID(), Issue: root.ID,
		Mode: "resume"}, nil), ledger.Conflict, "No active hold of mode pause stands on this issue")
	companytest.WantRefusal(t, d.Do(companytest.Board, "tree.hold", care.HoldTree{ID: d.ID(), Issue: root.ID,
		Mode: "freeze"}, nil), ledger.Invalid, "Unknown mode of a hold: freeze")
	var h care.TreeHold
	d.Must(t, companytest.Board, "tree.hold", care.HoldTree{ID: d.ID(), Issue: root.ID, Mode: "pause",
		Reason: "think again"}, &h)
	if r, _ := entity.RunTable.Get(d.Tx, d.Company, run); r.Status != entity.RunCancelled {
		t.Errorf("the run is %s", r.Status)
	}
	if live := entity.LiveRunsOfAgent(d.Tx, d.Company, ada); len(live) != 0 {
		t.Errorf("runs after the pause: %+v", live)
	}
	if r := companytest.Refused(t, d.Do(companytest.Board, "tree.hold", care.HoldTree{ID: d.ID(), Issue: root.ID,
		Mode: "pause"}, nil)); r.ErrCode != "issue_tree_held" {
		t.Errorf("a second pause: %+v", r)
	}
	for _, i := range []entity.Issue{root, mid, leaf, d.Issue(t, company.CreateIssue{Parent: leaf.ID})} {
		if got, ok := care.HeldBy(d.Tx, d.Load(i.ID)); !ok || got.ID != h.ID {
			t.Errorf("%s is not held", i.Identifier)
		}
	}
	if _, ok := care.HeldBy(d.Tx, other); ok {
		t.Error("another tree is held")
	}
	asAda := companytest.As{Agent: ada, Run: d.Run(ada)}
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: leaf.ID, Status: entity.IssueTodo}, nil)
	if r := companytest.Refused(t, d.Do(asAda, "issue.checkout", company.CheckOutIssue{Issue: leaf.ID, Agent: ada,
		Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)); r.ErrCode != "issue_tree_held" ||
		r.Code != ledger.Conflict {
		t.Errorf("checkout: %+v", r)
	}
	if r := companytest.Refused(t, d.Do(asAda, "issue.update", company.UpdateIssue{Issue: leaf.ID,
		Status: entity.IssueInProgress}, nil)); r.ErrCode != "issue_tree_held" {
		t.Errorf("by a change: %+v", r)
	}
	d.EndRun(asAda.Run)
	before := len(entity.LiveRunsOfAgent(d.Tx, d.Company, bob))
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: leaf.ID, Assignee: &bob}, nil)
	if n := len(entity.LiveRunsOfAgent(d.Tx, d.Company, bob)); n != before {
		t.Error("somebody is woken for a held issue")
	}
	if w := entity.WakeupsOf(d.Tx, d.Company, bob); len(w) == 0 || w[0].Error != "issue.tree_held" &&
		w[len(w)-1].Error != "issue.tree_held" {
		t.Errorf("the wake was %+v", w)
	}

	d.Must(t, companytest.Board, "tree.release", care.ReleaseTree{Issue: root.ID, Hold: h.ID}, &h)
	if live := entity.LiveRunsOfAgent(d.Tx, d.Company, bob); h.Status != "released" || len(live) != before+1 ||
		live[len(live)-1].Context.WakeReason != "issue_tree_resumed" {
		t.Errorf("after the release: %+v", live)
	}
	if n, _ := care.TreeHoldCounts.Get(d.Tx, d.Company, d.Company); n.Pauses != 0 {
		t.Errorf("%d pauses are counted", n.Pauses)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "tree.release", care.ReleaseTree{Issue: root.ID, Hold: h.ID}, nil),
		ledger.Conflict, "Issue tree hold is already released")
	companytest.WantRefusal(t, d.Do(companytest.Board, "tree.release", care.ReleaseTree{Issue: mid.ID, Hold: h.ID}, nil),
		ledger.NotFound, "Issue tree hold not found")
}

func TestAPauseCanWaitForTheRunsAtWork(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	root := d.Issue(t, company.CreateIssue{})
	leaf := d.Issue(t, company.CreateIssue{Parent: root.ID})
	hold := care.HoldTree{ID: d.ID(), Issue: root.ID, Mode: "pause", Strategy: "after_active_runs_finish"}
	companytest.WantRefusal(t, d.Do(companytest.Board, "tree.hold", hold, nil), ledger.Unprocessable,
		"No run is active in this tree; the hold would end at once")
	run := d.Working(t, ada, leaf)
	d.Must(t, companytest.Board, "tree.hold", hold, nil)
	r, _ := entity.RunTable.Get(d.Tx, d.Company, run)
	if _, ok := care.HeldBy(d.Tx, leaf); !ok || r.Status != entity.RunRunning {
		t.Fatalf("held %v, the run is %s", ok, r.Status)
	}
	d.Must(t, companytest.Board, "run.cancel", company.Cancel{Run: run}, nil)
	if _, ok := care.HeldBy(d.Tx, leaf); ok {
		t.Error("the hold outlives the run that it waited for")
	}
}

func TestACancelledTreeComesBack(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	root := d.Issue(t, company.CreateIssue{Status: entity.IssueBacklog})
	done := d.Issue(t, company.CreateIssue{Parent: root.ID})
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: done.ID, Status: entity.IssueDone}, nil)
	work := d.Issue(t, company.CreateIssue{Parent: root.ID, Assignee: ada, Status: entity.IssueInProgress})
	var h care.TreeHold
	d.Must(t, companytest.Board, "tree.hold", care.HoldTree{ID: d.ID(), Issue: root.ID, Mode: "cancel"}, &h)
	if d.Load(root.ID).Status != entity.IssueCancelled || d.Load(work.ID).Status != entity.IssueCancelled ||
		d.Load(done.ID).Status != entity.IssueDone || len(h.Members) != 2 {
		t.Fatalf("%+v", h)
	}
	d.Must(t, companytest.Board, "tree.hold", care.HoldTree{ID: d.ID(), Issue: root.ID, Mode: "restore"}, nil)
	if a, b := d.Load(root.ID).Status, d.Load(work.ID).Status; a != entity.IssueBacklog || b != entity.IssueTodo {
		t.Errorf("restored to %s and %s", a, b)
	}
	if len(care.TreeHoldsOf(d.Tx, root)) != 2 {
		t.Errorf("%+v", care.TreeHoldsOf(d.Tx, root))
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "tree.hold", care.HoldTree{ID: d.ID(), Issue: root.ID,
		Mode: "restore"}, nil), ledger.Conflict, "No active hold of mode cancel stands on this issue")
	d.Must(t, companytest.Board, "tree.hold", care.HoldTree{ID: d.ID(), Issue: root.ID, Mode: "pause"}, nil)
	d.Must(t, companytest.Board, "issue.delete", company.DeleteIssue{Issue: root.ID}, nil)
	if n, _ := care.TreeHoldCounts.Get(d.Tx, d.Company, d.Company); n.Pauses != 0 ||
		len(care.TreeHoldsOf(d.Tx, root)) != 0 {
		t.Error("the holds outlive their issue")
	}
	big := d.Issue(t, company.CreateIssue{})
	for range care.MaxTreeMoves {
		d.Issue(t, company.CreateIssue{Parent: big.ID})
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "tree.hold", care.HoldTree{ID: d.ID(), Issue: big.ID,
		Mode: "cancel"}, nil), ledger.Unprocessable, "A hold moves at most 250 issues at once; hold the parts of this tree")
}
