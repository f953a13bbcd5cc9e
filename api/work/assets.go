package work

import (
	"cmp"
	"io"
	"mime"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
)

// An attachmentRow is an attachment as answers show it.
type attachmentRow struct {
	ID           string           `json:"id"`
	Company      ledger.CompanyID `json:"companyId"`
	Issue        string           `json:"issueId"`
	Comment      core.NullText    `json:"issueCommentId"`
	Run          core.NullText    `json:"originatingRunId"`
	Asset        string           `json:"assetId"`
	Provider     string           `json:"provider"`
	ObjectKey    string           `json:"objectKey"`
	ContentType  string           `json:"contentType"`
	Size         int64            `json:"byteSize"`
	SHA256       string           `json:"sha256"`
	Filename     core.NullText    `json:"originalFilename"`
	CreatedAgent core.NullText    `json:"createdByAgentId"`
	CreatedUser  core.NullText    `json:"createdByUserId"`
	CreatedAt    core.Time        `json:"createdAt"`
	UpdatedAt    core.Time        `json:"updatedAt"`
	ContentPath  string           `json:"contentPath"`
	OpenPath     string           `json:"openPath"`
	DownloadPath string           `json:"downloadPath"`
	Copies       *copies          `json:"copies,omitempty"` // only in the answer to an upload
}

// copies says how many nodes had synced a file when its upload was answered, and how
// many are to have it.
type copies struct {
	Synced int `json:"synced"`
	Wanted int `json:"wanted"`
}

func showAttachment(at file.Attached) attachmentRow {
	a, path := at.Asset, "/api/attachments/"+at.Attachment.ID+"/content"
	return attachmentRow{at.Attachment.ID, a.Company, at.Attachment.Issue, at.Attachment.Comment, at.Attachment.Run, a.ID,
		a.Provider, a.ObjectKey,
		a.ContentType, a.Size, a.SHA256, a.Filename, a.CreatedAgent, a.CreatedUser, a.CreatedAt, a.UpdatedAt, path, path,
		path + "?download=1", nil}
}

// An assetRow is an asset as answers show it: its ID is called assetId.
type assetRow struct {
	ID           string           `json:"assetId"`
	Company      ledger.CompanyID `json:"companyId"`
	Provider     string           `json:"provider"`
	ObjectKey    string           `json:"objectKey"`
	ContentType  string           `json:"contentType"`
	Size         int64            `json:"byteSize"`
	SHA256       string           `json:"sha256"`
	Filename     core.NullText    `json:"originalFilename"`
	CreatedAgent core.NullText    `json:"createdByAgentId"`
	CreatedUser  core.NullText    `json:"createdByUserId"`
	CreatedAt    core.Time        `json:"createdAt"`
	UpdatedAt    core.Time        `json:"updatedAt"`
	ContentPath  string           `json:"contentPath"`
	Copies       copies           `json:"copies"`
}

func showAsset(a file.Asset, p blob.Placement) assetRow {
	return assetRow{a.ID, a.Company, a.Provider, a.ObjectKey, a.ContentType, a.Size, a.SHA256, a.Filename, a.CreatedAgent,
		a.CreatedUser,
		a.CreatedAt, a.UpdatedAt, "/api/assets/" + a.ID + "/content", copies{len(p.Holders), p.Wanted}}
}

func AssetRoutes() []api.Route {
	const tag = "assets"
	download := []api.Param{{Name: "download", Type: "boolean", Doc: "save the file, do not show it"}}
	upload := func(path, summary string, who api.Who, takes api.Taken, out any, handle func(*api.Request) (api.Response,
		error)) api.Route {
		return api.Route{Method: "POST", Path: path, Tag: tag, Summary: summary, Who: who, Takes: takes, Out: out,
			Status: 201,
			NoTool: true, MaxBody: company.MaxAttachmentBytes, Timeout: api.UploadTimeout, Handle: handle}
	}
	return []api.Route{
		upload("/api/companies/{companyId}/issues/{id}/attachments",
			"Attach a file to an issue: a form with the part file, and issueCommentId if it belongs to a comment", api.Any,
			api.Form(api.Param{Name: "issueCommentId", Doc: "The comment that the file belongs to."}), attachmentRow{}, attach),
		api.Show(api.Route{Path: "/api/issues/{id}/attachments", Tag: tag,
			Summary: "List the attachments of an issue, the newest first"}, api.FindIssue, attachmentsOf),
		{Method: "GET", Path: "/api/attachments/{id}/content", Tag: tag,
			Summary: "Read an attachment's bytes, also in ranges", Media: []string{"*/*"}, Also: []int{206, 304},
			Query: download, NoTool: true, Handle: attachmentContent},
		{Method: "DELETE", Path: "/api/attachments/{id}", Tag: tag, Summary: "Delete an attachment", Out: api.Okay{},
			Handle: detach},
		upload("/api/companies/{companyId}/assets/images", "Store an image: a form with the part file, and a namespace",
			api.Any, api.Form(api.Param{Name: "namespace", Doc: "What the image is for."}), assetRow{},
			func(rc *api.Request) (api.Response, error) {
				return storeImage(rc, "")
			}),
		upload("/api/companies/{companyId}/logo",
			"Store an image for a company's logo, which its branding then names: a form with the part file", api.Board,
			api.Form(), assetRow{}, func(rc *api.Request) (api.Response, error) {
				return storeImage(rc, file.LogoNamespace)
			}),
		{Method: "GET", Path: "/api/assets/{id}/content", Tag: tag, Summary: "Read an asset's bytes, also in ranges",
			Media: []string{"*/*"}, Also: []int{206, 304}, Query: download, NoTool: true, Handle: assetContent},
	}
}

func attach(rc *api.Request) (api.Response, error) {
	// The caller's permission is checked before the file is read, and again when the command
	// is applied.
	var limit int64
	of, issue, err := api.LocateIssue(rc)
	if err != nil {
		return api.Response{}, err
	}
	err = api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
		limit = file.AttachmentLimit(row)
		if row.ID != of {
			return api.Unprocessable("Issue does not belong to company", nil)
		}
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	if rc.IsAgent() && rc.Run == "" {
		return api.Response{}, api.Unauthorized("Agent run id required")
	}
	up, err := rc.Receive(limit, api.TooManyBytes("Attachment", limit))
	if err != nil {
		return api.Response{}, err
	}
	comment := strings.ToLower(up.Fields["issueCommentId"])
	if comment != "" && !api.IsUUID(comment) {
		return api.Response{}, api.ValidationError(api.Issue{Origin: "string", Code: "invalid_format", Format: "guid",
			Path: []any{"issueCommentId"}, Message: "Invalid GUID"})
	}
	p, err := rc.Spread(&up)
	if err != nil {
		return api.Response{}, err
	}
	at, err := api.Do[file.Attached](rc, file.KindAttachmentCreate, of, file.CreateAttachment{Issue: issue,
		ID: api.NewID(), File: up.File, Comment: comment})
	if err != nil {
		return api.Response{}, err
	}
	row := showAttachment(at)
	row.Copies = &copies{len(p.Holders), p.Wanted}
	return api.OK(row), nil
}

// A contextAttachment is an attachment in the context of an agent that wakes.
type contextAttachment struct {
	ID          string        `json:"id"`
	Filename    core.NullText `json:"filename"`
	ContentType string        `json:"contentType"`
	Size        int64         `json:"byteSize"`
	ContentPath string        `json:"contentPath"`
	CreatedAt   core.Time     `json:"createdAt"`
}

func contextAttachments(tx *ledger.Tx, i entity.Issue) []contextAttachment {
	out := []contextAttachment{}
	for _, at := range file.AttachmentsOf(tx, i) {
		out = append(out, contextAttachment{at.Attachment.ID, at.Asset.Filename, at.Asset.ContentType, at.Asset.Size,
			"/api/attachments/" + at.Attachment.ID + "/content", at.Asset.CreatedAt})
	}
	return out
}

func attachmentsOf(tx *ledger.Tx, i entity.Issue) []attachmentRow {
	out := []attachmentRow{}
	for _, at := range file.AttachmentsOf(tx, i) {
		out = append(out, showAttachment(at))
	}
	return out
}

// findAttachment returns an attachment that the caller may see.
func findAttachment(rc *api.Request) (at file.Attached, ref company.BlobRef, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		var ok bool
		at, ok = file.AttachmentByID(tx, strings.ToLower(rc.Path("id")))
		if !ok || !api.Seen(tx, rc, at.Asset.Company) {
			return api.NotFound("Attachment not found")
		}
		ref, _ = company.BlobOf(tx, at.Asset.Company, at.Asset.SHA256)
		return nil
	})
	return at, ref, err
}

func attachmentContent(rc *api.Request) (api.Response, error) {
	at, ref, err := findAttachment(rc)
	if err != nil {
		return api.Response{}, err
	}
	return content(rc, at.Asset, ref)
}

func assetContent(rc *api.Request) (api.Response, error) {
	var a file.Asset
	var ref company.BlobRef
	err := rc.View(func(tx *ledger.Tx) error {
		var ok bool
		a, ok = file.AssetByID(tx, strings.ToLower(rc.Path("id")))
		if !ok || !api.Seen(tx, rc, a.Company) {
			return api.NotFound("Asset not found")
		}
		ref, _ = company.BlobOf(tx, a.Company, a.SHA256)
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	return content(rc, a, ref)
}

func content(rc *api.Request, a file.Asset, ref company.BlobRef) (api.Response, error) {
	download, err := rc.QueryBool("download")
	if err != nil {
		return api.Response{}, err
	}
	return api.ServeFile(rc, a, ref, download)
}

func detach(rc *api.Request) (api.Response, error) {
	at, _, err := findAttachment(rc)
	if err != nil {
		return api.Response{}, err
	}
	if _, err := rc.Submit(file.KindAttachmentDelete, at.Asset.Company,
		file.DeleteAttachment{ID: at.Attachment.ID}); err != nil {
		return api.Response{}, err
	}
	return api.OK(api.Okay{OK: true}), nil
}

// storeImage receives an image and stores it in a namespace; "" uses the namespace of
// the form.
func storeImage(rc *api.Request, namespace string) (api.Response, error) {
	var of ledger.CompanyID
	err := api.InCompany(rc, func(_ *ledger.Tx, row entity.Company) error { of = row.ID; return nil })
	if err != nil {
		return api.Response{}, err
	}
	if rc.IsAgent() && rc.Run == "" {
		return api.Response{}, api.Unauthorized("Agent run id required")
	}
	up, err := rc.Receive(api.MaxImage, api.TooManyBytes("Image", api.MaxImage))
	if err != nil {
		return api.Response{}, err
	}
	if err := checkImage(rc, up); err != nil {
		return api.Response{}, err
	}
	p, err := rc.Spread(&up)
	if err != nil {
		return api.Response{}, err
	}
	a, err := api.Do[file.Asset](rc, file.KindAssetCreate, of, file.CreateAsset{File: up.File,
		Namespace: cmp.Or(namespace, up.Fields["namespace"])})
	if err != nil {
		return api.Response{}, err
	}
	return api.OK(showAsset(a, p)), nil
}

// checkImage refuses a file that does not begin with the signature of its type. It never
// decodes the image.
func checkImage(rc *api.Request, up api.Upload) error {
	media, _, err := mime.ParseMediaType(up.File.ContentType)
	if err != nil || !slices.Contains(api.ImageTypes, media) {
		return api.Unprocessable("Unsupported image type: "+up.File.ContentType, nil)
	}
	c, err := rc.Server.Cfg.Blobs.Read(rc.Context(), blob.Reference{Digest: up.Digest, Size: up.File.Size})
	if err != nil {
		return err
	}
	defer c.Close()
	first, err := io.ReadAll(io.LimitReader(c, api.SvgHead))
	if err != nil {
		return err
	}
	if !api.IsImage(first, media) {
		return api.Unprocessable("The file is not an image of type "+media, nil)
	}
	return nil
}
