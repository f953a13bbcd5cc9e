package company

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// checkOutForRun checks out the issue that a starting run is about, so that its agent
// finds it in progress and assigned. It does nothing for an issue that waits for
// something else or is held by another run: the run continues and the agent sees that
// itself. r is stored already, and running.
func checkOutForRun(c *ledger.Context, r entity.Run) entity.Run {
	i, ok := entity.IssueTable.Get(c.Tx, r.Company, r.Context.IssueID)
	if ok {
		before := i
		i.ContinuationIdentity = string(r.IdentityContext)
		StoreIssue(c.Tx, before, i)
	}
	if !ok || i.Assignee != r.Agent || i.Status != entity.IssueTodo && i.Status != entity.IssueInProgress {
		return r
	}
	claim := entity.Claim{Agent: r.Agent, Run: r.ID, Now: core.TimeOf(c.Now), Height: c.Height}
	if _, err := checkOutFor(c, i.ID, []entity.IssueStatus{entity.IssueTodo}, claim); err == nil {
		r.Context.CheckedOut = true
	}
	return r
}
