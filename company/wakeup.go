package company

import (
	"encoding/json"
	"iter"
	"slices"

	"github.com/selvage-mesh/selvage/ledger"
)

// A WakeSource is why an agent was woken. Persisted: do not rename.
type WakeSource string

const (
	WakeTimer      WakeSource = "timer"      // the agent's interval passed
	WakeAssignment WakeSource = "assignment" // an issue was assigned to it
	WakeOnDemand   WakeSource = "on_demand"  // somebody asked for it
	WakeAutomation WakeSource = "automation" // a rule of the system: retry, follow-up, comment, approval
)

// Valid reports whether s is a source.
func (s WakeSource) Valid() bool {
	return s == WakeTimer || s == WakeAssignment || s == WakeOnDemand || s == WakeAutomation
}

// A WakeStatus is what became of a wakeup request. Persisted: do not rename.
type WakeStatus string

const (
	WakeQueued    WakeStatus = "queued"    // its run waits
	WakeClaimed   WakeStatus = "claimed"   // its run has started
	WakeCoalesced WakeStatus = "coalesced" // merged into a run that was there
	WakeSkipped   WakeStatus = "skipped"   // not acted on, for the reason in Error
	WakeCompleted WakeStatus = "completed"
	WakeFailed    WakeStatus = "failed"
	WakeCancelled WakeStatus = "cancelled"
)

// A Wakeup is a request to wake an agent and what became of it.
type Wakeup struct {
	ID             string          `cbor:"1,keyasint" json:"id"`
	Company        string          `cbor:"2,keyasint" json:"companyId"`
	Agent          string          `cbor:"3,keyasint" json:"agentId"`
	Source         WakeSource      `cbor:"4,keyasint" json:"source"`
	TriggerDetail  NullText        `cbor:"5,keyasint,omitempty" json:"triggerDetail"`
	Reason         NullText        `cbor:"6,keyasint,omitempty" json:"reason"`
	Payload        json.RawMessage `cbor:"7,keyasint,omitempty" json:"payload"`
	Status         WakeStatus      `cbor:"8,keyasint" json:"status"`
	CoalescedCount int             `cbor:"9,keyasint,omitempty" json:"coalescedCount"`
	ActorType      NullText        `cbor:"10,keyasint,omitempty" json:"requestedByActorType"`
	ActorID        NullText        `cbor:"11,keyasint,omitempty" json:"requestedByActorId"`
	IdempotencyKey NullText        `cbor:"12,keyasint,omitempty" json:"idempotencyKey"`
	Run            NullText        `cbor:"13,keyasint,omitempty" json:"runId"`
	RequestedAt    Time            `cbor:"14,keyasint" json:"requestedAt"`
	ClaimedAt      Time            `cbor:"15,keyasint,omitempty" json:"claimedAt"`
	FinishedAt     Time            `cbor:"16,keyasint,omitempty" json:"finishedAt"`
	Error          NullText        `cbor:"17,keyasint,omitempty" json:"error"`
	CreatedAt      Time            `cbor:"18,keyasint" json:"createdAt"`
	UpdatedAt      Time            `cbor:"19,keyasint" json:"updatedAt"`
}

// keptWakeups bounds the wakeup requests that are kept per agent; a timer makes
// up to 2,880 a day.
const keptWakeups = 200

// wakeups holds the requests; wakeupOrder finds the n-th of an agent, so that
// the one that falls out of keptWakeups is found without a scan.
var wakeups = ledger.NewTable[Wakeup]("wakeup")

func wakeupOrderKey(company, agent string, n uint64) []byte {
	return ledger.Key("c", company, "wakeup-order", agent, ledger.Order(n))
}

// wakeupOnceKey finds the request that was made with an idempotency key.
func wakeupOnceKey(company, agent, key string) []byte {
	return ledger.Key("c", company, "wakeup-once", agent, derivedID(key))
}

// A Wake asks to wake an agent; it is the payload of "agent.wake". The IDs of
// the rows that may come of it travel with the command.
type Wake struct {
	Agent          string          `cbor:"1,keyasint"`
	Source         WakeSource      `cbor:"2,keyasint"`
	TriggerDetail  string          `cbor:"3,keyasint,omitempty"` // "manual", "ping", "callback", "system"
	Reason         string          `cbor:"4,keyasint,omitempty"`
	Payload        json.RawMessage `cbor:"5,keyasint,omitempty"` // a JSON object, as the caller gave it
	IdempotencyKey string          `cbor:"6,keyasint,omitempty"`
	Fresh          *bool           `cbor:"7,keyasint,omitempty"` // forceFreshSession, when given
	Issue          string          `cbor:"8,keyasint,omitempty"`
	Task           string          `cbor:"9,keyasint,omitempty"`  // scope, when it is not the issue
	Comment        string          `cbor:"10,keyasint,omitempty"` // the comment that wakes
	Approval       string          `cbor:"11,keyasint,omitempty"`
	ApprovalStatus string          `cbor:"12,keyasint,omitempty"`
	Wakeup         string          `cbor:"13,keyasint"` // UUID of the request
	Run            string          `cbor:"14,keyasint"` // UUID of the run that it may make
	Responsible    string          `cbor:"15,keyasint,omitempty"`
	LinkedIssues   []string        `cbor:"16,keyasint,omitempty"` // of the approval
	From           string          `cbor:"17,keyasint,omitempty"` // what led to it, such as "issue.create"

	Interaction       string `cbor:"18,keyasint,omitempty"` // that was decided
	InteractionKind   string `cbor:"19,keyasint,omitempty"`
	InteractionStatus string `cbor:"20,keyasint,omitempty"`

	atOnce bool // a run that it joins does not wait to be tried again later
	// stopped is what the run was about that this wake takes the place of. Nobody
	// asked for it anew, so who answers for it stays the same.
	stopped *RunContext
}

// manual reports whether a person asked for exactly this wake; such a wake
// never merges into another one.
func (w Wake) manual(by ledger.Actor) bool {
	return by.Type == "user" && w.Source == WakeOnDemand && w.TriggerDetail == "manual"
}

// A WakeResult is what became of a wake: a run for "queued", the run that was
// there for "coalesced", none for "skipped".
type WakeResult struct {
	Status WakeStatus `cbor:"1,keyasint"`
	Run    *Run       `cbor:"2,keyasint,omitempty"`
	Reason string     `cbor:"3,keyasint,omitempty"` // of a skip
}

// A Tick fires an agent's timer; it is the payload of "timer.tick". Seq is the
// one after the last that fired, so that two leaders can not both fire it.
type Tick struct {
	Agent string `cbor:"1,keyasint"`
	Seq   uint64 `cbor:"2,keyasint"`
}

// agentClock is what waking remembers of an agent.
type agentClock struct {
	Tick   uint64 `cbor:"1,keyasint,omitempty"` // last timer tick that fired
	TickAt Time   `cbor:"2,keyasint,omitempty"` // when it was due
	Wakes  uint64 `cbor:"3,keyasint,omitempty"` // how many requests there were
	Day    string `cbor:"4,keyasint,omitempty"` // UTC day that DayRuns counts
	Runs   int64  `cbor:"5,keyasint,omitempty"` // runs made on Day
	// Fruitless counts the last runs that came to nothing, one after the other.
	Fruitless int64 `cbor:"6,keyasint,omitempty"`
}

var agentClocks = ledger.NewTable[agentClock]("agent-clock")

const (
	KindAgentWake = "agent.wake"
	KindTimerTick = "timer.tick"
)

var wakeupKinds = []Kind{
	{Name: KindAgentWake, From: FromBoard | FromAgent | FromNode, Do: ledger.Typed(wakeAgent)},
	{Name: KindTimerTick, From: FromNode, Do: ledger.Typed(fireTimer)},
}

// wakeAgent carries out a wake that somebody asked for: what may not be
// woken now is a refusal when a person or an agent asked, else a skip.
func wakeAgent(c *ledger.Context, w Wake) (any, error) {
	if !w.Source.Valid() {
		return nil, ledger.Refuse(ledger.Invalid, nil, "unknown wake source %q", w.Source)
	}
	a, ok := wakeable(c.Tx, c.Cmd.Company, w.Agent)
	if !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Agent not found")
	}
	by := c.Cmd.Actor
	if by.Type == "agent" && by.ID != w.Agent {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "Agent can only invoke itself")
	}
	if err := w.checkAbout(c.Tx, a.Company); err != nil {
		return nil, err
	}
	if w.IdempotencyKey != "" {
		if id, ok := c.Get(wakeupOnceKey(c.Cmd.Company, w.Agent, w.IdempotencyKey)); ok {
			if u, ok := wakeups.Get(c.Tx, c.Cmd.Company, string(id)); ok {
				return replayed(c.Tx, u), nil
			}
		}
	}
	if w.Source == WakeOnDemand && (by.Type == "user" || by.Type == "agent") {
		if err := mayWork(c, a.ID, projectOfWork(c.Tx, a.Company, w.Issue)); err != nil {
			return nil, err
		}
		a, _ = wakeable(c.Tx, a.Company, a.ID)
	}
	res, err := wake(c, a, w)
	if err != nil {
		return nil, err
	}
	if res.Status == WakeQueued && w.Source == WakeOnDemand {
		c.Record(ledger.Change{Action: "heartbeat.invoked", EntityType: "heartbeat_run", EntityID: res.Run.ID,
			Details: jsonObject{}.str("agentId", w.Agent).close()})
	}
	return res, nil
}

// checkAbout refuses a wake about what its company has not.
func (w Wake) checkAbout(tx *ledger.Tx, company string) error {
	i, ok := issues.Get(tx, company, w.Issue)
	if w.Issue != "" && !ok {
		return errNoIssue()
	}
	for _, linked := range w.LinkedIssues {
		if !tx.Has(issues.Key(company, linked)) {
			return errNoIssue()
		}
	}
	if w.Comment != "" && !tx.Has(commentAtKey(company, w.Comment)) {
		return ledger.Refuse(ledger.NotFound, nil, "Comment not found")
	}
	return checkWake(tx, company, i, w)
}

func replayed(tx *ledger.Tx, u Wakeup) WakeResult {
	res := WakeResult{Status: u.Status, Reason: string(u.Error)}
	if r, ok := runs.Get(tx, u.Company, string(u.Run)); ok {
		res.Run = &r
	}
	return res
}

// wake decides what a wake does, and does it: skip, merge, or queue a run.
func wake(c *ledger.Context, a wakeTarget, w Wake) (WakeResult, error) {
	u := Wakeup{
		ID: w.Wakeup, Company: a.Company, Agent: a.ID, Source: w.Source, TriggerDetail: NullText(w.TriggerDetail),
		Reason: NullText(w.Reason), Payload: w.Payload, Status: WakeQueued, IdempotencyKey: NullText(w.IdempotencyKey),
		ActorType: NullText(c.Cmd.Actor.Type), ActorID: NullText(c.Cmd.Actor.ID), RequestedAt: TimeOf(c.Now),
	}
	clock, _ := agentClocks.Get(c.Tx, a.Company, a.ID)
	if day := c.Now.Format("2006-01-02"); clock.Day != day {
		clock.Day, clock.Runs = day, 0
	}
	live := LiveRunsOfAgent(c.Tx, a.Company, a.ID)
	ctx := w.context(c.Tx, a, c.Cmd.Actor)
	manual := w.manual(c.Cmd.Actor)
	if (a.PauseReason == pausedForBudget || projectStopped(c.Tx, a.Company, w.Issue)) && mayWork(c, a.ID, projectOfWork(c.Tx, a.Company, w.Issue)) == nil {
		a, _ = wakeable(c.Tx, a.Company, a.ID) // the window of its budget has passed
	}
	if reason := skipReason(c.Tx, a, w, clock, live, ctx.Scope(), u.RequestedAt); reason != "" {
		u.Status, u.Error, u.FinishedAt = WakeSkipped, NullText(reason), u.RequestedAt
		keepWakeup(c, u, clock)
		return WakeResult{Status: WakeSkipped, Reason: reason}, nil
	}
	if target := coalesceTarget(live, ctx, manual); target != nil {
		r := target.absorb(ctx, u.RequestedAt)
		runs.Put(c.Tx, r.Company, r.ID, r)
		if i, ok := issues.Get(c.Tx, r.Company, w.Issue); ok && w.atOnce && r.Status == RunScheduledRetry && r.ScheduledRetryAt > u.RequestedAt {
			r = tryNow(c, i, r)
		}
		u.Status, u.Run, u.FinishedAt = WakeCoalesced, NullText(r.ID), u.RequestedAt
		keepWakeup(c, u, clock)
		if first, ok := wakeups.Get(c.Tx, r.Company, string(r.WakeupRequest)); ok {
			first.CoalescedCount++
			first.UpdatedAt = u.RequestedAt
			wakeups.Put(c.Tx, r.Company, first.ID, first)
		}
		return WakeResult{Status: WakeCoalesced, Run: &r}, nil
	}
	if len(live) >= MaxLiveRuns {
		if w.Source != WakeOnDemand { // what wakes must not fail because of it
			u.Status, u.Error, u.FinishedAt = WakeSkipped, "heartbeat.queue.full", u.RequestedAt
			keepWakeup(c, u, clock)
			return WakeResult{Status: WakeSkipped, Reason: string(u.Error)}, nil
		}
		return WakeResult{}, ledger.Refuse(ledger.TooMany, nil, "Agent has %d runs waiting or at work; no more are queued", len(live))
	}
	if _, taken := RunByID(c.Tx, w.Run); taken || w.Run == "" {
		return WakeResult{}, ledger.Refuse(ledger.Conflict, nil, "a run with this ID exists")
	}
	r := newRun(a, w, ctx, u.RequestedAt)
	r.Manual = manual
	u.Run = NullText(r.ID)
	clock.Runs++
	keepWakeup(c, u, clock)
	return WakeResult{Status: WakeQueued, Run: new(enqueue(c, r))}, nil
}

// context is what the run of a wake is about.
func (w Wake) context(tx *ledger.Tx, a wakeTarget, by ledger.Actor) RunContext {
	ctx := RunContext{
		TaskID: w.Issue, IssueID: w.Issue, TaskKey: w.Task, WakeReason: w.Reason, WakeSource: string(w.Source),
		ForceFreshSession: w.Fresh, WakeTriggerDetail: w.TriggerDetail, CommentID: w.Comment,
		ApprovalID: w.Approval, ApprovalStatus: w.ApprovalStatus, LinkedIssueIDs: w.LinkedIssues, ResponsibleUserID: w.Responsible, Source: w.From,
		InteractionID: w.Interaction, InteractionKind: w.InteractionKind, InteractionStatus: w.InteractionStatus,
	}
	if ctx.TaskKey == "" {
		ctx.TaskKey = w.Issue
	}
	if w.Comment != "" {
		ctx.CommentIDs = []string{w.Comment}
	}
	if w.stopped != nil {
		by = ledger.Actor{Type: "system"}
		if len(w.stopped.CommentIDs) > 0 {
			ctx.CommentIDs = slices.Clone(w.stopped.CommentIDs)
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
		if i, ok := issues.Get(tx, a.Company, w.Issue); ok {
			ctx.ProjectID = i.Project
			if ctx.ResponsibleUserID == "" {
				ctx.ResponsibleUserID = i.ResponsibleUser
			}
		}
	}
	return ctx
}

// skipReason says why a wake is not acted on, or "".
func skipReason(tx *ledger.Tx, a wakeTarget, w Wake, clock agentClock, live []Run, scope string, now Time) string {
	p := a.policy()
	if reason := a.stopped(tx); reason != "" {
		return reason
	}
	if projectStopped(tx, a.Company, w.Issue) {
		return "budget.blocked"
	}
	if onHold(tx, a.Company, w.Issue) {
		return "issue.tree_held"
	}
	switch {
	case w.Source == WakeTimer && !p.Enabled:
		return "heartbeat.disabled"
	case w.Source != WakeTimer && !p.WakeOnDemand:
		return "heartbeat.wakeOnDemand.disabled"
	case p.MaxDailyRuns > 0 && clock.Runs >= p.MaxDailyRuns:
		return "heartbeat.maxDailyRuns.reached"
	case p.MaxDailyCost > 0 && ask.Today(tx, a.Company, a.ID, now) >= p.MaxDailyCost:
		return "heartbeat.maxDailyCostCents.reached"
	case w.Source != WakeTimer:
		return ""
	case slices.ContainsFunc(live, func(r Run) bool { return r.Context.Scope() != scope }):
		return "heartbeat.run.active"
	case p.SkipTimerWhenNoActionableWork && !hasActionableWork(tx, a.Company, a.ID):
		return "heartbeat.noActionableWork"
	}
	return ""
}

// coalesceTarget returns the live run that a wake merges into, or nil: a queued
// run of the same scope before a scheduled retry before a running one. A
// comment on what runs, or a decision of the board, is not merged, because the run
// may have read past it; it queues one follow-up, into which later ones merge.
func coalesceTarget(live []Run, ctx RunContext, manual bool) *Run {
	if manual {
		return nil
	}
	for _, status := range []RunStatus{RunQueued, RunScheduledRetry, RunRunning} {
		if status == RunRunning && (ctx.CommentID != "" || ctx.ApprovalID != "" || ctx.InteractionID != "") {
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

// maxWakeComments bounds the comments that one run is told of.
const maxWakeComments = 50

// absorb returns r with what a merged wake adds to its context.
func (r Run) absorb(ctx RunContext, now Time) Run {
	r.Context.MergedWakes++
	if ctx.CommentID != "" {
		r.Context.CommentID = ctx.CommentID
		if !slices.Contains(r.Context.CommentIDs, ctx.CommentID) && len(r.Context.CommentIDs) < maxWakeComments {
			r.Context.CommentIDs = append(slices.Clone(r.Context.CommentIDs), ctx.CommentID)
		}
	}
	if ctx.ApprovalID != "" {
		r.Context.ApprovalID, r.Context.ApprovalStatus, r.Context.LinkedIssueIDs = ctx.ApprovalID, ctx.ApprovalStatus, ctx.LinkedIssueIDs
	}
	if ctx.InteractionID != "" {
		r.Context.InteractionID, r.Context.InteractionKind, r.Context.InteractionStatus = ctx.InteractionID, ctx.InteractionKind, ctx.InteractionStatus
	}
	if r.Status != RunRunning && ctx.WakeReason != "" {
		r.Context.WakeReason = ctx.WakeReason
	}
	r.UpdatedAt = now
	return r
}

// keepWakeup stores a request, and drops the one that falls out of keptWakeups.
func keepWakeup(c *ledger.Context, u Wakeup, clock agentClock) {
	if u.ID == "" {
		u.ID = derivedID("wakeup", u.Agent, ledger.Order(c.Height), ledger.Order(clock.Wakes))
	}
	u.CreatedAt, u.UpdatedAt = u.RequestedAt, u.RequestedAt
	clock.Wakes++
	wakeups.Put(c.Tx, u.Company, u.ID, u)
	c.Set(wakeupOrderKey(u.Company, u.Agent, clock.Wakes), []byte(u.ID))
	if u.IdempotencyKey != "" {
		c.Set(wakeupOnceKey(u.Company, u.Agent, string(u.IdempotencyKey)), []byte(u.ID))
	}
	if clock.Wakes > keptWakeups {
		key := wakeupOrderKey(u.Company, u.Agent, clock.Wakes-keptWakeups)
		if id, ok := c.Get(key); ok {
			if old, ok := wakeups.Get(c.Tx, u.Company, string(id)); ok && old.IdempotencyKey != "" {
				c.Delete(wakeupOnceKey(u.Company, u.Agent, string(old.IdempotencyKey)))
			}
			wakeups.Delete(c.Tx, u.Company, string(id))
			c.Delete(key)
		}
	}
	agentClocks.Put(c.Tx, u.Company, u.Agent, clock)
}

// closeWakeup notes on a run's request what became of the run.
func closeWakeup(c *ledger.Context, r Run, status WakeStatus, reason NullText) {
	u, ok := wakeups.Get(c.Tx, r.Company, string(r.WakeupRequest))
	if !ok {
		return // fell out of what is kept
	}
	u.Status, u.Error, u.UpdatedAt = status, reason, TimeOf(c.Now)
	if status == WakeClaimed {
		u.ClaimedAt = u.UpdatedAt
	} else {
		u.FinishedAt = u.UpdatedAt
	}
	wakeups.Put(c.Tx, r.Company, u.ID, u)
}

// WakeupsOf returns the kept wakeup requests of an agent, newest first.
func WakeupsOf(tx *ledger.Tx, company, agent string) []Wakeup {
	from := ledger.Key("c", company, "wakeup-order", agent, "")
	var out []Wakeup
	for _, id := range tx.Scan(from, ledger.PrefixEnd(from), true) {
		if u, ok := wakeups.Get(tx, company, string(id)); ok {
			out = append(out, u)
		}
	}
	return out
}

// A Timer is an agent's heartbeat timer as it stands.
type Timer struct {
	Company string
	Agent   string
	Seq     uint64 // of the next tick
	DueAt   Time
}

// TimerOf returns the timer of an agent; ok is false when it has none. What
// fell due while nobody led fires once: the next tick counts from the last one
// that was due before it fired.
func TimerOf(tx *ledger.Tx, company, agent string) (t Timer, ok bool) {
	a, ok := wakeable(tx, company, agent)
	if !ok || a.gone() {
		return Timer{}, false
	}
	p := a.policy()
	if !p.Enabled || p.IntervalSec <= 0 {
		return Timer{}, false
	}
	clock, _ := agentClocks.Get(tx, company, agent)
	base := max(clock.TickAt, a.CreatedAt)
	return Timer{company, agent, clock.Tick + 1, base + Time(p.IntervalSec*1000)}, true
}

// Timers yields the timers of all companies.
func Timers(tx *ledger.Tx) iter.Seq[Timer] {
	return func(yield func(Timer) bool) {
		for company := range companyIDs(tx) {
			for agent := range agents.All(tx, company) {
				if t, ok := TimerOf(tx, company, agent); ok && !yield(t) {
					return
				}
			}
		}
	}
}

// fireTimer wakes an agent whose interval has passed.
func fireTimer(c *ledger.Context, k Tick) (any, error) {
	company := c.Cmd.Company
	t, ok := TimerOf(c.Tx, company, k.Agent)
	if !ok || t.Seq != k.Seq || TimeOf(c.Now) < t.DueAt {
		return nil, ledger.Refuse(ledger.Conflict, nil, "tick %d of agent %s is not due", k.Seq, k.Agent)
	}
	a, _ := wakeable(c.Tx, company, k.Agent)
	clock, _ := agentClocks.Get(c.Tx, company, k.Agent)
	interval := Time(a.policy().IntervalSec * 1000)
	clock.Tick, clock.TickAt = k.Seq, t.DueAt+(TimeOf(c.Now)-t.DueAt)/interval*interval
	agentClocks.Put(c.Tx, company, k.Agent, clock)
	seq := ledger.Order(k.Seq)
	return wake(c, a, Wake{Agent: k.Agent, Source: WakeTimer, TriggerDetail: "system", Reason: "heartbeat_timer",
		Wakeup: derivedID("tick", k.Agent, seq), Run: derivedID("tick-run", k.Agent, seq)})
}

// wakeForAssignment wakes the agent to whom an issue was assigned that is ready
// to be worked on, or whose issue became ready, in the same command; before is
// the issue as it was, zero for a new one. An agent that took an issue itself
// is not woken for it. Work that goes on, or waits to be looked at, wakes the agent
// that it is handed to; what is blocked, or in a stage of its execution, has what
// brings it on. Whether a wake was acted on is recorded on its request; only a
// broken invariant is an error.
func wakeForAssignment(c *ledger.Context, before, i Issue) error {
	handed := before.Assignee != i.Assignee && (i.Status == IssueInProgress || i.Status == IssueInReview) &&
		(i.Execution == nil || i.Execution.Status != "pending")
	ready := i.Status == IssueTodo && (before.Assignee != i.Assignee || before.Status != i.Status)
	if i.Assignee == "" || !ready && !handed || isAgent(c) && c.Cmd.Actor.ID == i.Assignee {
		return nil
	}
	from := "issue.update"
	if before.ID == "" {
		from = "issue.create"
	}
	return wakeForIssue(c, i, WakeAssignment, from, "issue_assigned", "")
}

// wakeForComment wakes the assignee of an issue because of a comment that it
// did not write itself: an agent is never woken by its own words. With resumed the
// work goes on now, though it waits to be tried again later.
func wakeForComment(c *ledger.Context, i Issue, cm Comment, resumed bool) error {
	if i.Assignee == "" || i.Assignee == string(cm.AuthorAgent) || cm.AuthorType == "system" ||
		i.Status.Terminal() || i.Status == IssueBacklog {
		return nil
	}
	return wakeFor(c, i, WakeAutomation, "issue.comment", "issue_commented", cm.ID, resumed)
}

func wakeForIssue(c *ledger.Context, i Issue, source WakeSource, from, reason, comment string) error {
	return wakeFor(c, i, source, from, reason, comment, false)
}

func wakeFor(c *ledger.Context, i Issue, source WakeSource, from, reason, comment string, atOnce bool) error {
	if c.Quiet {
		return nil
	}
	a, ok := wakeable(c.Tx, i.Company, i.Assignee)
	if !ok {
		return nil
	}
	at := ledger.Order(c.Height)
	_, err := wake(c, a, Wake{Agent: i.Assignee, Source: source, TriggerDetail: "system", Reason: reason,
		Issue: i.ID, Comment: comment, From: from, atOnce: atOnce, Responsible: i.ResponsibleUser,
		Payload: jsonObject{}.str("issueId", i.ID).str("mutation", reason).close(),
		Wakeup:  derivedID("issue-wake", i.ID, i.Assignee, at, reason), Run: derivedID("issue-run", i.ID, i.Assignee, at, reason)})
	return err
}
