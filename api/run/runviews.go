package run

import (
	"encoding/json"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Silence after which clients show a run as suspicious, or as critical.
const (
	suspiciousSilence = time.Hour
	criticalSilence   = 4 * time.Hour
)

// A runExecution describes the progress of a run as text.
type runExecution struct {
	Phase            string        `json:"phase"`
	Label            string        `json:"label"`
	Cause            core.NullText `json:"cause"`
	LastActivityAt   core.Time     `json:"lastConfirmedActivityAt"`
	RetryAt          core.Time     `json:"retryAt"`
	Attempt          int           `json:"attempt"`
	MaxAttempts      int           `json:"maxAttempts"`
	RecoveryOwner    *string       `json:"recoveryOwner"`
	NextAction       *string       `json:"nextAction"`
	PermittedActions []string      `json:"permittedActions"`
	Predecessor      core.NullText `json:"predecessorRunId"`
	Successor        core.NullText `json:"successorRunId"`
}

func executionOf(tx *ledger.Tx, r entity.Run) runExecution {
	e := runExecution{Phase: "failed", Label: "Failed", Cause: r.ErrorCode, LastActivityAt: max(r.StartedAt,
		r.LastOutputAt, r.LastUsefulActionAt),
		RetryAt: r.ScheduledRetryAt, Attempt: r.ProcessLossRetryCount + r.ScheduledRetryAttempt + 1,
		MaxAttempts:      entity.MaxRunAttempts,
		PermittedActions: []string{"inspect_run"}, Predecessor: r.RetryOf,
		Successor: core.NullText(entity.SuccessorOf(tx, r))}
	switch r.Status {
	case entity.RunQueued:
		e.Phase, e.Label, e.Cause = "queued", "Queued", ""
	case entity.RunScheduledRetry:
		e.Phase, e.Label, e.Cause = "retrying", "Waiting to retry", r.ScheduledRetryReason
	case entity.RunRunning:
		e.Phase, e.Label, e.Cause = "working", "Working", ""
	case entity.RunSucceeded:
		e.Phase, e.Label, e.Cause = "completed", "Completed", ""
	case entity.RunCancelled:
		e.Label = "Cancelled"
	case entity.RunInterrupted:
		e.Label = "Interrupted"
	}
	return e
}

// A runSilence says for how long a run has written no output.
type runSilence struct {
	LastOutputAt       core.Time     `json:"lastOutputAt"`
	LastOutputSeq      int64         `json:"lastOutputSeq"`
	LastOutputStream   core.NullText `json:"lastOutputStream"`
	SilenceStartedAt   core.Time     `json:"silenceStartedAt"`
	SilenceAgeMs       *int64        `json:"silenceAgeMs"`
	Level              string        `json:"level"`
	Suspicion          int64         `json:"suspicionThresholdMs"`
	Critical           int64         `json:"criticalThresholdMs"`
	SnoozedUntil       core.Time     `json:"snoozedUntil"`
	EvaluationIssue    *string       `json:"evaluationIssueId"`
	EvaluationIdent    *string       `json:"evaluationIssueIdentifier"`
	EvaluationAssignee *string       `json:"evaluationIssueAssigneeAgentId"`
}

func silenceOf(r entity.Run, now core.Time) runSilence {
	s := runSilence{LastOutputAt: r.LastOutputAt, LastOutputSeq: r.LastOutputSeq, LastOutputStream: r.LastOutputStream,
		SilenceStartedAt: max(r.LastOutputAt, r.StartedAt), Level: "not_applicable",
		Suspicion: suspiciousSilence.Milliseconds(), Critical: criticalSilence.Milliseconds()}
	if w := r.Watch; w != nil && w.Decision == "continue" {
		s.SilenceStartedAt = max(s.SilenceStartedAt, w.CreatedAt) // the last check found it healthy
	}
	if r.Status == entity.RunRunning {
		age := int64(max(now-s.SilenceStartedAt, 0))
		s.SilenceAgeMs, s.Level = &age, "ok"
		switch {
		case age >= s.Critical:
			s.Level = "critical"
		case age >= s.Suspicion:
			s.Level = "suspicious"
		}
		if w := r.Watch; w != nil {
			s.EvaluationIssue = api.Optional(w.Issue)
			switch {
			case w.Decision == "dismissed_false_positive":
				s.Level = "ok"
			case w.Until > now:
				s.Level, s.SnoozedUntil = "snoozed", w.Until
			}
		}
	}
	return s
}

// A runIdentity says for whom a run acts.
type runIdentity struct {
	ID              core.NullText    `json:"id"`
	Company         ledger.CompanyID `json:"companyId"`
	Run             string           `json:"runId"`
	Revision        int              `json:"revision"`
	ResponsibleUser core.NullText    `json:"responsibleUserId"`
	Message         *string          `json:"messageId"`
	ParentContext   *string          `json:"parentContextId"`
	Cause           string           `json:"cause"`
	Correlation     string           `json:"correlationId"`
	Status          string           `json:"status"`
	AcceptedAt      core.Time        `json:"acceptedAt"`
	GitHub          *string          `json:"github"`
	CreatedAt       core.Time        `json:"createdAt"`
}

// A runView is the answer of a run's own route.
type runView struct {
	entity.Run
	Context         runSnapshot   `json:"contextSnapshot"`
	StatusMessage   *string       `json:"currentStatusMessage"`
	StatusUpdatedAt core.Time     `json:"currentStatusUpdatedAt"`
	ToolName        *string       `json:"currentToolName"`
	Snippet         *string       `json:"lastAssistantSnippet"`
	LastEventAt     core.Time     `json:"lastEventAt"`
	Execution       runExecution  `json:"execution"`
	Identities      []runIdentity `json:"identityHistory"`
	RetryExhausted  core.NullText `json:"retryExhaustedReason"`
	Silence         runSilence    `json:"outputSilence"`
	Waiting         *company.Wait `json:"waiting,omitempty"` // why it has not started
}

func waitOf(tx *ledger.Tx, r entity.Run, now core.Time) *company.Wait {
	if w, ok := company.WaitOf(tx, r, now); ok {
		return &w
	}
	return nil
}

func viewRun(tx *ledger.Tx, r entity.Run, now core.Time) runView {
	v := runView{Run: r, Context: snapshotOf(r), Execution: executionOf(tx, r), Identities: []runIdentity{},
		Silence: silenceOf(r, now), Waiting: waitOf(tx, r, now)}
	v.StatusMessage, v.StatusUpdatedAt = statusMessage(r)
	v.LastEventAt = v.StatusUpdatedAt
	if r.IdentityContext != "" {
		cause := string(r.Source) + "_wake"
		if r.Manual {
			cause = "manual_user_wake"
		}
		v.Identities = append(v.Identities, runIdentity{ID: r.IdentityContext, Company: r.Company, Run: r.ID, Revision: 1,
			ResponsibleUser: r.ResponsibleUser, Cause: cause, Correlation: "dispatch", Status: "accepted",
			AcceptedAt: r.StartedAt, CreatedAt: r.StartedAt})
	}
	if r.Status == entity.RunInterrupted && v.Execution.Successor == "" {
		v.RetryExhausted = "The run was started over as often as is allowed, or nothing was left to do"
	}
	return v
}

// statusMessage says what a running run is doing, and since when.
func statusMessage(r entity.Run) (*string, core.Time) {
	if r.Status != entity.RunRunning {
		return nil, 0
	}
	if r.LastOutputAt != 0 {
		return new("Receiving agent output"), r.LastOutputAt
	}
	return new("Starting"), r.StartedAt
}

// A runListItem is a run in a list, without long members.
type runListItem struct {
	Waiting               *company.Wait     `json:"waiting,omitempty"`
	ID                    string            `json:"id"`
	Company               ledger.CompanyID  `json:"companyId"`
	Agent                 string            `json:"agentId"`
	Source                entity.WakeSource `json:"invocationSource"`
	TriggerDetail         core.NullText     `json:"triggerDetail"`
	Status                entity.RunStatus  `json:"status"`
	StartedAt             core.Time         `json:"startedAt"`
	FinishedAt            core.Time         `json:"finishedAt"`
	Error                 core.NullText     `json:"error"`
	WakeupRequest         core.NullText     `json:"wakeupRequestId"`
	ExitCode              *int              `json:"exitCode"`
	Signal                core.NullText     `json:"signal"`
	Usage                 json.RawMessage   `json:"usageJson"`
	SessionBefore         core.NullText     `json:"sessionIdBefore"`
	SessionAfter          core.NullText     `json:"sessionIdAfter"`
	LogStore              core.NullText     `json:"logStore"`
	LogRef                core.NullText     `json:"logRef"`
	LogBytes              *int64            `json:"logBytes"`
	LogSHA256             core.NullText     `json:"logSha256"`
	LogCompressed         bool              `json:"logCompressed"`
	StdoutExcerpt         *string           `json:"stdoutExcerpt"`
	StderrExcerpt         *string           `json:"stderrExcerpt"`
	ErrorCode             core.NullText     `json:"errorCode"`
	ExternalRun           core.NullText     `json:"externalRunId"`
	ProcessPID            *int64            `json:"processPid"`
	ProcessGroup          *int64            `json:"processGroupId"`
	ProcessStartedAt      core.Time         `json:"processStartedAt"`
	LastOutputAt          core.Time         `json:"lastOutputAt"`
	LastOutputSeq         int64             `json:"lastOutputSeq"`
	LastOutputStream      core.NullText     `json:"lastOutputStream"`
	LastOutputBytes       *int64            `json:"lastOutputBytes"`
	RetryOf               core.NullText     `json:"retryOfRunId"`
	ProcessLossRetryCount int               `json:"processLossRetryCount"`
	ScheduledRetryAt      core.Time         `json:"scheduledRetryAt"`
	ScheduledRetryAttempt int               `json:"scheduledRetryAttempt"`
	ScheduledRetryReason  core.NullText     `json:"scheduledRetryReason"`
	LivenessState         core.NullText     `json:"livenessState"`
	LivenessReason        core.NullText     `json:"livenessReason"`
	ContinuationAttempt   int               `json:"continuationAttempt"`
	LastUsefulActionAt    core.Time         `json:"lastUsefulActionAt"`
	NextAction            core.NullText     `json:"nextAction"`
	CreatedAt             core.Time         `json:"createdAt"`
	UpdatedAt             core.Time         `json:"updatedAt"`
	Context               runListContext    `json:"contextSnapshot"`
	Result                json.RawMessage   `json:"resultJson"`
	Node                  string            `json:"nodeId,omitempty"`
}

type runListContext struct {
	IssueID    string `json:"issueId,omitempty"`
	TaskID     string `json:"taskId,omitempty"`
	TaskKey    string `json:"taskKey,omitempty"`
	CommentID  string `json:"wakeCommentId,omitempty"`
	WakeReason string `json:"wakeReason,omitempty"`
	WakeSource string `json:"wakeSource,omitempty"`
	Trigger    string `json:"wakeTriggerDetail,omitempty"`
}

func listItem(r entity.Run) runListItem {
	c := r.Context
	return runListItem{
		ID: r.ID, Company: r.Company, Agent: r.Agent, Source: r.Source, TriggerDetail: r.TriggerDetail, Status: r.Status,
		StartedAt:  r.StartedAt,
		FinishedAt: r.FinishedAt, Error: r.Error, WakeupRequest: r.WakeupRequest, ExitCode: r.ExitCode, Signal: r.Signal,
		Usage:         r.UsageJSON,
		SessionBefore: r.SessionBefore, SessionAfter: r.SessionAfter, LogStore: r.LogStore, LogRef: r.LogRef,
		LogBytes: r.LogBytes, LogSHA256: r.LogSHA256,
		ErrorCode: r.ErrorCode, ProcessPID: r.ProcessPID, ProcessGroup: r.ProcessGroup,
		ProcessStartedAt: r.ProcessStartedAt, LastOutputAt: r.LastOutputAt, LastOutputSeq: r.LastOutputSeq,
		LastOutputStream: r.LastOutputStream,
		LastOutputBytes:  r.LastOutputBytes, RetryOf: r.RetryOf, ProcessLossRetryCount: r.ProcessLossRetryCount,
		ScheduledRetryAt:      r.ScheduledRetryAt,
		ScheduledRetryAttempt: r.ScheduledRetryAttempt, ScheduledRetryReason: r.ScheduledRetryReason,
		LivenessState:  r.LivenessState,
		LivenessReason: r.LivenessReason, ContinuationAttempt: r.ContinuationAttempt,
		LastUsefulActionAt: r.LastUsefulActionAt, NextAction: r.NextAction,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, Node: r.Node,
		Context: runListContext{c.IssueID, c.TaskID, c.TaskKey, c.CommentID, c.WakeReason, c.WakeSource, c.WakeTriggerDetail},
	}
}

// A liveRun is a queued or running run in a list.
type liveRun struct {
	ID                  string            `json:"id"`
	Waiting             *company.Wait     `json:"waiting,omitempty"` // why it has not started
	RuntimeMode         string            `json:"runtimeMode"`
	Company             ledger.CompanyID  `json:"companyId"`
	Status              entity.RunStatus  `json:"status"`
	Source              entity.WakeSource `json:"invocationSource"`
	TriggerDetail       core.NullText     `json:"triggerDetail"`
	ContextComment      core.NullText     `json:"contextCommentId"`
	WakeComment         core.NullText     `json:"contextWakeCommentId"`
	StartedAt           core.Time         `json:"startedAt"`
	FinishedAt          core.Time         `json:"finishedAt"`
	CreatedAt           core.Time         `json:"createdAt"`
	Agent               string            `json:"agentId"`
	AgentName           string            `json:"agentName"`
	AdapterType         string            `json:"adapterType"`
	LogBytes            *int64            `json:"logBytes"`
	LivenessState       core.NullText     `json:"livenessState"`
	LivenessReason      core.NullText     `json:"livenessReason"`
	ContinuationAttempt int               `json:"continuationAttempt"`
	LastUsefulActionAt  core.Time         `json:"lastUsefulActionAt"`
	NextAction          core.NullText     `json:"nextAction"`
	LastOutputAt        core.Time         `json:"lastOutputAt"`
	LastOutputSeq       int64             `json:"lastOutputSeq"`
	LastOutputStream    core.NullText     `json:"lastOutputStream"`
	LastOutputBytes     *int64            `json:"lastOutputBytes"`
	ProcessStartedAt    core.Time         `json:"processStartedAt"`
	Issue               core.NullText     `json:"issueId"`
	StatusMessage       *string           `json:"currentStatusMessage"`
	StatusUpdatedAt     core.Time         `json:"currentStatusUpdatedAt"`
	ToolName            *string           `json:"currentToolName"`
	Snippet             *string           `json:"lastAssistantSnippet"`
	LastEventAt         core.Time         `json:"lastEventAt"`
	Execution           runExecution      `json:"execution"`
	Silence             runSilence        `json:"outputSilence"`
	Node                string            `json:"nodeId,omitempty"`
}

func liveView(tx *ledger.Tx, r entity.Run, now core.Time) liveRun {
	name, _, _ := entity.AdapterConfigOf(tx, r.Company, r.Agent)
	v := liveRun{
		ID: r.ID, RuntimeMode: r.RuntimeMode, Company: r.Company, Status: r.Status, Source: r.Source,
		TriggerDetail:  r.TriggerDetail,
		ContextComment: core.NullText(r.Context.CommentID), WakeComment: core.NullText(r.Context.CommentID),
		StartedAt:  r.StartedAt,
		FinishedAt: r.FinishedAt, CreatedAt: r.CreatedAt, Agent: r.Agent, AgentName: name, AdapterType: r.AdapterType,
		LogBytes:      r.LogBytes,
		LivenessState: r.LivenessState, LivenessReason: r.LivenessReason, ContinuationAttempt: r.ContinuationAttempt,
		LastUsefulActionAt: r.LastUsefulActionAt, NextAction: r.NextAction, LastOutputAt: r.LastOutputAt,
		LastOutputSeq:    r.LastOutputSeq,
		LastOutputStream: r.LastOutputStream, LastOutputBytes: r.LastOutputBytes, ProcessStartedAt: r.ProcessStartedAt,
		Issue: core.NullText(r.Context.IssueID), Execution: executionOf(tx, r), Silence: silenceOf(r, now), Node: r.Node,
		Waiting: waitOf(tx, r, now),
	}
	v.StatusMessage, v.StatusUpdatedAt = statusMessage(r)
	v.LastEventAt = v.StatusUpdatedAt
	return v
}

// An issueRun is a run in an issue's list.
type issueRun struct {
	Run                   string            `json:"runId"`
	RuntimeMode           string            `json:"runtimeMode"`
	Status                entity.RunStatus  `json:"status"`
	Agent                 string            `json:"agentId"`
	AdapterType           string            `json:"adapterType"`
	StartedAt             core.Time         `json:"startedAt"`
	FinishedAt            core.Time         `json:"finishedAt"`
	CreatedAt             core.Time         `json:"createdAt"`
	Source                entity.WakeSource `json:"invocationSource"`
	ResponsibleUser       core.NullText     `json:"responsibleUserId"`
	ErrorCode             core.NullText     `json:"errorCode"`
	Usage                 json.RawMessage   `json:"usageJson"`
	Result                json.RawMessage   `json:"resultJson"`
	LogBytes              *int64            `json:"logBytes"`
	RetryOf               core.NullText     `json:"retryOfRunId"`
	ScheduledRetryAt      core.Time         `json:"scheduledRetryAt"`
	ScheduledRetryAttempt int               `json:"scheduledRetryAttempt"`
	ScheduledRetryReason  core.NullText     `json:"scheduledRetryReason"`
	LivenessState         core.NullText     `json:"livenessState"`
	LivenessReason        core.NullText     `json:"livenessReason"`
	ContinuationAttempt   int               `json:"continuationAttempt"`
	LastUsefulActionAt    core.Time         `json:"lastUsefulActionAt"`
	NextAction            core.NullText     `json:"nextAction"`
	WakeComments          []string          `json:"wakeCommentIds" nullable:"true"`
	WakeComment           core.NullText     `json:"wakeCommentId"`
	ContextComment        core.NullText     `json:"contextCommentId"`
	ContextIssue          core.NullText     `json:"contextIssueId"`
	Execution             runExecution      `json:"execution"`
	RetryExhausted        core.NullText     `json:"retryExhaustedReason"`
	Node                  string            `json:"nodeId,omitempty"`

	Environment *entity.Environment      `json:"environment"`
	Lease       *entity.EnvironmentLease `json:"environmentLease"`
}

func issueRunView(tx *ledger.Tx, r entity.Run, now core.Time) issueRun {
	env, lease := leaseOf(r)
	return issueRun{
		Environment: env, Lease: lease, Run: r.ID, RuntimeMode: r.RuntimeMode, Status: r.Status, Agent: r.Agent,
		AdapterType: r.AdapterType, StartedAt: r.StartedAt,
		FinishedAt: r.FinishedAt, CreatedAt: r.CreatedAt, Source: r.Source, ResponsibleUser: r.ResponsibleUser,
		ErrorCode: r.ErrorCode,
		Usage:     r.UsageJSON, Result: shortResult(r.ResultJSON), LogBytes: r.LogBytes, RetryOf: r.RetryOf,
		ScheduledRetryAt:      r.ScheduledRetryAt,
		ScheduledRetryAttempt: r.ScheduledRetryAttempt, ScheduledRetryReason: r.ScheduledRetryReason,
		LivenessState:  r.LivenessState,
		LivenessReason: r.LivenessReason, ContinuationAttempt: r.ContinuationAttempt,
		LastUsefulActionAt: r.LastUsefulActionAt,
		NextAction:         r.NextAction, WakeComments: r.Context.CommentIDs, WakeComment: core.NullText(r.Context.CommentID),
		ContextComment: core.NullText(r.Context.CommentID), ContextIssue: core.NullText(r.Context.IssueID),
		Execution: executionOf(tx, r), RetryExhausted: viewRun(tx, r, now).RetryExhausted, Node: r.Node,
	}
}

// shortResult returns a run's result without its output.
func shortResult(full json.RawMessage) json.RawMessage {
	if full == nil {
		return nil
	}
	var short struct {
		StopReason   json.RawMessage `json:"stopReason,omitempty"`
		Fired        json.RawMessage `json:"timeoutFired,omitempty"`
		Source       json.RawMessage `json:"timeoutSource,omitempty"`
		Configured   json.RawMessage `json:"timeoutConfigured,omitempty"`
		EffectiveSec json.RawMessage `json:"effectiveTimeoutSec,omitempty"`
	}
	if json.Unmarshal(full, &short) != nil {
		return nil
	}
	b, err := json.Marshal(short)
	if err != nil {
		return nil
	}
	return b
}

// A runIssue is an issue that a run is about.
type runIssue struct {
	ID         string             `json:"issueId"`
	Identifier string             `json:"identifier"`
	Title      string             `json:"title"`
	Status     entity.IssueStatus `json:"status"`
	Priority   entity.Priority    `json:"priority"`
}

// A runLogPage is a part of a run's log.
type runLogPage struct {
	Run     string        `json:"runId"`
	Store   core.NullText `json:"store"`
	Ref     core.NullText `json:"logRef"`
	Content string        `json:"content"`
	Next    *int64        `json:"nextOffset,omitempty"`
}
