package money

import (
	"encoding/json"
	"iter"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// An ApprovalType is what the board is asked to approve. Persisted: do not rename.
type ApprovalType string

const (
	ApprovalHire     ApprovalType = "hire_agent"
	ApprovalStrategy ApprovalType = "approve_ceo_strategy"
	ApprovalBudget   ApprovalType = "budget_override_required"
	ApprovalRequest  ApprovalType = "request_board_approval" // any other question; approving it is only an answer
	ApprovalAct      ApprovalType = "governed_act"           // an act that a rule of the constitution lets wait
)

// ApprovalTypes lists all types, in the contract's order.
var ApprovalTypes = []ApprovalType{ApprovalHire, ApprovalStrategy, ApprovalBudget, ApprovalRequest, ApprovalAct}

// An ApprovalStatus is the status of an approval. Persisted: do not rename.
type ApprovalStatus string

const (
	ApprovalPending   ApprovalStatus = "pending"
	ApprovalRevision  ApprovalStatus = "revision_requested" // waits for the requester
	ApprovalApproved  ApprovalStatus = "approved"
	ApprovalRejected  ApprovalStatus = "rejected"
	ApprovalCancelled ApprovalStatus = "cancelled"
)

// ApprovalStatuses lists all statuses, in the order of an approval's life.
var ApprovalStatuses = []ApprovalStatus{ApprovalPending, ApprovalRevision, ApprovalApproved, ApprovalRejected,
	ApprovalCancelled}

// Open reports whether an approval with this status can still be decided.
func (s ApprovalStatus) Open() bool { return s == ApprovalPending || s == ApprovalRevision }

// Next lists the statuses that may follow s.
func (s ApprovalStatus) Next() []ApprovalStatus {
	switch s {
	case ApprovalPending:
		return []ApprovalStatus{ApprovalRevision, ApprovalApproved, ApprovalRejected, ApprovalCancelled}
	case ApprovalRevision:
		return []ApprovalStatus{ApprovalPending, ApprovalApproved, ApprovalRejected, ApprovalCancelled}
	}
	return nil
}

// An Approval is a command that waits for the board. Its payload says what will happen;
// approving it does so in the same entry.
type Approval struct {
	ID               string           `cbor:"1,keyasint" json:"id"`
	Company          ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Type             ApprovalType     `cbor:"3,keyasint" json:"type"`
	RequestedByAgent core.NullText    `cbor:"4,keyasint,omitempty" json:"requestedByAgentId"`
	RequestedByUser  core.NullText    `cbor:"5,keyasint,omitempty" json:"requestedByUserId"`
	Status           ApprovalStatus   `cbor:"6,keyasint" json:"status"`
	Payload          json.RawMessage  `cbor:"7,keyasint" json:"payload"` // without secrets, see approvalDrafts
	DecisionNote     core.NullText    `cbor:"8,keyasint,omitempty" json:"decisionNote"`
	DecidedByUser    core.NullText    `cbor:"9,keyasint,omitempty" json:"decidedByUserId"`
	DecidedAt        core.Time        `cbor:"10,keyasint,omitempty" json:"decidedAt"`
	CreatedAt        core.Time        `cbor:"11,keyasint" json:"createdAt"`
	UpdatedAt        core.Time        `cbor:"12,keyasint" json:"updatedAt"`
	// Agent is the agent of a hire: from the start if it was created pending with the request,
	// otherwise from the approval on.
	Agent core.NullText `cbor:"13,keyasint,omitempty" json:"agentId"`
	// Refused is why the approved command could not be executed. The approval is still open: it
	// can be approved again, revised or rejected.
	Refused *Refused `cbor:"14,keyasint,omitempty" json:"refused"`
	// Incident is the budget incident that requests an override.
	Incident core.NullText `cbor:"15,keyasint,omitempty" json:"incidentId"`
	// Height is that of the entry that created it; lists are ordered by it.
	Height   uint64 `cbor:"16,keyasint" json:"-"`
	Comments uint64 `cbor:"17,keyasint,omitempty" json:"-"`
}

// A Refused says why an approved command was not executed.
type Refused struct {
	Error string        `cbor:"1,keyasint" json:"error"`
	Code  core.NullText `cbor:"2,keyasint,omitempty" json:"code"`
	At    core.Time     `cbor:"3,keyasint" json:"at"`
	By    core.NullText `cbor:"4,keyasint,omitempty" json:"byUserId"`
}

// Clone returns a copy that shares no memory with a. The ledger's cache of decoded rows
// needs it.
func (a Approval) Clone() Approval {
	a.Payload, a.Refused = slices.Clone(a.Payload), core.CloneOf(a.Refused)
	return a
}

// An ApprovalComment is a message about an approval.
type ApprovalComment struct {
	ID          string           `cbor:"1,keyasint" json:"id"`
	Company     ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Approval    string           `cbor:"3,keyasint" json:"approvalId"`
	AuthorAgent core.NullText    `cbor:"4,keyasint,omitempty" json:"authorAgentId"`
	AuthorUser  core.NullText    `cbor:"5,keyasint,omitempty" json:"authorUserId"`
	Body        string           `cbor:"6,keyasint" json:"body"`
	CreatedAt   core.Time        `cbor:"7,keyasint" json:"createdAt"`
	UpdatedAt   core.Time        `cbor:"8,keyasint" json:"updatedAt"`
}

// approvalDraft is a payload with its secrets. It is stored only where it differs from the
// shown payload, and only until the approval is decided.
type approvalDraft struct {
	Payload json.RawMessage `cbor:"1,keyasint"`
}

// approvalsByState lists approvals under "<status>.<type>", and the two link indexes list
// both directions, as "<order of height>.<ID>", so that lists are by age. hireApprovals
// finds the approval of a pending agent. Comments are keyed by
// "<approval>.<order of height>.<comment>".
var (
	Approvals = ledger.NewTable[string, Approval]("approval").
			Beside(ledger.IndexedAs(approvalsByState, func(a *Approval, _ string) (value,
			entry string) {
			return a.State(), a.Ref()
		}))
	approvalDrafts   = ledger.NewTable[string, approvalDraft]("approval-draft")
	approvalComments = ledger.NewTable[string, ApprovalComment]("approval-comment")
	approvalsByState = ledger.NewIndex[string, string]("approval-status-type")
	approvalsByIssue = ledger.NewIndex[string, string]("approval-by-issue")
	IssuesByApproval = ledger.NewIndex[string, string]("issue-by-approval")
	hireApprovals    = ledger.NewIndex[string, string]("approval-by-agent")
)

// ApprovalCompanyKey holds the company of an approval.
func ApprovalCompanyKey(id string) []byte { return ledger.Key("approval-company", id) }

const (
	// MaxPendingApprovals bounds the open approvals of a company: a person reads them one by
	// one.
	MaxPendingApprovals = 1_000
	// DefaultApprovalLimit and MaxApprovalLimit bound a list of approvals.
	DefaultApprovalLimit = 500
	MaxApprovalLimit     = MaxPendingApprovals
	// MaxApprovalOffset bounds the offset of a list.
	MaxApprovalOffset = 10_000
	// MaxApprovalBytes bounds the payloads of one list, in bytes. A list that reaches it ends
	// early; the client continues with Offset.
	MaxApprovalBytes = 16 << 20
	// MaxApprovalPayload bounds a payload, in bytes: apply searches it for secrets, like an
	// agent's configuration.
	MaxApprovalPayload = entity.MaxConfig
	// MaxApprovalLinks bounds the issues of an approval and the approvals of an issue: deleting
	// either removes its links in one command.
	MaxApprovalLinks = 100
	// MaxApprovalComments bounds the comments of one approval, which are read at once.
	MaxApprovalComments = 1_000
	// MaxDecisionNote bounds the note of a decision, in bytes.
	MaxDecisionNote = 10_000
)

func (a Approval) Ref() string   { return ledger.Order(a.Height) + "." + a.ID }
func (a Approval) State() string { return string(a.Status) + "." + string(a.Type) }

// IDOfRef returns the ID at the end of an index entry "<order>.<ID>".
func IDOfRef(ref string) string { return ref[min(len(ledger.Order(0))+1, len(ref)):] }

func putApproval(tx *ledger.Tx, old, next Approval) {
	if old.ID == "" {
		tx.Set(ApprovalCompanyKey(next.ID), []byte(next.Company))
	}
	if !next.Status.Open() {
		approvalDrafts.Delete(tx, next.Company, next.ID)
	}
	Approvals.Put(tx, next.Company, next.ID, next)
}

// ApprovalByID returns an approval of any company.
func ApprovalByID(tx *ledger.Tx, id string) (Approval, bool) {
	if !core.IsID(id) {
		return Approval{}, false
	}
	company, ok := tx.Get(ApprovalCompanyKey(id))
	if !ok {
		return Approval{}, false
	}
	return Approvals.Get(tx, ledger.CompanyID(company), id)
}

// An ApprovalQuery selects approvals of one company; empty fields select all.
type ApprovalQuery struct {
	Statuses []ApprovalStatus
	Types    []ApprovalType
	Limit    int // 0 is DefaultApprovalLimit, at most MaxApprovalLimit
	Offset   int // number of the newest to skip, at most MaxApprovalOffset
}

// ApprovalsOf returns the approvals of company that q selects, newest first.
func ApprovalsOf(tx *ledger.Tx, company ledger.CompanyID, q ApprovalQuery) []Approval {
	if len(q.Statuses) == 0 {
		q.Statuses = ApprovalStatuses
	}
	if len(q.Types) == 0 {
		q.Types = ApprovalTypes
	}
	if q.Limit <= 0 {
		q.Limit = DefaultApprovalLimit
	}
	q.Limit, q.Offset = min(q.Limit, MaxApprovalLimit), min(max(q.Offset, 0), MaxApprovalOffset)
	var refs []string
	for _, s := range q.Statuses {
		for _, t := range q.Types {
			n := 0
			for ref := range approvalsByState.IDs(tx, company, Approval{Status: s, Type: t}.State(), true) {
				if n++; n > q.Offset+q.Limit {
					break
				}
				refs = append(refs, ref)
			}
		}
	}
	slices.Sort(refs)
	slices.Reverse(refs)
	out := make([]Approval, 0, min(len(refs), q.Limit))
	size := 0
	for _, ref := range refs[min(q.Offset, len(refs)):] {
		a, ok := Approvals.Get(tx, company, IDOfRef(ref))
		if !ok {
			continue
		}
		if size += len(a.Payload); size > MaxApprovalBytes && len(out) > 0 {
			break
		}
		if out = append(out, a); len(out) == q.Limit {
			break
		}
	}
	return out
}

// PendingApprovals counts the pending approvals of company, and those of them that are about
// budgets.
func PendingApprovals(tx *ledger.Tx, company ledger.CompanyID) (all, budget int) {
	for _, t := range ApprovalTypes {
		n := 0
		for range approvalsByState.IDs(tx, company, Approval{Status: ApprovalPending, Type: t}.State(), false) {
			n++
		}
		if all += n; t == ApprovalBudget {
			budget = n
		}
	}
	return all, budget
}

// ApprovalsOfIssue returns the approvals that are linked to an issue, oldest first.
func ApprovalsOfIssue(tx *ledger.Tx, company ledger.CompanyID, issue string) []Approval {
	out := []Approval{}
	for ref := range approvalsByIssue.IDs(tx, company, issue, false) {
		if a, ok := Approvals.Get(tx, company, IDOfRef(ref)); ok {
			out = append(out, a)
		}
	}
	return out
}

// IssuesOfApproval yields the issues that are linked to an approval, by ID.
func IssuesOfApproval(tx *ledger.Tx, of ledger.CompanyID, approval string) iter.Seq[entity.Issue] {
	return entity.IssuesIn(tx, of, IssuesByApproval.IDs(tx, of, approval, false))
}

// CommentsOfApproval returns the comments on an approval, oldest first.
func CommentsOfApproval(tx *ledger.Tx, company ledger.CompanyID, approval string) []ApprovalComment {
	out := []ApprovalComment{}
	for _, v := range tx.Prefix(approvalComments.Key(company, approval+".")) {
		out = append(out, core.DecodeRow[ApprovalComment](v))
	}
	return out
}

// linkApproval links an approval to an issue; an existing link stays.
func linkApproval(c *ledger.Context, a Approval, issue string) error {
	if !c.Has(entity.IssueTable.Key(a.Company, issue)) {
		return company.ErrNoIssue()
	}
	ofIssue, ofApproval := 0, 0
	for ref := range approvalsByIssue.IDs(c.Tx, a.Company, issue, false) {
		if ref == a.Ref() {
			return nil
		}
		ofIssue++
	}
	for range IssuesByApproval.IDs(c.Tx, a.Company, a.ID, false) {
		ofApproval++
	}
	if max(ofIssue, ofApproval) >= MaxApprovalLinks {
		return ledger.Refuse(ledger.Unprocessable, nil, "An issue has at most %d approvals, and an approval as many issues",
			MaxApprovalLinks)
	}
	approvalsByIssue.Add(c.Tx, a.Company, issue, a.Ref())
	IssuesByApproval.Add(c.Tx, a.Company, a.ID, issue)
	return nil
}

func unlinkApproval(tx *ledger.Tx, a Approval, issue string) {
	approvalsByIssue.Remove(tx, a.Company, issue, a.Ref())
	IssuesByApproval.Remove(tx, a.Company, a.ID, issue)
}

// dropApprovalLinks removes the links of a deleted issue.
func dropApprovalLinks(tx *ledger.Tx, i entity.Issue) {
	for _, a := range ApprovalsOfIssue(tx, i.Company, i.ID) {
		unlinkApproval(tx, a, i.ID)
	}
}
