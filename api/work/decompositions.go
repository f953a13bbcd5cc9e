package work

import (
	"regexp"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/ledger"
)

// decomposeBody splits an accepted plan into sub-issues. A child may wait for an earlier
// child of the list: "#1" in its blockedByIssueIds is the first.
type decomposeBody struct {
	Revision string       `json:"acceptedPlanRevisionId" format:"uuid"`
	Children []childIssue `json:"children" minItems:"1" maxItems:"25"`
}

type childIssue struct {
	createIssue
	// replaces the field of createIssue
	After []string `json:"blockedByIssueIds,omitempty" minLength:"1" maxLength:"36" maxItems:"50"`
}

// siblingText matches a reference of a child to an earlier child of the same list.
var siblingText = regexp.MustCompile(`^#[0-9]{1,2}$`)

// A shownDecomposition is a decomposition with the issues that it created.
type shownDecomposition struct {
	paper.Decomposition
	Number int64        `json:"acceptedPlanRevisionNumber"`
	Issues []childBrief `json:"childIssues"`
}

type childBrief struct {
	ID         string             `json:"id"`
	Identifier string             `json:"identifier"`
	Title      string             `json:"title"`
	Status     entity.IssueStatus `json:"status"`
	Priority   entity.Priority    `json:"priority"`
	Assignee   core.NullText      `json:"assigneeAgentId"`
	User       core.NullText      `json:"assigneeUserId"`
}

func DecompositionRoutes() []api.Route {
	const tag, path = "issues", "/api/issues/{id}/accepted-plan-decompositions"
	return []api.Route{
		api.Show(api.Route{Path: path, Tag: tag, Summary: "List what an issue's plan was turned into"}, api.FindIssue,
			decompositionsOf),
		{Method: "POST", Path: path, Tag: tag, Summary: "Turn a plan that was agreed on into sub-issues, all or none",
			In: decomposeBody{}, Out: paper.Decomposed{}, Handle: decompose},
	}
}

func decompositionsOf(tx *ledger.Tx, i entity.Issue) []shownDecomposition {
	out := []shownDecomposition{}
	d, planned := paper.DocumentOf(tx, i, "plan")
	for _, row := range paper.DecompositionsOf(tx, i) {
		shown := shownDecomposition{Decomposition: row, Issues: []childBrief{}}
		if planned {
			rev, _ := paper.RevisionOfDocument(tx, d, row.Revision)
			shown.Number = int64(rev.Number)
		}
		for _, id := range row.Children {
			if c, ok := entity.IssueOf(tx, i.Company, id); ok {
				shown.Issues = append(shown.Issues, childBrief{c.ID, c.Identifier, c.Title, c.Status, c.Priority,
					core.NullText(c.Assignee), core.NullText(c.AssigneeUser)})
			}
		}
		out = append(out, shown)
	}
	return out
}

func decompose(rc *api.Request) (api.Response, error) {
	in, err := api.Body[decomposeBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	of, issue, err := api.LocateIssue(rc)
	if err != nil {
		return api.Response{}, err
	}
	p := paper.DecomposePlan{ID: api.NewID(), Issue: issue, Revision: strings.ToLower(in.Revision)}
	for n, child := range in.Children {
		for _, b := range child.After {
			if !api.IsUUID(b) && !siblingText.MatchString(b) {
				return api.Response{}, api.ValidationError(api.Custom("Invalid blocker: expected the UUID of an issue, or #n "+
					"for the n-th of these children", "children", n, "blockedByIssueIds"))
			}
		}
		child.BlockedBy = child.After
		c := child.command(true)
		if err := api.RawBounds(c.WorkspaceSettings, c.AdapterOverrides, c.ExecutionPolicy, c.UnblockDescriptor); err != nil {
			return api.Response{}, err
		}
		if c.ExecutionPolicy, err = api.CheckedPolicy(c.ExecutionPolicy); err != nil {
			return api.Response{}, err
		}
		if err := api.CheckWorkspaceSettings(c.WorkspaceSettings, "children", n); err != nil {
			return api.Response{}, err
		}
		if err := checkOverrides(rc, of, c.Assignee, c.AdapterOverrides, "children", n); err != nil {
			return api.Response{}, err
		}
		p.Children = append(p.Children, c)
	}
	out, err := api.Do[paper.Decomposed](rc, paper.KindPlanDecompose, of, p)
	return api.OK(out), err
}
