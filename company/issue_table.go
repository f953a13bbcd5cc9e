package company

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/ledger"
)

// issues holds every issue by ID. Besides the indexes below there are
//
//	c/<company>/issue-status/<status>/<issue>   value = sort key, see issueSort
//	c/<company>/issue-assignee/<agent>.<status>/<issue>
//	c/<company>/issue-held/<run>/<issue>        the locks of a run
//	c/<company>/issue-extra/<issue>             see Extras
//	issue-company/<issue>                       company of an issue
//	issue-identifier/<ACM-42>                   "<company>/<issue>"
var (
	issues           = ledger.NewTable[Issue]("issue")
	issuesByAssignee = ledger.NewIndex("issue-assignee")
	issuesByProject  = ledger.NewIndex("issue-project")
	issuesByGoal     = ledger.NewIndex("issue-goal")
	issuesByParent   = ledger.NewIndex("issue-parent")
	issuesByLabel    = ledger.NewIndex("issue-label")
	issuesByBlocker  = ledger.NewIndex("issue-blocks") // under the blocker: who waits for it
	issuesByRun      = ledger.NewIndex("issue-held")
)

// assigned is the value of issuesByAssignee, "" for an issue that no agent has.
func (i Issue) assigned() string {
	if i.Assignee == "" {
		return ""
	}
	return i.Assignee + "." + string(i.Status)
}

// issuesOf yields the IDs of an agent's issues that have one of the statuses,
// which none stands for all of.
func issuesOf(tx *ledger.Tx, company, agent string, statuses ...IssueStatus) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, s := range IssueStatuses {
			if len(statuses) > 0 && !slices.Contains(statuses, s) {
				continue
			}
			for id := range issuesByAssignee.IDs(tx, company, agent+"."+string(s), false) {
				if !yield(id) {
					return
				}
			}
		}
	}
}

func issueStatusKey(company string, s IssueStatus, id string) []byte {
	return ledger.Key("c", company, "issue-status", string(s), id)
}

func issueCompanyKey(id string) []byte { return ledger.Key("issue-company", id) }

func identifierKey(identifier string) []byte {
	return ledger.Key("issue-identifier", strings.ToUpper(identifier))
}

// An issueSort is what the status index keeps of each issue, so that a list is
// sorted and cut before any row is read: one byte of priority rank (bit 7 set
// when the issue is hidden), eight of updatedAt, eight of the number, big endian.
type issueSort [17]byte

func (i Issue) sort() issueSort {
	var s issueSort
	s[0] = byte(i.Priority.Rank())
	if i.HiddenAt != 0 {
		s[0] |= 0x80
	}
	binary.BigEndian.PutUint64(s[1:], uint64(i.UpdatedAt))
	binary.BigEndian.PutUint64(s[9:], i.Number)
	return s
}

func (s issueSort) hidden() bool   { return s[0]&0x80 != 0 }
func (s issueSort) rank() byte     { return s[0] & 0x7f }
func (s issueSort) updated() Time  { return Time(binary.BigEndian.Uint64(s[1:])) }
func (s issueSort) number() uint64 { return binary.BigEndian.Uint64(s[9:]) }

// storeIssue writes next and brings every index from old to it; the zero old
// is an issue that did not exist. It returns the row as stored.
func storeIssue(tx *ledger.Tx, old, next Issue) []byte {
	next = settleRecovery(tx, next)
	settleRoutineIssue(tx, old, next)
	company, id := next.Company, next.ID
	fresh := old.ID == ""
	if fresh {
		tx.Set(issueCompanyKey(id), []byte(company))
		tx.Set(identifierKey(next.Identifier), []byte(company+"/"+id))
	}
	if !fresh && old.Status != next.Status {
		tx.Delete(issueStatusKey(company, old.Status, id))
	}
	if s := next.sort(); fresh || old.Status != next.Status || old.sort() != s {
		tx.Set(issueStatusKey(company, next.Status, id), s[:])
	}
	reindex(tx, issuesByAssignee, company, old.assigned(), next.assigned(), id)
	reindex(tx, issuesByProject, company, old.Project, next.Project, id)
	reindex(tx, issuesByGoal, company, old.Goal, next.Goal, id)
	reindex(tx, issuesByParent, company, old.Parent, next.Parent, id)
	reindex(tx, issuesByRun, company, old.CheckoutRun, next.CheckoutRun, id)
	reindexAll(tx, issuesByLabel, company, old.Labels, next.Labels, id)
	reindexAll(tx, issuesByBlocker, company, old.BlockedBy, next.BlockedBy, id)
	for _, blocker := range next.BlockedBy {
		if !slices.Contains(old.BlockedBy, blocker) {
			addExtra(tx, company, blocker, HasWaiting)
		}
	}
	return issues.Put(tx, company, id, next)
}

// dropIssue removes the row and every index entry of i.
func dropIssue(tx *ledger.Tx, i Issue) {
	settleRoutineIssue(tx, i, Issue{})
	tx.Delete(issueCompanyKey(i.ID))
	tx.Delete(identifierKey(i.Identifier))
	tx.Delete(issueStatusKey(i.Company, i.Status, i.ID))
	reindex(tx, issuesByAssignee, i.Company, i.assigned(), "", i.ID)
	reindex(tx, issuesByProject, i.Company, i.Project, "", i.ID)
	reindex(tx, issuesByGoal, i.Company, i.Goal, "", i.ID)
	reindex(tx, issuesByParent, i.Company, i.Parent, "", i.ID)
	reindex(tx, issuesByRun, i.Company, i.CheckoutRun, "", i.ID)
	reindexAll(tx, issuesByLabel, i.Company, i.Labels, nil, i.ID)
	reindexAll(tx, issuesByBlocker, i.Company, i.BlockedBy, nil, i.ID)
	tx.Delete(extrasKey(i.Company, i.ID))
	issues.Delete(tx, i.Company, i.ID)
}

// reindex moves id between values of x, where "" is not indexed.
func reindex(tx *ledger.Tx, x ledger.Index, company, from, to, id string) {
	if from == to {
		return
	}
	if from != "" {
		x.Remove(tx, company, from, id)
	}
	if to != "" {
		x.Add(tx, company, to, id)
	}
}

func reindexAll(tx *ledger.Tx, x ledger.Index, company string, from, to []string, id string) {
	for _, v := range from {
		if !slices.Contains(to, v) {
			x.Remove(tx, company, v, id)
		}
	}
	for _, v := range to {
		if !slices.Contains(from, v) {
			x.Add(tx, company, v, id)
		}
	}
}

// IssueOf returns the issue with the given ID in company.
func IssueOf(tx *ledger.Tx, company, id string) (Issue, bool) { return issues.Get(tx, company, id) }

// FindIssue returns the issue that ref names in any company, by UUID or by
// identifier such as "ACM-42" (upper or lower case).
func FindIssue(tx *ledger.Tx, ref string) (Issue, bool) {
	if strings.Contains(ref, "/") {
		return Issue{}, false
	}
	if company, ok := tx.Get(issueCompanyKey(ref)); ok {
		return issues.Get(tx, string(company), ref)
	}
	at, ok := tx.Get(identifierKey(ref))
	if !ok {
		return Issue{}, false
	}
	company, id, _ := strings.Cut(string(at), "/")
	return issues.Get(tx, company, id)
}

// ChildrenOf yields the sub-issues of an issue by ID.
func ChildrenOf(tx *ledger.Tx, company, issue string) iter.Seq[Issue] {
	return issuesIn(tx, company, issuesByParent.IDs(tx, company, issue, false))
}

// IssuesHeldBy yields the issues that a run has checked out.
func IssuesHeldBy(tx *ledger.Tx, company, run string) iter.Seq[Issue] {
	return issuesIn(tx, company, issuesByRun.IDs(tx, company, run, false))
}

func issuesIn(tx *ledger.Tx, company string, ids iter.Seq[string]) iter.Seq[Issue] {
	return func(yield func(Issue) bool) {
		for id := range ids {
			if i, ok := issues.Get(tx, company, id); ok && !yield(i) {
				return
			}
		}
	}
}

// Ancestors returns the chain of parents of i, the nearest first.
func Ancestors(tx *ledger.Tx, i Issue) []Issue {
	var out []Issue
	for i.Parent != "" && len(out) < MaxIssueDepth {
		p, ok := issues.Get(tx, i.Company, i.Parent)
		if !ok {
			break
		}
		out = append(out, p)
		i = p
	}
	return out
}

// Descendants returns the IDs of i and everything below it, at most MaxSubtree.
func Descendants(tx *ledger.Tx, company, issue string) []string {
	out := []string{issue}
	for n := 0; n < len(out) && len(out) < MaxSubtree; n++ {
		for id := range issuesByParent.IDs(tx, company, out[n], false) {
			out = append(out, id)
		}
	}
	return out[:min(len(out), MaxSubtree)]
}

// CountIssues returns how many visible issues of company stand in each status.
func CountIssues(tx *ledger.Tx, company string) map[IssueStatus]int {
	n := map[IssueStatus]int{}
	for _, s := range IssueStatuses {
		for _, v := range tx.Prefix(ledger.Key("c", company, "issue-status", string(s), "")) {
			if len(v) == len(issueSort{}) && !issueSort(v).hidden() {
				n[s]++
			}
		}
	}
	return n
}

// An IssueSortField orders a list of issues.
type IssueSortField string

const (
	SortDefault  IssueSortField = ""          // priority, then the latest change first
	SortPriority IssueSortField = "priority"  // the most urgent first when ascending
	SortUpdated  IssueSortField = "updatedAt" // also lastActivityAt
	SortCreated  IssueSortField = "createdAt" // also issueNumber
	SortTitle    IssueSortField = "title"
	SortStatus   IssueSortField = "status"
)

// An IssueQuery selects issues of a company. Zero fields select everything.
type IssueQuery struct {
	Statuses     []IssueStatus
	Assignee     string // agent
	AssigneeUser string
	Unassigned   bool
	Project      string
	Goal         string
	Parent       string
	Label        string
	CreatedAgent string
	Text         string // in identifier, title, description, comments or documents, upper or lower case
	UpdatedSince Time
	Hidden       bool // also the hidden ones
	Sort         IssueSortField
	Descending   bool
	Limit        int // 0 is DefaultIssueLimit, at most MaxIssueLimit
	Offset       int

	mentioned map[string]bool // issues in whose comments or documents Text stands
}

// ListIssues returns the issues that q selects, sorted and cut. Without a
// filter that needs rows, only the rows that are returned are read.
func ListIssues(tx *ledger.Tx, company string, q IssueQuery) []Issue {
	limit := min(cmp.Or(q.Limit, DefaultIssueLimit), MaxIssueLimit)
	found := q.candidates(tx, company)
	slices.SortFunc(found, q.compare)
	found = found[min(q.Offset, len(found)):]
	found = found[:min(limit, len(found))]
	out := make([]Issue, 0, len(found))
	for _, f := range found {
		if f.issue != nil {
			out = append(out, *f.issue)
		} else if i, ok := issues.Get(tx, company, f.id); ok {
			out = append(out, i)
		}
	}
	return out
}

// CountMatching returns how many issues q selects, whatever its limit.
func CountMatching(tx *ledger.Tx, company string, q IssueQuery) int {
	return len(q.candidates(tx, company))
}

// A candidate is an issue that a query may return; its row is nil unless a
// filter needed it.
type candidate struct {
	id     string
	status IssueStatus
	sort   issueSort
	issue  *Issue
}

func (q IssueQuery) candidates(tx *ledger.Tx, company string) []candidate {
	if q.Text != "" {
		q.mentioned = mentions(tx, company, q.Text)
	}
	var ids iter.Seq[string]
	switch {
	case q.Parent != "":
		ids = issuesByParent.IDs(tx, company, q.Parent, false)
	case q.Assignee != "":
		ids = issuesOf(tx, company, q.Assignee, q.Statuses...)
	case q.Label != "":
		ids = issuesByLabel.IDs(tx, company, q.Label, false)
	case q.Project != "":
		ids = issuesByProject.IDs(tx, company, q.Project, false)
	default:
		return q.scan(tx, company)
	}
	var out []candidate
	for i := range issuesIn(tx, company, ids) {
		if q.matches(i) {
			out = append(out, candidate{i.ID, i.Status, i.sort(), &i})
		}
	}
	return out
}

// scan walks the status index, and reads rows only for filters that need them.
func (q IssueQuery) scan(tx *ledger.Tx, company string) []candidate {
	rows := q.Text != "" || q.Goal != "" || q.AssigneeUser != "" || q.Unassigned || q.CreatedAgent != "" || q.Sort == SortTitle
	var out []candidate
	for _, s := range IssueStatuses {
		if len(q.Statuses) > 0 && !slices.Contains(q.Statuses, s) {
			continue
		}
		prefix := ledger.Key("c", company, "issue-status", string(s), "")
		for k, v := range tx.Prefix(prefix) {
			if len(v) != len(issueSort{}) {
				continue
			}
			c := candidate{id: string(bytes.TrimPrefix(k, prefix)), status: s, sort: issueSort(v)}
			if c.sort.hidden() && !q.Hidden || c.sort.updated() < q.UpdatedSince {
				continue
			}
			out = append(out, c)
		}
	}
	if !rows {
		return out
	}
	kept := out[:0]
	for _, c := range out {
		if i, ok := issues.Get(tx, company, c.id); ok && q.matches(i) {
			c.issue = &i
			kept = append(kept, c)
		}
	}
	return kept
}

func (q IssueQuery) matches(i Issue) bool {
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
	return q.Text == "" || containsFold(i.Identifier, q.Text) || containsFold(i.Title, q.Text) || containsFold(i.Description, q.Text) || q.mentioned[i.ID]
}

func containsFold(s, part string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(part))
}

func (q IssueQuery) compare(a, b candidate) int {
	var n int
	switch q.Sort {
	case SortPriority:
		n = cmp.Compare(a.sort.rank(), b.sort.rank())
	case SortUpdated:
		n = cmp.Compare(a.sort.updated(), b.sort.updated())
	case SortCreated:
		n = cmp.Compare(a.sort.number(), b.sort.number())
	case SortStatus:
		n = cmp.Compare(slices.Index(IssueStatuses, a.status), slices.Index(IssueStatuses, b.status))
	case SortTitle:
		n = strings.Compare(strings.ToLower(a.issue.Title), strings.ToLower(b.issue.Title))
	default:
		n = cmp.Compare(a.sort.rank(), b.sort.rank())
	}
	if q.Descending {
		n = -n
	}
	// Equal ones: the latest change first, and then the newest issue.
	return cmp.Or(n, cmp.Compare(b.sort.updated(), a.sort.updated()), cmp.Compare(b.sort.number(), a.sort.number()))
}
