package a2a

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/ledger"
)

// maxTitle bounds the title that is made of a message, in runes.
const maxTitle = 200

// said is what a message says: its text, and the files that come with it.
type said struct {
	text  string
	files []Part
}

// read reads the parts of a message.
func (m *Message) read() (out said, err error) {
	switch {
	case m == nil:
		return out, badParams.as("message: required")
	case len(m.Parts) == 0 || len(m.Parts) > maxParts:
		return out, badParams.as("message.parts: 1 to %d are needed, has %d", maxParts, len(m.Parts))
	case m.ID == "" || len(m.ID) > maxContext:
		return out, badParams.as("message.messageId: required, at most %d bytes", maxContext)
	case len(m.Context) > maxContext:
		return out, badParams.as("message.contextId: at most %d bytes", maxContext)
	case m.Role == roleAgent || m.Role == "agent":
		return out, badParams.as("message.role: a client sends messages of %s", roleUser)
	}
	var text strings.Builder
	add := func(s string) {
		if text.Len() > 0 {
			text.WriteString("\n\n")
		}
		text.WriteString(s)
	}
	for n, p := range m.Parts {
		if f := p.File; f != nil { // version 0.3
			p.Raw, p.URL, p.Filename, p.MediaType = f.Bytes, f.URI, f.Name, f.Type
		}
		switch {
		case p.Text != nil:
			add(*p.Text)
		case len(p.Data) > 0:
			var b bytes.Buffer
			if json.Indent(&b, p.Data, "", "  ") != nil {
				return out, badParams.as("message.parts[%d].data: not JSON", n)
			}
			add("```json\n" + b.String() + "\n```")
		case p.URL != "":
			add(strings.TrimSpace(p.Filename + " " + p.URL))
		case p.Raw != nil:
			if out.files = append(out.files, p); len(out.files) > maxFiles {
				return out, badParams.as("message.parts: at most %d files", maxFiles)
			}
		default:
			return out, badType.as("message.parts[%d]: has neither text nor data, url or raw", n)
		}
	}
	out.text = strings.TrimSpace(text.String())
	switch {
	case out.text == "" && len(out.files) == 0:
		return out, badParams.as("message.parts: say nothing")
	case out.text == "":
		out.text = "See the attached files."
	case len(out.text) > maxText || strings.ContainsRune(out.text, 0):
		return out, badParams.as("message.parts: their text has %d bytes, at most %d are allowed, without NUL",
			len(out.text), maxText)
	}
	return out, nil
}

// call calls a route within the process and decodes its answer.
func call(rc *api.Request, method, path string, body, out any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	in := rc.Inside(method, path, "application/json", b)
	if in.Status/100 != 2 {
		var no struct {
			Error string `json:"error"`
		}
		_ = json.Unmarshal(in.Body, &no) // an answer without a text is told by its status
		return refused(in, no)
	}
	if err := json.Unmarshal(in.Body, out); err != nil {
		return fmt.Errorf("a2a: answer of %s: %w", method, err)
	}
	return nil
}

// send takes a message: a new task, or a word about one that goes on. It returns the task's ID.
func send(rc *api.Request, ref string, p *sendParams) (id string, err error) {
	words, err := p.Message.read()
	if err != nil {
		return "", err
	}
	var i entity.Issue
	if p.Message.Task != "" {
		i, err = goOn(rc, p.Message, words)
	} else {
		i, err = begin(rc, ref, p, words)
	}
	if err != nil {
		return "", err
	}
	hook := p.Config.Hook
	if hook == nil {
		hook = p.Config.OldHook
	}
	if hook != nil {
		if _, err := setHook(rc, i, *hook); err != nil {
			return "", err
		}
	}
	return i.ID, nil
}

// begin makes the issue of a new task. A message that is sent again finds the issue that it made.
func begin(rc *api.Request, ref string, p *sendParams, words said) (i entity.Issue, err error) {
	if ref == "" {
		ref = p.Tenant
	}
	if ref == "" {
		ref = p.Metadata.Agent
	}
	var a entity.Agent
	if err := rc.View(func(tx *ledger.Tx) (err error) { a, err = find(tx, rc, ref); return err }); err != nil {
		if no, ok := err.(*ledger.Refusal); ok && no.Code == ledger.NotFound {
			err = badParams.as("%s", no.Message)
		}
		return i, err
	}
	title, _, _ := strings.Cut(words.text, "\n")
	title = strings.TrimSpace(strings.TrimLeft(title, "# "))
	if r := []rune(title); len(r) > maxTitle {
		title = string(r[:maxTitle-1]) + "…"
	}
	if title == "" {
		title = "A task of " + rc.Actor.ID
	}
	fields := map[string]any{"title": title, "description": words.text, "assigneeAgentId": a.ID, "status": "todo",
		"originKind":     origin,
		"allowDuplicate": true, "idempotencyKey": "a2a " + rc.Actor.ID + " " + p.Message.ID}
	if len(words.files) > 0 {
		fields["status"] = "backlog" // until its files are there
	}
	if p.Message.Context != "" {
		fields["originId"] = p.Message.Context
	}
	var made struct {
		ID string `json:"id"`
	}
	if err := call(rc, http.MethodPost, "/api/companies/"+string(a.Company)+"/issues", fields, &made); err != nil {
		return i, err
	}
	i = entity.Issue{ID: made.ID, Company: a.Company}
	if len(words.files) == 0 {
		return i, nil
	}
	err = rc.View(func(tx *ledger.Tx) error { i, err = issueOf(tx, rc, made.ID); return err })
	if err != nil || i.Status != entity.IssueBacklog { // sent again
		return i, err
	}
	if err := attach(rc, i, words.files); err != nil {
		return i, err
	}
	return i, call(rc, http.MethodPatch, "/api/issues/"+i.ID, map[string]any{"status": "todo"}, &made)
}

// attach stores the files of a message with its issue.
func attach(rc *api.Request, i entity.Issue, files []Part) error {
	for n, p := range files {
		name, kind := p.Filename, p.MediaType
		if name == "" {
			name = fmt.Sprintf("file-%d", n+1)
		}
		if kind == "" {
			kind = "application/octet-stream"
		}
		up, err := rc.Keep(p.Raw, name, kind)
		if err != nil {
			return err
		}
		up.File.ID, up.File.Object = api.NewID(), api.NewID()
		if _, err := api.Do[file.Attached](rc, file.KindAttachmentCreate, i.Company, file.CreateAttachment{Issue: i.ID,
			ID: api.NewID(), File: up.File}); err != nil {
			return err
		}
	}
	return nil
}

// goOn adds a message to a task that goes on. One that waits for an answer goes on with it.
func goOn(rc *api.Request, m *Message, words said) (i entity.Issue, err error) {
	var now State
	err = rc.View(func(tx *ledger.Tx) (err error) {
		if i, err = issueOf(tx, rc, m.Task); err == nil {
			now = taskOf(tx, i, view{history: new(0)}).Status.State
		}
		return err
	})
	switch {
	case err != nil:
		return i, err
	case m.Context != "" && m.Context != contextOf(i):
		return i, badParams.as("message.contextId: is not that of the task")
	case now == Completed || now == Canceled:
		return i, unsupported.as("The task is over; send a message without taskId, and with its contextId if it goes with it")
	}
	if err := attach(rc, i, words.files); err != nil {
		return i, err
	}
	comment := map[string]any{"body": words.text}
	if rc.IsBoard() && (now == InputRequired || now == Failed) {
		comment["resume"] = true
	}
	if api.IsUUID(m.ID) {
		comment["clientRequestId"] = m.ID // a message that is sent again is one comment
	}
	var made struct {
		ID string `json:"id"`
	}
	return i, call(rc, http.MethodPost, "/api/issues/"+i.ID+"/comments", comment, &made)
}

// history returns how many messages of a task a request wants.
func (p sendParams) immediately() bool {
	return p.Config.Immediately || p.Config.Blocking != nil && !*p.Config.Blocking
}

// await waits until a task rests, at most maxWait.
func await(rc *api.Request, id string, history *int) (Task, error) {
	s := rc.Server
	select {
	case s.Executing <- struct{}{}:
		defer func() { <-s.Executing }()
	default: // too many wait already
		return show(rc, id, history)
	}
	of, err := companyOf(rc, id)
	if err != nil {
		return Task{}, err
	}
	f := follow(rc.Context(), s, of)
	defer f.close()
	over := time.NewTimer(maxWait)
	defer over.Stop()
	for {
		t, err := show(rc, id, history)
		if err != nil || t.Status.State.Rests() {
			return t, err
		}
		select {
		case <-f.changed:
		case <-over.C:
			return t, nil
		case <-rc.Context().Done():
			return t, rc.Context().Err()
		}
	}
}

// cancel cancels a task.
func cancel(rc *api.Request, id string) (Task, error) {
	t, err := show(rc, id, new(0))
	switch {
	case err != nil:
		return t, err
	case t.Status.State == Completed || t.Status.State == Canceled:
		return t, notCancelable.as("The task is over")
	}
	var made struct {
		ID string `json:"id"`
	}
	if err := call(rc, http.MethodPatch, "/api/issues/"+t.ID, map[string]any{"status": "cancelled"}, &made); err != nil {
		return t, err
	}
	return show(rc, t.ID, nil)
}
