package people

import (
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// An OrgNode is an agent in the org chart, with the agents that report to it.
type OrgNode struct {
	ID      string             `json:"id"`
	Name    string             `json:"name"`
	Role    string             `json:"role"`
	Status  entity.AgentStatus `json:"status"`
	Reports []*OrgNode         `json:"reports"`
}

// Org returns the org chart of a company: the agents without a manager that still exists,
// each with its reports. Terminated agents are left out.
func Org(tx *ledger.Tx, of ledger.CompanyID) []*OrgNode {
	list := entity.AgentsOf(tx, of, false)
	nodes := make(map[string]*OrgNode, len(list))
	for _, a := range list {
		nodes[a.ID] = &OrgNode{ID: a.ID, Name: a.Name, Role: a.Role, Status: a.Status, Reports: []*OrgNode{}}
	}
	roots := []*OrgNode{}
	for _, a := range list {
		if boss, ok := nodes[string(a.ReportsTo)]; ok {
			boss.Reports = append(boss.Reports, nodes[a.ID])
		} else {
			roots = append(roots, nodes[a.ID])
		}
	}
	return roots
}

// A ChainLink is one agent in an agent's chain of command.
type ChainLink struct {
	ID        string             `json:"id"`
	Company   ledger.CompanyID   `json:"companyId"`
	Name      string             `json:"name"`
	Status    entity.AgentStatus `json:"status"`
	ReportsTo core.NullText      `json:"reportsTo"`
	Depth     int                `json:"depth"`
	Relation  string             `json:"relation"` // self or ancestor
}

// An OrgHealth says whether an agent has a manager to escalate to.
type OrgHealth struct {
	Status           string        `json:"status"` // healthy or invalid
	Reason           string        `json:"reason"`
	FullChain        []ChainLink   `json:"fullChain"`
	FirstInvalid     *ChainLink    `json:"firstInvalidAncestor"`
	InvalidAncestors []ChainLink   `json:"invalidAncestors"`
	Guidance         core.NullText `json:"repairGuidance"`
	PausedAncestors  []ChainLink   `json:"pausedAncestors"`
	Warning          core.NullText `json:"escalationWarning"`
}

// OrgHealthOf checks the chain of managers of an agent.
func OrgHealthOf(tx *ledger.Tx, a entity.Agent) OrgHealth {
	h := OrgHealth{Status: "healthy", Reason: "healthy", FullChain: []ChainLink{link(a, 0)},
		InvalidAncestors: []ChainLink{}, PausedAncestors: []ChainLink{}}
	for boss := range entity.Managers(tx, a) {
		l := link(boss, len(h.FullChain))
		h.FullChain = append(h.FullChain, l)
		switch boss.Status {
		case entity.AgentTerminated, entity.AgentPendingApproval:
			h.InvalidAncestors = append(h.InvalidAncestors, l)
		case entity.AgentPaused:
			h.PausedAncestors = append(h.PausedAncestors, l)
		}
	}
	if len(h.InvalidAncestors) > 0 {
		first := h.InvalidAncestors[0]
		h.Status, h.Reason, h.FirstInvalid = "invalid", "ancestor_"+string(first.Status), &first
		h.Guidance = core.NullText("Let somebody else lead the agent below " + first.Name + ", which is " +
			string(first.Status))
	}
	if len(h.PausedAncestors) > 0 {
		h.Warning = core.NullText("Escalations wait: " + h.PausedAncestors[0].Name + " is paused")
	}
	return h
}

func link(a entity.Agent, depth int) ChainLink {
	l := ChainLink{ID: a.ID, Company: a.Company, Name: a.Name, Status: a.Status, ReportsTo: a.ReportsTo, Depth: depth,
		Relation: "ancestor"}
	if depth == 0 {
		l.Relation = "self"
	}
	return l
}

// A Superior is an agent above another one in the org chart.
type Superior struct {
	ID    string        `json:"id"`
	Name  string        `json:"name"`
	Role  string        `json:"role"`
	Title core.NullText `json:"title"`
}

// ChainOfCommand returns the managers of an agent, nearest first.
func ChainOfCommand(tx *ledger.Tx, a entity.Agent) []Superior {
	out := []Superior{}
	for boss := range entity.Managers(tx, a) {
		out = append(out, Superior{boss.ID, boss.Name, boss.Role, boss.Title})
	}
	return out
}

// A Membership makes an agent a principal of its company. It is derived from the agent's row.
type Membership struct {
	ID            string           `json:"id"`
	Company       ledger.CompanyID `json:"companyId"`
	PrincipalType string           `json:"principalType"`
	Principal     string           `json:"principalId"`
	Status        string           `json:"status"`
	Role          string           `json:"membershipRole"`
	CreatedAt     core.Time        `json:"createdAt"`
	UpdatedAt     core.Time        `json:"updatedAt"`
}

// A PermissionGrant is one permission of an agent.
type PermissionGrant struct {
	ID            string           `json:"id"`
	Company       ledger.CompanyID `json:"companyId"`
	PrincipalType string           `json:"principalType"`
	Principal     string           `json:"principalId"`
	Permission    string           `json:"permissionKey"`
	Scope         *struct{}        `json:"scope"`
	By            core.NullText    `json:"grantedByUserId"`
	CreatedAt     core.Time        `json:"createdAt"`
	UpdatedAt     core.Time        `json:"updatedAt"`
}

// An Access is what an agent may do in its company.
type Access struct {
	CanAssignTasks   bool              `json:"canAssignTasks"`
	TaskAssignSource string            `json:"taskAssignSource"`
	Membership       Membership        `json:"membership"`
	Grants           []PermissionGrant `json:"grants"`
}

// AccessOf returns what an agent may do in its company.
func AccessOf(a entity.Agent) Access {
	member := Membership{ID: core.DerivedID("membership", a.ID), Company: a.Company, PrincipalType: "agent",
		Principal: a.ID, Status: "active", Role: "member",
		CreatedAt: a.CreatedAt, UpdatedAt: a.CreatedAt}
	out := Access{CanAssignTasks: a.MayAssign(), TaskAssignSource: "none", Membership: member, Grants: []PermissionGrant{}}
	switch {
	case a.Role == "ceo":
		out.TaskAssignSource = "ceo_role"
	case a.Permissions.CreateAgents:
		out.TaskAssignSource = "agent_creator"
	case a.Permissions.AssignTasks:
		out.TaskAssignSource = "explicit_grant"
	}
	keys := []string{}
	if a.Role == "ceo" {
		keys = append(keys, "agents:configure", "skills:create")
	}
	if out.CanAssignTasks {
		keys = append(keys, "tasks:assign")
	}
	by := core.NullText(a.CreatedBy)
	if core.IsID(a.CreatedBy) {
		by = ""
	}
	for _, k := range slices.Compact(keys) {
		given := by
		if k != "tasks:assign" {
			given = "" // included in the role, so granted by nobody
		}
		out.Grants = append(out.Grants, PermissionGrant{ID: core.DerivedID("grant", a.ID, k), Company: a.Company,
			PrincipalType: "agent", Principal: a.ID, Permission: k, By: given,
			CreatedAt: a.CreatedAt, UpdatedAt: a.CreatedAt})
	}
	return out
}
