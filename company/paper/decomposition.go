package paper

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Decomposition is the execution of an accepted plan: the issues that one revision of an
// issue's plan document was turned into, all at once and only once.
type Decomposition struct {
	ID          string           `cbor:"1,keyasint" json:"id"`
	Company     ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Issue       string           `cbor:"3,keyasint" json:"sourceIssueId"`
	Revision    string           `cbor:"4,keyasint" json:"acceptedPlanRevisionId"`
	Interaction string           `cbor:"5,keyasint" json:"acceptedInteractionId"`
	Status      string           `cbor:"6,keyasint" json:"status"` // always completed: one command creates all issues
	Fingerprint string           `cbor:"7,keyasint" json:"requestFingerprint"`
	Requested   int64            `cbor:"8,keyasint" json:"requestedChildCount"`
	Children    []string         `cbor:"9,keyasint" json:"childIssueIds"`
	OwnerAgent  core.NullText    `cbor:"10,keyasint,omitempty" json:"ownerAgentId"`
	OwnerUser   core.NullText    `cbor:"11,keyasint,omitempty" json:"ownerUserId"`
	OwnerRun    core.NullText    `cbor:"12,keyasint,omitempty" json:"ownerRunId"`
	CompletedAt core.Time        `cbor:"13,keyasint" json:"completedAt"`
	CreatedAt   core.Time        `cbor:"14,keyasint" json:"createdAt"`
	UpdatedAt   core.Time        `cbor:"15,keyasint" json:"updatedAt"`
}

// Clone returns a copy that shares nothing with d.
func (d Decomposition) Clone() Decomposition {
	d.Children = slices.Clone(d.Children)
	return d
}

// Decompositions are keyed by "<issue>.<revision>".
var decompositions = ledger.NewTable[string, Decomposition]("decomposition")

const (
	// MaxDecomposed bounds the children of one decomposition: one command creates them.
	MaxDecomposed = 25
	// MaxDecompositions bounds those of one issue: lists show all.
	MaxDecompositions = 100
)

// DecomposePlan is the payload of plan.decompose. A child that is blocked by "#n"
// waits for the n-th of these children, counted from 1.
type DecomposePlan struct {
	ID       string                `cbor:"1,keyasint"`
	Issue    string                `cbor:"2,keyasint"`
	Revision string                `cbor:"3,keyasint"`
	Children []company.CreateIssue `cbor:"4,keyasint"`
}

// A Decomposed is the answer of plan.decompose. Created is empty for a repeated request.
type Decomposed struct {
	Decomposition Decomposition `cbor:"1,keyasint" json:"decomposition"`
	Children      []string      `cbor:"2,keyasint" json:"childIssueIds"`
	Created       []string      `cbor:"3,keyasint" json:"newlyCreatedChildIssueIds"`
}

const KindPlanDecompose = "plan.decompose"

var decompositionKinds = []company.Kind{
	{Name: KindPlanDecompose, From: company.FromBoard | company.FromAgent, Weight: company.Weights.Task,
		Do: ledger.Typed(decomposePlan)},
}

// DecompositionsOf returns the decompositions of an issue's plan, latest first.
func DecompositionsOf(tx *ledger.Tx, i entity.Issue) []Decomposition {
	out := []Decomposition{}
	for _, v := range tx.Prefix(decompositions.Key(i.Company, i.ID+".")) {
		out = append(out, core.DecodeRow[Decomposition](v))
	}
	slices.SortStableFunc(out, func(a, b Decomposition) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	return out
}

// fingerprint identifies the request, without the IDs that were generated for it.
func (p DecomposePlan) fingerprint() string {
	p.ID = ""
	p.Children = slices.Clone(p.Children)
	for n := range p.Children {
		p.Children[n].ID = ""
	}
	sum := sha256.Sum256(ledger.Marshal(p))
	return hex.EncodeToString(sum[:])
}

// acceptedPlan returns the confirmation that accepted a revision of the plan.
func acceptedPlan(tx *ledger.Tx, i entity.Issue, revision string) (Interaction, bool) {
	for _, in := range slices.Backward(InteractionsOf(tx, i)) {
		if in.Kind != Confirmation || in.Status != "accepted" {
			continue
		}
		var body interactionPayload
		if json.Unmarshal(in.Payload, &body) != nil {
			continue
		}
		if t := body.Target; t != nil && t.Type == "issue_document" && t.Key == "plan" && t.Revision == revision &&
			cmp.Or(t.Issue, i.ID) == i.ID {
			return in, true
		}
	}
	return Interaction{}, false
}

// decomposePlan creates the children of an accepted plan, all or none.
func decomposePlan(c *ledger.Context, p DecomposePlan) (any, error) {
	i, err := company.DocumentIssue(c, p.Issue)
	if err != nil {
		return nil, err
	}
	if n := len(p.Children); n == 0 || n > MaxDecomposed || !core.IsID(p.ID) {
		return nil, ledger.Refuse(ledger.Invalid, nil, "A plan can become 1 to %d issues", MaxDecomposed)
	}
	d, ok := DocumentOf(c.Tx, i, "plan")
	if ok {
		_, ok = RevisionOfDocument(c.Tx, d, p.Revision)
	}
	if !ok {
		return nil, ledger.Refuse(ledger.Unprocessable, nil,
			"acceptedPlanRevisionId must belong to the source issue's plan document")
	}
	in, ok := acceptedPlan(c.Tx, i, p.Revision)
	if !ok {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "acceptedPlanRevisionId must have an accepted plan confirmation")
	}
	key, asked := i.ID+"."+p.Revision, p.fingerprint()
	if old, ok := decompositions.Get(c.Tx, i.Company, key); ok {
		if old.Fingerprint != asked {
			return nil, ledger.Refuse(ledger.Conflict, nil,
				"Accepted-plan decomposition already exists for this revision with a different child set")
		}
		return Decomposed{old, old.Children, []string{}}, nil
	}
	if len(DecompositionsOf(c.Tx, i)) >= MaxDecompositions {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "An issue's plan can be turned into issues at most %d times",
			MaxDecompositions)
	}
	now := core.TimeOf(c.Now)
	row := Decomposition{ID: p.ID, Company: i.Company, Issue: i.ID, Revision: p.Revision, Interaction: in.ID,
		Status: "completed", Fingerprint: asked,
		Requested: int64(len(p.Children)), OwnerRun: core.NullText(c.Cmd.Run), CompletedAt: now, CreatedAt: now,
		UpdatedAt: now}
	row.OwnerAgent, row.OwnerUser = core.ActedBy(c)
	for n, child := range p.Children {
		if child.BlockedBy, err = siblings(child.BlockedBy, row.Children); err != nil {
			return nil, err
		}
		child.Parent, child.Child, child.AllowDuplicate, child.RequestKey, child.Many = i.ID, true, true, "", true
		v, err := company.MakeIssue(c, child)
		if err != nil {
			return nil, refusedChild(err, n)
		}
		row.Children = append(row.Children, v.(entity.IssueResult).Issue.ID)
	}
	decompositions.Put(c.Tx, i.Company, key, row)
	c.Record(ledger.Change{Action: "issue.accepted_plan_decomposition_updated", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("identifier", i.Identifier).
			Str("acceptedPlanRevisionId", p.Revision).Str("decompositionId", row.ID).Str("status", row.Status).
			Int("requestedChildCount", row.Requested).
			List("childIssueIds", row.Children).List("newlyCreatedChildIssueIds", row.Children).Close()})
	return Decomposed{row, row.Children, row.Children}, nil
}

// siblings replaces "#n" by the ID of the n-th child.
func siblings(blockers, made []string) ([]string, error) {
	out := slices.Clone(blockers)
	for n, b := range out {
		if len(b) < 2 || b[0] != '#' {
			continue
		}
		at := 0
		for _, d := range b[1:] {
			if d < '0' || d > '9' || at > MaxDecomposed {
				at = -1
				break
			}
			at = at*10 + int(d-'0')
		}
		if at < 1 || at > len(made) {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "%s names no child before this one", b)
		}
		out[n] = made[at-1]
	}
	return out, nil
}

// refusedChild adds to an error which child was refused.
func refusedChild(err error, n int) error {
	r, ok := err.(*ledger.Refusal)
	if !ok {
		return err
	}
	e := ledger.Refuse(r.Code, r.Detail, "children.%d: %s", n, r.Message)
	e.(*ledger.Refusal).ErrCode = r.ErrCode
	return e
}
