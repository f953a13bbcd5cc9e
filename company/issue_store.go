package company

import (
	"slices"

	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// StoreIssue writes next, calls the hooks of all rooms, and reorders queued runs by the
// new priority. A zero old means that the issue is new. It returns the row as stored.
func StoreIssue(tx *ledger.Tx, old, next entity.Issue) []byte {
	next = issueStored(tx, old, next)
	for _, blocker := range next.BlockedBy {
		if !slices.Contains(old.BlockedBy, blocker) {
			AddExtra(tx, next.Company, blocker, HasWaiting)
		}
	}
	there := &old
	if old.ID == "" {
		there = nil
	}
	out := entity.IssueTable.Replace(tx, next.Company, next.ID, there, next)
	reorderRuns(tx, old, next)
	return out
}

// dropIssue deletes i and the rows beside it.
func dropIssue(tx *ledger.Tx, i entity.Issue) {
	issueStored(tx, i, entity.Issue{})
	tx.Delete(extrasKey(i.Company, i.ID))
	entity.IssueTable.Delete(tx, i.Company, i.ID)
}
