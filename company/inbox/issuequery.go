package inbox

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// An IssueSortField is the sort key of a list of issues.
type IssueSortField string

const (
	SortDefault  IssueSortField = ""          // priority, then the time of the last change, latest first
	SortPriority IssueSortField = "priority"  // ascending: the most urgent first
	SortUpdated  IssueSortField = "updatedAt" // also lastActivityAt
	SortCreated  IssueSortField = "createdAt" // also issueNumber
	SortTitle    IssueSortField = "title"
	SortStatus   IssueSortField = "status"
)

// An IssueQuery selects issues of a company. Zero fields select everything.
type IssueQuery struct {
	Statuses     []entity.IssueStatus
	Assignee     string // agent
	AssigneeUser string
	Unassigned   bool
	Project      string
	Goal         string
	Parent       string
	Label        string
	CreatedAgent string
	Text         string // in identifier, title, description, comments or documents, ignoring case
	UpdatedSince core.Time
	Hidden       bool // also the hidden ones
	Sort         IssueSortField
	Descending   bool
	Limit        int // 0 is DefaultIssueLimit, at most MaxIssueLimit
	Offset       int
	IssueFilters

	mentioned map[string]bool // issues with Text in their comments or documents
}

// ListIssues returns the page of issues that q selects, sorted. If no filter needs rows, it
// reads only the rows that it returns.
func ListIssues(tx *ledger.Tx, of ledger.CompanyID, q IssueQuery) []entity.Issue {
	limit := min(cmp.Or(q.Limit, entity.DefaultIssueLimit), entity.MaxIssueLimit)
	found, ordered := q.First(tx, of, limit)
	if !ordered {
		found = q.candidates(tx, of)
		slices.SortFunc(found, q.Compare)
		found = found[min(q.Offset, len(found)):]
		found = found[:min(limit, len(found))]
	}
	out := make([]entity.Issue, 0, len(found))
	for _, f := range found {
		if f.Issue != nil {
			out = append(out, *f.Issue)
		} else if i, ok := entity.IssueTable.Get(tx, of, f.ID); ok {
			out = append(out, i)
		}
	}
	return out
}

// CountMatching returns how many issues q selects, ignoring its limit.
func CountMatching(tx *ledger.Tx, company ledger.CompanyID, q IssueQuery) int {
	return len(q.candidates(tx, company))
}

// A candidate is an issue that a query may return. Its row is nil unless a filter needed it.
type candidate struct {
	ID     string
	Status entity.IssueStatus
	Sort   entity.IssueSort
	Issue  *entity.Issue
}

func (q IssueQuery) candidates(tx *ledger.Tx, of ledger.CompanyID) []candidate {
	if q.Text != "" {
		q.mentioned = mentions(tx, of, q.Text)
	}
	q.look(tx, of)
	var ids iter.Seq[string]
	switch {
	case q.Parent != "":
		ids = entity.IssuesByParent.IDs(tx, of, q.Parent, false)
	case q.Assignee != "":
		ids = entity.IssuesOf(tx, of, q.Assignee, q.Statuses...)
	case q.Label != "":
		ids = entity.IssuesByLabel.IDs(tx, of, q.Label, false)
	case q.Toucher() != "":
		ids = issuesOfUser(tx, of, q.Toucher())
	case q.Agent != "":
		ids = issuesOfAgent(tx, of, q.Agent)
	case q.Project != "":
		ids = entity.IssuesByProject.IDs(tx, of, q.Project, false)
	default:
		return q.scan(tx, of)
	}
	var out []candidate
	for i := range entity.IssuesIn(tx, of, ids) {
		if q.Matches(i) && q.take(tx, i) {
			out = append(out, candidate{i.ID, i.Status, i.Sort(), &i})
		}
	}
	return out
}

// scan reads the status index, and rows only for filters that need them.
func (q IssueQuery) scan(tx *ledger.Tx, of ledger.CompanyID) []candidate {
	var out []candidate
	for _, s := range q.statuses() {
		out = slices.AppendSeq(out, q.stream(tx, of, s, ""))
	}
	if !q.needsRows() {
		return out
	}
	kept := out[:0]
	for _, c := range out {
		if i, ok := entity.IssueTable.Get(tx, of, c.ID); ok && q.Matches(i) && q.take(tx, i) {
			c.Issue = &i
			kept = append(kept, c)
		}
	}
	return kept
}

// needsRows reports whether q has filters that the status index alone can not answer.
func (q IssueQuery) needsRows() bool {
	return q.Text != "" || q.Goal != "" || q.AssigneeUser != "" || q.Unassigned || q.CreatedAgent != "" ||
		q.Sort == SortTitle || q.IssueFilters.any()
}

func (q IssueQuery) statuses() []entity.IssueStatus {
	return slices.DeleteFunc(slices.Clone(entity.IssueStatuses),
		func(s entity.IssueStatus) bool { return len(q.Statuses) > 0 && !slices.Contains(q.Statuses, s) })
}

// stream yields the entries of the status index under a status and a prefix of the sort key,
// in order, without those that q excludes by the index alone.
func (q IssueQuery) stream(tx *ledger.Tx, of ledger.CompanyID, s entity.IssueStatus, sort string) iter.Seq[candidate] {
	return func(yield func(candidate) bool) {
		table := ledger.Key("c", string(of), "issue-status", string(s), "")
		for k, v := range tx.Prefix(append(table[:len(table):len(table)], sort...)) {
			at, id, ok := entity.ParseIssueSort(k[len(table):], v)
			if !ok || at.Hidden && !q.Hidden || at.Updated < q.UpdatedSince {
				continue
			}
			if !yield(candidate{ID: id, Status: s, Sort: at}) {
				return
			}
		}
	}
}

// First returns the page of q if the status index has the order of q; it reads no more than
// the page. Otherwise it returns false.
func (q IssueQuery) First(tx *ledger.Tx, of ledger.CompanyID, limit int) (page []candidate, ok bool) {
	if q.needsRows() || q.Parent != "" || q.Assignee != "" || q.Label != "" || q.Project != "" {
		return nil, false
	}
	starts := []string{""}
	switch {
	case (q.Sort == SortDefault || q.Sort == SortPriority) && !q.Descending:
	case q.Sort == SortUpdated && q.Descending:
		// Within one rank, the index is sorted so.
		starts = starts[:0]
		for rank := range len(entity.Priorities) + 1 {
			starts = append(starts, entity.IssueSort{Rank: byte(rank)}.Key()[:1])
		}
	default:
		return nil, false
	}
	var heads []candidate
	var pull []func() (candidate, bool)
	for _, s := range q.statuses() {
		for _, start := range starts {
			next, stop := iter.Pull(q.stream(tx, of, s, start))
			defer stop()
			if c, ok := next(); ok {
				heads, pull = append(heads, c), append(pull, next)
			}
		}
	}
	for n := 0; n < q.Offset+limit && len(heads) > 0; n++ {
		best := 0
		for k := range heads {
			if q.Compare(heads[k], heads[best]) < 0 {
				best = k
			}
		}
		if n >= q.Offset {
			page = append(page, heads[best])
		}
		var more bool
		if heads[best], more = pull[best](); !more {
			heads, pull = slices.Delete(heads, best, best+1), slices.Delete(pull, best, best+1)
		}
	}
	return page, true
}

func (q IssueQuery) Matches(i entity.Issue) bool {
	switch {
	case len(q.Statuses) > 0 && !slices.Contains(q.Statuses, i.Status),
		q.Assignee != "" && i.Assignee != q.Assignee,
		q.AssigneeUser != "" && i.AssigneeUser != q.AssigneeUser,
		q.Unassigned && (i.Assignee != "" || i.AssigneeUser != ""),
		q.Project != "" && i.Project != q.Project,
		q.Goal != "" && i.Goal != q.Goal,
		q.Parent != "" && i.Parent != q.Parent,
		q.Label != "" && !slices.Contains(i.Labels, q.Label),
		q.CreatedAgent != "" && i.CreatedAgent != q.CreatedAgent,
		i.UpdatedAt < q.UpdatedSince,
		i.HiddenAt != 0 && !q.Hidden:
		return false
	}
	return q.Text == "" || entity.ContainsFold(i.Identifier, q.Text) || entity.ContainsFold(i.Title, q.Text) ||
		entity.ContainsFold(i.Description, q.Text) || q.mentioned[i.ID]
}

func (q IssueQuery) Compare(a, b candidate) int {
	var n int
	switch q.Sort {
	case SortPriority:
		n = cmp.Compare(a.Sort.Rank, b.Sort.Rank)
	case SortUpdated:
		n = cmp.Compare(a.Sort.Updated, b.Sort.Updated)
	case SortCreated:
		n = cmp.Compare(a.Sort.Number, b.Sort.Number)
	case SortStatus:
		n = cmp.Compare(slices.Index(entity.IssueStatuses, a.Status), slices.Index(entity.IssueStatuses, b.Status))
	case SortTitle:
		n = strings.Compare(strings.ToLower(a.Issue.Title), strings.ToLower(b.Issue.Title))
	default:
		n = cmp.Compare(a.Sort.Rank, b.Sort.Rank)
	}
	if q.Descending {
		n = -n
	}
	// Ties: the latest change first, then the newest issue.
	return cmp.Or(n, cmp.Compare(b.Sort.Updated, a.Sort.Updated), cmp.Compare(b.Sort.Number, a.Sort.Number))
}
