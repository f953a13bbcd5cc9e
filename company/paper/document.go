// Package paper has the texts on issues apart from comments: documents with their revisions,
// annotations, questions of agents to people, and the stages of a review.
package paper

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Document is one named text of an issue, such as its plan, with the text of its latest
// revision.
type Document struct {
	ID           string           `cbor:"1,keyasint" json:"id"`
	Company      ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Issue        string           `cbor:"3,keyasint" json:"issueId"`
	Key          string           `cbor:"4,keyasint" json:"key"`
	Title        core.NullText    `cbor:"5,keyasint,omitempty" json:"title"`
	Format       string           `cbor:"6,keyasint" json:"format"` // markdown
	Latest       string           `cbor:"7,keyasint" json:"latestRevisionId"`
	Number       uint64           `cbor:"8,keyasint" json:"latestRevisionNumber"`
	CreatedAgent core.NullText    `cbor:"9,keyasint,omitempty" json:"createdByAgentId"`
	CreatedUser  core.NullText    `cbor:"10,keyasint,omitempty" json:"createdByUserId"`
	UpdatedAgent core.NullText    `cbor:"11,keyasint,omitempty" json:"updatedByAgentId"`
	UpdatedUser  core.NullText    `cbor:"12,keyasint,omitempty" json:"updatedByUserId"`
	LockedAt     core.Time        `cbor:"13,keyasint,omitempty" json:"lockedAt"`
	LockedAgent  core.NullText    `cbor:"14,keyasint,omitempty" json:"lockedByAgentId"`
	LockedUser   core.NullText    `cbor:"15,keyasint,omitempty" json:"lockedByUserId"`
	SourceTrust  core.NullText    `cbor:"-" json:"sourceTrust"`
	CreatedAt    core.Time        `cbor:"16,keyasint" json:"createdAt"`
	UpdatedAt    core.Time        `cbor:"17,keyasint" json:"updatedAt"`
	Kept         uint64           `cbor:"18,keyasint,omitempty" json:"-"` // number of the oldest stored revision
}

// A DocumentRevision is one version of a document. Its text is in Body or, if it is long, in
// parts.
type DocumentRevision struct {
	ID           string           `cbor:"1,keyasint" json:"id"`
	Company      ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Document     string           `cbor:"3,keyasint" json:"documentId"`
	Issue        string           `cbor:"4,keyasint" json:"issueId"`
	Key          string           `cbor:"5,keyasint" json:"key"`
	Number       uint64           `cbor:"6,keyasint" json:"revisionNumber"`
	Title        core.NullText    `cbor:"7,keyasint,omitempty" json:"title"`
	Format       string           `cbor:"8,keyasint" json:"format"`
	Body         string           `cbor:"9,keyasint,omitempty" json:"body"`
	Parts        []string         `cbor:"10,keyasint,omitempty" json:"-"`
	Summary      core.NullText    `cbor:"11,keyasint,omitempty" json:"changeSummary"`
	CreatedAgent core.NullText    `cbor:"12,keyasint,omitempty" json:"createdByAgentId"`
	CreatedUser  core.NullText    `cbor:"13,keyasint,omitempty" json:"createdByUserId"`
	CreatedAt    core.Time        `cbor:"14,keyasint" json:"createdAt"`
}

// Clone returns a copy that shares nothing with r.
func (r DocumentRevision) Clone() DocumentRevision {
	r.Parts = append([]string(nil), r.Parts...)
	return r
}

// Documents are keyed by "<issue>.<key>", revisions by
// "<issue>.<document>.<number>", so that an issue's lie together.
var (
	documents    = ledger.NewTable[string, Document]("document")
	docRevisions = ledger.NewTable[string, DocumentRevision]("document-revision")
)

const (
	// MaxDocuments bounds the documents of one issue: lists show all of them.
	MaxDocuments = 50
	// MaxDocument bounds a document's text, in bytes. Text longer than InlineDocument is staged
	// in parts.
	MaxDocument    = 2 << 20
	InlineDocument = 64 << 10
	// KeptRevisions bounds the revisions of one document; the oldest are dropped.
	KeptRevisions = 100
	// MaxDocumentKey bounds a document's key.
	MaxDocumentKey = 64
)

// SaveDocument is the payload of document.save.
type SaveDocument struct {
	Issue    string   `cbor:"1,keyasint"`
	Key      string   `cbor:"2,keyasint"`
	ID       string   `cbor:"3,keyasint"` // of a new document
	Revision string   `cbor:"4,keyasint"` // of the new revision
	Title    *string  `cbor:"5,keyasint,omitempty"`
	Format   string   `cbor:"6,keyasint"`
	Body     string   `cbor:"7,keyasint,omitempty"`
	Parts    []string `cbor:"8,keyasint,omitempty"` // in place of Body
	Sum      string   `cbor:"9,keyasint,omitempty"` // SHA-256 of the concatenated parts
	Summary  string   `cbor:"10,keyasint,omitempty"`
	Base     string   `cbor:"11,keyasint,omitempty"` // the revision that the change is based on
}

// RestoreDocument is the payload of document.restore.
type RestoreDocument struct {
	Issue    string `cbor:"1,keyasint"`
	Key      string `cbor:"2,keyasint"`
	Revision string `cbor:"3,keyasint"` // the revision whose text becomes the latest again
	ID       string `cbor:"4,keyasint"` // of the new revision
}

// ChangeDocument is the payload of document.delete, document.lock and
// document.unlock.
type ChangeDocument struct {
	Issue string `cbor:"1,keyasint"`
	Key   string `cbor:"2,keyasint"`
}

// A SavedDocument is the answer of document.save and document.restore, without texts.
type SavedDocument struct {
	Document Document `cbor:"1,keyasint"`
	Created  bool     `cbor:"2,keyasint,omitempty"`
	Was      string   `cbor:"3,keyasint,omitempty"` // the revision before
}

const (
	KindDocumentSave    = "document.save"
	KindDocumentRestore = "document.restore"
	KindDocumentDelete  = "document.delete"
	KindDocumentLock    = "document.lock"
	KindDocumentUnlock  = "document.unlock"
)

var documentKinds = []company.Kind{
	{Name: KindDocumentSave, From: company.FromBoard | company.FromAgent, Traits: company.Importable | company.SeldomWork,
		Weight: company.Weights.Text, Do: ledger.Typed(saveDocument)},
	{Name: KindDocumentRestore, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Text, Do: ledger.Typed(restoreDocument)},
	{Name: KindDocumentDelete, From: company.FromBoard, Traits: company.SeldomWork, Weight: company.Weights.Erase,
		Do: ledger.Typed(deleteDocument)},
	{Name: KindDocumentLock, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Text, Do: ledger.Typed(lockDocument)},
	{Name: KindDocumentUnlock, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Text, Do: ledger.Typed(unlockDocument)},
}

func revisionKey(issue, document string, number uint64) string {
	return issue + "." + document + "." + ledger.Order(number)
}

// DocumentOf returns a document of an issue.
func DocumentOf(tx *ledger.Tx, i entity.Issue, key string) (Document, bool) {
	if !IsDocumentKey(key) {
		return Document{}, false
	}
	return documents.Get(tx, i.Company, i.ID+"."+key)
}

// DocumentsOf returns the documents of an issue, by key.
func DocumentsOf(tx *ledger.Tx, i entity.Issue) []Document {
	out := []Document{}
	for _, v := range tx.Prefix(documents.Key(i.Company, i.ID+".")) {
		out = append(out, core.DecodeRow[Document](v))
	}
	return out
}

// Text returns the present text of a document.
func (d Document) Text(tx *ledger.Tx) string {
	r, _ := docRevisions.Get(tx, d.Company, revisionKey(d.Issue, d.ID, d.Number))
	return r.text(tx)
}

func (r DocumentRevision) text(tx *ledger.Tx) string {
	if len(r.Parts) == 0 {
		return r.Body
	}
	var b strings.Builder
	for _, name := range r.Parts {
		p, _ := company.Parts.Get(tx, r.Company, name)
		b.Write(p.Bytes)
	}
	return b.String()
}

// RevisionsOfDocument returns the stored revisions of a document with their texts, newest
// first, up to MaxRevisionText.
func RevisionsOfDocument(tx *ledger.Tx, d Document) []DocumentRevision {
	out, size := []DocumentRevision{}, 0
	for r := range documentRows(tx, d) {
		r.Body = r.text(tx)
		if size += len(r.Body); size > MaxRevisionText && len(out) > 0 {
			break
		}
		out = append(out, r)
	}
	return out
}

// MaxRevisionText bounds the texts of one list of revisions, in bytes.
const MaxRevisionText = 16 << 20

func documentRows(tx *ledger.Tx, d Document) iter.Seq[DocumentRevision] {
	return func(yield func(DocumentRevision) bool) {
		from := docRevisions.Key(d.Company, d.Issue+"."+d.ID+".")
		for _, v := range tx.Scan(from, ledger.PrefixEnd(from), true) {
			if !yield(core.DecodeRow[DocumentRevision](v)) {
				return
			}
		}
	}
}

// RevisionOfDocument returns one revision of a document with its text.
func RevisionOfDocument(tx *ledger.Tx, d Document, id string) (DocumentRevision, bool) {
	for r := range documentRows(tx, d) {
		if r.ID == id {
			r.Body = r.text(tx)
			return r, true
		}
	}
	return DocumentRevision{}, false
}

// IsDocumentKey reports whether s can be a document key: lower case letters, digits, dashes
// and underscores, beginning with a letter or a digit.
func IsDocumentKey(s string) bool {
	if s == "" || len(s) > MaxDocumentKey || s[0] == '-' || s[0] == '_' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

func errNoDocument() error { return ledger.Refuse(ledger.NotFound, nil, "Document not found") }

// refuseStale refuses a change that is not based on the latest revision.
func refuseStale(d Document, text string) error {
	return ledger.Refuse(ledger.Conflict, core.Object{}.Str("currentRevisionId", d.Latest).Close(), "%s", text)
}

func saveDocument(c *ledger.Context, p SaveDocument) (any, error) {
	i, err := company.DocumentIssue(c, p.Issue)
	if err != nil {
		return nil, err
	}
	switch {
	case !IsDocumentKey(p.Key):
		return nil, ledger.Refuse(ledger.Invalid, nil, "Invalid document key")
	case !core.IsID(p.ID) || !core.IsID(p.Revision):
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed ID of a document")
	case p.Format != "markdown":
		return nil, ledger.Refuse(ledger.Invalid, nil, "Unknown document format: %s", p.Format)
	case p.Title != nil && len(*p.Title) > entity.MaxTitle || len(p.Summary) > entity.MaxTitle ||
		len(p.Parts) > MaxDocument/company.MaxPart+1:
		return nil, ledger.Refuse(ledger.TooLarge, nil, "The document is too long")
	}
	if len(p.Parts) > 0 {
		if _, err := company.JoinParts(c.Tx, i.Company, p.Parts, p.Sum, MaxDocument); err != nil {
			return nil, err
		}
		p.Body = ""
	}
	d, ok := documents.Get(c.Tx, i.Company, i.ID+"."+p.Key)
	now := core.TimeOf(c.Now)
	switch {
	case !ok && p.Base != "":
		return nil, ledger.Refuse(ledger.Conflict, nil, "Document does not exist yet")
	case !ok:
		n := 0
		for range c.Prefix(documents.Key(i.Company, i.ID+".")) {
			n++
		}
		if n >= MaxDocuments {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "An issue can have at most %d documents", MaxDocuments)
		}
		d = Document{ID: p.ID, Company: i.Company, Issue: i.ID, Key: p.Key, Kept: 1, CreatedAt: now}
		d.CreatedAgent, d.CreatedUser = core.ActedBy(c)
	case d.LockedAt != 0:
		return nil, refuseStale(d, "Document is locked")
	case p.Base == "":
		return nil, refuseStale(d, "Document update requires baseRevisionId")
	case p.Base != d.Latest:
		return nil, refuseStale(d, "Document was updated by someone else")
	}
	core.AssignText(&d.Title, p.Title)
	d.Format = p.Format
	r := DocumentRevision{ID: p.Revision, Body: p.Body, Parts: p.Parts, Summary: core.NullText(p.Summary)}
	return writeDocument(c, i, d, r, !ok, "")
}

// writeDocument stores r as the latest revision of d.
func writeDocument(c *ledger.Context, i entity.Issue, d Document, r DocumentRevision, created bool,
	restored string) (any, error) {
	now, was := core.TimeOf(c.Now), d.Latest
	d.Latest, d.Number, d.UpdatedAt = r.ID, d.Number+1, now
	d.UpdatedAgent, d.UpdatedUser = core.ActedBy(c)
	r.Company, r.Document, r.Issue, r.Key, r.Number, r.Title, r.Format, r.CreatedAt = i.Company, d.ID, i.ID, d.Key,
		d.Number, d.Title, d.Format, now
	r.CreatedAgent, r.CreatedUser = d.UpdatedAgent, d.UpdatedUser
	company.RefParts(c.Tx, i.Company, r.Parts)
	docRevisions.Put(c.Tx, i.Company, revisionKey(i.ID, d.ID, r.Number), r)
	for d.Number-d.Kept >= KeptRevisions {
		dropRevision(c.Tx, i.Company, revisionKey(i.ID, d.ID, d.Kept), now)
		d.Kept++
	}
	documents.Put(c.Tx, i.Company, i.ID+"."+d.Key, d)
	company.AddExtra(c.Tx, i.Company, i.ID, company.HasDocuments)
	touched := i
	touched.UpdatedAt = now
	company.StoreIssue(c.Tx, i, touched)
	action := "issue.document_updated"
	o := core.Object{}.Str("key", d.Key).Str("documentId", d.ID).Null("title", string(d.Title)).Str("format", d.Format).
		Uint("revisionNumber", d.Number)
	switch {
	case created:
		action = "issue.document_created"
	case restored != "":
		action, o = "issue.document_restored", o.Str("restoredFromRevisionId", restored)
	}
	if restored == "" {
		o = o.Null("redirectedFromLockedDocument", "")
	}
	c.Record(ledger.Change{Action: action, EntityType: "issue", EntityID: i.ID, Details: o.Close()})
	return SavedDocument{Document: d, Created: created, Was: was}, nil
}

func dropRevision(tx *ledger.Tx, of ledger.CompanyID, key string, now core.Time) {
	if r, ok := docRevisions.Get(tx, of, key); ok {
		company.UnrefParts(tx, of, r.Parts, now)
		docRevisions.Delete(tx, of, key)
	}
}

func restoreDocument(c *ledger.Context, p RestoreDocument) (any, error) {
	i, d, err := documentFor(c, p.Issue, p.Key)
	if err != nil {
		return nil, err
	}
	if d.LockedAt != 0 {
		return nil, refuseStale(d, "Document is locked")
	}
	for r := range documentRows(c.Tx, d) {
		if r.ID != p.Revision {
			continue
		}
		if r.ID == d.Latest {
			return nil, refuseStale(d, "Document revision is already current")
		}
		if !core.IsID(p.ID) {
			return nil, ledger.Refuse(ledger.Invalid, nil, "malformed ID of a revision")
		}
		d.Title, d.Format = r.Title, r.Format
		next := DocumentRevision{ID: p.ID, Body: r.Body, Parts: r.Parts, Summary: core.NullText("Restored from revision " +
			strconv.FormatUint(r.Number, 10))}
		return writeDocument(c, i, d, next, false, r.ID)
	}
	return nil, ledger.Refuse(ledger.NotFound, nil, "Document revision not found")
}

func documentFor(c *ledger.Context, issue, key string) (entity.Issue, Document, error) {
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

// deleteDocument deletes a document with its revisions. Only the board may: an agent must not
// remove a text that people decided on.
func deleteDocument(c *ledger.Context, p ChangeDocument) (any, error) {
	if core.IsAgent(c) {
		return nil, core.ErrBoardOnly()
	}
	i, d, err := documentFor(c, p.Issue, p.Key)
	if err != nil {
		return nil, err
	}
	for n := d.Kept; n <= d.Number; n++ {
		dropRevision(c.Tx, i.Company, revisionKey(i.ID, d.ID, n), core.TimeOf(c.Now))
	}
	dropAnnotations(c.Tx, d)
	documents.Delete(c.Tx, i.Company, i.ID+"."+d.Key)
	c.Record(ledger.Change{Action: "issue.document_deleted", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("key", d.Key).Str("documentId", d.ID).Null("title", string(d.Title)).Close()})
	return d, nil
}

func lockDocument(c *ledger.Context, p ChangeDocument) (any, error) {
	return setLock(c, p, true)
}

func unlockDocument(c *ledger.Context, p ChangeDocument) (any, error) {
	return setLock(c, p, false)
}

// setLock locks or unlocks a document.
func setLock(c *ledger.Context, p ChangeDocument, lock bool) (any, error) {
	i, d, err := documentFor(c, p.Issue, p.Key)
	if err != nil {
		return nil, err
	}
	if lock == (d.LockedAt != 0) {
		return d, nil
	}
	action := "issue.document_unlocked"
	d.LockedAt, d.LockedAgent, d.LockedUser = 0, "", ""
	if lock {
		action, d.LockedAt = "issue.document_locked", core.TimeOf(c.Now)
		d.LockedAgent, d.LockedUser = core.ActedBy(c)
	}
	documents.Put(c.Tx, i.Company, i.ID+"."+d.Key, d)
	c.Record(ledger.Change{Action: action, EntityType: "issue", EntityID: i.ID, Details: core.Object{}.Str("key", d.Key).
		Str("documentId", d.ID).Close()})
	return d, nil
}

// Rules are what paper adds to the kernel.
var Rules = company.Rules{
	Kinds:  slices.Concat(documentKinds, annotationKinds, decompositionKinds, interactionKinds),
	Causes: causes,
	Left: func(tx *ledger.Tx, of ledger.CompanyID, issue string) iter.Seq2[[]byte, func(core.Time)] {
		return func(yield func([]byte, func(core.Time)) bool) {
			for k, v := range tx.Prefix(docRevisions.Key(of, issue+".")) {
				named := core.DecodeRow[DocumentRevision](v).Parts
				if !yield(k, func(now core.Time) { company.UnrefParts(tx, of, named, now) }) {
					return
				}
			}
			for k, v := range tx.Prefix(Interactions.Key(of, issue+".")) {
				in := core.DecodeRow[Interaction](v)
				if !yield(k, func(core.Time) {
					interactionsPending.Remove(tx, of, issue, ledger.Order(in.Seq))
					tx.Delete(InteractionRequestKey(of, issue, string(in.IdempotencyKey)))
				}) {
					return
				}
			}
			for _, prefix := range [][]byte{executionDecisions.Key(of, issue+"."), decompositions.Key(of, issue+"."),
				annotations.Key(of, issue+"."), documents.Key(of, issue+".")} {
				for k := range tx.Prefix(prefix) {
					if !yield(k, func(core.Time) {}) {
						return
					}
				}
			}
		}
	},
	CommentAdded: func(c *ledger.Context, i entity.Issue, cm entity.Comment, _ []string) error {
		supersede(c, i, cm)
		return nil
	},
	CheckIssue: checkParticipants,
	CheckWake: func(tx *ledger.Tx, _ ledger.CompanyID, i entity.Issue, w entity.Wake) error {
		if w.Interaction == "" {
			return nil
		}
		if _, ok := InteractionOf(tx, i, w.Interaction); !ok {
			return ledger.Refuse(ledger.NotFound, nil, "Interaction not found")
		}
		return nil
	},
	Awaits: func(tx *ledger.Tx, i entity.Issue) bool {
		for range interactionsPending.IDs(tx, i.Company, i.ID, false) {
			return true
		}
		return false
	},
	Stages:          reviews{},
	Papers:          texts{},
	DescriptionGone: func(c *ledger.Context, d company.Description) { dropAnnotations(c.Tx, DescriptionOf(d)) },
}

// reviews implements the kernel's port for stages.
type reviews struct{}

func (reviews) Review(c *ledger.Context, was, next entity.Issue, p company.UpdateIssue) (entity.Issue,
	company.UpdateIssue, error) {
	return reviewed(c, was, next, p)
}

func (reviews) Request(c *ledger.Context, was, next entity.Issue, p company.UpdateIssue) (entity.Issue, error) {
	next, err := requested(was, next, p)
	if err != nil {
		return next, err
	}
	return bindReview(c, next, p.Review)
}

func (reviews) Wake(c *ledger.Context, was, next entity.Issue) error {
	return wakeForStage(c, was, next)
}

// texts implements the kernel's port for documents.
type texts struct{}

func (texts) Each(tx *ledger.Tx, company ledger.CompanyID, found func(issue, key, text string) bool) {
	for _, v := range tx.Prefix(documents.Key(company, "")) {
		d := core.DecodeRow[Document](v)
		if !found(d.Issue, d.Key, d.Text(tx)) {
			return
		}
	}
}

func (texts) Revision(tx *ledger.Tx, i entity.Issue, id string) (string, bool) {
	for _, d := range DocumentsOf(tx, i) {
		if r, ok := RevisionOfDocument(tx, d, id); ok {
			return r.Body, true
		}
	}
	return "", false
}
