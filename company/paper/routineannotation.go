package paper

import (
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// DescriptionOf returns a routine's description as a document for annotations. It belongs to
// the routine, not to an issue, under the key "description"; its revisions are the versions of
// the text.
func DescriptionOf(d company.Description) Document {
	return Document{ID: company.DocumentOfRoutine(d.Routine, 0), Company: d.Company, Issue: d.Routine, Key: "description",
		Format: "markdown",
		Latest: company.DocumentOfRoutine(d.Routine, d.Version), Number: d.Version, UpdatedAt: d.At}
}

// routineDescriptions are the descriptions of routines.
var routineDescriptions = remarkable{entity: "routine", actions: "routine.description_annotation_",
	missing: "The description has no such revision", at: describedRoutine,
	revision: func(c *ledger.Context, d Document, id string, number uint64) (DocumentRevision, bool) {
		version, text, ok := company.Ask.DescriptionAt(c.Tx, d.Company, d.Issue, id, number)
		return DocumentRevision{ID: company.DocumentOfRoutine(d.Issue, version), Number: version, Body: text}, ok
	}}

// describedRoutine returns the routine whose description is annotated: any of the actor's
// company, for an agent under its own run.
func describedRoutine(c *ledger.Context, id, _ string) (entity.Issue, Document, error) {
	d, ok := company.Ask.Routines.Description(c.Tx, c.Cmd.Company, id)
	if !ok {
		return entity.Issue{}, Document{}, ledger.Refuse(ledger.NotFound, nil, "Routine not found")
	}
	if core.IsAgent(c) {
		if err := company.MustRun(c); err != nil {
			return entity.Issue{}, Document{}, err
		}
	}
	return entity.Issue{ID: d.Routine, Company: d.Company}, DescriptionOf(d), nil
}
