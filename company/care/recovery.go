package care

import (
	"encoding/json"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A RecoveryAction is a decision that is missing on an issue, and who has to make it. An issue
// has at most one active. Moving the issue out of blocked resolves it.
type RecoveryAction struct {
	ID            string           `cbor:"1,keyasint" json:"id"`
	Company       ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Issue         string           `cbor:"3,keyasint" json:"sourceIssueId"`
	RecoveryIssue core.NullText    `cbor:"-" json:"recoveryIssueId"`
	// Kind is missing_disposition, process_lost, run_failed, no_progress,
	// stranded_assigned_issue, assignee_gone, blocked_without_reason or
	// review_without_participant.
	Kind          string          `cbor:"4,keyasint" json:"kind"`
	Status        string          `cbor:"5,keyasint" json:"status"` // active, resolved or cancelled
	OwnerType     string          `cbor:"6,keyasint" json:"ownerType"`
	OwnerAgent    core.NullText   `cbor:"7,keyasint,omitempty" json:"ownerAgentId"`
	OwnerUser     core.NullText   `cbor:"8,keyasint,omitempty" json:"ownerUserId"`
	PreviousOwner core.NullText   `cbor:"9,keyasint,omitempty" json:"previousOwnerAgentId"`
	ReturnOwner   core.NullText   `cbor:"10,keyasint,omitempty" json:"returnOwnerAgentId"`
	Cause         string          `cbor:"11,keyasint" json:"cause"`
	Fingerprint   string          `cbor:"12,keyasint" json:"fingerprint"`
	Evidence      json.RawMessage `cbor:"13,keyasint,omitempty" json:"evidence"`
	NextAction    string          `cbor:"14,keyasint" json:"nextAction"`
	WakePolicy    json.RawMessage `cbor:"-" json:"wakePolicy"`
	MonitorPolicy json.RawMessage `cbor:"-" json:"monitorPolicy"`
	Attempts      int             `cbor:"15,keyasint" json:"attemptCount"`
	MaxAttempts   int             `cbor:"16,keyasint" json:"maxAttempts"`
	TimeoutAt     core.Time       `cbor:"-" json:"timeoutAt"`
	LastAttemptAt core.Time       `cbor:"17,keyasint,omitempty" json:"lastAttemptAt"`
	// restored, false_positive, blocked or cancelled
	Outcome    core.NullText `cbor:"18,keyasint,omitempty" json:"outcome"`
	Note       core.NullText `cbor:"19,keyasint,omitempty" json:"resolutionNote"`
	ResolvedAt core.Time     `cbor:"20,keyasint,omitempty" json:"resolvedAt"`
	CreatedAt  core.Time     `cbor:"21,keyasint" json:"createdAt"`
	UpdatedAt  core.Time     `cbor:"22,keyasint" json:"updatedAt"`
}

// ResolveRecovery is the payload of issue.resolve_recovery.
type ResolveRecovery struct {
	Issue   string             `cbor:"1,keyasint"`
	Action  string             `cbor:"2,keyasint,omitempty"` // "": the active one
	Outcome string             `cbor:"3,keyasint"`
	Status  entity.IssueStatus `cbor:"4,keyasint"` // todo, done, in_review or blocked
	Note    string             `cbor:"5,keyasint,omitempty"`
}

// Recovered is the answer of issue.resolve_recovery.
type Recovered struct {
	Action RecoveryAction `cbor:"1,keyasint"`
	Issue  entity.Issue   `cbor:"2,keyasint"`
}

const (
	// keptRecoveries bounds the stored recovery actions of an issue.
	keptRecoveries = 20
	// MaxResolutionNote bounds the note of a resolution, in bytes.
	MaxResolutionNote = 4 << 10
)

// recoveries are keyed by <issue>.<height>, oldest first; the issue's row names the active
// one.
var recoveries = ledger.NewTable[string, RecoveryAction]("recovery-action")

const KindIssueResolveRecovery = "issue.resolve_recovery"

var recoveryKinds = []company.Kind{
	{Name: KindIssueResolveRecovery, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Task, Do: ledger.Typed(resolveRecovery)},
}

// RecoveriesOf returns the recovery actions of an issue, newest first.
func RecoveriesOf(tx *ledger.Tx, i entity.Issue) []RecoveryAction {
	out := []RecoveryAction{}
	from := recoveries.Key(i.Company, i.ID+".")
	for _, v := range tx.Scan(from, ledger.PrefixEnd(from), true) {
		var a RecoveryAction
		if err := ledger.Unmarshal(v, &a); err != nil {
			panic("company: recovery action does not decode: " + err.Error())
		}
		out = append(out, a)
	}
	return out
}

// ActiveRecovery returns the active recovery action of an issue.
func ActiveRecovery(tx *ledger.Tx, i entity.Issue) (RecoveryAction, bool) {
	if i.Recovery == "" {
		return RecoveryAction{}, false
	}
	return recoveries.Get(tx, i.Company, i.Recovery)
}

// openRecovery stores a recovery action for the board and returns r's issue with it.
func openRecovery(c *ledger.Context, i entity.Issue, r entity.Run, kind, next string) entity.Issue {
	now := core.TimeOf(c.Now)
	a := RecoveryAction{
		ID: core.DerivedID("recovery", i.ID, r.ID, ledger.Order(c.Height)), Company: i.Company, Issue: i.ID, Kind: kind,
		Status: "active", OwnerType: "board",
		OwnerUser: core.NullText(i.ResponsibleUser), PreviousOwner: core.NullText(i.Assignee),
		ReturnOwner: core.NullText(i.Assignee), Cause: string(r.LivenessState),
		Fingerprint: kind + ":" + r.ID, NextAction: next, Attempts: r.Followups + r.ProcessLossRetryCount + r.Failures,
		MaxAttempts: entity.MaxFollowups, LastAttemptAt: r.StartedAt,
		Evidence: core.Object{}.Str("latestRunId", r.ID).Str("latestRunStatus", string(r.Status)).Null("predecessorRunId",
			string(r.RetryOf)).Close(),
		CreatedAt: now, UpdatedAt: now,
	}
	if kind != "missing_disposition" {
		a.Cause, a.MaxAttempts = string(r.ErrorCode), entity.MaxRunAttempts
	}
	if old := RecoveriesOf(c.Tx, i); len(old) >= keptRecoveries {
		for k := range c.Prefix(recoveries.Key(i.Company, i.ID+".")) {
			c.Delete(k) // the oldest
			break
		}
	}
	i.Recovery = i.ID + "." + ledger.Order(c.Height)
	recoveries.Put(c.Tx, i.Company, i.Recovery, a)
	alarm(c, i, r, kind)
	return i
}

// settleRecovery ends the recovery action that next no longer needs. It is called for every
// stored issue.
func settleRecovery(tx *ledger.Tx, next entity.Issue) entity.Issue {
	if next.Handoff != nil && next.Status != entity.IssueInProgress && next.Status != entity.IssueBlocked {
		next.Handoff = nil
	}
	if next.Recovery == "" || next.Status == entity.IssueBlocked {
		return next
	}
	a, ok := recoveries.Get(tx, next.Company, next.Recovery)
	if ok && a.Kind == reviewByBoard && next.Status == entity.IssueInReview {
		return next
	}
	if ok && a.Status == "active" {
		a.Status, a.Outcome, a.ResolvedAt, a.UpdatedAt = "resolved", "restored", next.UpdatedAt, next.UpdatedAt
		if next.Status == entity.IssueCancelled {
			a.Status, a.Outcome = "cancelled", "cancelled"
		}
		recoveries.Put(tx, next.Company, next.Recovery, a)
	}
	next.Recovery = ""
	return next
}

func dropRecoveries(tx *ledger.Tx, i entity.Issue) {
	for k := range tx.Prefix(recoveries.Key(i.Company, i.ID+".")) {
		tx.Delete([]byte(strings.Clone(string(k))))
	}
}

// resolveRecovery ends an active recovery action and moves its issue to the chosen status.
// The board may do so, and the issue's assignee within an agent's rights.
func resolveRecovery(c *ledger.Context, p ResolveRecovery) (any, error) {
	i, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, company.ErrNoIssue()
	}
	if core.IsAgent(c) && i.Assignee != c.Cmd.Actor.ID {
		return nil, core.ErrBoardOnly()
	}
	if len(p.Note) > MaxResolutionNote {
		return nil, ledger.Refuse(ledger.Invalid, nil, "resolutionNote is longer than %d bytes", MaxResolutionNote)
	}
	switch p.Outcome {
	case "restored", "false_positive", "blocked", "cancelled":
	default:
		return nil, ledger.Refuse(ledger.Invalid, nil, "unknown outcome %q", p.Outcome)
	}
	key := i.Recovery
	a, ok := ActiveRecovery(c.Tx, i)
	if !ok || p.Action != "" && p.Action != a.ID {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Active recovery action not found")
	}
	if (p.Outcome == "blocked") != (p.Status == entity.IssueBlocked) {
		return nil, ledger.Refuse(ledger.Unprocessable, nil,
			"outcome blocked goes with sourceIssueStatus blocked, and no other")
	}
	now := core.TimeOf(c.Now)
	next := i
	if p.Status != i.Status {
		var err error
		if next, _, err = i.Move(entity.Move{To: p.Status, Board: core.IsBoard(c), Now: now}); err != nil {
			return nil, err
		}
	}
	a.Status, a.Outcome, a.Note, a.ResolvedAt, a.UpdatedAt = "resolved", core.NullText(p.Outcome),
		core.NullText(p.Note), now, now
	if p.Outcome == "cancelled" {
		a.Status = "cancelled"
	}
	recoveries.Put(c.Tx, i.Company, key, a)
	next.Recovery, next.UpdatedAt = "", now
	c.Record(ledger.Change{Action: "issue.recovery_action_resolved", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("recoveryActionId", a.ID).Str("kind", a.Kind).Str("outcome", p.Outcome).
			Str("status", string(next.Status)).
			Str("identifier", i.Identifier).Close()})
	company.StoreIssue(c.Tx, i, next)
	if err := company.WakeForAssignment(c, i, next); err != nil {
		return nil, err
	}
	return Recovered{a, next}, nil
}
