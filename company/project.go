package company

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// MaxProjects bounds the projects of a company: lists show all of them.
	MaxProjects = 2_000
	// MaxProjectGoals bounds the goals of one project, MaxWorkspaces its workspaces.
	MaxProjectGoals = 50
)

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
	{Name: KindProjectCreate, From: FromBoard | FromAgent, Traits: Importable, Weight: Weights.Task,
		Do: ledger.Typed(createProject)},
	{Name: KindProjectUpdate, From: FromBoard | FromAgent, Traits: Importable, Weight: Weights.Task,
		Do: ledger.Typed(updateProject)},
	{Name: KindProjectDelete, From: FromBoard, Weight: Weights.Ends, Do: ledger.Typed(deleteProject)},
}

func checkProject(tx *ledger.Tx, p entity.Project) error {
	switch {
	case strings.TrimSpace(p.Name) == "":
		return ledger.Refuse(ledger.Invalid, nil, "A project needs a name")
	case len(p.Name) > entity.MaxName || len(p.Description) > entity.MaxText || len(p.Color) > 50 ||
		len(p.Icon) > entity.MaxName:
		return ledger.Refuse(ledger.TooLarge, nil, "The project's text is too long")
	case !slices.Contains(entity.ProjectStatuses, p.Status):
		return ledger.Refuse(ledger.Invalid, nil, "Unknown project status: %s", p.Status)
	case p.Lead != "" && !entity.AgentExists(tx, p.Company, string(p.Lead)):
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
		if !entity.GoalExists(tx, p.Company, g) {
			return ledger.Refuse(ledger.NotFound, nil, "Goal not found")
		}
	}
	return nil
}

func createProject(c *ledger.Context, s entity.SaveProject) (any, error) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	if err := core.CheckNewID(c.Tx, s.ID); err != nil {
		return nil, err
	}
	p, err := entity.Project{ID: s.ID, Company: company, Status: "backlog", CreatedAt: now, UpdatedAt: now}.With(s)
	if err != nil {
		return nil, err
	}
	if p.Env, err = Ask.BindEnv(c.Tx, company, p.Env, nil); err != nil {
		return nil, err
	}
	if err := checkProject(c.Tx, p); err != nil {
		return nil, err
	}
	if err := core.HasRoom(entity.ProjectTable.All(c.Tx, company), MaxProjects, "projects"); err != nil {
		return nil, err
	}
	if err := Ask.CheckProject(c, entity.Project{}, p); err != nil {
		return nil, err
	}
	entity.ProjectTable.Put(c.Tx, company, p.ID, p)
	workspace, err := Ask.Places.Equip(c, p, s)
	if err != nil {
		return nil, err
	}
	c.Record(ledger.Change{Action: "project.created", EntityType: "project", EntityID: p.ID,
		Details: core.Object{}.Null("icon", string(p.Icon)).Str("name", p.Name).List("envKeys", envKeys(p.Env)).
			Null("description", core.Snippet(string(p.Description), 500)).Null("workspaceId", workspace).Close()})
	return ProjectRef{p.ID}, nil
}

// A ProjectRef is the answer of commands about a project: the ID of the row to read.
type ProjectRef struct {
	ID string `cbor:"1,keyasint"`
}

// envKeys returns the names of variables, not their values.
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

func updateProject(c *ledger.Context, s entity.SaveProject) (any, error) {
	old, ok := entity.ProjectTable.Get(c.Tx, c.Cmd.Company, s.ID)
	if !ok {
		return nil, entity.ErrNoProject()
	}
	p, err := old.With(s)
	if err != nil {
		return nil, err
	}
	if len(s.Env) > 0 {
		if p.Env, err = Ask.BindEnv(c.Tx, p.Company, p.Env, old.Env); err != nil {
			return nil, err
		}
	}
	p.UpdatedAt = core.TimeOf(c.Now)
	if err := checkProject(c.Tx, p); err != nil {
		return nil, err
	}
	if err := Ask.CheckProject(c, old, p); err != nil {
		return nil, err
	}
	entity.ProjectTable.Put(c.Tx, p.Company, p.ID, p)
	c.Record(ledger.Change{Action: "project.updated", EntityType: "project", EntityID: p.ID,
		Details: core.Object{}.List("changedKeys", s.Keys()).Close()})
	return ProjectRef{p.ID}, nil
}

// deleteProject deletes a project and its workspaces. A project with issues can not be
// deleted; the board archives it.
func deleteProject(c *ledger.Context, s DeleteProject) (any, error) {
	p, ok := entity.ProjectTable.Get(c.Tx, c.Cmd.Company, s.ID)
	if !ok {
		return nil, entity.ErrNoProject()
	}
	n := 0
	for i := range entity.IssuesIn(c.Tx, p.Company, entity.IssuesByProject.IDs(c.Tx, p.Company, p.ID, false)) {
		if n++; n > orphanLimit {
			return nil, ledger.Refuse(ledger.Conflict, nil, "More than %d issues belong to this project; move them first",
				orphanLimit)
		}
		next := i
		next.Project, next.Workspace = "", ""
		StoreIssue(c.Tx, i, next)
	}
	projectDeleted(c, p)
	unplanned(c, p.ID, "")
	entity.ProjectTable.Delete(c.Tx, p.Company, p.ID)
	c.Record(ledger.Change{Action: "project.deleted", EntityType: "project", EntityID: p.ID,
		Details: core.Object{}.Str("name", p.Name).Close()})
	return nil, nil
}
