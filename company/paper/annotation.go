package paper

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// An Annotation is a thread of remarks on a passage of a document, as it was in one revision.
type Annotation struct {
	ID             string              `cbor:"1,keyasint" json:"id"`
	Company        ledger.CompanyID    `cbor:"2,keyasint" json:"companyId"`
	Issue          string              `cbor:"3,keyasint" json:"issueId"`
	Document       string              `cbor:"4,keyasint" json:"documentId"`
	Key            string              `cbor:"5,keyasint" json:"documentKey"`
	Status         string              `cbor:"6,keyasint" json:"status"` // open or resolved
	Revision       string              `cbor:"7,keyasint" json:"baseRevisionId"`
	RevisionNumber uint64              `cbor:"8,keyasint" json:"baseRevisionNumber"`
	Exact          string              `cbor:"9,keyasint" json:"selectedText"`
	Before         string              `cbor:"10,keyasint,omitempty" json:"prefixText"`
	After          string              `cbor:"11,keyasint,omitempty" json:"suffixText"`
	Start          int64               `cbor:"12,keyasint" json:"normalizedStart"`
	End            int64               `cbor:"13,keyasint" json:"normalizedEnd"`
	MarkdownStart  int64               `cbor:"14,keyasint" json:"markdownStart"`
	MarkdownEnd    int64               `cbor:"15,keyasint" json:"markdownEnd"`
	CreatedAgent   core.NullText       `cbor:"16,keyasint,omitempty" json:"createdByAgentId"`
	CreatedUser    core.NullText       `cbor:"17,keyasint,omitempty" json:"createdByUserId"`
	ResolvedAgent  core.NullText       `cbor:"18,keyasint,omitempty" json:"resolvedByAgentId"`
	ResolvedUser   core.NullText       `cbor:"19,keyasint,omitempty" json:"resolvedByUserId"`
	ResolvedAt     core.Time           `cbor:"20,keyasint,omitempty" json:"resolvedAt"`
	CreatedAt      core.Time           `cbor:"21,keyasint" json:"createdAt"`
	UpdatedAt      core.Time           `cbor:"22,keyasint" json:"updatedAt"`
	Comments       []AnnotationComment `cbor:"23,keyasint" json:"comments"`
	Seq            uint64              `cbor:"24,keyasint" json:"-"` // number within the document, from 1
}

// Clone returns a copy that shares nothing with a.
func (a Annotation) Clone() Annotation {
	a.Comments = slices.Clone(a.Comments)
	return a
}

// An AnnotationComment is one remark of a thread.
type AnnotationComment struct {
	ID           string        `cbor:"1,keyasint" json:"id"`
	Body         string        `cbor:"2,keyasint" json:"body"`
	AuthorAgent  core.NullText `cbor:"3,keyasint,omitempty" json:"authorAgentId"`
	AuthorUser   core.NullText `cbor:"4,keyasint,omitempty" json:"authorUserId"`
	Run          core.NullText `cbor:"5,keyasint,omitempty" json:"createdByRunId"`
	IssueComment core.NullText `cbor:"6,keyasint,omitempty" json:"issueCommentId"`
	CreatedAt    core.Time     `cbor:"7,keyasint" json:"createdAt"`
}

// Annotations are keyed by "<issue>.<document>.<number>", oldest first.
var annotations = ledger.NewTable[string, Annotation]("annotation")

const (
	// MaxAnnotations bounds the threads of one document: lists show all of them.
	MaxAnnotations = 200
	// MaxRemarks bounds the remarks of one thread, MaxRemark one of them, and MaxRemarkText a
	// whole thread with its passage, in bytes.
	MaxRemarks    = 200
	MaxRemark     = 16 << 10
	MaxRemarkText = 128 << 10
)

// AnnotateDocument is the payload of annotation.create.
type AnnotateDocument struct {
	ID            string `cbor:"1,keyasint"`
	Issue         string `cbor:"2,keyasint"`
	Key           string `cbor:"3,keyasint"`
	Revision      string `cbor:"4,keyasint"`
	Number        uint64 `cbor:"5,keyasint"`
	Exact         string `cbor:"6,keyasint"`
	Before        string `cbor:"7,keyasint,omitempty"`
	After         string `cbor:"8,keyasint,omitempty"`
	Start         int64  `cbor:"9,keyasint"`
	End           int64  `cbor:"10,keyasint"`
	MarkdownStart int64  `cbor:"11,keyasint"`
	MarkdownEnd   int64  `cbor:"12,keyasint"`
	Comment       Remark `cbor:"13,keyasint"`
}

// A Remark is what a comment of a thread says.
type Remark struct {
	ID           string `cbor:"1,keyasint"`
	Body         string `cbor:"2,keyasint"`
	IssueComment string `cbor:"3,keyasint,omitempty"`
}

// ChangeAnnotation is the payload of annotation.comment and annotation.update.
type ChangeAnnotation struct {
	Issue   string `cbor:"1,keyasint"`
	Key     string `cbor:"2,keyasint"`
	Thread  string `cbor:"3,keyasint"`
	Comment Remark `cbor:"4,keyasint,omitempty"`
	Status  string `cbor:"5,keyasint,omitempty"` // open or resolved
}

const (
	KindAnnotationCreate         = "annotation.create"
	KindAnnotationComment        = "annotation.comment"
	KindAnnotationUpdate         = "annotation.update"
	KindRoutineAnnotationCreate  = "routine_annotation.create"
	KindRoutineAnnotationComment = "routine_annotation.comment"
	KindRoutineAnnotationUpdate  = "routine_annotation.update"
)

var annotationKinds = []company.Kind{
	{Name: KindAnnotationCreate, From: company.FromBoard | company.FromAgent,
		Traits: company.Importable | company.Authored, Weight: company.Weights.Talk,
		Do: ledger.Typed(issueDocuments.annotate)},
	{Name: KindAnnotationComment, From: company.FromBoard | company.FromAgent,
		Traits: company.Importable | company.Authored, Weight: company.Weights.Talk,
		Do: ledger.Typed(issueDocuments.comment)},
	{Name: KindAnnotationUpdate, From: company.FromBoard | company.FromAgent, Traits: company.Importable,
		Weight: company.Weights.Talk, Do: ledger.Typed(issueDocuments.update)},
	{Name: KindRoutineAnnotationCreate, From: company.FromBoard | company.FromAgent,
		Traits: company.Importable | company.Authored, Weight: company.Weights.Talk,
		Do: ledger.Typed(routineDescriptions.annotate)},
	{Name: KindRoutineAnnotationComment, From: company.FromBoard | company.FromAgent,
		Traits: company.Importable | company.Authored, Weight: company.Weights.Talk,
		Do: ledger.Typed(routineDescriptions.comment)},
	{Name: KindRoutineAnnotationUpdate, From: company.FromBoard | company.FromAgent, Traits: company.Importable,
		Weight: company.Weights.Talk, Do: ledger.Typed(routineDescriptions.update)},
}

func (a Annotation) rowKey() string { return revisionKey(a.Issue, a.Document, a.Seq) }

// AnnotationsOf returns the threads on a document, oldest first.
func AnnotationsOf(tx *ledger.Tx, d Document) []Annotation {
	out := []Annotation{}
	for _, v := range tx.Prefix(annotations.Key(d.Company, d.Issue+"."+d.ID+".")) {
		out = append(out, core.DecodeRow[Annotation](v))
	}
	return out
}

// AnnotationOf returns one thread on a document.
func AnnotationOf(tx *ledger.Tx, d Document, id string) (Annotation, bool) {
	for _, a := range AnnotationsOf(tx, d) {
		if a.ID == id {
			return a, true
		}
	}
	return Annotation{}, false
}

// A remarkable is a kind of text that people can annotate.
type remarkable struct {
	entity, actions string // the entity type of its activity lines, and the prefix of their actions
	missing         string // the error for a missing revision
	// at returns the text and where it belongs, if the actor may annotate it.
	at func(c *ledger.Context, id, key string) (entity.Issue, Document, error)
	// revision returns one revision of the text.
	revision func(c *ledger.Context, d Document, id string, number uint64) (DocumentRevision, bool)
}

// issueDocuments are the documents of issues.
var issueDocuments = remarkable{entity: "issue", actions: "issue.document_annotation_",
	missing: "The document has no such revision", at: annotated,
	revision: func(c *ledger.Context, d Document, id string, number uint64) (DocumentRevision, bool) {
		r, ok := RevisionOfDocument(c.Tx, d, id)
		return r, ok && r.Number == number
	}}

func (of remarkable) annotate(c *ledger.Context, p AnnotateDocument) (any, error) {
	i, d, err := of.at(c, p.Issue, p.Key)
	if err != nil {
		return nil, err
	}
	r, ok := of.revision(c, d, p.Revision, p.Number)
	if !ok {
		return nil, refuseStale(d, of.missing)
	}
	a, err := newAnnotation(c, i, d, r, p)
	if err != nil {
		return nil, err
	}
	of.record(c, a, "created")
	return a, nil
}

// newAnnotation starts a thread on a passage of r, in a document of i.
func newAnnotation(c *ledger.Context, i entity.Issue, d Document, r DocumentRevision, p AnnotateDocument) (a Annotation,
	err error) {
	switch {
	case !core.IsID(p.ID):
		return a, ledger.Refuse(ledger.Invalid, nil, "malformed ID of an annotation")
	case p.Exact == "" || !strings.Contains(r.Body, p.Exact):
		return a, ledger.Refuse(ledger.Unprocessable, nil, "The revision does not contain the selected text")
	case p.Start < 0 || p.End < p.Start || p.MarkdownStart < 0 || p.MarkdownEnd < p.MarkdownStart:
		return a, ledger.Refuse(ledger.Invalid, nil, "The end of a selection is not before its start")
	}
	now := core.TimeOf(c.Now)
	a = Annotation{ID: p.ID, Company: i.Company, Issue: i.ID, Document: d.ID, Key: d.Key, Status: "open", Revision: r.ID,
		RevisionNumber: r.Number,
		Exact:          p.Exact, Before: p.Before, After: p.After, Start: p.Start, End: p.End, MarkdownStart: p.MarkdownStart,
		MarkdownEnd: p.MarkdownEnd, CreatedAt: now, UpdatedAt: now}
	a.CreatedAgent, a.CreatedUser = core.ActedBy(c)
	if a, err = a.with(c, i, p.Comment); err != nil {
		return a, err
	}
	list := AnnotationsOf(c.Tx, d)
	if len(list) >= MaxAnnotations {
		return a, ledger.Refuse(ledger.Unprocessable, nil, "A document can have at most %d annotations", MaxAnnotations)
	}
	for _, o := range list {
		if o.ID == a.ID {
			return a, ledger.Refuse(ledger.Conflict, nil, "ID %s is in use", a.ID)
		}
		a.Seq = o.Seq
	}
	a.Seq++
	annotations.Put(c.Tx, a.Company, a.rowKey(), a)
	return a, nil
}

// annotated returns a document if the actor may annotate it.
func annotated(c *ledger.Context, issue, key string) (entity.Issue, Document, error) {
	i, err := company.DocumentIssue(c, issue)
	if err != nil {
		return i, Document{}, err
	}
	d, ok := DocumentOf(c.Tx, i, key)
	if !ok {
		return i, d, errNoDocument()
	}
	return i, d, nil
}

// with adds a remark to a.
func (a Annotation) with(c *ledger.Context, i entity.Issue, p Remark) (Annotation, error) {
	size := len(a.Exact) + len(a.Before) + len(a.After) + len(p.Body)
	for _, o := range a.Comments {
		size += len(o.Body)
		if o.ID == p.ID {
			return a, ledger.Refuse(ledger.Conflict, nil, "ID %s is in use", p.ID)
		}
	}
	switch {
	case !core.IsID(p.ID):
		return a, ledger.Refuse(ledger.Invalid, nil, "malformed ID of a comment")
	case strings.TrimSpace(p.Body) == "":
		return a, ledger.Refuse(ledger.Invalid, nil, "A comment needs a text")
	case len(p.Body) > MaxRemark || size > MaxRemarkText:
		return a, ledger.Refuse(ledger.TooLarge, nil, "A comment has at most %d bytes, and a thread %d", MaxRemark,
			MaxRemarkText)
	case len(a.Comments) >= MaxRemarks:
		return a, ledger.Refuse(ledger.Unprocessable, nil, "An annotation can have at most %d comments", MaxRemarks)
	}
	if p.IssueComment != "" {
		if _, ok := entity.CommentOf(c.Tx, i.Company, i.ID, p.IssueComment); !ok {
			return a, ledger.Refuse(ledger.NotFound, nil, "Comment not found")
		}
	}
	now := core.TimeOf(c.Now)
	cm := AnnotationComment{ID: p.ID, Body: p.Body, Run: core.NullText(c.Cmd.Run),
		IssueComment: core.NullText(p.IssueComment), CreatedAt: now}
	cm.AuthorAgent, cm.AuthorUser = core.ActedBy(c)
	a.Comments, a.UpdatedAt = append(slices.Clone(a.Comments), cm), now
	return a, nil
}

func (of remarkable) record(c *ledger.Context, a Annotation, what string) {
	c.Record(ledger.Change{Action: of.actions + what, EntityType: of.entity, EntityID: a.Issue,
		Details: core.Object{}.Str("annotationId", a.ID).Str("documentId", a.Document).
			Str("key", a.Key).Str("status", a.Status).Int("comments", int64(len(a.Comments))).Str("selectedText",
			core.Snippet(a.Exact, 200)).Close()})
}

// thread returns the annotation of a change and where its text belongs.
func (of remarkable) thread(c *ledger.Context, p ChangeAnnotation) (entity.Issue, Annotation, error) {
	i, d, err := of.at(c, p.Issue, p.Key)
	if err != nil {
		return i, Annotation{}, err
	}
	a, ok := AnnotationOf(c.Tx, d, p.Thread)
	if !ok {
		return i, a, ledger.Refuse(ledger.NotFound, nil, "Annotation thread not found")
	}
	return i, a, nil
}

// comment adds a remark; a remark reopens a resolved thread.
func (of remarkable) comment(c *ledger.Context, p ChangeAnnotation) (any, error) {
	i, a, err := of.thread(c, p)
	if err != nil {
		return nil, err
	}
	if a, err = a.with(c, i, p.Comment); err != nil {
		return nil, err
	}
	a = a.move(c, "open")
	annotations.Put(c.Tx, a.Company, a.rowKey(), a)
	of.record(c, a, "commented")
	return a, nil
}

func (of remarkable) update(c *ledger.Context, p ChangeAnnotation) (any, error) {
	_, a, err := of.thread(c, p)
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
	of.record(c, a, "updated")
	return a, nil
}

func (a Annotation) move(c *ledger.Context, to string) Annotation {
	if a.Status == to {
		return a
	}
	a.Status, a.UpdatedAt, a.ResolvedAt = to, core.TimeOf(c.Now), 0
	a.ResolvedAgent, a.ResolvedUser = "", ""
	if to == "resolved" {
		a.ResolvedAt = core.TimeOf(c.Now)
		a.ResolvedAgent, a.ResolvedUser = core.ActedBy(c)
	}
	return a
}

// dropAnnotations deletes the threads of a deleted document.
func dropAnnotations(tx *ledger.Tx, d Document) {
	for k := range tx.Prefix(annotations.Key(d.Company, d.Issue+"."+d.ID+".")) {
		tx.Delete(slices.Clone(k))
	}
}

// AnnotationSelector returns the selector of a as clients send it.
func (a Annotation) AnnotationSelector() json.RawMessage {
	quote := core.Object{}.Str("exact", a.Exact).Str("prefix", a.Before).Str("suffix", a.After).Close()
	position := core.Object{}.Int("normalizedStart", a.Start).Int("normalizedEnd", a.End).Int("markdownStart",
		a.MarkdownStart).Int("markdownEnd", a.MarkdownEnd).Close()
	return core.Object{}.Raw("quote", quote).Raw("position", position).Close()
}
