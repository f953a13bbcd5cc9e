package entity

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A ProjectStatus is the progress of a project. Persisted: do not rename.
type ProjectStatus string

// ProjectStatuses are all there are, in the contract's order.
var ProjectStatuses = []ProjectStatus{"backlog", "planned", "in_progress", "completed", "cancelled"}

// A Project groups issues that serve a goal. Its env may hold secrets; JSON of the row
// leaves it out.
type Project struct {
	ID              string           `cbor:"1,keyasint" json:"id"`
	Company         ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Goal            string           `cbor:"3,keyasint,omitempty" json:"-"` // the first of Goals
	Name            string           `cbor:"4,keyasint" json:"name"`
	Description     core.NullText    `cbor:"5,keyasint,omitempty" json:"description"`
	Status          ProjectStatus    `cbor:"6,keyasint" json:"status"`
	Lead            core.NullText    `cbor:"7,keyasint,omitempty" json:"leadAgentId"`
	TargetDate      core.NullText    `cbor:"8,keyasint,omitempty" json:"targetDate"` // 2006-01-02
	Color           core.NullText    `cbor:"9,keyasint,omitempty" json:"color"`
	Icon            core.NullText    `cbor:"10,keyasint,omitempty" json:"icon"`
	Env             json.RawMessage  `cbor:"11,keyasint,omitempty" json:"-"`
	PauseReason     core.NullText    `cbor:"12,keyasint,omitempty" json:"pauseReason"`
	PausedAt        core.Time        `cbor:"13,keyasint,omitempty" json:"pausedAt"`
	WorkspacePolicy json.RawMessage  `cbor:"14,keyasint,omitempty" json:"executionWorkspacePolicy"`
	ArchivedAt      core.Time        `cbor:"15,keyasint,omitempty" json:"archivedAt"`
	CreatedAt       core.Time        `cbor:"16,keyasint" json:"createdAt"`
	UpdatedAt       core.Time        `cbor:"17,keyasint" json:"updatedAt"`
	Goals           []string         `cbor:"18,keyasint,omitempty" json:"-"`
	Workspace       string           `cbor:"19,keyasint,omitempty" json:"-"` // the primary one
}

// Clone returns a copy that shares no memory with p, as the ledger's cache of
// decoded rows needs it.
func (p Project) Clone() Project {
	p.Env, p.WorkspacePolicy, p.Goals = slices.Clone(p.Env), slices.Clone(p.WorkspacePolicy), slices.Clone(p.Goals)
	return p
}

// SourceTypes and Visibilities list all values of workspaces, in the contract's order.
var (
	SourceTypes  = []string{"local_path", "git_repo", "remote_managed", "non_git_path"}
	Visibilities = []string{"default", "advanced"}
)

var (
	ProjectTable = core.Owned(ledger.NewTable[string, Project]("project"))
)

const (
	MaxWorkspaces = 100
)

// SaveProject is the payload of project.create and project.update. In an update nil keeps a
// field and an empty value clears it.
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
	Workspace       *SaveWorkspace  `cbor:"13,keyasint,omitempty"` // created with the project
	More            []SaveWorkspace `cbor:"14,keyasint,omitempty"` // further ones
}

// ProjectOf returns a project of company.
func ProjectOf(tx *ledger.Tx, company ledger.CompanyID, id string) (Project, bool) {
	return ProjectTable.Get(tx, company, id)
}

// ProjectByRef finds a project by ID, or by urlKey within company.
func ProjectByRef(tx *ledger.Tx, company ledger.CompanyID, ref string) (Project, error) {
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
				return Project{}, ledger.Refuse(ledger.Conflict, nil,
					"Project shortname is ambiguous in this company. Use the project ID.")
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
func ProjectsOf(tx *ledger.Tx, company ledger.CompanyID) []Project {
	out := []Project{}
	for _, p := range ProjectTable.All(tx, company) {
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b Project) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	return out
}

// CountProjectIssues returns how many issues belong to a project.
func CountProjectIssues(tx *ledger.Tx, company ledger.CompanyID, project string) (n int) {
	for range IssuesByProject.IDs(tx, company, project, false) {
		n++
	}
	return n
}

func ErrNoProject() error { return ledger.Refuse(ledger.NotFound, nil, "Project not found") }

func (p Project) With(s SaveProject) (Project, error) {
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
		p.Goal = FirstOf(p.Goals)
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

// DefaultWorkspace returns the workspace that the project's policy gives to its issues, "" for none.
func (p Project) DefaultWorkspace() string {
	var policy struct {
		ID string `json:"defaultProjectWorkspaceId"`
	}
	_ = json.Unmarshal(p.WorkspacePolicy, &policy) // a malformed policy counts as none
	return policy.ID
}

func (s SaveProject) Keys() []string {
	keys := []string{}
	for _, k := range []struct {
		name string
		set  bool
	}{
		{"name", s.Name != nil}, {"description", s.Description != nil}, {"status", s.Status != nil},
		{"leadAgentId", s.Lead != nil},
		{"targetDate", s.TargetDate != nil}, {"color", s.Color != nil}, {"icon", s.Icon != nil}, {"env", len(s.Env) > 0},
		{"executionWorkspacePolicy", len(s.WorkspacePolicy) > 0}, {"archivedAt", s.ArchivedAt != nil},
		{"goalIds", s.Goals != nil},
	} {
		if k.set {
			keys = append(keys, k.name)
		}
	}
	return keys
}

// SaveWorkspace is the payload of workspace.create and workspace.update. In an update nil
// keeps a field and an empty value clears it.
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

// Sealed seals the variables of a project.
func (s SaveProject) Sealed(seal conceal.SealFunc) (any, error) {
	var err error
	s.Env, err = conceal.SealEnv(s.Env, s.ID, seal)
	return s, err
}
