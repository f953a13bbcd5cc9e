package company

import (
	"cmp"
	"encoding/json"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// MaxResult bounds resultJson: two excerpts, escaped, and some more.
	MaxResult = 96 << 10
	// sweptRuns bounds the runs that one "node.lost" ends. The leader repeats it while the
	// answer says that more are left.
	sweptRuns = 16
	// maxReportEvents bounds the events of one report.
	maxReportEvents = 32
)

// Place is the payload of "run.place", by which the leader assigns a queued run to a node.
type Place struct {
	Run     string `cbor:"1,keyasint"`
	Node    string `cbor:"2,keyasint"`
	Session uint64 `cbor:"3,keyasint"` // the node's session, with which the run ends
	// Why is the leader's verdict on the nodes, for "run explain".
	Why *Placement `cbor:"4,keyasint,omitempty"`
}

// Return is the payload of "run.return", by which a node returns a run that it could not
// start.
type Return struct {
	Run    string `cbor:"1,keyasint"`
	Reason string `cbor:"2,keyasint,omitempty"`
}

// Start is the payload of "run.start", by which a node asks for the authority to execute a
// run. It starts nothing before the answer.
type Start struct {
	Run        string    `cbor:"1,keyasint"`
	LogStore   string    `cbor:"2,keyasint,omitempty"`
	LogRef     string    `cbor:"3,keyasint,omitempty"`
	LeaseUntil core.Time `cbor:"4,keyasint,omitempty"` // when the node's authority would end; for display
}

// Report is the payload of "run.report", which reports progress. Zero fields keep the
// stored value.
type Report struct {
	Run    string             `cbor:"1,keyasint"`
	Phase  entity.Phase       `cbor:"2,keyasint,omitempty"`
	PID    int64              `cbor:"3,keyasint,omitempty"`
	Group  int64              `cbor:"4,keyasint,omitempty"`
	Output *entity.OutputMark `cbor:"5,keyasint,omitempty"`
	Events []ReportEvent      `cbor:"6,keyasint,omitempty"`
	Place  *entity.RunPlace   `cbor:"7,keyasint,omitempty"`
}

// A ReportEvent is an event that a node reports of a run.
type ReportEvent struct {
	Type    string          `cbor:"1,keyasint"`
	Level   string          `cbor:"2,keyasint,omitempty"`
	Message string          `cbor:"3,keyasint,omitempty"`
	Payload json.RawMessage `cbor:"4,keyasint,omitempty"`
}

// An Outcome is the result of a run, from its adapter.
type Outcome struct {
	Status        entity.RunStatus `cbor:"1,keyasint"` // succeeded, failed, timed_out, cancelled or interrupted
	ExitCode      *int             `cbor:"2,keyasint,omitempty"`
	Signal        string           `cbor:"3,keyasint,omitempty"`
	Error         string           `cbor:"4,keyasint,omitempty"`
	ErrorCode     string           `cbor:"5,keyasint,omitempty"`
	Transient     bool             `cbor:"6,keyasint,omitempty"` // failed for a passing reason; a retry may help
	RetryNotEarly core.Time        `cbor:"7,keyasint,omitempty"` // with Transient: the earliest time of the retry
	Usage         *entity.Usage    `cbor:"8,keyasint,omitempty"`
	Result        json.RawMessage  `cbor:"9,keyasint,omitempty"` // resultJson, at most MaxResult
	Stdout        *string          `cbor:"10,keyasint,omitempty"`
	Stderr        *string          `cbor:"11,keyasint,omitempty"`
	// SessionID is the adapter's own session after the run, for the next run to resume, and
	// SessionParams what it needs for that. ClearSession deletes the stored one.
	SessionID     string          `cbor:"12,keyasint,omitempty"`
	SessionParams json.RawMessage `cbor:"13,keyasint,omitempty"`
	ClearSession  bool            `cbor:"14,keyasint,omitempty"`
	Cost          *entity.RunCost `cbor:"15,keyasint,omitempty"` // cost outside the gateway; nil: unknown
}

// Finish is the payload of "run.finish", which closes a run. The node submits it when every
// process of the run is gone.
type Finish struct {
	Run       string             `cbor:"1,keyasint"`
	Outcome   Outcome            `cbor:"2,keyasint"`
	LogBytes  *int64             `cbor:"3,keyasint,omitempty"`
	LogSHA256 string             `cbor:"4,keyasint,omitempty"`
	Output    *entity.OutputMark `cbor:"5,keyasint,omitempty"`
	Events    []ReportEvent      `cbor:"6,keyasint,omitempty"`
	PID       int64              `cbor:"7,keyasint,omitempty"` // if no report had it
	Group     int64              `cbor:"8,keyasint,omitempty"`
	Place     *entity.RunPlace   `cbor:"9,keyasint,omitempty"` // likewise
	// Decisions is the log of what the gate permitted at the node; nil: it has none.
	Decisions *entity.DecisionLog `cbor:"10,keyasint,omitempty"`
}

// Cancel is the payload of "run.cancel", which ends a run on request.
type Cancel struct {
	Run    string `cbor:"1,keyasint"`
	Reason string `cbor:"2,keyasint,omitempty"`
}

// TellLoss is the payload of "run.lost", by which a node that was lost and came back says
// why it could not renew its lease. It changes only the error text of a run of its own
// that ended with the lease.
type TellLoss struct {
	Run string `cbor:"1,keyasint"`
	Why string `cbor:"2,keyasint"` // at most MaxLossReason bytes
}

// MaxLossReason bounds the reason of a lost lease, in bytes.
const MaxLossReason = 300

// Lost is the answer of "node.lost": how many runs are left to end.
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
	{Name: KindRunPlace, From: FromNode, Weight: Weights.ByNodes, Do: ledger.Typed(placeRun)},
	{Name: KindRunUnplaced, From: FromNode, Weight: Weights.ByNodes, Do: ledger.Typed(unplaced)},
	{Name: KindRunReturn, From: FromNode, Weight: Weights.ByNodes, Do: ledger.Typed(returnRun)},
	{Name: KindRunStart, From: FromNode, Weight: Weights.ByNodes, Do: ledger.Typed(startRun)},
	{Name: KindRunReport, From: FromNode, Traits: NoWork, Weight: Weights.ByNodes, Do: ledger.Typed(reportRun)},
	{Name: KindRunFinish, From: FromNode, Weight: Weights.ByNodes, Do: ledger.Typed(FinishRun)},
	{Name: KindRunCancel, From: FromBoard | FromAgent | FromNode, Traits: FencesItself, Weight: Weights.Steering,
		Do: ledger.Typed(cancelRun)},
	{Name: KindRunRetryNow, From: FromBoard | FromAgent, Weight: Weights.Steering, Do: ledger.Typed(retryNow)},
	{Name: KindRunCallback, From: FromAgent, Traits: FencesItself, Weight: Weights.Reporting, Do: ledger.Typed(callBack)},
	{Name: KindNodeLost, From: FromNode, Weight: Weights.ByNodes, Do: ledger.Typed(loseNode)},
	{Name: KindRunLost, From: FromNode, Weight: Weights.ByNodes, Do: ledger.Typed(tellLoss)},
}

// newRun returns the run for a wake.
func newRun(a entity.WakeTarget, w entity.Wake, ctx entity.RunContext, now core.Time) entity.Run {
	return entity.Run{
		ID: w.Run, Company: a.Company, Agent: a.ID, Source: w.Source, TriggerDetail: core.NullText(w.TriggerDetail),
		Status: entity.RunQueued, ResponsibleUser: core.NullText(ctx.ResponsibleUserID),
		WakeupRequest: core.NullText(w.Wakeup),
		RuntimeMode:   "legacy", NextEventSeq: 1, IssueCommentStatus: "not_applicable", Context: ctx,
		CreatedAt: now, UpdatedAt: now, AdapterType: a.AdapterType,
	}
}

// Enqueue stores a new run and adds it to the queue.
func Enqueue(c *ledger.Context, r entity.Run) entity.Run {
	r.Queue = c.Height
	r = r.Reached(entity.PhaseWake, core.TimeOf(c.Now))
	r = queued(c.Tx, r, priorityOf(c.Tx, r))
	entity.RunTable.Put(c.Tx, r.Company, r.ID, r)
	RecordLive(c, ledger.Change{Action: "heartbeat.run.queued", EntityType: "heartbeat_run", EntityID: r.ID,
		Details: core.Object{}.Str("runId", r.ID).Str("agentId", r.Agent).Str("invocationSource", string(r.Source)).
			Null("triggerDetail", string(r.TriggerDetail)).Null("wakeupRequestId", string(r.WakeupRequest)).Close()})
	return r
}

// Live changes ("heartbeat.run.queued", ".status", ".event" and "agent.status") carry the
// payloads of the live events with the same name. A command that ends many runs leaves
// room in its entry for other changes and drops the live changes beyond that. Followers
// of a run read its row and its events.
const (
	maxLiveChanges     = 128
	maxLiveChangeBytes = 8 << 10
)

// recordStatus adds the changed status of r to the feed.
func recordStatus(c *ledger.Context, r entity.Run) {
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

// RunFor returns the run of a command.
func RunFor(c *ledger.Context, id string) (entity.Run, error) {
	r, ok := entity.RunTable.Get(c.Tx, c.Cmd.Company, id)
	if !ok {
		return entity.Run{}, ledger.Refuse(ledger.NotFound, nil, "Heartbeat run not found")
	}
	return r, nil
}

// OfNode returns the run if it belongs to the node and session that gave the command. A
// node that was lost and came back has another session.
func OfNode(c *ledger.Context, id string) (entity.Run, error) {
	r, err := RunFor(c, id)
	if err != nil {
		return entity.Run{}, err
	}
	if by := c.Cmd.Actor; by.Type != "node" || by.ID != r.Node || c.Session != r.Session || r.Session == 0 {
		return entity.Run{}, ledger.Refuse(ledger.Conflict, nil, "run %s is not placed on this node's session", id)
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
	case r.Status != entity.RunQueued && r.Status != entity.RunScheduledRetry || r.Session != 0:
		return nil, ledger.Refuse(ledger.Conflict, r.Standing(), "run %s does not wait for a node", r.ID)
	case r.Deferred(c.Tx):
		return nil, ledger.Refuse(ledger.Conflict, nil, "run %s waits until the one at work on its issue has ended", r.ID)
	case r.ScheduledRetryAt > core.TimeOf(c.Now):
		return nil, ledger.Refuse(ledger.Conflict, nil, "run %s is to be retried later", r.ID)
	case p.Session == 0 || p.Node == "" || !sessionOpen(c.Tx, p.Session, p.Node):
		return nil, ledger.Refuse(ledger.Conflict, nil, "node %s has no session %d", p.Node, p.Session)
	}
	if _, halted := entity.Halted(c.Tx); halted {
		return nil, ledger.Refuse(ledger.Conflict, nil, "everything is stopped")
	}
	if _, off := DutyOf(c.Tx, p.Node); off {
		return nil, ledger.Refuse(ledger.Conflict, nil, "node %s is cordoned", p.Node)
	}
	a, ok := entity.Wakeable(c.Tx, r.Company, r.Agent)
	if !ok || a.Stopped(c.Tx) != "" {
		return EndRun(c, r, Outcome{Status: entity.RunCancelled, Error: "Cancelled: the agent can not be invoked now",
			ErrorCode: "agent_not_invokable"}), nil
	}
	if n := entity.PlacedRuns(c.Tx, a); n >= a.Policy().MaxConcurrentRuns {
		return nil, ledger.Refuse(ledger.Conflict, nil, "agent %s has %d runs at work", r.Agent, n)
	}
	c.Delete(entity.QueueKey(r))
	r.Status, r.Node, r.Session, r.Owed, r.UpdatedAt = entity.RunQueued, p.Node, p.Session, true, core.TimeOf(c.Now)
	c.Set(entity.SessionKey(p.Session, r.ID), []byte(r.Company))
	entity.RunTable.Put(c.Tx, r.Company, r.ID, r)
	keepPlacement(c, r, p.Why)
	return r, nil
}

func returnRun(c *ledger.Context, p Return) (any, error) {
	r, err := OfNode(c, p.Run)
	if err != nil {
		return nil, err
	}
	if r.Status != entity.RunQueued {
		return nil, ledger.Refuse(ledger.Conflict, r.Standing(), "run %s has started", r.ID)
	}
	return requeue(c, r), nil
}

// requeue takes a run that has not started away from its node.
func requeue(c *ledger.Context, r entity.Run) entity.Run {
	c.Delete(entity.SessionKey(r.Session, r.ID))
	r.Node, r.Session, r.Owed, r.UpdatedAt = "", 0, false, core.TimeOf(c.Now)
	c.Set(entity.QueueKey(r), entity.QueueValue(r)) // at its old position
	entity.RunTable.Put(c.Tx, r.Company, r.ID, r)
	return r
}

// startRun authorises a node to execute a run that was placed on it, and checks out the
// run's issue in the same step. A run that is no longer needed is cancelled instead; the
// answer says so.
func startRun(c *ledger.Context, p Start) (any, error) {
	r, err := OfNode(c, p.Run)
	if err != nil {
		return nil, err
	}
	if r.Status != entity.RunQueued {
		return nil, ledger.Refuse(ledger.Conflict, r.Standing(), "run %s is %s", r.ID, r.Status)
	}
	if _, halted := entity.Halted(c.Tx); halted {
		return requeue(c, r), nil // it keeps its position in the queue
	}
	now := core.TimeOf(c.Now)
	a, ok := entity.Wakeable(c.Tx, r.Company, r.Agent)
	if !ok || a.Stopped(c.Tx) != "" {
		return handBack(c, EndRun(c, r, Outcome{Status: entity.RunCancelled,
			Error: "Cancelled: the agent can not be invoked now", ErrorCode: "agent_not_invokable"})), nil
	}
	if why := whyNotNeeded(c.Tx, r); why != "" {
		return handBack(c, EndRun(c, r, Outcome{Status: entity.RunCancelled, Error: why, ErrorCode: "stale_wake"})), nil
	}
	if entity.ProjectStopped(c.Tx, r.Company, r.Context.IssueID) {
		return handBack(c, DenyLive(c, r, DeniedBudget, "Cancelled: the budget hard-stop of the project was reached")), nil
	}
	if err := spent(c.Tx, r); err != nil {
		return handBack(c, EndRun(c, r, Outcome{Status: entity.RunCancelled, Error: "Cancelled: " + err.Error(),
			ErrorCode: "budget_refused"})), nil
	}
	r.Status, r.StartedAt, r.UpdatedAt = entity.RunRunning, now, now
	r.LogStore, r.LogRef = core.NullText(p.LogStore), core.NullText(p.LogRef)
	r.ControllerBoot, r.ControllerLeaseExpiresAt, r.ExecutionStage = core.NullText(r.Node), p.LeaseUntil, "dispatching"
	r.RuntimeModeResolverVersion, r.RuntimeModeReason, r.RuntimeModeResolvedAt = "phase6-v1", "direct_adapter", now
	r.RunnerProfileJSON = core.Object{}.Raw("adapterDispatch", core.Object{}.Str("adapterType", a.AdapterType).
		Close()).Close()
	r.AdapterType = a.AdapterType
	r.IdentityContext = core.NullText(core.DerivedID("identity", r.ID))
	r.Fingerprint = fingerprint(c.Tx, a.Agent)
	s, resumes := entity.SessionFor(c.Tx, r)
	if resumes {
		r.SessionBefore = s.SessionID
	}
	r.Freshness = freshness(resumes, sessionFingerprint(c.Tx, r), r.Fingerprint)
	r = r.Reached(entity.PhaseCheckQueue, now)
	entity.RunTable.Put(c.Tx, r.Company, r.ID, r)
	r = checkOutForRun(c, r)
	r = runStarted(c, r)
	r = addEvent(c, r, "lifecycle", "info", "run started", nil)
	entity.RunTable.Put(c.Tx, r.Company, r.ID, r)
	closeWakeup(c, r, entity.WakeClaimed, "")
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
	if r.Status != entity.RunRunning {
		return nil, ledger.Refuse(ledger.Conflict, r.Standing(), "run %s is %s", r.ID, r.Status)
	}
	now := core.TimeOf(c.Now)
	if p.Phase != "" {
		r = r.Reached(p.Phase, now)
	}
	heard := r.LastOutputSeq
	r = r.Process(p.PID, p.Group, now).Output(p.Output).Placed(p.Place)
	r = addEvents(c, r, p.Events)
	if r.LastOutputSeq > heard {
		recordProgress(c, r)
	}
	r.UpdatedAt = now
	entity.RunTable.Put(c.Tx, r.Company, r.ID, r)
	return r, nil
}

// addEvents stores the events that a node reports, in order, up to the bound.
func addEvents(c *ledger.Context, r entity.Run, events []ReportEvent) entity.Run {
	for _, e := range events[:min(len(events), maxReportEvents)] {
		r = addEvent(c, r, e.Type, cmp.Or(e.Level, "info"), e.Message, e.Payload)
	}
	return r
}

// recordProgress adds to the feed that r wrote to its log.
func recordProgress(c *ledger.Context, r entity.Run) {
	o := core.Object{}.Str("runId", r.ID).Str("agentId", r.Agent)
	if r.Context.IssueID != "" {
		o = o.Str("issueId", r.Context.IssueID)
	}
	RecordLive(c, ledger.Change{Action: "heartbeat.run.progress", EntityType: "heartbeat_run", EntityID: r.ID,
		Details: o.Str("phase", "run_activity").Str("message", "Receiving agent output").Null("currentToolName", "").
			Null("lastAssistantSnippet", "").
			Time("lastEventAt", r.LastOutputAt).Time("updatedAt", r.LastOutputAt).Close()})
}
