package entity

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// An ActivityRow is a line of the activity log as it is shown.
type ActivityRow struct {
	ID              string           `json:"id"`
	Company         ledger.CompanyID `json:"companyId"`
	ActorType       string           `json:"actorType"`
	ActorID         string           `json:"actorId"`
	Action          string           `json:"action"`
	EntityType      string           `json:"entityType"`
	EntityID        string           `json:"entityId"`
	Agent           core.NullText    `json:"agentId"`
	Run             core.NullText    `json:"runId"`
	ResponsibleUser core.NullText    `json:"responsibleUserId"`
	Details         json.RawMessage  `json:"details"`
	CreatedAt       core.Time        `json:"createdAt"`
	// Height is the entry's height, for proofs and for resuming.
	Height uint64 `json:"height"`
}

// DoneBy returns the actor and run to show for a change. The start and end of a run, which
// nodes record, are shown as the agent's.
func DoneBy(actor ledger.Actor, run string, ch ledger.Change) (ledger.Actor, string) {
	if ch.EntityType == LeaseEntity {
		var of struct {
			Agent string `json:"agentId"`
			Run   string `json:"runId"`
		}
		if json.Unmarshal(ch.Details, &of) == nil && of.Agent != "" {
			return ledger.Actor{Type: "agent", ID: of.Agent}, of.Run
		}
	}
	if actor.Type == "node" {
		actor.Type = "system" // the contract knows users, agents and the system
	}
	return actor, run
}

// Live reports whether a change is for the live events only: the recorded activity log has
// no such lines.
func Live(ch ledger.Change) bool {
	switch ch.Action {
	case "heartbeat.run.queued", "heartbeat.run.status", "heartbeat.run.event", "heartbeat.run.progress", "agent.status":
		return true
	}
	return false
}
