package a2a

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
)

// origin marks the issues that came as tasks; their origin ID is the context.
const origin = "a2a"

// contextOf returns the context of a task: that of its first message, or the task itself.
func contextOf(i entity.Issue) string {
	if i.OriginKind == origin {
		return cmp.Or(i.OriginID, i.ID)
	}
	return i.ID
}

// An attached is a file of an artifact, whose bytes are read after the state.
type attached struct {
	ref  blob.Reference
	size int64
}

// A view is what is read of a task: how many of its messages (nil: all), whether its artifacts, and the address that
// links begin with.
type view struct {
	history   *int
	artifacts bool
	base      string
}

// taskOf reads the task of an issue.
func taskOf(tx *ledger.Tx, i entity.Issue, v view) Task {
	t := Task{ID: i.ID, Context: contextOf(i), Metadata: map[string]any{
		"identifier": i.Identifier, "title": i.Title, "issueStatus": string(i.Status), "companyId": string(i.Company),
		"agentId": i.Assignee}}
	var last entity.Run
	for r := range entity.RunsOfIssue(tx, i.Company, i.ID) {
		last = r
		break
	}
	comments, _ := entity.CommentsOf(tx, i,
		entity.CommentQuery{Limit: maxHistory}) // the newest first; without After there is no error
	t.Status = statusOf(tx, i, last, comments)
	if v.artifacts {
		t.Artifacts = artifactsOf(tx, i, last, t.Status.State, v.base)
	}
	if v.history == nil || *v.history > 0 {
		t.History = historyOf(i, comments)
		if v.history != nil && len(t.History) > *v.history {
			t.History = t.History[len(t.History)-*v.history:]
		}
	}
	return t
}

// statusOf derives the state of a task from its issue and the issue's runs:
//
//	done, cancelled                         completed, canceled, once no run is at work on it any more
//	a run at work or queued                 working; submitted before the first one started
//	in review, or a question is open        input required
//	blocked by its agent                    input required; by other issues: working
//	the last run failed and none follows    failed
//	otherwise                               submitted before its first run, else working
func statusOf(tx *ledger.Tx, i entity.Issue, last entity.Run, comments []entity.Comment) Status {
	s := Status{State: Working, At: max(i.UpdatedAt, last.FinishedAt, last.StartedAt).String()}
	ran := last.ID != ""
	failed := ran && !last.Status.Live() && last.Status != entity.RunSucceeded && last.Status != entity.RunCancelled
	text := ""
	switch {
	case last.Status == entity.RunRunning && i.Status != entity.IssueCancelled:
	case i.Status == entity.IssueDone:
		s.State = Completed
	case i.Status == entity.IssueCancelled:
		s.State = Canceled
	case ran && last.Status.Live():
		if last.StartedAt == 0 && i.StartedAt == 0 {
			s.State = Submitted
		}
	case i.Status == entity.IssueInReview, company.AwaitsBoard(tx, i):
		s.State, text = InputRequired, asked(tx, i, comments)
	case failed:
		s.State, text = Failed, cmp.Or(string(last.Error), "The run "+string(last.Status))
	case i.Status == entity.IssueBlocked && len(entity.Unresolved(tx, i)) == 0:
		s.State, text = InputRequired, asked(tx, i, comments)
	case !ran:
		s.State = Submitted
		_, text = company.StoppedBy(tx, i.Company, i.Assignee, i.ID)
	}
	if text != "" {
		s.Message = &Message{ID: core.DerivedID("a2a-status", i.ID, string(s.State), text), Context: contextOf(i), Task: i.ID,
			Role: roleAgent, Parts: []Part{{Text: &text}}}
	}
	return s
}

// asked returns what the agent wants to know: an open question, or the last that it said.
func asked(tx *ledger.Tx, i entity.Issue, comments []entity.Comment) string {
	for _, q := range paper.InteractionsOf(tx, i) {
		if q.Status == "pending" {
			if text := strings.TrimSpace(string(q.Title) + "\n\n" + string(q.Summary)); text != "" {
				return text
			}
		}
	}
	for _, c := range comments {
		if c.AuthorType != "user" && c.DeletedAt == 0 {
			return c.Body
		}
	}
	return ""
}

// historyOf returns the messages of a task, the oldest first: the description, then the comments.
func historyOf(i entity.Issue, comments []entity.Comment) []Message {
	first := cmp.Or(i.Description, i.Title)
	out := []Message{{ID: i.ID, Context: contextOf(i), Task: i.ID, Role: roleUser, Parts: []Part{{Text: &first}}}}
	for _, c := range slices.Backward(comments) {
		if c.DeletedAt != 0 || c.AuthorType == "system" {
			continue
		}
		role, body := roleUser, c.Body
		if c.AuthorAgent != "" {
			role = roleAgent
		}
		out = append(out, Message{ID: c.ID, Context: contextOf(i), Task: i.ID, Role: role, Parts: []Part{{Text: &body}}})
	}
	return out
}

// artifactsOf returns what the work on an issue left: the agent's answer once it rests, its documents and attachments.
func artifactsOf(tx *ledger.Tx, i entity.Issue, last entity.Run, s State, base string) (out []Artifact) {
	if last.ID != "" && s.Rests() {
		if text := api.WordsOf(tx, i, last); text != nil && *text != "" {
			out = append(out, Artifact{ID: "result", Name: "Result", Description: "The last that the agent said about it",
				Parts: []Part{{Text: text, MediaType: "text/markdown"}}})
		}
	}
	for _, d := range paper.DocumentsOf(tx, i) {
		if len(out) == maxArtifacts {
			return out
		}
		text := d.Text(tx)
		out = append(out, Artifact{ID: "document-" + d.Key, Name: cmp.Or(string(d.Title), d.Key),
			Parts: []Part{{Text: &text, MediaType: "text/markdown", Filename: d.Key + ".md"}}})
	}
	for _, at := range file.AttachmentsOf(tx, i) {
		if len(out) == maxArtifacts {
			break
		}
		if at.Asset.CreatedAgent == "" {
			continue // the task's own
		}
		p := Part{URL: base + "/api/attachments/" + at.Attachment.ID + "/content", MediaType: at.Asset.ContentType,
			Filename: string(at.Asset.Filename)}
		if ref, ok := company.BlobOf(tx, i.Company, at.Asset.SHA256); ok {
			if d, err := blob.ParseDigest(at.Asset.SHA256); err == nil {
				p.file = &attached{api.Reference(d, at.Asset, ref), at.Asset.Size}
			}
		}
		out = append(out, Artifact{ID: "attachment-" + at.Attachment.ID, Name: cmp.Or(string(at.Asset.Filename),
			at.Attachment.ID), Parts: []Part{p}})
	}
	return out
}

// inline replaces links to small files by their bytes. A file that can not be read now stays a link.
func inline(ctx context.Context, blobs api.Blobs, t *Task) {
	room := int64(maxInlineAll)
	if blobs == nil {
		return
	}
	for n := range t.Artifacts {
		for m := range t.Artifacts[n].Parts {
			p := &t.Artifacts[n].Parts[m]
			if p.file == nil || p.file.size > min(maxInline, room) {
				continue
			}
			c, err := blobs.Read(ctx, p.file.ref)
			if err != nil {
				continue
			}
			b, err := io.ReadAll(io.LimitReader(c, p.file.size))
			if c.Close() == nil && err == nil && int64(len(b)) == p.file.size {
				p.Raw, p.URL = b, ""
				room -= p.file.size
			}
		}
	}
}

// issueOf finds the issue of a task that the caller may see.
func issueOf(tx *ledger.Tx, rc *api.Request, id string) (entity.Issue, error) {
	if api.IsUUID(id) {
		id = strings.ToLower(id)
	}
	i, ok := entity.FindIssue(tx, id)
	if !ok || !api.Seen(tx, rc, i.Company) {
		return i, noTask.as("Task not found")
	}
	return i, nil
}

// show reads a task for the caller.
func show(rc *api.Request, id string, history *int) (t Task, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		i, err := issueOf(tx, rc, id)
		if err == nil {
			t = taskOf(tx, i, view{history, true, rc.Base()})
		}
		return err
	})
	if err == nil {
		inline(rc.Context(), rc.Server.Cfg.Blobs, &t)
	}
	return t, err
}
