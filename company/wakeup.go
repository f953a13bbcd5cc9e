package company

import (
	"encoding/json"
	"iter"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
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
	TriggerDetail  core.NullText   `cbor:"5,keyasint,omitempty" json:"triggerDetail"`
	Reason         core.NullText   `cbor:"6,keyasint,omitempty" json:"reason"`
	Payload        json.RawMessage `cbor:"7,keyasint,omitempty" json:"payload"`
	Status         WakeStatus      `cbor:"8,keyasint" json:"status"`
	CoalescedCount int             `cbor:"9,keyasint,omitempty" json:"coalescedCount"`
	ActorType      core.NullText   `cbor:"10,keyasint,omitempty" json:"requestedByActorType"`
	ActorID        core.NullText   `cbor:"11,keyasint,omitempty" json:"requestedByActorId"`
	IdempotencyKey core.NullText   `cbor:"12,keyasint,omitempty" json:"idempotencyKey"`
	Run            core.NullText   `cbor:"13,keyasint,omitempty" json:"runId"`
	RequestedAt    core.Time       `cbor:"14,keyasint" json:"requestedAt"`
	ClaimedAt      core.Time       `cbor:"15,keyasint,omitempty" json:"claimedAt"`
	FinishedAt     core.Time       `cbor:"16,keyasint,omitempty" json:"finishedAt"`
	Error          core.NullText   `cbor:"17,keyasint,omitempty" json:"error"`
	CreatedAt      core.Time       `cbor:"18,keyasint" json:"createdAt"`
	UpdatedAt      core.Time       `cbor:"19,keyasint" json:"updatedAt"`
}

// keptWakeups bounds the wakeup requests that are kept per agent; a timer makes
// up to 2,880 a day.
const keptWakeups = 200

// Wakeups holds the requests; wakeupOrder finds the n-th of an agent, so that
// the one that falls out of keptWakeups is found without a scan.
var Wakeups = ledger.NewTable[Wakeup]("wakeup")

func WakeupOrderKey(company, agent string, n uint64) []byte {
	return ledger.Key("c", company, "wakeup-order", agent, ledger.Order(n))
}

// WakeupOnceKey finds the request that was made with an idempotency key.
func WakeupOnceKey(company, agent, key string) []byte {
	return ledger.Key("c", company, "wakeup-once", agent, core.DerivedID(key))
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
	// Stopped is what the run was about that this wake takes the place of. Nobody
	// asked for it anew, so who answers for it stays the same.
	Stopped *RunContext `cbor:"-" json:"-"`
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
	Tick   uint64    `cbor:"1,keyasint,omitempty"` // last timer tick that fired
	TickAt core.Time `cbor:"2,keyasint,omitempty"` // when it was due
	Wakes  uint64    `cbor:"3,keyasint,omitempty"` // how many requests there were
	Day    string    `cbor:"4,keyasint,omitempty"` // UTC day that DayRuns counts
	Runs   int64     `cbor:"5,keyasint,omitempty"` // runs made on Day
	// Fruitless counts the last runs that came to nothing, one after the other.
	Fruitless int64 `cbor:"6,keyasint,omitempty"`
}

var AgentClocks = ledger.NewTable[agentClock]("agent-clock")

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
	a, ok := Wakeable(c.Tx, c.Cmd.Company, w.Agent)
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
		if id, ok := c.Get(WakeupOnceKey(c.Cmd.Company, w.Agent, w.IdempotencyKey)); ok {
			if u, ok := Wakeups.Get(c.Tx, c.Cmd.Company, string(id)); ok {
				return replayed(c.Tx, u), nil
			}
		}
	}
	if w.Source == WakeOnDemand && (by.Type == "user" || by.Type == "agent") {
		if err := mayWork(c, a.ID, projectOfWork(c.Tx, a.Company, w.Issue)); err != nil {
			return nil, err
		}
		a, _ = Wakeable(c.Tx, a.Company, a.ID)
	}
	res, err := WakeAgent(c, a, w)
	if err != nil {
		return nil, err
	}
	if res.Status == WakeQueued && w.Source == WakeOnDemand {
		c.Record(ledger.Change{Action: "heartbeat.invoked", EntityType: "heartbeat_run", EntityID: res.Run.ID,
			Details: core.Object{}.Str("agentId", w.Agent).Close()})
	}
	return res, nil
}

// checkAbout refuses a wake about what its company has not.
func (w Wake) checkAbout(tx *ledger.Tx, company string) error {
	i, ok := IssueTable.Get(tx, company, w.Issue)
	if w.Issue != "" && !ok {
		return ErrNoIssue()
	}
	for _, linked := range w.LinkedIssues {
		if !tx.Has(IssueTable.Key(company, linked)) {
			return ErrNoIssue()
		}
	}
	if w.Comment != "" && !tx.Has(CommentAtKey(company, w.Comment)) {
		return ledger.Refuse(ledger.NotFound, nil, "Comment not found")
	}
	return checkWake(tx, company, i, w)
}

func replayed(tx *ledger.Tx, u Wakeup) WakeResult {
	res := WakeResult{Status: u.Status, Reason: string(u.Error)}
	if r, ok := RunTable.Get(tx, u.Company, string(u.Run)); ok {
		res.Run = &r
	}
	return res
}

// WakeAgent decides what a wake does, and does it: skip, merge, or queue a run.
func WakeAgent(c *ledger.Context, a WakeTarget, w Wake) (WakeResult, error) {
	u := Wakeup{
		ID: w.Wakeup, Company: a.Company, Agent: a.ID, Source: w.Source, TriggerDetail: core.NullText(w.TriggerDetail),
		Reason: core.NullText(w.Reason), Payload: w.Payload, Status: WakeQueued, IdempotencyKey: core.NullText(w.IdempotencyKey),
		ActorType: core.NullText(c.Cmd.Actor.Type), ActorID: core.NullText(c.Cmd.Actor.ID), RequestedAt: core.TimeOf(c.Now),
	}
	clock, _ := AgentClocks.Get(c.Tx, a.Company, a.ID)
	if day := c.Now.Format("2006-01-02"); clock.Day != day {
		clock.Day, clock.Runs = day, 0
	}
	live := LiveRunsOfAgent(c.Tx, a.Company, a.ID)
	ctx := w.context(c.Tx, a, c.Cmd.Actor)
	manual := w.manual(c.Cmd.Actor)
	if (a.PauseReason == PausedForBudget || ProjectStopped(c.Tx, a.Company, w.Issue)) && mayWork(c, a.ID, projectOfWork(c.Tx, a.Company, w.Issue)) == nil {
		a, _ = Wakeable(c.Tx, a.Company, a.ID) // the window of its budget has passed
	}
	if reason := skipReason(c.Tx, a, w, clock, live, ctx.Scope(), u.RequestedAt); reason != "" {
		u.Status, u.Error, u.FinishedAt = WakeSkipped, core.NullText(reason), u.RequestedAt
		KeepWakeup(c, u, clock)
		return WakeResult{Status: WakeSkipped, Reason: reason}, nil
	}
	if target := coalesceTarget(live, ctx, manual); target != nil {
		r := target.Absorb(ctx, u.RequestedAt)
		RunTable.Put(c.Tx, r.Company, r.ID, r)
		if i, ok := IssueTable.Get(c.Tx, r.Company, w.Issue); ok && w.atOnce && r.Status == RunScheduledRetry && r.ScheduledRetryAt > u.RequestedAt {
			r = tryNow(c, i, r)
		}
		u.Status, u.Run, u.FinishedAt = WakeCoalesced, core.NullText(r.ID), u.RequestedAt
		KeepWakeup(c, u, clock)
		if first, ok := Wakeups.Get(c.Tx, r.Company, string(r.WakeupRequest)); ok {
			first.CoalescedCount++
			first.UpdatedAt = u.RequestedAt
			Wakeups.Put(c.Tx, r.Company, first.ID, first)
		}
		return WakeResult{Status: WakeCoalesced, Run: &r}, nil
	}
	if len(live) >= MaxLiveRuns {
		if w.Source != WakeOnDemand { // what wakes must not fail because of it
			u.Status, u.Error, u.FinishedAt = WakeSkipped, "heartbeat.queue.full", u.RequestedAt
			KeepWakeup(c, u, clock)
			return WakeResult{Status: WakeSkipped, Reason: string(u.Error)}, nil
		}
		return WakeResult{}, ledger.Refuse(ledger.TooMany, nil, "Agent has %d runs waiting or at work; no more are queued", len(live))
	}
	if _, taken := RunByID(c.Tx, w.Run); taken || w.Run == "" {
		return WakeResult{}, ledger.Refuse(ledger.Conflict, nil, "a run with this ID exists")
	}
	r := newRun(a, w, ctx, u.RequestedAt)
	r.Manual = manual
	u.Run = core.NullText(r.ID)
	clock.Runs++
	KeepWakeup(c, u, clock)
	return WakeResult{Status: WakeQueued, Run: new(Enqueue(c, r))}, nil
}

// context is what the run of a wake is about.
func (w Wake) context(tx *ledger.Tx, a WakeTarget, by ledger.Actor) RunContext {
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
		if i, ok := IssueTable.Get(tx, a.Company, w.Issue); ok {
			ctx.ProjectID = i.Project
			if ctx.ResponsibleUserID == "" {
				ctx.ResponsibleUserID = i.ResponsibleUser
			}
		}
	}
	return ctx
}

// skipReason says why a wake is not acted on, or "".
func skipReason(tx *ledger.Tx, a WakeTarget, w Wake, clock agentClock, live []Run, scope string, now core.Time) string {
	p := a.Policy()
	if reason := a.Stopped(tx); reason != "" {
		return reason
	}
	if ProjectStopped(tx, a.Company, w.Issue) {
		return "budget.blocked"
	}
	if OnHold(tx, a.Company, w.Issue) {
		return "issue.tree_held"
	}
	switch {
	case w.Source == WakeTimer && !p.Enabled:
		return "heartbeat.disabled"
	case w.Source != WakeTimer && !p.WakeOnDemand:
		return "heartbeat.wakeOnDemand.disabled"
	case p.MaxDailyRuns > 0 && clock.Runs >= p.MaxDailyRuns:
		return "heartbeat.maxDailyRuns.reached"
	case p.MaxDailyCost > 0 && Ask.Today(tx, a.Company, a.ID, now) >= p.MaxDailyCost:
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

// Absorb returns r with what a merged wake adds to its context.
func (r Run) Absorb(ctx RunContext, now core.Time) Run {
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

// KeepWakeup stores a request, and drops the one that falls out of keptWakeups.
func KeepWakeup(c *ledger.Context, u Wakeup, clock agentClock) {
	if u.ID == "" {
		u.ID = core.DerivedID("wakeup", u.Agent, ledger.Order(c.Height), ledger.Order(clock.Wakes))
	}
	u.CreatedAt, u.UpdatedAt = u.RequestedAt, u.RequestedAt
	clock.Wakes++
	Wakeups.Put(c.Tx, u.Company, u.ID, u)
	c.Set(WakeupOrderKey(u.Company, u.Agent, clock.Wakes), []byte(u.ID))
	if u.IdempotencyKey != "" {
		c.Set(WakeupOnceKey(u.Company, u.Agent, string(u.IdempotencyKey)), []byte(u.ID))
	}
	if clock.Wakes > keptWakeups {
		key := WakeupOrderKey(u.Company, u.Agent, clock.Wakes-keptWakeups)
		if id, ok := c.Get(key); ok {
			if old, ok := Wakeups.Get(c.Tx, u.Company, string(id)); ok && old.IdempotencyKey != "" {
				c.Delete(WakeupOnceKey(u.Company, u.Agent, string(old.IdempotencyKey)))
			}
			Wakeups.Delete(c.Tx, u.Company, string(id))
			c.Delete(key)
		}
	}
	AgentClocks.Put(c.Tx, u.Company, u.Agent, clock)
}

// closeWakeup notes on a run's request what became of the run.
func closeWakeup(c *ledger.Context, r Run, status WakeStatus, reason core.NullText) {
	u, ok := Wakeups.Get(c.Tx, r.Company, string(r.WakeupRequest))
	if !ok {
		return // fell out of what is kept
	}
	u.Status, u.Error, u.UpdatedAt = status, reason, core.TimeOf(c.Now)
	if status == WakeClaimed {
		u.ClaimedAt = u.UpdatedAt
	} else {
		u.FinishedAt = u.UpdatedAt
	}
	Wakeups.Put(c.Tx, r.Company, u.ID, u)
}

// WakeupsOf returns the kept wakeup requests of an agent, newest first.
func WakeupsOf(tx *ledger.Tx, company, agent string) []Wakeup {
	from := ledger.Key("c", company, "wakeup-order", agent, "")
	var out []Wakeup
	for _, id := range tx.Scan(from, ledger.PrefixEnd(from), true) {
		if u, ok := Wakeups.Get(tx, company, string(id)); ok {
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
	DueAt   core.Time
}

// TimerOf returns the timer of an agent; ok is false when it has none. What
// fell due while nobody led fires once: the next tick counts from the last one
// that was due before it fired.
func TimerOf(tx *ledger.Tx, company, agent string) (t Timer, ok bool) {
	a, ok := Wakeable(tx, company, agent)
	if !ok || a.Gone() {
		return Timer{}, false
	}
	p := a.Policy()
	if !p.Enabled || p.IntervalSec <= 0 {
		return Timer{}, false
	}
	clock, _ := AgentClocks.Get(tx, company, agent)
	base := max(clock.TickAt, a.CreatedAt)
	return Timer{company, agent, clock.Tick + 1, base + core.Time(p.IntervalSec*1000)}, true
}

// Timers yields the timers of all companies.
func Timers(tx *ledger.Tx) iter.Seq[Timer] {
	return func(yield func(Timer) bool) {
		for company := range core.CompanyIDs(tx) {
			for agent := range AgentTable.All(tx, company) {
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
	if !ok || t.Seq != k.Seq || core.TimeOf(c.Now) < t.DueAt {
		return nil, ledger.Refuse(ledger.Conflict, nil, "tick %d of agent %s is not due", k.Seq, k.Agent)
	}
	a, _ := Wakeable(c.Tx, company, k.Agent)
	clock, _ := AgentClocks.Get(c.Tx, company, k.Agent)
	interval := core.Time(a.Policy().IntervalSec * 1000)
	clock.Tick, clock.TickAt = k.Seq, t.DueAt+(core.TimeOf(c.Now)-t.DueAt)/interval*interval
	AgentClocks.Put(c.Tx, company, k.Agent, clock)
	seq := ledger.Order(k.Seq)
	return WakeAgent(c, a, Wake{Agent: k.Agent, Source: WakeTimer, TriggerDetail: "system", Reason: "heartbeat_timer",
		Wakeup: core.DerivedID("tick", k.Agent, seq), Run: core.DerivedID("tick-run", k.Agent, seq)})
}

// WakeForAssignment wakes the agent to whom an issue was assigned that is ready
// to be worked on, or whose issue became ready, in the same command; before is
// the issue as it was, zero for a new one. An agent that took an issue itself
// is not woken for it. Work that goes on, or waits to be looked at, wakes the agent
// that it is handed to; what is blocked, or in a stage of its execution, has what
// brings it on. Whether a wake was acted on is recorded on its request; only a
// broken invariant is an error.
func WakeForAssignment(c *ledger.Context, before, i Issue) error {
	handed := before.Assignee != i.Assignee && (i.Status == IssueInProgress || i.Status == IssueInReview) &&
		(i.Execution == nil || i.Execution.Status != "pending")
	ready := i.Status == IssueTodo && (before.Assignee != i.Assignee || before.Status != i.Status)
	if i.Assignee == "" || !ready && !handed || core.IsAgent(c) && c.Cmd.Actor.ID == i.Assignee {
		return nil
	}
	from := "issue.update"
	if before.ID == "" {
		from = "issue.create"
	}
	return WakeForIssue(c, i, WakeAssignment, from, "issue_assigned", "")
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

func WakeForIssue(c *ledger.Context, i Issue, source WakeSource, from, reason, comment string) error {
	return wakeFor(c, i, source, from, reason, comment, false)
}

func wakeFor(c *ledger.Context, i Issue, source WakeSource, from, reason, comment string, atOnce bool) error {
	if c.Quiet {
		return nil
	}
	a, ok := Wakeable(c.Tx, i.Company, i.Assignee)
	if !ok {
		return nil
	}
	at := ledger.Order(c.Height)
	_, err := WakeAgent(c, a, Wake{Agent: i.Assignee, Source: source, TriggerDetail: "system", Reason: reason,
		Issue: i.ID, Comment: comment, From: from, atOnce: atOnce, Responsible: i.ResponsibleUser,
		Payload: core.Object{}.Str("issueId", i.ID).Str("mutation", reason).Close(),
		Wakeup:  core.DerivedID("issue-wake", i.ID, i.Assignee, at, reason), Run: core.DerivedID("issue-run", i.ID, i.Assignee, at, reason)})
	return err
}
