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

func containsFold(s, part string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(part))
}
