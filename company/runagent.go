package company

import (
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// invokable refuses to invoke an agent that may not be invoked now, with the
// bodies that clients know.
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

// setAgentRunning notes that an agent is at work; an earlier error is over.
func setAgentRunning(c *ledger.Context, a entity.WakeTarget) {
	a.Status, a.ErrorReason, a.UpdatedAt = entity.AgentRunning, "", core.TimeOf(c.Now)
	entity.AgentTable.Put(c.Tx, a.Company, a.ID, a.Agent)
	RecordLive(c, ledger.Change{Action: "agent.status", EntityType: "agent", EntityID: a.ID,
		Details: core.Object{}.Str("agentId", a.ID).Str("status", "running").Str("outcome", "running").Close()})
}

// settleAgent sets an agent's state after one of its runs ended: at work while
// another runs, in error when this one went wrong and nothing makes up for it,
// else idle. A paused or terminated agent stays what it is.
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
		case slices.ContainsFunc(entity.LiveRunsOfAgent(c.Tx, r.Company, r.Agent), func(o entity.Run) bool { return o.Status == entity.RunRunning }):
			a.Status = entity.AgentRunning
		case r.Status == entity.RunFailed, r.Status == entity.RunTimedOut, r.Status == entity.RunInterrupted && next == nil:
			a.Status, a.ErrorReason = entity.AgentError, core.NullText(r.Error)
		}
	}
	entity.AgentTable.Put(c.Tx, a.Company, a.ID, a.Agent)
	RecordLive(c, ledger.Change{Action: "agent.status", EntityType: "agent", EntityID: a.ID,
		Details: core.Object{}.Str("agentId", a.ID).Str("status", string(a.Status)).Time("lastHeartbeatAt", now).
			Str("outcome", string(r.Status)).Close()})
}

// hasActionableWork reports whether an agent has an issue that it could go on with.
func hasActionableWork(tx *ledger.Tx, company, agent string) bool {
	for range entity.IssuesOf(tx, company, agent, entity.IssueTodo, entity.IssueInProgress, entity.IssueInReview) {
		return true
	}
	return false
}
