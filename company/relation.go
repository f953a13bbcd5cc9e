package company

import (
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// An IssueRef is the short form in which one issue shows another.
type IssueRef struct {
	ID           string        `cbor:"1,keyasint" json:"id"`
	Identifier   string        `cbor:"2,keyasint" json:"identifier"`
	Title        string        `cbor:"3,keyasint" json:"title"`
	Status       IssueStatus   `cbor:"4,keyasint" json:"status"`
	Priority     Priority      `cbor:"5,keyasint" json:"priority"`
	Assignee     core.NullText `cbor:"6,keyasint,omitempty" json:"assigneeAgentId"`
	AssigneeUser core.NullText `cbor:"7,keyasint,omitempty" json:"assigneeUserId"`
	// ScheduledRetry is when the next attempt at it is due; null here.
	ScheduledRetry *struct{} `cbor:"-" json:"scheduledRetry"`
}

// Ref returns the short form of i.
func (i Issue) Ref() IssueRef {
	return IssueRef{ID: i.ID, Identifier: i.Identifier, Title: i.Title, Status: i.Status, Priority: i.Priority,
		Assignee: core.NullText(i.Assignee), AssigneeUser: core.NullText(i.AssigneeUser)}
}

// Blockers returns the issues that i waits for, in the order of their IDs.
func Blockers(tx *ledger.Tx, i Issue) []Issue {
	out := make([]Issue, 0, len(i.BlockedBy))
	for _, id := range i.BlockedBy {
		if b, ok := IssueTable.Get(tx, i.Company, id); ok {
			out = append(out, b)
		}
	}
	return out
}

// Blocks returns the issues that wait for i, in the order of their IDs.
func Blocks(tx *ledger.Tx, i Issue) []Issue {
	return slices.Collect(IssuesIn(tx, i.Company, issuesByBlocker.IDs(tx, i.Company, i.ID, false)))
}

// Unresolved returns the blockers of i that still block: all that are not done.
// A cancelled blocker blocks until it is taken off the list, because what it
// was to deliver will not come.
func Unresolved(tx *ledger.Tx, i Issue) []Issue {
	return slices.DeleteFunc(Blockers(tx, i), func(b Issue) bool { return b.Status == IssueDone })
}

// refuseBlocked is the 422 that names what still blocks.
func refuseBlocked(unresolved []Issue) error {
	ids := make([]string, len(unresolved))
	list := []byte{'['}
	for n, b := range unresolved {
		ids[n] = b.ID
		if n > 0 {
			list = append(list, ',')
		}
		list = append(list, core.Object{}.Str("issueId", b.ID).Str("identifier", b.Identifier).Str("title", b.Title).Str("reason", "not_done").Close()...)
	}
	detail := core.Object{}.List("unresolvedBlockerIssueIds", ids).Raw("unresolvedBlockers", append(list, ']')).Close()
	return ledger.Refuse(ledger.Unprocessable, detail, "Issue is blocked by unresolved blockers")
}

// checkBlockers refuses blockers for the issue with the given ID that do not
// exist in company, are the issue itself, or would close a circle.
func checkBlockers(tx *ledger.Tx, company, issue string, blockers []string) error {
	if len(blockers) > MaxBlockers {
		return ledger.Refuse(ledger.Unprocessable, nil, "Issue cannot be blocked by more than %d issues", MaxBlockers)
	}
	for _, id := range blockers {
		if id == issue {
			return ledger.Refuse(ledger.Unprocessable, nil, "Issue cannot be blocked by itself")
		}
		if !tx.Has(IssueTable.Key(company, id)) {
			return ledger.Refuse(ledger.Unprocessable, nil, "Blocked-by issues must belong to the same company")
		}
		n := 0
		for range issuesByBlocker.IDs(tx, company, id, false) {
			n++
		}
		if n > MaxBlocked {
			return ledger.Refuse(ledger.Unprocessable, nil, "An issue can block at most %d issues", MaxBlocked)
		}
	}
	// Walk from the blockers along what blocks them; meeting the issue is a circle.
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
		if b, ok := IssueTable.Get(tx, company, id); ok {
			next = append(next, b.BlockedBy...)
		}
	}
	return nil
}

// Attention tells the reader of a blocked issue whether somebody must act.
type Attention struct {
	State   string // none, covered, stalled or needs_attention
	Reason  string // "" when State is none
	Waiting []Issue
	Covered int
	Stalled int
}

// AttentionOf returns what the blockers of i need: nothing (none), nothing now
// because each is being worked on (covered), or somebody's act.
func AttentionOf(tx *ledger.Tx, i Issue) Attention {
	a := Attention{State: "none"}
	if i.Status.Terminal() || len(i.BlockedBy) == 0 && i.Status != IssueBlocked {
		return a
	}
	a.Waiting = Unresolved(tx, i)
	for _, b := range a.Waiting {
		switch {
		case b.Status == IssueInProgress || b.Status == IssueTodo && b.Assignee != "":
			a.Covered++
		case b.Status == IssueInReview:
			a.Stalled++
		}
	}
	switch n := len(a.Waiting); {
	case n == 0 && i.Status != IssueBlocked:
	case n > 0 && a.Covered == n:
		a.State, a.Reason = "covered", "active_dependency"
	case a.Stalled > 0 && a.Covered+a.Stalled == n:
		a.State, a.Reason = "stalled", "stalled_review"
	default:
		a.State, a.Reason = "needs_attention", "attention_required"
	}
	return a
}
