package company

import (
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// refuseBlocked returns the 422 that lists the unresolved blockers.
func refuseBlocked(unresolved []entity.Issue) error {
	ids := make([]string, len(unresolved))
	list := []byte{'['}
	for n, b := range unresolved {
		ids[n] = b.ID
		if n > 0 {
			list = append(list, ',')
		}
		list = append(list, core.Object{}.Str("issueId", b.ID).Str("identifier", b.Identifier).Str("title", b.Title).
			Str("reason", "not_done").Close()...)
	}
	detail := core.Object{}.List("unresolvedBlockerIssueIds", ids).Raw("unresolvedBlockers", append(list, ']')).Close()
	return ledger.Refuse(ledger.Unprocessable, detail, "Issue is blocked by unresolved blockers")
}

// checkBlockers refuses blockers of an issue that do not exist in company, are the issue
// itself, or would close a cycle.
func checkBlockers(tx *ledger.Tx, company ledger.CompanyID, issue string, blockers []string) error {
	if len(blockers) > MaxBlockers {
		return ledger.Refuse(ledger.Unprocessable, nil, "Issue cannot be blocked by more than %d issues", MaxBlockers)
	}
	for _, id := range blockers {
		if id == issue {
			return ledger.Refuse(ledger.Unprocessable, nil, "Issue cannot be blocked by itself")
		}
		if !tx.Has(entity.IssueTable.Key(company, id)) {
			return ledger.Refuse(ledger.Unprocessable, nil, "Blocked-by issues must belong to the same company")
		}
		n := 0
		for range entity.IssuesByBlocker.IDs(tx, company, id, false) {
			n++
		}
		if n > MaxBlocked {
			return ledger.Refuse(ledger.Unprocessable, nil, "An issue can block at most %d issues", MaxBlocked)
		}
	}
	// Walk from the blockers along their own blockers; reaching the issue is a cycle.
	seen := map[string]bool{}
	next := slices.Clone(blockers)
	for len(next) > 0 {
		id := next[0]
		next = next[1:]
		if id == issue {
			return ledger.Refuse(ledger.Unprocessable, nil, "Blocking relations cannot contain cycles")
		}
		if seen[id] {
			continue
		}
		if seen[id] = true; len(seen) > MaxBlockerWalk {
			return ledger.Refuse(ledger.Unprocessable, nil, "Blocking relations are longer than %d issues", MaxBlockerWalk)
		}
		if b, ok := entity.IssueTable.Get(tx, company, id); ok {
			next = append(next, b.BlockedBy...)
		}
	}
	return nil
}
