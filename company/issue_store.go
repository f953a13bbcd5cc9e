package company

import (
	"slices"

	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// StoreIssue writes next, tells the rooms, and lets runs that wait for it queue as it
// says; the zero old is an issue that did not exist. It returns the row as stored.
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

// dropIssue removes i and what is kept beside it.
func dropIssue(tx *ledger.Tx, i entity.Issue) {
	issueStored(tx, i, entity.Issue{})
	tx.Delete(extrasKey(i.Company, i.ID))
	entity.IssueTable.Delete(tx, i.Company, i.ID)
}
