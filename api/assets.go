package api

import (
	"cmp"
	"io"
	"mime"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
)

// An attachmentRow is an attachment as it is shown.
type attachmentRow struct {
	ID           string        `json:"id"`
	Company      string        `json:"companyId"`
	Issue        string        `json:"issueId"`
	Comment      core.NullText `json:"issueCommentId"`
	Run          core.NullText `json:"originatingRunId"`
	Asset        string        `json:"assetId"`
	Provider     string        `json:"provider"`
	ObjectKey    string        `json:"objectKey"`
	ContentType  string        `json:"contentType"`
	Size         int64         `json:"byteSize"`
	SHA256       string        `json:"sha256"`
	Filename     core.NullText `json:"originalFilename"`
	CreatedAgent core.NullText `json:"createdByAgentId"`
	CreatedUser  core.NullText `json:"createdByUserId"`
	CreatedAt    core.Time     `json:"createdAt"`
	UpdatedAt    core.Time     `json:"updatedAt"`
	ContentPath  string        `json:"contentPath"`
	OpenPath     string        `json:"openPath"`
	DownloadPath string        `json:"downloadPath"`
	Copies       *copies       `json:"copies,omitempty"` // of an upload
}

// copies say on how many nodes a file was synced when its upload was answered,
// of how many that shall have it.
type copies struct {
	Synced int `json:"synced"`
	Wanted int `json:"wanted"`
}

func showAttachment(at file.Attached) attachmentRow {
	a, path := at.Asset, "/api/attachments/"+at.Attachment.ID+"/content"
	return attachmentRow{at.Attachment.ID, a.Company, at.Attachment.Issue, at.Attachment.Comment, at.Attachment.Run, a.ID, a.Provider, a.ObjectKey,
		a.ContentType, a.Size, a.SHA256, a.Filename, a.CreatedAgent, a.CreatedUser, a.CreatedAt, a.UpdatedAt, path, path, path + "?download=1", nil}
}

// An assetRow is an asset as it is shown: its ID has a name of its own.
type assetRow struct {
	ID           string        `json:"assetId"`
	Company      string        `json:"companyId"`
	Provider     string        `json:"provider"`
	ObjectKey    string        `json:"objectKey"`
	ContentType  string        `json:"contentType"`
	Size         int64         `json:"byteSize"`
	SHA256       string        `json:"sha256"`
	Filename     core.NullText `json:"originalFilename"`
	CreatedAgent core.NullText `json:"createdByAgentId"`
	CreatedUser  core.NullText `json:"createdByUserId"`
	CreatedAt    core.Time     `json:"createdAt"`
	UpdatedAt    core.Time     `json:"updatedAt"`
	ContentPath  string        `json:"contentPath"`
	Copies       copies        `json:"copies"`
}

func showAsset(a file.Asset, p blob.Placement) assetRow {
	return assetRow{a.ID, a.Company, a.Provider, a.ObjectKey, a.ContentType, a.Size, a.SHA256, a.Filename, a.CreatedAgent, a.CreatedUser,
		a.CreatedAt, a.UpdatedAt, "/api/assets/" + a.ID + "/content", copies{len(p.Holders), p.Wanted}}
}

func assetRoutes() []Route {
	const tag = "assets"
	download := []Param{{Name: "download", Type: "boolean", Doc: "save the file, do not show it"}}
	upload := func(path, summary string, who Who, out any, handle func(*Request) (Response, error)) Route {
		return Route{Method: "POST", Path: path, Tag: tag, Summary: summary, Who: who, Out: out, Status: 201,
			NoTool: true, MaxBody: company.MaxAttachmentBytes, Timeout: uploadTimeout, Handle: handle}
	}
	return []Route{
		upload("/api/companies/{companyId}/issues/{id}/attachments", "Attach a file to an issue: a form with the part file, and issueCommentId if it belongs to a comment", Any, attachmentRow{}, attach),
		{Method: "GET", Path: "/api/issues/{id}/attachments", Tag: tag, Summary: "List the attachments of an issue, the newest first", Out: []attachmentRow{}, Handle: listAttachments},
		{Method: "GET", Path: "/api/attachments/{id}/content", Tag: tag, Summary: "Read an attachment's bytes, also in ranges", Query: download, NoTool: true, Handle: attachmentContent},
		{Method: "DELETE", Path: "/api/attachments/{id}", Tag: tag, Summary: "Delete an attachment", Out: okay{}, Handle: detach},
		upload("/api/companies/{companyId}/assets/images", "Store an image: a form with the part file, and a namespace", Any, assetRow{}, func(rc *Request) (Response, error) {
			return storeImage(rc, "")
		}),
		upload("/api/companies/{companyId}/logo", "Store an image for a company's logo, which its branding then names: a form with the part file", Board, assetRow{}, func(rc *Request) (Response, error) {
			return storeImage(rc, file.LogoNamespace)
		}),
		{Method: "GET", Path: "/api/assets/{id}/content", Tag: tag, Summary: "Read an asset's bytes, also in ranges", Query: download, NoTool: true, Handle: assetContent},
	}
}

func attach(rc *Request) (Response, error) {
	// What the caller may do is looked at before the file is read; the command
	// looks again.
	var limit int64
	of, issue, err := locateIssue(rc)
	if err != nil {
		return Response{}, err
	}
	err = inCompany(rc, func(tx *ledger.Tx, row company.Company) error {
		limit = file.AttachmentLimit(row)
		if row.ID != of {
			return Unprocessable("Issue does not belong to company", nil)
		}
		return nil
	})
	if err != nil {
		return Response{}, err
	}
	if rc.IsAgent() && rc.Run == "" {
		return Response{}, Unauthorized("Agent run id required")
	}
	up, err := rc.receive(limit, tooManyBytes("Attachment", limit))
	if err != nil {
		return Response{}, err
	}
	comment := strings.ToLower(up.Fields["issueCommentId"])
	if comment != "" && !IsUUID(comment) {
		return Response{}, ValidationError(Issue{Origin: "string", Code: "invalid_format", Format: "guid", Path: []any{"issueCommentId"}, Message: "Invalid GUID"})
	}
	p, err := rc.spread(&up)
	if err != nil {
		return Response{}, err
	}
	at, err := Do[file.Attached](rc, file.KindAttachmentCreate, of, file.CreateAttachment{Issue: issue, ID: NewID(), File: up.File, Comment: comment})
	if err != nil {
		return Response{}, err
	}
	row := showAttachment(at)
	row.Copies = &copies{len(p.Holders), p.Wanted}
	return OK(row), nil
}

// A contextAttachment is what an agent is told of an attachment when it wakes.
type contextAttachment struct {
	ID          string        `json:"id"`
	Filename    core.NullText `json:"filename"`
	ContentType string        `json:"contentType"`
	Size        int64         `json:"byteSize"`
	ContentPath string        `json:"contentPath"`
	CreatedAt   core.Time     `json:"createdAt"`
}

func contextAttachments(tx *ledger.Tx, i company.Issue) []contextAttachment {
	out := []contextAttachment{}
	for _, at := range file.AttachmentsOf(tx, i) {
		out = append(out, contextAttachment{at.Attachment.ID, at.Asset.Filename, at.Asset.ContentType, at.Asset.Size,
			"/api/attachments/" + at.Attachment.ID + "/content", at.Asset.CreatedAt})
	}
	return out
}

func listAttachments(rc *Request) (r Response, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		i, err := findIssue(tx, rc)
		if err != nil {
			return err
		}
		rows := []attachmentRow{}
		for _, at := range file.AttachmentsOf(tx, i) {
			rows = append(rows, showAttachment(at))
		}
		r = OK(rows)
		return nil
	})
	return r, err
}

// findAttachment returns an attachment that the caller may see.
func findAttachment(rc *Request) (at file.Attached, ref company.BlobRef, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		var ok bool
		at, ok = file.AttachmentByID(tx, strings.ToLower(rc.Path("id")))
		if !ok || !seen(tx, rc, at.Asset.Company) {
			return NotFound("Attachment not found")
		}
		ref, _ = company.BlobOf(tx, at.Asset.Company, at.Asset.SHA256)
		return nil
	})
	return at, ref, err
}

func attachmentContent(rc *Request) (Response, error) {
	at, ref, err := findAttachment(rc)
	if err != nil {
		return Response{}, err
	}
	return content(rc, at.Asset, ref)
}

func assetContent(rc *Request) (Response, error) {
	var a file.Asset
	var ref company.BlobRef
	err := rc.View(func(tx *ledger.Tx) error {
		var ok bool
		a, ok = file.AssetByID(tx, strings.ToLower(rc.Path("id")))
		if !ok || !seen(tx, rc, a.Company) {
			return NotFound("Asset not found")
		}
		ref, _ = company.BlobOf(tx, a.Company, a.SHA256)
		return nil
	})
	if err != nil {
		return Response{}, err
	}
	return content(rc, a, ref)
}

func content(rc *Request, a file.Asset, ref company.BlobRef) (Response, error) {
	download, err := rc.QueryBool("download")
	if err != nil {
		return Response{}, err
	}
	return serveFile(rc, a, ref, download)
}

func detach(rc *Request) (Response, error) {
	at, _, err := findAttachment(rc)
	if err != nil {
		return Response{}, err
	}
	if _, err := rc.Submit(file.KindAttachmentDelete, at.Asset.Company, file.DeleteAttachment{ID: at.Attachment.ID}); err != nil {
		return Response{}, err
	}
	return OK(okay{true}), nil
}

// storeImage takes an image and stores it in a namespace; "" is the form's.
func storeImage(rc *Request, namespace string) (Response, error) {
	var of string
	err := inCompany(rc, func(_ *ledger.Tx, row company.Company) error { of = row.ID; return nil })
	if err != nil {
		return Response{}, err
	}
	if rc.IsAgent() && rc.Run == "" {
		return Response{}, Unauthorized("Agent run id required")
	}
	up, err := rc.receive(maxImage, tooManyBytes("Image", maxImage))
	if err != nil {
		return Response{}, err
	}
	if err := checkImage(rc, up); err != nil {
		return Response{}, err
	}
	p, err := rc.spread(&up)
	if err != nil {
		return Response{}, err
	}
	a, err := Do[file.Asset](rc, file.KindAssetCreate, of, file.CreateAsset{File: up.File, Namespace: cmp.Or(namespace, up.Fields["namespace"])})
	if err != nil {
		return Response{}, err
	}
	return OK(showAsset(a, p)), nil
}

// checkImage refuses what does not begin as its type says; it is never decoded
// here.
func checkImage(rc *Request, up upload) error {
	media, _, err := mime.ParseMediaType(up.File.ContentType)
	if err != nil || !slices.Contains(imageTypes, media) {
		return Unprocessable("Unsupported image type: "+up.File.ContentType, nil)
	}
	c, err := rc.server.cfg.Blobs.Read(rc.Context(), blob.Reference{Digest: up.digest, Size: up.File.Size})
	if err != nil {
		return err
	}
	defer c.Close()
	first, err := io.ReadAll(io.LimitReader(c, svgHead))
	if err != nil {
		return err
	}
	if !isImage(first, media) {
		return Unprocessable("The file is not an image of type "+media, nil)
	}
	return nil
}
