package company

import "github.com/selvage-mesh/selvage/ledger"

// RetryNow is the payload of run.retry_now: what waits to try again for an issue
// is not to wait any longer.
type RetryNow struct {
	Issue string `cbor:"1,keyasint"`
}

// RetryOf returns the run that waits to try again for an issue.
func RetryOf(tx *ledger.Tx, i Issue) (Run, bool) {
	if i.Status.Terminal() {
		return Run{}, false
	}
	for _, r := range LiveRunsOnIssue(tx, i) {
		if r.Status == RunScheduledRetry {
			return r, true
		}
	}
	return Run{}, false
}

func retryNow(c *ledger.Context, p RetryNow) (any, error) {
	i, ok := issues.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, errNoIssue()
	}
	if err := mayUpdate(c, i); err != nil {
		return nil, err
	}
	r, ok := RetryOf(c.Tx, i)
	if !ok {
		return nil, refuseCode(ledger.Conflict, "no_scheduled_retry", jsonObject{}.str("issueId", i.ID).str("status", string(i.Status)).close(), "No run of the issue waits to try again")
	}
	return tryNow(c, i, r), nil
}

// tryNow lets a run begin that waits to try again for i later.
func tryNow(c *ledger.Context, i Issue, r Run) Run {
	c.Delete(queueKey(r))
	now := TimeOf(c.Now)
	r.ScheduledRetryAt, r.UpdatedAt = min(r.ScheduledRetryAt, now), now
	r = r.wait(c.Tx, r.priority(c.Tx))
	runs.Put(c.Tx, r.Company, r.ID, r)
	c.Record(ledger.Change{Action: "issue.scheduled_retry_triggered", EntityType: "issue", EntityID: i.ID,
		Details: jsonObject{}.str("identifier", i.Identifier).str("runId", r.ID).str("agentId", r.Agent).close()})
	return r
}
