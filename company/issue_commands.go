package company

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// CreateIssue is the payload of issue.create. The caller chooses the ID.
type CreateIssue struct {
	ID          string `cbor:"1,keyasint"`
	Title       string `cbor:"2,keyasint"`
	Description string `cbor:"3,keyasint,omitempty"`
	// empty: todo when it has an assignee, else backlog
	Status       entity.IssueStatus `cbor:"4,keyasint,omitempty"`
	Priority     entity.Priority    `cbor:"5,keyasint,omitempty"` // empty: medium
	Assignee     string             `cbor:"6,keyasint,omitempty"`
	AssigneeUser string             `cbor:"7,keyasint,omitempty"`
	Project      string             `cbor:"8,keyasint,omitempty"` // empty: the parent's
	Workspace    string             `cbor:"9,keyasint,omitempty"` // empty: the project's primary one
	// empty: the parent's, the project's, or the company's
	Goal               string          `cbor:"10,keyasint,omitempty"`
	Parent             string          `cbor:"11,keyasint,omitempty"`
	BlockedBy          []string        `cbor:"12,keyasint,omitempty"`
	Labels             []string        `cbor:"13,keyasint,omitempty"`
	BillingCode        string          `cbor:"14,keyasint,omitempty"`
	WorkMode           string          `cbor:"15,keyasint,omitempty"`
	HarnessKind        string          `cbor:"16,keyasint,omitempty"`
	ReviewPolicy       string          `cbor:"17,keyasint,omitempty"`
	OriginKind         string          `cbor:"18,keyasint,omitempty"`
	OriginID           string          `cbor:"19,keyasint,omitempty"`
	OriginRun          string          `cbor:"20,keyasint,omitempty"`
	OriginFingerprint  string          `cbor:"21,keyasint,omitempty"`
	Depth              uint64          `cbor:"22,keyasint,omitempty"` // at least the parent's plus one
	ExecutionWorkspace string          `cbor:"23,keyasint,omitempty"`
	WorkspacePref      string          `cbor:"24,keyasint,omitempty"`
	WorkspaceSettings  json.RawMessage `cbor:"25,keyasint,omitempty"`
	AdapterOverrides   json.RawMessage `cbor:"26,keyasint,omitempty"`
	ExecutionPolicy    json.RawMessage `cbor:"27,keyasint,omitempty"`
	UnblockDescriptor  json.RawMessage `cbor:"28,keyasint,omitempty"`
	RequestKey         string          `cbor:"29,keyasint,omitempty"` // the body's idempotencyKey
	AllowDuplicate     bool            `cbor:"30,keyasint,omitempty"`
	Child              bool            `cbor:"31,keyasint,omitempty"` // created through /children
	BlockParent        bool            `cbor:"32,keyasint,omitempty"` // the parent waits for it
	// its monitor is stored but does not fire: it was imported
	Resting   bool        `cbor:"33,keyasint,omitempty"`
	Allowance *core.Money `cbor:"34,keyasint,omitempty"` // limit of what the work on it may cost in total
	// InheritFrom is an issue whose execution workspace this one shares; see
	// inheritWorkspace.
	InheritFrom string `cbor:"35,keyasint,omitempty"`
	Many        bool   `cbor:"-" json:"-"` // one of many that one command creates
}

func issueResult(tx *ledger.Tx, i entity.Issue) entity.IssueResult {
	r := entity.IssueResult{Issue: i, Labels: entity.LabelRows(tx, i)}
	for _, b := range entity.Blockers(tx, i) {
		r.BlockedBy = append(r.BlockedBy, b.Ref())
	}
	return r
}

const (
	KindIssueCreate = "issue.create"
	KindIssueUpdate = "issue.update"
	KindIssueDelete = "issue.delete"
)

var issueKinds = []Kind{
	{Name: KindIssueCreate, From: FromBoard | FromAgent, Traits: Importable | SeldomWork, Weight: Weights.Task,
		Do: ledger.Typed(MakeIssue)},
	{Name: KindIssueUpdate, From: FromBoard | FromAgent, Traits: Importable | FencesItself | SeldomWork, Reads: issueFirst,
		Weight: Weights.Task, Do: ledger.Typed(updateIssue)},
	{Name: KindIssueDelete, From: FromBoard | FromAgent, Traits: SeldomWork, Weight: Weights.Erase,
		Do: ledger.Typed(deleteIssue)},
}

// The duplicate guard and the body's idempotencyKey keep one row each:
//
//	c/<company>/issue-recent/<hash of title, text, project, parent>   the newest such issue
//	c/<company>/issue-request/<hash of the key>                       the issue that was created
func recentKey(company ledger.CompanyID, hash string) []byte {
	return ledger.Key("c", string(company), "issue-recent", hash)
}
func requestKey(company ledger.CompanyID, hash string) []byte {
	return ledger.Key("c", string(company), "issue-request", hash)
}

func MakeIssue(c *ledger.Context, p CreateIssue) (any, error) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	if core.IsAgent(c) {
		if err := MustRun(c); err != nil {
			return nil, err
		}
	}
	i := entity.Issue{ID: p.ID, Company: company, Title: p.Title, Description: p.Description, Priority: p.Priority,
		Assignee: p.Assignee, AssigneeUser: p.AssigneeUser,
		Project: p.Project, Workspace: p.Workspace, Goal: p.Goal, Parent: p.Parent, BlockedBy: core.SortedSet(p.BlockedBy),
		Labels:      core.SortedSet(p.Labels),
		BillingCode: p.BillingCode, WorkMode: p.WorkMode, HarnessKind: p.HarnessKind, ReviewPolicy: p.ReviewPolicy,
		OriginKind: p.OriginKind, OriginID: p.OriginID, OriginRun: p.OriginRun, OriginFingerprint: p.OriginFingerprint,
		Depth:              p.Depth,
		ExecutionWorkspace: p.ExecutionWorkspace, WorkspacePref: p.WorkspacePref, WorkspaceSettings: p.WorkspaceSettings,
		AdapterOverrides: p.AdapterOverrides, ExecutionPolicy: p.ExecutionPolicy, UnblockDescriptor: p.UnblockDescriptor,
		CreatedAt: now, UpdatedAt: now}
	if i.Priority == "" {
		i.Priority = entity.PriorityMedium
	}
	i, err := Ask.Inherit(c.Tx, i, p.InheritFrom, p.ExecutionWorkspace != "")
	if err != nil {
		return nil, err
	}
	if i, err = inherit(c.Tx, i); err != nil {
		return nil, err
	}
	if i, err = Ask.Plan(c, entity.Issue{}, i); err != nil {
		return nil, err
	}
	if p.Resting && i.Monitor != nil {
		i.Monitor.NextAt = 0
	}
	i.TitleHash = core.TextKey(strconv.Itoa(len(i.Title)) + ":" + i.Title + "/" + i.Project + "/" + i.Parent + "/" +
		i.Description)
	if p.RequestKey != "" {
		i.RequestHash = core.TextKey(p.RequestKey)
		if old, ok := existing(c.Tx, requestKey(company, i.RequestHash), company); ok {
			r := issueResult(c.Tx, old)
			r.Duplicate = "idempotency_key"
			return r, nil
		}
	}
	if old, ok := existing(c.Tx, recentKey(company, i.TitleHash), company); ok && !p.AllowDuplicate &&
		!old.Status.Terminal() && now-old.CreatedAt <= core.Time(entity.DuplicateWindow.Milliseconds()) {
		r := issueResult(c.Tx, old)
		r.Duplicate = "recent_open_title"
		return r, nil
	}
	if c.Has(entity.IssueCompanyKey(i.ID)) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "Issue ID is taken")
	}
	if err := CheckReferences(c.Tx, entity.Issue{Company: company}, i); err != nil {
		return nil, err
	}
	if drafting, own := DraftingCEO(c, entity.Issue{}); drafting && own && p.Status == "" {
		p.Status = entity.IssueBacklog
	}
	if i, err = beginIssue(c, i, p.Status); err != nil {
		return nil, err
	}
	if err := mayStart(c, entity.Issue{}, i); err != nil {
		return nil, err
	}
	if i.Identifier, i.Number, err = takeIdentifier(c, company); err != nil {
		return nil, err
	}
	if i, err = Ask.Allow(c, i, p.Allowance); err != nil {
		return nil, err
	}
	StoreIssue(c.Tx, entity.Issue{}, i)
	c.Set(recentKey(company, i.TitleHash), []byte(i.ID))
	if i.RequestHash != "" {
		c.Set(requestKey(company, i.RequestHash), []byte(i.ID))
	}
	if p.BlockParent && i.Parent != "" && !i.Status.Terminal() {
		if err := blockParent(c, i); err != nil {
			return nil, err
		}
	}
	recordCreated(c, i, p)
	if err := WakeForAssignment(c, entity.Issue{}, i); err != nil {
		return nil, err
	}
	return issueResult(c.Tx, i), nil
}

// blockParent blocks the parent of a new issue by it. The creator must be allowed to
// change the parent, and is refused as for an update of the parent.
func blockParent(c *ledger.Context, child entity.Issue) error {
	parent, ok := entity.IssueTable.Get(c.Tx, child.Company, child.Parent)
	if !ok {
		return ErrNoIssue()
	}
	if err := MayUpdate(c, parent); err != nil {
		return err
	}
	next := parent
	next.BlockedBy = core.SortedSet(append(slices.Clone(parent.BlockedBy), child.ID))
	if err := checkBlockers(c.Tx, parent.Company, parent.ID, next.BlockedBy); err != nil {
		return err
	}
	next.UpdatedAt = core.TimeOf(c.Now)
	StoreIssue(c.Tx, parent, next)
	return nil
}

// beginIssue sets the first status and the authors of a new issue, and refuses an
// invalid one.
func beginIssue(c *ledger.Context, i entity.Issue, status entity.IssueStatus) (entity.Issue, error) {
	if status != "" && !slices.Contains(entity.IssueStatuses, status) {
		return i, ledger.Refuse(ledger.Invalid, nil, "status is one of %v", entity.IssueStatuses)
	}
	if status == "" {
		status = entity.IssueBacklog
		if i.Assignee != "" || i.AssigneeUser != "" {
			status = entity.IssueTodo
		}
	}
	if status == entity.IssueBlocked && len(i.UnblockDescriptor) == 0 && len(entity.Unresolved(c.Tx, i)) == 0 {
		return i, entity.ErrNotRoutable()
	}
	descriptor := i.UnblockDescriptor
	i = i.Enter(status, core.TimeOf(c.Now))
	i.StatusVersion, i.BlockedAt, i.UnblockDescriptor = 0, 0, descriptor
	if core.IsAgent(c) {
		i.CreatedAgent, i.OriginRun = c.Cmd.Actor.ID, cmp.Or(i.OriginRun, c.Cmd.Run)
	} else if core.IsBoard(c) {
		i.CreatedUser, i.ResponsibleUser = c.Cmd.Actor.ID, c.Cmd.Actor.ID
	}
	if i.ResponsibleUser == "" {
		i.ResponsibleUser = responsibleUser(c.Tx, i)
	}
	if status == entity.IssueInProgress {
		if err := i.Consistent(); err != nil {
			return i, err
		}
		if left := entity.Unresolved(c.Tx, i); len(left) > 0 {
			return i, refuseBlocked(left)
		}
	}
	return i, i.Consistent()
}

// inherit fills in what a new issue takes from its parent, project and company.
func inherit(tx *ledger.Tx, i entity.Issue) (entity.Issue, error) {
	if i.Parent != "" {
		parent, ok := entity.IssueTable.Get(tx, i.Company, i.Parent)
		if !ok {
			return i, ledger.Refuse(ledger.NotFound, nil, "Parent issue not found")
		}
		i.Project = cmp.Or(i.Project, parent.Project)
		if i.Project == parent.Project {
			i.Workspace = cmp.Or(i.Workspace, parent.Workspace)
		}
		i.Goal = cmp.Or(i.Goal, parent.Goal)
		i.Depth = max(i.Depth, parent.Depth+1)
		i.BillingCode = cmp.Or(i.BillingCode, parent.BillingCode)
		i.Allowance = parent.Allowance
	}
	if i.Project != "" {
		goal, workspace, ok := projectDefaults(tx, i.Company, i.Project)
		if !ok {
			return i, ledger.Refuse(ledger.NotFound, nil, "Project not found")
		}
		i.Goal, i.Workspace = cmp.Or(i.Goal, goal), cmp.Or(i.Workspace, workspace)
	}
	if i.Goal == "" {
		i.Goal = entity.DefaultGoal(tx, i.Company)
	}
	if i.Depth > MaxRequestDepth {
		return i, errTooDeep(i.Depth)
	}
	return i, nil
}

func errTooDeep(depth uint64) error {
	return ledger.Refuse(ledger.Unprocessable, core.Object{}.Uint("requestDepth", depth).
		Uint("limit", MaxRequestDepth).Close(),
		"Work can be delegated at most %d deep", MaxRequestDepth)
}

// CheckReferences refuses an issue that names something that does not exist in its
// company, or that closes a cycle. Fields that next shares with old are not checked
// again.
func CheckReferences(tx *ledger.Tx, old, next entity.Issue) error {
	if next.Assignee != "" && next.Assignee != old.Assignee {
		if err := entity.Assignable(tx, next.Company, next.Assignee); err != nil {
			return err
		}
	}
	if u := next.AssigneeUser; u != "" && u != old.AssigneeUser {
		if !Ask.Belongs(tx, next.Company, u) {
			return ledger.Refuse(ledger.NotFound, nil, "Assignee user not found")
		}
	}
	if next.Project != "" && next.Project != old.Project && !entity.ProjectExists(tx, next.Company, next.Project) {
		return ledger.Refuse(ledger.NotFound, nil, "Project not found")
	}
	if next.Goal != "" && next.Goal != old.Goal && !entity.GoalExists(tx, next.Company, next.Goal) {
		return ledger.Refuse(ledger.NotFound, nil, "Goal not found")
	}
	if next.Parent != "" && next.Parent != old.Parent {
		if err := entity.CheckParent(tx, next); err != nil {
			return err
		}
	}
	if err := checkIssue(tx, old, next); err != nil {
		return err
	}
	if !slices.Equal(old.Labels, next.Labels) {
		if err := checkLabels(tx, next.Company, next.Labels); err != nil {
			return err
		}
	}
	if !slices.Equal(old.BlockedBy, next.BlockedBy) {
		return checkBlockers(tx, next.Company, next.ID, next.BlockedBy)
	}
	return nil
}

// existing returns the issue whose ID is stored under key, if it still exists.
func existing(tx *ledger.Tx, key []byte, company ledger.CompanyID) (entity.Issue, bool) {
	id, ok := tx.Get(key)
	if !ok {
		return entity.Issue{}, false
	}
	return entity.IssueTable.Get(tx, company, string(id))
}

func recordCreated(c *ledger.Context, i entity.Issue, p CreateIssue) {
	action, reason := "issue.created", "explicit"
	if p.Status == "" {
		reason = "unassigned_omitted_status"
		if i.Assignee != "" || i.AssigneeUser != "" {
			reason = "assigned_omitted_status"
		}
	}
	d := core.Object{}.Str("title", i.Title).Str("status", string(i.Status)).Str("identifier", i.Identifier)
	if p.Child {
		action = "issue.child_created"
	}
	if i.Parent != "" {
		d = d.Str("parentId", i.Parent)
	}
	if len(i.BlockedBy) > 0 {
		d = d.List("blockedByIssueIds", i.BlockedBy)
	}
	if p.BlockParent && i.Parent != "" {
		d = d.Bool("parentBlockerAdded", true)
	}
	d = d.Bool("statusDefaulted", p.Status == "").Str("statusDefaultReason", reason).Bool("assignmentWakeSkipped",
		i.Assignee == "")
	if i.Assignee == "" {
		d = d.Str("assignmentWakeSkipReason", "no_agent_assignee")
	} else {
		d = d.Null("assignmentWakeSkipReason", "")
	}
	ch := ledger.Change{Action: action, EntityType: "issue", EntityID: i.ID, Details: d.Close()}
	if p.Many {
		RecordLive(c, ch) // if the entry has room
		return
	}
	c.Record(ch)
}

// DeleteIssue is the payload of issue.delete.
type DeleteIssue struct {
	Issue string `cbor:"1,keyasint"`
}

// deleteIssue deletes an issue with its comments and readers. Its sub-issues move to its
// parent, and issues that waited for it no longer do. Each of them gets a line in the
// entry, as long as there is room.
func deleteIssue(c *ledger.Context, p DeleteIssue) (any, error) {
	if core.IsAgent(c) {
		return nil, core.ErrBoardOnly()
	}
	i, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, ErrNoIssue()
	}
	result := issueResult(c.Tx, i)
	var moved, freed int64
	for child := range entity.ChildrenOf(c.Tx, i.Company, i.ID) {
		next := child
		next.Parent, next.Depth, next.UpdatedAt = i.Parent, i.Depth, core.TimeOf(c.Now)
		StoreIssue(c.Tx, child, next)
		moved++
		RecordLive(c, UpdatedChange(c, child, next, child.Diff(next), false))
	}
	for _, waiting := range entity.Blocks(c.Tx, i) {
		next := waiting
		next.BlockedBy = slices.DeleteFunc(slices.Clone(waiting.BlockedBy), func(id string) bool { return id == i.ID })
		next.UpdatedAt = core.TimeOf(c.Now)
		StoreIssue(c.Tx, waiting, next)
		freed++
		RecordLive(c, UpdatedChange(c, waiting, next, waiting.Diff(next), false))
	}
	dropComments(c.Tx, i)
	unplanned(c, i.ID, i.Parent)
	issueDeleted(c, i)
	dropThread(c.Tx, i)
	for _, key := range [][]byte{recentKey(i.Company, i.TitleHash), requestKey(i.Company, i.RequestHash)} {
		if id, ok := c.Get(key); ok && string(id) == i.ID {
			c.Delete(key)
		}
	}
	dropIssue(c.Tx, i)
	c.Record(ledger.Change{Action: "issue.deleted", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("identifier", i.Identifier).Str("title", core.Snippet(i.Title, 200)).Int("movedChildren",
			moved).Int("freedIssues", freed).Close()})
	return result, nil
}

const (
	// MaxRequestDepth bounds how deep work is delegated, even where the chain of parents
	// does not show it: an agent may state the depth of its request.
	MaxRequestDepth = entity.MaxIssueDepth
	MaxBlocked      = 300
	// MaxBlockers bounds the blockers of one issue; a checkout reads all of them.
	MaxBlockers = 50
	// MaxBlockerWalk bounds the search for a cycle among blockers.
	MaxBlockerWalk = 2_000
	// MaxIssueLabels bounds the labels of one issue, MaxLabels those of a company.
	MaxIssueLabels = 50
	MaxLabels      = 1_000
)
