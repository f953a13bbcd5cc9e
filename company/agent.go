package company

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// DefaultAdapter is the adapter of an agent without adapterType.
const DefaultAdapter = "process"

const (
	// orphanLimit bounds the reports and issues that one command changes when it deletes
	// an agent or a project.
	orphanLimit = 1_000
)

// GrantAgent is the payload of agent.permissions.
type GrantAgent struct {
	Agent string       `cbor:"1,keyasint"`
	Grant entity.Grant `cbor:"2,keyasint"`
}

// ChangeAgent is the payload of agent.pause, agent.resume, agent.terminate and
// agent.delete.
type ChangeAgent struct {
	Agent string `cbor:"1,keyasint"`
}

const (
	KindAgentCreate      = "agent.create"
	KindAgentUpdate      = "agent.update"
	KindAgentRollback    = "agent.rollback"
	KindAgentPermissions = "agent.permissions"
	KindAgentPause       = "agent.pause"
	KindAgentResume      = "agent.resume"
	KindAgentTerminate   = "agent.terminate"
	KindAgentDelete      = "agent.delete"
)

var agentKinds = []Kind{
	{Name: KindAgentCreate, From: FromBoard, Needs: entity.CreateAgents, Traits: Importable | EndsKeys,
		Weight: Weights.Hire, Do: ledger.Typed(createAgent)},
	{Name: KindAgentUpdate, From: FromBoard | FromAgent, Needs: entity.ConfigureAgents, Traits: Importable | EndsKeys,
		Weight: Weights.SetUp, Target: AgentFirst, Do: ledger.Typed(updateAgent)},
	{Name: KindAgentRollback, From: FromBoard, Needs: entity.ConfigureAgents, Traits: EndsKeys, Weight: Weights.SetUp,
		Do: ledger.Typed(rollbackAgent)},
	{Name: KindAgentPermissions, From: FromBoard, Needs: entity.ConfigureAgents, Traits: Importable | EndsKeys,
		Weight: Weights.Empowering, Do: ledger.Typed(grantAgent)},
	{Name: KindAgentPause, From: FromBoard, Traits: EndsKeys, Weight: Weights.Halting, Do: ledger.Typed(pauseAgent)},
	{Name: KindAgentResume, From: FromBoard, Traits: EndsKeys, Weight: Weights.Steering, Do: ledger.Typed(resumeAgent)},
	{Name: KindAgentTerminate, From: FromBoard, Needs: entity.ConfigureAgents, Traits: Importable | EndsKeys,
		Weight: Weights.Retires, Do: ledger.Typed(terminateAgent)},
	{Name: KindAgentDelete, From: FromBoard, Needs: entity.ConfigureAgents, Traits: EndsKeys, Weight: Weights.Ends,
		Do: ledger.Typed(deleteAgent)},
}

// checkEnvironment refuses an environment that does not exist, unless the agent named it before.
func checkEnvironment(tx *ledger.Tx, a entity.Agent, before core.NullText) error {
	if id := a.DefaultEnvironment; id != "" && id != before && string(id) != entity.LocalEnvironment.ID {
		if Ask.Remote(tx, a.Company, string(id)) {
			return ledger.Refuse(ledger.Unprocessable, nil,
				"Runs are carried out by their node; an environment over ssh can not be chosen for an agent")
		}
		return ledger.Refuse(ledger.NotFound, nil, "Environment not found")
	}
	return nil
}

// CheckManager refuses a manager that does not exist, has been terminated, or reports
// to the agent itself.
func CheckManager(tx *ledger.Tx, a entity.Agent) error {
	at := string(a.ReportsTo)
	if at == a.ID {
		return errOrgCycle()
	}
	for depth := range entity.MaxOrgDepth {
		if at == "" {
			return nil
		}
		manager, ok := entity.AgentTable.Get(tx, a.Company, at)
		switch {
		case !ok && depth == 0:
			if core.OwnerOf(tx, at) != "" {
				return ledger.Refuse(ledger.Unprocessable, nil, "Manager must belong to same company")
			}
			return ledger.Refuse(ledger.NotFound, nil, "Manager not found")
		case !ok:
			return nil
		case depth == 0 && manager.Status == entity.AgentTerminated:
			return ledger.Refuse(ledger.Conflict, manager.Standing(), "Cannot report to terminated agents")
		case string(manager.ReportsTo) == a.ID:
			return errOrgCycle()
		}
		at = string(manager.ReportsTo)
	}
	return ledger.Refuse(ledger.Unprocessable, nil, "Reporting chains are at most %d long", entity.MaxOrgDepth)
}

func errOrgCycle() error {
	return ledger.Refuse(ledger.Unprocessable, nil, "Reporting relationship would create cycle")
}
