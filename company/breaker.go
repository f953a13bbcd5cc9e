package company

import (
	"strconv"

	"github.com/selvage-mesh/selvage/ledger"
)

// fruitless reports whether a run that ended came to nothing: it failed, or ended
// well and left its issue as it was. Runs that were cancelled or whose node was
// lost tell neither way.
func (r Run) fruitless() (fruitless, tells bool) {
	switch r.Status {
	case RunFailed, RunTimedOut:
		return true, true
	case RunSucceeded:
		return r.LivenessState == "needs_followup" || r.LivenessState == "empty_response" && r.Context.IssueID != "", true
	}
	return false, false
}

// breakCircuit counts the runs of an agent that came to nothing, one after the
// other, and pauses the agent when there are too many: whoever pays for it
// decides whether it goes on. The issue of the last run is blocked, with a
// recovery action for the board.
func breakCircuit(c *ledger.Context, r Run) {
	fruitless, tells := r.fruitless()
	a, ok := wakeable(c.Tx, r.Company, r.Agent)
	if !tells || !ok {
		return
	}
	clock, _ := agentClocks.Get(c.Tx, r.Company, r.Agent)
	if !fruitless {
		if clock.Fruitless != 0 {
			clock.Fruitless = 0
			agentClocks.Put(c.Tx, r.Company, r.Agent, clock)
		}
		return
	}
	clock.Fruitless++
	limit := a.policy().MaxFruitlessRuns
	tripped := limit > 0 && clock.Fruitless >= limit && (a.Status == AgentIdle || a.Status == AgentRunning || a.Status == AgentError || a.Status == AgentActive)
	if tripped {
		clock.Fruitless = 0 // whoever resumes it gives it as many again
	}
	agentClocks.Put(c.Tx, r.Company, r.Agent, clock)
	if !tripped {
		return
	}
	why := "Paused: " + strconv.FormatInt(limit, 10) + " runs in a row came to nothing"
	cancelRunsOfAgent(c, r.Company, r.Agent, DeniedNoProgress, "Cancelled: the agent was paused, its runs came to nothing")
	row, _ := agents.Get(c.Tx, r.Company, r.Agent)
	now := TimeOf(c.Now)
	row.Status, row.PauseReason, row.PausedAt, row.ErrorReason, row.UpdatedAt = AgentPaused, pausedForNoProgress, now, NullText(why), now
	agents.Put(c.Tx, row.Company, row.ID, row)
	c.Record(ledger.Change{Action: "agent.paused_no_progress", EntityType: "agent", EntityID: r.Agent,
		Details: jsonObject{}.str("reason", why).int("runs", limit).str("lastRunId", r.ID).null("lastError", string(r.Error)).close()})
	if i, ok := issues.Get(c.Tx, r.Company, r.Context.IssueID); ok && r.Context.IssueID != "" && i.Assignee == r.Agent && !i.Status.Terminal() && i.Status != IssueBlocked {
		blockFruitless(c, i, r, limit)
	}
}

// blockFruitless puts an issue before the board on which runs came to nothing.
func blockFruitless(c *ledger.Context, i Issue, r Run, limit int64) {
	blockFor(c, i, r, pausedForNoProgress, pausedForNoProgress, "Find out why the runs come to nothing, resume the agent, and reopen or reassign the issue.",
		"The agent's last "+strconv.FormatInt(limit, 10)+" runs came to nothing, so the agent is paused. "+
			"The issue is blocked until a person decides: resume the agent and reopen the issue, reassign it, or close it.")
}
