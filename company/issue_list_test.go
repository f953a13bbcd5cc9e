package company

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// A page that is read in the order of the index is the page of all issues sorted,
// and the counts are those of the rows, whatever happened to the issues.
func TestPagesAndCountsAreThoseOfAllIssues(t *testing.T) {
	t.Parallel()
	d, r := newDesk(t), rand.New(rand.NewPCG(3, 5))
	var ids []string
	for n := range 120 {
		i := d.issue(t, CreateIssue{Title: fmt.Sprint("Issue ", n), Priority: Priorities[r.IntN(len(Priorities))], Status: IssueTodo, AllowDuplicate: true})
		ids = append(ids, i.ID)
	}
	for range 300 {
		id, hidden := ids[r.IntN(len(ids))], TimeOf(d.now)*Time(r.IntN(2))
		switch r.IntN(4) {
		case 0:
			_ = d.do(board, "issue.update", UpdateIssue{Issue: id, Priority: Priorities[r.IntN(len(Priorities))]}, nil)
		case 1:
			_ = d.do(board, "issue.update", UpdateIssue{Issue: id, Status: IssueStatuses[r.IntN(len(IssueStatuses))], UnblockDescriptor: []byte(`{"owner":"board"}`)}, nil)
		case 2:
			_ = d.do(board, "issue.update", UpdateIssue{Issue: id, HiddenAt: &hidden}, nil)
		case 3:
			if r.IntN(6) == 0 {
				_ = d.do(board, "issue.delete", DeleteIssue{Issue: id}, nil)
			}
		}
	}
	counts := map[IssueStatus]int{}
	for _, i := range issues.All(d.tx, d.company) {
		if i.HiddenAt == 0 {
			counts[i.Status]++
		}
	}
	got := CountIssues(d.tx, d.company)
	for _, s := range IssueStatuses {
		if got[s] != counts[s] {
			t.Errorf("%d issues are counted in %s, want %d", got[s], s, counts[s])
		}
	}
	pages := 0
	for range 300 {
		q := IssueQuery{Sort: []IssueSortField{SortDefault, SortPriority, SortUpdated, SortCreated, SortStatus}[r.IntN(5)], Descending: r.IntN(2) == 0,
			Limit: 1 + r.IntN(60), Offset: r.IntN(3) * 20, Hidden: r.IntN(3) == 0}
		for _, s := range IssueStatuses {
			if r.IntN(2) == 0 {
				q.Statuses = append(q.Statuses, s)
			}
		}
		if r.IntN(4) == 0 {
			q.UpdatedSince = TimeOf(d.now) - Time(r.IntN(100_000))
		}
		var all []candidate
		for _, i := range issues.All(d.tx, d.company) {
			if q.matches(i) {
				all = append(all, candidate{i.ID, i.Status, i.sort(), &i})
			}
		}
		slices.SortFunc(all, q.compare)
		all = all[min(q.Offset, len(all)):]
		all = all[:min(q.Limit, len(all))]
		if _, ok := q.first(d.tx, d.company, q.Limit); ok {
			pages++
		}
		list := ListIssues(d.tx, d.company, q)
		if !slices.EqualFunc(list, all, func(i Issue, c candidate) bool { return i.ID == c.id }) {
			t.Fatalf("%+v: %d issues are listed, want %d, in this order", q, len(list), len(all))
		}
	}
	if pages == 0 {
		t.Error("no page was read in the order of the index")
	}
}
