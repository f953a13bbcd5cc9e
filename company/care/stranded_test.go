package care_test

import (
	"slices"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/entity"
)

// A look that may not read everything goes on where the one before ended, and no
// issue is out of its reach: not behind others that rest, that are done, or that
// nobody has.
func TestStrandedIssuesAreFoundLittleByLittle(t *testing.T) {
	d := companytest.NewDesk(t)
	var want []string
	for n := range 3 {
		agent := d.Agent("agent " + string(rune('a'+n)))
		for range 3 {
			i := d.Issue(t, company.CreateIssue{Status: entity.IssueInReview, Assignee: agent})
			want = append(want, i.ID)
			for _, r := range entity.LiveRunsOfAgent(d.Tx, d.Company, agent) { // it was woken for it
				d.Must(t, companytest.Board, "run.cancel", company.Cancel{Run: r.ID}, nil)
			}
			d.Issue(t, company.CreateIssue{Status: entity.IssueDone, Assignee: agent})
			d.Issue(t, company.CreateIssue{Status: entity.IssueTodo})
		}
	}
	later := d.Load(want[0]).UpdatedAt + 2*care.StrandedAfter
	for _, step := range []struct{ n, reads int }{{100, 100}, {1, 100}, {100, 1}, {2, 3}} {
		var got []string
		var from []byte
		for looks := 0; ; looks++ {
			if looks > 100 {
				t.Fatalf("%+v: no end after %d looks", step, looks)
			}
			found, next, left := care.Stranded(d.Tx, d.Company, later, from, step.n, step.reads)
			if len(found) > step.n || left > step.reads {
				t.Fatalf("%+v: found %d, and would have read %d more", step, len(found), left)
			}
			for _, i := range found {
				got = append(got, i.ID)
			}
			if from = next; from == nil {
				break
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%+v: found %d issues, want %d", step, len(got), len(want))
		}
	}
}
