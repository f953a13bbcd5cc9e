package company

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// CheckOutIssue is the payload of issue.checkout. Of many concurrent checkouts of one
// issue, exactly one succeeds.
type CheckOutIssue struct {
	Issue    string               `cbor:"1,keyasint"`
	Agent    string               `cbor:"2,keyasint"`
	Expected []entity.IssueStatus `cbor:"3,keyasint"`
}

// ReleaseIssue is the payload of issue.release.
type ReleaseIssue struct {
	Issue string `cbor:"1,keyasint"`
}

// ForceReleaseIssue is the payload of issue.force_release, by which the board releases
// a lock that it does not hold.
type ForceReleaseIssue struct {
	Issue         string `cbor:"1,keyasint"`
	ClearAssignee bool   `cbor:"2,keyasint,omitempty"`
}

// ForceReleased is the answer of issue.force_release.
type ForceReleased struct {
	Issue       entity.Issue `cbor:"1,keyasint"`
	PreviousRun string       `cbor:"2,keyasint,omitempty"`
}

const (
	KindIssueCheckout     = "issue.checkout"
	KindIssueRelease      = "issue.release"
	KindIssueForceRelease = "issue.force_release"
)

var checkoutKinds = []Kind{
	{Name: KindIssueCheckout, From: FromBoard | FromAgent, Traits: FencesItself | SeldomWork, Reads: issueFirst,
		Weight: Weights.Task, Do: ledger.Typed(checkOut)},
	{Name: KindIssueRelease, From: FromBoard | FromAgent, Traits: FencesItself | SeldomWork, Reads: issueFirst,
		Weight: Weights.Task, Do: ledger.Typed(release)},
	{Name: KindIssueForceRelease, From: FromBoard, Traits: SeldomWork, Weight: Weights.Task,
		Do: ledger.Typed(forceRelease)},
}

// checkOut returns the issue's row as stored. An agent checks out for itself only, under
// its own running run.
func checkOut(c *ledger.Context, p CheckOutIssue) (any, error) {
	run := ""
	if core.IsAgent(c) {
		run = c.Cmd.Run
		if p.Agent != c.Cmd.Actor.ID {
			return nil, ledger.Refuse(ledger.Forbidden, nil, "Agent can only checkout as itself")
		}
		if run == "" {
			return nil, errNoRunID()
		}
	}
	return checkOutFor(c, p.Issue, p.Expected, entity.Claim{Agent: p.Agent, Run: run, Now: core.TimeOf(c.Now),
		Height: c.Height})
}

// checkOutFor executes a claim. It reads everything that can change the answer: the
// issue, its unresolved blockers, the agent with its budgets, and the run. A run that
// starts on an issue uses it too.
func checkOutFor(c *ledger.Context, issue string, expected []entity.IssueStatus, claim entity.Claim) ([]byte, error) {
	company := c.Cmd.Company
	i, ok := entity.IssueTable.Get(c.Tx, company, issue)
	if !ok {
		return nil, ErrNoIssue()
	}
	next, err := i.CheckOut(claim, expected)
	if err != nil {
		return nil, err
	}
	if err := notHeld(c.Tx, i); err != nil {
		return nil, err
	}
	if err := mayStart(c, i, next); err != nil {
		return nil, err
	}
	if claim.Run != "" && !entity.RunAlive(c.Tx, company, claim.Run, claim.Agent) {
		return nil, i.StaleRun(claim.Agent, claim.Run)
	}
	if err := mayWork(c, claim.Agent, i.Project); err != nil {
		return nil, err
	}
	if i.Held() && next.Fence == i.Fence {
		return ledger.Marshal(i), nil // the holder repeats its checkout
	}
	if len(i.BlockedBy) > 0 {
		if left := entity.Unresolved(c.Tx, i); len(left) > 0 {
			return nil, refuseBlocked(left)
		}
	}
	c.Record(ledger.Change{Action: "issue.checked_out", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("agentId", claim.Agent).Close()})
	return StoreIssue(c.Tx, i, next), nil
}

// release releases an issue. The board may release any issue. An agent may release its
// own, and one that is in progress only under the run that holds it.
func release(c *ledger.Context, p ReleaseIssue) (any, error) {
	i, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, ErrNoIssue()
	}
	if core.IsAgent(c) {
		actor, run := c.Cmd.Actor.ID, c.Cmd.Run
		if run == "" {
			return nil, errNoRunID()
		}
		if i.Assignee != "" && i.Assignee != actor {
			return nil, ledger.Refuse(ledger.Conflict, i.Holder().Str("actorAgentId", actor).Close(),
				"Only assignee can release issue")
		}
		if !entity.RunAlive(c.Tx, i.Company, run, actor) {
			return nil, i.StaleRun(actor, run)
		}
		if err := i.MustOwn(actor, run); err != nil {
			return nil, err
		}
	}
	next, err := i.Release(core.TimeOf(c.Now))
	if err != nil {
		return nil, err
	}
	c.Record(ledger.Change{Action: "issue.released", EntityType: "issue", EntityID: i.ID})
	return StoreIssue(c.Tx, i, next), nil
}

func forceRelease(c *ledger.Context, p ForceReleaseIssue) (any, error) {
	if !core.IsBoard(c) {
		return nil, core.ErrBoardOnly()
	}
	i, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, ErrNoIssue()
	}
	next := i.ForceRelease(p.ClearAssignee, core.TimeOf(c.Now))
	StoreIssue(c.Tx, i, next)
	c.Record(ledger.Change{Action: "issue.admin_force_release", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("issueId", i.ID).Str("actorUserId", c.Cmd.Actor.ID).Bool("clearAssignee", p.ClearAssignee).
			Null("prevCheckoutRunId", i.CheckoutRun).Null("prevExecutionRunId", i.CheckoutRun).Close()})
	return ForceReleased{next, i.CheckoutRun}, nil
}

// releaseLocksOfRun releases every lock of run. The command that ends the run calls it,
// so no lock outlives its run. The issues stay assigned and in progress: the agent may
// continue them in a later run.
func releaseLocksOfRun(c *ledger.Context, company ledger.CompanyID, run string) {
	for i := range entity.IssuesHeldBy(c.Tx, company, run) {
		next := i.Unheld()
		next.UpdatedAt = core.TimeOf(c.Now)
		StoreIssue(c.Tx, i, next)
		RecordLive(c, ledger.Change{Action: "issue.lock_released", EntityType: "issue", EntityID: i.ID,
			Details: core.Object{}.Str("runId", run).Str("identifier", i.Identifier).Close()})
	}
}

// releaseBoardLocks releases the locks that the board gave to an agent that ends. No run
// holds them, so no end of a run would release them. Locks beyond the bound stay until
// the board releases them by hand.
func releaseBoardLocks(c *ledger.Context, company ledger.CompanyID, agent string) {
	n := 0
	for i := range entity.IssuesIn(c.Tx, company, entity.IssuesOf(c.Tx, company, agent, entity.IssueInProgress)) {
		if !i.Held() || i.CheckoutRun != "" {
			continue
		}
		if n++; n > orphanLimit {
			return
		}
		next := i.Unheld()
		next.UpdatedAt = core.TimeOf(c.Now)
		StoreIssue(c.Tx, i, next)
		RecordLive(c, ledger.Change{Action: "issue.lock_released", EntityType: "issue", EntityID: i.ID,
			Details: core.Object{}.Null("runId", "").Str("identifier", i.Identifier).Close()})
	}
}

func ErrNoIssue() error { return ledger.Refuse(ledger.NotFound, nil, "Issue not found") }
func errNoRunID() error { return ledger.Refuse(ledger.Unauthorized, nil, "Agent run id required") }
