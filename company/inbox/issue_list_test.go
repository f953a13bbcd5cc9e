package inbox_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/inbox"
)

// A page read in the order of the index equals the same page of all issues sorted, and the
// counts equal those of the rows, after any sequence of changes.
func TestPagesAndCountsAreThoseOfAllIssues(t *testing.T) {
	t.Parallel()
	d, r := companytest.NewDesk(t), rand.New(rand.NewPCG(3, 5))
	var ids []string
	for n := range 120 {
		i := d.Issue(t, company.CreateIssue{Title: fmt.Sprint("Issue ", n),
			Priority: entity.Priorities[r.IntN(len(entity.Priorities))], Status: entity.IssueTodo, AllowDuplicate: true})
		ids = append(ids, i.ID)
	}
	for range 300 {
		id, hidden := ids[r.IntN(len(ids))], core.TimeOf(d.Now)*core.Time(r.IntN(2))
		switch r.IntN(4) {
		case 0:
			_ = d.Do(companytest.Board, "issue.update", company.UpdateIssue{Issue: id,
				Priority: entity.Priorities[r.IntN(len(entity.Priorities))]}, nil)
		case 1:
			_ = d.Do(companytest.Board, "issue.update", company.UpdateIssue{Issue: id,
				Status:            entity.IssueStatuses[r.IntN(len(entity.IssueStatuses))],
				UnblockDescriptor: []byte(`{"owner":"board"}`)}, nil)
		case 2:
			_ = d.Do(companytest.Board, "issue.update", company.UpdateIssue{Issue: id, HiddenAt: &hidden}, nil)
		case 3:
			if r.IntN(6) == 0 {
				_ = d.Do(companytest.Board, "issue.delete", company.DeleteIssue{Issue: id}, nil)
			}
		}
	}
	counts := map[entity.IssueStatus]int{}
	for _, i := range entity.IssueTable.All(d.Tx, d.Company) {
		if i.HiddenAt == 0 {
			counts[i.Status]++
		}
	}
	got := entity.CountIssues(d.Tx, d.Company)
	for _, s := range entity.IssueStatuses {
		if got[s] != counts[s] {
			t.Errorf("%d issues are counted in %s, want %d", got[s], s, counts[s])
		}
	}
	pages := 0
	for range 300 {
		q := inbox.IssueQuery{Sort: []inbox.IssueSortField{inbox.SortDefault, inbox.SortPriority, inbox.SortUpdated,
			inbox.SortCreated, inbox.SortStatus}[r.IntN(5)], Descending: r.IntN(2) == 0,
			Limit: 1 + r.IntN(60), Offset: r.IntN(3) * 20, Hidden: r.IntN(3) == 0}
		for _, s := range entity.IssueStatuses {
			if r.IntN(2) == 0 {
				q.Statuses = append(q.Statuses, s)
			}
		}
		if r.IntN(4) == 0 {
			q.UpdatedSince = core.TimeOf(d.Now) - core.Time(r.IntN(100_000))
		}
		var all []inbox.Candidate
		for _, i := range entity.IssueTable.All(d.Tx, d.Company) {
			if q.Matches(i) {
				all = append(all, inbox.Candidate{ID: i.ID, Status: i.Status, Sort: i.Sort(), Issue: &i})
			}
		}
		slices.SortFunc(all, q.Compare)
		all = all[min(q.Offset, len(all)):]
		all = all[:min(q.Limit, len(all))]
		if _, ok := q.First(d.Tx, d.Company, q.Limit); ok {
			pages++
		}
		list := inbox.ListIssues(d.Tx, d.Company, q)
		if !slices.EqualFunc(list, all, func(i entity.Issue, c inbox.Candidate) bool { return i.ID == c.ID }) {
			t.Fatalf("%+v: %d issues are listed, want %d, in this order", q, len(list), len(all))
		}
	}
	if pages == 0 {
		t.Error("no page was read in the order of the index")
	}
}
