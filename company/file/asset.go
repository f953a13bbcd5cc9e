// Package file is named files of companies: assets, attachments, and work products.
package file

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// An Asset is a file of a company: its name and type, and the hash of its bytes, which are on
// the nodes' disks. Provider is always "local_disk", the contract's word for files that no
// other service stores.
type Asset struct {
	ID           string           `cbor:"1,keyasint" json:"id"`
	Company      ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Provider     string           `cbor:"3,keyasint" json:"provider"`
	ObjectKey    string           `cbor:"4,keyasint" json:"objectKey"` // <company>/<place>/<yyyy>/<mm>/<dd>/<uuid>-<name>
	ContentType  string           `cbor:"5,keyasint" json:"contentType"`
	Size         int64            `cbor:"6,keyasint" json:"byteSize"`
	SHA256       string           `cbor:"7,keyasint" json:"sha256"` // hex
	Filename     core.NullText    `cbor:"8,keyasint,omitempty" json:"originalFilename"`
	CreatedAgent core.NullText    `cbor:"9,keyasint,omitempty" json:"createdByAgentId"`
	CreatedUser  core.NullText    `cbor:"10,keyasint,omitempty" json:"createdByUserId"`
	CreatedAt    core.Time        `cbor:"11,keyasint" json:"createdAt"`
	UpdatedAt    core.Time        `cbor:"12,keyasint" json:"updatedAt"`
}

// An Attachment links an asset to an issue, and optionally to one of the issue's comments.
type Attachment struct {
	ID        string           `cbor:"1,keyasint" json:"id"`
	Company   ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Issue     string           `cbor:"3,keyasint" json:"issueId"`
	Comment   core.NullText    `cbor:"4,keyasint,omitempty" json:"issueCommentId"`
	Run       core.NullText    `cbor:"5,keyasint,omitempty" json:"originatingRunId"`
	Asset     string           `cbor:"6,keyasint" json:"assetId"`
	CreatedAt core.Time        `cbor:"7,keyasint" json:"createdAt"`
}

// Keys of assets and attachments besides their rows:
//
//	asset-created/<ms, 16 hex digits>/<id>   oldest first
//	asset-object/<sha256 of the object key>  the asset's ID; object keys are unique
//	attachment-issue/<issue>/<id>
//	attachment-sweep/<issue>                 a deleted issue whose attachments have to be deleted
var (
	Assets = core.Owned(ledger.NewTable[string, Asset]("asset").
		Beside(ledger.Indexed(assetsCreated, func(a *Asset) string { return ledger.Order(uint64(a.CreatedAt)) })))
	assetsCreated = ledger.NewIndex[string, string]("asset-created")
	Attachments   = core.Owned(ledger.NewTable[string, Attachment]("attachment").
			Beside(ledger.Indexed(attachmentsIssue, func(a *Attachment) string { return a.Issue })))
	attachmentsIssue = ledger.NewIndex[string, string]("attachment-issue")
)

func ObjectKey(company ledger.CompanyID, key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return ledger.Key("c", string(company), "asset-object", hex.EncodeToString(sum[:]))
}

func sweepKey(company ledger.CompanyID, issue string) []byte {
	return ledger.Key("c", string(company), "attachment-sweep", issue)
}

const (
	// MaxAttachments bounds the attachments of one issue: lists return all of them.
	MaxAttachments = 500
	// MaxFilename and MaxContentType bound the name and the type of a file, in bytes.
	MaxFilename    = 255
	MaxContentType = 200
	maxNamespace   = 120
	// sweepChunk bounds the attachments that one attachment.sweep deletes; each has up to eight
	// keys.
	sweepChunk = 250
)

const _ = uint(ledger.MaxTouched - 8*sweepChunk)

// CreateAsset is the payload of asset.create.
type CreateAsset struct {
	File      company.NewFile `cbor:"1,keyasint"`
	Namespace string          `cbor:"2,keyasint,omitempty"` // "general" when empty
}

// CreateAttachment is the payload of attachment.create.
type CreateAttachment struct {
	Issue   string          `cbor:"1,keyasint"`
	ID      string          `cbor:"2,keyasint"`
	File    company.NewFile `cbor:"3,keyasint"`
	Comment string          `cbor:"4,keyasint,omitempty"`
}

// DeleteAttachment is the payload of attachment.delete.
type DeleteAttachment struct {
	ID string `cbor:"1,keyasint"`
}

// SweepAttachments is the payload of attachment.sweep, which deletes some of the remaining
// attachments of deleted issues.
type SweepAttachments struct{}

// An Attached is an attachment with its asset, as attachment.create returns it.
type Attached struct {
	Attachment Attachment `cbor:"1,keyasint"`
	Asset      Asset      `cbor:"2,keyasint"`
}

const (
	KindAssetCreate      = "asset.create"
	KindAttachmentCreate = "attachment.create"
	KindAttachmentDelete = "attachment.delete"
	KindAttachmentSweep  = "attachment.sweep"
)

var assetKinds = []company.Kind{
	{Name: KindAssetCreate, From: company.FromBoard | company.FromAgent, Traits: company.Importable | company.SeldomWork,
		Weight: company.Weights.Text, Do: ledger.Typed(createAsset)},
	{Name: KindAttachmentCreate, From: company.FromBoard | company.FromAgent,
		Traits: company.Importable | company.SeldomWork, Weight: company.Weights.Text, Do: ledger.Typed(createAttachment)},
	{Name: KindAttachmentDelete, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Erase, Do: ledger.Typed(deleteAttachment)},
	{Name: KindAttachmentSweep, From: company.FromNode, Traits: company.SeldomWork, Weight: company.Weights.ByNodes,
		Do: ledger.Typed(HandleSweepAttachments)},
}

// AssetByID returns an asset.
func AssetByID(tx *ledger.Tx, id string) (Asset, bool) {
	of := core.OwnerOf(tx, id)
	if of == "" {
		return Asset{}, false
	}
	return Assets.Get(tx, of, id)
}

// LooseAssetsOf yields the assets of a company that belong to no issue, with their
// namespaces, sorted by ID.
func LooseAssetsOf(tx *ledger.Tx, company ledger.CompanyID) iter.Seq2[Asset, string] {
	return func(yield func(Asset, string) bool) {
		for _, a := range Assets.All(tx, company) {
			space, loose := strings.CutPrefix(a.ObjectKey, string(company)+"/assets/")
			if !loose {
				continue
			}
			parts := strings.Split(space, "/") // the last parts are a date and a name
			if !yield(a, strings.Join(parts[:max(len(parts)-4, 0)], "/")) {
				return
			}
		}
	}
}

// AttachmentByID returns an attachment, unless its issue is deleted.
func AttachmentByID(tx *ledger.Tx, id string) (Attached, bool) {
	of := core.OwnerOf(tx, id)
	if of == "" {
		return Attached{}, false
	}
	at, ok := Attachments.Get(tx, of, id)
	if !ok || tx.Has(sweepKey(of, at.Issue)) {
		return Attached{}, false
	}
	a, ok := Assets.Get(tx, of, at.Asset)
	return Attached{at, a}, ok
}

// AttachmentsOf returns the attachments of an issue, the newest first.
func AttachmentsOf(tx *ledger.Tx, i entity.Issue) []Attached {
	out := []Attached{}
	for id := range attachmentsIssue.IDs(tx, i.Company, i.ID, false) {
		at, ok := Attachments.Get(tx, i.Company, id)
		if a, found := Assets.Get(tx, i.Company, at.Asset); ok && found {
			out = append(out, Attached{at, a})
		}
	}
	slices.SortStableFunc(out, func(a, b Attached) int {
		return cmp.Compare(b.Attachment.CreatedAt,
			a.Attachment.CreatedAt)
	})
	return out
}

// AttachmentsToSweep reports whether attachments of deleted issues are left.
func AttachmentsToSweep(tx *ledger.Tx, company ledger.CompanyID) bool {
	for range tx.Prefix(sweepKey(company, "")) {
		return true
	}
	return false
}

// plainText reports whether s has no control characters and is valid UTF-8.
func plainText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f })
}

// addAsset stores an asset of the command's company. place is the prefix of its object key,
// such as "assets/general".
func addAsset(c *ledger.Context, f company.NewFile, place string) (Asset, error) {
	if err := check(f, c.Tx); err != nil {
		return Asset{}, err
	}
	of, now := c.Cmd.Company, core.TimeOf(c.Now)
	a := Asset{ID: f.ID, Company: of, Provider: "local_disk", ContentType: f.ContentType, Size: f.Size, SHA256: f.SHA256,
		Filename: core.NullText(f.Name),
		ObjectKey: string(of) + "/" + place + "/" + c.Now.UTC().Format("2006/01/02") + "/" + f.Object + "-" +
			safeName(f.Name), CreatedAt: now, UpdatedAt: now}
	switch c.Cmd.Actor.Type {
	case "agent":
		a.CreatedAgent = core.NullText(c.Cmd.Actor.ID)
	case "user":
		a.CreatedUser = core.NullText(c.Cmd.Actor.ID)
	}
	key := ObjectKey(of, a.ObjectKey)
	if c.Has(key) {
		return a, ledger.Refuse(ledger.Conflict, nil, "An asset with this object key exists already")
	}
	c.Set(key, []byte(a.ID))
	Assets.Put(c.Tx, of, a.ID, a)
	company.RefBlob(c.Tx, of, a.SHA256, a.Size, f.Nodes)
	return a, nil
}

// safeName returns a file's name without characters that some file systems do not accept.
func safeName(name string) string {
	b := []byte(core.Snippet(name, 120))
	for i, c := range b {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_') {
			b[i] = '_'
		}
	}
	if len(b) == 0 {
		return "file"
	}
	return string(b)
}

func dropAsset(tx *ledger.Tx, a Asset) {
	tx.Delete(ObjectKey(a.Company, a.ObjectKey))
	Assets.Delete(tx, a.Company, a.ID)
	company.UnrefBlob(tx, a.Company, a.SHA256)
}

// mayUpload refuses an agent that has no live run of its own.
func mayUpload(c *ledger.Context) error {
	if core.IsAgent(c) && (c.Cmd.Run == "" || !entity.RunAlive(c.Tx, c.Cmd.Company, c.Cmd.Run, c.Cmd.Actor.ID)) {
		return entity.RefuseRunContext()
	}
	return nil
}

func createAsset(c *ledger.Context, p CreateAsset) (any, error) {
	if err := mayUpload(c); err != nil {
		return nil, err
	}
	space := p.Namespace
	if space == "" {
		space = "general"
	}
	if !isNamespace(space) {
		return nil, ledger.Refuse(ledger.Invalid, nil,
			"namespace has at most %d letters, digits, dashes and underscores, in parts separated by slashes", maxNamespace)
	}
	a, err := addAsset(c, p.File, "assets/"+space)
	if err != nil {
		return nil, err
	}
	c.Record(ledger.Change{Action: "asset.created", EntityType: "asset", EntityID: a.ID, Details: a.details().Close()})
	return a, nil
}

func (a Asset) details() core.Object {
	return core.Object{}.Str("originalFilename", string(a.Filename)).Str("contentType", a.ContentType).
		Int("byteSize", a.Size).Str("sha256", a.SHA256)
}

func isNamespace(s string) bool {
	if len(s) > maxNamespace {
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" {
			return false
		}
		for i := range len(part) {
			if c := part[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
				return false
			}
		}
	}
	return true
}

// LogoNamespace is the namespace of logos. A logo that is replaced is deleted.
const LogoNamespace = "companies"

// checkLogo refuses a logo that is not an asset of the company.
func checkLogo(row entity.Company, tx *ledger.Tx) error {
	if _, ok := Assets.Get(tx, row.ID, string(row.LogoAsset)); !ok && row.LogoAsset != "" {
		return ledger.Refuse(ledger.NotFound, nil, "Asset not found")
	}
	return nil
}

// dropLogo deletes the old logo of a company, if it was uploaded as a logo.
func dropLogo(tx *ledger.Tx, was, now entity.Company) {
	old, ok := Assets.Get(tx, was.ID, string(was.LogoAsset))
	if ok && now.LogoAsset != was.LogoAsset && strings.HasPrefix(old.ObjectKey,
		string(was.ID)+"/assets/"+LogoNamespace+"/") {
		dropAsset(tx, old)
	}
}

func createAttachment(c *ledger.Context, p CreateAttachment) (any, error) {
	i, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, company.ErrNoIssue()
	}
	if err := company.MayComment(c, i); err != nil {
		return nil, err
	}
	row, err := company.Present(c)
	if err != nil {
		return nil, err
	}
	if limit := AttachmentLimit(row); p.File.Size > limit {
		return nil, ledger.Refuse(ledger.TooLarge, nil, "Attachment exceeds %d bytes", limit)
	}
	if err := core.CheckNewID(c.Tx, p.ID); err != nil {
		return nil, err
	}
	if p.Comment != "" {
		if _, ok := entity.CommentOf(c.Tx, i.Company, i.ID, p.Comment); !ok {
			return nil, ledger.Refuse(ledger.NotFound, nil, "Issue comment not found")
		}
	}
	n := 0
	for range attachmentsIssue.IDs(c.Tx, i.Company, i.ID, false) {
		if n++; n >= MaxAttachments {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "An issue can have at most %d attachments", MaxAttachments)
		}
	}
	a, err := addAsset(c, p.File, "issues/"+i.ID)
	if err != nil {
		return nil, err
	}
	at := Attachment{ID: p.ID, Company: i.Company, Issue: i.ID, Comment: core.NullText(p.Comment),
		Run: core.NullText(c.Cmd.Run), Asset: a.ID, CreatedAt: a.CreatedAt}
	if p.ID == a.ID {
		return nil, ledger.Refuse(ledger.Invalid, nil, "an attachment and its asset have the same ID")
	}
	Attachments.Put(c.Tx, at.Company, at.ID, at)
	c.Record(ledger.Change{Action: "issue.attachment_added", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("attachmentId", at.ID).Str("originalFilename", string(a.Filename)).Str("contentType",
			a.ContentType).Int("byteSize", a.Size).Close()})
	return Attached{at, a}, nil
}

// attachTo links attachments of an issue to a comment. Each must not be linked to another one.
func attachTo(tx *ledger.Tx, cm entity.Comment, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	if len(ids) > MaxAttachments {
		return ledger.Refuse(ledger.Unprocessable, nil, "An issue can have at most %d attachments", MaxAttachments)
	}
	for _, id := range ids {
		at, ok := Attachments.Get(tx, cm.Company, id)
		switch {
		case !ok || at.Issue != cm.Issue:
			return ledger.Refuse(ledger.NotFound, nil, "Attachment not found")
		case at.Comment != "" && string(at.Comment) != cm.ID:
			return ledger.Refuse(ledger.Conflict, core.Object{}.Str("attachmentId", id).Str("issueCommentId",
				string(at.Comment)).Close(), "The attachment belongs to another comment")
		}
		at.Comment = core.NullText(cm.ID)
		Attachments.Put(tx, cm.Company, id, at)
	}
	return nil
}

// AttachmentLimit returns the largest size of an attachment in the company, in bytes.
func AttachmentLimit(row entity.Company) int64 {
	if row.AttachmentMaxBytes <= 0 {
		return company.DefaultAttachmentBytes
	}
	return min(row.AttachmentMaxBytes, company.MaxAttachmentBytes)
}

// deleteAttachment deletes an attachment with its asset. The board may, and the agent that
// added it.
func deleteAttachment(c *ledger.Context, p DeleteAttachment) (any, error) {
	at, ok := Attachments.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok {
		return nil, errNoAttachment()
	}
	i, ok := entity.IssueTable.Get(c.Tx, at.Company, at.Issue)
	if !ok {
		return nil, errNoAttachment()
	}
	a, _ := Assets.Get(c.Tx, at.Company, at.Asset)
	if err := company.MayComment(c, i); err != nil {
		return nil, err
	}
	if core.IsAgent(c) && string(a.CreatedAgent) != c.Cmd.Actor.ID {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "Only the board or the agent that added an attachment can delete it")
	}
	dropAttachment(c.Tx, at)
	c.Record(ledger.Change{Action: "issue.attachment_removed", EntityType: "issue", EntityID: at.Issue,
		Details: core.Object{}.Str("attachmentId", at.ID).Close()})
	return nil, nil
}

func errNoAttachment() error { return ledger.Refuse(ledger.NotFound, nil, "Attachment not found") }

func dropAttachment(tx *ledger.Tx, at Attachment) {
	if a, ok := Assets.Get(tx, at.Company, at.Asset); ok {
		dropAsset(tx, a)
	}
	Attachments.Delete(tx, at.Company, at.ID)
}

// dropAttachments hides the attachments of an issue that is deleted. There may be many, so
// attachment.sweep deletes them later.
func dropAttachments(tx *ledger.Tx, i entity.Issue) {
	for range attachmentsIssue.IDs(tx, i.Company, i.ID, false) {
		tx.Set(sweepKey(i.Company, i.ID), nil)
		return
	}
}

func HandleSweepAttachments(c *ledger.Context, _ SweepAttachments) (any, error) {
	company, left := c.Cmd.Company, sweepChunk
	prefix := sweepKey(company, "")
	var over []string
	for k := range c.Prefix(prefix) {
		issue := string(k[len(prefix):])
		for id := range attachmentsIssue.IDs(c.Tx, company, issue, false) {
			if left--; left < 0 {
				break
			}
			at, _ := Attachments.Get(c.Tx, company, id)
			dropAttachment(c.Tx, at)
		}
		if left < 0 {
			break
		}
		if over = append(over, issue); len(over) == sweepChunk {
			break
		}
	}
	for _, issue := range over {
		c.Delete(sweepKey(company, issue))
	}
	if left < sweepChunk || len(over) > 0 {
		c.Record(ledger.Change{Action: "issue.attachments_swept", EntityType: "company", EntityID: string(company),
			Details: core.Object{}.Int("attachments", int64(sweepChunk-max(left, 0))).Close()})
	}
	return nil, nil
}

// Rules are the commands and hooks that this package adds to the kernel.
var Rules = company.Rules{
	Kinds: slices.Concat(company.PartKinds, productKinds, assetKinds),
	Forget: map[string]func(tx *ledger.Tx, id string, row []byte){
		"asset": func(tx *ledger.Tx, _ string, row []byte) {
			a := core.DecodeRow[Asset](row)
			tx.Delete(entity.BlobKey(a.SHA256, a.Company))
		},
	},
	Left: func(tx *ledger.Tx, company ledger.CompanyID, issue string) iter.Seq2[[]byte, func(core.Time)] {
		return func(yield func([]byte, func(core.Time)) bool) {
			for id := range productsIssue.IDs(tx, company, issue, false) {
				w, _ := Products.Get(tx, company, id)
				if !yield(Products.Key(company, id), func(core.Time) { dropProduct(tx, w) }) {
					return
				}
			}
		}
	},
	CheckCompany: func(tx *ledger.Tx, row entity.Company, p entity.SaveCompany) error {
		if p.LogoAsset == nil {
			return nil
		}
		return checkLogo(row, tx)
	},
	CompanyStored: func(c *ledger.Context, was, row entity.Company, _ entity.SaveCompany) error {
		dropLogo(c.Tx, was, row)
		return nil
	},
	IssueDeleted: func(c *ledger.Context, i entity.Issue) { dropAttachments(c.Tx, i) },
	Files:        storage{},
	CommentAdded: func(c *ledger.Context, _ entity.Issue, cm entity.Comment, attachments []string) error {
		return attachTo(c.Tx, cm, attachments)
	},
}

// storage implements the hook by which the kernel asks about files.
type storage struct{}

func (storage) Add(c *ledger.Context, f company.NewFile, place string) (string, error) {
	a, err := addAsset(c, f, place)
	return a.ID, err
}

// check refuses a file that no upload could have made.
func check(f company.NewFile, tx *ledger.Tx) error {
	switch {
	case !core.IsID(f.ID) || !core.IsID(f.Object):
		return ledger.Refuse(ledger.Invalid, nil, "malformed ID of a file")
	case len(f.Name) > MaxFilename || !plainText(f.Name) || strings.ContainsAny(f.Name, `/\`):
		return ledger.Refuse(ledger.Invalid, nil, "A file's name has at most %d bytes, and no slashes", MaxFilename)
	case f.ContentType == "" || len(f.ContentType) > MaxContentType || !plainText(f.ContentType):
		return ledger.Refuse(ledger.Invalid, nil, "A file's type has at most %d bytes", MaxContentType)
	}
	if err := company.CheckBlob(f.SHA256, f.Size, f.Nodes); err != nil {
		return err
	}
	return core.CheckNewID(tx, f.ID)
}
