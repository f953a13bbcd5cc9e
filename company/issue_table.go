package company

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/ledger"
)

// issues holds every issue by ID. Besides the indexes below there are
//
//	c/<company>/issue-status/<status>/<sort>.<issue>   see issueSort; value 1 when it is hidden
//	c/<company>/issue-count                     visible issues by status, see CountIssues
//	c/<company>/issue-assignee/<agent>.<status>/<issue>
//	c/<company>/issue-held/<run>/<issue>        the locks of a run
//	c/<company>/issue-extra/<issue>             see Extras
//	issue-company/<issue>                       company of an issue
//	issue-identifier/<ACM-42>                   "<company>/<issue>"
var (
	issues           = ledger.NewTable[Issue]("issue")
	issuesByAssignee = ledger.NewIndex(issuesByAssigneeName)
	issuesByProject  = ledger.NewIndex("issue-project")
	issuesByGoal     = ledger.NewIndex("issue-goal")
	issuesByParent   = ledger.NewIndex("issue-parent")
	issuesByLabel    = ledger.NewIndex("issue-label")
	issuesByBlocker  = ledger.NewIndex("issue-blocks") // under the blocker: who waits for it
	issuesByRun      = ledger.NewIndex("issue-held")
)

const issuesByAssigneeName = "issue-assignee"

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

func issueStatusKey(i Issue) []byte {
	return ledger.Key("c", i.Company, "issue-status", string(i.Status), i.sort().key()+"."+i.ID)
}

func issueCompanyKey(id string) []byte { return ledger.Key("issue-company", id) }

func identifierKey(identifier string) []byte {
	return ledger.Key("issue-identifier", strings.ToUpper(identifier))
}

// An issueSort is what the status index says of an issue: its place in the order
// of lists (the most urgent first, then the latest change, then the newest), and
// whether it is hidden. Its key is the rank of the priority (1 digit), and in hex
// what is left of 2⁴⁸ ms and of 2⁴⁰ numbers above updatedAt and the number, so that
// a list of the first thousand reads a thousand keys, however many there are.
type issueSort struct {
	rank    byte
	updated Time
	number  uint64
	hidden  bool
}

const (
	issueSortBytes   = 1 + 12 + 10
	mostIssueUpdated = 1<<48 - 1
	mostIssueNumber  = 1<<40 - 1
)

func (i Issue) sort() issueSort {
	return issueSort{byte(i.Priority.Rank()), i.UpdatedAt, i.Number, i.HiddenAt != 0}
}

func (s issueSort) key() string {
	const digits = "0123456789abcdef"
	var b [issueSortBytes]byte
	b[0] = digits[s.rank]
	hex := func(to []byte, n uint64) {
		for k := len(to) - 1; k >= 0; k-- {
			to[k] = digits[n&0xf]
			n >>= 4
		}
	}
	hex(b[1:13], mostIssueUpdated-min(uint64(s.updated), mostIssueUpdated))
	hex(b[13:], mostIssueNumber-min(s.number, mostIssueNumber))
	return string(b[:])
}

// parseIssueSort reads <sort>.<issue> and the value beside it.
func parseIssueSort(k, v []byte) (s issueSort, id string, ok bool) {
	if len(k) <= issueSortBytes || k[issueSortBytes] != '.' {
		return s, "", false
	}
	n := func(b []byte) (n uint64) {
		for _, c := range b {
			switch {
			case c >= '0' && c <= '9':
				n = n<<4 | uint64(c-'0')
			case c >= 'a' && c <= 'f':
				n = n<<4 | uint64(c-'a'+10)
			}
		}
		return n
	}
	s = issueSort{byte(n(k[:1])), Time(mostIssueUpdated - n(k[1:13])), mostIssueNumber - n(k[13:issueSortBytes]), len(v) == 1}
	return s, string(k[issueSortBytes+1:]), true
}

func putIssueStatus(tx *ledger.Tx, i Issue) {
	var v []byte
	if i.HiddenAt != 0 {
		v = []byte{1}
	}
	tx.Set(issueStatusKey(i), v)
}

func issueCountKey(company string) []byte { return ledger.Key("c", company, "issue-count") }

// recount moves one issue from where old was counted to where next is; the zero
// issue is counted nowhere.
func recount(tx *ledger.Tx, old, next Issue) {
	was, is := old.counted(), next.counted()
	if was == is {
		return
	}
	company := cmp.Or(next.Company, old.Company)
	row := make([]byte, 8*len(IssueStatuses))
	if v, ok := tx.Get(issueCountKey(company)); ok {
		copy(row, v)
	}
	add := func(at, n int) {
		if at >= 0 {
			binary.BigEndian.PutUint64(row[8*at:], binary.BigEndian.Uint64(row[8*at:])+uint64(n))
		}
	}
	add(was, -1)
	add(is, 1)
	tx.Set(issueCountKey(company), row)
}

// counted is the number of the status that an issue is counted under, or -1.
func (i Issue) counted() int {
	if i.ID == "" || i.HiddenAt != 0 {
		return -1
	}
	return slices.Index(IssueStatuses, i.Status)
}

// storeIssue writes next and brings every index from old to it; the zero old
// is an issue that did not exist. It returns the row as stored.
func storeIssue(tx *ledger.Tx, old, next Issue) []byte {
	next = issueStored(tx, old, next)
	company, id := next.Company, next.ID
	fresh := old.ID == ""
	if fresh {
		tx.Set(issueCompanyKey(id), []byte(company))
		tx.Set(identifierKey(next.Identifier), []byte(company+"/"+id))
	}
	if fresh || old.Status != next.Status || old.sort() != next.sort() {
		if !fresh {
			tx.Delete(issueStatusKey(old))
		}
		putIssueStatus(tx, next)
	}
	recount(tx, old, next)
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
	out := issues.Put(tx, company, id, next)
	reorderRuns(tx, old, next)
	return out
}

// dropIssue removes the row and every index entry of i.
func dropIssue(tx *ledger.Tx, i Issue) {
	issueStored(tx, i, Issue{})
	tx.Delete(issueCompanyKey(i.ID))
	tx.Delete(identifierKey(i.Identifier))
	tx.Delete(issueStatusKey(i))
	recount(tx, i, Issue{})
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
// They are counted in one row, eight bytes for each of IssueStatuses, big endian.
func CountIssues(tx *ledger.Tx, company string) map[IssueStatus]int {
	n := map[IssueStatus]int{}
	v, _ := tx.Get(issueCountKey(company))
	for at, s := range IssueStatuses {
		if len(v) >= 8*(at+1) {
			if count := int(binary.BigEndian.Uint64(v[8*at:])); count != 0 {
				n[s] = count
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
	IssueFilters

	mentioned map[string]bool // issues in whose comments or documents Text stands
}

// ListIssues returns the issues that q selects, sorted and cut. Without a
// filter that needs rows, only the rows that are returned are read.
func ListIssues(tx *ledger.Tx, company string, q IssueQuery) []Issue {
	limit := min(cmp.Or(q.Limit, DefaultIssueLimit), MaxIssueLimit)
	found, ordered := q.first(tx, company, limit)
	if !ordered {
		found = q.candidates(tx, company)
		slices.SortFunc(found, q.compare)
		found = found[min(q.Offset, len(found)):]
		found = found[:min(limit, len(found))]
	}
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
	q.look(tx, company)
	var ids iter.Seq[string]
	switch {
	case q.Parent != "":
		ids = issuesByParent.IDs(tx, company, q.Parent, false)
	case q.Assignee != "":
		ids = issuesOf(tx, company, q.Assignee, q.Statuses...)
	case q.Label != "":
		ids = issuesByLabel.IDs(tx, company, q.Label, false)
	case q.toucher() != "":
		ids = issuesOfUser(tx, company, q.toucher())
	case q.Agent != "":
		ids = issuesOfAgent(tx, company, q.Agent)
	case q.Project != "":
		ids = issuesByProject.IDs(tx, company, q.Project, false)
	default:
		return q.scan(tx, company)
	}
	var out []candidate
	for i := range issuesIn(tx, company, ids) {
		if q.matches(i) && q.take(tx, i) {
			out = append(out, candidate{i.ID, i.Status, i.sort(), &i})
		}
	}
	return out
}

// scan walks the status index, and reads rows only for filters that need them.
func (q IssueQuery) scan(tx *ledger.Tx, company string) []candidate {
	var out []candidate
	for _, s := range q.statuses() {
		out = slices.AppendSeq(out, q.stream(tx, company, s, ""))
	}
	if !q.needsRows() {
		return out
	}
	kept := out[:0]
	for _, c := range out {
		if i, ok := issues.Get(tx, company, c.id); ok && q.matches(i) && q.take(tx, i) {
			c.issue = &i
			kept = append(kept, c)
		}
	}
	return kept
}

// needsRows reports whether the status index alone can not tell what q selects.
func (q IssueQuery) needsRows() bool {
	return q.Text != "" || q.Goal != "" || q.AssigneeUser != "" || q.Unassigned || q.CreatedAgent != "" || q.Sort == SortTitle || q.IssueFilters.any()
}

func (q IssueQuery) statuses() []IssueStatus {
	return slices.DeleteFunc(slices.Clone(IssueStatuses), func(s IssueStatus) bool { return len(q.Statuses) > 0 && !slices.Contains(q.Statuses, s) })
}

// stream yields what the status index has under a status and the beginning of a
// sort key, in its order, without what q can tell by it not to select.
func (q IssueQuery) stream(tx *ledger.Tx, company string, s IssueStatus, sort string) iter.Seq[candidate] {
	return func(yield func(candidate) bool) {
		table := ledger.Key("c", company, "issue-status", string(s), "")
		for k, v := range tx.Prefix(append(table[:len(table):len(table)], sort...)) {
			at, id, ok := parseIssueSort(k[len(table):], v)
			if !ok || at.hidden && !q.Hidden || at.updated < q.UpdatedSince {
				continue
			}
			if !yield(candidate{id: id, status: s, sort: at}) {
				return
			}
		}
	}
}

// first returns the page that q asks for when the order of the status index is
// its order, reading no more than the page; else false.
func (q IssueQuery) first(tx *ledger.Tx, company string, limit int) (page []candidate, ok bool) {
	if q.needsRows() || q.Parent != "" || q.Assignee != "" || q.Label != "" || q.Project != "" {
		return nil, false
	}
	starts := []string{""}
	switch {
	case (q.Sort == SortDefault || q.Sort == SortPriority) && !q.Descending:
	case q.Sort == SortUpdated && q.Descending:
		// Within a rank the index is in this order.
		starts = starts[:0]
		for rank := range len(Priorities) + 1 {
			starts = append(starts, issueSort{rank: byte(rank)}.key()[:1])
		}
	default:
		return nil, false
	}
	var heads []candidate
	var pull []func() (candidate, bool)
	for _, s := range q.statuses() {
		for _, start := range starts {
			next, stop := iter.Pull(q.stream(tx, company, s, start))
			defer stop()
			if c, ok := next(); ok {
				heads, pull = append(heads, c), append(pull, next)
			}
		}
	}
	for n := 0; n < q.Offset+limit && len(heads) > 0; n++ {
		best := 0
		for k := range heads {
			if q.compare(heads[k], heads[best]) < 0 {
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
		n = cmp.Compare(a.sort.rank, b.sort.rank)
	case SortUpdated:
		n = cmp.Compare(a.sort.updated, b.sort.updated)
	case SortCreated:
		n = cmp.Compare(a.sort.number, b.sort.number)
	case SortStatus:
		n = cmp.Compare(slices.Index(IssueStatuses, a.status), slices.Index(IssueStatuses, b.status))
	case SortTitle:
		n = strings.Compare(strings.ToLower(a.issue.Title), strings.ToLower(b.issue.Title))
	default:
		n = cmp.Compare(a.sort.rank, b.sort.rank)
	}
	if q.Descending {
		n = -n
	}
	// Equal ones: the latest change first, and then the newest issue.
	return cmp.Or(n, cmp.Compare(b.sort.updated, a.sort.updated), cmp.Compare(b.sort.number, a.sort.number))
}
