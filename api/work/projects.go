package work

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/ledger"
)

// newProject is the body that creates a project.
type newProject struct {
	Name            string                   `json:"name" minLength:"1" maxLength:"500" maxBytes:"500"`
	Description     api.Opt[string]          `json:"description" maxLength:"200000" maxBytes:"200000"`
	Status          string                   `json:"status,omitempty" enum:"backlog,planned,in_progress,completed,cancelled"`
	GoalID          api.Opt[string]          `json:"goalId" format:"uuid"`
	GoalIDs         []string                 `json:"goalIds,omitempty" format:"uuid" maxItems:"50"`
	LeadAgentID     api.Opt[string]          `json:"leadAgentId" format:"uuid"`
	TargetDate      api.Opt[string]          `json:"targetDate" maxLength:"40"`
	Color           api.Opt[string]          `json:"color" maxLength:"50" maxBytes:"50"`
	Icon            api.Opt[string]          `json:"icon" maxLength:"100"`
	Env             api.Opt[json.RawMessage] `json:"env" maxBytes:"65536"`
	WorkspacePolicy api.Opt[json.RawMessage] `json:"executionWorkspacePolicy" maxBytes:"65536"`
	ArchivedAt      api.Opt[core.Time]       `json:"archivedAt" format:"date-time"`
	Workspace       *newWorkspace            `json:"workspace,omitempty"`
	RepositoryURLs  []string                 `json:"repositoryUrls,omitempty" format:"uri" maxLength:"2000" maxItems:"50" doc:"instead of workspace: one workspace for each; the first is the primary one"`
	RepositoryIDs   []string                 `json:"repositoryIds,omitempty" maxItems:"50" doc:"of a connection to GitHub, which there is not here: refused, see repositoryUrls"`
}

// patchProject is the body that changes a project.
type patchProject struct {
	Name            *string                  `json:"name,omitempty" minLength:"1" maxLength:"500" maxBytes:"500" nullable:"false"`
	Description     api.Opt[string]          `json:"description" maxLength:"200000" maxBytes:"200000"`
	Status          string                   `json:"status,omitempty" enum:"backlog,planned,in_progress,completed,cancelled"`
	GoalID          api.Opt[string]          `json:"goalId" format:"uuid"`
	GoalIDs         *[]string                `json:"goalIds,omitempty" format:"uuid" maxItems:"50" nullable:"false"`
	LeadAgentID     api.Opt[string]          `json:"leadAgentId" format:"uuid"`
	TargetDate      api.Opt[string]          `json:"targetDate" maxLength:"40"`
	Color           api.Opt[string]          `json:"color" maxLength:"50" maxBytes:"50"`
	Icon            api.Opt[string]          `json:"icon" maxLength:"100"`
	Env             api.Opt[json.RawMessage] `json:"env" maxBytes:"65536"`
	WorkspacePolicy api.Opt[json.RawMessage] `json:"executionWorkspacePolicy" maxBytes:"65536"`
	ArchivedAt      api.Opt[core.Time]       `json:"archivedAt" format:"date-time"`
}

// newWorkspace is the body that adds a workspace to a project, or changes one.
type newWorkspace struct {
	Name           *string                  `json:"name,omitempty" minLength:"1" maxLength:"500" nullable:"false"`
	SourceType     string                   `json:"sourceType,omitempty" enum:"local_path,git_repo,remote_managed,non_git_path"`
	Cwd            api.Opt[string]          `json:"cwd" minLength:"1" maxLength:"4096" maxBytes:"4096"`
	RepoURL        api.Opt[string]          `json:"repoUrl" maxLength:"4096"`
	RepoRef        api.Opt[string]          `json:"repoRef" maxLength:"500"`
	DefaultRef     api.Opt[string]          `json:"defaultRef" maxLength:"500"`
	Visibility     string                   `json:"visibility,omitempty" enum:"default,advanced"`
	SetupCommand   api.Opt[string]          `json:"setupCommand" maxLength:"10000" maxBytes:"16000"`
	CleanupCommand api.Opt[string]          `json:"cleanupCommand" maxLength:"10000" maxBytes:"16000"`
	RemoteProvider api.Opt[string]          `json:"remoteProvider" maxLength:"200"`
	RemoteRef      api.Opt[string]          `json:"remoteWorkspaceRef" maxLength:"500"`
	SharedKey      api.Opt[string]          `json:"sharedWorkspaceKey" maxLength:"500"`
	Metadata       api.Opt[json.RawMessage] `json:"metadata" maxBytes:"65536"`
	RuntimeConfig  api.Opt[json.RawMessage] `json:"runtimeConfig" maxBytes:"65536"`
	Primary        *bool                    `json:"isPrimary,omitempty" nullable:"false"`
}

// A projectRow is a project as answers show it.
type projectRow struct {
	entity.Project
	GoalID           core.NullText     `json:"goalId"`
	Env              json.RawMessage   `json:"env"`
	WorkspacePolicy  json.RawMessage   `json:"executionWorkspacePolicy"`
	URLKey           string            `json:"urlKey"`
	GoalIDs          []string          `json:"goalIds"`
	Goals            []goalTitle       `json:"goals"`
	Codebase         codebase          `json:"codebase"`
	Workspaces       []place.Workspace `json:"workspaces"`
	PrimaryWorkspace *place.Workspace  `json:"primaryWorkspace"`
	ManagedByPlugin  *struct{}         `json:"managedByPlugin"`
}

// A projectInList is a projectRow with the further members of a list.
type projectInList struct {
	projectRow
	TaskCount int               `json:"taskCount"`
	Budget    *projectBudgetRow `json:"budget"`
}

type projectBudgetRow struct {
	Amount core.Money `json:"amountCents"`
	Spent  core.Money `json:"spentCents"`
}

type goalTitle struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

// A codebase says where a project's code is, from its primary workspace.
type codebase struct {
	Workspace       core.NullText `json:"workspaceId"`
	RepoURL         core.NullText `json:"repoUrl"`
	RepoRef         core.NullText `json:"repoRef"`
	DefaultRef      core.NullText `json:"defaultRef"`
	RepoName        core.NullText `json:"repoName"`
	LocalFolder     core.NullText `json:"localFolder"`
	ManagedFolder   string        `json:"managedFolder"` // relative to each node's own directory
	EffectiveFolder string        `json:"effectiveLocalFolder"`
	Origin          string        `json:"origin"`
}

func codebaseOf(p entity.Project, w *place.Workspace) codebase {
	c := codebase{ManagedFolder: path.Join("projects", string(p.Company), p.ID, "_default"), Origin: "managed_checkout"}
	c.EffectiveFolder = c.ManagedFolder
	if w == nil {
		return c
	}
	c.Workspace, c.RepoURL, c.RepoRef, c.DefaultRef = core.NullText(w.ID), w.RepoURL, w.RepoRef, w.DefaultRef
	if w.RepoURL != "" {
		c.RepoName = core.NullText(strings.TrimSuffix(path.Base(string(w.RepoURL)), ".git"))
	}
	if w.Cwd != "" {
		c.LocalFolder, c.EffectiveFolder, c.Origin = w.Cwd, string(w.Cwd), "local_folder"
	}
	return c
}

func showProject(tx *ledger.Tx, p entity.Project) projectRow {
	row := projectRow{Project: p, GoalID: core.NullText(p.Goal), Env: conceal.RedactEnv(p.Env),
		WorkspacePolicy: api.RawJSON(p.WorkspacePolicy),
		URLKey:          core.URLKey(p.Name), GoalIDs: []string{}, Goals: []goalTitle{}, Workspaces: place.WorkspacesOf(tx,
			p.Company, p.ID)}
	for i, w := range row.Workspaces {
		w.Metadata, w.RuntimeConfig = api.ShowObject(w.Metadata), api.ShowObject(w.RuntimeConfig)
		row.Workspaces[i] = w
		if w.Primary {
			row.PrimaryWorkspace = &row.Workspaces[i]
		}
	}
	for _, id := range p.Goals {
		row.GoalIDs = append(row.GoalIDs, id)
		if g, ok := entity.GoalOf(tx, p.Company, id); ok {
			row.Goals = append(row.Goals, goalTitle{g.ID, g.Title})
		}
	}
	row.Codebase = codebaseOf(p, row.PrimaryWorkspace)
	row.Project.Env = nil
	return row
}

func ProjectRoutes() []api.Route {
	const tag, all, one = "projects", "/api/companies/{companyId}/projects", "/api/projects/{id}"
	return []api.Route{
		api.ShowNow(api.Route{Path: all, Tag: tag, Summary: "List projects"}, api.CompanyIn, projectsOf),
		{Method: "POST", Path: all, Tag: tag, Summary: "Create a project", In: newProject{}, Out: projectRow{}, Status: 201,
			Handle: createProject},
		api.Show(api.Route{Path: one, Tag: tag, Summary: "Read a project by ID or name", Query: api.ByName()}, api.ProjectIn,
			showProject),
		{Method: "PATCH", Path: one, Tag: tag, Summary: "Change a project", Query: api.ByName(), In: patchProject{},
			Out: projectRow{}, Handle: updateProject},
		{Method: "DELETE", Path: one, Tag: tag, Summary: "Delete a project", Query: api.ByName(), Who: api.Board,
			Out: projectRow{}, Handle: deleteProject},
		api.Show(api.Route{Path: one + "/workspaces", Tag: tag, Summary: "List a project's workspaces", Query: api.ByName()},
			api.ProjectIn, func(tx *ledger.Tx, p entity.Project) []place.Workspace { return showProject(tx, p).Workspaces }),
		{Method: "POST", Path: one + "/workspaces", Tag: tag, Summary: "Add a workspace", Query: api.ByName(),
			In: newWorkspace{}, Out: place.Workspace{}, Status: 201, Handle: createWorkspace},
		{Method: "PATCH", Path: one + "/workspaces/{workspaceId}", Tag: tag, Summary: "Change a workspace",
			Query: api.ByName(), In: newWorkspace{}, Out: place.Workspace{}, Handle: updateWorkspace},
		{Method: "DELETE", Path: one + "/workspaces/{workspaceId}", Tag: tag, Summary: "Remove a workspace",
			Query: api.ByName(), Who: api.Board, Out: place.Workspace{}, Handle: deleteWorkspace},
	}
}

func findProject(rc *api.Request) (p entity.Project, err error) {
	err = rc.View(func(tx *ledger.Tx) (err error) { p, err = api.ProjectIn(tx, rc); return err })
	return p, err
}

func projectsOf(tx *ledger.Tx, c entity.Company, now core.Time) []projectInList {
	of, out := c.ID, []projectInList{}
	for _, p := range entity.ProjectsOf(tx, of) {
		in := projectInList{projectRow: showProject(tx, p), TaskCount: entity.CountProjectIssues(tx, of, p.ID)}
		b := money.BudgetOf(tx, of, entity.ScopeProject, p.ID, now)
		if policy, ok := b.Policy(money.WindowLifetime); ok && policy.Active {
			in.Budget = &projectBudgetRow{policy.Amount, b.Spent(money.WindowLifetime)}
		}
		out = append(out, in)
	}
	return out
}

// doProject submits a command about a project and answers its row.
func doProject(rc *api.Request, kind string, of ledger.CompanyID, payload any) (r api.Response, err error) {
	ref, err := api.Do[company.ProjectRef](rc, kind, of, payload)
	if err != nil {
		return r, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		p, ok := entity.ProjectOf(tx, of, ref.ID)
		if !ok {
			return api.NotFound("Project not found")
		}
		r = api.OK(showProject(tx, p))
		return nil
	})
	return r, err
}

// goalsOf merges the two ways in which a body can name goals.
func goalsOf(one api.Opt[string], many *[]string) *[]string {
	switch {
	case many != nil:
		return new(api.BodyIDs(*many))
	case !one.Set:
		return nil
	case one.Or("") == "":
		return &[]string{}
	}
	return &[]string{api.BodyID(one)}
}

func createProject(rc *api.Request) (api.Response, error) {
	in, err := api.Body[newProject](rc)
	if err != nil {
		return api.Response{}, err
	}
	if !api.IsUUID(api.CompanyID(rc)) {
		return api.Response{}, api.NotFound("Company not found")
	}
	if err := checkWorkspacePolicy(in.WorkspacePolicy.Or(nil)); err != nil {
		return api.Response{}, err
	}
	many := &in.GoalIDs
	if in.GoalIDs == nil {
		many = nil
	}
	p := entity.SaveProject{ID: api.NewID(), Name: &in.Name, Description: api.TextOf(in.Description),
		Status: api.Given[entity.ProjectStatus](in.Status),
		Lead:   api.IdPointer(in.LeadAgentID), TargetDate: api.TextOf(in.TargetDate), Color: api.TextOf(in.Color),
		Icon: api.TextOf(in.Icon), Env: in.Env.Or(nil),
		WorkspacePolicy: in.WorkspacePolicy.Or(nil), ArchivedAt: in.ArchivedAt.Pointer(), Goals: goalsOf(in.GoalID, many)}
	if in.Workspace != nil {
		p.Workspace = new(in.Workspace.command(api.NewID(), p.ID))
	}
	switch {
	case len(in.RepositoryIDs) > 0:
		return api.Response{}, api.Unprocessable("repositoryIds are those of a connection to GitHub, and there is none "+
			"here; give repositoryUrls", nil)
	case len(in.RepositoryURLs) > 0 && in.Workspace != nil:
		return api.Response{}, api.Unprocessable("Give either workspace or repositoryUrls", nil)
	}
	for _, at := range in.RepositoryURLs {
		if !slices.ContainsFunc(p.More, func(w entity.SaveWorkspace) bool { return strings.EqualFold(*w.RepoURL, at) }) {
			p.More = append(p.More, entity.SaveWorkspace{ID: api.NewID(), Project: p.ID, RepoURL: &at})
		}
	}
	return doProject(rc, company.KindProjectCreate, api.CompanyID(rc), p)
}

func updateProject(rc *api.Request) (api.Response, error) {
	in, err := api.Body[patchProject](rc)
	if err != nil {
		return api.Response{}, err
	}
	p, err := findProject(rc)
	if err != nil {
		return api.Response{}, err
	}
	if err := checkWorkspacePolicy(in.WorkspacePolicy.Or(nil)); err != nil {
		return api.Response{}, err
	}
	s := entity.SaveProject{ID: p.ID, Name: in.Name, Description: api.TextOf(in.Description),
		Status: api.Given[entity.ProjectStatus](in.Status),
		Lead:   api.IdPointer(in.LeadAgentID), TargetDate: api.TextOf(in.TargetDate), Color: api.TextOf(in.Color),
		Icon: api.TextOf(in.Icon), Env: api.RawOf(in.Env),
		WorkspacePolicy: api.RawOf(in.WorkspacePolicy), Goals: goalsOf(in.GoalID, in.GoalIDs)}
	if in.ArchivedAt.Set {
		s.ArchivedAt = new(in.ArchivedAt.Or(0))
	}
	return doProject(rc, company.KindProjectUpdate, p.Company, s)
}

func deleteProject(rc *api.Request) (r api.Response, err error) {
	var p entity.Project
	err = rc.View(func(tx *ledger.Tx) (err error) {
		if p, err = api.ProjectIn(tx, rc); err == nil {
			r = api.OK(showProject(tx, p))
		}
		return err
	})
	if err != nil {
		return r, err
	}
	_, err = rc.Submit(company.KindProjectDelete, p.Company, company.DeleteProject{ID: p.ID})
	return r, err
}

func (in newWorkspace) command(id, project string) entity.SaveWorkspace {
	return entity.SaveWorkspace{ID: id, Project: project, Name: in.Name, SourceType: api.Given[string](in.SourceType),
		Cwd: api.TextOf(in.Cwd), RepoURL: api.TextOf(in.RepoURL),
		RepoRef: api.TextOf(in.RepoRef), DefaultRef: api.TextOf(in.DefaultRef), Visibility: api.Given[string](in.Visibility),
		SetupCommand:   api.TextOf(in.SetupCommand),
		CleanupCommand: api.TextOf(in.CleanupCommand), RemoteProvider: api.TextOf(in.RemoteProvider),
		RemoteRef: api.TextOf(in.RemoteRef), SharedKey: api.TextOf(in.SharedKey),
		Metadata: api.RawOf(in.Metadata), RuntimeConfig: api.RawOf(in.RuntimeConfig), Primary: in.Primary}
}

// doWorkspace submits a command that returns a workspace.
func doWorkspace(rc *api.Request, kind string, of ledger.CompanyID, payload any) (api.Response, error) {
	w, err := api.Do[place.Workspace](rc, kind, of, payload)
	if err != nil {
		return api.Response{}, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		w.RuntimeServices = place.ServicesOf(tx, w.Company, w.ID)
		return nil
	})
	w.Metadata, w.RuntimeConfig = api.ShowObject(w.Metadata), api.ShowObject(w.RuntimeConfig)
	return api.OK(w), err
}

func createWorkspace(rc *api.Request) (api.Response, error) {
	in, err := api.Body[newWorkspace](rc)
	if err != nil {
		return api.Response{}, err
	}
	p, err := findProject(rc)
	if err != nil {
		return api.Response{}, err
	}
	return doWorkspace(rc, company.KindWorkspaceCreate, p.Company, in.command(api.NewID(), p.ID))
}

func updateWorkspace(rc *api.Request) (api.Response, error) {
	in, err := api.Body[newWorkspace](rc)
	if err != nil {
		return api.Response{}, err
	}
	p, err := findProject(rc)
	if err != nil {
		return api.Response{}, err
	}
	return doWorkspace(rc, company.KindWorkspaceUpdate, p.Company,
		in.command(strings.ToLower(rc.Path("workspaceId")), p.ID))
}

func deleteWorkspace(rc *api.Request) (api.Response, error) {
	p, err := findProject(rc)
	if err != nil {
		return api.Response{}, err
	}
	return doWorkspace(rc, company.KindWorkspaceDelete, p.Company,
		place.DeleteWorkspace{ID: strings.ToLower(rc.Path("workspaceId")), Project: p.ID})
}
