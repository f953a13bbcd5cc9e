package company

import (
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

func TestAgentsDoNotCancelWhatOthersWant(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	who := as{ada, d.run(ada)}
	theirs := d.issue(t, CreateIssue{Assignee: ada})
	var own IssueResult
	d.must(t, who, "issue.create", CreateIssue{ID: d.id(), Title: "Mine"}, &own)
	r := wantRefusal(t, d.do(who, "issue.update", UpdateIssue{Issue: theirs.ID, Status: IssueCancelled}, nil), ledger.Unprocessable, "")
	if m := detail(t, r); len(m["allowedStatuses"].([]any)) != 2 {
		t.Errorf("details %v", m)
	}
	d.must(t, who, "issue.update", UpdateIssue{Issue: own.Issue.ID, Status: IssueCancelled}, nil)
	d.must(t, board, "issue.update", UpdateIssue{Issue: theirs.ID, Status: IssueCancelled}, nil)
}

func TestRequestDepthIsBounded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	at := d.issue(t, CreateIssue{})
	for n := uint64(1); n < MaxIssueDepth; n++ {
		if at = d.issue(t, CreateIssue{Parent: at.ID}); at.Depth != n {
			t.Fatalf("depth %d, want %d", at.Depth, n)
		}
	}
	wantRefusal(t, d.do(board, "issue.create", CreateIssue{ID: d.id(), Title: "x", Parent: at.ID}, nil), ledger.Unprocessable, "")
	wantRefusal(t, d.do(board, "issue.create", CreateIssue{ID: d.id(), Title: "y", Depth: MaxRequestDepth + 1}, nil), ledger.Unprocessable, "")
}

func TestEveryIssueResolvesToARootGoal(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	root := d.goal(t, "Root", "")
	root.Level = "company"
	goals.Put(d.tx, d.company, root.ID, root)
	team := d.goal(t, "Team", root.ID)
	for id, want := range map[string]int{team.ID: 2, root.ID: 1, "": 1, uid(9): 1} {
		if chain := GoalChain(d.tx, d.company, id); len(chain) != want || chain[want-1].ID != root.ID {
			t.Errorf("%q: %+v", id, chain)
		}
	}
}
