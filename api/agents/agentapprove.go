package agents

import (
	"slices"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

func AgentApproveRoutes() []api.Route {
	return []api.Route{{Method: "POST", Path: "/api/agents/{id}/approve", Tag: "agents",
		Summary: "Approve the hire of an agent that waits for it", Query: api.ByName(), Who: api.Board, Out: agentDetail{},
		Handle: approveAgent}}
}

// approveAgent decides the approval that an agent waits for.
func approveAgent(rc *api.Request) (r api.Response, err error) {
	a, err := api.FindAgent(rc)
	if err != nil {
		return r, err
	}
	if a.Status != entity.AgentPendingApproval {
		return r, a.Illegal(entity.AgentIdle, "Only pending approval agents can be approved")
	}
	var waits money.Approval
	err = rc.View(func(tx *ledger.Tx) error {
		list := money.ApprovalsOf(tx, a.Company, money.ApprovalQuery{Types: []money.ApprovalType{money.ApprovalHire},
			Statuses: []money.ApprovalStatus{money.ApprovalPending, money.ApprovalRevision}, Limit: money.MaxApprovalLimit})
		n := slices.IndexFunc(list, func(p money.Approval) bool { return string(p.Agent) == a.ID })
		if n < 0 {
			return api.Conflict("No open approval is about this agent; it was sent back, or is beyond those that are "+
				"listed", nil)
		}
		waits = list[n]
		return nil
	})
	if err != nil {
		return r, err
	}
	if r, err = api.Decided(rc, money.KindApprovalApprove, waits, money.DecideApproval{Approval: waits.ID}); err != nil {
		return r, err
	}
	return api.Showing(rc, api.AgentIn, func(tx *ledger.Tx, a entity.Agent) agentDetail {
		return detailAgent(tx, a, rc.Now())
	})
}
