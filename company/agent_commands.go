package company

import (
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

func createAgent(c *ledger.Context, p entity.SaveAgent) (any, error) {
	row, err := Present(c)
	if err != nil {
		return nil, err
	}
	if row.RequireHireApproval {
		return nil, ledger.Refuse(ledger.Conflict, nil,
			"Direct agent creation requires board approval. Use POST /api/companies/:companyId/agent-hires to create a "+
				"pending hire approval.")
	}
	a, err := MakeAgent(c, row, p, entity.AgentIdle)
	if err != nil {
		return nil, err
	}
	return AgentRef{a.ID}, nil
}

// defaultSchedule returns the runtimeConfig of a new agent whose command has none. It
// leaves out what the agent's adapterConfig says about the schedule.
func defaultSchedule(p entity.SaveAgent) json.RawMessage {
	var said map[string]json.RawMessage
	_ = json.Unmarshal(p.AdapterConfig, &said) // a value that is not an object is refused later
	beat := core.Object{}
	if _, ok := said["enabled"]; !ok {
		beat = beat.Bool("enabled", false)
	}
	if _, ok := said["maxConcurrentRuns"]; !ok {
		beat = beat.Int("maxConcurrentRuns", entity.DefaultConcurrentRuns)
	}
	return core.Object{}.Raw("heartbeat", beat.Close()).Close()
}

// MakeAgent stores and records a new agent of a company with its first status.
func MakeAgent(c *ledger.Context, row entity.Company, p entity.SaveAgent,
	status entity.AgentStatus) (entity.Agent, error) {
	if err := core.CheckNewID(c.Tx, p.ID); err != nil {
		return entity.Agent{}, err
	}
	now := core.TimeOf(c.Now)
	a, err := entity.Agent{ID: p.ID, Company: row.ID, Role: "general", Status: status, AdapterType: DefaultAdapter,
		AdapterConfig: json.RawMessage("{}"),
		RuntimeConfig: defaultSchedule(p), Permissions: entity.Permissions{CreateAgents: true, CreateSkills: true},
		CreatedBy: c.Cmd.Actor.ID, CreatedAt: now, UpdatedAt: now}.With(p)
	if err == nil {
		err = checkEnvironment(c.Tx, a, "")
	}
	if err != nil {
		return a, err
	}
	if a.AdapterConfig, err = Ask.BindConfig(c.Tx, row.ID, a.AdapterConfig, nil); err != nil {
		return a, err
	}
	if a.AdapterConfig, err = Ask.Skills.Equip(c, a, p); err != nil {
		return a, err
	}
	if err := a.Check(); err != nil {
		return a, err
	}
	if err := CheckManager(c.Tx, a); err != nil {
		return a, err
	}
	if err := core.HasRoom(entity.AgentTable.All(c.Tx, row.ID), entity.MaxAgents, "agents"); err != nil {
		return a, err
	}
	if a.Name, err = entity.FreeName(c.Tx, a); err != nil {
		return a, err
	}
	entity.AgentTable.Put(c.Tx, a.Company, a.ID, a)
	if status == entity.AgentPendingApproval {
		return a, nil // the line of the hire says so
	}
	details := core.Object{}.Str("name", a.Name).Str("role", a.Role)
	if skills := Ask.Of(c.Tx, row.ID, a.ID); len(skills) > 0 {
		details = details.List("desiredSkills", skills)
	} else {
		details = details.Null("desiredSkills", "")
	}
	c.Record(ledger.Change{Action: "agent.created", EntityType: "agent", EntityID: a.ID, Details: details.Close()})
	if p.Budget != nil && *p.Budget > 0 {
		if err := Ask.Set(c, entity.ScopeAgent, a.ID, *p.Budget); err != nil {
			return a, err
		}
	}
	return a, nil
}

// An AgentRef is the answer of commands about an agent: the ID of the row to read. The
// row itself holds secrets, so it is not in the answer.
type AgentRef struct {
	ID string `cbor:"1,keyasint"`
}

func updateAgent(c *ledger.Context, p entity.SaveAgent) (any, error) {
	old, ok := entity.AgentTable.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok {
		return nil, entity.ErrNoAgent()
	}
	if core.IsAgent(c) {
		if err := mayPatch(c, old, p); err != nil {
			return nil, err
		}
	}
	return changeAgent(c, old, p, RevisionOrigin{})
}

// changeAgent changes an agent's configuration and stores the revision.
func changeAgent(c *ledger.Context, old entity.Agent, p entity.SaveAgent, from RevisionOrigin) (any, error) {
	a, err := old.With(p)
	if err == nil {
		err = checkEnvironment(c.Tx, a, old.DefaultEnvironment)
	}
	if err != nil {
		return nil, err
	}
	if len(p.AdapterConfig) > 0 {
		known := old.AdapterConfig
		if from.revision != "" {
			known = a.AdapterConfig // its references were checked when they were set
		}
		if a.AdapterConfig, err = Ask.BindConfig(c.Tx, a.Company, a.AdapterConfig, known); err != nil {
			return nil, err
		}
	}
	a.UpdatedAt = core.TimeOf(c.Now)
	if err := a.Check(); err != nil {
		return nil, err
	}
	if a.ReportsTo != old.ReportsTo {
		if err := CheckManager(c.Tx, a); err != nil {
			return nil, err
		}
	}
	if a.URLKey() != old.URLKey() && a.Status != entity.AgentTerminated && entity.NameTaken(c.Tx, a) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "Agent shortname '%s' is already in use in this company", a.URLKey())
	}
	before := ConfigOf(c.Tx, old, a.UpdatedAt)
	entity.AgentTable.Put(c.Tx, a.Company, a.ID, a)
	if p.Budget != nil {
		if err := Ask.Set(c, entity.ScopeAgent, a.ID, *p.Budget); err != nil {
			return nil, err
		}
	}
	changed := KeepRevision(c, a, before, ConfigOf(c.Tx, a, a.UpdatedAt), from)
	slices.Sort(changed)
	if from.revision != "" {
		c.Record(ledger.Change{Action: "agent.config_rolled_back", EntityType: "agent", EntityID: a.ID,
			Details: core.Object{}.Str("revisionId", from.revision).List("changedTopLevelKeys", changed).Close()})
		return AgentRef{a.ID}, nil
	}
	c.Record(ledger.Change{Action: "agent.updated", EntityType: "agent", EntityID: a.ID,
		Details: core.Object{}.List("changedTopLevelKeys", changed).Close()})
	return AgentRef{a.ID}, nil
}

// mayPatch lets an agent change its own name and capabilities, and nothing that would
// extend its rights.
func mayPatch(c *ledger.Context, a entity.Agent, p entity.SaveAgent) error {
	if a.ID != c.Cmd.Actor.ID {
		return core.ErrBoardOnly()
	}
	if p.Name != nil || p.Role != nil || p.ReportsTo != nil || p.AdapterType != nil || len(p.AdapterConfig) > 0 ||
		len(p.RuntimeConfig) > 0 ||
		p.DefaultEnvironment != nil || p.Budget != nil || p.Permissions != nil || p.ContextMode != nil ||
		p.ReplaceAdapterConfig {
		return core.ErrBoardOnly()
	}
	return nil
}

func grantAgent(c *ledger.Context, p GrantAgent) (any, error) {
	a, ok := entity.AgentTable.Get(c.Tx, c.Cmd.Company, p.Agent)
	if !ok {
		return nil, entity.ErrNoAgent()
	}
	a.Permissions, a.UpdatedAt = a.Permissions.With(p.Grant), core.TimeOf(c.Now)
	entity.AgentTable.Put(c.Tx, a.Company, a.ID, a)
	c.Record(ledger.Change{Action: "agent.permissions_updated", EntityType: "agent", EntityID: a.ID,
		Details: core.Object{}.Str("trustPreset", "standard").Bool("canAssignTasks", a.MayAssign()).
			Bool("canCreateAgents", a.Permissions.CreateAgents).Bool("canCreateSkills", a.Permissions.CreateSkills).Close()})
	return AgentRef{a.ID}, nil
}

func pauseAgent(c *ledger.Context, p ChangeAgent) (any, error) {
	a, ok := entity.AgentTable.Get(c.Tx, c.Cmd.Company, p.Agent)
	if !ok {
		return nil, entity.ErrNoAgent()
	}
	if _, err := a.Pause("manual", core.TimeOf(c.Now)); err != nil {
		return nil, err
	}
	CancelRunsOfAgent(c, a.Company, a.ID, DeniedAgent, "Cancelled: the agent was paused")
	a, _ = entity.AgentTable.Get(c.Tx, a.Company, a.ID) // the cancellation may have changed its status
	a, _ = a.Pause("manual", core.TimeOf(c.Now))
	entity.AgentTable.Put(c.Tx, a.Company, a.ID, a)
	c.Record(ledger.Change{Action: "agent.paused", EntityType: "agent", EntityID: a.ID})
	return AgentRef{a.ID}, nil
}

func resumeAgent(c *ledger.Context, p ChangeAgent) (any, error) {
	a, ok := entity.AgentTable.Get(c.Tx, c.Cmd.Company, p.Agent)
	if !ok {
		return nil, entity.ErrNoAgent()
	}
	a, err := a.Resume(core.TimeOf(c.Now))
	if err != nil {
		return nil, err
	}
	if err := Ask.MayResume(c, entity.ScopeAgent, a.ID); err != nil {
		return nil, err
	}
	entity.AgentTable.Put(c.Tx, a.Company, a.ID, a)
	c.Record(ledger.Change{Action: "agent.resumed", EntityType: "agent", EntityID: a.ID})
	return AgentRef{a.ID}, nil
}
