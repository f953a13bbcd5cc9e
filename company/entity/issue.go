package entity

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// An IssueStatus is the status of an issue. Persisted: do not rename.
type IssueStatus string

const (
	IssueBacklog    IssueStatus = "backlog"
	IssueTodo       IssueStatus = "todo"
	IssueInProgress IssueStatus = "in_progress"
	IssueInReview   IssueStatus = "in_review"
	IssueDone       IssueStatus = "done"
	IssueBlocked    IssueStatus = "blocked"
	IssueCancelled  IssueStatus = "cancelled"
)

// IssueStatuses lists every status in the order of the contract's messages.
var IssueStatuses = []IssueStatus{IssueBacklog, IssueTodo, IssueInProgress, IssueInReview, IssueDone, IssueBlocked,
	IssueCancelled}

// Valid reports whether s is a status.
func (s IssueStatus) Valid() bool { return slices.Contains(IssueStatuses, s) }

// Terminal reports whether work on an issue with this status has ended.
func (s IssueStatus) Terminal() bool { return s == IssueDone || s == IssueCancelled }

// Next lists the statuses to which an agent may move an issue with status s.
func (s IssueStatus) Next() []IssueStatus {
	switch s {
	case IssueBacklog:
		return []IssueStatus{IssueTodo, IssueCancelled}
	case IssueTodo:
		return []IssueStatus{IssueInProgress, IssueBlocked, IssueCancelled}
	case IssueInProgress:
		return []IssueStatus{IssueInReview, IssueBlocked, IssueDone, IssueCancelled}
	case IssueInReview:
		return []IssueStatus{IssueInProgress, IssueDone, IssueCancelled}
	case IssueBlocked:
		return []IssueStatus{IssueTodo, IssueInProgress, IssueCancelled}
	}
	return nil
}

// NextForBoard lists the statuses to which the board may move an issue with status s: from
// an open status any other, from a terminal one todo and backlog.
func (s IssueStatus) NextForBoard() []IssueStatus {
	if s.Terminal() {
		return []IssueStatus{IssueTodo, IssueBacklog}
	}
	return slices.DeleteFunc(slices.Clone(IssueStatuses), func(to IssueStatus) bool { return to == s })
}

// A Priority says how urgent an issue is. Persisted: do not rename.
type Priority string

const (
	PriorityCritical Priority = "critical"
	PriorityHigh     Priority = "high"
	PriorityMedium   Priority = "medium"
	PriorityLow      Priority = "low"
)

// Priorities lists every priority, the most urgent first.
var Priorities = []Priority{PriorityCritical, PriorityHigh, PriorityMedium, PriorityLow}

// Rank returns 0 for the most urgent priority, and more for less urgent ones.
func (p Priority) Rank() int {
	if i := slices.Index(Priorities, p); i >= 0 {
		return i
	}
	return len(Priorities)
}

// An Issue is one task: the unit of assignment, checkout, work and cost. Field numbers
// below 24 take one byte; they are those that a checkout reads and writes. An empty string
// is null in JSON where the contract has null.
type Issue struct {
	ID          string      `cbor:"1,keyasint"`
	Number      uint64      `cbor:"2,keyasint"` // counts from 1 within the company
	Identifier  string      `cbor:"3,keyasint"` // issue prefix and number, "ACM-42"
	Status      IssueStatus `cbor:"4,keyasint"`
	Priority    Priority    `cbor:"5,keyasint"`
	Assignee    string      `cbor:"6,keyasint,omitempty"` // agent
	CheckoutRun string      `cbor:"7,keyasint,omitempty"` // the run that holds the lock
	// height of the entry of the checkout; 0 when nobody holds it
	Fence         uint64           `cbor:"8,keyasint,omitempty"`
	StatusVersion uint64           `cbor:"9,keyasint,omitempty"`
	UpdatedAt     core.Time        `cbor:"10,keyasint"`
	StartedAt     core.Time        `cbor:"11,keyasint,omitempty"`
	Company       ledger.CompanyID `cbor:"12,keyasint"`
	Title         string           `cbor:"13,keyasint"`
	Project       string           `cbor:"14,keyasint,omitempty"`
	Workspace     string           `cbor:"15,keyasint,omitempty"` // project workspace
	Goal          string           `cbor:"16,keyasint,omitempty"`
	Parent        string           `cbor:"17,keyasint,omitempty"`
	CreatedAt     core.Time        `cbor:"18,keyasint"`
	CreatedAgent  string           `cbor:"19,keyasint,omitempty"`
	CreatedUser   string           `cbor:"20,keyasint,omitempty"`
	// requestDepth: the number of its ancestors when it was created
	Depth     uint64   `cbor:"21,keyasint,omitempty"`
	BlockedBy []string `cbor:"22,keyasint,omitempty"` // issues, sorted
	Labels    []string `cbor:"23,keyasint,omitempty"` // sorted

	Description        string    `cbor:"24,keyasint,omitempty"`
	AssigneeUser       string    `cbor:"25,keyasint,omitempty"`
	ResponsibleUser    string    `cbor:"26,keyasint,omitempty"`
	CompletedAt        core.Time `cbor:"27,keyasint,omitempty"`
	CancelledAt        core.Time `cbor:"28,keyasint,omitempty"`
	HiddenAt           core.Time `cbor:"29,keyasint,omitempty"`
	BillingCode        string    `cbor:"30,keyasint,omitempty"`
	WorkMode           string    `cbor:"31,keyasint,omitempty"` // empty is "standard"
	HarnessKind        string    `cbor:"32,keyasint,omitempty"`
	ReviewPolicy       string    `cbor:"33,keyasint,omitempty"`
	OriginKind         string    `cbor:"34,keyasint,omitempty"` // empty is "manual"
	OriginID           string    `cbor:"35,keyasint,omitempty"`
	OriginRun          string    `cbor:"36,keyasint,omitempty"`
	OriginFingerprint  string    `cbor:"37,keyasint,omitempty"` // empty is "default"
	ExecutionWorkspace string    `cbor:"38,keyasint,omitempty"`
	WorkspacePref      string    `cbor:"39,keyasint,omitempty"`
	BlockedAt          core.Time `cbor:"40,keyasint,omitempty"` // blockedTransitionAt
	Comments           uint64    `cbor:"41,keyasint,omitempty"` // how many the issue has

	// Raw JSON as the client sent it.
	AdapterOverrides  json.RawMessage `cbor:"42,keyasint,omitempty"`
	ExecutionPolicy   json.RawMessage `cbor:"43,keyasint,omitempty"`
	WorkspaceSettings json.RawMessage `cbor:"44,keyasint,omitempty"`
	UnblockDescriptor json.RawMessage `cbor:"45,keyasint,omitempty"`

	// TitleHash and RequestHash are the keys of the rows of the duplicate guard and of the
	// body's idempotencyKey, for deleting them with the issue.
	TitleHash   string `cbor:"46,keyasint,omitempty"`
	RequestHash string `cbor:"47,keyasint,omitempty"`

	// ContinuationIdentity is the identity context of the latest run that started
	// on the issue.
	ContinuationIdentity string `cbor:"60,keyasint,omitempty"`
	// Recovery is the pending recovery action of the issue, see care.RecoveryAction.
	Recovery string `cbor:"61,keyasint,omitempty"`
	// Handoff is set while a run that ended without a decision waits for its follow-up.
	Handoff *Handoff `cbor:"62,keyasint,omitempty"`
	// Execution is the state of the stages of the execution policy.
	Execution *ExecutionState `cbor:"63,keyasint,omitempty"`
	// Monitor says when the issue's agent next checks something outside.
	Monitor *Monitor `cbor:"64,keyasint,omitempty"`
	// Allowance is the issue, this one or an ancestor at creation, whose [Allowance] pays for
	// the work.
	Allowance string `cbor:"65,keyasint,omitempty"`
	// Review is the interaction that requests the current review, if one was named; see
	// bindReview.
	Review string `cbor:"66,keyasint,omitempty"`
}

// Clone returns a copy that shares no memory with i. The ledger's cache of decoded rows
// needs it.
func (i Issue) Clone() Issue {
	i.BlockedBy, i.Labels = slices.Clone(i.BlockedBy), slices.Clone(i.Labels)
	i.AdapterOverrides, i.ExecutionPolicy = slices.Clone(i.AdapterOverrides), slices.Clone(i.ExecutionPolicy)
	i.WorkspaceSettings, i.UnblockDescriptor = slices.Clone(i.WorkspaceSettings), slices.Clone(i.UnblockDescriptor)
	i.Handoff, i.Monitor = core.CloneOf(i.Handoff), core.CloneOf(i.Monitor)
	if i.Execution = core.CloneOf(i.Execution); i.Execution != nil {
		i.Execution.Completed = slices.Clone(i.Execution.Completed)
	}
	return i
}

// Held reports whether the issue is checked out.
func (i Issue) Held() bool { return i.Fence != 0 }

// A Claim says who wants to check an issue out. An agent needs a run; the board may claim
// for an agent without one.
type Claim struct {
	Agent  string
	Run    string // "" when the board claims
	Now    core.Time
	Height uint64 // of the entry; becomes the fencing token
}

// CheckOut returns the issue in progress, owned by the claim's agent, or refuses with 409,
// the present owner and status. The present holder gets the issue again unchanged. An issue
// in progress that is assigned to the agent and held by nobody, because its earlier run has
// ended, is checked out again whatever statuses were expected.
func (i Issue) CheckOut(c Claim, expected []IssueStatus) (Issue, error) {
	mine := i.Assignee == c.Agent
	switch {
	case i.Status.Terminal(),
		i.Assignee != "" && !mine,
		i.AssigneeUser != "":
		return i, i.conflict()
	case i.Status == IssueInProgress && i.Held() && i.CheckoutRun == c.Run:
		return i, nil
	case i.CheckoutRun != "":
		return i, i.conflict() // a run holds it, and no lock outlives its run
	case i.Status == IssueInProgress && mine:
		// Held for the agent without a run, or not held.
	case !slices.Contains(expected, i.Status):
		return i, i.conflict()
	}
	i = i.Enter(IssueInProgress, c.Now)
	i.Assignee, i.CheckoutRun, i.Fence, i.UpdatedAt = c.Agent, c.Run, c.Height, c.Now
	return i, nil
}

// conflict returns the 409 that names the holder.
func (i Issue) conflict() error {
	return ledger.Refuse(ledger.Conflict, i.Holder().Close(), "Issue checkout conflict")
}

// Holder starts the details of a refusal with the holder of the issue.
func (i Issue) Holder() core.Object {
	return core.Object{}.Str("issueId", i.ID).Str("status", string(i.Status)).Null("assigneeAgentId", i.Assignee).
		Null("checkoutRunId", i.CheckoutRun).Null("executionRunId", i.CheckoutRun)
}

// MustOwn refuses a write of agent under run when the issue is in progress and assigned to
// agent, but checked out by another run.
func (i Issue) MustOwn(agent, run string) error {
	if i.Status == IssueInProgress && i.Assignee == agent && (!i.Held() || i.CheckoutRun != run) {
		return i.StaleRun(agent, run)
	}
	return nil
}

// StaleRun returns the 409 for a write under a run that does not hold the issue.
func (i Issue) StaleRun(agent, run string) error {
	return ledger.Refuse(ledger.Conflict, i.Holder().Null("actorAgentId", agent).Null("actorRunId", run).Close(),
		"Issue run ownership conflict")
}

// Release returns the issue unassigned, in todo if it was in progress. A terminal issue is
// refused.
func (i Issue) Release(now core.Time) (Issue, error) {
	if i.Status.Terminal() {
		return i, i.conflict()
	}
	if i.Status == IssueInProgress {
		i = i.Enter(IssueTodo, now)
	}
	i.Assignee, i.AssigneeUser = "", ""
	i.UpdatedAt = now
	return i.Unheld(), nil
}

// ForceRelease removes the lock, and the assignee too when clear is set. An issue without an
// assignee can not be in progress, so it moves to todo.
func (i Issue) ForceRelease(clear bool, now core.Time) Issue {
	if clear {
		i.Assignee = ""
		if i.Status == IssueInProgress && i.AssigneeUser == "" {
			i = i.Enter(IssueTodo, now)
		}
	}
	i.UpdatedAt = now
	return i.Unheld()
}

// Unheld removes the lock and keeps everything else.
func (i Issue) Unheld() Issue {
	i.CheckoutRun, i.Fence = "", 0
	return i
}

// A Move is a requested change of status with the facts that the rules need.
type Move struct {
	To       IssueStatus
	Board    bool // the board asks; it may go beyond the table
	Routable bool // for blocked: something or somebody is known to unblock it
	Now      core.Time
}

// Move returns the issue with the requested status, and whether the board went beyond the
// table. It refuses with 409, the present status and the allowed ones; with 422 when the
// status needs an assignee or a reason. The present status is always allowed and changes
// nothing.
func (i Issue) Move(m Move) (next Issue, override bool, err error) {
	if m.To == i.Status {
		return i, false, i.Consistent()
	}
	allowed := i.Status.Next()
	if override = !slices.Contains(allowed, m.To); override && m.Board {
		allowed = i.Status.NextForBoard()
	}
	if !slices.Contains(allowed, m.To) {
		return i, false, core.Illegal("issueId", i.ID, i.Status, m.To, allowed, "Issue cannot move from %s to %s",
			i.Status, m.To)
	}
	if m.To == IssueBlocked && !m.Routable {
		return i, false, ErrNotRoutable()
	}
	i = i.Enter(m.To, m.Now)
	i.UpdatedAt = m.Now
	return i, override, i.Consistent()
}

func ErrNotRoutable() error {
	return ledger.Refuse(ledger.Unprocessable, nil,
		"Entering blocked requires unresolved blockers, a pending interaction/approval, or unblockDescriptor")
}

// Consistent refuses an issue that must never be stored.
func (i Issue) Consistent() error {
	if i.Assignee != "" && i.AssigneeUser != "" {
		return ledger.Refuse(ledger.Unprocessable, nil, "Issue can only have one assignee")
	}
	if i.Status == IssueInProgress && i.Assignee == "" && i.AssigneeUser == "" {
		return ledger.Refuse(ledger.Unprocessable, nil, "in_progress issues require an assignee")
	}
	return nil
}

// Enter sets the status with its side effects: startedAt once; completedAt, cancelledAt and
// blockedTransitionAt while they apply; no lock outside in_progress.
func (i Issue) Enter(to IssueStatus, now core.Time) Issue {
	if to == i.Status {
		return i
	}
	if i.Status == IssueBlocked {
		i.BlockedAt, i.UnblockDescriptor = 0, nil
	}
	i.Status = to
	i.StatusVersion++
	i.CompletedAt, i.CancelledAt, i.Review = 0, 0, ""
	switch to {
	case IssueInProgress:
		if i.StartedAt == 0 {
			i.StartedAt = now
		}
		return i
	case IssueDone:
		i.CompletedAt = now
	case IssueCancelled:
		i.CancelledAt = now
	case IssueBlocked:
		i.BlockedAt = now
	}
	return i.Unheld()
}

// Mode returns the work mode, "standard" unless another was set.
func (i Issue) Mode() string { return cmp.Or(i.WorkMode, "standard") }

// Origin returns the origin kind, "manual" unless another was set.
func (i Issue) Origin() string { return cmp.Or(i.OriginKind, "manual") }

// Fingerprint returns the origin's fingerprint, "default" unless another was set.
func (i Issue) Fingerprint() string { return cmp.Or(i.OriginFingerprint, "default") }

// Diff returns the differences between i and next as a JSON object of
// {"field":{"from":…,"to":…}} in the contract's names, "{}" for none. It leaves out the time
// of the change and the fencing token.
func (i Issue) Diff(next Issue) []byte {
	d := core.Object{}
	text := func(name, from, to string) {
		if from != to {
			d = d.Raw(name, core.Object{}.Null("from", from).Null("to", to).Close())
		}
	}
	number := func(name string, from, to uint64) {
		if from != to {
			d = d.Raw(name, core.Object{}.Uint("from", from).Uint("to", to).Close())
		}
	}
	at := func(name string, from, to core.Time) {
		if from != to {
			d = d.Raw(name, core.Object{}.Time("from", from).Time("to", to).Close())
		}
	}
	list := func(name string, from, to []string) {
		if !slices.Equal(from, to) {
			d = d.Raw(name, core.Object{}.List("from", from).List("to", to).Close())
		}
	}
	raw := func(name string, from, to json.RawMessage) {
		if !bytes.Equal(from, to) {
			d = d.Raw(name, core.Object{}.Raw("from", rawOrNull(from)).Raw("to", rawOrNull(to)).Close())
		}
	}
	text("projectId", i.Project, next.Project)
	text("projectWorkspaceId", i.Workspace, next.Workspace)
	text("goalId", i.Goal, next.Goal)
	text("parentId", i.Parent, next.Parent)
	text("title", i.Title, next.Title)
	text("description", i.Description, next.Description)
	text("status", string(i.Status), string(next.Status))
	number("statusVersion", i.StatusVersion, next.StatusVersion)
	text("workMode", i.Mode(), next.Mode())
	text("harnessKind", i.HarnessKind, next.HarnessKind)
	text("priority", string(i.Priority), string(next.Priority))
	text("reviewPolicy", i.ReviewPolicy, next.ReviewPolicy)
	text("assigneeAgentId", i.Assignee, next.Assignee)
	text("assigneeUserId", i.AssigneeUser, next.AssigneeUser)
	text("checkoutRunId", i.CheckoutRun, next.CheckoutRun)
	text("executionRunId", i.CheckoutRun, next.CheckoutRun)
	number("requestDepth", i.Depth, next.Depth)
	text("billingCode", i.BillingCode, next.BillingCode)
	raw("assigneeAdapterOverrides", i.AdapterOverrides, next.AdapterOverrides)
	raw("executionPolicy", i.ExecutionPolicy, next.ExecutionPolicy)
	text("executionWorkspaceId", i.ExecutionWorkspace, next.ExecutionWorkspace)
	text("executionWorkspacePreference", i.WorkspacePref, next.WorkspacePref)
	raw("executionWorkspaceSettings", i.WorkspaceSettings, next.WorkspaceSettings)
	raw("unblockDescriptor", i.UnblockDescriptor, next.UnblockDescriptor)
	at("blockedTransitionAt", i.BlockedAt, next.BlockedAt)
	at("startedAt", i.StartedAt, next.StartedAt)
	at("completedAt", i.CompletedAt, next.CompletedAt)
	at("cancelledAt", i.CancelledAt, next.CancelledAt)
	at("hiddenAt", i.HiddenAt, next.HiddenAt)
	raw("reviewRequest", i.ReviewRequest(), next.ReviewRequest())
	text("reviewInteractionId", i.Review, next.Review)
	list("labelIds", i.Labels, next.Labels)
	list("blockedByIssueIds", i.BlockedBy, next.BlockedBy)
	return d.Close()
}

func rawOrNull(b json.RawMessage) []byte {
	if len(b) == 0 {
		return []byte("null")
	}
	return b
}

// OriginRoutine is the origin kind of issues that routines create.
const OriginRoutine = "routine_execution"

// Assigned returns the value for IssuesByAssignee, "" for an issue without an agent.
func (i Issue) Assigned() string {
	if i.Assignee == "" {
		return ""
	}
	return i.Assignee + "." + string(i.Status)
}

func (i Issue) Sort() IssueSort {
	return IssueSort{byte(i.Priority.Rank()), i.UpdatedAt, i.Number, i.HiddenAt != 0}
}

// Counted returns the index of the status under which an issue is counted, or -1.
func (i Issue) Counted() int {
	if i.ID == "" || i.HiddenAt != 0 {
		return -1
	}
	return slices.Index(IssueStatuses, i.Status)
}

// TakesUp reports whether reopen or resume moves i back to todo.
func (i Issue) TakesUp(reopen, resume bool) bool {
	return i.Status.Terminal() && (reopen || resume) || i.Status == IssueBlocked && resume
}

// Rests reports whether nobody needs to continue an issue with this status.
func (s IssueStatus) Rests() bool { return s.Terminal() || s == IssueBacklog }

// Ref returns the short form of i.
func (i Issue) Ref() IssueRef {
	return IssueRef{ID: i.ID, Identifier: i.Identifier, Title: i.Title, Status: i.Status, Priority: i.Priority,
		Assignee: core.NullText(i.Assignee), AssigneeUser: core.NullText(i.AssigneeUser)}
}

func (i Issue) Policy() (p ExecutionPolicy) {
	if len(i.ExecutionPolicy) > 0 {
		_ = json.Unmarshal(i.ExecutionPolicy, &p) // another form means no stages
	}
	p.Stages = p.Stages[:min(len(p.Stages), MaxStages)]
	return p
}

// ExecutionStateJSON returns the state of the stages for clients, null before the first
// hand-in.
func (i Issue) ExecutionStateJSON() json.RawMessage {
	s := i.Execution
	if s == nil {
		return json.RawMessage("null")
	}
	p := i.Policy()
	who := func(agent, user string) json.RawMessage {
		switch {
		case agent != "":
			return core.Object{}.Str("type", "agent").Str("agentId", agent).Null("userId", "").Close()
		case user != "":
			return core.Object{}.Str("type", "user").Null("agentId", "").Str("userId", user).Close()
		}
		return json.RawMessage("null")
	}
	stage, _ := p.Stage(s.Stage)
	o := core.Object{}.Str("status", s.Status).Null("currentStageId", s.Stage)
	if at := slices.IndexFunc(p.Stages, func(st ExecutionStage) bool { return st.ID == s.Stage }); at >= 0 {
		o = o.Int("currentStageIndex", int64(at))
	} else {
		o = o.Null("currentStageIndex", "")
	}
	return o.Null("currentStageType", stage.Type).Raw("currentParticipant", who(s.Agent, s.User)).Raw("returnAssignee",
		who(s.ReturnAgent, s.ReturnUser)).
		List("completedStageIds", s.Completed).Int("changesRequestedCount", int64(s.Rounds)).Null("lastDecisionId",
		s.Decision).Null("lastDecisionOutcome", s.Outcome).
		Raw("reviewRequest", i.ReviewRequest()).Close()
}

// ReviewRequest returns what the participant of the pending stage is asked, or null.
func (i Issue) ReviewRequest() json.RawMessage {
	if i.Execution == nil || i.Execution.Request == "" {
		return json.RawMessage("null")
	}
	return core.Object{}.Str("instructions", i.Execution.Request).Close()
}

// Monitors reports whether i waits for something outside: it has an agent, is in progress or
// in review, and will be woken.
func (i Issue) Monitors() bool {
	return i.Monitor != nil && i.Monitor.NextAt > 0 && i.Watchable()
}

func (i Issue) Watchable() bool {
	return i.Assignee != "" && i.AssigneeUser == "" && (i.Status == IssueInProgress || i.Status == IssueInReview)
}

// Started reports whether an issue with this status is at work or starts by itself.
func (s IssueStatus) Started() bool {
	return s == IssueTodo || s == IssueInProgress || s == IssueInReview || s == IssueBlocked
}

const (
	// DefaultIssueLimit and MaxIssueLimit bound a list of issues, as the contract does.
	DefaultIssueLimit = 500
	MaxIssueLimit     = 1000
	// MaxIssueDepth bounds the chain of parents, so that walking it is short.
	MaxIssueDepth = 64
	// MaxSubtree bounds what one cost summary or move of a subtree walks.
	MaxSubtree = 5_000
	// MaxChildren and MaxBlocked bound the sub-issues of an issue and the issues that wait for
	// it: one command changes all of them when the issue is deleted.
	MaxChildren = 400
	// MaxComments bounds the comments of an issue: one command deletes all of them with the
	// issue, three keys each.
	MaxComments = 2_000
	// DefaultCommentLimit and MaxCommentLimit bound a list of comments.
	DefaultCommentLimit = 500
	MaxCommentLimit     = MaxComments
	// MaxTitle, MaxText and MaxDescriptor are in bytes. A text leaves room for the
	// rest of its command, which the ledger bounds at 256 KiB.
	MaxTitle      = 2_000
	MaxText       = 200_000
	MaxDescriptor = 16_000
	// DuplicateWindow is how long an open issue with the same title and text counts as the same
	// request: agents retry and wake twice.
	DuplicateWindow = 2 * time.Minute
	// MaxReads bounds the readers and archivers kept for one issue.
	MaxReads = 200
)

// Undecided reports whether a run of the assignee left the issue without a decision: still
// in progress and not waiting for something outside.
func Undecided(i Issue, r Run) bool {
	return r.Context.CheckedOut && i.Assignee == r.Agent && i.Status == IssueInProgress && !i.Monitors()
}
