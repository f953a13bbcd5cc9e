package company

import (
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// The execution policy of an issue and the state of its stages. Room paper moves issues
// from stage to stage; the row has the state.

// ParticipantOf returns the first participant who may decide a stage: one who exists and
// did not do the work.
func ParticipantOf(tx *ledger.Tx, s entity.ExecutionStage, company ledger.CompanyID,
	of entity.ExecutionState) (entity.ExecutionParticipant, bool) {
	for _, p := range s.Participants {
		if p.Is(of.ReturnAgent, of.ReturnUser) {
			continue
		}
		if p.Type == "agent" {
			if a, ok := entity.AgentTable.Get(tx, company, p.Agent); !ok || a.Status == entity.AgentTerminated ||
				a.Status == entity.AgentPendingApproval {
				continue
			}
		} else if !Ask.Belongs(tx, company, p.User) {
			continue
		}
		return p, true
	}
	return entity.ExecutionParticipant{}, false
}
