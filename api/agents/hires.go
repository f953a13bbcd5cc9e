package agents

import (
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// newHire is the body that hires an agent: the body that creates one, and the reason.
type newHire struct {
	newAgent
	SourceIssueID  api.Opt[string] `json:"sourceIssueId" format:"uuid"`
	SourceIssueIDs []string        `json:"sourceIssueIds,omitempty" format:"uuid" maxItems:"100"`
}

// hired is the answer to a hire: the agent, and the approval that it waits for, null if
// it needs none.
type hired struct {
	Agent    agentRow        `json:"agent"`
	Approval *money.Approval `json:"approval"`
}

func HireRoutes() []api.Route {
	return []api.Route{{Method: "POST", Path: "/api/companies/{companyId}/agent-hires", Tag: "agents",
		Summary: "Hire an agent, after the board's approval where one is needed",
		In:      newHire{}, Out: hired{}, Status: 201, Handle: hireAgent}}
}

func hireAgent(rc *api.Request) (r api.Response, err error) {
	in, err := api.Body[newHire](rc)
	if err != nil {
		return r, err
	}
	of := api.CompanyID(rc)
	if !api.IsUUID(of) {
		return r, api.NotFound("Company not found")
	}
	agent, err := in.command()
	if err != nil {
		return r, err
	}
	p := money.HireAgent{Agent: agent, Approval: api.NewID()}
	p.Skills = p.Agent.Skills
	for _, id := range append(in.SourceIssueIDs, in.SourceIssueID.Or("")) {
		if id != "" {
			p.Issues = append(p.Issues, strings.ToLower(id))
		}
	}
	h, err := api.Do[money.Hire](rc, money.KindAgentHire, ledger.CompanyID(of), p)
	if err != nil {
		return r, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		a, ok := entity.AgentOf(tx, ledger.CompanyID(of), h.Agent)
		if !ok {
			return api.NotFound("Agent not found")
		}
		out := hired{Agent: showAgent(tx, a, rc.Now())}
		if approval, ok := money.ApprovalByID(tx, h.Approval); ok {
			out.Approval = &approval
		}
		r = api.OK(out)
		return nil
	})
	return r, err
}
