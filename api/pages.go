package api

import (
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/ledger"
)

// memberships says which agents, projects and documents a user left or marked;
// whoever is not named has joined.
type memberships struct {
	Projects  map[string]string `json:"projectMemberships"`
	Agents    map[string]string `json:"agentMemberships"`
	Documents map[string]string `json:"documentMemberships"`
	Starred   []string          `json:"starredIds"`
	UpdatedAt company.Time      `json:"updatedAt"`
}

// A quotaWindow is how much of a subscription's allowance is used; what can not
// be read says why.
type quotaWindow struct {
	Provider string     `json:"provider"`
	OK       bool       `json:"ok"`
	Error    string     `json:"error"`
	Windows  []struct{} `json:"windows"`
}

type runnerGoal struct {
	Goal *struct{} `json:"goal"`
}

// pageRoutes are calls of the board's pages about what this system does not
// keep: they answer that there is none.
func (s *Server) pageRoutes() []Route {
	of, issue := "/api/companies/{companyId}", "/api/issues/{id}"
	rows := []Route{
		{Method: "GET", Path: of + "/resource-memberships/me", Tag: "companies", Summary: "Tell what the user left or marked; a user is in on everything", Who: Board, Out: memberships{},
			Handle: ofCompany(memberships{Projects: map[string]string{}, Agents: map[string]string{}, Documents: map[string]string{}, Starred: []string{}})},
		{Method: "GET", Path: of + "/costs/quota-windows", Tag: "costs", Summary: "Tell how much of the providers' subscriptions is used", Out: []quotaWindow{},
			Handle: ofCompany([]quotaWindow{
				{"anthropic", false, "The mesh meters calls itself and signs in to no subscription", []struct{}{}},
				{"openai", false, "The mesh meters calls itself and signs in to no subscription", []struct{}{}}})},
		{Method: "GET", Path: issue + "/runner-goal", Tag: "issues", Summary: "Read the goal of the issue's runner", Out: runnerGoal{}, Handle: ofIssue(runnerGoal{})},
	}
	for _, name := range []string{"accepted-plan-decompositions"} {
		rows = append(rows, Route{Method: "GET", Path: issue + "/" + name, Tag: "issues", Summary: "List an issue's " + name + "; there are none",
			Out: []struct{}{}, Handle: ofIssue([]struct{}{})})
	}
	return rows
}

// ofIssue answers the same for each issue that there is.
func ofIssue(v any) func(*Request) (Response, error) {
	return func(rc *Request) (Response, error) {
		return OK(v), rc.View(func(tx *ledger.Tx) error {
			_, err := findIssue(tx, rc)
			return err
		})
	}
}
