package company

import (
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// What an issue's execution policy says, and how far its stages are. Who moves an
// issue from stage to stage stands elsewhere; the issue carries the state.

// ParticipantOf returns the first who may decide a stage: somebody who is there
// and did not do the work.
func ParticipantOf(tx *ledger.Tx, s entity.ExecutionStage, company string, of entity.ExecutionState) (entity.ExecutionParticipant, bool) {
	for _, p := range s.Participants {
		if p.Is(of.ReturnAgent, of.ReturnUser) {
			continue
		}
		if p.Type == "agent" {
			if a, ok := entity.AgentTable.Get(tx, company, p.Agent); !ok || a.Status == entity.AgentTerminated || a.Status == entity.AgentPendingApproval {
				continue
			}
		} else if !Ask.Belongs(tx, company, p.User) {
			continue
		}
		return p, true
	}
	return entity.ExecutionParticipant{}, false
}
