package api

import (
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/ledger"
)

func executionRoutes() []Route {
	return []Route{{Method: "GET", Path: "/api/issues/{id}/execution-decisions", Tag: "issues", Summary: "List what was decided of an issue's work, stage by stage", Out: []paper.ExecutionDecision{},
		Handle: func(rc *Request) (Response, error) {
			return viewed(rc, func(tx *ledger.Tx) ([]paper.ExecutionDecision, error) {
				i, err := findIssue(tx, rc)
				if err != nil {
					return nil, err
				}
				return paper.ExecutionDecisionsOf(tx, i), nil
			})
		}}}
}
