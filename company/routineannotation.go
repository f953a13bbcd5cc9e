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

// remarkable returns the routine that somebody remarks on: any of the company
// that the actor is in, an agent under a run of its own.
func remarkable(c *ledger.Context, id string) (Routine, Issue, error) {
	r, ok := routines.Get(c.Tx, c.Cmd.Company, id)
	if !ok {
		return r, Issue{}, errNoRoutine()
	}
	if isAgent(c) {
		if err := mustRun(c); err != nil {
			return r, Issue{}, err
		}
	}
	return r, Issue{ID: r.ID, Company: r.Company}, nil
}

func (a Annotation) routineChange(action string) ledger.Change {
	ch := a.change(action)
	ch.EntityType = "routine"
	return ch
}

func annotateRoutine(c *ledger.Context, p AnnotateDocument) (any, error) {
	r, at, err := remarkable(c, p.Issue)
	if err != nil {
		return nil, err
	}
	v, ok := descriptionAt(c.Tx, r, p.Revision, p.Number)
	if !ok {
		return nil, refuseStale(DescriptionOf(r), "The description has no such revision")
	}
	a, err := newAnnotation(c, at, DescriptionOf(r), v, p)
	if err != nil {
		return nil, err
	}
	c.Record(a.routineChange("routine.description_annotation_created"))
	return a, nil
}

func changedRoutineAnnotation(c *ledger.Context, p ChangeAnnotation) (Issue, Annotation, error) {
	r, at, err := remarkable(c, p.Issue)
	if err != nil {
		return at, Annotation{}, err
	}
	a, ok := AnnotationOf(c.Tx, DescriptionOf(r), p.Thread)
	if !ok {
		return at, a, ledger.Refuse(ledger.NotFound, nil, "Annotation thread not found")
	}
	return at, a, nil
}

func commentRoutineAnnotation(c *ledger.Context, p ChangeAnnotation) (any, error) {
	at, a, err := changedRoutineAnnotation(c, p)
	if err != nil {
		return nil, err
	}
	if a, err = a.with(c, at, p.Comment); err != nil {
		return nil, err
	}
	a = a.move(c, "open")
	annotations.Put(c.Tx, a.Company, a.rowKey(), a)
	c.Record(a.routineChange("routine.description_annotation_commented"))
	return a, nil
}

func updateRoutineAnnotation(c *ledger.Context, p ChangeAnnotation) (any, error) {
	_, a, err := changedRoutineAnnotation(c, p)
	if err != nil {
		return nil, err
	}
	if p.Status != "" && p.Status != "open" && p.Status != "resolved" {
		return nil, ledger.Refuse(ledger.Invalid, nil, "Unknown status of an annotation: %s", p.Status)
	}
	if p.Status == "" || p.Status == a.Status {
		return a, nil
	}
	a = a.move(c, p.Status)
	annotations.Put(c.Tx, a.Company, a.rowKey(), a)
	c.Record(a.routineChange("routine.description_annotation_updated"))
	return a, nil
}
