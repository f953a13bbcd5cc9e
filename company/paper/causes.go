package paper

import (
	"strings"

	"github.com/selvage-mesh/selvage/company/cause"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// causes is what questions and decisions of review stages know of the causal graph. Both
// are named as their rows are: "<issue>.<number>" and "<issue>.<height>".
var causes = cause.Part{
	Nodes: map[cause.Type]cause.Look{cause.Interaction: lookInteraction, cause.Decision: lookDecision},
	Causes: map[cause.Type]cause.Step{cause.Interaction: whyInteraction, cause.Decision: whyDecision,
		cause.Issue: decisionsOn,
		cause.Run:   questionOfRun},
	Effects: map[cause.Type]cause.Step{cause.Interaction: fromInteraction, cause.Decision: fromDecision,
		cause.Issue: askedOn},
}

func interactionAt(tx *ledger.Tx, company ledger.CompanyID, at string) (Interaction, bool) {
	return Interactions.Get(tx, company, at)
}

func lookInteraction(tx *ledger.Tx, company ledger.CompanyID, at string) (cause.Point, bool) {
	in, ok := interactionAt(tx, company, at)
	return cause.Point{Status: in.Status, At: in.CreatedAt}.Named(in.Kind, string(in.Title)), ok
}

func whyInteraction(b *cause.Bag, p cause.Point) {
	in, ok := interactionAt(b.Tx, b.Company, p.ID)
	if !ok {
		return
	}
	asked := cause.Edge{Kind: cause.Causes, Why: "asked", At: in.CreatedAt}
	b.Did(in.SourceRun, in.CreatedAgent, in.CreatedUser, asked)
	b.Add(cause.Edge{Kind: cause.TriggeredBy, Why: "asked because of it", At: in.CreatedAt}, cause.Ref{Type: cause.Comment,
		ID: string(in.SourceComment)})
	b.Add(cause.Edge{Kind: cause.Follows, Why: "asked on it", At: in.CreatedAt},
		cause.Ref{Type: cause.Issue, ID: in.Issue})
	said := cause.Edge{Kind: cause.Causes, Why: in.Status, At: in.ResolvedAt}
	if in.Status == "rejected" {
		said.Kind = cause.Contradicts
	}
	b.Did(in.ResolvedRun, in.ResolvedAgent, in.ResolvedUser, said)
}

// fromInteraction adds the runs that its decision woke.
func fromInteraction(b *cause.Bag, p cause.Point) {
	in, ok := interactionAt(b.Tx, b.Company, p.ID)
	if !ok {
		return
	}
	for r := range entity.RunsOfIssue(b.Tx, b.Company, in.Issue) {
		if r.CreatedAt < in.CreatedAt || !b.Read() {
			return // newest first
		}
		if r.Context.InteractionID == in.ID {
			b.Add(wokenBy(r), cause.Ref{Type: cause.Run, ID: r.ID})
		}
	}
}

func wokenBy(r entity.Run) cause.Edge {
	return cause.Edge{Kind: cause.TriggeredBy, Why: "woke by a decision", Height: r.Queue, At: r.CreatedAt}
}

// questionOfRun adds the question whose decision woke a run.
func questionOfRun(b *cause.Bag, p cause.Point) {
	r, ok := entity.RunOf(b.Tx, b.Company, p.ID)
	if !ok || r.Context.InteractionID == "" {
		return
	}
	if i, ok := entity.IssueOf(b.Tx, b.Company, r.Context.Issue()); ok {
		if in, ok := InteractionOf(b.Tx, i, r.Context.InteractionID); ok {
			b.Add(wokenBy(r), cause.Ref{Type: cause.Interaction, ID: in.rowKey()})
		}
	}
}

// askedOn adds the questions on an issue.
func askedOn(b *cause.Bag, p cause.Point) {
	prefix := Interactions.Key(b.Company, p.ID+".")
	for k := range b.Tx.Scan(prefix, ledger.PrefixEnd(prefix), true) {
		if !b.Read() || !b.Add(cause.Edge{Kind: cause.Follows, Why: "asked on it"}, cause.Ref{Type: cause.Interaction,
			ID: p.ID + "." + string(k[len(prefix):])}) {
			return
		}
	}
}

func lookDecision(tx *ledger.Tx, company ledger.CompanyID, at string) (cause.Point, bool) {
	d, ok := executionDecisions.Get(tx, company, at)
	return cause.Point{Status: d.Outcome, At: d.CreatedAt}.Named(d.StageType, d.Body), ok
}

func whyDecision(b *cause.Bag, p cause.Point) {
	d, ok := executionDecisions.Get(b.Tx, b.Company, p.ID)
	if !ok {
		return
	}
	said := cause.Edge{Kind: cause.Causes, Why: "decided it", At: d.CreatedAt}
	b.Did(d.Run, d.Agent, d.User, said)
}

// verdict is the edge from a decision to its issue.
func (d ExecutionDecision) verdict() cause.Edge {
	if d.Outcome == "approved" {
		return cause.Edge{Kind: cause.Enables, Why: "approved it", At: d.CreatedAt}
	}
	return cause.Edge{Kind: cause.Contradicts, Why: "wanted changes", At: d.CreatedAt}
}

func fromDecision(b *cause.Bag, p cause.Point) {
	if d, ok := executionDecisions.Get(b.Tx, b.Company, p.ID); ok {
		b.Add(d.verdict(), cause.Ref{Type: cause.Issue, ID: d.Issue})
	}
}

// decisionsOn adds the decisions on an issue, the newest first.
func decisionsOn(b *cause.Bag, p cause.Point) {
	prefix := executionDecisions.Key(b.Company, p.ID+".")
	for k, v := range b.Tx.Scan(prefix, ledger.PrefixEnd(prefix), true) {
		at := strings.TrimPrefix(string(k), string(executionDecisions.Key(b.Company, "")))
		if !b.Read() || !b.Add(core.DecodeRow[ExecutionDecision](v).verdict(), cause.Ref{Type: cause.Decision, ID: at}) {
			return
		}
	}
}
