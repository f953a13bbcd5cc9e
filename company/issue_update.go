package company

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// UpdateIssue is the payload of issue.update. A nil field keeps the value; a pointer to
// "" (or a "null" of raw JSON) clears it.
type UpdateIssue struct {
	Issue        string             `cbor:"1,keyasint"`
	Title        *string            `cbor:"2,keyasint,omitempty"`
	Description  *string            `cbor:"3,keyasint,omitempty"`
	Status       entity.IssueStatus `cbor:"4,keyasint,omitempty"`
	Priority     entity.Priority    `cbor:"5,keyasint,omitempty"`
	Assignee     *string            `cbor:"6,keyasint,omitempty"`
	AssigneeUser *string            `cbor:"7,keyasint,omitempty"`
	Project      *string            `cbor:"8,keyasint,omitempty"`
	Workspace    *string            `cbor:"9,keyasint,omitempty"`
	Goal         *string            `cbor:"10,keyasint,omitempty"`
	Parent       *string            `cbor:"11,keyasint,omitempty"`
	BlockedBy    *[]string          `cbor:"12,keyasint,omitempty"`
	Labels       *[]string          `cbor:"13,keyasint,omitempty"`
	BillingCode  *string            `cbor:"14,keyasint,omitempty"`
	WorkMode     *string            `cbor:"15,keyasint,omitempty"`
	HarnessKind  *string            `cbor:"16,keyasint,omitempty"`
	ReviewPolicy *string            `cbor:"17,keyasint,omitempty"`
	// at least the parent's plus one; agents can only raise it
	Depth              *uint64         `cbor:"18,keyasint,omitempty"`
	ExecutionWorkspace *string         `cbor:"19,keyasint,omitempty"`
	WorkspacePref      *string         `cbor:"20,keyasint,omitempty"`
	WorkspaceSettings  json.RawMessage `cbor:"21,keyasint,omitempty"`
	AdapterOverrides   json.RawMessage `cbor:"22,keyasint,omitempty"`
	ExecutionPolicy    json.RawMessage `cbor:"23,keyasint,omitempty"`
	UnblockDescriptor  json.RawMessage `cbor:"24,keyasint,omitempty"`
	HiddenAt           *core.Time      `cbor:"25,keyasint,omitempty"`
	// for the board: moves a terminal issue back to todo
	Reopen  bool                  `cbor:"26,keyasint,omitempty"`
	Comment *entity.CreateComment `cbor:"27,keyasint,omitempty"`
	// what the participant of the pending stage is asked
	ReviewRequest *string `cbor:"28,keyasint,omitempty"`
	InheritFrom   string  `cbor:"29,keyasint,omitempty"` // as in CreateIssue
	Review        string  `cbor:"30,keyasint,omitempty"` // the interaction that requests the review
}

// An issueUpdate is one issue.update during its execution.
type issueUpdate struct {
	c         *ledger.Context
	p         UpdateIssue // as sent; a review may change status and comment
	was, next entity.Issue
	resume    bool // the comment asks to resume work
	interrupt bool // the comment asks to end the running run
	override  bool // the board made a transition that agents may not make
}

func updateIssue(c *ledger.Context, p UpdateIssue) (any, error) {
	was, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, ErrNoIssue()
	}
	u := issueUpdate{c: c, p: p, was: was}
	if err := u.edit(); err != nil {
		return nil, err
	}
	if err := u.move(); err != nil {
		return nil, err
	}
	if err := u.settle(); err != nil {
		return nil, err
	}
	return u.store()
}

// edit sets the plain fields of next. It refuses fields that the actor may not set and
// references to rows that do not exist.
func (u *issueUpdate) edit() (err error) {
	c, i := u.c, u.was
	if err := MayUpdate(c, i); err != nil {
		return err
	}
	if u.next, err = Ask.Inherit(c.Tx, u.p.fields(i), u.p.InheritFrom, u.p.ExecutionWorkspace != nil); err != nil {
		return err
	}
	if u.next, err = Ask.Plan(c, i, u.next); err != nil {
		return err
	}
	if err := mayReassign(c, i, u.next); err != nil {
		return err
	}
	if core.IsAgent(c) && u.next.HiddenAt != i.HiddenAt && i.CreatedAgent != c.Cmd.Actor.ID {
		return core.ErrBoardOnly() // hiding an issue is like cancelling it
	}
	return CheckReferences(c.Tx, i, u.next)
}

// move sets the status of next: as the payload asks, as the comment asks, or as the
// review of the issue decides.
func (u *issueUpdate) move() (err error) {
	c, i := u.c, u.was
	if u.resume, u.interrupt, err = ordersOf(c, u.p.Comment, i); err != nil {
		return err
	}
	if u.resume {
		if err := mayResume(c, u.next); err != nil {
			return err
		}
	}
	if u.p.Status == "" && i.TakesUp(u.p.Reopen, u.resume) {
		u.p.Status = entity.IssueTodo
	}
	if u.next, u.p, err = Ask.Review(c, i, u.next, u.p); err != nil {
		return err
	}
	if u.next, u.override, err = moveIssue(c, i, u.next, u.p.Status); err != nil {
		return err
	}
	u.next, err = Ask.Request(c, i, u.next, u.p)
	return err
}

// settle completes next: its depth, whether work may start on it, and its workspace.
func (u *issueUpdate) settle() (err error) {
	c, i := u.c, u.was
	if u.p.Depth != nil {
		if u.next.Depth, err = redepth(c, u.next, *u.p.Depth); err != nil {
			return err
		}
	}
	if err := mayStart(c, i, u.next); err != nil {
		return err
	}
	if u.next.Project == i.Project {
		return nil
	}
	if u.p.Workspace == nil {
		u.next.Workspace = ""
		if u.next.Project != "" {
			_, u.next.Workspace, _ = projectDefaults(c.Tx, i.Company, u.next.Project)
		}
	}
	return Ask.Fits(c.Tx, u.next)
}

// store records and writes the change, and queues the wakes that follow.
func (u *issueUpdate) store() (any, error) {
	c, i := u.c, u.was
	changes := i.Diff(u.next)
	if len(changes) > len("{}") {
		u.next.UpdatedAt = core.TimeOf(c.Now)
		recordUpdated(c, i, u.next, changes, u.override)
	}
	comment, err := commentWith(c, &u.next, u.p.Comment)
	if err != nil {
		return nil, err
	}
	StoreIssue(c.Tx, i, u.next)
	if u.next.Depth != i.Depth {
		deepen(c.Tx, u.next)
	}
	if u.interrupt {
		stopWork(c, i, interrupted, "issue.comment", comment.ID)
	}
	cancelled := u.next.Status == entity.IssueCancelled && i.Status != entity.IssueCancelled && core.IsBoard(c)
	if cancelled {
		endWork(c, i)
	}
	if u.interrupt || cancelled {
		u.next, _ = entity.IssueTable.Get(c.Tx, i.Company, i.ID)
	}
	if err := wakeForUpdate(c, i, u.next, comment, u.resume); err != nil {
		return nil, err
	}
	if err := Ask.Wake(c, i, u.next); err != nil {
		return nil, err
	}
	r := issueResult(c.Tx, u.next)
	r.Changes, r.Comment = changes, comment
	return r, nil
}

// fields returns i with the plain fields of p.
func (p UpdateIssue) fields(i entity.Issue) entity.Issue {
	set := func(field *string, v *string) {
		if v != nil {
			*field = *v
		}
	}
	raw := func(field *json.RawMessage, v json.RawMessage) {
		switch string(v) {
		case "":
		case "null":
			*field = nil
		default:
			*field = v
		}
	}
	set(&i.Title, p.Title)
	set(&i.Description, p.Description)
	set(&i.Project, p.Project)
	set(&i.Workspace, p.Workspace)
	set(&i.Goal, p.Goal)
	set(&i.Parent, p.Parent)
	set(&i.BillingCode, p.BillingCode)
	set(&i.WorkMode, p.WorkMode)
	set(&i.HarnessKind, p.HarnessKind)
	set(&i.ReviewPolicy, p.ReviewPolicy)
	set(&i.ExecutionWorkspace, p.ExecutionWorkspace)
	set(&i.WorkspacePref, p.WorkspacePref)
	raw(&i.WorkspaceSettings, p.WorkspaceSettings)
	raw(&i.AdapterOverrides, p.AdapterOverrides)
	raw(&i.ExecutionPolicy, p.ExecutionPolicy)
	raw(&i.UnblockDescriptor, p.UnblockDescriptor)
	if p.Priority != "" {
		i.Priority = p.Priority
	}
	if p.BlockedBy != nil {
		i.BlockedBy = core.SortedSet(*p.BlockedBy)
	}
	if p.Labels != nil {
		i.Labels = core.SortedSet(*p.Labels)
	}
	if p.HiddenAt != nil {
		i.HiddenAt = *p.HiddenAt
	}
	return p.assign(i)
}

// assign sets the assignees. An issue has one assignee, so an agent clears the user and
// the reverse. A new assignee does not inherit the lock.
func (p UpdateIssue) assign(i entity.Issue) entity.Issue {
	agent, user := i.Assignee, i.AssigneeUser
	if p.Assignee != nil {
		if agent = *p.Assignee; agent != "" && p.AssigneeUser == nil {
			user = ""
		}
	}
	if p.AssigneeUser != nil {
		if user = *p.AssigneeUser; user != "" && p.Assignee == nil {
			agent = ""
		}
	}
	if agent != i.Assignee {
		i = i.Unheld()
	}
	i.Assignee, i.AssigneeUser = agent, user
	return i
}

// moveIssue moves next to the wanted status, if there is one. An agent that sets its own
// issue in progress checks it out by doing so.
func moveIssue(c *ledger.Context, i, next entity.Issue, to entity.IssueStatus) (entity.Issue, bool, error) {
	if next.Parent != i.Parent {
		next.Depth = depthBelow(c.Tx, next)
	}
	if to == "" || to == i.Status {
		return next, false, next.Consistent()
	}
	if to == entity.IssueCancelled && core.IsAgent(c) && i.CreatedAgent != c.Cmd.Actor.ID {
		return i, false, errNotYoursToCancel(c, i)
	}
	descriptor := next.UnblockDescriptor
	unresolved := entity.Unresolved(c.Tx, next)
	moved, override, err := next.Move(entity.Move{To: to, Board: !core.IsAgent(c), Routable: len(descriptor) > 0 ||
		len(unresolved) > 0 || to == entity.IssueBlocked && AwaitsBoard(c.Tx, i), Now: core.TimeOf(c.Now)})
	if err != nil {
		return i, false, err
	}
	switch to {
	case entity.IssueBlocked:
		moved.UnblockDescriptor = descriptor
	case entity.IssueInProgress:
		if len(unresolved) > 0 {
			return i, false, refuseBlocked(unresolved)
		}
		if core.IsAgent(c) {
			if err := notHeld(c.Tx, i); err != nil {
				return i, false, err
			}
		}
		if core.IsAgent(c) && moved.Assignee == c.Cmd.Actor.ID {
			if err := mayWork(c, moved.Assignee, moved.Project); err != nil {
				return i, false, err
			}
			moved.CheckoutRun, moved.Fence = c.Cmd.Run, c.Height
		}
	}
	return moved, override, nil
}

// errNotYoursToCancel refuses an agent that would cancel work which another agent
// requested. It names the manager to ask.
func errNotYoursToCancel(c *ledger.Context, i entity.Issue) error {
	a, _ := entity.AgentTable.Get(c.Tx, i.Company, c.Cmd.Actor.ID)
	var names []string
	for _, s := range i.Status.Next() {
		if s != entity.IssueCancelled {
			names = append(names, string(s))
		}
	}
	return ledger.Refuse(ledger.Unprocessable, core.Object{}.Str("issueId", i.ID).Null("createdByAgentId", i.CreatedAgent).
		Null("createdByUserId", i.CreatedUser).
		List("allowedStatuses", names).Null("escalateToAgentId", string(a.ReportsTo)).Close(),
		"An agent may not cancel a task that another created: complete it, block it, or escalate to its manager")
}

// mayReassign refuses an agent that would take an issue from another. It may reassign its
// own issues, those that it created, those of its subtree and unassigned ones; all
// others only with the permission to assign tasks.
func mayReassign(c *ledger.Context, i, next entity.Issue) error {
	if !core.IsAgent(c) || next.Assignee == i.Assignee && next.AssigneeUser == i.AssigneeUser || i.Assignee == "" &&
		i.AssigneeUser == "" {
		return nil
	}
	actor := c.Cmd.Actor.ID
	if i.Assignee == actor || i.CreatedAgent == actor || i.Assignee != "" && entity.Manages(c.Tx, i.Company, actor,
		i.Assignee) {
		return nil
	}
	if a, ok := entity.AgentTable.Get(c.Tx, i.Company, actor); ok && a.MayAssign() {
		return nil
	}
	return ledger.Refuse(ledger.Forbidden, i.Holder().Str("actorAgentId", actor).Close(), "Missing permission: %s",
		entity.AssignTasks)
}

// MustRun refuses a write of an agent that names no running run of its own.
func MustRun(c *ledger.Context) error {
	if c.Quiet { // part of a command that was already checked
		return nil
	}
	if c.Cmd.Run == "" {
		return errNoRunID()
	}
	if !entity.RunAlive(c.Tx, c.Cmd.Company, c.Cmd.Run, c.Cmd.Actor.ID) {
		return entity.RefuseRunContext()
	}
	return nil
}

// MayUpdate lets the board change every issue. An agent needs a running run of its own;
// it changes its own issue in progress only under the run that holds it, and another
// agent's issue in progress only as its manager.
func MayUpdate(c *ledger.Context, i entity.Issue) error {
	if !core.IsAgent(c) {
		return nil
	}
	actor, run := c.Cmd.Actor.ID, c.Cmd.Run
	if run == "" {
		return errNoRunID()
	}
	if !entity.RunAlive(c.Tx, i.Company, run, actor) {
		return i.StaleRun(actor, run)
	}
	if i.Status == entity.IssueInProgress && i.Assignee != "" && i.Assignee != actor && !entity.Manages(c.Tx, i.Company,
		actor, i.Assignee) {
		return ledger.Refuse(ledger.Conflict, i.Holder().Str("actorAgentId", actor).Str("actorRunId", run).Close(),
			"Issue is checked out by another agent")
	}
	return i.MustOwn(actor, run)
}

// maxRecordedChanges bounds how much of an update the summary of an entry repeats, in
// bytes. The command has all of it.
const maxRecordedChanges = 4 << 10

func recordUpdated(c *ledger.Context, i, next entity.Issue, changes []byte, override bool) {
	c.Record(UpdatedChange(c, i, next, changes, override))
}

func UpdatedChange(c *ledger.Context, i, next entity.Issue, changes []byte, override bool) ledger.Change {
	reason := "allow_board_actor"
	if core.IsAgent(c) {
		reason = "allow_agent_run"
	}
	d := core.Object{}
	if next.Status != i.Status {
		d = d.Str("status", string(next.Status))
	}
	// A description may be long, and the command has it: the entry only says that it changed.
	if next.Description != i.Description {
		short, past := next, i
		short.Description, past.Description = core.Snippet(next.Description, 120), core.Snippet(i.Description, 120)
		changes = past.Diff(short)
	}
	if len(changes) <= maxRecordedChanges {
		d = d.Raw("changes", changes)
	} else {
		d = d.Bool("changesOmitted", true)
	}
	d = d.Str("identifier", i.Identifier).Str("authorizationReason", reason)
	if override {
		d = d.Bool("override", true)
	}
	return ledger.Change{Action: "issue.updated", EntityType: "issue", EntityID: i.ID, Details: d.Close()}
}

// commentWith stores the comment of an update.
func commentWith(c *ledger.Context, i *entity.Issue, p *entity.CreateComment) (*entity.Comment, error) {
	if p == nil {
		return nil, nil
	}
	with := *p
	with.WithUpdate = true
	next, cm, err := AddComment(c, *i, with)
	if err != nil {
		return nil, err
	}
	*i = next
	return &cm, nil
}

// depthBelow returns the least depth of an issue: its parent's plus one.
func depthBelow(tx *ledger.Tx, i entity.Issue) uint64 {
	if parent, ok := entity.IssueTable.Get(tx, i.Company, i.Parent); ok {
		return parent.Depth + 1
	}
	return 0
}

// redepth returns the depth of an issue for which want was sent. An agent can not lower
// it, because it could then delegate without end.
func redepth(c *ledger.Context, i entity.Issue, want uint64) (uint64, error) {
	switch depth := max(want, depthBelow(c.Tx, i)); {
	case core.IsAgent(c) && depth < i.Depth:
		return 0, core.ErrBoardOnly()
	case depth > MaxRequestDepth:
		return 0, errTooDeep(depth)
	default:
		return depth, nil
	}
}

// deepen updates the depth of every issue below i.
func deepen(tx *ledger.Tx, i entity.Issue) {
	depth := map[string]uint64{i.ID: i.Depth}
	for _, id := range entity.Descendants(tx, i.Company, i.ID)[1:] {
		d, ok := entity.IssueTable.Get(tx, i.Company, id)
		if !ok {
			continue
		}
		depth[id] = depth[d.Parent] + 1
		if d.Depth != depth[id] {
			d.Depth = depth[id]
			entity.IssueTable.Put(tx, i.Company, id, d)
		}
	}
}
