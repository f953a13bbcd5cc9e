package company

import (
	"slices"
	"testing"
)

// A look that may not read everything goes on where the one before ended, and no
// issue is out of its reach: not behind others that rest, that are done, or that
// nobody has.
func TestStrandedIssuesAreFoundLittleByLittle(t *testing.T) {
	d := newDesk(t)
	var want []string
	for n := range 3 {
		agent := d.agent("agent " + string(rune('a'+n)))
		for range 3 {
			i := d.issue(t, CreateIssue{Status: IssueInReview, Assignee: agent})
			want = append(want, i.ID)
			for _, r := range LiveRunsOfAgent(d.tx, d.company, agent) { // it was woken for it
				d.must(t, board, "run.cancel", Cancel{Run: r.ID}, nil)
			}
			d.issue(t, CreateIssue{Status: IssueDone, Assignee: agent})
			d.issue(t, CreateIssue{Status: IssueTodo})
		}
	}
	later := d.load(want[0]).UpdatedAt + 2*strandedAfter
	for _, step := range []struct{ n, reads int }{{100, 100}, {1, 100}, {100, 1}, {2, 3}} {
		var got []string
		var from []byte
		for looks := 0; ; looks++ {
			if looks > 100 {
				t.Fatalf("%+v: no end after %d looks", step, looks)
			}
			found, next, left := Stranded(d.tx, d.company, later, from, step.n, step.reads)
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
