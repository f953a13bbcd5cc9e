package company

import (
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// keptWakeups bounds the stored wakeup requests of an agent; a timer makes up to 2,880 a
// day.
const keptWakeups = 200

// Tick is the payload of "timer.tick", which fires an agent's timer. Seq is the number
// after the last tick, so two leaders can not both fire the same tick.
type Tick struct {
	Agent string `cbor:"1,keyasint"`
	Seq   uint64 `cbor:"2,keyasint"`
}

const (
	KindAgentWake = "agent.wake"
	KindTimerTick = "timer.tick"
)

var wakeupKinds = []Kind{
	{Name: KindAgentWake, From: FromBoard | FromAgent | FromNode, Weight: Weights.Steering, Target: AgentFirst,
		Do: ledger.Typed(wakeAgent)},
	{Name: KindTimerTick, From: FromNode, Weight: Weights.ByNodes, Do: ledger.Typed(fireTimer)},
}

// wakeAgent executes a requested wake. A wake that is not possible now is refused when a
// person or an agent requested it, and skipped otherwise.
func wakeAgent(c *ledger.Context, w entity.Wake) (any, error) {
	if !w.Source.Valid() {
		return nil, ledger.Refuse(ledger.Invalid, nil, "unknown wake source %q", w.Source)
	}
	a, ok := entity.Wakeable(c.Tx, c.Cmd.Company, w.Agent)
	if !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Agent not found")
	}
	by := c.Cmd.Actor
	if by.Type == "agent" && by.ID != w.Agent {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "Agent can only invoke itself")
	}
	if err := checkWakeSubject(c.Tx, w, a.Company); err != nil {
		return nil, err
	}
	if w.IdempotencyKey != "" {
		if id, ok := c.Get(entity.WakeupOnceKey(c.Cmd.Company, w.Agent, w.IdempotencyKey)); ok {
			if u, ok := entity.Wakeups.Get(c.Tx, c.Cmd.Company, string(id)); ok {
				return replayed(c.Tx, u), nil
			}
		}
	}
	if w.Source == entity.WakeOnDemand && (by.Type == "user" || by.Type == "agent") {
		if err := mayWork(c, a.ID, entity.ProjectOfWork(c.Tx, a.Company, w.Issue)); err != nil {
			return nil, err
		}
		a, _ = entity.Wakeable(c.Tx, a.Company, a.ID)
	}
	res, err := WakeAgent(c, a, w)
	if err != nil {
		return nil, err
	}
	if res.Status == entity.WakeQueued && w.Source == entity.WakeOnDemand {
		c.Record(ledger.Change{Action: "heartbeat.invoked", EntityType: "heartbeat_run", EntityID: res.Run.ID,
			Details: core.Object{}.Str("agentId", w.Agent).Close()})
	}
	return res, nil
}

// checkWakeSubject refuses a wake about something that its company does not have.
func checkWakeSubject(tx *ledger.Tx, w entity.Wake, company ledger.CompanyID) error {
	i, ok := entity.IssueTable.Get(tx, company, w.Issue)
	if w.Issue != "" && !ok {
		return ErrNoIssue()
	}
	for _, linked := range w.LinkedIssues {
		if !tx.Has(entity.IssueTable.Key(company, linked)) {
			return ErrNoIssue()
		}
	}
	if w.Comment != "" && !tx.Has(entity.CommentAtKey(company, w.Comment)) {
		return ledger.Refuse(ledger.NotFound, nil, "Comment not found")
	}
	return checkWake(tx, company, i, w)
}

func replayed(tx *ledger.Tx, u entity.Wakeup) entity.WakeResult {
	res := entity.WakeResult{Status: u.Status, Reason: string(u.Error)}
	if r, ok := entity.RunTable.Get(tx, u.Company, string(u.Run)); ok {
		res.Run = &r
	}
	return res
}

// WakeAgent decides what a wake does, and does it: skip, merge, or queue a run.
func WakeAgent(c *ledger.Context, a entity.WakeTarget, w entity.Wake) (entity.WakeResult, error) {
	u := entity.Wakeup{
		ID: w.Wakeup, Company: a.Company, Agent: a.ID, Source: w.Source, TriggerDetail: core.NullText(w.TriggerDetail),
		Reason: core.NullText(w.Reason), Payload: w.Payload, Status: entity.WakeQueued,
		IdempotencyKey: core.NullText(w.IdempotencyKey),
		ActorType:      core.NullText(c.Cmd.Actor.Type), ActorID: core.NullText(c.Cmd.Actor.ID),
		RequestedAt: core.TimeOf(c.Now),
	}
	clock, _ := entity.AgentClocks.Get(c.Tx, a.Company, a.ID)
	if day := c.Now.Format("2006-01-02"); clock.Day != day {
		clock.Day, clock.Runs = day, 0
	}
	live := entity.LiveRunsOfAgent(c.Tx, a.Company, a.ID)
	ctx := wakeContext(c.Tx, w, a, c.Cmd.Actor)
	manual := w.Manual(c.Cmd.Actor)
	if (a.PauseReason == entity.PausedForBudget || entity.ProjectStopped(c.Tx, a.Company, w.Issue)) &&
		mayWork(c, a.ID, entity.ProjectOfWork(c.Tx, a.Company, w.Issue)) == nil {
		a, _ = entity.Wakeable(c.Tx, a.Company, a.ID) // a budget window has passed
	}
	if reason := skipReason(c.Tx, a, w, clock, live, ctx.Scope(), u.RequestedAt); reason != "" {
		u.Status, u.Error, u.FinishedAt = entity.WakeSkipped, core.NullText(reason), u.RequestedAt
		KeepWakeup(c, u, clock)
		return entity.WakeResult{Status: entity.WakeSkipped, Reason: reason}, nil
	}
	if target := coalesceTarget(live, ctx, manual); target != nil {
		r := target.Absorb(ctx, u.RequestedAt)
		entity.RunTable.Put(c.Tx, r.Company, r.ID, r)
		if i, ok := entity.IssueTable.Get(c.Tx, r.Company, w.Issue); ok && w.AtOnce && r.Status == entity.RunScheduledRetry &&
			r.ScheduledRetryAt > u.RequestedAt {
			r = tryNow(c, i, r)
		}
		u.Status, u.Run, u.FinishedAt = entity.WakeCoalesced, core.NullText(r.ID), u.RequestedAt
		KeepWakeup(c, u, clock)
		if first, ok := entity.Wakeups.Get(c.Tx, r.Company, string(r.WakeupRequest)); ok {
			first.CoalescedCount++
			first.UpdatedAt = u.RequestedAt
			entity.Wakeups.Put(c.Tx, r.Company, first.ID, first)
		}
		return entity.WakeResult{Status: entity.WakeCoalesced, Run: &r}, nil
	}
	if len(live) >= entity.MaxLiveRuns {
		if w.Source != entity.WakeOnDemand { // the change that wakes must not fail
			u.Status, u.Error, u.FinishedAt = entity.WakeSkipped, "heartbeat.queue.full", u.RequestedAt
			KeepWakeup(c, u, clock)
			return entity.WakeResult{Status: entity.WakeSkipped, Reason: string(u.Error)}, nil
		}
		return entity.WakeResult{}, ledger.Refuse(ledger.TooMany, nil,
			"Agent has %d runs waiting or at work; no more are queued", len(live))
	}
	if _, taken := entity.RunByID(c.Tx, w.Run); taken || w.Run == "" {
		return entity.WakeResult{}, ledger.Refuse(ledger.Conflict, nil, "a run with this ID exists")
	}
	r := newRun(a, w, ctx, u.RequestedAt)
	r.Manual = manual
	u.Run = core.NullText(r.ID)
	clock.Runs++
	KeepWakeup(c, u, clock)
	return entity.WakeResult{Status: entity.WakeQueued, Run: new(Enqueue(c, r))}, nil
}

// wakeContext returns the context of a wake's run.
func wakeContext(tx *ledger.Tx, w entity.Wake, a entity.WakeTarget, by ledger.Actor) entity.RunContext {
	ctx := entity.RunContext{
		TaskID: w.Issue, IssueID: w.Issue, TaskKey: w.Task, WakeReason: w.Reason, WakeSource: string(w.Source),
		ForceFreshSession: w.Fresh, WakeTriggerDetail: w.TriggerDetail, CommentID: w.Comment,
		ApprovalID: w.Approval, ApprovalStatus: w.ApprovalStatus, LinkedIssueIDs: w.LinkedIssues,
		ResponsibleUserID: w.Responsible, Source: w.From,
		InteractionID: w.Interaction, InteractionKind: w.InteractionKind, InteractionStatus: w.InteractionStatus,
	}
	if ctx.TaskKey == "" {
		ctx.TaskKey = w.Issue
	}
	if w.Comment != "" {
		ctx.CommentIDs = []string{w.Comment}
	}
	if w.Stopped != nil {
		by = ledger.Actor{Type: "system"}
		if len(w.Stopped.CommentIDs) > 0 {
			ctx.CommentIDs = slices.Clone(w.Stopped.CommentIDs)
		}
	}
	switch by.Type {
	case "user":
		ctx.ActorID, ctx.TriggeredBy, ctx.ResponsibleUserID = by.ID, "board", by.ID
	case "agent":
		ctx.ActorID, ctx.TriggeredBy = by.ID, "agent"
	default:
		ctx.TriggeredBy = "system"
	}
	if w.Issue != "" {
		if i, ok := entity.IssueTable.Get(tx, a.Company, w.Issue); ok {
			ctx.ProjectID = i.Project
			if ctx.ResponsibleUserID == "" {
				ctx.ResponsibleUserID = i.ResponsibleUser
			}
		}
	}
	return ctx
}

// skipReason returns why a wake is skipped, or "".
func skipReason(tx *ledger.Tx, a entity.WakeTarget, w entity.Wake, clock entity.AgentClock, live []entity.Run,
	scope string, now core.Time) string {
	p := a.Policy()
	if reason := a.Stopped(tx); reason != "" {
		return reason
	}
	if entity.ProjectStopped(tx, a.Company, w.Issue) {
		return "budget.blocked"
	}
	if OnHold(tx, a.Company, w.Issue) {
		return "issue.tree_held"
	}
	switch {
	case w.Source == entity.WakeTimer && !p.Enabled:
		return "heartbeat.disabled"
	case w.Source != entity.WakeTimer && !p.WakeOnDemand:
		return "heartbeat.wakeOnDemand.disabled"
	case p.MaxDailyRuns > 0 && clock.Runs >= p.MaxDailyRuns:
		return "heartbeat.maxDailyRuns.reached"
	case p.MaxDailyCost > 0 && Ask.Today(tx, a.Company, a.ID, now) >= p.MaxDailyCost:
		return "heartbeat.maxDailyCostCents.reached"
	case w.Source != entity.WakeTimer:
		return ""
	case slices.ContainsFunc(live, func(r entity.Run) bool { return r.Context.Scope() != scope }):
		return "heartbeat.run.active"
	case p.SkipTimerWhenNoActionableWork && !hasActionableWork(tx, a.Company, a.ID):
		return "heartbeat.noActionableWork"
	}
	return ""
}

// coalesceTarget returns the live run that a wake merges into, or nil: a queued run of the
// same scope before a scheduled retry before a running run. A comment or a decision of the
// board does not merge into a running run, which may have read past it. It queues one
// follow-up run, into which later ones merge.
func coalesceTarget(live []entity.Run, ctx entity.RunContext, manual bool) *entity.Run {
	if manual {
		return nil
	}
	for _, status := range []entity.RunStatus{entity.RunQueued, entity.RunScheduledRetry, entity.RunRunning} {
		if status == entity.RunRunning && (ctx.CommentID != "" || ctx.ApprovalID != "" || ctx.InteractionID != "") {
			return nil
		}
		for i := range live {
			if live[i].Status == status && live[i].Context.Scope() == ctx.Scope() {
				return &live[i]
			}
		}
	}
	return nil
}

// KeepWakeup stores a request and drops the oldest beyond keptWakeups.
func KeepWakeup(c *ledger.Context, u entity.Wakeup, clock entity.AgentClock) {
	if u.ID == "" {
		u.ID = core.DerivedID("wakeup", u.Agent, ledger.Order(c.Height), ledger.Order(clock.Wakes))
	}
	u.CreatedAt, u.UpdatedAt = u.RequestedAt, u.RequestedAt
	clock.Wakes++
	entity.Wakeups.Put(c.Tx, u.Company, u.ID, u)
	c.Set(entity.WakeupOrderKey(u.Company, u.Agent, clock.Wakes), []byte(u.ID))
	if u.IdempotencyKey != "" {
		c.Set(entity.WakeupOnceKey(u.Company, u.Agent, string(u.IdempotencyKey)), []byte(u.ID))
	}
	if clock.Wakes > keptWakeups {
		key := entity.WakeupOrderKey(u.Company, u.Agent, clock.Wakes-keptWakeups)
		if id, ok := c.Get(key); ok {
			if old, ok := entity.Wakeups.Get(c.Tx, u.Company, string(id)); ok && old.IdempotencyKey != "" {
				c.Delete(entity.WakeupOnceKey(u.Company, u.Agent, string(old.IdempotencyKey)))
			}
			entity.Wakeups.Delete(c.Tx, u.Company, string(id))
			c.Delete(key)
		}
	}
	entity.AgentClocks.Put(c.Tx, u.Company, u.Agent, clock)
}

// closeWakeup stores in a run's request how the run ended.
func closeWakeup(c *ledger.Context, r entity.Run, status entity.WakeStatus, reason core.NullText) {
	u, ok := entity.Wakeups.Get(c.Tx, r.Company, string(r.WakeupRequest))
	if !ok {
		return // the request was dropped
	}
	u.Status, u.Error, u.UpdatedAt = status, reason, core.TimeOf(c.Now)
	if status == entity.WakeClaimed {
		u.ClaimedAt = u.UpdatedAt
	} else {
		u.FinishedAt = u.UpdatedAt
	}
	entity.Wakeups.Put(c.Tx, r.Company, u.ID, u)
}

// fireTimer wakes an agent whose interval has passed.
func fireTimer(c *ledger.Context, k Tick) (any, error) {
	company := c.Cmd.Company
	t, ok := entity.TimerOf(c.Tx, company, k.Agent)
	if !ok || t.Seq != k.Seq || core.TimeOf(c.Now) < t.DueAt {
		return nil, ledger.Refuse(ledger.Conflict, nil, "tick %d of agent %s is not due", k.Seq, k.Agent)
	}
	a, _ := entity.Wakeable(c.Tx, company, k.Agent)
	clock, _ := entity.AgentClocks.Get(c.Tx, company, k.Agent)
	interval := core.Time(a.Policy().IntervalSec * 1000)
	clock.Tick, clock.TickAt = k.Seq, t.DueAt+(core.TimeOf(c.Now)-t.DueAt)/interval*interval
	entity.AgentClocks.Put(c.Tx, company, k.Agent, clock)
	seq := ledger.Order(k.Seq)
	return WakeAgent(c, a, entity.Wake{Agent: k.Agent, Source: entity.WakeTimer, TriggerDetail: "system",
		Reason: "heartbeat_timer",
		Wakeup: core.DerivedID("tick", k.Agent, seq), Run: core.DerivedID("tick-run", k.Agent, seq)})
}

// WakeForAssignment wakes the assignee of an issue that the same command assigned or made
// ready for work; before is the issue before the change, zero for a new one. An agent that
// assigns an issue to itself is not woken. An issue in progress or in review wakes the
// agent that it is handed to. An issue that is blocked or in a stage of its policy is
// continued by that. The request records whether the wake was acted on; only a broken
// invariant is an error.
func WakeForAssignment(c *ledger.Context, before, i entity.Issue) error {
	handed := before.Assignee != i.Assignee && (i.Status == entity.IssueInProgress || i.Status == entity.IssueInReview) &&
		(i.Execution == nil || i.Execution.Status != "pending")
	ready := i.Status == entity.IssueTodo && (before.Assignee != i.Assignee || before.Status != i.Status)
	if i.Assignee == "" || !ready && !handed || core.IsAgent(c) && c.Cmd.Actor.ID == i.Assignee {
		return nil
	}
	from := "issue.update"
	if before.ID == "" {
		from = "issue.create"
	}
	return WakeForIssue(c, i, entity.WakeAssignment, from, "issue_assigned", "")
}

// wakeForComment wakes the assignee of an issue because of a comment. An agent is never
// woken by its own comment. With resumed the work continues now, even if it waits for a
// retry.
func wakeForComment(c *ledger.Context, i entity.Issue, cm entity.Comment, resumed bool) error {
	if i.Assignee == "" || i.Assignee == string(cm.AuthorAgent) || cm.AuthorType == "system" ||
		i.Status.Terminal() || i.Status == entity.IssueBacklog {
		return nil
	}
	return wakeFor(c, i, entity.WakeAutomation, "issue.comment", "issue_commented", cm.ID, resumed)
}

func WakeForIssue(c *ledger.Context, i entity.Issue, source entity.WakeSource, from, reason, comment string) error {
	return wakeFor(c, i, source, from, reason, comment, false)
}

func wakeFor(c *ledger.Context, i entity.Issue, source entity.WakeSource, from, reason, comment string,
	atOnce bool) error {
	if c.Quiet {
		return nil
	}
	a, ok := entity.Wakeable(c.Tx, i.Company, i.Assignee)
	if !ok {
		return nil
	}
	at := ledger.Order(c.Height)
	_, err := WakeAgent(c, a, entity.Wake{Agent: i.Assignee, Source: source, TriggerDetail: "system", Reason: reason,
		Issue: i.ID, Comment: comment, From: from, AtOnce: atOnce, Responsible: i.ResponsibleUser,
		Payload: core.Object{}.Str("issueId", i.ID).Str("mutation", reason).Close(),
		Wakeup:  core.DerivedID("issue-wake", i.ID, i.Assignee, at, reason), Run: core.DerivedID("issue-run", i.ID,
			i.Assignee, at, reason)})
	return err
}
