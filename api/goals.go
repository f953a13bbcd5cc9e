package api

import (
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/ledger"
)

// newGoal is the body that creates a goal.
type newGoal struct {
	Title        string      `json:"title" minLength:"1" maxLength:"500"`
	Description  Opt[string] `json:"description" maxLength:"200000" maxBytes:"200000"`
	Level        string      `json:"level,omitempty" enum:"company,team,agent,task"`
	Status       string      `json:"status,omitempty" enum:"planned,active,achieved,cancelled"`
	ParentID     Opt[string] `json:"parentId" format:"uuid"`
	OwnerAgentID Opt[string] `json:"ownerAgentId" format:"uuid"`
}

// patchGoal is the body that changes a goal.
type patchGoal struct {
	Title        *string     `json:"title,omitempty" minLength:"1" maxLength:"500" nullable:"false"`
	Description  Opt[string] `json:"description" maxLength:"200000" maxBytes:"200000"`
	Level        string      `json:"level,omitempty" enum:"company,team,agent,task"`
	Status       string      `json:"status,omitempty" enum:"planned,active,achieved,cancelled"`
	ParentID     Opt[string] `json:"parentId" format:"uuid"`
	OwnerAgentID Opt[string] `json:"ownerAgentId" format:"uuid"`
}

func goalRoutes() []Route {
	const tag, one = "goals", "/api/goals/{id}"
	return []Route{
		{Method: "GET", Path: "/api/companies/{companyId}/goals", Tag: tag, Summary: "List goals", Query: []Param{{Name: "projectId", Doc: "only those that this project works towards"}}, Out: []company.Goal{}, Handle: listGoals},
		{Method: "POST", Path: "/api/companies/{companyId}/goals", Tag: tag, Summary: "Create a goal", In: newGoal{}, Out: company.Goal{}, Status: 201, Handle: createGoal},
		{Method: "GET", Path: one, Tag: tag, Summary: "Read a goal", Out: company.Goal{}, Handle: func(rc *Request) (Response, error) {
			g, err := findGoal(rc)
			return OK(g), err
		}},
		{Method: "PATCH", Path: one, Tag: tag, Summary: "Change a goal", In: patchGoal{}, Out: company.Goal{}, Handle: updateGoal},
		{Method: "DELETE", Path: one, Tag: tag, Summary: "Delete a goal", Who: Board, Out: company.Goal{}, Handle: deleteGoal},
	}
}

// listGoals lists the goals of a company, with projectId those that a project
// works towards.
func listGoals(rc *Request) (r Response, err error) {
	project, err := rc.QueryUUID("projectId")
	if err != nil {
		return r, err
	}
	err = inCompany(rc, func(tx *ledger.Tx, row company.Company) error {
		list := company.GoalsOf(tx, row.ID)
		if project != "" {
			p, ok := company.ProjectOf(tx, row.ID, project)
			if !ok {
				return NotFound("Project not found")
			}
			list = slices.DeleteFunc(list, func(g company.Goal) bool { return !slices.Contains(p.Goals, g.ID) })
		}
		r = OK(list)
		return nil
	})
	return r, err
}

func findGoal(rc *Request) (g company.Goal, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		var ok bool
		g, ok = company.GoalByID(tx, strings.ToLower(rc.Path("id")))
		if !ok || !seen(tx, rc, g.Company) {
			return NotFound("Goal not found")
		}
		return nil
	})
	return g, err
}

func createGoal(rc *Request) (Response, error) {
	in, err := Body[newGoal](rc)
	if err != nil {
		return Response{}, err
	}
	if !IsUUID(companyID(rc)) {
		return Response{}, NotFound("Company not found")
	}
	g, err := Do[company.Goal](rc, company.KindGoalCreate, companyID(rc), company.SaveGoal{ID: NewID(), Title: &in.Title, Description: textOf(in.Description),
		Level: given[company.GoalLevel](in.Level), Status: given[company.GoalStatus](in.Status), Parent: idPointer(in.ParentID), Owner: idPointer(in.OwnerAgentID)})
	return OK(g), err
}

func updateGoal(rc *Request) (Response, error) {
	in, err := Body[patchGoal](rc)
	if err != nil {
		return Response{}, err
	}
	g, err := findGoal(rc)
	if err != nil {
		return Response{}, err
	}
	g, err = Do[company.Goal](rc, company.KindGoalUpdate, g.Company, company.SaveGoal{ID: g.ID, Title: in.Title, Description: textOf(in.Description),
		Level: given[company.GoalLevel](in.Level), Status: given[company.GoalStatus](in.Status), Parent: idPointer(in.ParentID), Owner: idPointer(in.OwnerAgentID)})
	return OK(g), err
}

func deleteGoal(rc *Request) (Response, error) {
	g, err := findGoal(rc)
	if err != nil {
		return Response{}, err
	}
	g, err = Do[company.Goal](rc, company.KindGoalDelete, g.Company, company.DeleteGoal{ID: g.ID})
	return OK(g), err
}
