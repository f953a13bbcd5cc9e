package company

import (
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A comment can carry an order besides its text.
//
// Interrupt, which only the board may give, ends the running run on the issue as a manual
// cancellation does. The assignee stays and is woken with the comment; nothing else
// follows the interrupted run. Without a running run the comment is an ordinary one.
//
// Resume continues the work. A done, cancelled or blocked issue moves to todo, unless the
// update with the comment sets a status; an issue in todo or in_progress keeps its
// status. It is refused while somebody else must act first: in backlog, in review, on
// hold, or blocked by open issues. An agent can resume only where it may change the
// status, so only the board reopens done and cancelled issues. A run that the comment
// joins starts now, even if it waited for a retry.
//
// A repeated clientRequestId returns the first comment and carries no order.

// interrupted is the error of a run that a comment interrupted.
const interrupted = "Interrupted by a comment of the board"

// alreadySaid returns the comment on i that has the same clientRequestId.
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

// ordersOf returns the orders of a comment on i; none for no comment and for a repeated
// one. It refuses actors who may not give the order.
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

// mayResume refuses to resume work that waits for somebody else.
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
			return core.RefuseCode(ledger.Conflict, "issue_blocked", core.Object{}.Str("issueId", i.ID).
				List("unresolvedBlockerIssueIds", ids).Close(),
				"The work can not go on before the issues that block it are done; finish them, or take them from blockedByIssueIds")
		}
	}
	return notHeld(c.Tx, i)
}

// takeUp returns i as a comment on it leaves it: in todo, or unchanged.
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

// atWork returns the running runs on an issue: those of its assignee about it, and the
// run that holds it.
func atWork(tx *ledger.Tx, i entity.Issue) []entity.Run {
	out := slices.DeleteFunc(entity.LiveRunsOnIssue(tx, i),
		func(r entity.Run) bool { return r.Status != entity.RunRunning })
	if r, ok := entity.RunTable.Get(tx, i.Company, i.CheckoutRun); ok && r.Status == entity.RunRunning &&
		!slices.ContainsFunc(out, func(o entity.Run) bool { return o.ID == r.ID }) {
		out = append(out, r)
	}
	return out
}

// stopWork ends the running runs on an issue. It may change the issue's row.
func stopWork(c *ledger.Context, i entity.Issue, why, source, comment string) {
	for _, r := range atWork(c.Tx, i) {
		r = cancelLive(c, r, why, c.Cmd.Actor)
		c.Record(ledger.Change{Action: "heartbeat.cancelled", EntityType: "heartbeat_run", EntityID: r.ID,
			Details: core.Object{}.Str("agentId", r.Agent).Str("issueId", i.ID).Str("source", source).Null("commentId",
				comment).Close()})
	}
}

// withIssue is the error of a run whose issue the board cancelled.
const withIssue = "Cancelled with its issue"

// endWork ends the work on an issue that the board cancels: its running runs, and the
// queued runs that have no other reason. A run that a person asked for, or that will
// report an approval, still starts. i is the issue before the change. The cancellation
// is stored already, so nothing follows these runs.
func endWork(c *ledger.Context, i entity.Issue) {
	stopWork(c, i, withIssue, "issue.cancelled", "")
	for _, r := range entity.LiveRunsOnIssue(c.Tx, i) {
		if r.Status != entity.RunRunning && !r.Manual && r.Context.ApprovalID == "" {
			cancelLive(c, r, withIssue, c.Cmd.Actor)
		}
	}
}
