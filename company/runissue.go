package company

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// gone says why a run that was woken for an issue is not needed any more, or "".
// Only a person's wish stands whatever became of the issue.
func (r Run) gone(tx *ledger.Tx) string {
	if OnHold(tx, r.Company, r.Context.IssueID) {
		return "Cancelled: its issue's tree is on hold"
	}
	if r.Context.IssueID == "" || r.Source != WakeAssignment && r.RetryOf == "" {
		return ""
	}
	switch i, ok := IssueTable.Get(tx, r.Company, r.Context.IssueID); {
	case !ok:
		return "Cancelled: its issue is gone"
	case i.Assignee != r.Agent:
		return "Cancelled: its issue was assigned to somebody else"
	case i.Status.Terminal():
		return "Cancelled: its issue is " + string(i.Status)
	}
	return ""
}

// checkOutForRun checks the issue out that a starting run is about, so that its
// agent finds it in progress and its own. An issue that waits for something
// else, or that another run holds, is left alone: the run goes on and its agent
// sees for itself. r is stored already, and running.
func checkOutForRun(c *ledger.Context, r Run) Run {
	i, ok := IssueTable.Get(c.Tx, r.Company, r.Context.IssueID)
	if ok {
		before := i
		i.ContinuationIdentity = string(r.IdentityContext)
		StoreIssue(c.Tx, before, i)
	}
	if !ok || i.Assignee != r.Agent || i.Status != IssueTodo && i.Status != IssueInProgress {
		return r
	}
	claim := Claim{Agent: r.Agent, Run: r.ID, Now: core.TimeOf(c.Now), Height: c.Height}
	if _, err := checkOutFor(c, i.ID, []IssueStatus{IssueTodo}, claim); err == nil {
		r.Context.CheckedOut = true
	}
	return r
}
