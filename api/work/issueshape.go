package work

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/ledger"
)

// These types describe the answers about issues for the API description. The answers are
// encoded by hand (issues_json.go); tests compare each answer with its type.

// A plainIssue is the part that every answer about an issue has.
type plainIssue struct {
	ID                         string             `json:"id"`
	Company                    ledger.CompanyID   `json:"companyId"`
	ConversationAgent          core.NullText      `json:"conversationAgentId"`
	ConversationUser           core.NullText      `json:"conversationUserId"`
	ConversationState          core.NullText      `json:"conversationState"`
	ConversationGeneration     int64              `json:"conversationSessionGeneration"`
	ConversationBoundary       core.NullText      `json:"conversationBoundaryCommentId"`
	Project                    core.NullText      `json:"projectId"`
	Workspace                  core.NullText      `json:"projectWorkspaceId"`
	Goal                       core.NullText      `json:"goalId"`
	Parent                     core.NullText      `json:"parentId"`
	Title                      string             `json:"title"`
	Description                core.NullText      `json:"description"`
	Status                     entity.IssueStatus `json:"status"`
	StatusVersion              int64              `json:"statusVersion"`
	LastStatusDecision         core.NullText      `json:"lastStatusDecisionId"`
	WorkMode                   string             `json:"workMode"`
	HarnessKind                core.NullText      `json:"harnessKind"`
	Priority                   entity.Priority    `json:"priority"`
	ReviewPolicy               core.NullText      `json:"reviewPolicy"`
	Assignee                   core.NullText      `json:"assigneeAgentId"`
	AssigneeUser               core.NullText      `json:"assigneeUserId"`
	CheckoutRun                core.NullText      `json:"checkoutRunId"`
	ExecutionRun               core.NullText      `json:"executionRunId"`
	ExecutionAgent             core.NullText      `json:"executionAgentNameKey"`
	ExecutionLockedAt          core.Time          `json:"executionLockedAt"`
	CreatedAgent               core.NullText      `json:"createdByAgentId"`
	CreatedUser                core.NullText      `json:"createdByUserId"`
	ResponsibleUser            core.NullText      `json:"responsibleUserId"`
	Number                     int64              `json:"issueNumber"`
	Identifier                 string             `json:"identifier"`
	OriginKind                 string             `json:"originKind"`
	Origin                     core.NullText      `json:"originId"`
	OriginRun                  core.NullText      `json:"originRunId"`
	OriginIdentity             core.NullText      `json:"originIdentityContextId"`
	ContinuationIdentity       core.NullText      `json:"continuationIdentityContextId"`
	OriginFingerprint          string             `json:"originFingerprint"`
	Depth                      int64              `json:"requestDepth"`
	BillingCode                core.NullText      `json:"billingCode"`
	AdapterOverrides           json.RawMessage    `json:"assigneeAdapterOverrides"`
	ExecutionPolicy            json.RawMessage    `json:"executionPolicy"`
	ExecutionState             json.RawMessage    `json:"executionState"`
	MonitorNextAt              core.Time          `json:"monitorNextCheckAt"`
	MonitorWakeAt              core.Time          `json:"monitorWakeRequestedAt"`
	MonitorLastAt              core.Time          `json:"monitorLastTriggeredAt"`
	MonitorAttempts            int64              `json:"monitorAttemptCount"`
	MonitorNotes               core.NullText      `json:"monitorNotes"`
	MonitorBy                  core.NullText      `json:"monitorScheduledBy"`
	ExecutionWorkspace         core.NullText      `json:"executionWorkspaceId"`
	ExecutionWorkspacePref     core.NullText      `json:"executionWorkspacePreference"`
	ExecutionWorkspaceSettings json.RawMessage    `json:"executionWorkspaceSettings"`
	SourceTrust                core.NullText      `json:"sourceTrust"`
	UnblockDescriptor          json.RawMessage    `json:"unblockDescriptor"`
	BlockedAt                  core.Time          `json:"blockedTransitionAt"`
	BlockedOwnerAt             core.Time          `json:"blockedOwnerNotifiedAt"`
	StartedAt                  core.Time          `json:"startedAt"`
	CompletedAt                core.Time          `json:"completedAt"`
	CancelledAt                core.Time          `json:"cancelledAt"`
	HiddenAt                   core.Time          `json:"hiddenAt"`
	CreatedAt                  core.Time          `json:"createdAt"`
	UpdatedAt                  core.Time          `json:"updatedAt"`
	Labels                     []entity.Label     `json:"labels"`
	LabelIDs                   []string           `json:"labelIds"`
	Watchdog                   *care.Watchdog     `json:"watchdog"`
	FencingToken               *int64             `json:"fencingToken" doc:"what later writes under this checkout are checked by; null while nobody has it"`
}

type issueRelations struct {
	Work        *relatedWork `json:"relatedWork,omitempty"`
	Identifiers []string     `json:"referencedIssueIdentifiers,omitempty"`
}

type relatedWork struct {
	Outbound []struct{} `json:"outbound"`
	Inbound  []struct{} `json:"inbound"`
}

// A createdIssue is the answer to creating an issue.
type createdIssue struct {
	plainIssue
	issueRelations
	BlockedBy    []entity.IssueRef `json:"blockedBy"`
	Blocks       []entity.IssueRef `json:"blocks"`
	Deduplicated bool              `json:"deduplicated,omitempty" doc:"an issue that was there is answered"`
	Reason       string            `json:"deduplicationReason,omitempty"`
}

// An updatedIssue is the answer to changing an issue.
type updatedIssue struct {
	plainIssue
	issueRelations
	Changes json.RawMessage `json:"changes"`
	Comment *entity.Comment `json:"comment"`
}

// A holdingRun is the run that holds an issue.
type holdingRun struct {
	ID            string            `json:"id"`
	Status        entity.RunStatus  `json:"status"`
	Agent         string            `json:"agentId"`
	Source        entity.WakeSource `json:"invocationSource"`
	TriggerDetail core.NullText     `json:"triggerDetail"`
	StartedAt     core.Time         `json:"startedAt"`
	FinishedAt    core.Time         `json:"finishedAt"`
	CreatedAt     core.Time         `json:"createdAt"`
}

// A blockerAttention is what the blockers of an issue need.
type blockerAttention struct {
	State           string        `json:"state"`
	Reason          core.NullText `json:"reason"`
	Unresolved      int64         `json:"unresolvedBlockerCount"`
	Covered         int64         `json:"coveredBlockerCount"`
	Stalled         int64         `json:"stalledBlockerCount"`
	Attention       int64         `json:"attentionBlockerCount"`
	PendingFinalize []string      `json:"pendingFinalizeBlockerIssueIds"`
	Sample          core.NullText `json:"sampleBlockerIdentifier"`
	SampleStalled   core.NullText `json:"sampleStalledBlockerIdentifier"`
	Live            bool          `json:"blockingTreeLive"`
	Direct          core.NullText `json:"directBlockerIssueId"`
	Terminal        core.NullText `json:"terminalBlockerIssueId"`
	TerminalBlocker core.NullText `json:"terminalBlocker"`
}

type reviewState struct {
	State  string        `json:"state"`
	Paths  []struct{}    `json:"paths"`
	Reason core.NullText `json:"reason"`
}

// A runHandoff says that a run ended without a decision about its issue, and that
// another run asks again.
type runHandoff struct {
	State      string    `json:"state"`
	Required   bool      `json:"required"`
	Live       bool      `json:"hasLiveContinuation"`
	Source     string    `json:"sourceRunId"`
	Corrective string    `json:"correctiveRunId"`
	Assignee   string    `json:"assigneeAgentId"`
	Progress   string    `json:"detectedProgressSummary"`
	CreatedAt  core.Time `json:"createdAt"`
}

// An issueStanding is the state of an issue that lists and the issue itself show.
type issueStanding struct {
	ActiveRun       *holdingRun          `json:"activeRun"`
	Attention       blockerAttention     `json:"blockerAttention"`
	ReviewAttention reviewState          `json:"reviewAttention"`
	Handoff         *runHandoff          `json:"successfulRunHandoff"`
	Recovery        *care.RecoveryAction `json:"activeRecoveryAction"`
}

// A listedIssue is a row in a list of issues.
type listedIssue struct {
	plainIssue
	issueStanding
	Truncated      bool      `json:"descriptionTruncated"`
	LastActivityAt core.Time `json:"lastActivityAt"`
	Touched        core.Time `json:"myLastTouchAt,omitempty" doc:"of the user as whom it was asked for"`
	External       core.Time `json:"lastExternalCommentAt,omitempty"`
	Unread         *bool     `json:"isUnreadForMe,omitempty"`
	Below          *int64    `json:"liveDescendantCount,omitempty"`
}

// An ancestorIssue is an issue above another in the tree.
type ancestorIssue struct {
	ID           string             `json:"id"`
	Identifier   string             `json:"identifier"`
	Title        string             `json:"title"`
	Description  core.NullText      `json:"description"`
	Status       entity.IssueStatus `json:"status"`
	Priority     entity.Priority    `json:"priority"`
	Assignee     core.NullText      `json:"assigneeAgentId"`
	AssigneeUser core.NullText      `json:"assigneeUserId"`
	Project      core.NullText      `json:"projectId"`
	Goal         core.NullText      `json:"goalId"`
}

// An issueRetry is the run that waits for its retry.
type issueRetry struct {
	Run     string           `json:"runId"`
	Agent   string           `json:"agentId"`
	Status  entity.RunStatus `json:"status"`
	RetryOf core.NullText    `json:"retryOfRunId"`
	At      core.Time        `json:"scheduledRetryAt"`
	Attempt int64            `json:"scheduledRetryAttempt"`
	Reason  core.NullText    `json:"scheduledRetryReason"`
}

// A shownIssue is an issue in full.
type shownIssue struct {
	plainIssue
	issueStanding
	issueRelations
	Ancestors         []ancestorIssue    `json:"ancestors"`
	ExecutionBlocker  core.NullText      `json:"executionBlocker"`
	Retry             *issueRetry        `json:"scheduledRetry"`
	BlockedBy         []entity.IssueRef  `json:"blockedBy"`
	Blocks            []entity.IssueRef  `json:"blocks"`
	Plan              *shownDocument     `json:"planDocument"`
	Documents         []paper.Document   `json:"documentSummaries"`
	LegacyPlan        core.NullText      `json:"legacyPlanDocument"`
	Project           json.RawMessage    `json:"project"`
	Goal              json.RawMessage    `json:"goal"`
	GoalChain         []entity.ChainGoal `json:"goalChain"`
	MentionedProjects []struct{}         `json:"mentionedProjects"`
	CurrentWorkspace  core.NullText      `json:"currentExecutionWorkspace"`
	Products          []file.WorkProduct `json:"workProducts"`
	LinkedCases       []struct{}         `json:"linkedCases"`
	ExternalChannel   core.NullText      `json:"externalChannelBinding"`
}

// A briefIssue is an issue in an agent's own inbox.
type briefIssue struct {
	ID         string             `json:"id"`
	Identifier string             `json:"identifier"`
	Title      string             `json:"title"`
	Status     entity.IssueStatus `json:"status"`
	Priority   entity.Priority    `json:"priority"`
	Project    core.NullText      `json:"projectId"`
	Goal       core.NullText      `json:"goalId"`
	Parent     core.NullText      `json:"parentId"`
	UpdatedAt  core.Time          `json:"updatedAt"`
	ActiveRun  *holdingRun        `json:"activeRun"`
	Ready      bool               `json:"dependencyReady"`
	Unresolved int64              `json:"unresolvedBlockerCount"`
	Waiting    []string           `json:"unresolvedBlockerIssueIds"`
}

type issueCount struct {
	Count int64 `json:"count"`
}

type forcedRelease struct {
	Issue    plainIssue `json:"issue"`
	Previous struct {
		CheckoutRun  core.NullText `json:"checkoutRunId"`
		ExecutionRun core.NullText `json:"executionRunId"`
	} `json:"previous"`
}

// A begunIssue is an issue in the context of an agent that starts work on it.
type begunIssue struct {
	ID              string               `json:"id"`
	Identifier      string               `json:"identifier"`
	Title           string               `json:"title"`
	Description     core.NullText        `json:"description"`
	Status          entity.IssueStatus   `json:"status"`
	WorkMode        string               `json:"workMode"`
	Attention       blockerAttention     `json:"blockerAttention"`
	ReviewAttention reviewState          `json:"reviewAttention"`
	Retry           *issueRetry          `json:"scheduledRetry"`
	Recovery        *care.RecoveryAction `json:"activeRecoveryAction"`
	Priority        entity.Priority      `json:"priority"`
	Project         core.NullText        `json:"projectId"`
	Goal            core.NullText        `json:"goalId"`
	Parent          core.NullText        `json:"parentId"`
	BlockedBy       []entity.IssueRef    `json:"blockedBy"`
	Blocks          []entity.IssueRef    `json:"blocks"`
	Assignee        core.NullText        `json:"assigneeAgentId"`
	AssigneeUser    core.NullText        `json:"assigneeUserId"`
	OriginKind      string               `json:"originKind"`
	Origin          core.NullText        `json:"originId"`
	ExecutionState  json.RawMessage      `json:"executionState"`
	UpdatedAt       core.Time            `json:"updatedAt"`
}

// A beginning is what an agent needs to start work on an issue.
type beginning struct {
	Issue     begunIssue      `json:"issue"`
	Ancestors []ancestorIssue `json:"ancestors"`
	Project   *struct {
		ID         string          `json:"id"`
		Name       string          `json:"name"`
		Status     string          `json:"status"`
		TargetDate json.RawMessage `json:"targetDate"`
	} `json:"project"`
	Goal *struct {
		ID     string        `json:"id"`
		Title  string        `json:"title"`
		Status string        `json:"status"`
		Level  string        `json:"level"`
		Parent core.NullText `json:"parentId"`
	} `json:"goal"`
	Cursor struct {
		Total    int64         `json:"totalComments"`
		Latest   core.NullText `json:"latestCommentId"`
		LatestAt core.Time     `json:"latestCommentAt"`
	} `json:"commentCursor"`
	WakeComment  *entity.Comment        `json:"wakeComment"`
	Attachments  []contextAttachment    `json:"attachments"`
	Continuation core.NullText          `json:"continuationSummary"`
	PlanReview   core.NullText          `json:"planReviewContext"`
	PaperReview  core.NullText          `json:"documentReviewContext"`
	Workspace    *executionWorkspaceRow `json:"currentExecutionWorkspace"`
}

// A searchPage is a page of search results.
type searchPage struct {
	Query      string                      `json:"query"`
	Normalized string                      `json:"normalizedQuery"`
	Scope      string                      `json:"scope"`
	Sort       string                      `json:"sort"`
	Limit      int64                       `json:"limit"`
	Offset     int64                       `json:"offset"`
	Results    []searchResult              `json:"results"`
	Counts     map[string]int64            `json:"countsByType"`
	Filters    map[string]map[string]int64 `json:"filterOptionCounts"`
	Zero       core.NullText               `json:"zeroResults"`
	More       bool                        `json:"hasMore"`
	Partial    bool                        `json:"partial" doc:"there was too much to look at"`
}

// A searchResult is an issue, an agent or a project that matched.
type searchResult struct {
	ID       string          `json:"id"`
	Type     string          `json:"type" enum:"issue,agent,project"`
	Score    int64           `json:"score"`
	Title    string          `json:"title"`
	Href     string          `json:"href" doc:"its page on the board"`
	Fields   []string        `json:"matchedFields"`
	Source   string          `json:"sourceLabel"`
	Snippet  string          `json:"snippet"`
	Snippets []searchSnippet `json:"snippets"`
	Issue    *struct {
		ID           string             `json:"id"`
		Identifier   string             `json:"identifier"`
		Title        string             `json:"title"`
		Status       entity.IssueStatus `json:"status"`
		Priority     entity.Priority    `json:"priority"`
		Assignee     core.NullText      `json:"assigneeAgentId"`
		AssigneeUser core.NullText      `json:"assigneeUserId"`
		Project      core.NullText      `json:"projectId"`
		UpdatedAt    core.Time          `json:"updatedAt"`
	} `json:"issue"`
	UpdatedAt core.Time     `json:"updatedAt"`
	Preview   core.NullText `json:"previewImageUrl"`
}

// A searchSnippet is the part of a field that holds the matches.
type searchSnippet struct {
	Field      string       `json:"field"`
	Label      string       `json:"label"`
	Text       string       `json:"text"`
	Highlights []searchMark `json:"highlights"`
}

// A searchMark is the position of a match in a snippet.
type searchMark struct {
	Start int64 `json:"start" doc:"in UTF-16 units"`
	End   int64 `json:"end"`
}
