package memory

import (
	"github.com/selvage-mesh/selvage/company/cause"
	"github.com/selvage-mesh/selvage/ledger"
)

// causes is what records know of the causal graph: where they came from, and what they name.
var causes = cause.Part{
	Nodes:   map[cause.Type]cause.Look{cause.Memory: lookRecord},
	Causes:  map[cause.Type]cause.Step{cause.Memory: whyRecord},
	Effects: map[cause.Type]cause.Step{cause.Issue: outcomeOfIssue, cause.Memory: alike},
}

// lookRecord returns a record as a node. A private one has its agent as its only reader.
func lookRecord(tx *ledger.Tx, company ledger.CompanyID, id string) (cause.Point, bool) {
	r, ok := Of(tx, company, id)
	p := cause.Point{Status: r.Kind, At: r.CreatedAt, Height: r.Height}
	if r.Private {
		p.Reader = string(r.Agent)
	}
	return p.Named(r.Text), ok
}

func whyRecord(b *cause.Bag, p cause.Point) {
	r, ok := Of(b.Tx, b.Company, p.ID)
	if !ok {
		return
	}
	from := cause.Edge{Kind: cause.EvidenceFor, Why: "is where it came from", Height: r.Height, At: r.CreatedAt}
	b.Add(from, cause.Ref{Type: cause.Comment, ID: string(r.Comment)})
	b.Add(from, cause.Ref{Type: cause.Issue, ID: string(r.Issue)})
	wrote := cause.Edge{Kind: cause.Causes, Why: "wrote it", Height: r.Height, At: r.CreatedAt}
	switch {
	case r.Run != "":
		b.Add(wrote, cause.Ref{Type: cause.Run, ID: string(r.Run)})
	case r.AuthorType == "agent":
		b.Add(wrote, cause.Ref{Type: cause.Agent, ID: r.Author})
	case r.AuthorType == "user":
		b.Add(wrote, cause.Ref{Type: cause.User, ID: r.Author})
	}
	alike(b, p)
	for _, id := range r.Replaces {
		b.Add(cause.Edge{Kind: cause.EvidenceFor, Why: "gave its place to it", Height: r.Height, At: r.CreatedAt},
			cause.Ref{Type: cause.Memory, ID: id})
	}
	for _, id := range r.Links {
		b.Add(cause.Edge{Kind: cause.EvidenceFor, Why: "is linked", Height: r.Height, At: r.UpdatedAt},
			cause.Ref{Type: cause.Memory, ID: id})
	}
}

// outcomeOfIssue adds the record that a closed issue left.
func outcomeOfIssue(b *cause.Bag, p cause.Point) {
	id := OutcomeOf(p.ID)
	if r, ok := Of(b.Tx, b.Company, id); ok {
		b.Add(cause.Edge{Kind: cause.EvidenceFor, Why: "left it when it ended", At: r.UpdatedAt},
			cause.Ref{Type: cause.Memory, ID: id})
	}
}
