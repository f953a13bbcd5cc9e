package company

import (
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/ledger"
)

// No work is forgotten. An issue of an agent that is to do, in progress, in review
// or blocked has a path: a run that is queued or at work, somebody or something that it waits
// for, or a recovery action. Where the last run ended without leaving one, the run's
// end makes it (followUp). What is left without one for other reasons (a wake that
// was skipped because a queue was full, a run that somebody cancelled, a blocker that
// was resolved and whose wake came to nothing) is found by the leader, which looks
// for it again and again: the agent is woken once more, and if that changes nothing
// the issue is blocked, with a recovery action that says who decides. One that is
// in review with nobody to review it gets such an action, and stays there.

const (
	// strandedAfter is how long an issue stays unchanged without a path before
	// something is done about it.
	strandedAfter = Time(10 * 60_000)
	// MaxFailureRetries bounds the retries of a run that failed on its issue for a
	// reason of its own, MaxTurnContinuations those that go on where one used all
	// its turns. failureDelay is what the first waits; it doubles each time.
	MaxFailureRetries    = 1
	MaxTurnContinuations = 2
	failureDelay         = Time(30_000)
)

// lasting are the codes of failures that another try would meet again, until a
// person changes something.
var lastingFailures = []string{"configuration_incomplete", "workspace_failed", "adapter_missing", "auth_required", "budget_refused", "adapter_unavailable"}

// continuation is why an agent is woken for an issue that nothing else brings on.
const continuation = "issue_continuation_needed"

// A RecoverIssue asks to do something about an issue that nothing brings on; it is
// the payload of "issue.recover", which the leader sends.
type RecoverIssue struct {
	Issue string `cbor:"1,keyasint"`
}

const KindIssueRecover = "issue.recover"

var strandedKinds = []Kind{
	{Name: KindIssueRecover, From: FromNode, Traits: SeldomWork, Do: ledger.Typed(recoverIssue)},
}

// Stranded returns up to n issues of a company that nothing brings on. It goes
// through the issues that agents have, from where an earlier look ended (nil: the
// beginning), and reads up to reads of them; next is where another goes on, nil at
// the end, and left is how many more it would have read.
func Stranded(tx *ledger.Tx, company string, now Time, from []byte, n, reads int) (out []Issue, next []byte, left int) {
	prefix := ledger.Key("c", company, issuesByAssigneeName, "")
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
			if _, status, _ := strings.Cut(value, "."); IssueStatus(status).rests() {
				next = ledger.PrefixEnd(ledger.Key("c", company, issuesByAssigneeName, value, ""))
				break
			}
			if i, ok := issues.Get(tx, company, id); ok && i.stranded(tx, now) {
				out = append(out, i)
			}
		}
	}
	return out, nil, reads
}

func (i Issue) stranded(tx *ledger.Tx, now Time) bool {
	if i.Assignee == "" || i.UpdatedAt+strandedAfter > now {
		return false
	}
	// A run that ended a moment ago has not changed its issue, and what follows it
	// may be on its way.
	for r := range RunsOfIssue(tx, i.Company, i.ID) {
		if r.FinishedAt+strandedAfter > now {
			return false
		}
		break
	}
	return PathOf(tx, i, now) == ""
}

// recoverIssue wakes the agent of an issue that nothing brings on, and puts the
// issue before the board when it was woken for that before.
func recoverIssue(c *ledger.Context, p RecoverIssue) (any, error) {
	i, ok := issues.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, errNoIssue()
	}
	if !i.stranded(c.Tx, TimeOf(c.Now)) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "issue %s has a run, a person or a timer that moves it on", i.Identifier)
	}
	if i.Status == IssueInReview {
		return nil, openReview(c, i)
	}
	last, ran := Run{}, false
	for r := range RunsOfIssue(c.Tx, i.Company, i.ID) {
		last, ran = r, true
		break
	}
	a, ok := wakeable(c.Tx, i.Company, i.Assignee)
	if ok && !a.gone() && i.Status != IssueBlocked && !(ran && last.Context.WakeReason == continuation) {
		at := ledger.Order(c.Height)
		res, err := wake(c, a, Wake{Agent: a.ID, Source: WakeAutomation, TriggerDetail: "system", Reason: continuation, Issue: i.ID, From: "issue.recover",
			Responsible: i.ResponsibleUser, Wakeup: derivedID("recover-wake", i.ID, at), Run: derivedID("recover-run", i.ID, at)})
		if err != nil {
			return nil, err
		}
		if res.Status != WakeSkipped {
			c.Record(ledger.Change{Action: "issue.continued", EntityType: "issue", EntityID: i.ID,
				Details: jsonObject{}.str("identifier", i.Identifier).str("agentId", a.ID).str("reason", continuation).close()})
			return nil, nil
		}
	}
	kind, body := "stranded_assigned_issue", "Nothing has brought this issue on for some time: its agent has no run for it and none is to come. "
	switch {
	case !ok || a.gone():
		kind, body = "assignee_gone", "The agent that has this issue is no longer there. "
	case i.Status == IssueBlocked:
		kind, body = "blocked_without_reason", "What blocked this issue is resolved, and its agent did not go on with it. "
	}
	blockFor(c, i, last, kind, kind, "Decide what becomes of the issue: reassign it, reopen it, or close it.",
		body+"The issue is blocked until a person decides: reassign it, reopen it, or close it.")
	return nil, nil
}

// reviewByBoard is the kind of a recovery action of an issue that was handed in for
// review to nobody; it lasts as long as the issue is in review.
const reviewByBoard = "review_without_participant"

// openReview puts an issue that was handed in for review to nobody before the
// board, and leaves it where it is.
func openReview(c *ledger.Context, i Issue) error {
	var last Run
	for r := range RunsOfIssue(c.Tx, i.Company, i.ID) {
		last = r
		break
	}
	next := openRecovery(c, i, last, reviewByBoard, "Look at what was handed in: close the issue, or send it back.")
	next.UpdatedAt = TimeOf(c.Now)
	c.Record(ledger.Change{Action: "issue.updated", EntityType: "issue", EntityID: i.ID,
		Details: jsonObject{}.str("status", string(next.Status)).str("identifier", i.Identifier).str("recovery", reviewByBoard).close()})
	storeIssue(c.Tx, i, next)
	return nil
}

// blockFor puts an issue before the board: blocked, with a recovery action of a
// kind that says what is to be done, and a comment of the system that says why.
func blockFor(c *ledger.Context, i Issue, r Run, kind, reason, todo, body string) {
	next := i
	if i.Status != IssueBlocked {
		var err error
		if next, _, err = i.Move(Move{To: IssueBlocked, Routable: true, Now: TimeOf(c.Now)}); err != nil {
			return // somebody moved it in this very command
		}
	}
	next.UpdatedAt = TimeOf(c.Now)
	next.UnblockDescriptor = jsonObject{}.str("owner", "board").str("action", "decide").str("reason", reason).null("runId", r.ID).close()
	next = openRecovery(c, next, r, kind, todo)
	// The command is a node's, so the comment is the system's.
	if commented, _, err := addComment(c, next, CreateComment{ID: derivedID("blocked-for", i.ID, ledger.Order(c.Height)), Issue: i.ID, Body: body}); err == nil {
		next = commented
	}
	c.Record(ledger.Change{Action: "issue.updated", EntityType: "issue", EntityID: i.ID,
		Details: jsonObject{}.str("status", string(next.Status)).str("identifier", i.Identifier).raw("changes", i.Diff(next)).close()})
	storeIssue(c.Tx, i, next)
}

// blockFailed hands an issue to the board on which a run failed that is not tried
// again.
func blockFailed(c *ledger.Context, i Issue, r Run) {
	why := string(r.Error)
	if why == "" {
		why = string(r.ErrorCode)
	}
	body := "The agent's run on this issue ended with " + string(r.Status) + " and is not tried again: " + strings.TrimSuffix(why, ".") + ". " +
		"The issue is blocked until a person decides: mend what is wrong and reopen it, reassign it, or close it."
	blockFor(c, i, r, "run_failed", "run_failed", "Mend what made the run fail and reopen the issue, reassign it, or close it.", body)
}

// tryAgain says how a run that failed on its issue goes on: with a retry after
// some time where that is safe and may help; ok is false when the board decides.
func tryAgain(c *ledger.Context, i Issue, r, next Run, o Outcome) (_ Run, reason string, ok bool) {
	code := string(r.ErrorCode)
	switch {
	case code == "max_turns" && r.Failures < MaxTurnContinuations:
		next.Failures++
		return next, "max_turns_continuation", true
	case code == "max_turns", o.Transient, slices.Contains(lastingFailures, code), r.Failures >= MaxFailureRetries,
		i.OriginKind == "execute": // whoever asked waits for the answer
		return next, "", false
	}
	next.Status = RunScheduledRetry
	next.ScheduledRetryAt, next.ScheduledRetryReason = TimeOf(c.Now)+failureDelay<<r.Failures, "run_failed"
	next.Failures++
	return next, "run_failed", true
}

// follow queues what has to come after r, and returns it: a retry where the
// node was lost, the upstream failed for a moment or the run failed on its issue,
// a follow-up where the issue was left undecided. Each is bounded; past the bound the issue is
// blocked for a person to decide.
func follow(c *ledger.Context, r Run, o Outcome) *Run {
	a, ok := wakeable(c.Tx, r.Company, r.Agent)
	if !ok || a.stopped(c.Tx) != "" {
		return nil
	}
	i, bound := issues.Get(c.Tx, r.Company, r.Context.IssueID)
	if bound && (i.Status.Terminal() || i.Assignee != r.Agent) {
		return nil // nothing is left to do for it
	}
	if bound && onHold(c.Tx, r.Company, i.ID) {
		return nil // its assignee is woken when the hold is released
	}
	next := Run{
		ID: derivedID("after", r.ID), Company: r.Company, Agent: r.Agent, Source: WakeAutomation, TriggerDetail: "system",
		Status: RunQueued, ResponsibleUser: r.ResponsibleUser, RuntimeMode: "legacy", NextEventSeq: 1,
		IssueCommentStatus: "not_applicable", RetryOf: NullText(r.ID), ProcessLossRetryCount: r.ProcessLossRetryCount,
		ContinuationAttempt: r.ContinuationAttempt, Followups: r.Followups, Failures: r.Failures, Context: r.Context, AdapterType: r.AdapterType,
		CreatedAt: TimeOf(c.Now), UpdatedAt: TimeOf(c.Now),
	}
	next.Context.CheckedOut, next.Context.WakeSource = false, string(WakeAutomation)
	reason := ""
	switch {
	case r.Status == RunInterrupted && r.ProcessLossRetryCount+1 < MaxRunAttempts:
		next.ProcessLossRetryCount++
		reason = "process_lost"
	case r.Status == RunFailed && o.Transient && r.ScheduledRetryAttempt < MaxTransientRetries:
		next.Status, next.ScheduledRetryAttempt = RunScheduledRetry, r.ScheduledRetryAttempt+1
		next.ScheduledRetryAt, next.ScheduledRetryReason = max(TimeOf(c.Now)+transientDelay<<r.ScheduledRetryAttempt, o.RetryNotEarly), "transient_failure"
		reason = "transient_failure"
	case r.Status == RunSucceeded && bound && undecided(i, r) && !othersAtWork(c.Tx, r) && !awaitsBoard(c.Tx, i):
		if r.Followups >= MaxFollowups {
			blockUndecided(c, i, r)
			return nil
		}
		next.Followups, next.ContinuationAttempt = r.Followups+1, r.ContinuationAttempt+1
		reason = "missing_disposition"
	case (r.Status == RunFailed || r.Status == RunTimedOut) && bound && undecided(i, r) && !othersAtWork(c.Tx, r) && !awaitsBoard(c.Tx, i):
		var again bool
		if next, reason, again = tryAgain(c, i, r, next, o); !again {
			blockFailed(c, i, r)
			return nil
		}
	default:
		if r.ErrorCode == errNoNode && bound && (i.Status == IssueTodo || i.Status == IssueInProgress) && !othersAtWork(c.Tx, r) {
			blockFailed(c, i, r)
		}
		if r.Status == RunInterrupted && bound && undecided(i, r) {
			blockUndecided(c, i, r)
		}
		return nil
	}
	next.Context.WakeReason = reason
	u := Wakeup{ID: derivedID("after-wakeup", r.ID), Company: r.Company, Agent: r.Agent, Source: WakeAutomation,
		TriggerDetail: "system", Reason: NullText(reason), Status: WakeQueued, ActorType: "system", Run: NullText(next.ID), RequestedAt: next.CreatedAt}
	clock, _ := agentClocks.Get(c.Tx, r.Company, r.Agent)
	keepWakeup(c, u, clock)
	next.WakeupRequest = NullText(u.ID)
	next = enqueue(c, next)
	if reason == "missing_disposition" {
		askAgain(c, i, r, next)
	}
	return &next
}

// othersAtWork reports whether another live run of the agent is about the same
// issue, so that the issue has somebody who will decide.
func othersAtWork(tx *ledger.Tx, r Run) bool {
	return slices.ContainsFunc(LiveRunsOfAgent(tx, r.Company, r.Agent), func(o Run) bool {
		return o.ID != r.ID && o.Context.IssueID == r.Context.IssueID
	})
}

// blockUndecided hands an issue to the board that its agent left undecided more
// often than we start it over: blocked, and a comment that says why.
func blockUndecided(c *ledger.Context, i Issue, r Run) {
	kind, body := "missing_disposition", "The agent's runs on this issue ended without saying what becomes of it, and starting over did not help. "+
		"The issue is blocked until a person decides: reassign it, reopen it, or close it."
	if r.Status == RunInterrupted {
		kind = "process_lost"
		body = "The node that worked on this issue was lost, again after it was started over. " +
			"The issue is blocked until a person decides whether to try once more."
	}
	blockFor(c, i, r, kind, "missing_disposition", "Decide what becomes of the issue: reassign it, reopen it, or close it.", body)
}

// askAgain notes on an issue that next was queued because r left it undecided.
func askAgain(c *ledger.Context, i Issue, r, next Run) {
	to := i
	to.Handoff = &Handoff{Source: r.ID, Corrective: next.ID, Assignee: i.Assignee, Summary: string(r.LivenessReason), At: TimeOf(c.Now)}
	storeIssue(c.Tx, i, to)
	recordLive(c, ledger.Change{Action: "issue.successful_run_handoff_required", EntityType: "issue", EntityID: i.ID,
		Details: jsonObject{}.str("identifier", i.Identifier).str("sourceRunId", r.ID).str("correctiveRunId", next.ID).
			str("handoffReason", "missing_disposition").close()})
}

// careRules are what care adds to the kernel.
var careRules = Rules{
	Kinds: slices.Concat(monitorKinds, watchdogKinds, strandedKinds, recoveryKinds, treeHoldKinds),
	Forget: map[string]func(tx *ledger.Tx, id string, row []byte){
		"issue": func(tx *ledger.Tx, _ string, row []byte) { scheduleMonitor(tx, decodeRow[Issue](row), Issue{}) },
	},
	IssueStored: func(tx *ledger.Tx, was, next Issue) Issue {
		if next.ID != "" {
			next = settleRecovery(tx, next)
		}
		scheduleMonitor(tx, was, next)
		return next
	},
	IssueDeleted: func(c *ledger.Context, i Issue) {
		dropRecoveries(c.Tx, i)
		dropWatchdog(c.Tx, i)
		dropHolds(c.Tx, i)
	},
	AgentDeleted: func(c *ledger.Context, a Agent) { dropWatchdogsOf(c.Tx, a) },
	Held:         treeHeld,
	Follow:       follow,
	RunEnded: func(c *ledger.Context, r Run) {
		settleHold(c, r)
		breakCircuit(c, r)
	},
	Watches: monitors{},
}

// monitors answers what the kernel asks of monitors.
type monitors struct{}

func (monitors) Plan(c *ledger.Context, was, next Issue) (Issue, error) {
	return monitored(c, was, next)
}

func (monitors) Stops(tx *ledger.Tx, i Issue) bool {
	h, held := HeldBy(tx, i)
	return held && h.Release.Strategy != "after_active_runs_finish"
}
