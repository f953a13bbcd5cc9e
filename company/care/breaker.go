package care

import (
	"strconv"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Fruitless reports whether an ended run changed nothing: it failed, or it succeeded and left
// its issue unchanged. tells is false for a cancelled run and for one whose node was lost.
func Fruitless(r entity.Run) (fruitless, tells bool) {
	switch r.Status {
	case entity.RunFailed, entity.RunTimedOut:
		return true, true
	case entity.RunSucceeded:
		return r.LivenessState == "needs_followup" || r.LivenessState == "empty_response" && r.Context.IssueID != "", true
	}
	return false, false
}

// breakCircuit counts an agent's consecutive fruitless runs and pauses the agent when there
// are too many, so that its payer decides. The issue of the last run is blocked with a
// recovery action for the board.
func breakCircuit(c *ledger.Context, r entity.Run) {
	fruitless, tells := Fruitless(r)
	a, ok := entity.Wakeable(c.Tx, r.Company, r.Agent)
	if !tells || !ok {
		return
	}
	clock, _ := entity.AgentClocks.Get(c.Tx, r.Company, r.Agent)
	if !fruitless {
		if clock.Fruitless != 0 {
			clock.Fruitless = 0
			entity.AgentClocks.Put(c.Tx, r.Company, r.Agent, clock)
		}
		return
	}
	clock.Fruitless++
	limit := a.Policy().MaxFruitlessRuns
	tripped := limit > 0 && clock.Fruitless >= limit && (a.Status == entity.AgentIdle || a.Status == entity.AgentRunning ||
		a.Status == entity.AgentError || a.Status == entity.AgentActive)
	if tripped {
		clock.Fruitless = 0 // after a resume it gets as many runs again
	}
	entity.AgentClocks.Put(c.Tx, r.Company, r.Agent, clock)
	if !tripped {
		return
	}
	why := "Paused: " + strconv.FormatInt(limit, 10) + " runs in a row came to nothing"
	company.CancelRunsOfAgent(c, r.Company, r.Agent, company.DeniedNoProgress,
		"Cancelled: the agent was paused, its runs came to nothing")
	row, _ := entity.AgentTable.Get(c.Tx, r.Company, r.Agent)
	now := core.TimeOf(c.Now)
	row.Status, row.PauseReason, row.PausedAt, row.ErrorReason, row.UpdatedAt = entity.AgentPaused,
		entity.PausedForNoProgress, now, core.NullText(why), now
	entity.AgentTable.Put(c.Tx, row.Company, row.ID, row)
	c.Record(ledger.Change{Action: "agent.paused_no_progress", EntityType: "agent", EntityID: r.Agent,
		Details: core.Object{}.Str("reason", why).Int("runs", limit).Str("lastRunId", r.ID).Null("lastError",
			string(r.Error)).Close()})
	if i, ok := entity.IssueTable.Get(c.Tx, r.Company, r.Context.IssueID); ok && r.Context.IssueID != "" &&
		i.Assignee == r.Agent && !i.Status.Terminal() && i.Status != entity.IssueBlocked {
		blockFruitless(c, i, r, limit)
	}
}

// blockFruitless blocks an issue with fruitless runs for the board.
func blockFruitless(c *ledger.Context, i entity.Issue, r entity.Run, limit int64) {
	blockFor(c, i, r, entity.PausedForNoProgress, entity.PausedForNoProgress,
		"Find out why the runs come to nothing, resume the agent, and reopen or reassign the issue.",
		"The agent's last "+strconv.FormatInt(limit, 10)+" runs came to nothing, so the agent is paused. "+
			"The issue is blocked until a person decides: resume the agent and reopen the issue, reassign it, or close it.")
}
