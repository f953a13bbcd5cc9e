package money

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// CreateApproval is the payload of approval.create.
type CreateApproval struct {
	ID      string          `cbor:"1,keyasint"`
	Type    ApprovalType    `cbor:"2,keyasint"`
	Agent   string          `cbor:"3,keyasint,omitempty"` // the requester; an agent requests for itself
	Payload json.RawMessage `cbor:"4,keyasint"`
	Issues  []string        `cbor:"5,keyasint,omitempty"`
}

// DecideApproval is the payload of approval.approve, approval.reject,
// approval.revise and approval.cancel.
type DecideApproval struct {
	Approval string `cbor:"1,keyasint"`
	Note     string `cbor:"2,keyasint,omitempty"`
	// for a budget override: the new limit, in place of the proposed one
	Amount *core.Money `cbor:"3,keyasint,omitempty"`
}

// ResubmitApproval is the payload of approval.resubmit; an empty Payload keeps the present
// one.
type ResubmitApproval struct {
	Approval string          `cbor:"1,keyasint"`
	Payload  json.RawMessage `cbor:"2,keyasint,omitempty"`
	// Agent is the agent to be hired, if it exists already. It is not part of the command:
	// values are sealed for it.
	Agent string `cbor:"-"`
}

// CommentApproval is the payload of approval.comment.
type CommentApproval struct {
	ID       string `cbor:"1,keyasint"`
	Approval string `cbor:"2,keyasint"`
	Body     string `cbor:"3,keyasint"`
}

// LinkApproval is the payload of approval.link and approval.unlink.
type LinkApproval struct {
	Approval string `cbor:"1,keyasint"`
	Issue    string `cbor:"2,keyasint"`
}

// A Decision is the answer of the commands that decide. Refused is set when the approved
// command could not be executed; the approval then stays open.
type Decision struct {
	Approval Approval        `cbor:"1,keyasint"`
	Refused  *ledger.Refusal `cbor:"2,keyasint,omitempty"`
}

const (
	KindApprovalCreate   = "approval.create"
	KindApprovalApprove  = "approval.approve"
	KindApprovalReject   = "approval.reject"
	KindApprovalRevise   = "approval.revise"
	KindApprovalCancel   = "approval.cancel"
	KindApprovalResubmit = "approval.resubmit"
	KindApprovalComment  = "approval.comment"
	KindApprovalLink     = "approval.link"
	KindApprovalUnlink   = "approval.unlink"
)

var approvalKinds = []company.Kind{
	{Name: KindApprovalCreate, From: company.FromBoard | company.FromAgent, Traits: company.Importable | company.EndsKeys,
		Weight: company.Weights.Talk, Do: ledger.Typed(createApproval)},
	{Name: KindApprovalApprove, From: company.FromBoard, Traits: company.Importable | company.EndsKeys,
		Weight: company.Weights.Answering, Do: ledger.Typed(approveApproval)},
	{Name: KindApprovalReject, From: company.FromBoard, Traits: company.EndsKeys, Weight: company.Weights.Answering,
		Do: ledger.Typed(rejectApproval)},
	{Name: KindApprovalRevise, From: company.FromBoard, Traits: company.EndsKeys, Weight: company.Weights.Answering,
		Do: ledger.Typed(reviseApproval)},
	{Name: KindApprovalCancel, From: company.FromBoard, Traits: company.EndsKeys, Weight: company.Weights.Answering,
		Do: ledger.Typed(cancelApproval)},
	{Name: KindApprovalResubmit, From: company.FromBoard | company.FromAgent, Traits: company.EndsKeys,
		Weight: company.Weights.Talk, Do: ledger.Typed(resubmitApproval)},
	{Name: KindApprovalComment, From: company.FromBoard | company.FromAgent, Traits: company.EndsKeys,
		Weight: company.Weights.Talk, Do: ledger.Typed(commentApproval)},
	{Name: KindApprovalLink, From: company.FromBoard | company.FromAgent, Traits: company.EndsKeys,
		Weight: company.Weights.Talk, Do: ledger.Typed(linkApprovalCommand)},
	{Name: KindApprovalUnlink, From: company.FromBoard | company.FromAgent, Traits: company.EndsKeys,
		Weight: company.Weights.Talk, Do: ledger.Typed(unlinkApprovalCommand)},
}

func createApproval(c *ledger.Context, p CreateApproval) (any, error) {
	row, err := company.Present(c)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(ApprovalTypes, p.Type) || p.Type == ApprovalAct { // the gate alone opens these
		return nil, ledger.Refuse(ledger.Invalid, nil, "Unknown type of approval: %s", p.Type)
	}
	payload, err := core.CheckObject("payload", p.Payload, MaxApprovalPayload)
	if err != nil {
		return nil, err
	}
	if payload == nil {
		return nil, ledger.Refuse(ledger.Invalid, nil, "An approval needs a payload")
	}
	a := Approval{ID: p.ID, Company: row.ID, Type: p.Type, RequestedByAgent: core.NullText(p.Agent)}
	if core.IsAgent(c) {
		if err := mayRequest(c, &a); err != nil {
			return nil, err
		}
	} else if p.Agent != "" && !entity.AgentExists(c.Tx, row.ID, p.Agent) {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "Agent does not belong to company")
	}
	if err := checkPayload(c, a, payload); err != nil {
		return nil, err
	}
	if a, err = openApproval(c, a.showing(c.Tx, payload), core.SortedSet(p.Issues)); err != nil {
		return nil, err
	}
	return a, nil
}

// mayRequest sets the requesting agent, and refuses what it may not request.
func mayRequest(c *ledger.Context, a *Approval) error {
	who, _ := entity.AgentTable.Get(c.Tx, a.Company, c.Cmd.Actor.ID)
	switch {
	case a.RequestedByAgent != "" && string(a.RequestedByAgent) != who.ID:
		return ledger.Refuse(ledger.Forbidden, nil, "Agent can only request approvals as itself")
	case a.Type == ApprovalHire && !MayHire(who):
		return errMayNotHire()
	case a.Type == ApprovalStrategy && who.Role != "ceo":
		return ledger.Refuse(ledger.Forbidden, nil, "Only a CEO can propose a strategy")
	}
	a.RequestedByAgent = core.NullText(who.ID)
	return nil
}

// checkPayload refuses a payload that could not be executed if it were approved now, so that
// the requester gets the error and not the board.
func checkPayload(c *ledger.Context, a Approval, payload json.RawMessage) error {
	switch a.Type {
	case ApprovalHire:
		return checkHire(c, a, payload)
	case ApprovalBudget:
		o, err := overrideOf(payload)
		if err == nil && o.Type != "" && o.Scope != "" && !ScopeExists(c.Tx, a.Company, o.Type, o.Scope) {
			return ledger.Refuse(ledger.NotFound, nil, "%s not found", scopeTitle(o.Type))
		}
		return err
	}
	return nil
}

// openApproval stores and records a new pending approval with its links.
func openApproval(c *ledger.Context, a Approval, issues []string) (Approval, error) {
	if !core.IsID(a.ID) {
		return a, ledger.Refuse(ledger.Invalid, nil, "%q is not a UUID in lower case", a.ID)
	}
	if c.Has(ApprovalCompanyKey(a.ID)) {
		return a, ledger.Refuse(ledger.Conflict, nil, "ID %s is in use", a.ID)
	}
	if n, _ := PendingApprovals(c.Tx, a.Company); n >= MaxPendingApprovals && (core.IsAgent(c) || core.IsBoard(c)) {
		return a, ledger.Refuse(ledger.Conflict, nil, "%d approvals wait for the board already", n)
	}
	a.Status, a.Height, a.CreatedAt, a.UpdatedAt = ApprovalPending, c.Height, core.TimeOf(c.Now), core.TimeOf(c.Now)
	if core.IsBoard(c) && a.Incident == "" {
		a.RequestedByUser = core.NullText(c.Cmd.Actor.ID)
	}
	putApproval(c.Tx, Approval{}, a)
	for _, issue := range issues {
		if err := linkApproval(c, a, issue); err != nil {
			return a, err
		}
	}
	details := core.Object{}.Str("type", string(a.Type)).List("issueIds", issues)
	if a.Agent != "" {
		hireApprovals.Add(c.Tx, a.Company, string(a.Agent), a.ID)
		details = details.Str("linkedAgentId", string(a.Agent))
	}
	c.Record(ledger.Change{Action: "approval.created", EntityType: "approval", EntityID: a.ID, Details: details.Close()})
	return a, nil
}

// showing returns a with the redacted payload, and stores the complete one beside it if they
// differ.
func (a Approval) showing(tx *ledger.Tx, payload json.RawMessage) Approval {
	a.Payload = conceal.RedactConfig(payload)
	if string(a.Payload) != string(payload) {
		approvalDrafts.Put(tx, a.Company, a.ID, approvalDraft{payload})
	} else {
		approvalDrafts.Delete(tx, a.Company, a.ID)
	}
	return a
}

// draft returns the payload with its secrets.
func (a Approval) draft(tx *ledger.Tx) json.RawMessage {
	if d, ok := approvalDrafts.Get(tx, a.Company, a.ID); ok {
		return d.Payload
	}
	return a.Payload
}

func approvalOf(c *ledger.Context, id string) (Approval, error) {
	a, ok := Approvals.Get(c.Tx, c.Cmd.Company, id)
	if !ok {
		return a, errNoApproval()
	}
	return a, nil
}

func errNoApproval() error { return ledger.Refuse(ledger.NotFound, nil, "Approval not found") }

// decided returns a with its final status and the person who decided.
func (a Approval) decided(c *ledger.Context, to ApprovalStatus, note string) (Approval, error) {
	if len(note) > MaxDecisionNote {
		return a, ledger.Refuse(ledger.TooLarge, nil, "The note is longer than %d bytes", MaxDecisionNote)
	}
	a.Status, a.DecisionNote, a.DecidedAt, a.UpdatedAt, a.Refused = to, core.NullText(note), core.TimeOf(c.Now),
		core.TimeOf(c.Now), nil
	a.DecidedByUser = ""
	if core.IsBoard(c) {
		a.DecidedByUser = core.NullText(c.Cmd.Actor.ID)
	}
	return a, nil
}

// illegal returns the contract's 422 for a transition that an approval can not make.
func (a Approval) illegal(to ApprovalStatus, text string) error {
	return ledger.Refuse(ledger.Unprocessable, core.StepDetail("approvalId", a.ID, a.Status, to,
		a.Status.Next()), "%s", text)
}

// mustBeOpen refuses to decide an approval twice.
func (a Approval) mustBeOpen(verb string) error {
	if a.Status.Open() {
		return nil
	}
	return a.illegal(ApprovalStatus(verb), "Only pending or revision requested approvals can be "+verb)
}

// approveApproval executes the waiting command and stores the decision, in one entry. When
// the rules refuse the command, none of it happens; the approval stays open with the reason.
func approveApproval(c *ledger.Context, p DecideApproval) (any, error) {
	a, err := approvalOf(c, p.Approval)
	if err != nil {
		return nil, err
	}
	if a.Status == ApprovalApproved {
		return Decision{Approval: a}, nil
	}
	if err := a.mustBeOpen("approved"); err != nil {
		return nil, err
	}
	next, err := a.decided(c, ApprovalApproved, p.Note)
	if err != nil {
		return nil, err
	}
	if a.Type == ApprovalAct {
		err = company.Reweigh(c, a.ID)
	}
	if err != nil {
		return refused(c, a, err)
	}
	err = c.Try(func(c *ledger.Context) error {
		draft := a.draft(c.Tx)
		putApproval(c.Tx, a, next)
		switch a.Type {
		case ApprovalHire:
			agent, err := hireApproved(c, next, draft)
			if err != nil {
				return err
			}
			next.Agent = core.NullText(agent)
			putApproval(c.Tx, next, next)
		case ApprovalStrategy:
			company.ApproveStrategy(c, next.ID)
		case ApprovalBudget:
			return overrideBudget(c, next, draft, p.Amount)
		case ApprovalAct:
			return company.Answered(c, next.ID, true)
		}
		return nil
	})
	if err != nil {
		return refused(c, a, err)
	}
	links := linkedIssues(c.Tx, next)
	c.Record(ledger.Change{Action: "approval.approved", EntityType: "approval", EntityID: next.ID,
		Details: core.Object{}.Str("type", string(next.Type)).
			List("linkedIssueIds", links).Null("requestedByAgentId", string(next.RequestedByAgent)).Close()})
	return Decision{Approval: next}, wakeRequester(c, next, links)
}

// refused notes on an approval, which stays open, why its command could not be executed.
func refused(c *ledger.Context, a Approval, err error) (any, error) {
	refusal, ok := errors.AsType[*ledger.Refusal](err)
	if !ok {
		return nil, err
	}
	a.Refused = &Refused{Error: core.Snippet(refusal.Message, 1_000), Code: core.NullText(refusal.ErrCode),
		At: core.TimeOf(c.Now), By: core.NullText(c.Cmd.Actor.ID)}
	a.UpdatedAt = core.TimeOf(c.Now)
	putApproval(c.Tx, a, a)
	c.Record(ledger.Change{Action: "approval.refused", EntityType: "approval", EntityID: a.ID,
		Details: core.Object{}.Str("type", string(a.Type)).Str("error", a.Refused.Error).Close()})
	return Decision{a, refusal}, nil
}

func linkedIssues(tx *ledger.Tx, a Approval) []string {
	var ids []string
	for i := range IssuesOfApproval(tx, a.Company, a.ID) {
		ids = append(ids, i.ID)
	}
	return ids
}

func rejectApproval(c *ledger.Context, p DecideApproval) (any, error) {
	return dropApproval(c, p, ApprovalRejected)
}

func cancelApproval(c *ledger.Context, p DecideApproval) (any, error) {
	return dropApproval(c, p, ApprovalCancelled)
}

// dropApproval rejects or cancels an approval, and undoes what was prepared for its command.
func dropApproval(c *ledger.Context, p DecideApproval, to ApprovalStatus) (any, error) {
	a, err := approvalOf(c, p.Approval)
	if err != nil {
		return nil, err
	}
	if a.Status == to {
		return Decision{Approval: a}, nil
	}
	if err := a.mustBeOpen(string(to)); err != nil {
		return nil, err
	}
	next, err := a.decided(c, to, p.Note)
	if err != nil {
		return nil, err
	}
	putApproval(c.Tx, a, next)
	c.Record(ledger.Change{Action: "approval." + string(to), EntityType: "approval", EntityID: a.ID,
		Details: core.Object{}.Str("type", string(a.Type)).Close()})
	switch {
	case a.Type == ApprovalHire && a.Agent != "":
		if agent, ok := entity.AgentTable.Get(c.Tx, a.Company, string(a.Agent)); ok &&
			agent.Status == entity.AgentPendingApproval {
			company.EndAgent(c, agent, "Cancelled: the hire was "+string(to))
		}
	case a.Incident != "":
		closeIncident(c, string(a.Incident), "dismissed")
	case a.Type == ApprovalAct:
		if err := company.Answered(c, a.ID, false); err != nil {
			return nil, err
		}
	}
	return Decision{Approval: next}, wakeRequester(c, next, linkedIssues(c.Tx, next))
}

func reviseApproval(c *ledger.Context, p DecideApproval) (any, error) {
	a, err := approvalOf(c, p.Approval)
	if err != nil {
		return nil, err
	}
	if a.Status != ApprovalPending {
		return nil, a.illegal(ApprovalRevision, "Only pending approvals can request revision")
	}
	next, err := a.decided(c, ApprovalRevision, p.Note)
	if err != nil {
		return nil, err
	}
	putApproval(c.Tx, a, next)
	c.Record(ledger.Change{Action: "approval.revision_requested", EntityType: "approval", EntityID: a.ID,
		Details: core.Object{}.Str("type", string(a.Type)).Close()})
	return Decision{Approval: next}, wakeRequester(c, next, linkedIssues(c.Tx, next))
}

// resubmitApproval returns a revised approval to the board.
func resubmitApproval(c *ledger.Context, p ResubmitApproval) (any, error) {
	a, err := approvalOf(c, p.Approval)
	if err != nil {
		return nil, err
	}
	if core.IsAgent(c) && string(a.RequestedByAgent) != c.Cmd.Actor.ID {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "Only requesting agent can resubmit this approval")
	}
	if a.Status != ApprovalRevision {
		return nil, a.illegal(ApprovalPending, "Only revision requested approvals can be resubmitted")
	}
	payload, err := core.CheckObject("payload", p.Payload, MaxApprovalPayload)
	if err != nil {
		return nil, err
	}
	next := a
	next.Status, next.DecisionNote, next.DecidedByUser, next.DecidedAt, next.UpdatedAt, next.Refused = ApprovalPending, "",
		"", 0, core.TimeOf(c.Now), nil
	if payload != nil {
		payload = conceal.KeepHidden(payload, a.draft(c.Tx))
		if err := checkPayload(c, a, payload); err != nil {
			return nil, err
		}
		if a.Type == ApprovalHire && a.Agent != "" {
			if err := reviseHire(c, a, payload); err != nil {
				return nil, err
			}
		}
		next = next.showing(c.Tx, payload)
	}
	putApproval(c.Tx, a, next)
	c.Record(ledger.Change{Action: "approval.resubmitted", EntityType: "approval", EntityID: a.ID,
		Details: core.Object{}.Str("type", string(a.Type)).Close()})
	return Decision{Approval: next}, nil
}

func commentApproval(c *ledger.Context, p CommentApproval) (any, error) {
	a, err := approvalOf(c, p.Approval)
	if err != nil {
		return nil, err
	}
	switch {
	case strings.TrimSpace(p.Body) == "":
		return nil, ledger.Refuse(ledger.Invalid, nil, "A comment needs a body")
	case len(p.Body) > entity.MaxText:
		return nil, ledger.Refuse(ledger.TooLarge, nil, "The comment is longer than %d bytes", entity.MaxText)
	case a.Comments >= MaxApprovalComments:
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "An approval can have at most %d comments", MaxApprovalComments)
	}
	cm := ApprovalComment{ID: p.ID, Company: a.Company, Approval: a.ID, Body: p.Body, CreatedAt: core.TimeOf(c.Now),
		UpdatedAt: core.TimeOf(c.Now)}
	if core.IsAgent(c) {
		cm.AuthorAgent = core.NullText(c.Cmd.Actor.ID)
	} else {
		cm.AuthorUser = core.NullText(c.Cmd.Actor.ID)
	}
	approvalComments.Put(c.Tx, a.Company, a.ID+"."+ledger.Order(c.Height)+"."+cm.ID, cm)
	a.Comments++
	Approvals.Put(c.Tx, a.Company, a.ID, a)
	c.Record(ledger.Change{Action: "approval.comment_added", EntityType: "approval", EntityID: a.ID,
		Details: core.Object{}.Str("commentId", cm.ID).Close()})
	return cm, nil
}

func linkApprovalCommand(c *ledger.Context, p LinkApproval) (any, error) {
	a, err := approvalOf(c, p.Approval)
	if err != nil {
		return nil, err
	}
	if err := linkApproval(c, a, p.Issue); err != nil {
		return nil, err
	}
	c.Record(ledger.Change{Action: "issue.approval_linked", EntityType: "issue", EntityID: p.Issue,
		Details: core.Object{}.Str("approvalId", a.ID).Close()})
	return a, nil
}

func unlinkApprovalCommand(c *ledger.Context, p LinkApproval) (any, error) {
	a, err := approvalOf(c, p.Approval)
	if err != nil {
		return nil, err
	}
	if !c.Has(entity.IssueTable.Key(a.Company, p.Issue)) {
		return nil, company.ErrNoIssue()
	}
	unlinkApproval(c.Tx, a, p.Issue)
	c.Record(ledger.Change{Action: "issue.approval_unlinked", EntityType: "issue", EntityID: p.Issue,
		Details: core.Object{}.Str("approvalId", a.ID).Close()})
	return a, nil
}

// wakeRequester wakes the requesting agent with the decision, in a run about the first linked
// issue. The request records whether the wake was acted on.
func wakeRequester(c *ledger.Context, a Approval, links []string) error {
	if a.RequestedByAgent == "" || c.Quiet {
		return nil
	}
	agent, ok := entity.Wakeable(c.Tx, a.Company, string(a.RequestedByAgent))
	if !ok || agent.Gone() {
		return nil
	}
	first := ""
	if len(links) > 0 {
		first = links[0]
	}
	reason, at := "approval_"+string(a.Status), ledger.Order(c.Height)
	fresh := true
	res, err := company.WakeAgent(c, agent, entity.Wake{Agent: agent.ID, Source: entity.WakeAutomation,
		TriggerDetail: "system", Reason: reason, Issue: first, LinkedIssues: links, Fresh: &fresh,
		Approval: a.ID, ApprovalStatus: string(a.Status), Wakeup: core.DerivedID("approval-wake", a.ID, at),
		Run: core.DerivedID("approval-run", a.ID, at),
		Payload: core.Object{}.Str("approvalId", a.ID).Str("approvalStatus", string(a.Status)).Null("issueId", first).
			List("issueIds", links).Close()})
	if err != nil {
		return err
	}
	if res.Run != nil {
		c.Record(ledger.Change{Action: "approval.requester_wakeup_queued", EntityType: "approval", EntityID: a.ID,
			Details: core.Object{}.Str("wakeRunId", res.Run.ID).Str("requesterAgentId", agent.ID).List("linkedIssueIds",
				links).Close()})
	}
	return nil
}

// questions lets other rooms ask the board.
type questions struct{}

// Ask implements [company.Approvals].
func (questions) Ask(c *ledger.Context, q company.Question) error {
	a := Approval{ID: q.ID, Company: c.Cmd.Company, Type: ApprovalAct, RequestedByAgent: core.NullText(q.Agent)}
	_, err := openApproval(c, a.showing(c.Tx, q.Payload), q.Issues)
	return err
}

// Lapse implements [company.Approvals].
func (questions) Lapse(c *ledger.Context, id, note string) {
	a, ok := Approvals.Get(c.Tx, c.Cmd.Company, id)
	if !ok || !a.Status.Open() {
		return
	}
	next, err := a.decided(c, ApprovalRejected, note)
	if err != nil {
		return
	}
	putApproval(c.Tx, a, next)
	company.RecordLive(c, ledger.Change{Action: "approval.rejected", EntityType: "approval", EntityID: id,
		Details: core.Object{}.Str("type", string(a.Type)).Close()})
}

// settleApproval closes an open approval whose question was decided elsewhere. It does
// nothing for "" and closed ones.
func settleApproval(c *ledger.Context, id string, to ApprovalStatus) {
	a, ok := Approvals.Get(c.Tx, c.Cmd.Company, id)
	if id == "" || !ok || !a.Status.Open() {
		return
	}
	next, _ := a.decided(c, to, "")
	putApproval(c.Tx, a, next)
	company.RecordLive(c, ledger.Change{Action: "approval." + string(to), EntityType: "approval", EntityID: id,
		Details: core.Object{}.Str("type", string(a.Type)).Close()})
}

// Sealed seals the values that the API hides. Those of an approved hire open for its agent.
func (p CreateApproval) Sealed(seal conceal.SealFunc) (any, error) {
	var err error
	p.Payload, err = conceal.SealPayload(p.Payload, core.DerivedID("hire", p.ID), seal)
	return p, err
}

// Sealed seals the values that the API hides.
func (p ResubmitApproval) Sealed(seal conceal.SealFunc) (any, error) {
	var err error
	p.Payload, err = conceal.SealPayload(p.Payload, cmp.Or(p.Agent, core.DerivedID("hire", p.Approval)), seal)
	return p, err
}
