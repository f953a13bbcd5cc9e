package company

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

func putIssueStatus(tx *ledger.Tx, i entity.Issue) {
	var v []byte
	if i.HiddenAt != 0 {
		v = []byte{1}
	}
	tx.Set(entity.IssueStatusKey(i), v)
}

// recount moves one issue from where old was counted to where next is; the zero
// issue is counted nowhere.
func recount(tx *ledger.Tx, old, next entity.Issue) {
	was, is := old.Counted(), next.Counted()
	if was == is {
		return
	}
	company := cmp.Or(next.Company, old.Company)
	row := make([]byte, 8*len(entity.IssueStatuses))
	if v, ok := tx.Get(entity.IssueCountKey(company)); ok {
		copy(row, v)
	}
	add := func(at, n int) {
		if at >= 0 {
			binary.BigEndian.PutUint64(row[8*at:], binary.BigEndian.Uint64(row[8*at:])+uint64(n))
		}
	}
	add(was, -1)
	add(is, 1)
	tx.Set(entity.IssueCountKey(company), row)
}

// StoreIssue writes next and brings every index from old to it; the zero old
// is an issue that did not exist. It returns the row as stored.
func StoreIssue(tx *ledger.Tx, old, next entity.Issue) []byte {
	next = issueStored(tx, old, next)
	company, id := next.Company, next.ID
	fresh := old.ID == ""
	if fresh {
		tx.Set(entity.IssueCompanyKey(id), []byte(company))
		tx.Set(entity.IdentifierKey(next.Identifier), []byte(company+"/"+id))
	}
	if fresh || old.Status != next.Status || old.Sort() != next.Sort() {
		if !fresh {
			tx.Delete(entity.IssueStatusKey(old))
		}
		putIssueStatus(tx, next)
	}
	recount(tx, old, next)
	core.Reindex(tx, entity.IssuesByAssignee, company, old.Assigned(), next.Assigned(), id)
	core.Reindex(tx, entity.IssuesByProject, company, old.Project, next.Project, id)
	core.Reindex(tx, entity.IssuesByGoal, company, old.Goal, next.Goal, id)
	core.Reindex(tx, entity.IssuesByParent, company, old.Parent, next.Parent, id)
	core.Reindex(tx, entity.IssuesByRun, company, old.CheckoutRun, next.CheckoutRun, id)
	reindexAll(tx, entity.IssuesByLabel, company, old.Labels, next.Labels, id)
	reindexAll(tx, entity.IssuesByBlocker, company, old.BlockedBy, next.BlockedBy, id)
	for _, blocker := range next.BlockedBy {
		if !slices.Contains(old.BlockedBy, blocker) {
			AddExtra(tx, company, blocker, HasWaiting)
		}
	}
	out := entity.IssueTable.Put(tx, company, id, next)
	reorderRuns(tx, old, next)
	return out
}

// dropIssue removes the row and every index entry of i.
func dropIssue(tx *ledger.Tx, i entity.Issue) {
	issueStored(tx, i, entity.Issue{})
	tx.Delete(entity.IssueCompanyKey(i.ID))
	tx.Delete(entity.IdentifierKey(i.Identifier))
	tx.Delete(entity.IssueStatusKey(i))
	recount(tx, i, entity.Issue{})
	core.Reindex(tx, entity.IssuesByAssignee, i.Company, i.Assigned(), "", i.ID)
	core.Reindex(tx, entity.IssuesByProject, i.Company, i.Project, "", i.ID)
	core.Reindex(tx, entity.IssuesByGoal, i.Company, i.Goal, "", i.ID)
	core.Reindex(tx, entity.IssuesByParent, i.Company, i.Parent, "", i.ID)
	core.Reindex(tx, entity.IssuesByRun, i.Company, i.CheckoutRun, "", i.ID)
	reindexAll(tx, entity.IssuesByLabel, i.Company, i.Labels, nil, i.ID)
	reindexAll(tx, entity.IssuesByBlocker, i.Company, i.BlockedBy, nil, i.ID)
	tx.Delete(extrasKey(i.Company, i.ID))
	entity.IssueTable.Delete(tx, i.Company, i.ID)
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
