package entity

import (
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// An IssueRef is the short form of an issue in the answer of another.
type IssueRef struct {
	ID           string        `cbor:"1,keyasint" json:"id"`
	Identifier   string        `cbor:"2,keyasint" json:"identifier"`
	Title        string        `cbor:"3,keyasint" json:"title"`
	Status       IssueStatus   `cbor:"4,keyasint" json:"status"`
	Priority     Priority      `cbor:"5,keyasint" json:"priority"`
	Assignee     core.NullText `cbor:"6,keyasint,omitempty" json:"assigneeAgentId"`
	AssigneeUser core.NullText `cbor:"7,keyasint,omitempty" json:"assigneeUserId"`
	// ScheduledRetry is always null here.
	ScheduledRetry *struct{} `cbor:"-" json:"scheduledRetry"`
}

// Blockers returns the issues that i waits for, sorted by ID.
func Blockers(tx *ledger.Tx, i Issue) []Issue {
	out := make([]Issue, 0, len(i.BlockedBy))
	for _, id := range i.BlockedBy {
		if b, ok := IssueTable.Get(tx, i.Company, id); ok {
			out = append(out, b)
		}
	}
	return out
}

// Blocks returns the issues that wait for i, sorted by ID.
func Blocks(tx *ledger.Tx, i Issue) []Issue {
	return slices.Collect(IssuesIn(tx, i.Company, IssuesByBlocker.IDs(tx, i.Company, i.ID, false)))
}

// Unresolved returns the blockers of i that are not done. A cancelled blocker blocks until
// it is removed from the list, because its result will not come.
func Unresolved(tx *ledger.Tx, i Issue) []Issue {
	return slices.DeleteFunc(Blockers(tx, i), func(b Issue) bool { return b.Status == IssueDone })
}

// Attention says whether somebody must act on a blocked issue.
type Attention struct {
	State   string // none, covered, stalled or needs_attention
	Reason  string // "" when State is none
	Waiting []Issue
	Covered int
	Stalled int
}

// AttentionOf returns what the blockers of i need: nothing (none), nothing because each is
// being worked on (covered), or an act of somebody.
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
