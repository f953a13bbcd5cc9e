package company

import (
	"github.com/selvage-mesh/selvage/ledger"
)

// terminateAgent ends an agent for good: its runs end, its keys are revoked.
// Its reports and issues stay with it until somebody moves them.
func terminateAgent(c *ledger.Context, p ChangeAgent) (any, error) {
	a, ok := agents.Get(c.Tx, c.Cmd.Company, p.Agent)
	if !ok {
		return nil, errNoAgent()
	}
	if a.Status == AgentTerminated {
		return AgentRef{a.ID}, nil
	}
	agentEnds(c, a)
	endAgent(c, a, "Cancelled: the agent was terminated")
	return AgentRef{a.ID}, nil
}

// endAgent is the end of an agent that is still there.
func endAgent(c *ledger.Context, a Agent, why string) {
	cancelRunsOfAgent(c, a.Company, a.ID, DeniedAgent, why)
	releaseBoardLocks(c, a.Company, a.ID)
	a, _ = agents.Get(c.Tx, a.Company, a.ID)
	a = a.Terminate(TimeOf(c.Now))
	agents.Put(c.Tx, a.Company, a.ID, a)
	agentEnded(c, a)
	c.Record(ledger.Change{Action: "agent.terminated", EntityType: "agent", EntityID: a.ID})
}

// deleteAgent removes an agent. Its reports go to its manager, its open issues,
// goals and projects to nobody, and its routines rest. Its runs, costs and entries stay as history.
func deleteAgent(c *ledger.Context, p ChangeAgent) (any, error) {
	company, now := c.Cmd.Company, TimeOf(c.Now)
	if _, ok := agents.Get(c.Tx, company, p.Agent); !ok {
		return nil, errNoAgent()
	}
	cancelRunsOfAgent(c, company, p.Agent, DeniedAgent, "Cancelled: the agent was deleted")
	a, _ := agents.Get(c.Tx, company, p.Agent)
	n := 0
	for id := range agentsByManager.IDs(c.Tx, company, a.ID, false) {
		report, ok := agents.Get(c.Tx, company, id)
		if !ok {
			continue
		}
		if n++; n > orphanLimit {
			return nil, ledger.Refuse(ledger.Conflict, nil, "More than %d agents report to this one; move them first", orphanLimit)
		}
		next := report
		next.ReportsTo, next.UpdatedAt = a.ReportsTo, now
		agents.Put(c.Tx, next.Company, next.ID, next)
	}
	n = 0
	for i := range issuesIn(c.Tx, company, issuesOf(c.Tx, company, a.ID)) {
		if i.Status.Terminal() {
			continue
		}
		if n++; n > orphanLimit {
			return nil, ledger.Refuse(ledger.Conflict, nil, "More than %d open issues are this agent's; reassign them first", orphanLimit)
		}
		next := i.ForceRelease(true, now)
		storeIssue(c.Tx, i, next)
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
	agentClocks.Delete(c.Tx, company, a.ID)
	agents.Delete(c.Tx, company, a.ID)
	c.Record(ledger.Change{Action: "agent.deleted", EntityType: "agent", EntityID: a.ID, Details: jsonObject{}.str("name", a.Name).close()})
	return nil, nil
}
