package company

import (
	"cmp"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// FinishRun closes a run in one step: its outcome, its log's hash, its locks, its agent's
// status and what follows. For a run that has already ended it only stores that no child
// process is left.
func FinishRun(c *ledger.Context, p Finish) (any, error) {
	r, err := OfNode(c, p.Run)
	if err != nil {
		return nil, err
	}
	if !r.Owed {
		return nil, ledger.Refuse(ledger.Conflict, r.Standing(), "run %s is over", r.ID)
	}
	if len(p.Outcome.Result) > MaxResult {
		return nil, ledger.Refuse(ledger.TooLarge, nil, "result of %d bytes exceeds %d", len(p.Outcome.Result), MaxResult)
	}
	if d := p.Decisions; d != nil && (!core.IsHash(d.SHA256) || d.Bytes < 0) {
		return nil, ledger.Refuse(ledger.Invalid, nil, "decisions: want a size and a SHA-256 in hex")
	}
	r.Decisions = p.Decisions
	r.LogBytes, r.LogSHA256 = p.LogBytes, core.NullText(p.LogSHA256)
	dueLog(c, r)
	heard := r.LastOutputSeq
	r = r.Process(p.PID, p.Group, core.TimeOf(c.Now)).Output(p.Output).Placed(p.Place)
	if r.Status.Live() {
		if r.LastOutputSeq > heard {
			recordProgress(c, r)
		}
		// Events that the adapter reported after the end come after it.
		before, after := p.Events, []ReportEvent(nil)
		if n := slices.IndexFunc(p.Events, func(e ReportEvent) bool { return e.Type == "lifecycle" }); n >= 0 {
			before, after = p.Events[:n], p.Events[n:]
		}
		r = addEvents(c, r, before)
		if r.Phase == entity.PhaseCheckQueue {
			r = r.Reached(entity.PhaseExecute, r.StartedAt)
		}
		r = EndRun(c, r.Reached(entity.PhaseSleep, core.TimeOf(c.Now)).Reached(entity.PhaseReport,
			core.TimeOf(c.Now)), p.Outcome)
		r = addEvents(c, r, after)
	} else {
		r.UpdatedAt = core.TimeOf(c.Now)
	}
	r = handBack(c, r)
	if err := c.Try(func(c *ledger.Context) error { return Ask.Book(c, r, p.Outcome.Cost) }); err != nil {
		r = addEvent(c, r, "error", "warn", "What the run cost was not booked: "+err.Error(), nil)
		entity.RunTable.Put(c.Tx, r.Company, r.ID, r)
	}
	return r, nil
}

// handBack stores that nothing of r is left on its node, and releases what was held until
// then.
func handBack(c *ledger.Context, r entity.Run) entity.Run {
	releaseLocksOfRun(c, r.Company, r.ID)
	c.Delete(entity.SessionKey(r.Session, r.ID))
	r.Owed, r.ControlDeadlineAt = false, 0
	entity.RunTable.Put(c.Tx, r.Company, r.ID, r)
	return r
}

// EndRun gives a live run its outcome and releases everything that depended on the run.
func EndRun(c *ledger.Context, r entity.Run, o Outcome) entity.Run {
	now := core.TimeOf(c.Now)
	started := r.Status == entity.RunRunning
	if r.Session == 0 {
		c.Delete(entity.QueueKey(r))
	}
	entity.RunsLive.Remove(c.Tx, r.Company, r.Agent, r.ID) // now, because hooks read it before the row is stored
	callbacks.Delete(c.Tx, r.Company, r.ID)
	r.Status, r.FinishedAt, r.UpdatedAt, r.Closed = o.Status, now, now, c.Height
	r.ExitCode, r.Signal, r.Error, r.ErrorCode = o.ExitCode, core.NullText(o.Signal), core.NullText(o.Error),
		core.NullText(o.ErrorCode)
	r.ResultJSON, r.StdoutExcerpt, r.StderrExcerpt = o.Result, o.Stdout, o.Stderr
	var decision []byte
	if started && r.Status != entity.RunCancelled {
		r.ResultJSON, decision = runResult(c, r, o.Result)
	}
	if o.Usage != nil {
		r.UsageJSON = core.Object{}.Int("inputTokens", o.Usage.InputTokens).Int("outputTokens", o.Usage.OutputTokens).
			Int("cachedInputTokens", o.Usage.CachedInputTokens).Close()
	}
	if started {
		r.StatusDelivery = core.NullText(core.DerivedID("delivery", r.ID))
		keepSession(c, &r, o)
	}
	if !(started && r.Status == entity.RunCancelled && r.Owed) {
		// A cancelled run keeps its locks while its processes may still run: until its node says
		// that they are gone, or is lost.
		releaseLocksOfRun(c, r.Company, r.ID)
	}
	r = livelihoodOf(c.Tx, r)
	level, closed := "info", entity.WakeCompleted
	switch r.Status {
	case entity.RunSucceeded:
	case entity.RunCancelled:
		level, closed = "warn", entity.WakeCancelled
	default:
		level, closed = "error", entity.WakeFailed
	}
	if started || r.Status != entity.RunCancelled {
		payload := core.Object{}.Str("status", string(r.Status))
		if r.ExitCode != nil {
			payload = payload.Int("exitCode", int64(*r.ExitCode))
		}
		if r.ErrorCode != "" {
			payload = payload.Str("errorCode", string(r.ErrorCode))
		}
		recordStatus(c, r)
		r = addEvent(c, r, "lifecycle", level, "run "+string(r.Status), payload.Close())
		if decision != nil {
			r = addEvent(c, r, "run.presentation.resolved", "info", "run presentation resolved",
				core.Object{}.Raw("presentationDecision", decision).Close())
		}
	} else {
		recordStatus(c, r)
	}
	entity.RunTable.Put(c.Tx, r.Company, r.ID, r)
	closeWakeup(c, r, closed, r.Error)
	next := followUp(c, r, o)
	settleAgent(c, r, started, next)
	if started {
		recordLease(c, r)
		runEnded(c, r)
	}
	return r
}

// livelihoodOf sets the contract's words for how a run went.
func livelihoodOf(tx *ledger.Tx, r entity.Run) entity.Run {
	switch r.Status {
	case entity.RunSucceeded:
		i, bound := entity.IssueTable.Get(tx, r.Company, r.Context.IssueID)
		switch {
		case bound && entity.Undecided(i, r) && r.Silent():
			r.LivenessState, r.LivenessReason = "empty_response", "Run ended well but wrote nothing and left its issue as it was"
		case bound && entity.Undecided(i, r):
			r.LivenessState, r.LivenessReason = "needs_followup", "Run ended without saying what becomes of its issue"
		case bound && i.Status.Terminal():
			r.LivenessState, r.LivenessReason = "completed", core.NullText("Run ended well; its issue is "+string(i.Status))
			r.LastUsefulActionAt = max(r.LastOutputAt, r.StartedAt)
		case r.Silent():
			r.LivenessState, r.LivenessReason = "empty_response", "Run ended well but wrote nothing"
		default:
			r.LivenessState, r.LivenessReason = "advanced", "Run ended well"
			r.LastUsefulActionAt = max(r.LastOutputAt, r.StartedAt)
		}
	case entity.RunFailed, entity.RunTimedOut, entity.RunInterrupted:
		r.LivenessState = "failed"
		r.LivenessReason = core.NullText("Run ended with " + string(r.Status) + " (" + string(r.ErrorCode) + ")")
	}
	return r
}

func cancelRun(c *ledger.Context, p Cancel) (any, error) {
	r, err := RunFor(c, p.Run)
	if err != nil {
		return nil, err
	}
	by := c.Cmd.Actor
	if by.Type == "agent" && by.ID != r.Agent {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "Agent can only cancel its own runs")
	}
	if !r.Status.Live() {
		return r, nil // already over: repeating the cancellation changes nothing
	}
	r = cancelLive(c, r, cmp.Or(p.Reason, "Cancelled by a board operator"), by)
	c.Record(ledger.Change{Action: "heartbeat.cancelled", EntityType: "heartbeat_run", EntityID: r.ID,
		Details: core.Object{}.Str("agentId", r.Agent).Close()})
	return r, nil
}

// cancelLive ends a live run. From here on writes of its processes through the API are
// refused. Its node kills them and confirms with "run.finish"; until then the run's locks
// are held.
func cancelLive(c *ledger.Context, r entity.Run, why string, by ledger.Actor) entity.Run {
	return cancelFor(c, r, why, by, "")
}

// cancelFor is cancelLive with the denial that ended the run, if governance did.
func cancelFor(c *ledger.Context, r entity.Run, why string, by ledger.Actor, denied Denial) entity.Run {
	r.ControlDeadlineAt = core.TimeOf(c.Now) + 60_000
	limit, source := int64(0), "default"
	if a, ok := entity.Wakeable(c.Tx, r.Company, r.Agent); ok {
		if limit = timeLimit(a.AdapterConfig); limit > 0 {
			source = "config"
		}
	}
	result := core.Object{}.Str("stopReason", "cancelled").Bool("timeoutFired", false).Str("timeoutSource", source).
		Bool("timeoutConfigured", source == "config").Int("effectiveTimeoutSec", limit)
	if by.Type == "user" {
		result = result.Str("cancelledByUserId", by.ID)
	}
	result = result.Str("cancelledByActorType", by.Type).
		Raw("executionCancellation", core.Object{}.Str("state", "acknowledged").Time("acknowledgedAt",
			core.TimeOf(c.Now)).Close())
	if denied != "" {
		result = result.Str("deniedBy", string(denied))
		if r.AdapterType == "wasm" {
			result = result.Str("sandboxError", GovernanceDenied)
		}
	}
	return EndRun(c, r, Outcome{Status: entity.RunCancelled, Error: why, ErrorCode: "cancelled", Result: result.Close()})
}

// CancelRunsOfAgent cancels every live run of an agent that was paused, terminated or
// deleted, or that reached a budget.
func CancelRunsOfAgent(c *ledger.Context, company ledger.CompanyID, agent string, denied Denial, reason string) {
	for _, r := range entity.LiveRunsOfAgent(c.Tx, company, agent) {
		DenyLive(c, r, denied, reason)
	}
}

// whyNotNeeded returns why a run that was woken for an issue is no longer needed, or "". A
// run that a person asked for is always needed.
func whyNotNeeded(tx *ledger.Tx, r entity.Run) string {
	if OnHold(tx, r.Company, r.Context.IssueID) {
		return "Cancelled: its issue's tree is on hold"
	}
	if r.Context.IssueID == "" || r.Source != entity.WakeAssignment && r.RetryOf == "" {
		return ""
	}
	switch i, ok := entity.IssueTable.Get(tx, r.Company, r.Context.IssueID); {
	case !ok:
		return "Cancelled: its issue is gone"
	case i.Assignee != r.Agent:
		return "Cancelled: its issue was assigned to somebody else"
	case i.Status.Terminal():
		return "Cancelled: its issue is " + string(i.Status)
	}
	return ""
}
