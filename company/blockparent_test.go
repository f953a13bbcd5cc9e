package company

import (
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// A child may hold up its parent until it is done.
func TestAChildBlocksItsParent(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	parent, child, other := d.id(), d.id(), d.id()
	d.must(t, board, "issue.create", CreateIssue{ID: other, Title: "Other"}, nil)
	d.must(t, board, "issue.create", CreateIssue{ID: parent, Title: "Parent", Status: IssueTodo, BlockedBy: []string{other}}, nil)
	d.must(t, board, "issue.create", CreateIssue{ID: child, Title: "Child", Parent: parent, Child: true, BlockParent: true}, nil)
	if p, _ := IssueOf(d.tx, d.company, parent); len(p.BlockedBy) != 2 {
		t.Fatalf("the parent waits for %v", p.BlockedBy)
	}
	checkOut := CheckOutIssue{Issue: parent, Agent: ada, Expected: []IssueStatus{IssueTodo}}
	wantRefusal(t, d.do(board, "issue.checkout", checkOut, nil), ledger.Unprocessable, "Issue is blocked by unresolved blockers")
	for _, id := range []string{other, child} {
		d.must(t, board, "issue.update", UpdateIssue{Issue: id, Status: IssueDone}, nil)
	}
	d.must(t, board, "issue.checkout", checkOut, nil)
	// One that waits for its parent can not hold it up too.
	wantRefusal(t, d.do(board, "issue.create", CreateIssue{ID: d.id(), Title: "Circle", Parent: parent, BlockedBy: []string{parent}, Child: true, BlockParent: true}, nil),
		ledger.Unprocessable, "Blocking relations cannot contain cycles")
}
