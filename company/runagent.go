package company

import (
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// invokable refuses to invoke an agent that may not run now, with the error bodies of the
// contract.
func invokable(tx *ledger.Tx, a entity.WakeTarget) error {
	switch why := a.Stopped(tx); why {
	case "":
		return nil
	case "budget.blocked":
		return ledger.Refuse(ledger.Conflict, core.Object{}.Str("scopeType", "agent").Str("scopeId", a.ID).Close(),
			"Agent is paused because its budget hard-stop was reached.")
	default:
		_, reason, _ := strings.Cut(why, ".")
		return ledger.Refuse(ledger.Conflict, core.Object{}.Str("status", string(a.Status)).Str("reason", reason).
			Bool("invalidOrgChain", false).Str("agentId", a.ID).Str("agentStatus", string(a.Status)).Close(),
			"Agent is not invokable in its current state")
	}
}

// setAgentRunning sets an agent's status to running and clears its error.
func setAgentRunning(c *ledger.Context, a entity.WakeTarget) {
	a.Status, a.ErrorReason, a.UpdatedAt = entity.AgentRunning, "", core.TimeOf(c.Now)
	entity.AgentTable.Put(c.Tx, a.Company, a.ID, a.Agent)
	RecordLive(c, ledger.Change{Action: "agent.status", EntityType: "agent", EntityID: a.ID,
		Details: core.Object{}.Str("agentId", a.ID).Str("status", "running").Str("outcome", "running").Close()})
}

// settleAgent sets an agent's status after one of its runs ended: running while another
// run is, error when this run failed and no retry follows, else idle. Paused and
// terminated agents keep their status.
func settleAgent(c *ledger.Context, r entity.Run, started bool, next *entity.Run) {
	a, ok := entity.Wakeable(c.Tx, r.Company, r.Agent)
	if !ok || !started {
		return
	}
	now := core.TimeOf(c.Now)
	a.LastHeartbeatAt, a.UpdatedAt = now, now
	if a.Status == entity.AgentRunning || a.Status == entity.AgentIdle || a.Status == entity.AgentError {
		a.Status, a.ErrorReason = entity.AgentIdle, ""
		switch {
		case entity.AnyLiveRun(c.Tx, r.Company, r.Agent, func(o entity.Run) bool { return o.Status == entity.RunRunning }):
			a.Status = entity.AgentRunning
		case r.Status == entity.RunFailed, r.Status == entity.RunTimedOut, r.Status == entity.RunInterrupted && next == nil:
			a.Status, a.ErrorReason = entity.AgentError, r.Error
		}
	}
	entity.AgentTable.Put(c.Tx, a.Company, a.ID, a.Agent)
	RecordLive(c, ledger.Change{Action: "agent.status", EntityType: "agent", EntityID: a.ID,
		Details: core.Object{}.Str("agentId", a.ID).Str("status", string(a.Status)).Time("lastHeartbeatAt", now).
			Str("outcome", string(r.Status)).Close()})
}

// hasActionableWork reports whether an agent has an issue that it could continue.
func hasActionableWork(tx *ledger.Tx, company ledger.CompanyID, agent string) bool {
	for range entity.IssuesOf(tx, company, agent, entity.IssueTodo, entity.IssueInProgress, entity.IssueInReview) {
		return true
	}
	return false
}
