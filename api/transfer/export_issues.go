package transfer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
)

func (e *exporter) allIssues() error {
	if !e.include.Issues && len(e.body.Issues) == 0 && len(e.body.ProjectIssues) == 0 {
		return nil
	}
	var all []entity.Issue
	for offset := 0; ; offset += entity.MaxIssueLimit {
		page := inbox.ListIssues(e.tx, e.of.ID, inbox.IssueQuery{Sort: inbox.SortCreated, Limit: entity.MaxIssueLimit,
			Offset: offset})
		all = append(all, page...)
		if len(page) < entity.MaxIssueLimit || len(all) > portable.MaxFiles {
			break
		}
	}
	if len(all) > portable.MaxFiles {
		return ledger.Refuse(ledger.Unprocessable, nil,
			"The company has more than %d issues; name projects or issues to export", portable.MaxFiles)
	}
	slices.SortFunc(all, func(a, b entity.Issue) int { return cmp.Compare(a.Number, b.Number) })
	all = slices.DeleteFunc(all, func(i entity.Issue) bool { return !e.asksFor(i) })
	for _, i := range all {
		e.issues[i.ID] = strings.ToLower(i.Identifier)
	}
	for _, i := range all {
		out, err := e.issue(i)
		if err != nil {
			return err
		}
		e.m.Issues = append(e.m.Issues, out)
	}
	for _, id := range slices.Sorted(maps.Keys(e.lost)) {
		some, more := e.lost[id], ""
		if len(some) > 4 {
			some, more = some[:4], fmt.Sprintf(" and %d more", len(some)-4)
		}
		e.warn("Tasks %s%s reference workspace %s, but that workspace could not be exported portably.",
			strings.Join(some, ", "), more, id)
	}
	return nil
}

func (e *exporter) asksFor(i entity.Issue) bool {
	switch {
	case len(e.body.Issues) == 0 && len(e.body.ProjectIssues) == 0:
		return len(e.body.Projects) == 0 || i.Project == "" || e.projects[i.Project] != ""
	case slices.Contains(e.body.Issues, i.ID) || slices.ContainsFunc(e.body.Issues,
		func(s string) bool { return strings.EqualFold(s, i.Identifier) }):
		return true
	}
	return i.Project != "" && (slices.Contains(e.body.ProjectIssues, i.Project) || slices.Contains(e.body.ProjectIssues,
		e.projects[i.Project]))
}

func (e *exporter) issue(i entity.Issue) (portable.Issue, error) {
	s := e.issues[i.ID]
	status, priority := string(i.Status), string(i.Priority)
	times := func(t core.Time) *string {
		if t == 0 {
			return nil
		}
		s := t.String()
		return &s
	}
	out := portable.Issue{Slug: s, Identifier: &i.Identifier, Title: i.Title, Path: "tasks/" + s + "/TASK.md",
		Project:      known(e.projects, i.Project),
		WorkspaceKey: known(e.spaces, i.Workspace), Assignee: known(e.agents, i.Assignee),
		Description: api.Optional(i.Description), Status: &status, Priority: &priority,
		LabelIDs: []string{}, Labels: []string{}, BillingCode: api.Optional(i.BillingCode),
		WorkspaceSettings: e.placing("The workspace settings of task "+s, i.WorkspaceSettings),
		AdapterOverrides:  e.placing("The adapter settings of task "+s, i.AdapterOverrides), Comments: []portable.Comment{},
		BlockedBy: []string{}, Documents: []portable.Document{},
		WorkProducts: []portable.WorkProduct{}, Attachments: []portable.Attachment{}, Parent: known(e.issues, i.Parent),
		Goal:      known(e.goals, i.Goal),
		CreatedAt: times(i.CreatedAt), UpdatedAt: times(i.UpdatedAt), StartedAt: times(i.StartedAt),
		CompletedAt: times(i.CompletedAt), CancelledAt: times(i.CancelledAt)}
	out.WorkMode, out.ReviewPolicy, out.WorkspacePref = api.Optional(i.WorkMode), api.Optional(i.ReviewPolicy),
		api.Optional(i.WorkspacePref)
	e.watched(i, &out)
	if i.Workspace != "" && out.WorkspaceKey == nil {
		e.lost[i.Workspace] = append(e.lost[i.Workspace], s)
	}
	out.Labels = e.labelNames(i.Labels)
	for _, id := range i.BlockedBy {
		if b := known(e.issues, id); b != nil {
			out.BlockedBy = append(out.BlockedBy, *b)
		}
	}
	slices.Sort(out.BlockedBy)
	at := map[string]int{}
	for after := ""; ; {
		page, err := entity.CommentsOf(e.tx, i, entity.CommentQuery{Ascending: true, After: after,
			Limit: entity.MaxCommentLimit})
		if err != nil {
			return out, err
		}
		for _, cm := range page {
			if after = cm.ID; cm.DeletedAt != 0 {
				continue
			}
			at[cm.ID] = len(out.Comments)
			out.Comments = append(out.Comments, portable.Comment{Body: cm.Body, AuthorType: cm.AuthorType,
				AuthorAgent:  known(e.agents, string(cm.AuthorAgent)),
				Presentation: objectOf(cm.Presentation), Metadata: objectOf(cm.Metadata), CreatedAt: times(cm.CreatedAt)})
		}
		if len(page) < entity.MaxCommentLimit {
			break
		}
	}
	for _, d := range paper.DocumentsOf(e.tx, i) {
		text := d.Text(e.tx)
		out.Documents = append(out.Documents, portable.Document{Key: d.Key, Title: string(d.Title), Format: d.Format,
			Path: "tasks/" + s + "/documents/" + d.Key + ".md", Body: text,
			Remarks: e.remarks(d, text, "Document "+d.Key+" of task "+s)})
	}
	slices.SortFunc(out.Documents, func(a, b portable.Document) int { return cmp.Compare(a.Key, b.Key) })
	for _, w := range file.ProductsOf(e.tx, i) {
		out.WorkProducts = append(out.WorkProducts, portable.WorkProduct{Type: w.Type, Provider: w.Provider,
			ExternalID: api.Optional(w.External), Title: w.Title,
			URL: api.Optional(w.URL), Status: w.Status, ReviewState: w.ReviewState, Primary: w.Primary, HealthStatus: w.Health,
			Summary: api.Optional(w.Summary), Metadata: objectOf(w.Metadata)})
	}
	for _, a := range file.AttachmentsOf(e.tx, i) {
		file := portable.Attachment{ID: a.Attachment.ID, SHA256: a.Asset.SHA256, ContentType: a.Asset.ContentType,
			Filename: api.Optional(a.Asset.Filename), ByteSize: a.Asset.Size}
		if n, ok := at[string(a.Attachment.Comment)]; ok {
			file.CommentIndex = &n
		}
		out.Attachments = append(out.Attachments, file)
		e.carry(a.Asset)
	}
	slices.SortStableFunc(out.Attachments, func(a, b portable.Attachment) int { return cmp.Compare(a.SHA256, b.SHA256) })
	return out, nil
}

// blobs reads the content of the exported attachments. Content that is too large or not
// available is left out with a warning.
func (e *exporter) blobs(rc *api.Request) map[string][]byte {
	out, total := map[string][]byte{}, int64(0)
	drop := func(sum, why string) {
		e.m.Blobs = slices.DeleteFunc(e.m.Blobs, func(b portable.Blob) bool { return b.SHA256 == sum })
		for n := range e.m.Issues {
			i := &e.m.Issues[n]
			i.Attachments = slices.DeleteFunc(i.Attachments, func(a portable.Attachment) bool {
				if a.SHA256 == sum {
					e.warn("Attachment %s of task %s was left out: %s.", cmp.Or(Deref(a.Filename), sum[:12]), i.Slug, why)
				}
				return a.SHA256 == sum
			})
		}
		e.m.EmbeddedAssets = slices.DeleteFunc(e.m.EmbeddedAssets, func(a portable.Asset) bool {
			if a.SHA256 == sum {
				e.warn("Asset %s was left out: %s.", cmp.Or(Deref(a.Filename), a.ID), why)
			}
			return a.SHA256 == sum
		})
	}
	for _, a := range e.assets {
		if total+a.Size > api.MaxPackageBlobs {
			drop(a.SHA256, "the package would be too large")
			continue
		}
		b, err := blobBytes(rc, a)
		if err != nil {
			drop(a.SHA256, "its content can not be read now")
			continue
		}
		total += a.Size
		out[a.SHA256] = b
	}
	return out
}

func Deref(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// blobBytes reads a whole asset. The caller has checked its size.
func blobBytes(rc *api.Request, a file.Asset) (b []byte, err error) {
	if rc.Server.Cfg.Blobs == nil {
		return nil, api.Unavailable("This node keeps no files")
	}
	d, err := blob.ParseDigest(a.SHA256)
	if err != nil {
		return nil, err
	}
	var ref company.BlobRef
	err = rc.View(func(tx *ledger.Tx) error {
		ref, _ = company.BlobOf(tx, a.Company, a.SHA256)
		return nil
	})
	if err != nil {
		return nil, err
	}
	c, err := rc.Server.Cfg.Blobs.Read(rc.Context(), api.Reference(d, a, ref))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return io.ReadAll(io.LimitReader(c, a.Size))
}
