package company

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// MaxRunAttempts bounds how often work is started over because its node was
	// lost: the first run and two retries.
	MaxRunAttempts = 3
	// MaxFollowups bounds the runs that are queued because the one before ended
	// well but did not say what becomes of its issue. After that the issue is
	// blocked for the board to decide.
	MaxFollowups = 1
	// MaxTransientRetries and transientDelay bound the retries of a run that
	// failed for a passing reason of its upstream; the delay doubles each time.
	MaxTransientRetries = 2
	TransientDelay      = core.Time(30_000)
	// MaxExcerpt bounds each excerpt of output that a run carries in its row.
	MaxExcerpt = 16 << 10
	// MaxResult bounds resultJson: two excerpts, escaped, and some more.
	MaxResult = 96 << 10
	// MaxLiveRuns bounds the queued and running runs of one agent: ending them is
	// one command.
	MaxLiveRuns = 100
	// sweptRuns bounds the runs that one "node.lost" ends; the leader repeats it
	// while the answer says that there are more.
	sweptRuns = 16
	// maxReportEvents bounds the events of one report.
	maxReportEvents = 32
)

// Place gives a queued run to a node; it is the payload of "run.place", which
// the leader sends.
type Place struct {
	Run     string `cbor:"1,keyasint"`
	Node    string `cbor:"2,keyasint"`
	Session uint64 `cbor:"3,keyasint"` // the node's; the run lives and dies with it
	// Why is what the leader thought of the nodes; it is kept for whoever asks.
	Why *Placement `cbor:"4,keyasint,omitempty"`
}

// Return gives a run back that the node could not start; it is the payload of
// "run.return".
type Return struct {
	Run    string `cbor:"1,keyasint"`
	Reason string `cbor:"2,keyasint,omitempty"`
}

// Start asks for authority to carry a run out; it is the payload of
// "run.start". The node starts nothing before it has the answer.
type Start struct {
	Run        string    `cbor:"1,keyasint"`
	LogStore   string    `cbor:"2,keyasint,omitempty"`
	LogRef     string    `cbor:"3,keyasint,omitempty"`
	LeaseUntil core.Time `cbor:"4,keyasint,omitempty"` // when the node's authority would end; for display
}

// Report tells of progress; it is the payload of "run.report". Zero fields
// leave what is there.
type Report struct {
	Run    string        `cbor:"1,keyasint"`
	Phase  Phase         `cbor:"2,keyasint,omitempty"`
	PID    int64         `cbor:"3,keyasint,omitempty"`
	Group  int64         `cbor:"4,keyasint,omitempty"`
	Output *OutputMark   `cbor:"5,keyasint,omitempty"`
	Events []ReportEvent `cbor:"6,keyasint,omitempty"`
	Place  *RunPlace     `cbor:"7,keyasint,omitempty"`
}

// An OutputMark is how far a run's log has come.
type OutputMark struct {
	At     core.Time `cbor:"1,keyasint"`
	Seq    int64     `cbor:"2,keyasint"`
	Stream string    `cbor:"3,keyasint"`
	Bytes  int64     `cbor:"4,keyasint"`
}

// A ReportEvent is an event that a node reports of a run.
type ReportEvent struct {
	Type    string          `cbor:"1,keyasint"`
	Level   string          `cbor:"2,keyasint,omitempty"`
	Message string          `cbor:"3,keyasint,omitempty"`
	Payload json.RawMessage `cbor:"4,keyasint,omitempty"`
}

// An Outcome is what an adapter made of a run.
type Outcome struct {
	Status        RunStatus       `cbor:"1,keyasint"` // succeeded, failed, timed_out, cancelled or interrupted
	ExitCode      *int            `cbor:"2,keyasint,omitempty"`
	Signal        string          `cbor:"3,keyasint,omitempty"`
	Error         string          `cbor:"4,keyasint,omitempty"`
	ErrorCode     string          `cbor:"5,keyasint,omitempty"`
	Transient     bool            `cbor:"6,keyasint,omitempty"` // failed for a passing reason; worth a retry
	RetryNotEarly core.Time       `cbor:"7,keyasint,omitempty"` // with Transient: not before
	Usage         *Usage          `cbor:"8,keyasint,omitempty"`
	Result        json.RawMessage `cbor:"9,keyasint,omitempty"` // resultJson, at most MaxResult
	Stdout        *string         `cbor:"10,keyasint,omitempty"`
	Stderr        *string         `cbor:"11,keyasint,omitempty"`
	// SessionID is the adapter's own session after the run, to resume from;
	// SessionParams is what it needs for that. ClearSession drops what is kept.
	SessionID     string          `cbor:"12,keyasint,omitempty"`
	SessionParams json.RawMessage `cbor:"13,keyasint,omitempty"`
	ClearSession  bool            `cbor:"14,keyasint,omitempty"`
	Cost          *RunCost        `cbor:"15,keyasint,omitempty"` // besides the gateway; nil: nothing is known
}

// Finish closes a run; it is the payload of "run.finish", which the node sends
// when all children of the run are gone.
type Finish struct {
	Run       string        `cbor:"1,keyasint"`
	Outcome   Outcome       `cbor:"2,keyasint"`
	LogBytes  *int64        `cbor:"3,keyasint,omitempty"`
	LogSHA256 string        `cbor:"4,keyasint,omitempty"`
	Output    *OutputMark   `cbor:"5,keyasint,omitempty"`
	Events    []ReportEvent `cbor:"6,keyasint,omitempty"`
	PID       int64         `cbor:"7,keyasint,omitempty"` // when no report told it
	Group     int64         `cbor:"8,keyasint,omitempty"`
	Place     *RunPlace     `cbor:"9,keyasint,omitempty"` // likewise
}

// Cancel ends a run at somebody's wish; it is the payload of "run.cancel".
type Cancel struct {
	Run    string `cbor:"1,keyasint"`
	Reason string `cbor:"2,keyasint,omitempty"`
}

// NodeLost ends a node's session because its lease passed; it is the payload of
// "node.lost", which the leader sends.
type NodeLost struct {
	Node    string `cbor:"1,keyasint"`
	Session uint64 `cbor:"2,keyasint"`
	// Why is what the leader knows of the reason, at most MaxLossReason bytes.
	Why string `cbor:"3,keyasint,omitempty"`
}

// TellLoss is the payload of "run.lost", by which a node that was lost tells, when
// it is back, why: what it could not do meanwhile. It changes a run of its own
// that ended with its lease, and only the words that say so.
type TellLoss struct {
	Run string `cbor:"1,keyasint"`
	Why string `cbor:"2,keyasint"` // at most MaxLossReason bytes
}

// MaxLossReason bounds the reason of a lost lease, in bytes.
const MaxLossReason = 300

// Lost is what "node.lost" returns: how many runs are left to end.
type Lost struct {
	Left int `cbor:"1,keyasint"`
}

const (
	KindRunPlace    = "run.place"
	KindRunUnplaced = "run.unplaced"
	KindRunReturn   = "run.return"
	KindRunStart    = "run.start"
	KindRunReport   = "run.report"
	KindRunFinish   = "run.finish"
	KindRunCancel   = "run.cancel"
	KindRunRetryNow = "run.retry_now"
	KindRunCallback = "run.callback"
	KindNodeLost    = "node.lost"
	KindRunLost     = "run.lost"
)

var runKinds = []Kind{
	{Name: KindRunPlace, From: FromNode, Do: ledger.Typed(placeRun)},
	{Name: KindRunUnplaced, From: FromNode, Do: ledger.Typed(unplaced)},
	{Name: KindRunReturn, From: FromNode, Do: ledger.Typed(returnRun)},
	{Name: KindRunStart, From: FromNode, Do: ledger.Typed(startRun)},
	{Name: KindRunReport, From: FromNode, Traits: NoWork, Do: ledger.Typed(reportRun)},
	{Name: KindRunFinish, From: FromNode, Do: ledger.Typed(FinishRun)},
	{Name: KindRunCancel, From: FromBoard | FromAgent | FromNode, Traits: FencesItself, Do: ledger.Typed(cancelRun)},
	{Name: KindRunRetryNow, From: FromBoard | FromAgent, Do: ledger.Typed(retryNow)},
	{Name: KindRunCallback, From: FromAgent, Traits: FencesItself, Do: ledger.Typed(callBack)},
	{Name: KindNodeLost, From: FromNode, Do: ledger.Typed(loseNode)},
	{Name: KindRunLost, From: FromNode, Do: ledger.Typed(tellLoss)},
}

// newRun is the run that a wake makes.
func newRun(a WakeTarget, w Wake, ctx RunContext, now core.Time) Run {
	return Run{
		ID: w.Run, Company: a.Company, Agent: a.ID, Source: w.Source, TriggerDetail: core.NullText(w.TriggerDetail),
		Status: RunQueued, ResponsibleUser: core.NullText(ctx.ResponsibleUserID), WakeupRequest: core.NullText(w.Wakeup),
		RuntimeMode: "legacy", NextEventSeq: 1, IssueCommentStatus: "not_applicable", Context: ctx,
		CreatedAt: now, UpdatedAt: now, AdapterType: a.AdapterType,
	}
}

// Enqueue stores a new run and puts it into the queue.
func Enqueue(c *ledger.Context, r Run) Run {
	r.Queue = c.Height
	r = r.reached(PhaseWake, core.TimeOf(c.Now))
	c.Set(RunCompanyKey(r.ID), []byte(r.Company))
	r = r.wait(c.Tx, r.priority(c.Tx))
	RunsLive.Add(c.Tx, r.Company, r.Agent, r.ID)
	RunTable.Put(c.Tx, r.Company, r.ID, r)
	RecordLive(c, ledger.Change{Action: "heartbeat.run.queued", EntityType: "heartbeat_run", EntityID: r.ID,
		Details: core.Object{}.Str("runId", r.ID).Str("agentId", r.Agent).Str("invocationSource", string(r.Source)).
			Null("triggerDetail", string(r.TriggerDetail)).Null("wakeupRequestId", string(r.WakeupRequest)).Close()})
	return r
}

// reached returns r in phase p.
func (r Run) reached(p Phase, at core.Time) Run {
	if r.Phase != p {
		r.Phase = p
		r.Phases = append(slices.Clone(r.Phases), PhaseMark{p, at})
	}
	return r
}

// Live changes ("heartbeat.run.queued", ".status", ".event" and "agent.status")
// carry the payloads of the live events of the same name. A command that ends
// many runs leaves room for what else it records and drops those beyond;
// whoever follows a run reads its row and its events.
const (
	maxLiveChanges     = 128
	maxLiveChangeBytes = 8 << 10
)

// recordStatus tells the feed that r changed its status.
func recordStatus(c *ledger.Context, r Run) {
	o := core.Object{}.Str("runId", r.ID).Str("agentId", r.Agent)
	if r.Context.IssueID != "" {
		o = o.Str("issueId", r.Context.IssueID)
	}
	o = o.Str("status", string(r.Status)).Str("invocationSource", string(r.Source)).
		Null("triggerDetail", string(r.TriggerDetail)).Null("error", string(r.Error)).Null("errorCode", string(r.ErrorCode))
	if !r.Status.Live() && r.Context.Source != "" {
		o = o.Str("contextSource", r.Context.Source)
	}
	o = o.Time("startedAt", r.StartedAt).Time("finishedAt", r.FinishedAt)
	if !r.Status.Live() {
		o = o.Null("finalText", "")
	}
	RecordLive(c, ledger.Change{Action: "heartbeat.run.status", EntityType: "heartbeat_run", EntityID: r.ID,
		Details: o.Close()})
}

// RunFor returns the run that a command is about.
func RunFor(c *ledger.Context, id string) (Run, error) {
	r, ok := RunTable.Get(c.Tx, c.Cmd.Company, id)
	if !ok {
		return Run{}, ledger.Refuse(ledger.NotFound, nil, "Heartbeat run not found")
	}
	return r, nil
}

// OfNode returns the run if it belongs to the node and session that speak: a
// node that comes back after it was lost speaks in another session.
func OfNode(c *ledger.Context, id string) (Run, error) {
	r, err := RunFor(c, id)
	if err != nil {
		return Run{}, err
	}
	if by := c.Cmd.Actor; by.Type != "node" || by.ID != r.Node || c.Session != r.Session || r.Session == 0 {
		return Run{}, ledger.Refuse(ledger.Conflict, nil, "run %s is not placed on this node's session", id)
	}
	return r, nil
}

func placeRun(c *ledger.Context, p Place) (any, error) {
	r, err := RunFor(c, p.Run)
	if err != nil {
		return nil, err
	}
	switch {
	case c.Cmd.Actor.Type != "node":
		return nil, ledger.Refuse(ledger.Forbidden, nil, "runs are placed by the scheduler")
	case r.Status != RunQueued && r.Status != RunScheduledRetry || r.Session != 0:
		return nil, ledger.Refuse(ledger.Conflict, r.standing(), "run %s does not wait for a node", r.ID)
	case r.Deferred(c.Tx):
		return nil, ledger.Refuse(ledger.Conflict, nil, "run %s waits until the one at work on its issue has ended", r.ID)
	case r.ScheduledRetryAt > core.TimeOf(c.Now):
		return nil, ledger.Refuse(ledger.Conflict, nil, "run %s is to be retried later", r.ID)
	case p.Session == 0 || p.Node == "" || !sessionOpen(c.Tx, p.Session, p.Node):
		return nil, ledger.Refuse(ledger.Conflict, nil, "node %s has no session %d", p.Node, p.Session)
	}
	if _, halted := Halted(c.Tx); halted {
		return nil, ledger.Refuse(ledger.Conflict, nil, "everything is stopped")
	}
	if _, off := DutyOf(c.Tx, p.Node); off {
		return nil, ledger.Refuse(ledger.Conflict, nil, "node %s is cordoned", p.Node)
	}
	a, ok := Wakeable(c.Tx, r.Company, r.Agent)
	if !ok || a.Stopped(c.Tx) != "" {
		return EndRun(c, r, Outcome{Status: RunCancelled, Error: "Cancelled: the agent can not be invoked now", ErrorCode: "agent_not_invokable"}), nil
	}
	if n := placedRuns(c.Tx, a); n >= a.Policy().MaxConcurrentRuns {
		return nil, ledger.Refuse(ledger.Conflict, nil, "agent %s has %d runs at work", r.Agent, n)
	}
	c.Delete(QueueKey(r))
	r.Status, r.Node, r.Session, r.Owed, r.UpdatedAt = RunQueued, p.Node, p.Session, true, core.TimeOf(c.Now)
	c.Set(SessionKey(p.Session, r.ID), []byte(r.Company))
	RunTable.Put(c.Tx, r.Company, r.ID, r)
	keepPlacement(c, r, p.Why)
	return r, nil
}

// placedRuns counts the live runs of an agent that have a node.
func placedRuns(tx *ledger.Tx, a WakeTarget) int {
	n := 0
	for _, r := range LiveRunsOfAgent(tx, a.Company, a.ID) {
		if r.Session != 0 {
			n++
		}
	}
	return n
}

func returnRun(c *ledger.Context, p Return) (any, error) {
	r, err := OfNode(c, p.Run)
	if err != nil {
		return nil, err
	}
	if r.Status != RunQueued {
		return nil, ledger.Refuse(ledger.Conflict, r.standing(), "run %s has started", r.ID)
	}
	return requeue(c, r), nil
}

// requeue takes a run that has not started from its node.
func requeue(c *ledger.Context, r Run) Run {
	c.Delete(SessionKey(r.Session, r.ID))
	r.Node, r.Session, r.Owed, r.UpdatedAt = "", 0, false, core.TimeOf(c.Now)
	c.Set(QueueKey(r), QueueValue(r)) // where it was
	RunTable.Put(c.Tx, r.Company, r.ID, r)
	return r
}

// startRun makes a placed run the node's to carry out. The issue that it is
// about is checked out for it in the same step. A run whose reason is gone is
// cancelled instead; the answer tells.
func startRun(c *ledger.Context, p Start) (any, error) {
	r, err := OfNode(c, p.Run)
	if err != nil {
		return nil, err
	}
	if r.Status != RunQueued {
		return nil, ledger.Refuse(ledger.Conflict, r.standing(), "run %s is %s", r.ID, r.Status)
	}
	if _, halted := Halted(c.Tx); halted {
		return requeue(c, r), nil // it keeps its place in the queue
	}
	now := core.TimeOf(c.Now)
	a, ok := Wakeable(c.Tx, r.Company, r.Agent)
	if !ok || a.Stopped(c.Tx) != "" {
		return handBack(c, EndRun(c, r, Outcome{Status: RunCancelled, Error: "Cancelled: the agent can not be invoked now", ErrorCode: "agent_not_invokable"})), nil
	}
	if why := r.gone(c.Tx); why != "" {
		return handBack(c, EndRun(c, r, Outcome{Status: RunCancelled, Error: why, ErrorCode: "stale_wake"})), nil
	}
	if ProjectStopped(c.Tx, r.Company, r.Context.IssueID) {
		return handBack(c, DenyLive(c, r, DeniedBudget, "Cancelled: the budget hard-stop of the project was reached")), nil
	}
	if err := spent(c.Tx, r); err != nil {
		return handBack(c, EndRun(c, r, Outcome{Status: RunCancelled, Error: "Cancelled: " + err.Error(), ErrorCode: "budget_refused"})), nil
	}
	r.Status, r.StartedAt, r.UpdatedAt = RunRunning, now, now
	r.LogStore, r.LogRef = core.NullText(p.LogStore), core.NullText(p.LogRef)
	r.ControllerBoot, r.ControllerLeaseExpiresAt, r.ExecutionStage = core.NullText(r.Node), p.LeaseUntil, "dispatching"
	r.RuntimeModeResolverVersion, r.RuntimeModeReason, r.RuntimeModeResolvedAt = "phase6-v1", "direct_adapter", now
	r.RunnerProfileJSON = core.Object{}.Raw("adapterDispatch", core.Object{}.Str("adapterType", a.AdapterType).Close()).Close()
	r.AdapterType = a.AdapterType
	r.IdentityContext = core.NullText(core.DerivedID("identity", r.ID))
	r.Fingerprint = fingerprint(c.Tx, a.Agent)
	s, resumes := SessionFor(c.Tx, r)
	if resumes {
		r.SessionBefore = s.SessionID
	}
	r.Freshness = freshness(resumes, sessionFingerprint(c.Tx, r), r.Fingerprint)
	r = r.reached(PhaseCheckQueue, now)
	RunTable.Put(c.Tx, r.Company, r.ID, r)
	r = checkOutForRun(c, r)
	r = runStarted(c, r)
	r = addEvent(c, r, "lifecycle", "info", "run started", nil)
	RunTable.Put(c.Tx, r.Company, r.ID, r)
	closeWakeup(c, r, WakeClaimed, "")
	recordStatus(c, r)
	recordLease(c, r)
	setAgentRunning(c, a)
	return r, nil
}

func reportRun(c *ledger.Context, p Report) (any, error) {
	r, err := OfNode(c, p.Run)
	if err != nil {
		return nil, err
	}
	if r.Status != RunRunning {
		return nil, ledger.Refuse(ledger.Conflict, r.standing(), "run %s is %s", r.ID, r.Status)
	}
	now := core.TimeOf(c.Now)
	if p.Phase != "" {
		r = r.reached(p.Phase, now)
	}
	heard := r.LastOutputSeq
	r = r.process(p.PID, p.Group, now).output(p.Output).placed(p.Place)
	r = addEvents(c, r, p.Events)
	if r.LastOutputSeq > heard {
		recordProgress(c, r)
	}
	r.UpdatedAt = now
	RunTable.Put(c.Tx, r.Company, r.ID, r)
	return r, nil
}

func (r Run) process(pid, group int64, now core.Time) Run {
	if pid != 0 {
		r.ProcessPID, r.ProcessGroup, r.ProcessStartedAt = new(pid), new(group), now
	}
	return r
}

func (r Run) output(o *OutputMark) Run {
	if o != nil && o.Seq >= r.LastOutputSeq {
		r.LastOutputAt, r.LastOutputSeq, r.LastOutputStream, r.LastOutputBytes = o.At, o.Seq, core.NullText(o.Stream), new(o.Bytes)
	}
	return r
}

func (r Run) placed(p *RunPlace) Run {
	if p != nil && p.fits() {
		r.Place = p
	}
	return r
}

// addEvents stores what a node reports, in order, as far as it is not too much.
func addEvents(c *ledger.Context, r Run, events []ReportEvent) Run {
	for _, e := range events[:min(len(events), maxReportEvents)] {
		r = addEvent(c, r, e.Type, cmp.Or(e.Level, "info"), e.Message, e.Payload)
	}
	return r
}

// recordProgress tells the feed that r wrote something.
func recordProgress(c *ledger.Context, r Run) {
	o := core.Object{}.Str("runId", r.ID).Str("agentId", r.Agent)
	if r.Context.IssueID != "" {
		o = o.Str("issueId", r.Context.IssueID)
	}
	RecordLive(c, ledger.Change{Action: "heartbeat.run.progress", EntityType: "heartbeat_run", EntityID: r.ID,
		Details: o.Str("phase", "run_activity").Str("message", "Receiving agent output").Null("currentToolName", "").Null("lastAssistantSnippet", "").
			Time("lastEventAt", r.LastOutputAt).Time("updatedAt", r.LastOutputAt).Close()})
}

// standing is the detail of a refusal that has its reason in the run's status.
func (r Run) standing() []byte { return core.StatusDetail("runId", r.ID, r.Status) }

// A RunCost is what a run cost besides the model gateway, as its adapter tells:
// of agents that call their vendors with keys of their own. It is booked once for
// a run, as a reported cost: nothing was set aside for it, and whoever told it may
// be wrong.
type RunCost struct {
	Provider    string     `cbor:"1,keyasint"`
	Model       string     `cbor:"2,keyasint"`           // "" for unknown
	BillingType string     `cbor:"3,keyasint,omitempty"` // "" for unknown
	Usage       Usage      `cbor:"4,keyasint"`
	Cost        core.Money `cbor:"5,keyasint,omitempty"`
	Priced      bool       `cbor:"6,keyasint,omitempty"` // Cost is known; else nobody knows the price
}
