package company

import (
	"github.com/selvage-mesh/selvage/ledger"
)

// pausedForBudget is the pause reason of a scope that reached its limit; such a
// pause ends with the limit, any other only by a person.
const pausedForBudget = "budget"

// maxStoppedIssues bounds the issues in progress whose runs one hard stop of a
// project cancels at once.
const maxStoppedIssues = 200

func scopeExists(tx *ledger.Tx, company string, t ScopeType, id string) bool {
	switch t {
	case ScopeAgent:
		return agentExists(tx, company, id)
	case ScopeProject:
		return projectExists(tx, company, id)
	case ScopeCompany:
		return id == company && tx.Has(companies.Key(company, company))
	}
	return false
}

// ScopeName returns the name of a scope, "" when it is gone.
func ScopeName(tx *ledger.Tx, company string, t ScopeType, id string) string {
	switch t {
	case ScopeAgent:
		a, _ := agents.Get(tx, company, id)
		return a.Name
	case ScopeProject:
		p, _ := projects.Get(tx, company, id)
		return p.Name
	}
	row, _ := companies.Get(tx, company, company)
	return row.Name
}

// ScopePaused reports whether a scope is paused because of its budget.
func ScopePaused(tx *ledger.Tx, company string, t ScopeType, id string) bool {
	return scopePaused(tx, company, t, id)
}

func scopePaused(tx *ledger.Tx, company string, t ScopeType, id string) bool {
	switch t {
	case ScopeAgent:
		a, _ := agents.Get(tx, company, id)
		return a.PauseReason == pausedForBudget
	case ScopeProject:
		p, _ := projects.Get(tx, company, id)
		return p.PauseReason == pausedForBudget
	}
	row, _ := companies.Get(tx, company, company)
	return row.PauseReason == pausedForBudget
}

// pauseScope stops a scope that has reached its limit, and cancels what runs in
// it. A scope that is stopped already stays as it is.
func pauseScope(c *ledger.Context, t ScopeType, id string) error {
	company, now := c.Cmd.Company, TimeOf(c.Now)
	switch t {
	case ScopeAgent:
		a, ok := agents.Get(c.Tx, company, id)
		if !ok || a.Status == AgentPaused || a.Status == AgentTerminated || a.Status == AgentPendingApproval {
			return nil
		}
		cancelRunsOfAgent(c, company, id, "Cancelled: the agent's budget hard-stop was reached")
		a, _ = agents.Get(c.Tx, company, id) // cancelling settled its state
		a.Status, a.PauseReason, a.PausedAt, a.UpdatedAt = AgentPaused, pausedForBudget, now, now
		agents.Put(c.Tx, company, id, a)
	case ScopeProject:
		p, ok := projects.Get(c.Tx, company, id)
		if !ok || p.PauseReason != "" {
			return nil
		}
		p.PauseReason, p.PausedAt, p.UpdatedAt = pausedForBudget, now, now
		projects.Put(c.Tx, company, id, p)
		cancelRunsOfProject(c, company, id)
	case ScopeCompany:
		row, ok := companies.Get(c.Tx, company, company)
		if !ok || row.Status != "active" {
			return nil
		}
		row.Status, row.PauseReason, row.PausedAt, row.UpdatedAt = "paused", pausedForBudget, now, now
		companies.Put(c.Tx, company, company, row)
		for agent := range agents.All(c.Tx, company) {
			cancelRunsOfAgent(c, company, agent, "Cancelled: the company's budget hard-stop was reached")
		}
	}
	return nil
}

// cancelRunsOfProject cancels the runs that hold issues of a project.
func cancelRunsOfProject(c *ledger.Context, company, project string) {
	n := 0
	for i := range issuesIn(c.Tx, company, issuesByProject.IDs(c.Tx, company, project, false)) {
		if i.CheckoutRun == "" {
			continue
		}
		if r, ok := runs.Get(c.Tx, company, i.CheckoutRun); ok && r.Status.Live() {
			cancelLive(c, r, "Cancelled: the project's budget hard-stop was reached", c.Cmd.Actor)
		}
		if n++; n == maxStoppedIssues {
			return
		}
	}
}

// resumeScope lets a scope go on that was stopped for its budget alone.
func resumeScope(c *ledger.Context, t ScopeType, id string) error {
	company, now := c.Cmd.Company, TimeOf(c.Now)
	if !scopePaused(c.Tx, company, t, id) {
		return nil
	}
	switch t {
	case ScopeAgent:
		a, _ := agents.Get(c.Tx, company, id)
		a.PauseReason, a.PausedAt, a.UpdatedAt = "", 0, now
		if a.Status == AgentPaused {
			a.Status = AgentIdle
		}
		agents.Put(c.Tx, company, id, a)
	case ScopeProject:
		p, _ := projects.Get(c.Tx, company, id)
		p.PauseReason, p.PausedAt, p.UpdatedAt = "", 0, now
		projects.Put(c.Tx, company, id, p)
	case ScopeCompany:
		row, _ := companies.Get(c.Tx, company, company)
		row.PauseReason, row.PausedAt, row.UpdatedAt = "", 0, now
		if row.Status == "paused" {
			row.Status = "active"
		}
		companies.Put(c.Tx, company, company, row)
	}
	return nil
}

// renewScopes lets the scopes of an agent's work go on that were stopped in a
// window that has passed.
func renewScopes(c *ledger.Context, agent, project string) error {
	for _, s := range (CostEvent{Company: c.Cmd.Company, Agent: agent, Project: NullText(project)}).scopesOf() {
		b := BudgetOf(c.Tx, c.Cmd.Company, s.Type, s.ID, TimeOf(c.Now))
		if _, over := b.Exceeded(); !over {
			if err := resumeScope(c, s.Type, s.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// RenewBudgets is the payload of budget.renew, by which the scheduler lets every
// scope of a company go on whose exhausted window has passed.
type RenewBudgets struct{}

func renewBudgets(c *ledger.Context, _ RenewBudgets) (any, error) {
	for _, b := range Budgets(c.Tx, c.Cmd.Company, TimeOf(c.Now)) {
		if _, over := b.Exceeded(); over {
			continue
		}
		if err := resumeScope(c, b.Type, b.ID); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// BudgetsToRenew reports whether a scope of company is paused for a budget that
// is not exceeded at now, so that budget.renew would let it go on.
func BudgetsToRenew(tx *ledger.Tx, company string, now Time) bool {
	for _, b := range Budgets(tx, company, now) {
		if _, over := b.Exceeded(); !over && scopePaused(tx, company, b.Type, b.ID) {
			return true
		}
	}
	return false
}
