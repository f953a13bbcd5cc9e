package work

import (
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/paper"
)

func ExecutionRoutes() []api.Route {
	return []api.Route{api.Show(api.Route{Path: "/api/issues/{id}/execution-decisions", Tag: "issues",
		Summary: "List what was decided of an issue's work, stage by stage"}, api.FindIssue, paper.ExecutionDecisionsOf)}
}
