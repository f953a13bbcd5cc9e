package company

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/identity"
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
	transientDelay      = Time(30_000)
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
	Run        string `cbor:"1,keyasint"`
	LogStore   string `cbor:"2,keyasint,omitempty"`
	LogRef     string `cbor:"3,keyasint,omitempty"`
	LeaseUntil Time   `cbor:"4,keyasint,omitempty"` // when the node's authority would end; for display
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
	At     Time   `cbor:"1,keyasint"`
	Seq    int64  `cbor:"2,keyasint"`
	Stream string `cbor:"3,keyasint"`
	Bytes  int64  `cbor:"4,keyasint"`
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
	RetryNotEarly Time            `cbor:"7,keyasint,omitempty"` // with Transient: not before
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
}

// Lost is what "node.lost" returns: how many runs are left to end.
type Lost struct {
	Left int `cbor:"1,keyasint"`
}

func registerRun(m ledger.Mux) {
	ledger.Handle(m, "run.place", placeRun)
	ledger.Handle(m, "run.unplaced", unplaced)
	ledger.Handle(m, "run.return", returnRun)
	ledger.Handle(m, "run.start", startRun)
	ledger.Handle(m, "run.report", reportRun)
	ledger.Handle(m, "run.finish", finishRun)
	ledger.Handle(m, "run.cancel", cancelRun)
	ledger.Handle(m, "run.retry_now", retryNow)
	ledger.Handle(m, "run.callback", callBack)
	ledger.Handle(m, "node.lost", loseNode)
	registerRunCost(m)
	registerStranded(m)
}

// newRun is the run that a wake makes.
func newRun(a wakeTarget, w Wake, ctx RunContext, now Time) Run {
	return Run{
		ID: w.Run, Company: a.Company, Agent: a.ID, Source: w.Source, TriggerDetail: NullText(w.TriggerDetail),
		Status: RunQueued, ResponsibleUser: NullText(ctx.ResponsibleUserID), WakeupRequest: NullText(w.Wakeup),
		RuntimeMode: "legacy", NextEventSeq: 1, IssueCommentStatus: "not_applicable", Context: ctx,
		CreatedAt: now, UpdatedAt: now, AdapterType: a.AdapterType,
	}
}

// enqueue stores a new run and puts it into the queue.
func enqueue(c *ledger.Context, r Run) Run {
	r.Queue = c.Height
	r = r.reached(PhaseWake, TimeOf(c.Now))
	c.Set(runCompanyKey(r.ID), []byte(r.Company))
	r = r.wait(c.Tx, r.priority(c.Tx))
	runsByTime.Add(c.Tx, r.Company, allRuns, r.ref())
	runsByAgent.Add(c.Tx, r.Company, r.Agent, r.ref())
	runsLive.Add(c.Tx, r.Company, r.Agent, r.ID)
	if r.Context.IssueID != "" {
		runsByIssue.Add(c.Tx, r.Company, r.Context.IssueID, r.ref())
	}
	runs.Put(c.Tx, r.Company, r.ID, r)
	recordLive(c, ledger.Change{Action: "heartbeat.run.queued", EntityType: "heartbeat_run", EntityID: r.ID,
		Details: jsonObject{}.str("runId", r.ID).str("agentId", r.Agent).str("invocationSource", string(r.Source)).
			null("triggerDetail", string(r.TriggerDetail)).null("wakeupRequestId", string(r.WakeupRequest)).close()})
	return r
}

// reached returns r in phase p.
func (r Run) reached(p Phase, at Time) Run {
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

func recordLive(c *ledger.Context, ch ledger.Change) {
	n := len(ch.Details)
	for _, other := range c.Changes() {
		n += len(other.Details)
	}
	if n <= maxLiveChangeBytes && len(c.Changes()) < maxLiveChanges {
		c.Record(ch)
	}
}

// recordStatus tells the feed that r changed its status.
func recordStatus(c *ledger.Context, r Run) {
	o := jsonObject{}.str("runId", r.ID).str("agentId", r.Agent)
	if r.Context.IssueID != "" {
		o = o.str("issueId", r.Context.IssueID)
	}
	o = o.str("status", string(r.Status)).str("invocationSource", string(r.Source)).
		null("triggerDetail", string(r.TriggerDetail)).null("error", string(r.Error)).null("errorCode", string(r.ErrorCode))
	if !r.Status.Live() && r.Context.Source != "" {
		o = o.str("contextSource", r.Context.Source)
	}
	o = o.time("startedAt", r.StartedAt).time("finishedAt", r.FinishedAt)
	if !r.Status.Live() {
		o = o.null("finalText", "")
	}
	recordLive(c, ledger.Change{Action: "heartbeat.run.status", EntityType: "heartbeat_run", EntityID: r.ID,
		Details: o.close()})
}

// runOf returns the run that a command is about.
func runOf(c *ledger.Context, id string) (Run, error) {
	r, ok := runs.Get(c.Tx, c.Cmd.Company, id)
	if !ok {
		return Run{}, ledger.Refuse(ledger.NotFound, nil, "Heartbeat run not found")
	}
	return r, nil
}

// ofNode returns the run if it belongs to the node and session that speak: a
// node that comes back after it was lost speaks in another session.
func ofNode(c *ledger.Context, id string) (Run, error) {
	r, err := runOf(c, id)
	if err != nil {
		return Run{}, err
	}
	if by := c.Cmd.Actor; by.Type != "node" || by.ID != r.Node || c.Session != r.Session || r.Session == 0 {
		return Run{}, ledger.Refuse(ledger.Conflict, nil, "run %s is not placed on this node's session", id)
	}
	return r, nil
}

func placeRun(c *ledger.Context, p Place) (any, error) {
	r, err := runOf(c, p.Run)
	if err != nil {
		return nil, err
	}
	switch {
	case c.Cmd.Actor.Type != "node":
		return nil, ledger.Refuse(ledger.Forbidden, nil, "runs are placed by the scheduler")
	case r.Status != RunQueued && r.Status != RunScheduledRetry || r.Session != 0:
		return nil, ledger.Refuse(ledger.Conflict, r.standing(), "run %s does not wait for a node", r.ID)
	case r.deferred(c.Tx):
		return nil, ledger.Refuse(ledger.Conflict, nil, "run %s waits until the one at work on its issue has ended", r.ID)
	case r.ScheduledRetryAt > TimeOf(c.Now):
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
	a, ok := wakeable(c.Tx, r.Company, r.Agent)
	if !ok || a.stopped(c.Tx) != "" {
		return endRun(c, r, Outcome{Status: RunCancelled, Error: "Cancelled: the agent can not be invoked now", ErrorCode: "agent_not_invokable"}), nil
	}
	if n := placedRuns(c.Tx, a); n >= a.policy().MaxConcurrentRuns {
		return nil, ledger.Refuse(ledger.Conflict, nil, "agent %s has %d runs at work", r.Agent, n)
	}
	c.Delete(queueKey(r))
	r.Status, r.Node, r.Session, r.Owed, r.UpdatedAt = RunQueued, p.Node, p.Session, true, TimeOf(c.Now)
	c.Set(sessionKey(p.Session, r.ID), []byte(r.Company))
	runs.Put(c.Tx, r.Company, r.ID, r)
	keepPlacement(c, r, p.Why)
	return r, nil
}

// placedRuns counts the live runs of an agent that have a node.
func placedRuns(tx *ledger.Tx, a wakeTarget) int {
	n := 0
	for _, r := range LiveRunsOfAgent(tx, a.Company, a.ID) {
		if r.Session != 0 {
			n++
		}
	}
	return n
}

func returnRun(c *ledger.Context, p Return) (any, error) {
	r, err := ofNode(c, p.Run)
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
	c.Delete(sessionKey(r.Session, r.ID))
	r.Node, r.Session, r.Owed, r.UpdatedAt = "", 0, false, TimeOf(c.Now)
	c.Set(queueKey(r), queueValue(r)) // where it was
	runs.Put(c.Tx, r.Company, r.ID, r)
	return r
}

// startRun makes a placed run the node's to carry out. The issue that it is
// about is checked out for it in the same step. A run whose reason is gone is
// cancelled instead; the answer tells.
func startRun(c *ledger.Context, p Start) (any, error) {
	r, err := ofNode(c, p.Run)
	if err != nil {
		return nil, err
	}
	if r.Status != RunQueued {
		return nil, ledger.Refuse(ledger.Conflict, r.standing(), "run %s is %s", r.ID, r.Status)
	}
	if _, halted := Halted(c.Tx); halted {
		return requeue(c, r), nil // it keeps its place in the queue
	}
	now := TimeOf(c.Now)
	a, ok := wakeable(c.Tx, r.Company, r.Agent)
	if !ok || a.stopped(c.Tx) != "" {
		return handBack(c, endRun(c, r, Outcome{Status: RunCancelled, Error: "Cancelled: the agent can not be invoked now", ErrorCode: "agent_not_invokable"})), nil
	}
	if why := r.gone(c.Tx); why != "" {
		return handBack(c, endRun(c, r, Outcome{Status: RunCancelled, Error: why, ErrorCode: "stale_wake"})), nil
	}
	if r.exhausted(c.Tx) {
		return handBack(c, endRun(c, r, Outcome{Status: RunCancelled, Error: "Cancelled: what the work on the issue may cost is spent", ErrorCode: "budget_refused"})), nil
	}
	r.Status, r.StartedAt, r.UpdatedAt = RunRunning, now, now
	r.LogStore, r.LogRef = NullText(p.LogStore), NullText(p.LogRef)
	r.ControllerBoot, r.ControllerLeaseExpiresAt, r.ExecutionStage = NullText(r.Node), p.LeaseUntil, "dispatching"
	r.RuntimeModeResolverVersion, r.RuntimeModeReason, r.RuntimeModeResolvedAt = "phase6-v1", "direct_adapter", now
	r.RunnerProfileJSON = jsonObject{}.raw("adapterDispatch", jsonObject{}.str("adapterType", a.AdapterType).close()).close()
	r.AdapterType = a.AdapterType
	r.IdentityContext = NullText(derivedID("identity", r.ID))
	r.Fingerprint = fingerprint(c.Tx, a.Agent)
	s, resumes := sessionFor(c.Tx, r)
	if resumes {
		r.SessionBefore = s.SessionID
	}
	r.Freshness = freshness(resumes, sessionFingerprint(c.Tx, r), r.Fingerprint)
	r = r.reached(PhaseCheckQueue, now)
	runs.Put(c.Tx, r.Company, r.ID, r)
	r = checkOutForRun(c, r)
	r = openWorkspace(c, r)
	r = addEvent(c, r, "lifecycle", "info", "run started", nil)
	runs.Put(c.Tx, r.Company, r.ID, r)
	closeWakeup(c, r, WakeClaimed, "")
	recordStatus(c, r)
	recordLease(c, r)
	setAgentRunning(c, a)
	return r, nil
}

func reportRun(c *ledger.Context, p Report) (any, error) {
	r, err := ofNode(c, p.Run)
	if err != nil {
		return nil, err
	}
	if r.Status != RunRunning {
		return nil, ledger.Refuse(ledger.Conflict, r.standing(), "run %s is %s", r.ID, r.Status)
	}
	now := TimeOf(c.Now)
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
	runs.Put(c.Tx, r.Company, r.ID, r)
	return r, nil
}

func (r Run) process(pid, group int64, now Time) Run {
	if pid != 0 {
		r.ProcessPID, r.ProcessGroup, r.ProcessStartedAt = new(pid), new(group), now
	}
	return r
}

func (r Run) output(o *OutputMark) Run {
	if o != nil && o.Seq >= r.LastOutputSeq {
		r.LastOutputAt, r.LastOutputSeq, r.LastOutputStream, r.LastOutputBytes = o.At, o.Seq, NullText(o.Stream), new(o.Bytes)
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
	o := jsonObject{}.str("runId", r.ID).str("agentId", r.Agent)
	if r.Context.IssueID != "" {
		o = o.str("issueId", r.Context.IssueID)
	}
	recordLive(c, ledger.Change{Action: "heartbeat.run.progress", EntityType: "heartbeat_run", EntityID: r.ID,
		Details: o.str("phase", "run_activity").str("message", "Receiving agent output").null("currentToolName", "").null("lastAssistantSnippet", "").
			time("lastEventAt", r.LastOutputAt).time("updatedAt", r.LastOutputAt).close()})
}

// standing is the detail of a refusal that has its reason in the run's status.
func (r Run) standing() []byte { return statusDetail("runId", r.ID, r.Status) }

// finishRun closes a run: its outcome, its log's hash, the locks that it held,
// its agent's state and what follows, all in one step. For a run that was ended
// meanwhile it only notes that the children are gone.
func finishRun(c *ledger.Context, p Finish) (any, error) {
	r, err := ofNode(c, p.Run)
	if err != nil {
		return nil, err
	}
	if !r.Owed {
		return nil, ledger.Refuse(ledger.Conflict, r.standing(), "run %s is over", r.ID)
	}
	if len(p.Outcome.Result) > MaxResult {
		return nil, ledger.Refuse(ledger.TooLarge, nil, "result of %d bytes exceeds %d", len(p.Outcome.Result), MaxResult)
	}
	r.LogBytes, r.LogSHA256 = p.LogBytes, NullText(p.LogSHA256)
	dueLog(c, r)
	heard := r.LastOutputSeq
	r = r.process(p.PID, p.Group, TimeOf(c.Now)).output(p.Output).placed(p.Place)
	if r.Status.Live() {
		if r.LastOutputSeq > heard {
			recordProgress(c, r)
		}
		// What the adapter did after the end comes after it.
		before, after := p.Events, []ReportEvent(nil)
		if n := slices.IndexFunc(p.Events, func(e ReportEvent) bool { return e.Type == "lifecycle" }); n >= 0 {
			before, after = p.Events[:n], p.Events[n:]
		}
		r = addEvents(c, r, before)
		if r.Phase == PhaseCheckQueue {
			r = r.reached(PhaseExecute, r.StartedAt)
		}
		r = endRun(c, r.reached(PhaseSleep, TimeOf(c.Now)).reached(PhaseReport, TimeOf(c.Now)), p.Outcome)
		r = addEvents(c, r, after)
	} else {
		r.UpdatedAt = TimeOf(c.Now)
	}
	r = handBack(c, r)
	if err := c.Try(func(c *ledger.Context) error { return bookRunCost(c, r, p.Outcome.Cost) }); err != nil {
		r = addEvent(c, r, "error", "warn", "What the run cost was not booked: "+err.Error(), nil)
		runs.Put(c.Tx, r.Company, r.ID, r)
	}
	return r, nil
}

// handBack notes that nothing of r is left on its node, and lets go of what was
// kept for it until then.
func handBack(c *ledger.Context, r Run) Run {
	releaseLocksOfRun(c, r.Company, r.ID)
	c.Delete(sessionKey(r.Session, r.ID))
	r.Owed, r.ControlDeadlineAt = false, 0
	runs.Put(c.Tx, r.Company, r.ID, r)
	return r
}

// endRun gives a live run its outcome: everything that hung on it is let go.
func endRun(c *ledger.Context, r Run, o Outcome) Run {
	now := TimeOf(c.Now)
	started := r.Status == RunRunning
	if r.Session == 0 {
		c.Delete(queueKey(r))
	}
	runsLive.Remove(c.Tx, r.Company, r.Agent, r.ID)
	callbacks.Delete(c.Tx, r.Company, r.ID)
	r.Status, r.FinishedAt, r.UpdatedAt, r.Closed = o.Status, now, now, c.Height
	r.ExitCode, r.Signal, r.Error, r.ErrorCode = o.ExitCode, NullText(o.Signal), NullText(o.Error), NullText(o.ErrorCode)
	r.ResultJSON, r.StdoutExcerpt, r.StderrExcerpt = o.Result, o.Stdout, o.Stderr
	var decision []byte
	if started && r.Status != RunCancelled {
		r.ResultJSON, decision = runResult(c, r, o.Result)
	}
	if o.Usage != nil {
		r.UsageJSON = jsonObject{}.int("inputTokens", o.Usage.InputTokens).int("outputTokens", o.Usage.OutputTokens).
			int("cachedInputTokens", o.Usage.CachedInputTokens).close()
	}
	if started {
		r.StatusDelivery = NullText(derivedID("delivery", r.ID))
		keepSession(c, &r, o)
	}
	if !(started && r.Status == RunCancelled && r.Owed) {
		// What a cancelled run holds stays held while its children may still be at
		// work: until its node says that they are gone, or is lost.
		releaseLocksOfRun(c, r.Company, r.ID)
	}
	r = r.livelihood(c.Tx)
	level, closed := "info", WakeCompleted
	switch r.Status {
	case RunSucceeded:
	case RunCancelled:
		level, closed = "warn", WakeCancelled
	default:
		level, closed = "error", WakeFailed
	}
	if started || r.Status != RunCancelled {
		payload := jsonObject{}.str("status", string(r.Status))
		if r.ExitCode != nil {
			payload = payload.int("exitCode", int64(*r.ExitCode))
		}
		if r.ErrorCode != "" {
			payload = payload.str("errorCode", string(r.ErrorCode))
		}
		recordStatus(c, r)
		r = addEvent(c, r, "lifecycle", level, "run "+string(r.Status), payload.close())
		if decision != nil {
			r = addEvent(c, r, "run.presentation.resolved", "info", "run presentation resolved", jsonObject{}.raw("presentationDecision", decision).close())
		}
	} else {
		recordStatus(c, r)
	}
	runs.Put(c.Tx, r.Company, r.ID, r)
	closeWakeup(c, r, closed, r.Error)
	next := followUp(c, r, o)
	settleAgent(c, r, started, next)
	if started {
		recordLease(c, r)
		settleHold(c, r)
		breakCircuit(c, r)
	}
	return r
}

// silent reports whether a run wrote nothing; what its node adds does not count.
func (r Run) silent() bool {
	if r.StdoutExcerpt != nil && r.StderrExcerpt != nil {
		return *r.StdoutExcerpt == "" && *r.StderrExcerpt == ""
	}
	return r.LastOutputSeq == 0
}

// livelihood says in words that clients know how a run went.
func (r Run) livelihood(tx *ledger.Tx) Run {
	switch r.Status {
	case RunSucceeded:
		i, bound := issues.Get(tx, r.Company, r.Context.IssueID)
		switch {
		case bound && undecided(i, r) && r.silent():
			r.LivenessState, r.LivenessReason = "empty_response", "Run ended well but wrote nothing and left its issue as it was"
		case bound && undecided(i, r):
			r.LivenessState, r.LivenessReason = "needs_followup", "Run ended without saying what becomes of its issue"
		case bound && i.Status.Terminal():
			r.LivenessState, r.LivenessReason = "completed", NullText("Run ended well; its issue is "+string(i.Status))
			r.LastUsefulActionAt = max(r.LastOutputAt, r.StartedAt)
		case r.silent():
			r.LivenessState, r.LivenessReason = "empty_response", "Run ended well but wrote nothing"
		default:
			r.LivenessState, r.LivenessReason = "advanced", "Run ended well"
			r.LastUsefulActionAt = max(r.LastOutputAt, r.StartedAt)
		}
	case RunFailed, RunTimedOut, RunInterrupted:
		r.LivenessState = "failed"
		r.LivenessReason = NullText("Run ended with " + string(r.Status) + " (" + string(r.ErrorCode) + ")")
	}
	return r
}

// undecided reports whether an issue is where a run of its assignee left it
// without a word: still in progress, and not waiting for something outside.
func undecided(i Issue, r Run) bool {
	return r.Context.CheckedOut && i.Assignee == r.Agent && i.Status == IssueInProgress && !i.monitors()
}

// followUp queues what has to come after r, and returns it: a retry where the
// node was lost, the upstream failed for a moment or the run failed on its issue,
// a follow-up where the issue was left undecided. Each is bounded; past the bound the issue is
// blocked for a person to decide.
func followUp(c *ledger.Context, r Run, o Outcome) *Run {
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

func cancelRun(c *ledger.Context, p Cancel) (any, error) {
	r, err := runOf(c, p.Run)
	if err != nil {
		return nil, err
	}
	by := c.Cmd.Actor
	if by.Type == "agent" && by.ID != r.Agent {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "Agent can only cancel its own runs")
	}
	if !r.Status.Live() {
		return r, nil // over already; asking again changes nothing
	}
	r = cancelLive(c, r, cmp.Or(p.Reason, "Cancelled by a board operator"), by)
	c.Record(ledger.Change{Action: "heartbeat.cancelled", EntityType: "heartbeat_run", EntityID: r.ID,
		Details: jsonObject{}.str("agentId", r.Agent).close()})
	return r, nil
}

// cancelLive ends a live run: what its children still write through the API is
// refused from here on, because their run is not alive. Its node kills them and
// says so with "run.finish"; the run's locks are held until then.
func cancelLive(c *ledger.Context, r Run, why string, by ledger.Actor) Run {
	return cancelFor(c, r, why, by, "")
}

// cancelFor is cancelLive, and says whether governance ended the run.
func cancelFor(c *ledger.Context, r Run, why string, by ledger.Actor, denied Denial) Run {
	r.ControlDeadlineAt = TimeOf(c.Now) + 60_000
	limit, source := int64(0), "default"
	if a, ok := wakeable(c.Tx, r.Company, r.Agent); ok {
		if limit = timeLimit(a.AdapterConfig); limit > 0 {
			source = "config"
		}
	}
	result := jsonObject{}.str("stopReason", "cancelled").bool("timeoutFired", false).str("timeoutSource", source).
		bool("timeoutConfigured", source == "config").int("effectiveTimeoutSec", limit)
	if by.Type == "user" {
		result = result.str("cancelledByUserId", by.ID)
	}
	result = result.str("cancelledByActorType", by.Type).
		raw("executionCancellation", jsonObject{}.str("state", "acknowledged").time("acknowledgedAt", TimeOf(c.Now)).close())
	if denied != "" {
		result = result.str("deniedBy", string(denied))
		if r.AdapterType == "wasm" {
			result = result.str("sandboxError", GovernanceDenied)
		}
	}
	return endRun(c, r, Outcome{Status: RunCancelled, Error: why, ErrorCode: "cancelled", Result: result.close()})
}

// cancelRunsOfAgent ends every live run of an agent, because it was paused,
// terminated or deleted, or a budget was reached.
func cancelRunsOfAgent(c *ledger.Context, company, agent string, denied Denial, reason string) {
	for _, r := range LiveRunsOfAgent(c.Tx, company, agent) {
		denyLive(c, r, denied, reason)
	}
}

// loseNode ends a session whose lease passed: its ledger session, so that
// nothing more lands from it, and its runs, whose locks are freed. A run that
// had not started goes back to the queue as it is.
func loseNode(c *ledger.Context, p NodeLost) (any, error) {
	if c.Cmd.Actor.Type != "node" {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "nodes are declared lost by the scheduler")
	}
	ledger.EndSession(c, p.Session)
	all := RunsOfSession(c.Tx, p.Session)
	lost := 0
	for _, r := range all[:min(len(all), sweptRuns)] {
		switch {
		case r.Status == RunQueued:
			requeue(c, r)
			continue
		case r.Status == RunRunning:
			handBack(c, endRun(c, r, Outcome{Status: RunInterrupted, ErrorCode: "node_lost",
				Error: "The node that carried out this run was lost"}))
		default:
			handBack(c, r)
		}
		lost++
	}
	left := len(all) - min(len(all), sweptRuns)
	loseOperations(c, p.Node)
	loseServices(c, p.Node)
	if left == 0 { // what is left names runs of deleted companies
		for k := range c.Prefix(sessionKey(p.Session, "")) {
			c.Delete(k)
		}
	}
	c.Record(ledger.Change{Action: "node.lost", EntityType: "node", EntityID: p.Node,
		Details: jsonObject{}.uint("session", p.Session).int("runs", int64(lost)).close()})
	return Lost{Left: left}, nil
}

// RunsOfSession returns the runs that a session has not given back, by ID.
func RunsOfSession(tx *ledger.Tx, session uint64) []Run {
	prefix := ledger.Key("sched", "session", ledger.Order(session), "")
	var out []Run
	for k, company := range tx.Prefix(prefix) {
		if r, ok := runs.Get(tx, string(company), string(k[len(prefix):])); ok {
			out = append(out, r)
		}
	}
	return out
}

// CountRunsOfSession is how many runs a session has not given back.
func CountRunsOfSession(tx *ledger.Tx, session uint64) (n int) {
	for range tx.Prefix(ledger.Key("sched", "session", ledger.Order(session), "")) {
		n++
	}
	return n
}

// SessionsWithRuns returns the sessions that have runs to give back, with their
// nodes, by session.
func SessionsWithRuns(tx *ledger.Tx) []NodeLost {
	var out []NodeLost
	prefix := ledger.Key("sched", "session", "")
	for from := prefix; ; {
		next, found := NodeLost{}, false
		for k, company := range tx.Scan(from, ledger.PrefixEnd(prefix), false) {
			session, run := parseSessionKey(k[len(prefix):])
			r, _ := runs.Get(tx, string(company), run)
			next, found = NodeLost{r.Node, session}, true
			break
		}
		if !found {
			return out
		}
		out = append(out, next)
		from = ledger.PrefixEnd(ledger.Key("sched", "session", ledger.Order(next.Session), ""))
	}
}

// SessionsAtWork returns the sessions whose node somebody relies on: those with
// runs, and those of nodes with a service or a workspace's command under way. By session.
func SessionsAtWork(tx *ledger.Tx) []NodeLost {
	out := SessionsWithRuns(tx)
	busy := func(family string, at func(company, id string) bool) {
		prefix := ledger.Key(family, "")
		for from := prefix; from != nil; {
			node, works := "", false
			for k, of := range tx.Scan(from, ledger.PrefixEnd(prefix), false) {
				n, id, _ := strings.Cut(string(k[len(prefix):]), "/")
				if node != "" && n != node {
					break
				}
				if node = n; at(string(of), id) {
					works = true
					break
				}
			}
			if node == "" {
				return
			}
			if s, ok := ledger.SessionOf(tx, identity.NodeID(node)); ok && works &&
				!slices.ContainsFunc(out, func(l NodeLost) bool { return l.Session == s.ID }) {
				out = append(out, NodeLost{node, s.ID})
			}
			from = ledger.PrefixEnd(ledger.Key(family, node, ""))
		}
	}
	busy(serviceNodes, func(of, id string) bool {
		s, ok := services.Get(tx, of, id)
		return ok && s.Status != ServiceStopped && s.Status != ServiceFailed
	})
	busy(operationNodes, func(string, string) bool { return true })
	slices.SortFunc(out, func(a, b NodeLost) int { return cmp.Compare(a.Session, b.Session) })
	return out
}

func parseSessionKey(rest []byte) (session uint64, run string) {
	order, run, _ := strings.Cut(string(rest), "/")
	session, _ = strconv.ParseUint(order, 16, 64)
	return session, run
}

// sessionOpen reports whether a session is node's and has not ended.
func sessionOpen(tx *ledger.Tx, session uint64, node string) bool {
	s, ok := ledger.FindSession(tx, session)
	return ok && s.EndedAt == 0 && string(s.Node) == node
}
