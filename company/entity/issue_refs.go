package entity

import (
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

func AgentExists(tx *ledger.Tx, company ledger.CompanyID, id string) bool {
	return tx.Has(AgentTable.Key(company, id))
}

func ProjectExists(tx *ledger.Tx, company ledger.CompanyID, id string) bool {
	return tx.Has(ProjectTable.Key(company, id))
}

func GoalExists(tx *ledger.Tx, company ledger.CompanyID, id string) bool {
	return tx.Has(Goals.Key(company, id)) || id == ImpliedGoalID(company)
}

// CompanyOfAgent returns the company that an agent belongs to, or "".
func CompanyOfAgent(tx *ledger.Tx, agent string) ledger.CompanyID {
	of := core.OwnerOf(tx, agent)
	if of == "" || !AgentExists(tx, of, agent) {
		return ""
	}
	return of
}

// Assignable refuses an assignee that does not exist or was terminated.
func Assignable(tx *ledger.Tx, company ledger.CompanyID, agent string) error {
	a, ok := AgentTable.Get(tx, company, agent)
	switch {
	case !ok:
		return ledger.Refuse(ledger.NotFound, nil, "Agent not found")
	case a.Status == AgentTerminated:
		return ledger.Refuse(ledger.Conflict, a.Standing(), "Cannot assign work to terminated agents")
	case a.Status == AgentPendingApproval:
		return ledger.Refuse(ledger.Conflict, a.Standing(), "Cannot assign work to pending approval agents")
	}
	return nil
}

// Manages reports whether boss is a direct or indirect manager of agent.
func Manages(tx *ledger.Tx, company ledger.CompanyID, boss, agent string) bool {
	for range MaxIssueDepth {
		a, ok := AgentTable.Get(tx, company, agent)
		if !ok || a.ReportsTo == "" {
			return false
		}
		if agent = string(a.ReportsTo); agent == boss {
			return true
		}
	}
	return false
}

// CompanyExists reports whether there is a company with this ID.
func CompanyExists(tx *ledger.Tx, company ledger.CompanyID) bool {
	return company != "" && tx.Has(CompanyTable.Key(company, company))
}

// IssuePrefixOf returns the prefix of the identifiers of a company's issues.
func IssuePrefixOf(tx *ledger.Tx, company ledger.CompanyID) (string, bool) {
	row, ok := CompanyTable.Get(tx, company, company)
	return row.IssuePrefix, ok
}

// AgentLabel returns the name and the status of an agent, "" when it was deleted.
func AgentLabel(tx *ledger.Tx, company ledger.CompanyID, agent string) (name, status string) {
	a, _ := AgentTable.Get(tx, company, agent)
	return a.Name, string(a.Status)
}

// Managers yields the managers of an agent, the nearest first.
func Managers(tx *ledger.Tx, a Agent) func(yield func(Agent) bool) {
	return func(yield func(Agent) bool) {
		for range MaxOrgDepth {
			if a.ReportsTo == "" {
				return
			}
			boss, ok := AgentTable.Get(tx, a.Company, string(a.ReportsTo))
			if !ok || !yield(boss) {
				return
			}
			a = boss
		}
	}
}

func CheckParent(tx *ledger.Tx, i Issue) error {
	parent, ok := IssueTable.Get(tx, i.Company, i.Parent)
	if !ok {
		return ledger.Refuse(ledger.NotFound, nil, "Parent issue not found")
	}
	chain := append([]Issue{parent}, Ancestors(tx, parent)...)
	if slices.ContainsFunc(chain, func(a Issue) bool { return a.ID == i.ID }) {
		return ledger.Refuse(ledger.Unprocessable, nil, "Issue parent would create cycle")
	}
	if len(chain) >= MaxIssueDepth {
		return ledger.Refuse(ledger.Unprocessable, nil, "Issues can be nested at most %d deep", MaxIssueDepth)
	}
	n := 0
	for range IssuesByParent.IDs(tx, i.Company, i.Parent, false) {
		n++
	}
	if n >= MaxChildren {
		return ledger.Refuse(ledger.Unprocessable, nil, "An issue can have at most %d sub-issues", MaxChildren)
	}
	return nil
}
