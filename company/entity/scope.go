package entity

import (
	"slices"

	"github.com/selvage-mesh/selvage/ledger"
)

// A scope is what work belongs to that a budget may stop: a company, an agent or a
// project. What the rules of work must know of scopes stands here; the budgets
// themselves are elsewhere.

// A ScopeType says what a budget is for. Persisted: do not rename.
type ScopeType string

const (
	ScopeCompany ScopeType = "company"
	ScopeAgent   ScopeType = "agent"
	ScopeProject ScopeType = "project"
)

// PausedForBudget is the pause reason of a scope that reached its limit; such a
// pause ends with the limit, any other only by a person.
const PausedForBudget = "budget"

// ScopePaused reports whether a scope is paused because of its budget.
func ScopePaused(tx *ledger.Tx, company ledger.CompanyID, t ScopeType, id string) bool {
	switch t {
	case ScopeAgent:
		a, _ := AgentTable.Get(tx, company, id)
		return a.PauseReason == PausedForBudget
	case ScopeProject:
		p, _ := ProjectTable.Get(tx, company, id)
		return p.PauseReason == PausedForBudget
	}
	row, _ := CompanyTable.Get(tx, company, company)
	return row.PauseReason == PausedForBudget
}

// ProjectOfWork returns the project whose budget runs about an issue keep to, "" for
// none.
func ProjectOfWork(tx *ledger.Tx, company ledger.CompanyID, issue string) string {
	if issue == "" {
		return ""
	}
	return ProjectOfIssue(tx, company, issue)
}

// ProjectStopped reports whether no run about an issue begins because of the budget of
// its project.
func ProjectStopped(tx *ledger.Tx, company ledger.CompanyID, issue string) bool {
	project := ProjectOfWork(tx, company, issue)
	return project != "" && ScopePaused(tx, company, ScopeProject, project)
}

// RunsInScope returns up to limit live runs of a company or project: of the agents of
// the one, on the issues of the other.
func RunsInScope(tx *ledger.Tx, company ledger.CompanyID, t ScopeType, id string, limit int) []Run {
	var out []Run
	switch t {
	case ScopeCompany:
		for agent := range AgentTable.All(tx, company) {
			out = append(out, LiveRunsOfAgent(tx, company, agent)...)
			if len(out) >= limit {
				return out[:limit]
			}
		}
	case ScopeProject:
		for i := range IssuesIn(tx, company, IssuesByProject.IDs(tx, company, id, false)) {
			if i.CheckoutRun == "" {
				continue
			}
			if r, ok := RunTable.Get(tx, company, i.CheckoutRun); ok && r.Status.Live() && !slices.ContainsFunc(out,
				func(o Run) bool { return o.ID == r.ID }) {
				out = append(out, r)
			}
			if len(out) == limit {
				break
			}
		}
	}
	return out
}

// ProjectOfIssue returns the project that an issue belongs to, "" for none.
func ProjectOfIssue(tx *ledger.Tx, company ledger.CompanyID, issue string) string {
	i, _ := IssueTable.Get(tx, company, issue)
	return i.Project
}
