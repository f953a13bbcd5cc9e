package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/selvage-mesh/selvage/adapter/inside"
)

// An issue is what the adapter reads of one.
type issue struct {
	ID, Identifier, Title, Description, Status, CompanyID, AssigneeAgentID string
}

func (i issue) over() bool { return i.Status == "done" || i.Status == "cancelled" }

// api calls the node's own API as the run's agent.
func (r *run) api(ctx context.Context, method, path, contentType string, body []byte, out any) error {
	c := inside.Caller{API: r.a.cfg.API, Token: r.token, Run: r.inv.Run.ID}
	req, err := c.Request(ctx, method, path, body)
	if err != nil {
		return err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	status, b, err := c.Do(req, maxAnswer)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("A2A adapter: %w", err)
	}
	if status/100 != 2 {
		var no struct{ Error string }
		_ = json.Unmarshal(b, &no) // an answer without a text is told by its status
		return fmt.Errorf("A2A adapter: %s %s: %d %s", method, path, status, no.Error)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

// take reads the run's issue and checks it out, unless it is over.
func (r *run) take(ctx context.Context, id string) (i issue, err error) {
	if err := r.api(ctx, http.MethodGet, "/api/issues/"+id, "", nil, &i); err != nil || i.over() {
		return i, err
	}
	body, _ := json.Marshal(map[string]any{"agentId": r.inv.Run.Agent, "expectedStatuses": []string{"todo", "backlog",
		"blocked", "in_review", "in_progress"}}) // never fails
	return i, r.api(ctx, http.MethodPost, "/api/issues/"+id+"/checkout", "application/json", body, nil)
}

// comments returns what others said on the issue after the agent's own last comment.
func (r *run) comments(ctx context.Context, i issue) (string, error) {
	var all []struct{ Body, AuthorAgentID, AuthorType, DeletedAt string }
	if err := r.api(ctx, http.MethodGet, "/api/issues/"+i.ID+"/comments?order=desc&limit=50", "", nil, &all); err != nil {
		return "", err
	}
	var said []string
	for _, c := range all {
		if c.AuthorAgentID == r.inv.Run.Agent {
			break
		}
		if c.AuthorType != "system" && c.DeletedAt == "" && strings.TrimSpace(c.Body) != "" {
			said = append([]string{c.Body}, said...)
		}
	}
	return strings.Join(said, "\n\n"), nil
}

// update moves the issue to a status, with a comment.
func (r *run) update(ctx context.Context, i issue, status, comment string) error {
	body, _ := json.Marshal(map[string]any{"status": status, "comment": comment}) // strings can be encoded
	return r.api(ctx, http.MethodPatch, "/api/issues/"+i.ID, "application/json", body, nil)
}

// attach stores the files of a task with its issue.
func (r *run) attach(ctx context.Context, i issue, t task) error {
	n := 0
	for _, a := range t.Artifacts {
		for _, p := range a.Parts {
			if len(p.Raw) == 0 {
				continue
			}
			if n++; n > maxFiles || len(p.Raw) > maxFile {
				r.inv.Log("system", "[selvage] a file of the task is left out: too large, or too many\n")
				continue
			}
			if err := r.attachOne(ctx, i, a, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) attachOne(ctx context.Context, i issue, a artifact, p part) error {
	name, kind := p.Filename, p.Type
	if name == "" {
		name = a.Name
	}
	if name == "" {
		name = "artifact"
	}
	if kind == "" {
		kind = "application/octet-stream"
	}
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	head := textproto.MIMEHeader{}
	head.Set("Content-Disposition", multipart.FileContentDisposition("file", clip(name, 200)))
	head.Set("Content-Type", kind)
	w, err := form.CreatePart(head)
	if err == nil {
		_, err = w.Write(p.Raw)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		return err
	}
	return r.api(ctx, http.MethodPost, "/api/companies/"+i.CompanyID+"/issues/"+i.ID+"/attachments",
		form.FormDataContentType(), b.Bytes(), nil)
}
