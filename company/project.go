package company

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A ProjectStatus is how far a project is. Persisted: do not rename.
type ProjectStatus string

// ProjectStatuses are all there are, in the contract's order.
var ProjectStatuses = []ProjectStatus{"backlog", "planned", "in_progress", "completed", "cancelled"}

// A Project groups issues that serve a goal. Its env may hold secrets; JSON of
// the row leaves it out.
type Project struct {
	ID              string          `cbor:"1,keyasint" json:"id"`
	Company         string          `cbor:"2,keyasint" json:"companyId"`
	Goal            string          `cbor:"3,keyasint,omitempty" json:"-"` // the first of Goals
	Name            string          `cbor:"4,keyasint" json:"name"`
	Description     core.NullText   `cbor:"5,keyasint,omitempty" json:"description"`
	Status          ProjectStatus   `cbor:"6,keyasint" json:"status"`
	Lead            core.NullText   `cbor:"7,keyasint,omitempty" json:"leadAgentId"`
	TargetDate      core.NullText   `cbor:"8,keyasint,omitempty" json:"targetDate"` // 2006-01-02
	Color           core.NullText   `cbor:"9,keyasint,omitempty" json:"color"`
	Icon            core.NullText   `cbor:"10,keyasint,omitempty" json:"icon"`
	Env             json.RawMessage `cbor:"11,keyasint,omitempty" json:"-"`
	PauseReason     core.NullText   `cbor:"12,keyasint,omitempty" json:"pauseReason"`
	PausedAt        core.Time       `cbor:"13,keyasint,omitempty" json:"pausedAt"`
	WorkspacePolicy json.RawMessage `cbor:"14,keyasint,omitempty" json:"executionWorkspacePolicy"`
	ArchivedAt      core.Time       `cbor:"15,keyasint,omitempty" json:"archivedAt"`
	CreatedAt       core.Time       `cbor:"16,keyasint" json:"createdAt"`
	UpdatedAt       core.Time       `cbor:"17,keyasint" json:"updatedAt"`
	Goals           []string        `cbor:"18,keyasint,omitempty" json:"-"`
	Workspace       string          `cbor:"19,keyasint,omitempty" json:"-"` // the primary one
}

// Clone returns a copy that shares no memory with p, as the ledger's cache of
// decoded rows needs it.
func (p Project) Clone() Project {
	p.Env, p.WorkspacePolicy, p.Goals = slices.Clone(p.Env), slices.Clone(p.WorkspacePolicy), slices.Clone(p.Goals)
	return p
}

// SourceTypes and Visibilities are all that workspaces have, in the contract's order.
var (
	SourceTypes  = []string{"local_path", "git_repo", "remote_managed", "non_git_path"}
	Visibilities = []string{"default", "advanced"}
)

var (
	ProjectTable = core.Owned(ledger.NewTable[Project]("project"))
)

const (
	// MaxProjects bounds the projects of a company: lists show all of them.
	MaxProjects = 2_000
	// MaxProjectGoals bounds the goals of one project, MaxWorkspaces its workspaces.
	MaxProjectGoals = 50
	MaxWorkspaces   = 100
)

// SaveProject is the payload of project.create, and of project.update, where a
// nil field keeps what is there and an empty one clears it.
type SaveProject struct {
	ID              string          `cbor:"1,keyasint"`
	Name            *string         `cbor:"2,keyasint,omitempty"`
	Description     *string         `cbor:"3,keyasint,omitempty"`
	Status          *ProjectStatus  `cbor:"4,keyasint,omitempty"`
	Lead            *string         `cbor:"5,keyasint,omitempty"`
	TargetDate      *string         `cbor:"6,keyasint,omitempty"`
	Color           *string         `cbor:"7,keyasint,omitempty"`
	Icon            *string         `cbor:"8,keyasint,omitempty"`
	Env             json.RawMessage `cbor:"9,keyasint,omitempty"`
	WorkspacePolicy json.RawMessage `cbor:"10,keyasint,omitempty"`
	ArchivedAt      *core.Time      `cbor:"11,keyasint,omitempty"`
	Goals           *[]string       `cbor:"12,keyasint,omitempty"`
	Workspace       *SaveWorkspace  `cbor:"13,keyasint,omitempty"` // made with the project
	More            []SaveWorkspace `cbor:"14,keyasint,omitempty"` // made with it after that
}

// DeleteProject is the payload of project.delete, DeleteWorkspace that of
// workspace.delete.
type DeleteProject struct {
	ID string `cbor:"1,keyasint"`
}

const (
	KindProjectCreate   = "project.create"
	KindProjectUpdate   = "project.update"
	KindProjectDelete   = "project.delete"
	KindWorkspaceCreate = "workspace.create"
	KindWorkspaceUpdate = "workspace.update"
	KindWorkspaceDelete = "workspace.delete"
)

var projectKinds = []Kind{
	{Name: KindProjectCreate, From: FromBoard | FromAgent, Traits: Importable, Do: ledger.Typed(createProject)},
	{Name: KindProjectUpdate, From: FromBoard | FromAgent, Traits: Importable, Do: ledger.Typed(updateProject)},
	{Name: KindProjectDelete, From: FromBoard, Do: ledger.Typed(deleteProject)},
}

// ProjectOf returns a project of company.
func ProjectOf(tx *ledger.Tx, company, id string) (Project, bool) {
	return ProjectTable.Get(tx, company, id)
}

// ProjectByRef finds a project by ID, or by urlKey within company.
func ProjectByRef(tx *ledger.Tx, company, ref string) (Project, error) {
	if id := strings.ToLower(ref); core.IsID(id) {
		if p, ok := ProjectTable.Get(tx, core.OwnerOf(tx, id), id); ok {
			return p, nil
		}
		return Project{}, ErrNoProject()
	}
	found := Project{}
	if company != "" {
		for _, p := range ProjectTable.All(tx, company) {
			if core.URLKey(p.Name) != core.URLKey(ref) {
				continue
			}
			if found.ID != "" {
				return Project{}, ledger.Refuse(ledger.Conflict, nil, "Project shortname is ambiguous in this company. Use the project ID.")
			}
			found = p
		}
	}
	if found.ID == "" {
		return Project{}, ErrNoProject()
	}
	return found, nil
}

// ProjectsOf returns the projects of company, oldest first.
func ProjectsOf(tx *ledger.Tx, company string) []Project {
	out := []Project{}
	for _, p := range ProjectTable.All(tx, company) {
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b Project) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	return out
}

// CountProjectIssues returns how many issues belong to a project.
func CountProjectIssues(tx *ledger.Tx, company, project string) (n int) {
	for range IssuesByProject.IDs(tx, company, project, false) {
		n++
	}
	return n
}

func ErrNoProject() error { return ledger.Refuse(ledger.NotFound, nil, "Project not found") }

func (p Project) with(s SaveProject) (Project, error) {
	core.Assign(&p.Name, s.Name)
	core.AssignText(&p.Description, s.Description)
	core.Assign(&p.Status, s.Status)
	core.AssignText(&p.Lead, s.Lead)
	core.AssignText(&p.TargetDate, s.TargetDate)
	core.AssignText(&p.Color, s.Color)
	core.AssignText(&p.Icon, s.Icon)
	core.Assign(&p.ArchivedAt, s.ArchivedAt)
	if s.Goals != nil {
		p.Goals = core.Unique(*s.Goals)
		p.Goal = firstOf(p.Goals)
	}
	env, err := core.CheckObject("env", s.Env, MaxConfig)
	if err != nil {
		return p, err
	}
	if len(s.Env) > 0 {
		// Hidden values are compared under the name env, as they were shown.
		p.Env = conceal.KeepHidden(env, p.Env)
	}
	policy, err := core.CheckObject("executionWorkspacePolicy", s.WorkspacePolicy, MaxConfig)
	if err != nil {
		return p, err
	}
	if len(s.WorkspacePolicy) > 0 {
		p.WorkspacePolicy = policy
	}
	return p, nil
}

func (p Project) check(tx *ledger.Tx) error {
	switch {
	case strings.TrimSpace(p.Name) == "":
		return ledger.Refuse(ledger.Invalid, nil, "A project needs a name")
	case len(p.Name) > MaxName || len(p.Description) > MaxText || len(p.Color) > 50 || len(p.Icon) > MaxName:
		return ledger.Refuse(ledger.TooLarge, nil, "The project's text is too long")
	case !slices.Contains(ProjectStatuses, p.Status):
		return ledger.Refuse(ledger.Invalid, nil, "Unknown project status: %s", p.Status)
	case p.Lead != "" && !AgentExists(tx, p.Company, string(p.Lead)):
		return ledger.Refuse(ledger.NotFound, nil, "Agent not found")
	case len(p.Goals) > MaxProjectGoals:
		return ledger.Refuse(ledger.Unprocessable, nil, "A project can have at most %d goals", MaxProjectGoals)
	}
	if p.TargetDate != "" {
		if _, err := time.Parse(time.DateOnly, string(p.TargetDate)); err != nil {
			return ledger.Refuse(ledger.Invalid, nil, "targetDate is not a date such as 2026-12-31")
		}
	}
	for _, g := range p.Goals {
		if !GoalExists(tx, p.Company, g) {
			return ledger.Refuse(ledger.NotFound, nil, "Goal not found")
		}
	}
	return nil
}

// DefaultWorkspace is the workspace that the project's policy gives to its issues, "" for none.
func (p Project) DefaultWorkspace() string {
	var policy struct {
		ID string `json:"defaultProjectWorkspaceId"`
	}
	_ = json.Unmarshal(p.WorkspacePolicy, &policy) // what does not fit counts as not said
	return policy.ID
}

func createProject(c *ledger.Context, s SaveProject) (any, error) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	if err := core.CheckNewID(c.Tx, s.ID); err != nil {
		return nil, err
	}
	p, err := Project{ID: s.ID, Company: company, Status: "backlog", CreatedAt: now, UpdatedAt: now}.with(s)
	if err != nil {
		return nil, err
	}
	if p.Env, err = Ask.BindEnv(c.Tx, company, p.Env, nil); err != nil {
		return nil, err
	}
	if err := p.check(c.Tx); err != nil {
		return nil, err
	}
	if err := core.HasRoom(ProjectTable.All(c.Tx, company), MaxProjects, "projects"); err != nil {
		return nil, err
	}
	if err := Ask.CheckProject(c, Project{}, p); err != nil {
		return nil, err
	}
	ProjectTable.Put(c.Tx, company, p.ID, p)
	workspace, err := Ask.Places.Equip(c, p, s)
	if err != nil {
		return nil, err
	}
	c.Record(ledger.Change{Action: "project.created", EntityType: "project", EntityID: p.ID,
		Details: core.Object{}.Null("icon", string(p.Icon)).Str("name", p.Name).List("envKeys", envKeys(p.Env)).
			Null("description", core.Snippet(string(p.Description), 500)).Null("workspaceId", workspace).Close()})
	return ProjectRef{p.ID}, nil
}

// A ProjectRef is what commands about a project return: whose row to read.
type ProjectRef struct {
	ID string `cbor:"1,keyasint"`
}

// envKeys returns the names of variables, without their values.
func envKeys(env json.RawMessage) []string {
	v, _ := core.ParseJSON(env)
	m, _ := v.(map[string]any)
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func updateProject(c *ledger.Context, s SaveProject) (any, error) {
	old, ok := ProjectTable.Get(c.Tx, c.Cmd.Company, s.ID)
	if !ok {
		return nil, ErrNoProject()
	}
	p, err := old.with(s)
	if err != nil {
		return nil, err
	}
	if len(s.Env) > 0 {
		if p.Env, err = Ask.BindEnv(c.Tx, p.Company, p.Env, old.Env); err != nil {
			return nil, err
		}
	}
	p.UpdatedAt = core.TimeOf(c.Now)
	if err := p.check(c.Tx); err != nil {
		return nil, err
	}
	if err := Ask.CheckProject(c, old, p); err != nil {
		return nil, err
	}
	ProjectTable.Put(c.Tx, p.Company, p.ID, p)
	c.Record(ledger.Change{Action: "project.updated", EntityType: "project", EntityID: p.ID, Details: core.Object{}.List("changedKeys", s.keys()).Close()})
	return ProjectRef{p.ID}, nil
}

func (s SaveProject) keys() []string {
	keys := []string{}
	for _, k := range []struct {
		name string
		set  bool
	}{
		{"name", s.Name != nil}, {"description", s.Description != nil}, {"status", s.Status != nil}, {"leadAgentId", s.Lead != nil},
		{"targetDate", s.TargetDate != nil}, {"color", s.Color != nil}, {"icon", s.Icon != nil}, {"env", len(s.Env) > 0},
		{"executionWorkspacePolicy", len(s.WorkspacePolicy) > 0}, {"archivedAt", s.ArchivedAt != nil}, {"goalIds", s.Goals != nil},
	} {
		if k.set {
			keys = append(keys, k.name)
		}
	}
	return keys
}

// deleteProject removes a project and its workspaces. One that has issues is
// archived instead, by the board.
func deleteProject(c *ledger.Context, s DeleteProject) (any, error) {
	p, ok := ProjectTable.Get(c.Tx, c.Cmd.Company, s.ID)
	if !ok {
		return nil, ErrNoProject()
	}
	n := 0
	for i := range IssuesIn(c.Tx, p.Company, IssuesByProject.IDs(c.Tx, p.Company, p.ID, false)) {
		if n++; n > orphanLimit {
			return nil, ledger.Refuse(ledger.Conflict, nil, "More than %d issues belong to this project; move them first", orphanLimit)
		}
		next := i
		next.Project, next.Workspace = "", ""
		StoreIssue(c.Tx, i, next)
	}
	projectDeleted(c, p)
	unplanned(c, p.ID, "")
	ProjectTable.Delete(c.Tx, p.Company, p.ID)
	c.Record(ledger.Change{Action: "project.deleted", EntityType: "project", EntityID: p.ID, Details: core.Object{}.Str("name", p.Name).Close()})
	return nil, nil
}

// SaveWorkspace is the payload of workspace.create, and of workspace.update,
// where a nil field keeps what is there and an empty one clears it.
type SaveWorkspace struct {
	ID             string          `cbor:"1,keyasint"`
	Project        string          `cbor:"2,keyasint"`
	Name           *string         `cbor:"3,keyasint,omitempty"`
	SourceType     *string         `cbor:"4,keyasint,omitempty"`
	Cwd            *string         `cbor:"5,keyasint,omitempty"`
	RepoURL        *string         `cbor:"6,keyasint,omitempty"`
	RepoRef        *string         `cbor:"7,keyasint,omitempty"`
	DefaultRef     *string         `cbor:"8,keyasint,omitempty"`
	Visibility     *string         `cbor:"9,keyasint,omitempty"`
	SetupCommand   *string         `cbor:"10,keyasint,omitempty"`
	CleanupCommand *string         `cbor:"11,keyasint,omitempty"`
	RemoteProvider *string         `cbor:"12,keyasint,omitempty"`
	RemoteRef      *string         `cbor:"13,keyasint,omitempty"`
	SharedKey      *string         `cbor:"14,keyasint,omitempty"`
	Metadata       json.RawMessage `cbor:"15,keyasint,omitempty"`
	RuntimeConfig  json.RawMessage `cbor:"16,keyasint,omitempty"`
	Primary        *bool           `cbor:"17,keyasint,omitempty"`
}
