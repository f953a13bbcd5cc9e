// Package care detects and handles work that is stuck: holds of trees, monitors, watchdogs,
// stranded issues, fruitless runs, and what follows a run.
package care

import (
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// No work is forgotten. An issue of an agent in todo, in_progress, in_review or blocked has a
// path: a queued or running run, something or somebody that it waits for, or a recovery
// action. If a run ends without leaving a path, the end creates one (follow). A path can also
// be missing for other reasons: a wake was skipped because a queue was full, a person
// cancelled a run, or the wake after a resolved blocker had no effect. The leader searches for
// such issues and wakes the agent once more. If that changes nothing, it blocks the issue with
// a recovery action that says who decides. An issue in review without a reviewer gets such an
// action and stays in review.

const (
	// strandedAfter is how long an issue without a path stays unchanged before it is recovered.
	strandedAfter = core.Time(10 * 60_000)
	// MaxFailureRetries bounds the retries of a run that failed on its issue for a reason of its
	// own, MaxTurnContinuations those of a run that used all its turns. failureDelay is the wait
	// before the first; it doubles each time.
	MaxFailureRetries    = 1
	MaxTurnContinuations = 2
	failureDelay         = core.Time(30_000)
)

// lastingFailures are the error codes that another try would meet again until a person changes
// something.
var lastingFailures = []string{"configuration_incomplete", "workspace_failed", "adapter_missing", "auth_required",
	"budget_refused", "adapter_unavailable"}

// continuation is the wake reason for an issue without a path.
const continuation = "issue_continuation_needed"

// A RecoverIssue is the payload of "issue.recover", by which the leader recovers an issue
// without a path.
type RecoverIssue struct {
	Issue string `cbor:"1,keyasint"`
}

const KindIssueRecover = "issue.recover"

var strandedKinds = []company.Kind{
	{Name: KindIssueRecover, From: company.FromNode, Traits: company.SeldomWork, Weight: company.Weights.ByNodes,
		Do: ledger.Typed(recoverIssue)},
}

// Stranded returns up to n issues of a company without a path. It reads up to reads issues of
// agents, starting at from (nil: the beginning). next is where the search continues, nil at
// the end, and left is how many more it would have read.
func Stranded(tx *ledger.Tx, of ledger.CompanyID, now core.Time, from []byte, n, reads int) (out []entity.Issue,
	next []byte, left int) {
	prefix := ledger.Key("c", string(of), entity.IssuesByAssigneeName, "")
	next = from
	if next == nil {
		next = prefix
	}
	for next != nil {
		at := next
		next = nil
		for k := range tx.Scan(at, ledger.PrefixEnd(prefix), false) {
			if reads--; reads < 0 || len(out) == n {
				return out, slices.Clone(k), max(reads, 0)
			}
			value, id, _ := strings.Cut(string(k[len(prefix):]), "/")
			if _, status, _ := strings.Cut(value, "."); entity.IssueStatus(status).Rests() {
				next = ledger.PrefixEnd(ledger.Key("c", string(of), entity.IssuesByAssigneeName, value, ""))
				break
			}
			if i, ok := entity.IssueTable.Get(tx, of, id); ok && stranded(i, tx, now) {
				out = append(out, i)
			}
		}
	}
	return out, nil, reads
}

func stranded(i entity.Issue, tx *ledger.Tx, now core.Time) bool {
	if i.Assignee == "" || i.UpdatedAt+strandedAfter > now {
		return false
	}
	// A run that ended a moment ago may not have changed its issue yet, and its follow-up may be
	// on its way.
	for r := range entity.RunsOfIssue(tx, i.Company, i.ID) {
		if r.FinishedAt+strandedAfter > now {
			return false
		}
		break
	}
	return company.PathOf(tx, i, now) == ""
}

// recoverIssue wakes the agent of an issue without a path. If it was woken for that before,
// the issue goes to the board.
func recoverIssue(c *ledger.Context, p RecoverIssue) (any, error) {
	i, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, company.ErrNoIssue()
	}
	if !stranded(i, c.Tx, core.TimeOf(c.Now)) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "issue %s has a run, a person or a timer that moves it on",
			i.Identifier)
	}
	if i.Status == entity.IssueInReview {
		openReview(c, i)
		return nil, nil
	}
	last, ran := entity.Run{}, false
	for r := range entity.RunsOfIssue(c.Tx, i.Company, i.ID) {
		last, ran = r, true
		break
	}
	a, ok := entity.Wakeable(c.Tx, i.Company, i.Assignee)
	if ok && !a.Gone() && i.Status != entity.IssueBlocked && !(ran && last.Context.WakeReason == continuation) {
		at := ledger.Order(c.Height)
		res, err := company.WakeAgent(c, a, entity.Wake{Agent: a.ID, Source: entity.WakeAutomation, TriggerDetail: "system",
			Reason: continuation, Issue: i.ID, From: "issue.recover",
			Responsible: i.ResponsibleUser, Wakeup: core.DerivedID("recover-wake", i.ID, at),
			Run: core.DerivedID("recover-run", i.ID, at)})
		if err != nil {
			return nil, err
		}
		if res.Status != entity.WakeSkipped {
			c.Record(ledger.Change{Action: "issue.continued", EntityType: "issue", EntityID: i.ID,
				Details: core.Object{}.Str("identifier", i.Identifier).Str("agentId", a.ID).Str("reason", continuation).Close()})
			return nil, nil
		}
	}
	kind, body := "stranded_assigned_issue",
		"Nothing has brought this issue on for some time: its agent has no run for it and none is to come. "
	switch {
	case !ok || a.Gone():
		kind, body = "assignee_gone", "The agent that has this issue is no longer there. "
	case i.Status == entity.IssueBlocked:
		kind, body = "blocked_without_reason", "What blocked this issue is resolved, and its agent did not go on with it. "
	}
	blockFor(c, i, last, kind, kind, "Decide what becomes of the issue: reassign it, reopen it, or close it.",
		body+"The issue is blocked until a person decides: reassign it, reopen it, or close it.")
	return nil, nil
}

// reviewByBoard is the recovery kind of an issue in review without a reviewer; it lasts while
// the issue is in review.
const reviewByBoard = "review_without_participant"

// openReview asks the board to review an issue without a reviewer, and keeps its status.
func openReview(c *ledger.Context, i entity.Issue) {
	var last entity.Run
	for r := range entity.RunsOfIssue(c.Tx, i.Company, i.ID) {
		last = r
		break
	}
	next := openRecovery(c, i, last, reviewByBoard, "Look at what was handed in: close the issue, or send it back.")
	next.UpdatedAt = core.TimeOf(c.Now)
	c.Record(ledger.Change{Action: "issue.updated", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("status", string(next.Status)).Str("identifier", i.Identifier).
			Str("recovery", reviewByBoard).Close()})
	company.StoreIssue(c.Tx, i, next)
}

// blockFor hands an issue to the board: blocked, with a recovery action of the given kind and
// a system comment with the reason.
func blockFor(c *ledger.Context, i entity.Issue, r entity.Run, kind, reason, todo, body string) {
	next := i
	if i.Status != entity.IssueBlocked {
		var err error
		if next, _, err = i.Move(entity.Move{To: entity.IssueBlocked, Routable: true, Now: core.TimeOf(c.Now)}); err != nil {
			return // this command moved it already
		}
	}
	next.UpdatedAt = core.TimeOf(c.Now)
	next.UnblockDescriptor = core.Object{}.Str("owner", "board").Str("action", "decide").Str("reason", reason).
		Null("runId", r.ID).Close()
	next = openRecovery(c, next, r, kind, todo)
	// A node gives the command, so the comment is the system's.
	if commented, _, err := company.AddComment(c, next, entity.CreateComment{ID: core.DerivedID("blocked-for", i.ID,
		ledger.Order(c.Height)), Issue: i.ID, Body: body}); err == nil {
		next = commented
	}
	c.Record(ledger.Change{Action: "issue.updated", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("status", string(next.Status)).Str("identifier", i.Identifier).
			Raw("changes", i.Diff(next)).Close()})
	company.StoreIssue(c.Tx, i, next)
}

// blockFailed hands an issue to the board after a failed run that is not retried.
func blockFailed(c *ledger.Context, i entity.Issue, r entity.Run) {
	why := string(r.Error)
	if why == "" {
		why = string(r.ErrorCode)
	}
	body := "The agent's run on this issue ended with " + string(r.Status) + " and is not tried again: " +
		strings.TrimSuffix(why, ".") + ". " +
		"The issue is blocked until a person decides: mend what is wrong and reopen it, reassign it, or close it."
	blockFor(c, i, r, "run_failed", "run_failed",
		"Mend what made the run fail and reopen the issue, reassign it, or close it.", body)
}

// tryAgain returns the retry of a run that failed on its issue, where a retry is safe and may
// help; ok is false when the board decides.
func tryAgain(c *ledger.Context, i entity.Issue, r, next entity.Run, o company.Outcome) (_ entity.Run,
	reason string, ok bool) {
	code := string(r.ErrorCode)
	switch {
	case code == "max_turns" && r.Failures < MaxTurnContinuations:
		next.Failures++
		return next, "max_turns_continuation", true
	case code == "max_turns", o.Transient, slices.Contains(lastingFailures, code), r.Failures >= MaxFailureRetries,
		i.OriginKind == "execute": // the caller waits for the answer
		return next, "", false
	}
	next.Status = entity.RunScheduledRetry
	next.ScheduledRetryAt, next.ScheduledRetryReason = core.TimeOf(c.Now)+failureDelay<<r.Failures, "run_failed"
	next.Failures++
	return next, "run_failed", true
}

// follow queues and returns the run that comes after r: a retry if the node was lost, the
// upstream failed for a moment or the run failed on its issue; a follow-up if the issue was
// left without a decision. Each is bounded; past the bound the issue is blocked for a person.
func follow(c *ledger.Context, r entity.Run, o company.Outcome) *entity.Run {
	a, ok := entity.Wakeable(c.Tx, r.Company, r.Agent)
	if !ok || a.Stopped(c.Tx) != "" {
		return nil
	}
	i, bound := entity.IssueTable.Get(c.Tx, r.Company, r.Context.IssueID)
	if bound && (i.Status.Terminal() || i.Assignee != r.Agent) {
		return nil // its issue needs nothing more
	}
	if bound && company.OnHold(c.Tx, r.Company, i.ID) {
		return nil // releasing the hold wakes the assignee
	}
	next := entity.Run{
		ID: core.DerivedID("after", r.ID), Company: r.Company, Agent: r.Agent, Source: entity.WakeAutomation,
		TriggerDetail: "system",
		Status:        entity.RunQueued, ResponsibleUser: r.ResponsibleUser, RuntimeMode: "legacy", NextEventSeq: 1,
		IssueCommentStatus: "not_applicable", RetryOf: core.NullText(r.ID), ProcessLossRetryCount: r.ProcessLossRetryCount,
		ContinuationAttempt: r.ContinuationAttempt, Followups: r.Followups, Failures: r.Failures, Context: r.Context,
		AdapterType: r.AdapterType,
		CreatedAt:   core.TimeOf(c.Now), UpdatedAt: core.TimeOf(c.Now),
	}
	next.Context.CheckedOut, next.Context.WakeSource = false, string(entity.WakeAutomation)
	reason := ""
	switch {
	case r.Status == entity.RunInterrupted && r.ProcessLossRetryCount+1 < entity.MaxRunAttempts:
		next.ProcessLossRetryCount++
		reason = "process_lost"
	case r.Status == entity.RunFailed && o.Transient && r.ScheduledRetryAttempt < entity.MaxTransientRetries:
		next.Status, next.ScheduledRetryAttempt = entity.RunScheduledRetry, r.ScheduledRetryAttempt+1
		next.ScheduledRetryAt, next.ScheduledRetryReason = max(core.TimeOf(c.Now)+
			entity.TransientDelay<<r.ScheduledRetryAttempt, o.RetryNotEarly), "transient_failure"
		reason = "transient_failure"
	case r.Status == entity.RunSucceeded && bound && entity.Undecided(i, r) && !othersAtWork(c.Tx, r) &&
		!company.AwaitsBoard(c.Tx, i):
		if r.Followups >= entity.MaxFollowups {
			blockUndecided(c, i, r)
			return nil
		}
		next.Followups, next.ContinuationAttempt = r.Followups+1, r.ContinuationAttempt+1
		reason = "missing_disposition"
	case (r.Status == entity.RunFailed || r.Status == entity.RunTimedOut) && bound && entity.Undecided(i, r) &&
		!othersAtWork(c.Tx, r) && !company.AwaitsBoard(c.Tx, i):
		var again bool
		if next, reason, again = tryAgain(c, i, r, next, o); !again {
			blockFailed(c, i, r)
			return nil
		}
	default:
		if r.ErrorCode == company.ErrNoNode && bound && (i.Status == entity.IssueTodo ||
			i.Status == entity.IssueInProgress) && !othersAtWork(c.Tx, r) {
			blockFailed(c, i, r)
		}
		if r.Status == entity.RunInterrupted && bound && entity.Undecided(i, r) {
			blockUndecided(c, i, r)
		}
		return nil
	}
	next.Context.WakeReason = reason
	u := entity.Wakeup{ID: core.DerivedID("after-wakeup", r.ID), Company: r.Company, Agent: r.Agent,
		Source:        entity.WakeAutomation,
		TriggerDetail: "system", Reason: core.NullText(reason), Status: entity.WakeQueued, ActorType: "system",
		Run: core.NullText(next.ID), RequestedAt: next.CreatedAt}
	clock, _ := entity.AgentClocks.Get(c.Tx, r.Company, r.Agent)
	company.KeepWakeup(c, u, clock)
	next.WakeupRequest = core.NullText(u.ID)
	next = company.Enqueue(c, next)
	if reason == "missing_disposition" {
		askAgain(c, i, r, next)
	}
	return &next
}

// othersAtWork reports whether another live run of the agent is about the same issue, so that
// it will decide.
func othersAtWork(tx *ledger.Tx, r entity.Run) bool {
	return entity.AnyLiveRun(tx, r.Company, r.Agent, func(o entity.Run) bool {
		return o.ID != r.ID && o.Context.IssueID == r.Context.IssueID
	})
}

// blockUndecided hands an issue to the board that its agent left without a decision too often:
// blocked, with a comment that says why.
func blockUndecided(c *ledger.Context, i entity.Issue, r entity.Run) {
	kind, body := "missing_disposition",
		"The agent's runs on this issue ended well and left it undecided, and starting over did not help. "+
			"Before its run ends, the agent must set the issue's status to done, in_review or blocked; what it did is in the "+
			"log of its last run: selvage run log "+r.ID+". "+
			"The issue is blocked until a person decides: reassign it, reopen it, or close it."
	if r.Status == entity.RunInterrupted {
		kind = "process_lost"
		body = "The node that worked on this issue was lost, again after it was started over. " +
			"The issue is blocked until a person decides whether to try once more."
	}
	blockFor(c, i, r, kind, "missing_disposition",
		"Decide what becomes of the issue: reassign it, reopen it, or close it.", body)
}

// askAgain stores in an issue that next was queued because r made no decision.
func askAgain(c *ledger.Context, i entity.Issue, r, next entity.Run) {
	to := i
	to.Handoff = &entity.Handoff{Source: r.ID, Corrective: next.ID, Assignee: i.Assignee,
		Summary: string(r.LivenessReason), At: core.TimeOf(c.Now)}
	company.StoreIssue(c.Tx, i, to)
	company.RecordLive(c, ledger.Change{Action: "issue.successful_run_handoff_required", EntityType: "issue",
		EntityID: i.ID,
		Details: core.Object{}.Str("identifier", i.Identifier).Str("sourceRunId", r.ID).Str("correctiveRunId", next.ID).
			Str("handoffReason", "missing_disposition").Close()})
}

// Rules are what care adds to the kernel.
var Rules = company.Rules{
	Kinds: slices.Concat(monitorKinds, watchdogKinds, strandedKinds, recoveryKinds, treeHoldKinds),
	Forget: map[string]func(tx *ledger.Tx, id string, row []byte){
		"issue": func(tx *ledger.Tx, _ string, row []byte) {
			scheduleMonitor(tx, core.DecodeRow[entity.Issue](row), entity.Issue{})
		},
	},
	IssueStored: func(tx *ledger.Tx, was, next entity.Issue) entity.Issue {
		if next.ID != "" {
			next = settleRecovery(tx, next)
		}
		scheduleMonitor(tx, was, next)
		return next
	},
	IssueDeleted: func(c *ledger.Context, i entity.Issue) {
		dropRecoveries(c.Tx, i)
		dropWatchdog(c.Tx, i)
		dropHolds(c.Tx, i)
	},
	AgentDeleted: func(c *ledger.Context, a entity.Agent) { dropWatchdogsOf(c.Tx, a) },
	Held:         treeHeld,
	Follow:       follow,
	RunEnded: func(c *ledger.Context, r entity.Run) {
		settleHold(c, r)
		breakCircuit(c, r)
	},
	Watches: monitors{},
}

// monitors implements the kernel's port for monitors.
type monitors struct{}

func (monitors) Plan(c *ledger.Context, was, next entity.Issue) (entity.Issue, error) {
	return monitored(c, was, next)
}

func (monitors) Stops(tx *ledger.Tx, i entity.Issue) bool {
	h, held := HeldBy(tx, i)
	return held && h.Release.Strategy != "after_active_runs_finish"
}
