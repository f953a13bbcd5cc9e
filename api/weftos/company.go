package weftos

import (
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// CompanyRoutes are views of companies in the types of the WeftOS kernel. They read the one state and change nothing.
func CompanyRoutes() []api.Route {
	const one = "/api/v1/companies/{companyId}"
	row := func(path, summary string, out any, handle func(*ledger.Tx, *api.Request, entity.Company) any) api.Route {
		return api.Route{Method: "GET", Path: one + path, Kernel: true, Tag: tag, Summary: summary, Out: out,
			Handle: func(rc *api.Request) (answer api.Response, err error) {
				err = api.InCompany(rc, func(tx *ledger.Tx, c entity.Company) error {
					answer = api.OK(handle(tx, rc, c))
					return nil
				})
				return answer, err
			}}
	}
	return []api.Route{
		row("", "Read a company as the kernel's clients know it", Company{}, companyView),
		row("/org", "Read who reports to whom, with roles, budgets and goals", OrgChart{}, orgView),
		row("/goals", "Read the tree of goals", GoalTree{}, goalView),
		row("/heartbeats", "List the timers of a company's agents", []HeartbeatConfig{}, heartbeatView),
	}
}

// A Company is the organisation that agents work for.
type Company struct {
	ID          ledger.CompanyID `json:"id"`
	Name        string           `json:"name"`
	Description core.NullText    `json:"description"`
	CreatedAt   core.Time        `json:"created_at"`
}

// An OrgRole is ceo, manager or worker. A manager is who has reports, or leads by title: cto, cmo, cfo, pm.
type OrgRole string

// An OrgNode is an agent's place in the chart.
type OrgNode struct {
	Agent     string        `json:"agent_id"`
	Name      string        `json:"name"`
	Role      OrgRole       `json:"role" enum:"ceo,manager,worker"`
	ReportsTo core.NullText `json:"reports_to"`
	Budget    int64         `json:"budget_cents"` // a month, 0: none is set
	Goals     []string      `json:"goals"`        // IDs of those that it owns
}

// An OrgChart is everybody of a company, the oldest first.
type OrgChart struct {
	Company ledger.CompanyID `json:"company_id"`
	Nodes   []OrgNode        `json:"nodes"`
}

// A Goal is a purpose of work.
type Goal struct {
	ID          string             `json:"id"`
	Description string             `json:"description"` // its title, and what else is said of it
	Parent      core.NullText      `json:"parent_goal"`
	Status      string             `json:"status" enum:"pending,active,complete,failed"`
	Metrics     map[string]float64 `json:"metrics"` // issues, issues_done
}

// A GoalTree is all goals of a company, the oldest first.
type GoalTree struct {
	Company ledger.CompanyID `json:"company_id"`
	Roots   []string         `json:"roots"` // IDs of goals without a parent
	Goals   []Goal           `json:"goals"`
}

// A HeartbeatConfig is the timer of an agent.
type HeartbeatConfig struct {
	Agent    string `json:"agent_id"`
	Interval int64  `json:"interval"` // seconds, 0: none is set
	Enabled  bool   `json:"enabled"`
}

func companyView(_ *ledger.Tx, _ *api.Request, c entity.Company) any {
	return Company{c.ID, c.Name, c.Description, c.CreatedAt}
}

func orgView(tx *ledger.Tx, rc *api.Request, c entity.Company) any {
	chart := OrgChart{Company: c.ID, Nodes: []OrgNode{}}
	owned := map[string][]string{}
	for _, g := range entity.GoalsOf(tx, c.ID) {
		owned[string(g.Owner)] = append(owned[string(g.Owner)], g.ID)
	}
	now := core.TimeOf(rc.Now())
	all := entity.AgentsOf(tx, c.ID, false)
	leads := map[string]bool{}
	for _, a := range all {
		leads[string(a.ReportsTo)] = true
	}
	for _, a := range all {
		limit := money.BudgetOf(tx, c.ID, entity.ScopeAgent, a.ID, now).MonthlyLimit()
		chart.Nodes = append(chart.Nodes, OrgNode{a.ID, a.Name, roleOf(a, leads[a.ID]), a.ReportsTo, int64(limit / core.Cent),
			append([]string{}, owned[a.ID]...)})
	}
	return chart
}

func roleOf(a entity.Agent, leads bool) OrgRole {
	switch a.Role {
	case "ceo":
		return "ceo"
	case "cto", "cmo", "cfo", "pm":
		return "manager"
	}
	if leads {
		return "manager"
	}
	return "worker"
}

// goalWords are the kernel's words for the states of goals.
var goalWords = map[entity.GoalStatus]string{"planned": "pending", "active": "active", "achieved": "complete",
	"cancelled": "failed"}

// maxGoalIssues bounds the issues that are counted for one goal.
const maxGoalIssues = 10_000

func goalView(tx *ledger.Tx, _ *api.Request, c entity.Company) any {
	tree := GoalTree{Company: c.ID, Roots: []string{}, Goals: []Goal{}}
	for _, g := range entity.GoalsOf(tx, c.ID) {
		shown := Goal{g.ID, g.Title, g.Parent, goalWords[g.Status], map[string]float64{"issues": 0, "issues_done": 0}}
		if g.Description != "" {
			shown.Description += "\n\n" + string(g.Description)
		}
		n := 0
		for id := range entity.IssuesByGoal.IDs(tx, c.ID, g.ID, false) {
			if n++; n > maxGoalIssues {
				break
			}
			if i, ok := entity.IssueOf(tx, c.ID, id); ok {
				shown.Metrics["issues"]++
				if i.Status == entity.IssueDone {
					shown.Metrics["issues_done"]++
				}
			}
		}
		if g.Parent == "" {
			tree.Roots = append(tree.Roots, g.ID)
		}
		tree.Goals = append(tree.Goals, shown)
	}
	return tree
}

func heartbeatView(tx *ledger.Tx, _ *api.Request, c entity.Company) any {
	out := []HeartbeatConfig{}
	for _, a := range entity.AgentsOf(tx, c.ID, false) {
		p := entity.ParsePolicy(a.RuntimeConfig, a.AdapterConfig)
		out = append(out, HeartbeatConfig{a.ID, p.IntervalSec, p.Enabled})
	}
	return out
}
