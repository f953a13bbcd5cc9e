package company

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// RetryNow is the payload of run.retry_now: the run that waits to retry an issue starts
// now.
type RetryNow struct {
	Issue string `cbor:"1,keyasint"`
}

// RetryOf returns the run that waits to retry an issue.
func RetryOf(tx *ledger.Tx, i entity.Issue) (entity.Run, bool) {
	if i.Status.Terminal() {
		return entity.Run{}, false
	}
	for _, r := range entity.LiveRunsOnIssue(tx, i) {
		if r.Status == entity.RunScheduledRetry {
			return r, true
		}
	}
	return entity.Run{}, false
}

func retryNow(c *ledger.Context, p RetryNow) (any, error) {
	i, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, ErrNoIssue()
	}
	if err := MayUpdate(c, i); err != nil {
		return nil, err
	}
	r, ok := RetryOf(c.Tx, i)
	if !ok {
		return nil, core.RefuseCode(ledger.Conflict, "no_scheduled_retry", core.Object{}.Str("issueId", i.ID).
			Str("status", string(i.Status)).Close(), "No run of the issue waits to try again")
	}
	return tryNow(c, i, r), nil
}

// tryNow makes a run that waits to retry i start now.
func tryNow(c *ledger.Context, i entity.Issue, r entity.Run) entity.Run {
	c.Delete(entity.QueueKey(r))
	now := core.TimeOf(c.Now)
	r.ScheduledRetryAt, r.UpdatedAt = min(r.ScheduledRetryAt, now), now
	r = queued(c.Tx, r, priorityOf(c.Tx, r))
	entity.RunTable.Put(c.Tx, r.Company, r.ID, r)
	c.Record(ledger.Change{Action: "issue.scheduled_retry_triggered", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("identifier", i.Identifier).Str("runId", r.ID).Str("agentId", r.Agent).Close()})
	return r
}
