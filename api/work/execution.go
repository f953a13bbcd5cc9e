package work

import (
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/ledger"
)

func ExecutionRoutes() []api.Route {
	return []api.Route{{Method: "GET", Path: "/api/issues/{id}/execution-decisions", Tag: "issues",
		Summary: "List what was decided of an issue's work, stage by stage", Out: []paper.ExecutionDecision{},
		Handle: func(rc *api.Request) (api.Response, error) {
			return api.Viewed(rc, func(tx *ledger.Tx) ([]paper.ExecutionDecision, error) {
				i, err := api.FindIssue(tx, rc)
				if err != nil {
					return nil, err
				}
				return paper.ExecutionDecisionsOf(tx, i), nil
			})
		}}}
}
