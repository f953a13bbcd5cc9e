package routine

import (
	"github.com/selvage-mesh/selvage/company/cause"
	"github.com/selvage-mesh/selvage/ledger"
)

// causes is what routines know of the causal graph: the issues that they made.
var causes = cause.Part{
	Nodes: map[cause.Type]cause.Look{cause.Routine: func(tx *ledger.Tx, company ledger.CompanyID,
		id string) (cause.Point, bool) {
		r, ok := Routines.Get(tx, company, id)
		return cause.Point{Status: string(r.Status), At: r.CreatedAt}.Named(r.Title), ok
	}},
	Causes: map[cause.Type]cause.Step{cause.Routine: func(b *cause.Bag, p cause.Point) { b.Made("routine", p.ID) }},
	Effects: map[cause.Type]cause.Step{cause.Routine: func(b *cause.Bag, p cause.Point) {
		r, ok := Routines.Get(b.Tx, b.Company, p.ID)
		if !ok {
			return
		}
		for _, run := range RoutineRunsOf(b.Tx, r, keptRoutineRuns) {
			if !b.Read() || !b.Add(cause.Edge{Kind: cause.TriggeredBy, Why: "made by a routine", At: run.CreatedAt},
				cause.Ref{Type: cause.Issue, ID: string(run.Issue)}) {
				return
			}
		}
	}},
}
