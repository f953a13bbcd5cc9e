package company

import (
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// What continues an issue.

// PathOf returns in one word what will continue an issue, or "" when nothing will. For
// issues without an agent it is "person" or "nobody".
func PathOf(tx *ledger.Tx, i entity.Issue, now core.Time) string {
	switch {
	case i.Status.Rests():
		return "rest"
	case i.AssigneeUser != "":
		return "person"
	case i.Assignee == "":
		return "nobody"
	case i.Recovery != "":
		return "recovery"
	case i.Status == entity.IssueInReview && i.Execution != nil && i.Execution.Status == "pending":
		return "review"
	case len(i.UnblockDescriptor) > 0 && i.Status == entity.IssueBlocked:
		return "unblock"
	case OnHold(tx, i.Company, i.ID):
		return "hold"
	case AwaitsBoard(tx, i):
		return "board"
	case i.Monitors():
		return "monitor"
	case len(entity.Unresolved(tx, i)) > 0:
		return "blockers"
	}
	a, ok := entity.Wakeable(tx, i.Company, i.Assignee)
	if !ok || a.Gone() {
		return ""
	}
	live := entity.LiveRunsOfAgent(tx, i.Company, i.Assignee)
	if slices.ContainsFunc(live, func(r entity.Run) bool { return r.Context.IssueID == i.ID }) {
		return "run"
	}
	if i.Status == entity.IssueInReview {
		return "" // its agent handed it in, and no reviewer is named
	}
	if a.Stopped(tx) != "" || entity.ProjectStopped(tx, i.Company, i.ID) {
		return "paused"
	}
	p := a.Policy()
	if p.Enabled && p.IntervalSec > 0 && i.Status != entity.IssueBlocked {
		return "timer"
	}
	clock, _ := entity.AgentClocks.Get(tx, i.Company, i.Assignee)
	if clock.Day != now.Std().Format("2006-01-02") {
		clock.Runs = 0
	}
	switch skipReason(tx, a, entity.Wake{Agent: a.ID, Source: entity.WakeAutomation, Issue: i.ID}, clock, live,
		i.ID, now) {
	case "heartbeat.maxDailyRuns.reached", "heartbeat.maxDailyCostCents.reached":
		return "tomorrow"
	}
	return ""
}
