package work

import (
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// newGoal is the body that creates a goal.
type newGoal struct {
	Title        string          `json:"title" minLength:"1" maxLength:"500"`
	Description  api.Opt[string] `json:"description" maxLength:"200000" maxBytes:"200000"`
	Level        string          `json:"level,omitempty" enum:"company,team,agent,task"`
	Status       string          `json:"status,omitempty" enum:"planned,active,achieved,cancelled"`
	ParentID     api.Opt[string] `json:"parentId" format:"uuid"`
	OwnerAgentID api.Opt[string] `json:"ownerAgentId" format:"uuid"`
}

// patchGoal is the body that changes a goal.
type patchGoal struct {
	Title        *string         `json:"title,omitempty" minLength:"1" maxLength:"500" nullable:"false"`
	Description  api.Opt[string] `json:"description" maxLength:"200000" maxBytes:"200000"`
	Level        string          `json:"level,omitempty" enum:"company,team,agent,task"`
	Status       string          `json:"status,omitempty" enum:"planned,active,achieved,cancelled"`
	ParentID     api.Opt[string] `json:"parentId" format:"uuid"`
	OwnerAgentID api.Opt[string] `json:"ownerAgentId" format:"uuid"`
}

func GoalRoutes() []api.Route {
	const tag, one = "goals", "/api/goals/{id}"
	return []api.Route{
		{Method: "GET", Path: "/api/companies/{companyId}/goals", Tag: tag, Summary: "List goals",
			Query: []api.Param{{Name: "projectId", Doc: "only those that this project works towards"}}, Out: []entity.Goal{},
			Handle: listGoals},
		{Method: "POST", Path: "/api/companies/{companyId}/goals", Tag: tag, Summary: "Create a goal", In: newGoal{},
			Out: entity.Goal{}, Status: 201, Handle: createGoal},
		{Method: "GET", Path: one, Tag: tag, Summary: "Read a goal", Out: entity.Goal{},
			Handle: func(rc *api.Request) (api.Response, error) {
				g, err := findGoal(rc)
				return api.OK(g), err
			}},
		{Method: "PATCH", Path: one, Tag: tag, Summary: "Change a goal", In: patchGoal{}, Out: entity.Goal{},
			Handle: updateGoal},
		{Method: "DELETE", Path: one, Tag: tag, Summary: "Delete a goal", Who: api.Board, Out: entity.Goal{},
			Handle: deleteGoal},
	}
}

// listGoals lists the goals of a company; with projectId, only those of that project.
func listGoals(rc *api.Request) (r api.Response, err error) {
	project, err := rc.QueryUUID("projectId")
	if err != nil {
		return r, err
	}
	err = api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
		list := entity.GoalsOf(tx, row.ID)
		if project != "" {
			p, ok := entity.ProjectOf(tx, row.ID, project)
			if !ok {
				return api.NotFound("Project not found")
			}
			list = slices.DeleteFunc(list, func(g entity.Goal) bool { return !slices.Contains(p.Goals, g.ID) })
		}
		r = api.OK(list)
		return nil
	})
	return r, err
}

func findGoal(rc *api.Request) (g entity.Goal, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		var ok bool
		g, ok = entity.GoalByID(tx, strings.ToLower(rc.Path("id")))
		if !ok || !api.Seen(tx, rc, g.Company) {
			return api.NotFound("Goal not found")
		}
		return nil
	})
	return g, err
}

func createGoal(rc *api.Request) (api.Response, error) {
	in, err := api.Body[newGoal](rc)
	if err != nil {
		return api.Response{}, err
	}
	if !api.IsUUID(api.CompanyID(rc)) {
		return api.Response{}, api.NotFound("Company not found")
	}
	g, err := api.Do[entity.Goal](rc, company.KindGoalCreate, api.CompanyID(rc), entity.SaveGoal{ID: api.NewID(),
		Title: &in.Title, Description: api.TextOf(in.Description),
		Level: api.Given[entity.GoalLevel](in.Level), Status: api.Given[entity.GoalStatus](in.Status),
		Parent: api.IdPointer(in.ParentID), Owner: api.IdPointer(in.OwnerAgentID)})
	return api.OK(g), err
}

func updateGoal(rc *api.Request) (api.Response, error) {
	in, err := api.Body[patchGoal](rc)
	if err != nil {
		return api.Response{}, err
	}
	g, err := findGoal(rc)
	if err != nil {
		return api.Response{}, err
	}
	g, err = api.Do[entity.Goal](rc, company.KindGoalUpdate, g.Company, entity.SaveGoal{ID: g.ID, Title: in.Title,
		Description: api.TextOf(in.Description),
		Level:       api.Given[entity.GoalLevel](in.Level), Status: api.Given[entity.GoalStatus](in.Status),
		Parent: api.IdPointer(in.ParentID), Owner: api.IdPointer(in.OwnerAgentID)})
	return api.OK(g), err
}

func deleteGoal(rc *api.Request) (api.Response, error) {
	g, err := findGoal(rc)
	if err != nil {
		return api.Response{}, err
	}
	g, err = api.Do[entity.Goal](rc, company.KindGoalDelete, g.Company, company.DeleteGoal{ID: g.ID})
	return api.OK(g), err
}
