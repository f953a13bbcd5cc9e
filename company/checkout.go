package company

import (
	"github.com/selvage-mesh/selvage/ledger"
)

// CheckOutIssue is the payload of issue.checkout: the one command of which, for
// one issue, exactly one of many wins.
type CheckOutIssue struct {
	Issue    string        `cbor:"1,keyasint"`
	Agent    string        `cbor:"2,keyasint"`
	Expected []IssueStatus `cbor:"3,keyasint"`
}

// ReleaseIssue is the payload of issue.release.
type ReleaseIssue struct {
	Issue string `cbor:"1,keyasint"`
}

// ForceReleaseIssue is the payload of issue.force_release, by which the board
// takes a lock away.
type ForceReleaseIssue struct {
	Issue         string `cbor:"1,keyasint"`
	ClearAssignee bool   `cbor:"2,keyasint,omitempty"`
}

// ForceReleased is what issue.force_release returns.
type ForceReleased struct {
	Issue       Issue  `cbor:"1,keyasint"`
	PreviousRun string `cbor:"2,keyasint,omitempty"`
}

const (
	KindIssueCheckout     = "issue.checkout"
	KindIssueRelease      = "issue.release"
	KindIssueForceRelease = "issue.force_release"
)

var checkoutKinds = []Kind{
	{Name: KindIssueCheckout, From: FromBoard | FromAgent, Traits: FencesItself | SeldomWork, Reads: issueFirst, Do: ledger.Typed(checkOut)},
	{Name: KindIssueRelease, From: FromBoard | FromAgent, Traits: FencesItself | SeldomWork, Reads: issueFirst, Do: ledger.Typed(release)},
	{Name: KindIssueForceRelease, From: FromBoard, Traits: SeldomWork, Do: ledger.Typed(forceRelease)},
}

// checkOut returns the issue's row as stored. An agent checks out for itself,
// under a run of its own that is running.
func checkOut(c *ledger.Context, p CheckOutIssue) (any, error) {
	run := ""
	if isAgent(c) {
		run = c.Cmd.Run
		if p.Agent != c.Cmd.Actor.ID {
			return nil, ledger.Refuse(ledger.Forbidden, nil, "Agent can only checkout as itself")
		}
		if run == "" {
			return nil, errNoRunID()
		}
	}
	return checkOutFor(c, p.Issue, p.Expected, Claim{Agent: p.Agent, Run: run, Now: TimeOf(c.Now), Height: c.Height})
}

// checkOutFor carries out a claim. Whatever may change the answer is read here:
// the issue, its unresolved blockers, the agent with its budgets, and the run.
// The scheduler uses it too, when a run starts on an issue.
func checkOutFor(c *ledger.Context, issue string, expected []IssueStatus, claim Claim) ([]byte, error) {
	company := c.Cmd.Company
	i, ok := issues.Get(c.Tx, company, issue)
	if !ok {
		return nil, errNoIssue()
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
	if claim.Run != "" && !runAlive(c.Tx, company, claim.Run, claim.Agent) {
		return nil, i.staleRun(claim.Agent, claim.Run)
	}
	if err := mayWork(c, claim.Agent, i.Project); err != nil {
		return nil, err
	}
	if i.Held() && next.Fence == i.Fence {
		return ledger.Marshal(i), nil // the holder asked again
	}
	if len(i.BlockedBy) > 0 {
		if left := Unresolved(c.Tx, i); len(left) > 0 {
			return nil, refuseBlocked(left)
		}
	}
	c.Record(ledger.Change{Action: "issue.checked_out", EntityType: "issue", EntityID: i.ID,
		Details: jsonObject{}.str("agentId", claim.Agent).close()})
	return storeIssue(c.Tx, i, next), nil
}

// release gives an issue back. The board may always; an agent only its own, and
// one in progress only under the run that holds it.
func release(c *ledger.Context, p ReleaseIssue) (any, error) {
	i, ok := issues.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, errNoIssue()
	}
	if isAgent(c) {
		actor, run := c.Cmd.Actor.ID, c.Cmd.Run
		if run == "" {
			return nil, errNoRunID()
		}
		if i.Assignee != "" && i.Assignee != actor {
			return nil, ledger.Refuse(ledger.Conflict, i.holder().str("actorAgentId", actor).close(), "Only assignee can release issue")
		}
		if !runAlive(c.Tx, i.Company, run, actor) {
			return nil, i.staleRun(actor, run)
		}
		if err := i.MustOwn(actor, run); err != nil {
			return nil, err
		}
	}
	next, err := i.Release(TimeOf(c.Now))
	if err != nil {
		return nil, err
	}
	c.Record(ledger.Change{Action: "issue.released", EntityType: "issue", EntityID: i.ID})
	return storeIssue(c.Tx, i, next), nil
}

func forceRelease(c *ledger.Context, p ForceReleaseIssue) (any, error) {
	if !isBoard(c) {
		return nil, errBoardOnly()
	}
	i, ok := issues.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, errNoIssue()
	}
	next := i.ForceRelease(p.ClearAssignee, TimeOf(c.Now))
	storeIssue(c.Tx, i, next)
	c.Record(ledger.Change{Action: "issue.admin_force_release", EntityType: "issue", EntityID: i.ID,
		Details: jsonObject{}.str("issueId", i.ID).str("actorUserId", c.Cmd.Actor.ID).bool("clearAssignee", p.ClearAssignee).
			null("prevCheckoutRunId", i.CheckoutRun).null("prevExecutionRunId", i.CheckoutRun).close()})
	return ForceReleased{next, i.CheckoutRun}, nil
}

// releaseLocksOfRun takes away every lock that run holds. It is called in the
// same command that ends the run, so no lock outlives its run. The issues stay
// assigned and in progress: their agent may take them up again in a later run.
func releaseLocksOfRun(c *ledger.Context, company, run string) {
	for i := range IssuesHeldBy(c.Tx, company, run) {
		next := i.unheld()
		next.UpdatedAt = TimeOf(c.Now)
		storeIssue(c.Tx, i, next)
		recordLive(c, ledger.Change{Action: "issue.lock_released", EntityType: "issue", EntityID: i.ID,
			Details: jsonObject{}.str("runId", run).str("identifier", i.Identifier).close()})
	}
}

// releaseBoardLocks takes away the locks that the board has given an agent which
// ends: no run holds them, so none would end them. What is beyond the bound the
// board releases by hand.
func releaseBoardLocks(c *ledger.Context, company, agent string) {
	n := 0
	for i := range issuesIn(c.Tx, company, issuesOf(c.Tx, company, agent, IssueInProgress)) {
		if !i.Held() || i.CheckoutRun != "" {
			continue
		}
		if n++; n > orphanLimit {
			return
		}
		next := i.unheld()
		next.UpdatedAt = TimeOf(c.Now)
		storeIssue(c.Tx, i, next)
		recordLive(c, ledger.Change{Action: "issue.lock_released", EntityType: "issue", EntityID: i.ID,
			Details: jsonObject{}.null("runId", "").str("identifier", i.Identifier).close()})
	}
}

func errNoIssue() error { return ledger.Refuse(ledger.NotFound, nil, "Issue not found") }
func errNoRunID() error { return ledger.Refuse(ledger.Unauthorized, nil, "Agent run id required") }
