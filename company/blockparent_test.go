package company_test

import (
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A child may hold up its parent until it is done.
func TestAChildBlocksItsParent(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	parent, child, other := d.ID(), d.ID(), d.ID()
	d.Must(t, companytest.Board, "issue.create", company.CreateIssue{ID: other, Title: "Other"}, nil)
	d.Must(t, companytest.Board, "issue.create", company.CreateIssue{ID: parent, Title: "Parent", Status: entity.IssueTodo,
		BlockedBy: []string{other}}, nil)
	d.Must(t, companytest.Board, "issue.create", company.CreateIssue{ID: child, Title: "Child", Parent: parent,
		Child: true, BlockParent: true}, nil)
	if p, _ := entity.IssueOf(d.Tx, d.Company, parent); len(p.BlockedBy) != 2 {
		t.Fatalf("the parent waits for %v", p.BlockedBy)
	}
	checkOut := company.CheckOutIssue{Issue: parent, Agent: ada, Expected: []entity.IssueStatus{entity.IssueTodo}}
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.checkout", checkOut, nil), ledger.Unprocessable,
		"Issue is blocked by unresolved blockers")
	for _, id := range []string{other, child} {
		d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: id, Status: entity.IssueDone}, nil)
	}
	d.Must(t, companytest.Board, "issue.checkout", checkOut, nil)
	// One that waits for its parent can not hold it up too.
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.create", company.CreateIssue{ID: d.ID(), Title: "Circle",
		Parent: parent, BlockedBy: []string{parent}, Child: true, BlockParent: true}, nil),
		ledger.Unprocessable, "Blocking relations cannot contain cycles")
}
