package entity

import (
	"encoding/binary"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// IssueTable holds every issue by ID. Besides the indexes below there are
//
//	c/<company>/issue-status/<status>/<sort>.<issue>   see IssueSort; value 1 when it is hidden
//	c/<company>/issue-count                     visible issues by status, see CountIssues
//	c/<company>/issue-assignee/<agent>.<status>/<issue>
//	c/<company>/issue-held/<run>/<issue>        the locks of a run
//	c/<company>/issue-extra/<issue>             see Extras
//	issue-company/<issue>                       company of an issue
//	issue-identifier/<ACM-42>                   "<company>/<issue>"
var (
	IssueTable = ledger.NewTable[string, Issue]("issue").
			Beside(ledger.Indexed(IssuesByAssignee, func(i *Issue) string { return i.Assigned() })).
			Beside(ledger.Indexed(IssuesByProject, func(i *Issue) string { return i.Project })).
			Beside(ledger.Indexed(IssuesByGoal, func(i *Issue) string { return i.Goal })).
			Beside(ledger.Indexed(IssuesByParent, func(i *Issue) string { return i.Parent })).
			Beside(ledger.Indexed(IssuesByRun, func(i *Issue) string { return i.CheckoutRun })).
			Beside(ledger.IndexedEach(IssuesByLabel, func(i *Issue) []string { return i.Labels })).
			Beside(ledger.IndexedEach(IssuesByBlocker, func(i *Issue) []string { return i.BlockedBy })).
			Beside(keepIssueKeys)
	IssuesByAssignee = ledger.NewIndex[string, string](IssuesByAssigneeName)
	IssuesByProject  = ledger.NewIndex[string, string]("issue-project")
	IssuesByGoal     = ledger.NewIndex[string, string]("issue-goal")
	IssuesByParent   = ledger.NewIndex[string, string]("issue-parent")
	IssuesByLabel    = ledger.NewIndex[string, string]("issue-label")
	IssuesByBlocker  = ledger.NewIndex[string, string]("issue-blocks") // by blocker: the issues that wait for it
	IssuesByRun      = ledger.NewIndex[string, string]("issue-held")
)

// keepIssueKeys maintains the keys that find an issue by its ID alone, its identifier or its
// status, and the counts.
func keepIssueKeys(tx *ledger.Tx, company ledger.CompanyID, id string, old, next *Issue) {
	if next == nil {
		tx.Delete(IssueCompanyKey(id))
		tx.Delete(IdentifierKey(old.Identifier))
		tx.Delete(IssueStatusKey(*old))
		recount(tx, company, old.Counted(), noStatus)
		return
	}
	was := noStatus
	if old == nil {
		tx.Set(IssueCompanyKey(id), []byte(company))
		tx.Set(IdentifierKey(next.Identifier), []byte(string(company)+"/"+id))
	} else {
		was = old.Counted()
	}
	if old == nil || old.Status != next.Status || old.Sort() != next.Sort() {
		if old != nil {
			tx.Delete(IssueStatusKey(*old))
		}
		var hidden []byte
		if next.HiddenAt != 0 {
			hidden = []byte{1}
		}
		tx.Set(IssueStatusKey(*next), hidden)
	}
	recount(tx, company, was, next.Counted())
}

// noStatus is the count of an issue that is not counted.
const noStatus = -1

// recount moves one issue from one status to another in the counts of a company.
func recount(tx *ledger.Tx, company ledger.CompanyID, was, is int) {
	if was == is {
		return
	}
	row := make([]byte, 8*len(IssueStatuses))
	if v, ok := tx.Get(IssueCountKey(company)); ok {
		copy(row, v)
	}
	add := func(at, n int) {
		if at != noStatus {
			binary.BigEndian.PutUint64(row[8*at:], binary.BigEndian.Uint64(row[8*at:])+uint64(n))
		}
	}
	add(was, -1)
	add(is, 1)
	tx.Set(IssueCountKey(company), row)
}

const IssuesByAssigneeName = "issue-assignee"

// IssuesOf yields the IDs of an agent's issues with one of the statuses; none means all.
func IssuesOf(tx *ledger.Tx, company ledger.CompanyID, agent string, statuses ...IssueStatus) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, s := range IssueStatuses {
			if len(statuses) > 0 && !slices.Contains(statuses, s) {
				continue
			}
			for id := range IssuesByAssignee.IDs(tx, company, agent+"."+string(s), false) {
				if !yield(id) {
					return
				}
			}
		}
	}
}

func IssueStatusKey(i Issue) []byte {
	return ledger.Key("c", string(i.Company), "issue-status", string(i.Status), i.Sort().Key()+"."+i.ID)
}

func IssueCompanyKey(id string) []byte { return ledger.Key("issue-company", id) }

func IdentifierKey(identifier string) []byte {
	return ledger.Key("issue-identifier", strings.ToUpper(identifier))
}

// An IssueSort is an issue's entry in the status index: its position in lists (most urgent
// first, then latest change, then newest) and whether it is hidden. The key is the rank of
// the priority (1 digit) followed by 2⁴⁸ ms minus updatedAt and 2⁴⁰ minus the number, both
// in hex. A list of the first thousand reads a thousand keys, however many issues exist.
type IssueSort struct {
	Rank    byte
	Updated core.Time
	Number  uint64
	Hidden  bool
}

const (
	issueSortBytes   = 1 + 12 + 10
	mostIssueUpdated = 1<<48 - 1
	mostIssueNumber  = 1<<40 - 1
)

func (s IssueSort) Key() string {
	const digits = "0123456789abcdef"
	var b [issueSortBytes]byte
	b[0] = digits[s.Rank]
	hex := func(to []byte, n uint64) {
		for k := len(to) - 1; k >= 0; k-- {
			to[k] = digits[n&0xf]
			n >>= 4
		}
	}
	hex(b[1:13], mostIssueUpdated-min(uint64(s.Updated), mostIssueUpdated))
	hex(b[13:], mostIssueNumber-min(s.Number, mostIssueNumber))
	return string(b[:])
}

// ParseIssueSort reads <sort>.<issue> and the value beside it.
func ParseIssueSort(k, v []byte) (s IssueSort, id string, ok bool) {
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
	s = IssueSort{byte(n(k[:1])), core.Time(mostIssueUpdated - n(k[1:13])), mostIssueNumber - n(k[13:issueSortBytes]),
		len(v) == 1}
	return s, string(k[issueSortBytes+1:]), true
}

func IssueCountKey(company ledger.CompanyID) []byte {
	return ledger.Key("c", string(company), "issue-count")
}

// IssueOf returns the issue with the given ID in company.
func IssueOf(tx *ledger.Tx, company ledger.CompanyID, id string) (Issue, bool) {
	return IssueTable.Get(tx, company, id)
}

// FindIssue returns the issue with a UUID or an identifier such as "ACM-42" (in any case),
// in any company.
func FindIssue(tx *ledger.Tx, ref string) (Issue, bool) {
	if strings.Contains(ref, "/") {
		return Issue{}, false
	}
	if company, ok := tx.Get(IssueCompanyKey(ref)); ok {
		return IssueTable.Get(tx, ledger.CompanyID(company), ref)
	}
	at, ok := tx.Get(IdentifierKey(ref))
	if !ok {
		return Issue{}, false
	}
	company, id, _ := strings.Cut(string(at), "/")
	return IssueTable.Get(tx, ledger.CompanyID(company), id)
}

// ChildrenOf yields the sub-issues of an issue by ID.
func ChildrenOf(tx *ledger.Tx, company ledger.CompanyID, issue string) iter.Seq[Issue] {
	return IssuesIn(tx, company, IssuesByParent.IDs(tx, company, issue, false))
}

// IssuesHeldBy yields the issues that a run has checked out.
func IssuesHeldBy(tx *ledger.Tx, company ledger.CompanyID, run string) iter.Seq[Issue] {
	return IssuesIn(tx, company, IssuesByRun.IDs(tx, company, run, false))
}

func IssuesIn(tx *ledger.Tx, company ledger.CompanyID, ids iter.Seq[string]) iter.Seq[Issue] {
	return func(yield func(Issue) bool) {
		for id := range ids {
			if i, ok := IssueTable.Get(tx, company, id); ok && !yield(i) {
				return
			}
		}
	}
}

// Ancestors returns the parents of i, the nearest first.
func Ancestors(tx *ledger.Tx, i Issue) []Issue {
	var out []Issue
	for i.Parent != "" && len(out) < MaxIssueDepth {
		p, ok := IssueTable.Get(tx, i.Company, i.Parent)
		if !ok {
			break
		}
		out = append(out, p)
		i = p
	}
	return out
}

// Descendants returns the IDs of an issue and everything below it, at most MaxSubtree.
func Descendants(tx *ledger.Tx, company ledger.CompanyID, issue string) []string {
	out := []string{issue}
	for n := 0; n < len(out) && len(out) < MaxSubtree; n++ {
		for id := range IssuesByParent.IDs(tx, company, out[n], false) {
			out = append(out, id)
		}
	}
	return out[:min(len(out), MaxSubtree)]
}

// CountIssues returns the number of visible issues of company by status. One row holds the
// counts, eight bytes big endian for each of IssueStatuses.
func CountIssues(tx *ledger.Tx, company ledger.CompanyID) map[IssueStatus]int {
	n := map[IssueStatus]int{}
	v, _ := tx.Get(IssueCountKey(company))
	for at, s := range IssueStatuses {
		if len(v) >= 8*(at+1) {
			if count := int(binary.BigEndian.Uint64(v[8*at:])); count != 0 {
				n[s] = count
			}
		}
	}
	return n
}

func ContainsFold(s, part string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(part))
}

// An IssueResult is the answer of issue.create and issue.update: the issue and what its
// HTTP answer shows besides.
type IssueResult struct {
	Issue Issue `cbor:"1,keyasint"`
	// why an existing issue is returned: "recent_open_title" or "idempotency_key"
	Duplicate string     `cbor:"2,keyasint,omitempty"`
	Labels    []Label    `cbor:"3,keyasint,omitempty"`
	BlockedBy []IssueRef `cbor:"4,keyasint,omitempty"`
	Blocks    []IssueRef `cbor:"5,keyasint,omitempty"`
	// Changes is what an update changed, as JSON, and Comment the comment that it added.
	Changes json.RawMessage `cbor:"6,keyasint,omitempty"`
	Comment *Comment        `cbor:"7,keyasint,omitempty"`
}
