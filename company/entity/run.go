package entity

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A RunStatus is the status of a run. Persisted: do not rename.
type RunStatus string

const (
	RunQueued         RunStatus = "queued"          // waits for a node, or for the node to start it
	RunScheduledRetry RunStatus = "scheduled_retry" // queued, but not before ScheduledRetryAt
	RunRunning        RunStatus = "running"         // its node has authority over it
	RunSucceeded      RunStatus = "succeeded"
	RunFailed         RunStatus = "failed"
	RunCancelled      RunStatus = "cancelled"
	RunTimedOut       RunStatus = "timed_out"
	RunInterrupted    RunStatus = "interrupted" // its node was lost, or returned it
)

// RunStatuses lists every status of a run.
var RunStatuses = []RunStatus{RunQueued, RunScheduledRetry, RunRunning, RunSucceeded, RunFailed, RunCancelled,
	RunTimedOut, RunInterrupted}

// Live reports whether a run with this status may still work.
func (s RunStatus) Live() bool {
	return s == RunQueued || s == RunScheduledRetry || s == RunRunning
}

// A Phase is the progress of a run on its node. Persisted: do not rename.
type Phase string

const (
	PhaseWake       Phase = "wake"        // the wake was accepted, a run exists
	PhaseCheckQueue Phase = "check_queue" // a node took it and checks whether it is needed
	PhaseExecute    Phase = "execute"     // the adapter works
	PhaseSleep      Phase = "sleep"       // the adapter is done, its processes are gone
	PhaseReport     Phase = "report"      // the outcome is recorded
)

// A Run is one heartbeat of one agent: why it was woken, where it runs, and how it ended.
// The JSON keys are those of the contract, in its order. Keys without a value here are null.
type Run struct {
	ID                         string           `cbor:"1,keyasint" json:"id"`
	Company                    ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Agent                      string           `cbor:"3,keyasint" json:"agentId"`
	Source                     WakeSource       `cbor:"4,keyasint" json:"invocationSource"`
	TriggerDetail              core.NullText    `cbor:"5,keyasint,omitempty" json:"triggerDetail"`
	Status                     RunStatus        `cbor:"6,keyasint" json:"status"`
	ResponsibleUser            core.NullText    `cbor:"7,keyasint,omitempty" json:"responsibleUserId"`
	IdentityContext            core.NullText    `cbor:"8,keyasint,omitempty" json:"activeIdentityContextId"`
	StartedAt                  core.Time        `cbor:"9,keyasint,omitempty" json:"startedAt"`
	FinishedAt                 core.Time        `cbor:"10,keyasint,omitempty" json:"finishedAt"`
	ControlDeadlineAt          core.Time        `cbor:"11,keyasint,omitempty" json:"executionControlDeadlineAt"`
	StatusDelivery             core.NullText    `cbor:"12,keyasint,omitempty" json:"executionStatusDeliveryId"`
	Error                      core.NullText    `cbor:"13,keyasint,omitempty" json:"error"`
	WakeupRequest              core.NullText    `cbor:"14,keyasint,omitempty" json:"wakeupRequestId"`
	ExitCode                   *int             `cbor:"15,keyasint,omitempty" json:"exitCode"`
	Signal                     core.NullText    `cbor:"16,keyasint,omitempty" json:"signal"`
	UsageJSON                  json.RawMessage  `cbor:"17,keyasint,omitempty" json:"usageJson"`
	ResultJSON                 json.RawMessage  `cbor:"18,keyasint,omitempty" json:"resultJson"`
	RuntimeMode                string           `cbor:"19,keyasint" json:"runtimeMode"`
	RuntimeModeResolverVersion core.NullText    `cbor:"20,keyasint,omitempty" json:"runtimeModeResolverVersion"`
	RuntimeModeReason          core.NullText    `cbor:"21,keyasint,omitempty" json:"runtimeModeReason"`
	RuntimeModeResolvedAt      core.Time        `cbor:"22,keyasint,omitempty" json:"runtimeModeResolvedAt"`
	RunnerProfileJSON          json.RawMessage  `cbor:"23,keyasint,omitempty" json:"runnerProfileJson"`
	NextEventSeq               int64            `cbor:"31,keyasint" json:"nextEventSeq"`
	SessionBefore              core.NullText    `cbor:"34,keyasint,omitempty" json:"sessionIdBefore"`
	SessionAfter               core.NullText    `cbor:"35,keyasint,omitempty" json:"sessionIdAfter"`
	LogStore                   core.NullText    `cbor:"36,keyasint,omitempty" json:"logStore"`
	LogRef                     core.NullText    `cbor:"37,keyasint,omitempty" json:"logRef"`
	LogBytes                   *int64           `cbor:"38,keyasint,omitempty" json:"logBytes"`
	LogSHA256                  core.NullText    `cbor:"39,keyasint,omitempty" json:"logSha256"`
	StdoutExcerpt              *string          `cbor:"41,keyasint,omitempty" json:"stdoutExcerpt"`
	StderrExcerpt              *string          `cbor:"42,keyasint,omitempty" json:"stderrExcerpt"`
	ErrorCode                  core.NullText    `cbor:"43,keyasint,omitempty" json:"errorCode"`
	ControllerBoot             core.NullText    `cbor:"45,keyasint,omitempty" json:"controllerBootId"`
	ControllerLeaseExpiresAt   core.Time        `cbor:"46,keyasint,omitempty" json:"controllerLeaseExpiresAt"`
	ExecutionStage             core.NullText    `cbor:"47,keyasint,omitempty" json:"executionStage"`
	ProcessPID                 *int64           `cbor:"48,keyasint,omitempty" json:"processPid"`
	ProcessGroup               *int64           `cbor:"49,keyasint,omitempty" json:"processGroupId"`
	ProcessStartedAt           core.Time        `cbor:"50,keyasint,omitempty" json:"processStartedAt"`
	LastOutputAt               core.Time        `cbor:"51,keyasint,omitempty" json:"lastOutputAt"`
	LastOutputSeq              int64            `cbor:"52,keyasint,omitempty" json:"lastOutputSeq"`
	LastOutputStream           core.NullText    `cbor:"53,keyasint,omitempty" json:"lastOutputStream"`
	LastOutputBytes            *int64           `cbor:"54,keyasint,omitempty" json:"lastOutputBytes"`
	RetryOf                    core.NullText    `cbor:"55,keyasint,omitempty" json:"retryOfRunId"`
	ProcessLossRetryCount      int              `cbor:"56,keyasint,omitempty" json:"processLossRetryCount"`
	ScheduledRetryAt           core.Time        `cbor:"57,keyasint,omitempty" json:"scheduledRetryAt"`
	ScheduledRetryAttempt      int              `cbor:"58,keyasint,omitempty" json:"scheduledRetryAttempt"`
	ScheduledRetryReason       core.NullText    `cbor:"59,keyasint,omitempty" json:"scheduledRetryReason"`
	IssueCommentStatus         string           `cbor:"60,keyasint" json:"issueCommentStatus"`
	LivenessState              core.NullText    `cbor:"63,keyasint,omitempty" json:"livenessState"`
	LivenessReason             core.NullText    `cbor:"64,keyasint,omitempty" json:"livenessReason"`
	ContinuationAttempt        int              `cbor:"65,keyasint,omitempty" json:"continuationAttempt"`
	LastUsefulActionAt         core.Time        `cbor:"66,keyasint,omitempty" json:"lastUsefulActionAt"`
	NextAction                 core.NullText    `cbor:"67,keyasint,omitempty" json:"nextAction"`
	Context                    RunContext       `cbor:"68,keyasint" json:"contextSnapshot"`
	CreatedAt                  core.Time        `cbor:"69,keyasint" json:"createdAt"`
	UpdatedAt                  core.Time        `cbor:"70,keyasint" json:"updatedAt"`
	notHere                    `cbor:"-"`

	// Node and Session have authority over the run; Session 0 means not placed. Both stay after
	// the end, for readers of the log.
	Node    string `cbor:"80,keyasint,omitempty" json:"nodeId,omitempty"`
	Session uint64 `cbor:"81,keyasint,omitempty" json:"-"`
	// Owed is set until the node of the run confirms that its processes are gone. Until then
	// the run takes a slot of the node.
	Owed   bool        `cbor:"82,keyasint,omitempty" json:"-"`
	Phase  Phase       `cbor:"83,keyasint,omitempty" json:"phase,omitempty"`
	Phases []PhaseMark `cbor:"84,keyasint,omitempty" json:"phases,omitempty"`
	// Queue is the run's position among the queued ones of its company.
	Queue uint64 `cbor:"85,keyasint,omitempty" json:"-"`
	// Manual is set when a person asked for this run.
	Manual bool `cbor:"86,keyasint,omitempty" json:"-"`
	// Followups counts the preceding runs that ended without a decision about their issue.
	Followups int `cbor:"87,keyasint,omitempty" json:"-"`
	// AdapterType is the agent's at the time of the wake.
	AdapterType string `cbor:"88,keyasint,omitempty" json:"-"`
	// Place is where the run works on its node, once its adapter reported it.
	Place *RunPlace `cbor:"89,keyasint,omitempty" json:"-"`
	// Freshness is resultJson.configFreshness, known since the start.
	Freshness json.RawMessage `cbor:"90,keyasint,omitempty" json:"-"`
	// Fingerprint is the hash of the configuration that the run started with.
	Fingerprint string `cbor:"91,keyasint,omitempty" json:"-"`
	// ExecutionWorkspace is the workspace of the run, if its issue's project has one.
	ExecutionWorkspace string `cbor:"92,keyasint,omitempty" json:"-"`
	// since when several nodes have the log
	LogKeptAt core.Time `cbor:"93,keyasint,omitempty" json:"logKeptAt,omitzero"`
	Closed    uint64    `cbor:"94,keyasint,omitempty" json:"-"` // height of the entry that ended the run
	Turn      uint64    `cbor:"95,keyasint,omitempty" json:"-"` // position among the queued runs, see queue.go of company
	// Failures counts the preceding runs that failed on the same issue.
	Failures int `cbor:"96,keyasint,omitempty" json:"-"`
	// Watch is the last decision about the silence of the run.
	Watch *WatchDecision `cbor:"97,keyasint,omitempty" json:"-"`
	// Decisions is the log of what the gate permitted at the run's node; nil: the node has not closed the run, or did
	// not write one.
	Decisions *DecisionLog `cbor:"98,keyasint,omitempty" json:"decisionLog,omitempty"`
}

// A DecisionLog describes the file in which a node notes what the gate permitted during a run without more. The file is
// on the node until it is kept.
type DecisionLog struct {
	Permits uint64 `cbor:"1,keyasint" json:"permits"` // lines
	Bytes   int64  `cbor:"2,keyasint" json:"bytes"`
	SHA256  string `cbor:"3,keyasint" json:"sha256"` // of the file, hex
	// permits that are not in the file: it was full, or could not be written
	Lost   uint64    `cbor:"4,keyasint,omitempty" json:"lost"`
	KeptAt core.Time `cbor:"5,keyasint,omitempty" json:"keptAt,omitzero"` // since when several nodes have the file
	// Late: the run was closed by others than its node, which told of the file afterwards. How many permits could not be
	// written is not known.
	Late bool `cbor:"6,keyasint,omitempty" json:"late,omitempty"`
}

// notHere has the fields of the contract's run without a value here. They are not stored;
// the keys 24 to 30, 32, 33, 40, 44, 61 and 62 must not be used again.
type notHere struct {
	RunnerInstance            null  `json:"runnerInstanceId"`
	NativeSession             null  `json:"nativeSessionId"`
	NativeIssue               null  `json:"nativeIssueId"`
	DriverKind                null  `json:"driverKind"`
	DriverVersion             null  `json:"driverVersion"`
	CompletionContract        null  `json:"completionContractId"`
	CompletionContractSHA256  null  `json:"completionContractSha256"`
	NativePhase               null  `json:"nativePhase"`
	NativePhaseUpdatedAt      null  `json:"nativePhaseUpdatedAt"`
	LogCompressed             never `json:"logCompressed"`
	ExternalRun               null  `json:"externalRunId"`
	IssueCommentSatisfiedBy   null  `json:"issueCommentSatisfiedByCommentId"`
	IssueCommentRetryQueuedAt null  `json:"issueCommentRetryQueuedAt"`
}

// A null is always null in JSON, a never always false.
type (
	null  struct{}
	never struct{}
)

// MarshalJSON writes null.
func (null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// MarshalJSON writes false.
func (never) MarshalJSON() ([]byte, error) { return []byte("false"), nil }

// Clone returns a copy that shares nothing with r.
func (r Run) Clone() Run {
	r.Decisions = core.CloneOf(r.Decisions)
	r.ExitCode, r.LogBytes, r.StdoutExcerpt, r.StderrExcerpt = core.CloneOf(r.ExitCode), core.CloneOf(r.LogBytes),
		core.CloneOf(r.StdoutExcerpt), core.CloneOf(r.StderrExcerpt)
	r.ProcessPID, r.ProcessGroup, r.LastOutputBytes = core.CloneOf(r.ProcessPID), core.CloneOf(r.ProcessGroup),
		core.CloneOf(r.LastOutputBytes)
	r.UsageJSON, r.ResultJSON, r.RunnerProfileJSON = slices.Clone(r.UsageJSON), slices.Clone(r.ResultJSON),
		slices.Clone(r.RunnerProfileJSON)
	r.Phases, r.Context.CommentIDs, r.Context.Payload = slices.Clone(r.Phases), slices.Clone(r.Context.CommentIDs),
		slices.Clone(r.Context.Payload)
	r.Context.LinkedIssueIDs = slices.Clone(r.Context.LinkedIssueIDs)
	r.Context.ForceFreshSession = core.CloneOf(r.Context.ForceFreshSession)
	r.Place, r.Freshness, r.Watch = core.CloneOf(r.Place), slices.Clone(r.Freshness), core.CloneOf(r.Watch)
	return r
}

// A PhaseMark says when a run reached a phase.
type PhaseMark struct {
	Phase Phase     `cbor:"1,keyasint" json:"phase"`
	At    core.Time `cbor:"2,keyasint" json:"at"`
}

// A RunContext is the reason of a run and what it is about. Absent keys are absent from the
// JSON too, as recorded.
type RunContext struct {
	TaskID            string        `cbor:"1,keyasint,omitempty" json:"taskId,omitempty"`
	ActorID           string        `cbor:"2,keyasint,omitempty" json:"actorId,omitempty"`
	IssueID           string        `cbor:"3,keyasint,omitempty" json:"issueId,omitempty"`
	TaskKey           string        `cbor:"4,keyasint,omitempty" json:"taskKey,omitempty"`
	ProjectID         string        `cbor:"5,keyasint,omitempty" json:"projectId,omitempty"`
	WakeReason        string        `cbor:"6,keyasint,omitempty" json:"wakeReason,omitempty"`
	WakeSource        string        `cbor:"7,keyasint,omitempty" json:"wakeSource,omitempty"`
	TriggeredBy       string        `cbor:"8,keyasint,omitempty" json:"triggeredBy,omitempty"`
	ForceFreshSession *bool         `cbor:"9,keyasint,omitempty" json:"forceFreshSession,omitempty"`
	ResponsibleUserID string        `cbor:"10,keyasint,omitempty" json:"responsibleUserId,omitempty"`
	WakeTriggerDetail string        `cbor:"11,keyasint,omitempty" json:"wakeTriggerDetail,omitempty"`
	OriginIdentity    core.NullText `cbor:"12,keyasint,omitempty" json:"originIdentityContextId"`

	CommentID      string          `cbor:"20,keyasint,omitempty" json:"wakeCommentId,omitempty"`
	CommentIDs     []string        `cbor:"21,keyasint,omitempty" json:"wakeCommentIds,omitempty"`
	ApprovalID     string          `cbor:"22,keyasint,omitempty" json:"approvalId,omitempty"`
	ApprovalStatus string          `cbor:"23,keyasint,omitempty" json:"approvalStatus,omitempty"`
	CheckedOut     bool            `cbor:"24,keyasint,omitempty" json:"checkedOutByHarness,omitempty"`
	Payload        json.RawMessage `cbor:"25,keyasint,omitempty" json:"payload,omitempty"`
	Source         string          `cbor:"26,keyasint,omitempty" json:"source,omitempty"`
	MergedWakes    int             `cbor:"27,keyasint,omitempty" json:"mergedWakes,omitempty"`
	LinkedIssueIDs []string        `cbor:"28,keyasint,omitempty" json:"issueIds,omitempty"`

	InteractionID     string `cbor:"29,keyasint,omitempty" json:"interactionId,omitempty"`
	InteractionKind   string `cbor:"30,keyasint,omitempty" json:"interactionKind,omitempty"`
	InteractionStatus string `cbor:"31,keyasint,omitempty" json:"interactionStatus,omitempty"`
}

// Scope is what wakes of one agent coalesce by: the task, or "".
func (c RunContext) Scope() string {
	if c.TaskKey != "" {
		return c.TaskKey
	}
	if c.TaskID != "" {
		return c.TaskID
	}
	return c.IssueID
}

// Usage is what a run used, as its adapter or the gateway counted it.
type Usage struct {
	InputTokens       int64 `cbor:"1,keyasint,omitempty" json:"inputTokens"`
	OutputTokens      int64 `cbor:"2,keyasint,omitempty" json:"outputTokens"`
	CachedInputTokens int64 `cbor:"3,keyasint,omitempty" json:"cachedInputTokens"`
}

// runs holds every run by ID. runsByAgent and runsByIssue list runs oldest first; RunsLive
// lists an agent's live ones.
var (
	RunTable = ledger.NewTable[string, Run]("run").
			Beside(ledger.IndexedAs(runsByTime, func(r *Run, _ string) (value, entry string) { return AllRuns, r.Ref() })).
			Beside(ledger.IndexedAs(runsByAgent, func(r *Run, _ string) (value, entry string) { return r.Agent, r.Ref() })).
			Beside(ledger.IndexedAs(runsByIssue, func(r *Run, _ string) (value, entry string) {
			return r.Context.IssueID,
				r.Ref()
		})).
		Beside(ledger.Indexed(RunsLive, liveOf)).
		Beside(keepRunCompany)
	runsByTime  = ledger.NewIndex[string, string]("run-time")
	runsByAgent = ledger.NewIndex[string, string]("run-agent")
	runsByIssue = ledger.NewIndex[string, string]("run-issue")
	RunsLive    = ledger.NewIndex[string, string]("run-live")
)

// liveOf returns the agent of a queued or running run.
func liveOf(r *Run) string {
	if !r.Status.Live() {
		return ""
	}
	return r.Agent
}

// keepRunCompany maintains the key that finds a run by its ID alone.
func keepRunCompany(tx *ledger.Tx, company ledger.CompanyID, id string, old, next *Run) {
	switch {
	case next == nil:
		tx.Delete(RunCompanyKey(id))
	case old == nil:
		tx.Set(RunCompanyKey(id), []byte(company))
	}
}

// AllRuns is the value under which runsByTime keeps every run of a company.
const AllRuns = "all"

// Keys across companies, by which the leader and a node find their work without reading all
// companies:
//
//	run-company/<run>                          company of a run
//	sched/queue/<company>/<turn>/<run>         not placed yet, see queue.go of company
//	sched/session/<session>/<run>              placed and not confirmed as gone; value = company
func RunCompanyKey(run string) []byte { return ledger.Key("run-company", run) }

func SessionKey(session uint64, run string) []byte {
	return ledger.Key("sched", "session", ledger.Order(session), run)
}

// RunByID returns the run with the given ID in any company.
func RunByID(tx *ledger.Tx, id string) (Run, bool) {
	company, ok := tx.Get(RunCompanyKey(id))
	if !ok {
		return Run{}, false
	}
	return RunTable.Get(tx, ledger.CompanyID(company), id)
}

// RunOf returns the run with the given ID in company.
func RunOf(tx *ledger.Tx, company ledger.CompanyID, id string) (Run, bool) {
	return RunTable.Get(tx, company, id)
}

// RunsOf yields the runs of company, newest first.
func RunsOf(tx *ledger.Tx, company ledger.CompanyID) iter.Seq[Run] {
	return runsIn(tx, company, runsByTime, AllRuns)
}

// RunsOfAgent yields the runs of an agent, newest first.
func RunsOfAgent(tx *ledger.Tx, company ledger.CompanyID, agent string) iter.Seq[Run] {
	return runsIn(tx, company, runsByAgent, agent)
}

// RunsOfIssue yields the runs that were woken for an issue, newest first.
func RunsOfIssue(tx *ledger.Tx, company ledger.CompanyID, issue string) iter.Seq[Run] {
	return runsIn(tx, company, runsByIssue, issue)
}

// LiveRunsOfAgent returns the queued and running runs of an agent, oldest first.
func LiveRunsOfAgent(tx *ledger.Tx, company ledger.CompanyID, agent string) []Run {
	var out []Run
	AnyLiveRun(tx, company, agent, func(r Run) bool {
		out = append(out, r)
		return false
	})
	slices.SortFunc(out, func(a, b Run) int {
		return compareUint(a.Queue, b.Queue)
	})
	return out
}

// AnyLiveRun reports whether is holds for a queued or running run of an agent. It is asked of
// one after the other, in the order of their IDs, and of none after the first for which it holds.
func AnyLiveRun(tx *ledger.Tx, company ledger.CompanyID, agent string, is func(Run) bool) bool {
	for id := range RunsLive.IDs(tx, company, agent, false) {
		if r, ok := RunTable.Get(tx, company, id); ok && is(r) {
			return true
		}
	}
	return false
}

// LiveRunsOnIssue returns the queued and running runs of an issue's agent for it, oldest
// first.
func LiveRunsOnIssue(tx *ledger.Tx, i Issue) []Run {
	if i.Assignee == "" {
		return nil
	}
	return slices.DeleteFunc(LiveRunsOfAgent(tx, i.Company, i.Assignee),
		func(r Run) bool { return r.Context.IssueID != i.ID })
}

// LiveBelow returns, for each issue, how many issues below it at any depth have a run that
// is running or waits for a node: one of their assignee about them, or the one that holds
// them. Hidden issues and scheduled retries do not count.
func LiveBelow(tx *ledger.Tx, company ledger.CompanyID) map[string]int {
	var live []string
	for _, r := range LiveRunsOf(tx, company) {
		if r.Status == RunScheduledRetry {
			continue
		}
		if i, ok := IssueTable.Get(tx, company, r.Context.IssueID); ok && i.Assignee == r.Agent {
			live = append(live, i.ID)
		}
		for id := range IssuesByRun.IDs(tx, company, r.ID, false) {
			live = append(live, id)
		}
	}
	below := map[string]int{}
	for _, id := range core.SortedSet(live) {
		i, ok := IssueTable.Get(tx, company, id)
		if i.HiddenAt != 0 {
			continue
		}
		for n := 0; ok && i.Parent != "" && n <= MaxIssueDepth; n++ {
			below[i.Parent]++
			i, ok = IssueTable.Get(tx, company, i.Parent)
		}
	}
	return below
}

func compareUint(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// runsIn yields the runs that x lists under value, newest first. The index holds "<queue
// order>.<run ID>", so it is ordered by time.
func runsIn(tx *ledger.Tx, company ledger.CompanyID, x ledger.Index[string, string], value string) iter.Seq[Run] {
	return func(yield func(Run) bool) {
		for ref := range x.IDs(tx, company, value, true) {
			if r, ok := RunTable.Get(tx, company, ref[len(ledger.Order(0))+1:]); ok && !yield(r) {
				return
			}
		}
	}
}

func (r Run) Ref() string { return ledger.Order(r.Queue) + "." + r.ID }

// RunAlive reports whether run is a running run of agent, so that writes under it are
// accepted.
func RunAlive(tx *ledger.Tx, company ledger.CompanyID, run, agent string) bool {
	r := RunTable.Look(tx, company, run)
	return r != nil && r.Agent == agent && r.Status == RunRunning
}

// SuccessorOf returns the run that was queued because of how r ended, or "".
func SuccessorOf(tx *ledger.Tx, r Run) string {
	id := core.DerivedID("after", r.ID)
	if _, ok := RunTable.Get(tx, r.Company, id); ok && !r.Status.Live() {
		return id
	}
	return ""
}

// LiveRunsOf returns the queued and running runs of a company, oldest first.
func LiveRunsOf(tx *ledger.Tx, company ledger.CompanyID) []Run {
	prefix := ledger.Key("c", string(company), "run-live", "")
	var out []Run
	for k := range tx.Prefix(prefix) {
		if _, id, ok := strings.Cut(string(k[len(prefix):]), "/"); ok {
			if r, ok := RunTable.Get(tx, company, id); ok {
				out = append(out, r)
			}
		}
	}
	slices.SortFunc(out, func(a, b Run) int { return compareUint(a.Queue, b.Queue) })
	return out
}

// A WatchDecision is somebody's decision about a silent run. A run keeps the last one.
type WatchDecision struct {
	ID        string           `cbor:"1,keyasint" json:"id"`
	Company   ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Run       string           `cbor:"3,keyasint" json:"runId"`
	Decision  string           `cbor:"4,keyasint" json:"decision"`
	Until     core.Time        `cbor:"5,keyasint,omitempty" json:"snoozedUntil"`
	Reason    core.NullText    `cbor:"6,keyasint,omitempty" json:"reason"`
	Issue     core.NullText    `cbor:"7,keyasint,omitempty" json:"evaluationIssueId"`
	ByAgent   core.NullText    `cbor:"8,keyasint,omitempty" json:"createdByAgentId"`
	ByUser    core.NullText    `cbor:"9,keyasint,omitempty" json:"createdByUserId"`
	ByRun     core.NullText    `cbor:"10,keyasint,omitempty" json:"createdByRunId"`
	CreatedAt core.Time        `cbor:"11,keyasint" json:"createdAt"`
}

// Issue returns the issue of a run, "" for none.
func (c RunContext) Issue() string {
	if c.IssueID != "" {
		return c.IssueID
	}
	return c.TaskID
}

// Silent reports whether a run wrote nothing; messages of its node do not count.
func (r Run) Silent() bool {
	if r.StdoutExcerpt != nil && r.StderrExcerpt != nil {
		return *r.StdoutExcerpt == "" && *r.StderrExcerpt == ""
	}
	return r.LastOutputSeq == 0
}

// Reached returns r in phase p.
func (r Run) Reached(p Phase, at core.Time) Run {
	if r.Phase != p {
		r.Phase = p
		r.Phases = append(slices.Clone(r.Phases), PhaseMark{p, at})
	}
	return r
}

func (r Run) Process(pid, group int64, now core.Time) Run {
	if pid != 0 {
		r.ProcessPID, r.ProcessGroup, r.ProcessStartedAt = new(pid), new(group), now
	}
	return r
}

func (r Run) Output(o *OutputMark) Run {
	if o != nil && o.Seq >= r.LastOutputSeq {
		r.LastOutputAt, r.LastOutputSeq, r.LastOutputStream, r.LastOutputBytes = o.At, o.Seq, core.NullText(o.Stream),
			new(o.Bytes)
	}
	return r
}

func (r Run) Placed(p *RunPlace) Run {
	if p != nil && p.fits() {
		r.Place = p
	}
	return r
}

// Standing returns the details of a refusal that is caused by the run's status.
func (r Run) Standing() []byte { return core.StatusDetail("runId", r.ID, r.Status) }

// Lease returns the lease of a run; ok is false when it never started.
func (r Run) Lease() (l EnvironmentLease, ok bool) {
	if r.StartedAt == 0 {
		return l, false
	}
	l = EnvironmentLease{ID: core.DerivedID("environment-lease", r.ID), Policy: "ephemeral",
		Provider: LocalEnvironment.Driver, ExecutionWorkspace: core.NullText(r.ExecutionWorkspace), AcquiredAt: r.StartedAt,
		ReleasedAt: r.FinishedAt}
	switch r.Status {
	case RunRunning:
		l.Status = "active"
	case RunSucceeded:
		l.Status = "released"
	case RunCancelled:
		l.Status = "expired"
	default:
		l.Status, l.FailureReason = "failed", r.Error
	}
	return l, true
}

// Absorb returns r with the context of a wake that was merged into it.
func (r Run) Absorb(ctx RunContext, now core.Time) Run {
	r.Context.MergedWakes++
	if ctx.CommentID != "" {
		r.Context.CommentID = ctx.CommentID
		if !slices.Contains(r.Context.CommentIDs, ctx.CommentID) && len(r.Context.CommentIDs) < MaxWakeComments {
			r.Context.CommentIDs = append(slices.Clone(r.Context.CommentIDs), ctx.CommentID)
		}
	}
	if ctx.ApprovalID != "" {
		r.Context.ApprovalID, r.Context.ApprovalStatus, r.Context.LinkedIssueIDs = ctx.ApprovalID, ctx.ApprovalStatus,
			ctx.LinkedIssueIDs
	}
	if ctx.InteractionID != "" {
		r.Context.InteractionID, r.Context.InteractionKind, r.Context.InteractionStatus = ctx.InteractionID,
			ctx.InteractionKind, ctx.InteractionStatus
	}
	if r.Status != RunRunning && ctx.WakeReason != "" {
		r.Context.WakeReason = ctx.WakeReason
	}
	r.UpdatedAt = now
	return r
}

// Deferred reports whether a run has comments for an agent that is already running on their
// issue. Two runs at once would do the same work, so it waits.
func (r Run) Deferred(tx *ledger.Tx) bool {
	return !r.Manual && r.Context.IssueID != "" && len(r.Context.CommentIDs) > 0 &&
		AnyLiveRun(tx, r.Company, r.Agent, func(o Run) bool {
			return o.ID != r.ID && o.Status == RunRunning && o.Context.IssueID == r.Context.IssueID
		})
}
