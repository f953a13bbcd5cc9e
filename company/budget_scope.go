package company

import (
	"slices"

	"github.com/selvage-mesh/selvage/ledger"
)

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

// pauseScope stops a scope that has reached its limit, and cancels what runs in
// it. A scope that is stopped already stays as it is.
func pauseScope(c *ledger.Context, t ScopeType, id string) error {
	company, now := c.Cmd.Company, TimeOf(c.Now)
	dropResumption(c, t, id)
	switch t {
	case ScopeAgent:
		a, ok := agents.Get(c.Tx, company, id)
		if !ok || a.Status == AgentPaused || a.Status == AgentTerminated || a.Status == AgentPendingApproval {
			return nil
		}
		cancelRunsOfAgent(c, company, id, DeniedBudget, "Cancelled: the agent's budget hard-stop was reached")
		a, _ = agents.Get(c.Tx, company, id) // cancelling settled its state
		a.Status, a.PauseReason, a.PausedAt, a.UpdatedAt = AgentPaused, pausedForBudget, now, now
		agents.Put(c.Tx, a.Company, a.ID, a)
	case ScopeProject:
		p, ok := projects.Get(c.Tx, company, id)
		if !ok || p.PauseReason != "" {
			return nil
		}
		p.PauseReason, p.PausedAt, p.UpdatedAt = pausedForBudget, now, now
		projects.Put(c.Tx, company, id, p)
	case ScopeCompany:
		row, ok := companies.Get(c.Tx, company, company)
		if !ok || row.Status != "active" {
			return nil
		}
		row.Status, row.PauseReason, row.PausedAt, row.UpdatedAt = "paused", pausedForBudget, now, now
		companies.Put(c.Tx, company, company, row)
	}
	cancelRunsIn(c, t, id)
	return nil
}

func cancelRunsIn(c *ledger.Context, t ScopeType, id string) {
	for _, r := range runsInScope(c.Tx, c.Cmd.Company, t, id, maxStoppedRuns) {
		denyLive(c, r, DeniedBudget, "Cancelled: the budget hard-stop of the "+string(t)+" was reached")
	}
}

// resumeScope lets a scope go on that was stopped for its budget alone, and notes
// that its work is to be woken, see resumeWork.
func resumeScope(c *ledger.Context, t ScopeType, id string) error {
	company, now := c.Cmd.Company, TimeOf(c.Now)
	if !ScopePaused(c.Tx, company, t, id) {
		return nil
	}
	switch t {
	case ScopeAgent:
		a, _ := agents.Get(c.Tx, company, id)
		toResume(c, t, id, a.PausedAt)
		a.PauseReason, a.PausedAt, a.UpdatedAt = "", 0, now
		if a.Status == AgentPaused {
			a.Status = AgentIdle
		}
		agents.Put(c.Tx, a.Company, a.ID, a)
	case ScopeProject:
		p, _ := projects.Get(c.Tx, company, id)
		toResume(c, t, id, p.PausedAt)
		p.PauseReason, p.PausedAt, p.UpdatedAt = "", 0, now
		projects.Put(c.Tx, company, id, p)
	case ScopeCompany:
		row, _ := companies.Get(c.Tx, company, company)
		toResume(c, t, id, row.PausedAt)
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
			if err := renewScope(c, s.Type, s.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// renewScope is resumeScope where nobody asked for it: its line in the activity
// log is all that tells of it.
func renewScope(c *ledger.Context, t ScopeType, id string) error {
	if !ScopePaused(c.Tx, c.Cmd.Company, t, id) {
		return nil
	}
	recordLive(c, ledger.Change{Action: "budget.scope_resumed", EntityType: string(t), EntityID: id, Details: jsonObject{}.str("reason", "window_passed").close()})
	return resumeScope(c, t, id)
}

// SweepBudgets is the payload of budget.sweep, by which the scheduler finishes
// what time or numbers left: it lets every scope of a company go on whose
// exhausted window has passed, closes the incidents of that window with the
// approvals that ask about them, and cancels runs that go on in a stopped one.
type SweepBudgets struct{}

func sweepBudgets(c *ledger.Context, _ SweepBudgets) (any, error) {
	if isAgent(c) {
		return nil, errBoardOnly()
	}
	for _, in := range pastIncidents(c.Tx, c.Cmd.Company, TimeOf(c.Now), maxStoppedRuns) {
		closeIncident(c, in.ID, "resolved")
	}
	sweepReservations(c)
	for _, b := range Budgets(c.Tx, c.Cmd.Company, TimeOf(c.Now)) {
		if _, over := b.Exceeded(); over {
			cancelRunsIn(c, b.Type, b.ID)
			continue
		}
		if ScopePaused(c.Tx, c.Cmd.Company, b.Type, b.ID) && slices.ContainsFunc(b.Policies, func(p BudgetPolicy) bool { return p.Window.rolling() }) {
			if err := enforce(c, b); err != nil { // closes what a rolling window has left behind
				return nil, err
			}
		}
		if err := renewScope(c, b.Type, b.ID); err != nil {
			return nil, err
		}
	}
	return nil, resumeWork(c)
}

// BudgetsToSweep reports whether budget.sweep would change something in company:
// a scope is paused for a budget that is not exhausted at now, or runs go on in
// one that is, or an incident is open whose window has passed, or work is to be
// woken that a budget had stopped.
func BudgetsToSweep(tx *ledger.Tx, company string, now Time) bool {
	if workToResume(tx, company) || len(pastIncidents(tx, company, now, 1)) > 0 || len(staleReservations(tx, company, now, 1)) > 0 {
		return true
	}
	for _, b := range Budgets(tx, company, now) {
		if _, over := b.Exceeded(); over {
			if len(runsInScope(tx, company, b.Type, b.ID, 1)) > 0 {
				return true
			}
		} else if ScopePaused(tx, company, b.Type, b.ID) {
			return true
		}
	}
	return false
}
