package company

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// terminateAgent ends an agent for good: its runs are cancelled and its keys revoked.
// Its reports and issues stay with it until somebody moves them.
func terminateAgent(c *ledger.Context, p ChangeAgent) (any, error) {
	a, ok := entity.AgentTable.Get(c.Tx, c.Cmd.Company, p.Agent)
	if !ok {
		return nil, entity.ErrNoAgent()
	}
	if a.Status == entity.AgentTerminated {
		return AgentRef{a.ID}, nil
	}
	agentEnds(c, a)
	EndAgent(c, a, "Cancelled: the agent was terminated")
	return AgentRef{a.ID}, nil
}

// EndAgent terminates an agent that still exists.
func EndAgent(c *ledger.Context, a entity.Agent, why string) {
	CancelRunsOfAgent(c, a.Company, a.ID, DeniedAgent, why)
	releaseBoardLocks(c, a.Company, a.ID)
	a, _ = entity.AgentTable.Get(c.Tx, a.Company, a.ID)
	a = a.Terminate(core.TimeOf(c.Now))
	entity.AgentTable.Put(c.Tx, a.Company, a.ID, a)
	agentEnded(c, a)
	c.Record(ledger.Change{Action: "agent.terminated", EntityType: "agent", EntityID: a.ID})
}

// deleteAgent deletes an agent. Its reports move to its manager, its open issues, goals
// and projects become unassigned, and its routines are paused. Its runs, costs and
// entries stay as history.
func deleteAgent(c *ledger.Context, p ChangeAgent) (any, error) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	if _, ok := entity.AgentTable.Get(c.Tx, company, p.Agent); !ok {
		return nil, entity.ErrNoAgent()
	}
	CancelRunsOfAgent(c, company, p.Agent, DeniedAgent, "Cancelled: the agent was deleted")
	a, _ := entity.AgentTable.Get(c.Tx, company, p.Agent)
	n := 0
	for id := range entity.AgentsByManager.IDs(c.Tx, company, a.ID, false) {
		report, ok := entity.AgentTable.Get(c.Tx, company, id)
		if !ok {
			continue
		}
		if n++; n > orphanLimit {
			return nil, ledger.Refuse(ledger.Conflict, nil, "More than %d agents report to this one; move them first",
				orphanLimit)
		}
		next := report
		next.ReportsTo, next.UpdatedAt = a.ReportsTo, now
		entity.AgentTable.Put(c.Tx, next.Company, next.ID, next)
	}
	n = 0
	for i := range entity.IssuesIn(c.Tx, company, entity.IssuesOf(c.Tx, company, a.ID)) {
		if i.Status.Terminal() {
			continue
		}
		if n++; n > orphanLimit {
			return nil, ledger.Refuse(ledger.Conflict, nil, "More than %d open issues are this agent's; reassign them first",
				orphanLimit)
		}
		next := i.ForceRelease(true, now)
		StoreIssue(c.Tx, i, next)
	}
	leaderless(c, a.ID)
	unplanned(c, a.ID, "")
	agentEnds(c, a)
	agentDeleted(c, a)
	dropRevisions(c.Tx, a)
	for _, s := range entity.TaskSessionsOf(c.Tx, company, a.ID) {
		entity.TaskSessions.Delete(c.Tx, company, entity.SessionRow(a.ID, s.AdapterType, s.TaskKey))
	}
	entity.RuntimeStates.Delete(c.Tx, company, a.ID)
	entity.AgentClocks.Delete(c.Tx, company, a.ID)
	entity.AgentTable.Delete(c.Tx, company, a.ID)
	c.Record(ledger.Change{Action: "agent.deleted", EntityType: "agent", EntityID: a.ID, Details: core.Object{}.Str("name",
		a.Name).Close()})
	return nil, nil
}

// leaderless clears a deleted agent from the projects that it led and the goals that
// it owned.
func leaderless(c *ledger.Context, agent string) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	for id, p := range entity.ProjectTable.All(c.Tx, company) {
		if string(p.Lead) == agent {
			p.Lead, p.UpdatedAt = "", now
			entity.ProjectTable.Put(c.Tx, company, id, p)
		}
	}
	for id, g := range entity.Goals.All(c.Tx, company) {
		if string(g.Owner) == agent { // does not change whose root goal it is, see StoreGoal
			g.Owner, g.UpdatedAt = "", now
			entity.Goals.Put(c.Tx, company, id, g)
		}
	}
}

// MaxStoppedRuns bounds the runs of a company or project that one command cancels. A
// run takes about ten keys. budget.sweep cancels the rest.
const MaxStoppedRuns = 200
