package company

import (
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// loseNode ends a session whose lease has passed: the ledger's session, so that no later
// command of it is accepted, and its runs, whose locks are released. Runs that had not
// started return to the queue unchanged.
func loseNode(c *ledger.Context, p entity.NodeLost) (any, error) {
	if c.Cmd.Actor.Type != "node" {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "nodes are declared lost by the scheduler")
	}
	if len(p.Why) > MaxLossReason {
		return nil, ledger.Refuse(ledger.Invalid, nil, "why: at most %d bytes", MaxLossReason)
	}
	said := nodeWasLost
	if p.Why != "" {
		said += ": " + p.Why
	}
	ledger.EndSession(c, p.Session)
	all := entity.RunsOfSession(c.Tx, p.Session)
	lost := 0
	for _, r := range all[:min(len(all), sweptRuns)] {
		switch {
		case r.Status == entity.RunQueued:
			requeue(c, r)
			continue
		case r.Status == entity.RunRunning:
			handBack(c, EndRun(c, r, Outcome{Status: entity.RunInterrupted, ErrorCode: "node_lost",
				Error: said}))
		default:
			handBack(c, r)
		}
		lost++
	}
	left := len(all) - min(len(all), sweptRuns)
	nodeLost(c, p.Node)
	if left == 0 { // the rest are runs of deleted companies
		for k := range c.Prefix(entity.SessionKey(p.Session, "")) {
			c.Delete(k)
		}
	}
	c.Record(ledger.Change{Action: "node.lost", EntityType: "node", EntityID: p.Node,
		Details: core.Object{}.Uint("session", p.Session).Int("runs", int64(lost)).Close()})
	return Lost{Left: left}, nil
}

// nodeWasLost begins the error of a run whose node was declared lost.
const nodeWasLost = "The node that carried out this run was lost"

func tellLoss(c *ledger.Context, p TellLoss) (any, error) {
	r, err := RunFor(c, p.Run)
	if err != nil {
		return nil, err
	}
	if by := c.Cmd.Actor; by.Type != "node" || by.ID != r.Node {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "run %s was not placed on this node", r.ID)
	}
	if p.Why == "" || len(p.Why) > MaxLossReason {
		return nil, ledger.Refuse(ledger.Invalid, nil, "why: 1 to %d bytes", MaxLossReason)
	}
	if r.Status != entity.RunInterrupted || r.ErrorCode != "node_lost" || !strings.HasPrefix(string(r.Error),
		nodeWasLost) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "run %s did not end because its node was lost", r.ID)
	}
	r.Error, r.UpdatedAt = core.NullText(nodeWasLost+": "+p.Why), core.TimeOf(c.Now)
	entity.RunTable.Put(c.Tx, r.Company, r.ID, r)
	c.Record(ledger.Change{Action: "heartbeat.loss_explained", EntityType: "heartbeat_run", EntityID: r.ID,
		Details: core.Object{}.Str("runId", r.ID).Str("agentId", r.Agent).Str("reason", p.Why).Close()})
	return nil, nil
}

// sessionOpen reports whether a session belongs to node and has not ended.
func sessionOpen(tx *ledger.Tx, session uint64, node string) bool {
	s, ok := ledger.FindSession(tx, session)
	return ok && s.EndedAt == 0 && string(s.Node) == node
}
