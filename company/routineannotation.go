package company

import (
	"github.com/selvage-mesh/selvage/ledger"
)

// DescriptionOf returns a routine's description as the document that remarks are
// made on. It lies with the routine, not with an issue, under the key
// "description"; its revisions are the versions of the text.
func DescriptionOf(r Routine) Document {
	return Document{ID: DocumentOfRoutine(r.ID, 0), Company: r.Company, Issue: r.ID, Key: "description", Format: "markdown",
		Latest: DocumentOfRoutine(r.ID, r.TextVersion), Number: r.TextVersion, UpdatedAt: r.TextAt}
}

// descriptionAt returns one version of a routine's description, as far as it is
// kept: by its own ID, or by that of the routine's revision in which it stood.
func descriptionAt(tx *ledger.Tx, r Routine, revision string, number uint64) (DocumentRevision, bool) {
	found := func(of Routine) DocumentRevision {
		return DocumentRevision{ID: DocumentOfRoutine(r.ID, of.TextVersion), Number: of.TextVersion, Body: string(of.Description)}
	}
	if d := found(r); d.ID == revision && d.Number == number {
		return d, true
	}
	for _, v := range RoutineRevisions(tx, r) {
		if d := found(v.Routine); d.ID == revision && d.Number == number || v.ID == revision && v.Number == number {
			return d, true
		}
	}
	return DocumentRevision{}, false
}

// routineDescriptions are what routines ask for.
var routineDescriptions = remarkable{entity: "routine", actions: "routine.description_annotation_", missing: "The description has no such revision", at: describedRoutine,
	revision: func(c *ledger.Context, d Document, id string, number uint64) (DocumentRevision, bool) {
		r, _ := routines.Get(c.Tx, d.Company, d.Issue)
		return descriptionAt(c.Tx, r, id, number)
	}}

// describedRoutine returns the routine that somebody remarks on, as where its text
// lies: any of the company that the actor is in, an agent under a run of its own.
func describedRoutine(c *ledger.Context, id, _ string) (Issue, Document, error) {
	r, ok := routines.Get(c.Tx, c.Cmd.Company, id)
	if !ok {
		return Issue{}, Document{}, errNoRoutine()
	}
	if isAgent(c) {
		if err := mustRun(c); err != nil {
			return Issue{}, Document{}, err
		}
	}
	return Issue{ID: r.ID, Company: r.Company}, DescriptionOf(r), nil
}
