package company

import (
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/ledger"
)

func createAgent(c *ledger.Context, p SaveAgent) (any, error) {
	row, err := present(c)
	if err != nil {
		return nil, err
	}
	if row.RequireHireApproval {
		return nil, ledger.Refuse(ledger.Conflict, nil,
			"Direct agent creation requires board approval. Use POST /api/companies/:companyId/agent-hires to create a pending hire approval.")
	}
	a, err := makeAgent(c, row, p, AgentIdle)
	if err != nil {
		return nil, err
	}
	return AgentRef{a.ID}, nil
}

// defaultSchedule is the runtimeConfig of a new agent of which nothing is said. What
// its adapterConfig says of the schedule, as the specification has it, is left to that.
func defaultSchedule(p SaveAgent) json.RawMessage {
	var said map[string]json.RawMessage
	_ = json.Unmarshal(p.AdapterConfig, &said) // what is no object is refused later
	beat := jsonObject{}
	if _, ok := said["enabled"]; !ok {
		beat = beat.bool("enabled", false)
	}
	if _, ok := said["maxConcurrentRuns"]; !ok {
		beat = beat.int("maxConcurrentRuns", DefaultConcurrentRuns)
	}
	return jsonObject{}.raw("heartbeat", beat.close()).close()
}

// makeAgent stores a new agent of a company in its first status and records it.
func makeAgent(c *ledger.Context, row Company, p SaveAgent, status AgentStatus) (Agent, error) {
	if err := checkNewID(c.Tx, p.ID); err != nil {
		return Agent{}, err
	}
	now := TimeOf(c.Now)
	a, err := Agent{ID: p.ID, Company: row.ID, Role: "general", Status: status, AdapterType: DefaultAdapter, AdapterConfig: json.RawMessage("{}"),
		RuntimeConfig: defaultSchedule(p), Permissions: Permissions{CreateAgents: true, CreateSkills: true},
		CreatedBy: c.Cmd.Actor.ID, CreatedAt: now, UpdatedAt: now}.with(p)
	if err == nil {
		err = a.checkEnvironment(c.Tx, "")
	}
	if err != nil {
		return a, err
	}
	if a.AdapterConfig, err = ask.BindConfig(c.Tx, row.ID, a.AdapterConfig, nil); err != nil {
		return a, err
	}
	if a.AdapterConfig, err = ask.Skills.Equip(c, a, p); err != nil {
		return a, err
	}
	if err := a.check(); err != nil {
		return a, err
	}
	if err := a.checkManager(c.Tx); err != nil {
		return a, err
	}
	if err := room(agents.All(c.Tx, row.ID), MaxAgents, "agents"); err != nil {
		return a, err
	}
	if a.Name, err = freeName(c.Tx, a); err != nil {
		return a, err
	}
	agents.Put(c.Tx, a.Company, a.ID, a)
	if status == AgentPendingApproval {
		return a, nil // the hire says so
	}
	details := jsonObject{}.str("name", a.Name).str("role", a.Role)
	if skills := ask.Of(c.Tx, row.ID, a.ID); len(skills) > 0 {
		details = details.list("desiredSkills", skills)
	} else {
		details = details.null("desiredSkills", "")
	}
	c.Record(ledger.Change{Action: "agent.created", EntityType: "agent", EntityID: a.ID, Details: details.close()})
	if p.Budget != nil && *p.Budget > 0 {
		if err := ask.Set(c, ScopeAgent, a.ID, *p.Budget); err != nil {
			return a, err
		}
	}
	return a, nil
}

// An AgentRef is what commands about an agent return: whose row to read. The
// row itself holds secrets and stays where it is.
type AgentRef struct {
	ID string `cbor:"1,keyasint"`
}

func updateAgent(c *ledger.Context, p SaveAgent) (any, error) {
	old, ok := agents.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok {
		return nil, errNoAgent()
	}
	if isAgent(c) {
		if err := mayPatch(c, old, p); err != nil {
			return nil, err
		}
	}
	return changeAgent(c, old, p, revisionOrigin{})
}

// changeAgent carries a change of an agent's configuration out, with its
// revision.
func changeAgent(c *ledger.Context, old Agent, p SaveAgent, from revisionOrigin) (any, error) {
	a, err := old.with(p)
	if err == nil {
		err = a.checkEnvironment(c.Tx, old.DefaultEnvironment)
	}
	if err != nil {
		return nil, err
	}
	if len(p.AdapterConfig) > 0 {
		known := old.AdapterConfig
		if from.revision != "" {
			known = a.AdapterConfig // what it refers to was looked up when it was set
		}
		if a.AdapterConfig, err = ask.BindConfig(c.Tx, a.Company, a.AdapterConfig, known); err != nil {
			return nil, err
		}
	}
	a.UpdatedAt = TimeOf(c.Now)
	if err := a.check(); err != nil {
		return nil, err
	}
	if a.ReportsTo != old.ReportsTo {
		if err := a.checkManager(c.Tx); err != nil {
			return nil, err
		}
	}
	if a.URLKey() != old.URLKey() && a.Status != AgentTerminated && nameTaken(c.Tx, a) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "Agent shortname '%s' is already in use in this company", a.URLKey())
	}
	before := configOf(c.Tx, old, a.UpdatedAt)
	agents.Put(c.Tx, a.Company, a.ID, a)
	if p.Budget != nil {
		if err := ask.Set(c, ScopeAgent, a.ID, *p.Budget); err != nil {
			return nil, err
		}
	}
	changed := keepRevision(c, a, before, configOf(c.Tx, a, a.UpdatedAt), from)
	slices.Sort(changed)
	if from.revision != "" {
		c.Record(ledger.Change{Action: "agent.config_rolled_back", EntityType: "agent", EntityID: a.ID,
			Details: jsonObject{}.str("revisionId", from.revision).list("changedTopLevelKeys", changed).close()})
		return AgentRef{a.ID}, nil
	}
	c.Record(ledger.Change{Action: "agent.updated", EntityType: "agent", EntityID: a.ID,
		Details: jsonObject{}.list("changedTopLevelKeys", changed).close()})
	return AgentRef{a.ID}, nil
}

// mayPatch lets an agent say of itself what it can do and what it is called,
// and nothing that would give it more power.
func mayPatch(c *ledger.Context, a Agent, p SaveAgent) error {
	if a.ID != c.Cmd.Actor.ID {
		return errBoardOnly()
	}
	if p.Name != nil || p.Role != nil || p.ReportsTo != nil || p.AdapterType != nil || len(p.AdapterConfig) > 0 || len(p.RuntimeConfig) > 0 ||
		p.DefaultEnvironment != nil || p.Budget != nil || p.Permissions != nil || p.ContextMode != nil || p.ReplaceAdapterConfig {
		return errBoardOnly()
	}
	return nil
}

func grantAgent(c *ledger.Context, p GrantAgent) (any, error) {
	a, ok := agents.Get(c.Tx, c.Cmd.Company, p.Agent)
	if !ok {
		return nil, errNoAgent()
	}
	a.Permissions, a.UpdatedAt = a.Permissions.with(p.Grant), TimeOf(c.Now)
	agents.Put(c.Tx, a.Company, a.ID, a)
	c.Record(ledger.Change{Action: "agent.permissions_updated", EntityType: "agent", EntityID: a.ID,
		Details: jsonObject{}.str("trustPreset", "standard").bool("canAssignTasks", a.MayAssign()).
			bool("canCreateAgents", a.Permissions.CreateAgents).bool("canCreateSkills", a.Permissions.CreateSkills).close()})
	return AgentRef{a.ID}, nil
}

// MayAssign reports whether the agent may give tasks to others.
func (a Agent) MayAssign() bool {
	return a.Role == "ceo" || a.Permissions.CreateAgents || a.Permissions.AssignTasks
}

func pauseAgent(c *ledger.Context, p ChangeAgent) (any, error) {
	a, ok := agents.Get(c.Tx, c.Cmd.Company, p.Agent)
	if !ok {
		return nil, errNoAgent()
	}
	if _, err := a.Pause("manual", TimeOf(c.Now)); err != nil {
		return nil, err
	}
	cancelRunsOfAgent(c, a.Company, a.ID, DeniedAgent, "Cancelled: the agent was paused")
	a, _ = agents.Get(c.Tx, a.Company, a.ID) // cancelling settled its state
	a, _ = a.Pause("manual", TimeOf(c.Now))
	agents.Put(c.Tx, a.Company, a.ID, a)
	c.Record(ledger.Change{Action: "agent.paused", EntityType: "agent", EntityID: a.ID})
	return AgentRef{a.ID}, nil
}

func resumeAgent(c *ledger.Context, p ChangeAgent) (any, error) {
	a, ok := agents.Get(c.Tx, c.Cmd.Company, p.Agent)
	if !ok {
		return nil, errNoAgent()
	}
	a, err := a.Resume(TimeOf(c.Now))
	if err != nil {
		return nil, err
	}
	if err := ask.MayResume(c, ScopeAgent, a.ID); err != nil {
		return nil, err
	}
	agents.Put(c.Tx, a.Company, a.ID, a)
	c.Record(ledger.Change{Action: "agent.resumed", EntityType: "agent", EntityID: a.ID})
	return AgentRef{a.ID}, nil
}
