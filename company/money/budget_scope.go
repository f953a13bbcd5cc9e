package money

import (
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

func ScopeExists(tx *ledger.Tx, of ledger.CompanyID, t entity.ScopeType, id string) bool {
	switch t {
	case entity.ScopeAgent:
		return entity.AgentExists(tx, of, id)
	case entity.ScopeProject:
		return entity.ProjectExists(tx, of, id)
	case entity.ScopeCompany:
		return ledger.CompanyID(id) == of && tx.Has(entity.CompanyTable.Key(of, of))
	}
	return false
}

// ScopeName returns the name of a scope, "" when it was deleted.
func ScopeName(tx *ledger.Tx, of ledger.CompanyID, t entity.ScopeType, id string) string {
	switch t {
	case entity.ScopeAgent:
		a, _ := entity.AgentTable.Get(tx, of, id)
		return a.Name
	case entity.ScopeProject:
		p, _ := entity.ProjectTable.Get(tx, of, id)
		return p.Name
	}
	row, _ := entity.CompanyTable.Get(tx, of, of)
	return row.Name
}

// pauseScope pauses a scope that reached its limit and cancels its runs. It does not change
// a scope that is already stopped.
func pauseScope(c *ledger.Context, t entity.ScopeType, id string) error {
	of, now := c.Cmd.Company, core.TimeOf(c.Now)
	dropResumption(c, t, id)
	switch t {
	case entity.ScopeAgent:
		a, ok := entity.AgentTable.Get(c.Tx, of, id)
		if !ok || a.Status == entity.AgentPaused || a.Status == entity.AgentTerminated ||
			a.Status == entity.AgentPendingApproval {
			return nil
		}
		company.CancelRunsOfAgent(c, of, id, company.DeniedBudget, "Cancelled: the agent's budget hard-stop was reached")
		a, _ = entity.AgentTable.Get(c.Tx, of, id) // the cancellation may have changed its status
		a.Status, a.PauseReason, a.PausedAt, a.UpdatedAt = entity.AgentPaused, entity.PausedForBudget, now, now
		entity.AgentTable.Put(c.Tx, a.Company, a.ID, a)
	case entity.ScopeProject:
		p, ok := entity.ProjectTable.Get(c.Tx, of, id)
		if !ok || p.PauseReason != "" {
			return nil
		}
		p.PauseReason, p.PausedAt, p.UpdatedAt = entity.PausedForBudget, now, now
		entity.ProjectTable.Put(c.Tx, of, id, p)
	case entity.ScopeCompany:
		row, ok := entity.CompanyTable.Get(c.Tx, of, of)
		if !ok || row.Status != "active" {
			return nil
		}
		row.Status, row.PauseReason, row.PausedAt, row.UpdatedAt = "paused", entity.PausedForBudget, now, now
		entity.CompanyTable.Put(c.Tx, of, of, row)
	}
	cancelRunsIn(c, t, id)
	return nil
}

func cancelRunsIn(c *ledger.Context, t entity.ScopeType, id string) {
	for _, r := range entity.RunsInScope(c.Tx, c.Cmd.Company, t, id, company.MaxStoppedRuns) {
		company.DenyLive(c, r, company.DeniedBudget, "Cancelled: the budget hard-stop of the "+string(t)+" was reached")
	}
}

// resumeScope resumes a scope that only its budget stopped, and marks its work to be woken,
// see resumeWork.
func resumeScope(c *ledger.Context, t entity.ScopeType, id string) error {
	of, now := c.Cmd.Company, core.TimeOf(c.Now)
	if !entity.ScopePaused(c.Tx, of, t, id) {
		return nil
	}
	switch t {
	case entity.ScopeAgent:
		a, _ := entity.AgentTable.Get(c.Tx, of, id)
		toResume(c, t, id, a.PausedAt)
		a.PauseReason, a.PausedAt, a.UpdatedAt = "", 0, now
		if a.Status == entity.AgentPaused {
			a.Status = entity.AgentIdle
		}
		entity.AgentTable.Put(c.Tx, a.Company, a.ID, a)
	case entity.ScopeProject:
		p, _ := entity.ProjectTable.Get(c.Tx, of, id)
		toResume(c, t, id, p.PausedAt)
		p.PauseReason, p.PausedAt, p.UpdatedAt = "", 0, now
		entity.ProjectTable.Put(c.Tx, of, id, p)
	case entity.ScopeCompany:
		row, _ := entity.CompanyTable.Get(c.Tx, of, of)
		toResume(c, t, id, row.PausedAt)
		row.PauseReason, row.PausedAt, row.UpdatedAt = "", 0, now
		if row.Status == "paused" {
			row.Status = "active"
		}
		entity.CompanyTable.Put(c.Tx, of, of, row)
	}
	return nil
}

// renewScopes resumes the scopes of an agent's work that were stopped in a window that has
// ended.
func renewScopes(c *ledger.Context, agent, project string) error {
	for _, s := range (CostEvent{Company: c.Cmd.Company, Agent: agent, Project: core.NullText(project)}).ScopesOf() {
		b := BudgetOf(c.Tx, c.Cmd.Company, s.Type, s.ID, core.TimeOf(c.Now))
		if _, over := b.Exceeded(); !over {
			if err := renewScope(c, s.Type, s.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// renewScope is resumeScope without a request: only the activity log reports it.
func renewScope(c *ledger.Context, t entity.ScopeType, id string) error {
	if !entity.ScopePaused(c.Tx, c.Cmd.Company, t, id) {
		return nil
	}
	company.RecordLive(c, ledger.Change{Action: "budget.scope_resumed", EntityType: string(t), EntityID: id,
		Details: core.Object{}.Str("reason", "window_passed").Close()})
	return resumeScope(c, t, id)
}

// SweepBudgets is the payload of budget.sweep, by which the scheduler finishes what time or
// bounds left open. It resumes every scope of a company whose exhausted window has ended,
// closes the incidents of that window with their approvals, and cancels runs that still run
// in a stopped scope.
type SweepBudgets struct{}

func sweepBudgets(c *ledger.Context, _ SweepBudgets) (any, error) {
	if core.IsAgent(c) {
		return nil, core.ErrBoardOnly()
	}
	for _, in := range pastIncidents(c.Tx, c.Cmd.Company, core.TimeOf(c.Now), company.MaxStoppedRuns) {
		closeIncident(c, in.ID, "resolved")
	}
	swept := sweepReservations(c)
	for _, b := range Budgets(c.Tx, c.Cmd.Company, core.TimeOf(c.Now)) {
		if _, over := b.Exceeded(); over {
			cancelRunsIn(c, b.Type, b.ID)
			continue
		}
		if entity.ScopePaused(c.Tx, c.Cmd.Company, b.Type, b.ID) && slices.ContainsFunc(b.Policies,
			func(p BudgetPolicy) bool { return p.Window.Rolling() }) {
			if err := enforce(c, b); err != nil { // closes what a rolling window left open
				return nil, err
			}
		}
		if err := renewScope(c, b.Type, b.ID); err != nil {
			return nil, err
		}
	}
	if err := resumeWork(c); err != nil {
		return nil, err
	}
	if swept > 0 && len(c.Changes()) == 0 { // whatever changes a row leaves a line
		c.Record(ledger.Change{Action: "budget.reservations_swept", EntityType: "company", EntityID: string(c.Cmd.Company),
			Details: core.Object{}.Int("count", int64(swept)).Close()})
	}
	return nil, nil
}

// BudgetsToSweep reports whether budget.sweep would change something in a company: a scope is
// paused for a budget that is not exhausted at now, or has runs although it is, or an
// incident of a past window is open, or work that a budget stopped must be woken.
func BudgetsToSweep(tx *ledger.Tx, of ledger.CompanyID, now core.Time) bool {
	if workToResume(tx, of) || len(pastIncidents(tx, of, now, 1)) > 0 || len(staleReservations(tx, of, now, 1)) > 0 {
		return true
	}
	for _, b := range Budgets(tx, of, now) {
		if _, over := b.Exceeded(); over {
			if len(entity.RunsInScope(tx, of, b.Type, b.ID, 1)) > 0 {
				return true
			}
		} else if entity.ScopePaused(tx, of, b.Type, b.ID) {
			return true
		}
	}
	return false
}
