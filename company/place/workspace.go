package place

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Workspace is where a project's files are: a folder, or a repository.
type Workspace struct {
	ID              string           `cbor:"1,keyasint" json:"id"`
	Company         ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Project         string           `cbor:"3,keyasint" json:"projectId"`
	Name            string           `cbor:"4,keyasint" json:"name"`
	SourceType      string           `cbor:"5,keyasint" json:"sourceType"`
	Cwd             core.NullText    `cbor:"6,keyasint,omitempty" json:"cwd"`
	RepoURL         core.NullText    `cbor:"7,keyasint,omitempty" json:"repoUrl"`
	RepoRef         core.NullText    `cbor:"8,keyasint,omitempty" json:"repoRef"`
	DefaultRef      core.NullText    `cbor:"9,keyasint,omitempty" json:"defaultRef"`
	Visibility      string           `cbor:"10,keyasint" json:"visibility"`
	SetupCommand    core.NullText    `cbor:"11,keyasint,omitempty" json:"setupCommand"`
	CleanupCommand  core.NullText    `cbor:"12,keyasint,omitempty" json:"cleanupCommand"`
	RemoteProvider  core.NullText    `cbor:"13,keyasint,omitempty" json:"remoteProvider"`
	RemoteRef       core.NullText    `cbor:"14,keyasint,omitempty" json:"remoteWorkspaceRef"`
	SharedKey       core.NullText    `cbor:"15,keyasint,omitempty" json:"sharedWorkspaceKey"`
	Metadata        json.RawMessage  `cbor:"16,keyasint,omitempty" json:"metadata"`
	RuntimeConfig   json.RawMessage  `cbor:"17,keyasint,omitempty" json:"runtimeConfig"`
	Primary         bool             `cbor:"18,keyasint,omitempty" json:"isPrimary"`
	RuntimeServices []RuntimeService `cbor:"-" json:"runtimeServices"` // set only when a workspace is shown
	CreatedAt       core.Time        `cbor:"20,keyasint" json:"createdAt"`
	UpdatedAt       core.Time        `cbor:"21,keyasint" json:"updatedAt"`
}

// DeleteWorkspace is the payload of workspace.delete.
type DeleteWorkspace struct {
	ID      string `cbor:"1,keyasint"`
	Project string `cbor:"2,keyasint"`
}

// toldPlace bounds the folder and the name of a workspace in the activity log, in bytes.
// JSON may need six bytes for each, and the lines of one entry have 16 KiB in all.
const toldPlace = 1_000

// WorkspacesOf returns the workspaces of a project: the primary one first, the others by age.
func WorkspacesOf(tx *ledger.Tx, company ledger.CompanyID, project string) []Workspace {
	out := []Workspace{}
	for id := range workspacesProject.IDs(tx, company, project, false) {
		if w, ok := Workspaces.Get(tx, company, id); ok {
			w.RuntimeServices = ServicesOf(tx, company, w.ID)
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b Workspace) int {
		if a.Primary != b.Primary {
			if a.Primary {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.CreatedAt, b.CreatedAt)
	})
	return out
}

func workspaceExists(tx *ledger.Tx, company ledger.CompanyID, id string) bool {
	return tx.Has(Workspaces.Key(company, id))
}

func errNoWorkspace() error {
	return ledger.Refuse(ledger.NotFound, nil, "Project workspace not found")
}

func (w Workspace) with(s entity.SaveWorkspace) (Workspace, error) {
	core.Assign(&w.Name, s.Name)
	core.Assign(&w.SourceType, s.SourceType)
	core.AssignText(&w.Cwd, s.Cwd)
	core.AssignText(&w.RepoURL, s.RepoURL)
	core.AssignText(&w.RepoRef, s.RepoRef)
	core.AssignText(&w.DefaultRef, s.DefaultRef)
	core.Assign(&w.Visibility, s.Visibility)
	core.AssignText(&w.SetupCommand, s.SetupCommand)
	core.AssignText(&w.CleanupCommand, s.CleanupCommand)
	core.AssignText(&w.RemoteProvider, s.RemoteProvider)
	core.AssignText(&w.RemoteRef, s.RemoteRef)
	core.AssignText(&w.SharedKey, s.SharedKey)
	for _, f := range []struct {
		name string
		from json.RawMessage
		to   *json.RawMessage
	}{{"metadata", s.Metadata, &w.Metadata}, {"runtimeConfig", s.RuntimeConfig, &w.RuntimeConfig}} {
		v, err := core.CheckObject(f.name, f.from, entity.MaxConfig)
		if err != nil {
			return w, err
		}
		if len(f.from) > 0 {
			*f.to = v
		}
	}
	if w.SourceType == "" {
		w.SourceType = "local_path"
		if w.Cwd == "" && w.RepoURL != "" {
			w.SourceType = "git_repo"
		}
	}
	if w.Name == "" {
		w.Name = w.defaultName()
	}
	return w, nil
}

func (w Workspace) defaultName() string {
	place := string(w.Cwd)
	if place == "" {
		place = strings.TrimSuffix(string(w.RepoURL), ".git")
	}
	place = strings.TrimRight(place, "/")
	if name := place[strings.LastIndexByte(place, '/')+1:]; name != "" {
		return name
	}
	return "workspace"
}

func (w Workspace) check() error {
	switch {
	case w.Cwd == "" && w.RepoURL == "" && w.RemoteRef == "":
		return ledger.Refuse(ledger.Invalid, nil, "A workspace needs cwd, repoUrl or remoteWorkspaceRef")
	case !slices.Contains(entity.SourceTypes, w.SourceType):
		return ledger.Refuse(ledger.Invalid, nil, "Unknown source type: %s", w.SourceType)
	case !slices.Contains(entity.Visibilities, w.Visibility):
		return ledger.Refuse(ledger.Invalid, nil, "Unknown visibility: %s", w.Visibility)
	}
	for _, text := range []string{w.Name, string(w.Cwd), string(w.RepoURL), string(w.RepoRef), string(w.DefaultRef),
		string(w.RemoteProvider), string(w.RemoteRef),
		string(w.SharedKey), string(w.SetupCommand), string(w.CleanupCommand)} {
		if len(text) > entity.MaxDescriptor {
			return ledger.Refuse(ledger.TooLarge, nil, "A text of the workspace is longer than %d bytes", entity.MaxDescriptor)
		}
	}
	return nil
}

// addWorkspace stores a new workspace. The first one of a project becomes the primary one.
func addWorkspace(c *ledger.Context, s entity.SaveWorkspace) (Workspace, error) {
	of, now := c.Cmd.Company, core.TimeOf(c.Now)
	p, ok := entity.ProjectTable.Get(c.Tx, of, s.Project)
	if !ok {
		return Workspace{}, entity.ErrNoProject()
	}
	if err := core.CheckNewID(c.Tx, s.ID); err != nil {
		return Workspace{}, err
	}
	w, err := Workspace{ID: s.ID, Company: of, Project: p.ID, Visibility: "default", CreatedAt: now,
		UpdatedAt: now}.with(s)
	if err != nil {
		return w, err
	}
	if err := w.check(); err != nil {
		return w, err
	}
	if w.commands() != (Workspace{}).commands() {
		if _, err := DeclaredCommands(w.runtime().Services); err != nil {
			return w, err
		}
		if err := mayDefineCommands(c); err != nil {
			return w, err
		}
	}
	if len(WorkspacesOf(c.Tx, of, p.ID)) >= entity.MaxWorkspaces {
		return w, ledger.Refuse(ledger.Conflict, nil, "A project has at most %d workspaces", entity.MaxWorkspaces)
	}
	w.Primary = p.Workspace == "" || s.Primary != nil && *s.Primary
	if w.Primary {
		makePrimary(c, p, w.ID)
	}
	Workspaces.Put(c.Tx, of, w.ID, w)
	return w, nil
}

// makePrimary makes a workspace the primary one of its project, instead of the one before.
func makePrimary(c *ledger.Context, p entity.Project, id string) {
	if old, ok := Workspaces.Get(c.Tx, p.Company, p.Workspace); ok && old.ID != id {
		old.Primary, old.UpdatedAt = false, core.TimeOf(c.Now)
		Workspaces.Put(c.Tx, p.Company, old.ID, old)
	}
	p.Workspace = id
	entity.ProjectTable.Put(c.Tx, p.Company, p.ID, p)
}

func createWorkspace(c *ledger.Context, s entity.SaveWorkspace) (any, error) {
	w, err := addWorkspace(c, s)
	if err != nil {
		return nil, err
	}
	c.Record(ledger.Change{Action: "project.workspace_created", EntityType: "project", EntityID: w.Project,
		Details: core.Object{}.Null("cwd", core.Snippet(string(w.Cwd), toldPlace)).
			Str("name", core.Snippet(w.Name, toldPlace)).Bool("isPrimary", w.Primary).Str("workspaceId", w.ID).Close()})
	return w, nil
}

func workspaceOf(c *ledger.Context, project, id string) (Workspace, entity.Project, error) {
	p, ok := entity.ProjectTable.Get(c.Tx, c.Cmd.Company, project)
	if !ok {
		return Workspace{}, p, entity.ErrNoProject()
	}
	w, ok := Workspaces.Get(c.Tx, c.Cmd.Company, id)
	if !ok || w.Project != project {
		return w, p, errNoWorkspace()
	}
	return w, p, nil
}

func updateWorkspace(c *ledger.Context, s entity.SaveWorkspace) (any, error) {
	w, p, err := workspaceOf(c, s.Project, s.ID)
	if err != nil {
		return nil, err
	}
	before := w.commands()
	if w, err = w.with(s); err != nil {
		return nil, err
	}
	if w.commands() != before {
		if _, err := DeclaredCommands(w.runtime().Services); err != nil {
			return nil, err
		}
		if err := mayDefineCommands(c); err != nil {
			return nil, err
		}
	}
	w.UpdatedAt = core.TimeOf(c.Now)
	if err := w.check(); err != nil {
		return nil, err
	}
	if s.Primary != nil && *s.Primary && !w.Primary {
		w.Primary = true
		makePrimary(c, p, w.ID)
	}
	Workspaces.Put(c.Tx, w.Company, w.ID, w)
	c.Record(ledger.Change{Action: "project.workspace_updated", EntityType: "project", EntityID: p.ID,
		Details: core.Object{}.Str("workspaceId", w.ID).Close()})
	return w, nil
}

func deleteWorkspace(c *ledger.Context, s DeleteWorkspace) (any, error) {
	w, p, err := workspaceOf(c, s.Project, s.ID)
	if err != nil {
		return nil, err
	}
	dropWorkspace(c.Tx, w)
	if w.Primary {
		p.Workspace = ""
		if left := WorkspacesOf(c.Tx, p.Company, p.ID); len(left) > 0 {
			left[0].Primary = true
			Workspaces.Put(c.Tx, p.Company, left[0].ID, left[0])
			p.Workspace = left[0].ID
		}
		entity.ProjectTable.Put(c.Tx, p.Company, p.ID, p)
	}
	c.Record(ledger.Change{Action: "project.workspace_deleted", EntityType: "project", EntityID: p.ID,
		Details: core.Object{}.Str("name", core.Snippet(w.Name, toldPlace)).Str("workspaceId", w.ID).Close()})
	return w, nil
}

// ProjectWorkspaceOf returns a workspace of a project.
func ProjectWorkspaceOf(tx *ledger.Tx, company ledger.CompanyID, id string) (Workspace, bool) {
	return Workspaces.Get(tx, company, id)
}

// Services returns what the workspace declares to be executed outside runs.
func (w Workspace) Services() Lifecycle {
	r := w.runtime()
	return Lifecycle{Runtime: r.Services, Desired: r.Desired, States: r.States}
}

func dropWorkspace(tx *ledger.Tx, w Workspace) {
	Workspaces.Delete(tx, w.Company, w.ID)
	dropServices(tx, w.Company, w.ID)
	if len(OperationsOf(tx, w.Company, w.ID)) > 0 {
		tx.Set(company.ThreadKey(w.Company, w.ID), nil)
	}
}

// mayDefineCommands rejects actors who may not decide what nodes execute: agents, and
// members without the permission to manage workspaces.
func mayDefineCommands(c *ledger.Context) error {
	if core.IsAgent(c) {
		return ledger.Refuse(ledger.Forbidden, nil, "Agents may not define what a node executes; ask the board")
	}
	if c.Cmd.Actor.Type != "user" || c.Cmd.Credential.Kind == "local" || c.Cmd.Credential.Kind == "" {
		return nil
	}
	if !company.Ask.Permitted(c.Tx, c.Cmd.Company, c.Cmd.Actor.ID, entity.ManageSpaces) {
		return ledger.Refuse(ledger.Forbidden, nil, "Missing permission: %s", entity.ManageSpaces)
	}
	return nil
}

// policyCommands returns the parts of a project's policy that a node would execute.
func policyCommands(policy json.RawMessage) string {
	v, _ := core.ParseJSON(policy)
	m, _ := v.(map[string]any)
	out := map[string]any{"runtime": m["workspaceRuntime"]}
	if s, ok := m["workspaceStrategy"].(map[string]any); ok {
		for _, k := range []string{"provisionCommand", "runtimeProvisionCommand", "teardownCommand"} {
			out[k] = s[k]
		}
	}
	for k, v := range out {
		if v == nil || v == "" {
			delete(out, k)
		}
	}
	return string(core.FormatJSON(out))
}

// commands returns the parts of a project's workspace that a node would execute.
func (w Workspace) commands() string {
	v, _ := core.ParseJSON(w.RuntimeConfig)
	m, _ := v.(map[string]any)
	return string(core.FormatJSON([]any{string(w.SetupCommand), string(w.CleanupCommand), m["workspaceRuntime"]}))
}

var (
	workspacesProject = ledger.NewIndex[string, string]("workspace-project")
	Workspaces        = core.Owned(ledger.NewTable[string, Workspace]("workspace").
				Beside(ledger.Indexed(workspacesProject, func(w *Workspace) string { return w.Project })))
)

var workspaceKinds = []company.Kind{
	{Name: company.KindWorkspaceCreate, From: company.FromBoard | company.FromAgent, Traits: company.Importable,
		Weight: company.Weights.SetUp, Do: ledger.Typed(createWorkspace)},
	{Name: company.KindWorkspaceUpdate, From: company.FromBoard | company.FromAgent, Weight: company.Weights.SetUp,
		Do: ledger.Typed(updateWorkspace)},
	{Name: company.KindWorkspaceDelete, From: company.FromBoard, Weight: company.Weights.Erase,
		Do: ledger.Typed(deleteWorkspace)},
}

// checkPlace rejects a workspace of another project than the issue's.
func checkPlace(i entity.Issue, tx *ledger.Tx) error {
	if i.Workspace == "" || i.Project == "" {
		return nil
	}
	if w, ok := Workspaces.Get(tx, i.Company, i.Workspace); ok && w.Project != i.Project {
		return ledger.Refuse(ledger.Unprocessable, core.Object{}.Str("projectId", i.Project).Str("projectWorkspaceId", w.ID).
			Str("workspaceProjectId", w.Project).Close(),
			"Project workspace must belong to the selected project")
	}
	return nil
}

// checkPolicy rejects a policy whose default workspace is not one of the project's; a new
// project has none yet. A workspace that the old policy named may be deleted.
func checkPolicy(p entity.Project, tx *ledger.Tx, before entity.Project) error {
	id := p.DefaultWorkspace()
	if id == "" || id == before.DefaultWorkspace() {
		return nil
	}
	if w, ok := Workspaces.Get(tx, p.Company, id); !ok || w.Project != p.ID {
		return ledger.Refuse(ledger.NotFound, nil,
			"executionWorkspacePolicy.defaultProjectWorkspaceId: the project has no such workspace")
	}
	return nil
}
