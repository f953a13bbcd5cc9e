package company

import (
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A comment may order something besides what it says.
//
// Interrupt, which only the board may say, ends the run at work on the issue, as
// cancelling it by hand does. The assignee stays who it is and is woken with the
// comment; nothing else follows the run that was ended. Without a run at work the
// comment is one like any other.
//
// Resume says that the work is to go on. An issue that is done, cancelled or blocked
// is to do again, unless the update that the comment comes with says what becomes of
// its status; one that is to do or in progress stays. It is refused for an issue that
// somebody else has to let go first: in backlog, in review, on hold, or blocked by
// issues that are not done. An agent resumes as far as it may change the status, so
// what is done or cancelled is opened again by the board only. A run that the comment
// joins begins now, though it waits to be tried again later.
//
// A comment that was made before, by the same clientRequestId, orders nothing again.

// interrupted is why a run ended that a comment interrupted.
const interrupted = "Interrupted by a comment of the board"

// alreadySaid returns the comment that was made on i with the same clientRequestId.
func alreadySaid(tx *ledger.Tx, p *entity.CreateComment, i entity.Issue) (entity.Comment, bool) {
	if p.ClientRequest == "" {
		return entity.Comment{}, false
	}
	at, ok := tx.Get(entity.CommentRequestKey(i.Company, i.ID, p.ClientRequest))
	if !ok {
		return entity.Comment{}, false
	}
	return entity.Comments.Get(tx, i.Company, string(at))
}

// ordersOf returns what a comment on i orders, nothing for none and for one that was
// made before. It refuses the order to whom it is not for.
func ordersOf(c *ledger.Context, p *entity.CreateComment, i entity.Issue) (resume, interrupt bool, err error) {
	if p == nil {
		return false, false, nil
	}
	if _, ok := alreadySaid(c.Tx, p, i); ok {
		return false, false, nil
	}
	if p.Interrupt && !core.IsBoard(c) {
		return false, false, core.RefuseCode(ledger.Forbidden, "board_required", core.Object{}.Str("issueId", i.ID).Close(),
			"Only the board can interrupt a run; comment without interrupt, and the run that comes next is told of it")
	}
	return p.Resume, p.Interrupt, nil
}

// mayResume refuses to let work on i go on that waits for somebody else.
func mayResume(c *ledger.Context, i entity.Issue) error {
	switch i.Status {
	case entity.IssueBacklog, entity.IssueInReview:
		return core.RefuseCode(ledger.Conflict, "issue_not_resumable", core.StatusDetail("issueId", i.ID, i.Status),
			"The work on an issue in %s does not go on by a comment; comment without resume, or change its status", i.Status)
	case entity.IssueBlocked:
		if left := entity.Unresolved(c.Tx, i); len(left) > 0 {
			ids := make([]string, len(left))
			for n, b := range left {
				ids[n] = b.ID
			}
			return core.RefuseCode(ledger.Conflict, "issue_blocked", core.Object{}.Str("issueId", i.ID).List("unresolvedBlockerIssueIds", ids).Close(),
				"The work can not go on before the issues that block it are done; finish them, or take them from blockedByIssueIds")
		}
	}
	return notHeld(c.Tx, i)
}

// takeUp returns i as a comment on it leaves it: to do again, or as it is.
func takeUp(c *ledger.Context, i entity.Issue, p entity.CreateComment) (entity.Issue, error) {
	if p.Resume {
		if err := mayResume(c, i); err != nil {
			return i, err
		}
	}
	if !i.TakesUp(p.Reopen, p.Resume) {
		return i, nil
	}
	if err := MayUpdate(c, i); err != nil {
		return i, err
	}
	next, override, err := i.Move(entity.Move{To: entity.IssueTodo, Board: !core.IsAgent(c), Now: core.TimeOf(c.Now)})
	if err != nil {
		return i, err
	}
	if err := mayStart(c, i, next); err != nil {
		return i, err
	}
	d := core.Object{}.Str("identifier", i.Identifier).Raw("changes", i.Diff(next))
	if override {
		d = d.Bool("override", true)
	}
	c.Record(ledger.Change{Action: "issue.updated", EntityType: "issue", EntityID: i.ID, Details: d.Close()})
	return next, nil
}

// atWork are the runs at work on an issue: those of its assignee that are about it,
// and the one that holds it.
func atWork(tx *ledger.Tx, i entity.Issue) []entity.Run {
	out := slices.DeleteFunc(entity.LiveRunsOnIssue(tx, i), func(r entity.Run) bool { return r.Status != entity.RunRunning })
	if r, ok := entity.RunTable.Get(tx, i.Company, i.CheckoutRun); ok && r.Status == entity.RunRunning && !slices.ContainsFunc(out, func(o entity.Run) bool { return o.ID == r.ID }) {
		out = append(out, r)
	}
	return out
}

// stopWork ends the runs at work on an issue; its row may have changed then.
func stopWork(c *ledger.Context, i entity.Issue, why, source, comment string) {
	for _, r := range atWork(c.Tx, i) {
		r = cancelLive(c, r, why, c.Cmd.Actor)
		c.Record(ledger.Change{Action: "heartbeat.cancelled", EntityType: "heartbeat_run", EntityID: r.ID,
			Details: core.Object{}.Str("agentId", r.Agent).Str("issueId", i.ID).Str("source", source).Null("commentId", comment).Close()})
	}
}

// withIssue is why a run ended whose issue the board cancelled.
const withIssue = "Cancelled with its issue"

// endWork ends the work on an issue that the board cancels: the runs at work on it,
// and those that wait for nothing but it. A run that a person asked for, or that is
// to hear of an approval, still begins. i is the issue as it was before; that it is
// cancelled is stored, so that nothing follows the runs.
func endWork(c *ledger.Context, i entity.Issue) {
	stopWork(c, i, withIssue, "issue.cancelled", "")
	for _, r := range entity.LiveRunsOnIssue(c.Tx, i) {
		if r.Status != entity.RunRunning && !r.Manual && r.Context.ApprovalID == "" {
			cancelLive(c, r, withIssue, c.Cmd.Actor)
		}
	}
}
