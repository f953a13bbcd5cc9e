package company

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// terminateAgent ends an agent for good: its runs end, its keys are revoked.
// Its reports and issues stay with it until somebody moves them.
func terminateAgent(c *ledger.Context, p ChangeAgent) (any, error) {
	a, ok := AgentTable.Get(c.Tx, c.Cmd.Company, p.Agent)
	if !ok {
		return nil, ErrNoAgent()
	}
	if a.Status == AgentTerminated {
		return AgentRef{a.ID}, nil
	}
	agentEnds(c, a)
	EndAgent(c, a, "Cancelled: the agent was terminated")
	return AgentRef{a.ID}, nil
}

// EndAgent is the end of an agent that is still there.
func EndAgent(c *ledger.Context, a Agent, why string) {
	CancelRunsOfAgent(c, a.Company, a.ID, DeniedAgent, why)
	releaseBoardLocks(c, a.Company, a.ID)
	a, _ = AgentTable.Get(c.Tx, a.Company, a.ID)
	a = a.Terminate(core.TimeOf(c.Now))
	AgentTable.Put(c.Tx, a.Company, a.ID, a)
	agentEnded(c, a)
	c.Record(ledger.Change{Action: "agent.terminated", EntityType: "agent", EntityID: a.ID})
}

// deleteAgent removes an agent. Its reports go to its manager, its open issues,
// goals and projects to nobody, and its routines rest. Its runs, costs and entries stay as history.
func deleteAgent(c *ledger.Context, p ChangeAgent) (any, error) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	if _, ok := AgentTable.Get(c.Tx, company, p.Agent); !ok {
		return nil, ErrNoAgent()
	}
	CancelRunsOfAgent(c, company, p.Agent, DeniedAgent, "Cancelled: the agent was deleted")
	a, _ := AgentTable.Get(c.Tx, company, p.Agent)
	n := 0
	for id := range agentsByManager.IDs(c.Tx, company, a.ID, false) {
		report, ok := AgentTable.Get(c.Tx, company, id)
		if !ok {
			continue
		}
		if n++; n > orphanLimit {
			return nil, ledger.Refuse(ledger.Conflict, nil, "More than %d agents report to this one; move them first", orphanLimit)
		}
		next := report
		next.ReportsTo, next.UpdatedAt = a.ReportsTo, now
		AgentTable.Put(c.Tx, next.Company, next.ID, next)
	}
	n = 0
	for i := range IssuesIn(c.Tx, company, IssuesOf(c.Tx, company, a.ID)) {
		if i.Status.Terminal() {
			continue
		}
		if n++; n > orphanLimit {
			return nil, ledger.Refuse(ledger.Conflict, nil, "More than %d open issues are this agent's; reassign them first", orphanLimit)
		}
		next := i.ForceRelease(true, now)
		StoreIssue(c.Tx, i, next)
	}
	leaderless(c, a.ID)
	unplanned(c, a.ID, "")
	agentEnds(c, a)
	agentDeleted(c, a)
	dropRevisions(c.Tx, a)
	for _, s := range TaskSessionsOf(c.Tx, company, a.ID) {
		taskSessions.Delete(c.Tx, company, sessionRow(a.ID, s.AdapterType, s.TaskKey))
	}
	runtimeStates.Delete(c.Tx, company, a.ID)
	AgentClocks.Delete(c.Tx, company, a.ID)
	AgentTable.Delete(c.Tx, company, a.ID)
	c.Record(ledger.Change{Action: "agent.deleted", EntityType: "agent", EntityID: a.ID, Details: core.Object{}.Str("name", a.Name).Close()})
	return nil, nil
}
