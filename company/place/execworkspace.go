// Package place is where work is done: workspaces of projects, the folders in which runs
// work, the services and commands that are executed there, and environments.
package place

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A WorkspaceStatus is the state of an execution workspace. Persisted: do not rename.
type WorkspaceStatus string

// The statuses of execution workspaces. The last two are final.
const (
	WorkspaceActive        WorkspaceStatus = "active"
	WorkspaceIdle          WorkspaceStatus = "idle"
	WorkspaceInReview      WorkspaceStatus = "in_review"
	WorkspaceArchived      WorkspaceStatus = "archived"
	WorkspaceCleanupFailed WorkspaceStatus = "cleanup_failed"
)

// Over reports whether the status means that no more runs work in the workspace.
func (s WorkspaceStatus) Over() bool { return s == WorkspaceArchived || s == WorkspaceCleanupFailed }

// An ExecutionWorkspace is where the runs of an issue work: the folder of a project's
// workspace, or a worktree of its repository. The folder exists on one node, the one that
// made it.
type ExecutionWorkspace struct {
	ID                string               `cbor:"1,keyasint" json:"id"`
	Company           ledger.CompanyID     `cbor:"2,keyasint" json:"companyId"`
	Project           string               `cbor:"3,keyasint" json:"projectId"`
	ProjectWorkspace  core.NullText        `cbor:"4,keyasint,omitempty" json:"projectWorkspaceId"`
	SourceIssue       core.NullText        `cbor:"5,keyasint,omitempty" json:"sourceIssueId"`
	Mode              entity.WorkspaceMode `cbor:"6,keyasint" json:"mode"`
	Strategy          string               `cbor:"7,keyasint" json:"strategyType"` // project_primary or git_worktree
	Name              string               `cbor:"8,keyasint" json:"name"`
	Status            WorkspaceStatus      `cbor:"9,keyasint" json:"status"`
	Cwd               core.NullText        `cbor:"10,keyasint,omitempty" json:"cwd"`     // set when the folder exists
	RepoURL           core.NullText        `cbor:"11,keyasint,omitempty" json:"repoUrl"` // without credentials
	BaseRef           core.NullText        `cbor:"12,keyasint,omitempty" json:"baseRef"`
	Branch            core.NullText        `cbor:"13,keyasint,omitempty" json:"branchName"`
	LastUsedAt        core.Time            `cbor:"14,keyasint" json:"lastUsedAt"`
	OpenedAt          core.Time            `cbor:"15,keyasint" json:"openedAt"`
	ClosedAt          core.Time            `cbor:"16,keyasint,omitempty" json:"closedAt"`
	CleanupEligibleAt core.Time            `cbor:"17,keyasint,omitempty" json:"cleanupEligibleAt"`
	CleanupReason     core.NullText        `cbor:"18,keyasint,omitempty" json:"cleanupReason"`
	CreatedAt         core.Time            `cbor:"19,keyasint" json:"createdAt"`
	UpdatedAt         core.Time            `cbor:"20,keyasint" json:"updatedAt"`
	Node              core.NullText        `cbor:"21,keyasint,omitempty" json:"nodeId"`
	Run               string               `cbor:"22,keyasint,omitempty" json:"-"` // the latest one
	// parent folder of the worktree; "": below the node's directory
	ParentDir string          `cbor:"23,keyasint,omitempty" json:"-"`
	Adapter   string          `cbor:"24,keyasint,omitempty" json:"-"`
	Metadata  json.RawMessage `cbor:"25,keyasint,omitempty" json:"-"` // what was set by hand
	Config    WorkspaceConfig `cbor:"26,keyasint,omitempty" json:"-"` // what was set by hand
	// [Lifecycle.Prepared] when the workspace was prepared
	Prepared string `cbor:"27,keyasint,omitempty" json:"-"`
	// what to execute; stored because the project may be deleted
	Frozen *Lifecycle `cbor:"29,keyasint,omitempty" json:"-"`
	Others []string   `cbor:"30,keyasint,omitempty" json:"-"` // runs other than Run that may still work here
	// its issue or project was deleted; its node still has to remove the folder
	Gone bool `cbor:"28,keyasint,omitempty" json:"-"`
}

// Clone returns a copy that shares no memory with w.
func (w ExecutionWorkspace) Clone() ExecutionWorkspace {
	w.Metadata, w.Config, w.Others = slices.Clone(w.Metadata), w.Config.clone(), slices.Clone(w.Others)
	if w.Frozen != nil {
		f := *w.Frozen
		f.Runtime, f.States = slices.Clone(f.Runtime), slices.Clone(f.States)
		w.Frozen = &f
	}
	return w
}

// Keys of execution workspaces besides their rows:
//
//	exec-workspace-created/<ms, 16 hex digits>/<id>
//	exec-workspace-issue/<issue>/<id>   those whose status is not final
//	exec-workspace-of/<issue or project>/<id>
//	exec-workspace-company/<id>         its company; outside companies
//	exec-cleanup/<node>/<id>            its company: the node has to remove the folder; outside companies
var (
	ExecWorkspaces = ledger.NewTable[string, ExecutionWorkspace]("exec-workspace").
			Beside(ledger.Indexed(execWorkspaceTimes,
												func(w *ExecutionWorkspace) string { return ledger.Order(uint64(w.CreatedAt)) })).
		Beside(ledger.Indexed(execWorkspaceIssue, func(w *ExecutionWorkspace) string { // those that runs can get
			if w.ClosedAt != 0 {
				return ""
			}
			return string(w.SourceIssue)
		})).
		Beside(ledger.Indexed(execWorkspaceOf,
			func(w *ExecutionWorkspace) string { return w.listed(string(w.SourceIssue)) })).
		Beside(ledger.Indexed(execWorkspaceOf, func(w *ExecutionWorkspace) string { return w.listed(w.Project) }))
	execWorkspaceTimes = ledger.NewIndex[string, string]("exec-workspace-created")
	execWorkspaceIssue = ledger.NewIndex[string, string]("exec-workspace-issue")
	execWorkspaceOf    = ledger.NewIndex[string, string]("exec-workspace-of")
)

func ExecCompanyKey(id string) []byte       { return ledger.Key("exec-workspace-company", id) }
func ExecCleanupKey(node, id string) []byte { return ledger.Key("exec-cleanup", node, id) }

const (
	// DefaultWorkspaceLimit and MaxWorkspaceLimit bound the length of a list of execution
	// workspaces.
	DefaultWorkspaceLimit = 200
	MaxWorkspaceLimit     = 1000
	// MaxBranch bounds the name of a branch, in bytes.
	MaxBranch = 200
	// maxCleanupReason bounds a node's reason why it could not remove a folder, in bytes.
	maxCleanupReason = 1000
	maxCleanups      = 100
)

// UpdateExecutionWorkspace is the payload of exec_workspace.update. A nil field keeps the
// value. Only the node that made the folder may set Realised.
type UpdateExecutionWorkspace struct {
	ID       string           `cbor:"1,keyasint"`
	Name     *string          `cbor:"2,keyasint,omitempty"`
	Status   *WorkspaceStatus `cbor:"3,keyasint,omitempty"`
	Metadata json.RawMessage  `cbor:"4,keyasint,omitempty"`
	Config   *WorkspaceConfig `cbor:"5,keyasint,omitempty"` // only the fields that it sets are changed
}

// RealizeWorkspace is the payload of exec_workspace.realize, by which the node of a run
// reports where the folder is and which commands prepared it.
type RealizeWorkspace struct {
	ID       string `cbor:"1,keyasint"`
	Run      string `cbor:"2,keyasint"`
	Cwd      string `cbor:"3,keyasint"`
	Prepared string `cbor:"4,keyasint,omitempty"` // [Lifecycle.Prepared]; "" keeps the value
}

// CleanWorkspace is the payload of exec_workspace.cleaned, by which a node reports that it
// removed a folder, or why it could not.
type CleanWorkspace struct {
	ID     string `cbor:"1,keyasint"`
	Failed string `cbor:"2,keyasint,omitempty"`
}

const (
	KindExecWorkspaceUpdate  = "exec_workspace.update"
	KindExecWorkspaceRealize = "exec_workspace.realize"
	KindExecWorkspaceCleaned = "exec_workspace.cleaned"
)

var executionWorkspaceKinds = []company.Kind{
	{Name: KindExecWorkspaceUpdate, From: company.FromBoard | company.FromAgent, Needs: entity.ManageSpaces,
		Weight: company.Weights.SetUp, Do: ledger.Typed(updateExecutionWorkspace)},
	{Name: KindExecWorkspaceRealize, From: company.FromNode, Weight: company.Weights.ByNodes,
		Do: ledger.Typed(realizeWorkspace)},
	{Name: KindExecWorkspaceCleaned, From: company.FromNode, Weight: company.Weights.ByNodes,
		Do: ledger.Typed(cleanWorkspace)},
}

// ExecutionWorkspaceByID returns an execution workspace.
func ExecutionWorkspaceByID(tx *ledger.Tx, id string) (ExecutionWorkspace, bool) {
	w, ok := AnyExecutionWorkspace(tx, id)
	return w, ok && !w.Gone
}

// AnyExecutionWorkspace returns an execution workspace, also a deleted one whose node still
// has to remove the folder.
func AnyExecutionWorkspace(tx *ledger.Tx, id string) (ExecutionWorkspace, bool) {
	if !core.IsID(id) {
		return ExecutionWorkspace{}, false
	}
	of, ok := tx.Get(ExecCompanyKey(id))
	if !ok {
		return ExecutionWorkspace{}, false
	}
	return ExecWorkspaces.Get(tx, ledger.CompanyID(of), id)
}

// WorkspaceOfIssue returns the execution workspace that an issue names, else the one that
// its runs used last, unless that is closed.
func WorkspaceOfIssue(tx *ledger.Tx, i entity.Issue) (last ExecutionWorkspace, ok bool) {
	if w, ok := namedWorkspace(tx, i); ok {
		return w, true
	}
	for id := range execWorkspaceIssue.IDs(tx, i.Company, i.ID, false) {
		if w, found := ExecWorkspaces.Get(tx, i.Company, id); found && (!ok || w.LastUsedAt > last.LastUsedAt) {
			last, ok = w, true
		}
	}
	return last, ok
}

// namedWorkspace returns the execution workspace that an issue names, if its status is not
// final and it belongs to the issue's project.
func namedWorkspace(tx *ledger.Tx, i entity.Issue) (ExecutionWorkspace, bool) {
	if i.ExecutionWorkspace == "" {
		return ExecutionWorkspace{}, false
	}
	w, ok := ExecWorkspaces.Get(tx, i.Company, i.ExecutionWorkspace)
	return w, ok && !w.Gone && !w.Status.Over() && w.Project == i.Project
}

// A WorkspaceQuery selects the execution workspaces of a list.
type WorkspaceQuery struct {
	Project, Issue string
	Status         []string
	Limit          int
}

// ExecutionWorkspacesOf returns a company's execution workspaces, the newest first.
func ExecutionWorkspacesOf(tx *ledger.Tx, company ledger.CompanyID, q WorkspaceQuery) []ExecutionWorkspace {
	out := []ExecutionWorkspace{}
	prefix := ledger.Key("c", string(company), "exec-workspace-created", "")
	for k := range tx.Scan(prefix, ledger.PrefixEnd(prefix), true) {
		_, id, _ := strings.Cut(string(k[len(prefix):]), "/")
		w, ok := ExecWorkspaces.Get(tx, company, id)
		if !ok || w.Gone || q.Project != "" && w.Project != q.Project || q.Issue != "" && string(w.SourceIssue) != q.Issue ||
			len(q.Status) > 0 && !slices.Contains(q.Status, string(w.Status)) {
			continue
		}
		if out = append(out, w); len(out) == q.Limit {
			break
		}
	}
	return out
}

// WorkspacesToClean returns at most maxCleanups execution workspaces whose folders a node
// has to remove.
func WorkspacesToClean(tx *ledger.Tx, node string) (out []ExecutionWorkspace) {
	prefix := ExecCleanupKey(node, "")
	for k, of := range tx.Prefix(prefix) {
		if w, ok := ExecWorkspaces.Get(tx, ledger.CompanyID(of), string(k[len(prefix):])); ok {
			out = append(out, w)
		}
		if len(out) == maxCleanups {
			break
		}
	}
	return out
}

func execWorkspaceExists(tx *ledger.Tx, company ledger.CompanyID, id string) bool {
	return tx.Has(ExecWorkspaces.Key(company, id))
}

func errNoExecutionWorkspace() error {
	return ledger.Refuse(ledger.NotFound, nil, "Execution workspace not found")
}

func updateExecutionWorkspace(c *ledger.Context, p UpdateExecutionWorkspace) (any, error) {
	w, ok := ExecWorkspaces.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok || w.Gone {
		return nil, errNoExecutionWorkspace()
	}
	if core.IsAgent(c) && (c.Cmd.Run == "" || !entity.RunAlive(c.Tx, w.Company, c.Cmd.Run, c.Cmd.Actor.ID)) {
		return nil, entity.RefuseRunContext()
	}
	if p.Name != nil {
		if w.Name = *p.Name; strings.TrimSpace(w.Name) == "" || len(w.Name) > entity.MaxName {
			return nil, ledger.Refuse(ledger.Invalid, nil, "A workspace needs a name of at most %d bytes", entity.MaxName)
		}
	}
	metadata, err := core.CheckObject("metadata", p.Metadata, entity.MaxConfig)
	if err != nil {
		return nil, err
	}
	if len(p.Metadata) > 0 {
		w.Metadata = metadata
	}
	if p.Config != nil {
		if err := mayDefineCommands(c); err != nil {
			return nil, err
		}
		if w.Config, err = w.Config.with(*p.Config); err != nil {
			return nil, err
		}
		if _, err := DeclaredCommands(w.Config.Runtime); err != nil {
			return nil, err
		}
	}
	now := core.TimeOf(c.Now)
	if p.Status != nil && *p.Status != w.Status {
		if w, err = w.move(c, *p.Status, now); err != nil {
			return nil, err
		}
	}
	w.UpdatedAt = now
	ExecWorkspaces.Put(c.Tx, w.Company, w.ID, w)
	c.Record(ledger.Change{Action: "execution_workspace.updated", EntityType: "execution_workspace", EntityID: w.ID,
		Details: core.Object{}.Str("name", w.Name).Str("status", string(w.Status)).Close()})
	return w, nil
}

// move changes the status. An archived workspace is closed for good, and its node removes
// the worktree. A workspace in which a run works can not be archived.
func (w ExecutionWorkspace) move(c *ledger.Context, to WorkspaceStatus, now core.Time) (ExecutionWorkspace, error) {
	switch to {
	case WorkspaceActive, WorkspaceIdle, WorkspaceInReview:
		if w.Status.Over() {
			return w, ledger.Refuse(ledger.Conflict, core.Object{}.Str("status", string(w.Status)).Close(),
				"The execution workspace is closed; the next run of its issue opens another")
		}
	case WorkspaceArchived:
		if run, busy := w.Busy(c.Tx); busy {
			return w, ledger.Refuse(ledger.Conflict, core.Object{}.Str("status", string(w.Status)).Str("runId", run).Close(),
				"A run works in the execution workspace")
		}
		w.ClosedAt = now
		stopServices(c.Tx, w.Company, w.ID, now)
		l := LifecycleOf(c.Tx, w)
		if w.Node != "" && w.Cwd != "" && (w.Mode == entity.IsolatedWorkspace || l.Cleanup != "") {
			w.CleanupEligibleAt, w.CleanupReason = now, "archived"
			c.Set(ExecCleanupKey(string(w.Node), w.ID), []byte(w.Company))
		}
	default:
		return w, ledger.Refuse(ledger.Invalid, nil, "status is not one of active, idle, in_review, archived")
	}
	w.Status = to
	return w, nil
}

// Busy reports whether a run works in the workspace, and returns the run.
func (w ExecutionWorkspace) Busy(tx *ledger.Tx) (run string, busy bool) {
	for _, run := range append([]string{w.Run}, w.Others...) {
		if w.worked(tx, run) {
			return run, true
		}
	}
	return w.Run, false
}

// worked reports whether a run works in the workspace. A run that was ended may still work
// there until its node reports its end.
func (w ExecutionWorkspace) worked(tx *ledger.Tx, run string) bool {
	r, ok := entity.RunTable.Get(tx, w.Company, run)
	return ok && r.ExecutionWorkspace == w.ID && (r.Status.Live() || r.Owed)
}

func realizeWorkspace(c *ledger.Context, p RealizeWorkspace) (any, error) {
	r, err := company.OfNode(c, p.Run)
	if err != nil {
		return nil, err
	}
	w, ok := ExecWorkspaces.Get(c.Tx, c.Cmd.Company, p.ID)
	switch {
	case !ok || r.ExecutionWorkspace != w.ID || w.Gone && w.Cwd != "":
		return nil, errNoExecutionWorkspace()
	case p.Cwd == "" || max(len(p.Cwd), len(p.Prepared)) > entity.MaxPlacePath:
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed path of a workspace")
	case string(w.Cwd) == p.Cwd && (p.Prepared == "" || p.Prepared == w.Prepared):
		return nil, nil
	}
	w.Cwd, w.Prepared, w.UpdatedAt = core.NullText(p.Cwd), cmpOr(p.Prepared, w.Prepared), core.TimeOf(c.Now)
	ExecWorkspaces.Put(c.Tx, w.Company, w.ID, w)
	startDesired(c, w)
	c.Record(ledger.Change{Action: "execution_workspace.realized", EntityType: "execution_workspace", EntityID: w.ID,
		Details: core.Object{}.Str("runId", r.ID).Null("issueId", string(w.SourceIssue)).Null("branchName", string(w.Branch)).
			Str("nodeId", r.Node).Close()})
	return nil, nil
}

func cleanWorkspace(c *ledger.Context, p CleanWorkspace) (any, error) {
	key := ExecCleanupKey(c.Cmd.Actor.ID, p.ID)
	of, ok := c.Get(key)
	if c.Cmd.Actor.Type != "node" || !ok || ledger.CompanyID(of) != c.Cmd.Company {
		return nil, errNoExecutionWorkspace()
	}
	c.Delete(key)
	w, ok := ExecWorkspaces.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok {
		return nil, nil
	}
	w.UpdatedAt = core.TimeOf(c.Now)
	if w.Gone {
		// The workspace was deleted, so nobody could ask for another try.
		forgetWorkspace(c.Tx, w)
		c.Record(ledger.Change{Action: "execution_workspace.deleted", EntityType: "execution_workspace", EntityID: w.ID,
			Details: core.Object{}.Bool("removed", p.Failed == "").
				Null("reason", core.Snippet(p.Failed, maxCleanupReason)).Close()})
		return nil, nil
	}
	if p.Failed != "" {
		w.Status, w.CleanupReason = WorkspaceCleanupFailed, core.NullText(core.Snippet(p.Failed, maxCleanupReason))
	} else {
		w.CleanupEligibleAt, w.CleanupReason, w.Prepared = 0, "", ""
		if w.Mode == entity.IsolatedWorkspace {
			w.Cwd = ""
		}
	}
	ExecWorkspaces.Put(c.Tx, w.Company, w.ID, w)
	c.Record(ledger.Change{Action: "execution_workspace.cleaned", EntityType: "execution_workspace", EntityID: w.ID,
		Details: core.Object{}.Bool("removed", p.Failed == "").Close()})
	return nil, nil
}

// RepositoryOf returns the project's workspace that an execution workspace was made from,
// with the credentials of its repository. It is for the node that makes the folder and must
// not be shown.
func RepositoryOf(tx *ledger.Tx, w ExecutionWorkspace) (Workspace, bool) {
	return Workspaces.Get(tx, w.Company, string(w.ProjectWorkspace))
}

// Affinity returns the nodes on which a queued run would find its own files: the node of the
// session that it resumes, and the node of its workspace; "" for none.
func Affinity(tx *ledger.Tx, r entity.Run) (session, workspace string) {
	if s, ok := entity.SessionFor(tx, r); ok {
		last, _ := entity.RunTable.Get(tx, r.Company, string(s.LastRun))
		session = last.Node
	}
	i, ok := entity.IssueTable.Get(tx, r.Company, r.Context.IssueID)
	if r.Context.IssueID == "" || !ok || i.Project == "" {
		return session, ""
	}
	p, ok := entity.ProjectTable.Get(tx, r.Company, i.Project)
	if !ok {
		return session, ""
	}
	if want, ok := planWorkspace(tx, p, i); ok && want.Mode == entity.IsolatedWorkspace {
		w, _ := workspaceThere(tx, i, want)
		workspace = string(w.Node)
	}
	return session, workspace
}
