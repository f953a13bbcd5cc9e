package transfer

import (
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/company/portable"
)

// status returns an issue's status after the import. In progress becomes todo, because
// its run is not imported. Blocked stays blocked only if a blocker is imported that is
// not done.
func (im *importer) status(i portable.Issue) entity.IssueStatus {
	switch s := entity.IssueStatus(Deref(i.Status)); {
	case s == entity.IssueInProgress, s == entity.IssueBlocked && !slices.ContainsFunc(i.BlockedBy,
		func(b string) bool { return !im.finished[b] }):
		return entity.IssueTodo
	case slices.Contains(entity.IssueStatuses, s):
		return s
	case i.Assignee != nil:
		return entity.IssueTodo
	}
	return entity.IssueBacklog
}

func (im *importer) issueSteps(rc *api.Request) error {
	files := 0
	for _, i := range im.m.Issues {
		files += len(i.Attachments)
	}
	rc.Pace.Set("storing files", files)
	for _, l := range im.m.Labels {
		if im.labels[l.Name] == "" {
			im.labels[l.Name] = im.newID()
			im.step(company.KindLabelCreate, company.CreateLabel{ID: im.labels[l.Name], Name: l.Name, Color: l.Color})
		}
	}
	left := slices.DeleteFunc(slices.Clone(im.m.Issues), func(i portable.Issue) bool { return i.Recurring })
	im.breakCircles(left)
	for _, i := range left {
		im.finished[i.Slug] = Deref(i.Status) == string(entity.IssueDone)
	}
	parents := func(i portable.Issue) []string {
		if i.Parent == nil {
			return nil
		}
		return []string{*i.Parent}
	}
	// Numbers only grow: an issue with a later blocker is created first, and the blocker is
	// added below.
	if err := inOrder(left, parents, func(n int) error { return im.issue(rc, left[n]) }, func(int) {}); err != nil {
		return err
	}
	for _, i := range im.early {
		blockers := im.blockers(i)
		u := company.UpdateIssue{Issue: im.issues[i.Slug], BlockedBy: &blockers}
		if im.status(i) == entity.IssueBlocked {
			u.Status = entity.IssueBlocked
		}
		im.step(company.KindIssueUpdate, u)
	}
	return nil
}

// blockers returns the IDs of an issue's blockers that exist so far.
func (im *importer) blockers(i portable.Issue) (ids []string) {
	for _, b := range i.BlockedBy {
		if id := im.issues[b]; id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// breakCircles breaks cycles of blockers, each at the issue with the lowest number.
func (im *importer) breakCircles(left []portable.Issue) {
	passed := map[string]bool{}
	pass := func(n int) error { passed[left[n].Slug] = true; return nil }
	_ = inOrder(left, func(i portable.Issue) []string { return i.BlockedBy }, pass, func(n int) {
		i := &left[n]
		im.warn("Task %s: its blockers wait for each other; the circle was broken.", i.Slug)
		i.BlockedBy = slices.DeleteFunc(slices.Clone(i.BlockedBy), func(b string) bool { return !passed[b] })
	})
}

// inOrder calls do for the issues after those that they wait for, and otherwise by
// number. When all remaining issues wait for each other, it calls free for the first and
// continues with it.
func inOrder(left []portable.Issue, waitsFor func(portable.Issue) []string, do func(n int) error,
	free func(n int)) error {
	waits, missing := map[string][]int{}, make([]int, len(left)) // who waits for a slug, and how many each waits for
	var ready, stuck []int                                       // both in order
	for n, i := range left {
		for _, slug := range waitsFor(i) {
			waits[slug], missing[n] = append(waits[slug], n), missing[n]+1
		}
		if missing[n] == 0 {
			ready = append(ready, n)
		} else {
			stuck = append(stuck, n)
		}
	}
	done := make([]bool, len(left))
	for {
		at := 0
		switch {
		case len(ready) > 0:
			at, ready = ready[0], ready[1:]
		default:
			for len(stuck) > 0 && done[stuck[0]] {
				stuck = stuck[1:]
			}
			if len(stuck) == 0 {
				return nil
			}
			at = stuck[0]
			free(at)
		}
		if err := do(at); err != nil {
			return err
		}
		done[at] = true
		for _, n := range waits[left[at].Slug] {
			if missing[n]--; missing[n] == 0 && !done[n] {
				to, _ := slices.BinarySearch(ready, n)
				ready = slices.Insert(ready, to, n)
			}
		}
	}
}

func (im *importer) issue(rc *api.Request, i portable.Issue) (err error) {
	id := im.newID()
	im.issues[i.Slug] = id
	s := company.CreateIssue{ID: id, Title: i.Title, Description: Deref(i.Description), Status: im.status(i),
		Priority:    entity.Priority(Deref(i.Priority)),
		BillingCode: Deref(i.BillingCode), AllowDuplicate: true}
	if !slices.Contains(entity.Priorities, s.Priority) {
		s.Priority = entity.PriorityMedium
	}
	if i.Assignee != nil {
		s.Assignee = im.agents[*i.Assignee]
	}
	if s.Status == entity.IssueTodo && s.Assignee == "" && i.Assignee != nil {
		s.Status = entity.IssueBacklog
	}
	if i.Project != nil {
		s.Project = im.projects[*i.Project]
		if i.WorkspaceKey != nil {
			s.Workspace = im.spaces[*i.Project+"/"+*i.WorkspaceKey]
		}
	}
	if i.Goal != nil {
		s.Goal = im.goals[*i.Goal]
	}
	if i.Parent != nil {
		s.Parent = im.issues[*i.Parent]
	}
	if s.BlockedBy = im.blockers(i); len(s.BlockedBy) < len(i.BlockedBy) {
		im.early = append(im.early, i)
		if s.Status == entity.IssueBlocked {
			s.Status = entity.IssueTodo
		}
	}
	s.Labels = im.labelIDs(i.Labels)
	if s.WorkspaceSettings, err = im.placed("Task "+i.Slug, Deref(i.Project), i.WorkspaceSettings); err != nil {
		return err
	}
	if s.AdapterOverrides, err = rawObject(i.AdapterOverrides); err != nil {
		return err
	}
	if s.ExecutionPolicy, err = im.policy(rc, i); err != nil {
		return err
	}
	im.kind(i, &s)
	s.Resting = true
	step := im.step(company.KindIssueCreate, s)
	if _, digits, ok := strings.Cut(Deref(i.Identifier), "-"); ok {
		step.Number, _ = strconv.ParseUint(digits, 10, 64) // 0: the next free number
	}
	var comments []string // IDs, in their order
	for _, cm := range i.Comments {
		p := entity.CreateComment{Issue: id, ID: im.newID(), Body: cm.Body}
		if p.Presentation, err = rawObject(cm.Presentation); err != nil {
			return err
		}
		if p.Metadata, err = rawObject(cm.Metadata); err != nil {
			return err
		}
		step := im.step(company.KindCommentCreate, p)
		im.by(step, cm.AuthorAgent)
		comments = append(comments, p.ID)
	}
	for _, d := range i.Documents {
		p := paper.SaveDocument{Issue: id, Key: strings.ToLower(d.Key), ID: im.newID(), Revision: im.newID(),
			Format: d.Format, Body: d.Body}
		if d.Title != "" {
			p.Title = &d.Title
		}
		im.step(paper.KindDocumentSave, p)
		im.remarkSteps("annotation", id, p.Key, p.Revision, d.Remarks)
	}
	if err := im.products(i, id); err != nil {
		return err
	}
	return im.attachments(rc, i, id, comments)
}

// products creates an issue's work products. References to this mesh's services are not
// imported.
func (im *importer) products(i portable.Issue, issue string) (err error) {
	for _, w := range slices.Backward(i.WorkProducts) { // the newest is listed first
		p := file.SaveProduct{ID: im.newID(), Issue: issue, Type: &w.Type, Provider: &w.Provider, External: w.ExternalID,
			Title: &w.Title, URL: w.URL, Status: &w.Status,
			ReviewState: &w.ReviewState, Primary: &w.Primary, Health: &w.HealthStatus, Summary: w.Summary}
		if p.Metadata, err = rawObject(w.Metadata); err != nil {
			return err
		}
		im.step(file.KindProductCreate, p)
	}
	return nil
}

// attachments stores the content on its nodes, before the command that names it.
func (im *importer) attachments(rc *api.Request, i portable.Issue, issue string, comments []string) error {
	for _, a := range i.Attachments {
		data, ok := im.rooted.Blob(a.SHA256)
		if !ok {
			continue // unreachable: portable.Read refuses such packages
		}
		up, err := rc.Keep(data, Deref(a.Filename), a.ContentType)
		if err != nil {
			return err
		}
		rc.Pace.Step()
		up.File.ID, up.File.Object = im.newID(), im.newID()
		p := file.CreateAttachment{Issue: issue, ID: im.newID(), File: up.File}
		if a.ID != "" {
			im.renamed = append(im.renamed, attachmentPath+a.ID, attachmentPath+p.ID)
		}
		if n := a.CommentIndex; n != nil && *n >= 0 && *n < len(comments) {
			p.Comment = comments[*n]
		}
		im.step(file.KindAttachmentCreate, p)
	}
	return nil
}
