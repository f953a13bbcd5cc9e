package work

import (
	"slices"

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
	const tag, all, one = "goals", "/api/companies/{companyId}/goals", "/api/goals/{id}"
	at := api.Located(goalIn, func(g entity.Goal) (ledger.CompanyID, string) { return g.Company, g.ID })
	return []api.Route{
		api.Read(api.Route{Path: all, Tag: tag, Summary: "List goals",
			Query: []api.Param{{Name: "projectId", Doc: "only those that this project works towards"}}}, listGoals),
		api.Create[entity.Goal](api.Route{Path: all, Tag: tag, Summary: "Create a goal"}, company.KindGoalCreate,
			func(_ *api.Request, in newGoal) (entity.SaveGoal, error) {
				return entity.SaveGoal{ID: api.NewID(), Title: &in.Title, Description: api.TextOf(in.Description),
					Level: api.Given[entity.GoalLevel](in.Level), Status: api.Given[entity.GoalStatus](in.Status),
					Parent: api.IdPointer(in.ParentID), Owner: api.IdPointer(in.OwnerAgentID)}, nil
			}),
		api.Read(api.Route{Path: one, Tag: tag, Summary: "Read a goal"}, goalIn),
		api.Change[entity.Goal](api.Route{Path: one, Tag: tag, Summary: "Change a goal"}, company.KindGoalUpdate, at,
			func(_ *api.Request, id string, in patchGoal) (entity.SaveGoal, error) {
				return entity.SaveGoal{ID: id, Title: in.Title, Description: api.TextOf(in.Description),
					Level: api.Given[entity.GoalLevel](in.Level), Status: api.Given[entity.GoalStatus](in.Status),
					Parent: api.IdPointer(in.ParentID), Owner: api.IdPointer(in.OwnerAgentID)}, nil
			}),
		api.Remove[entity.Goal](api.Route{Path: one, Tag: tag, Summary: "Delete a goal", Who: api.Board},
			company.KindGoalDelete, at, func(_ *api.Request, id string) company.DeleteGoal {
				return company.DeleteGoal{ID: id}
			}),
	}
}

// listGoals lists the goals of a company; with projectId, only those of that project.
func listGoals(tx *ledger.Tx, rc *api.Request) ([]entity.Goal, error) {
	project, err := rc.QueryUUID("projectId")
	if err != nil {
		return nil, err
	}
	row, err := api.CompanyIn(tx, rc)
	if err != nil {
		return nil, err
	}
	list := entity.GoalsOf(tx, row.ID)
	if project != "" {
		p, ok := entity.ProjectOf(tx, row.ID, project)
		if !ok {
			return nil, api.NotFound("Project not found")
		}
		list = slices.DeleteFunc(list, func(g entity.Goal) bool { return !slices.Contains(p.Goals, g.ID) })
	}
	return list, nil
}

func goalIn(tx *ledger.Tx, rc *api.Request) (entity.Goal, error) {
	g, ok := entity.GoalByID(tx, api.PathID(rc, "id"))
	if !ok || !api.Seen(tx, rc, g.Company) {
		return g, api.NotFound("Goal not found")
	}
	return g, nil
}
