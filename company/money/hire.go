package money

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// HireAgent is the payload of agent.hire: a requested agent. If the company requires no
// approval, the board gets it at once; otherwise it is created pending, with the approval
// that decides.
type HireAgent struct {
	Agent    entity.SaveAgent `cbor:"1,keyasint"`
	Approval string           `cbor:"2,keyasint"` // ID of the approval, if one is needed
	Issues   []string         `cbor:"3,keyasint,omitempty"`
	Skills   []string         `cbor:"4,keyasint,omitempty"` // wanted skills, as the request named them
}

// A Hire is the answer of agent.hire; Approval is empty when none was required.
type Hire struct {
	Agent    string `cbor:"1,keyasint"`
	Approval string `cbor:"2,keyasint,omitempty"`
}

const KindAgentHire = "agent.hire"

var hireKinds = []company.Kind{
	{Name: KindAgentHire, From: company.FromBoard | company.FromAgent, Needs: entity.CreateAgents,
		Traits: company.EndsKeys, Permit: permitHire, Weight: company.Weights.Hire, Do: ledger.Typed(hireAgent)},
}

// MayHire reports whether the agent may request new agents.
func MayHire(a entity.Agent) bool { return a.Role == "ceo" || a.Permissions.CreateAgents }

// permitHire refuses an agent that may not request new agents.
func permitHire(c *ledger.Context) error {
	if who, _ := entity.AgentTable.Get(c.Tx, c.Cmd.Company, c.Cmd.Actor.ID); MayHire(who) {
		return nil
	}
	return errMayNotHire()
}

func errMayNotHire() error {
	return ledger.Refuse(ledger.Forbidden, nil, "Missing permission: agents:create")
}

func hireAgent(c *ledger.Context, p HireAgent) (any, error) {
	row, err := company.Present(c)
	if err != nil {
		return nil, err
	}
	asked := core.NullText("")
	if core.IsAgent(c) {
		if err := permitHire(c); err != nil { // an approved command comes later than it was permitted
			return nil, err
		}
		// An agent can not grant permissions that the board did not give.
		p.Agent.Permissions, asked = nil, core.NullText(c.Cmd.Actor.ID)
	} else if !row.RequireHireApproval {
		a, err := company.MakeAgent(c, row, p.Agent, entity.AgentIdle)
		if err != nil {
			return nil, err
		}
		recordHire(c, a, "", p.Issues)
		return Hire{Agent: a.ID}, nil
	}
	budget := p.Agent.Budget
	p.Agent.Budget = nil // the limit is set when the agent exists
	a, err := company.MakeAgent(c, row, p.Agent, entity.AgentPendingApproval)
	if err != nil {
		return nil, err
	}
	payload := hirePayload(a, budget, p.Skills, asked)
	approval, err := openApproval(c, Approval{ID: p.Approval, Company: row.ID, Type: ApprovalHire, RequestedByAgent: asked,
		Agent: core.NullText(a.ID), Payload: payload}, core.SortedSet(p.Issues))
	if err != nil {
		return nil, err
	}
	recordHire(c, a, approval.ID, p.Issues)
	return Hire{Agent: a.ID, Approval: approval.ID}, nil
}

func recordHire(c *ledger.Context, a entity.Agent, approval string, issues []string) {
	c.Record(ledger.Change{Action: "agent.hire_created", EntityType: "agent", EntityID: a.ID,
		Details: core.Object{}.Str("name", a.Name).Str("role", a.Role).
			Null("approvalId", approval).List("issueIds", core.SortedSet(issues)).Bool("requiresApproval",
			approval != "").Close()})
}

// hirePayload returns what the board sees of a hire, in the contract's keys and without
// secrets.
func hirePayload(a entity.Agent, budget *core.Money, skills []string, asked core.NullText) json.RawMessage {
	cents := int64(0)
	if budget != nil {
		cents = budget.Cents()
	}
	wanted := json.RawMessage("null")
	if len(skills) > 0 {
		wanted = core.Object{}.List("x", skills).Close()
		wanted = wanted[len(`{"x":`) : len(wanted)-1]
	}
	metadata := a.Metadata
	if len(metadata) == 0 {
		metadata = json.RawMessage("{}")
	}
	adapter, runtime := conceal.RedactConfig(a.AdapterConfig), conceal.RedactConfig(a.RuntimeConfig)
	snapshot := core.Object{}.Str("adapterType", a.AdapterType).Raw("adapterConfig", adapter).Raw("runtimeConfig",
		runtime).Raw("desiredSkills", wanted)
	b := core.Object{}.Str("name", a.Name).Str("role", a.Role).Null("title", string(a.Title)).Null("icon", string(a.Icon)).
		Null("reportsTo", string(a.ReportsTo)).
		Null("capabilities", string(a.Capabilities)).Str("adapterType", a.AdapterType).Raw("adapterConfig", adapter).
		Raw("runtimeConfig", runtime).Int("budgetMonthlyCents", cents).Raw("metadata", conceal.RedactConfig(metadata)).
		Raw("desiredSkills", wanted).
		Str("agentId", a.ID).Null("requestedByAgentId", string(asked)).Raw("requestedConfigurationSnapshot",
		snapshot.Close()).Close()
	v, _ := core.ParseJSON(b)
	return core.FormatJSON(v)
}

// maxHireBudget bounds the monthly budget of a hire, in cents, as for any agent.
const maxHireBudget = 1_000_000_000_000

// HireOf converts a hire's payload into the command that creates the agent.
func HireOf(payload json.RawMessage) (entity.SaveAgent, error) {
	var d entity.HireDraft
	if err := json.Unmarshal(payload, &d); err != nil {
		field := "payload"
		if t, ok := err.(*json.UnmarshalTypeError); ok {
			field += "." + t.Field
		}
		return entity.SaveAgent{}, ledger.Refuse(ledger.Invalid, nil, "%s does not describe an agent", field)
	}
	if d.Name == nil {
		return entity.SaveAgent{}, ledger.Refuse(ledger.Invalid, nil, "payload.name is needed to hire an agent")
	}
	p := entity.SaveAgent{Name: d.Name, Role: d.Role, Title: d.Title, Icon: d.Icon, ReportsTo: d.ReportsTo,
		Capabilities: d.Capabilities, AdapterType: d.AdapterType,
		AdapterConfig: notNull(d.AdapterConfig), RuntimeConfig: notNull(d.RuntimeConfig),
		DefaultEnvironment: d.DefaultEnvironment, Metadata: notNull(d.Metadata), ContextMode: d.ContextMode}
	var skills []json.RawMessage
	_ = json.Unmarshal(d.DesiredSkills, &skills)
	p.Skills = entity.SkillKeysIn(skills)
	if notNull(d.Instructions) != nil {
		var in struct {
			Entry string            `json:"entryFile"`
			Files map[string]string `json:"files"`
		}
		_ = json.Unmarshal(d.Instructions, &in) // without files, creating the agent is refused
		p.Instructions = entity.InstructionsIn(in.Entry, in.Files)
	}
	if d.BudgetMonthlyCents != nil {
		if *d.BudgetMonthlyCents < 0 || *d.BudgetMonthlyCents > maxHireBudget {
			return p, ledger.Refuse(ledger.Invalid, nil, "payload.budgetMonthlyCents is out of range")
		}
		p.Budget = new(core.Cents(*d.BudgetMonthlyCents))
	}
	return p, nil
}

func notNull(b json.RawMessage) json.RawMessage {
	if string(b) == "null" {
		return nil
	}
	return b
}

// checkHire executes what approving would do, and discards it.
func checkHire(c *ledger.Context, a Approval, payload json.RawMessage) error {
	p, err := HireOf(payload)
	if err != nil || a.Agent != "" {
		return err
	}
	row, err := company.Present(c)
	if err != nil {
		return err
	}
	errFine := ledger.Refuse(ledger.Conflict, nil, "")
	err = c.Try(func(c *ledger.Context) error {
		p.ID = core.DerivedID("hire", a.ID)
		if _, err := company.MakeAgent(c, row, p, entity.AgentIdle); err != nil {
			return err
		}
		return errFine
	})
	if err == errFine {
		return nil
	}
	return err
}

// hireApproved activates the pending agent of an approved hire, or creates it. It returns the
// agent's ID.
func hireApproved(c *ledger.Context, a Approval, payload json.RawMessage) (string, error) {
	p, err := HireOf(payload)
	if err != nil {
		return "", err
	}
	if a.Agent == "" {
		row, err := company.Present(c)
		if err != nil {
			return "", err
		}
		p.ID = core.DerivedID("hire", a.ID)
		agent, err := company.MakeAgent(c, row, p, entity.AgentIdle)
		return agent.ID, err
	}
	agent, ok := entity.AgentTable.Get(c.Tx, a.Company, string(a.Agent))
	if !ok || agent.Status == entity.AgentTerminated {
		return "", ledger.Refuse(ledger.Conflict, nil, "The agent of this hire is gone")
	}
	if agent.Status == entity.AgentPendingApproval {
		agent.Status, agent.UpdatedAt = entity.AgentIdle, core.TimeOf(c.Now)
		entity.AgentTable.Put(c.Tx, agent.Company, agent.ID, agent)
		c.Record(ledger.Change{Action: "agent.hire_approved", EntityType: "agent", EntityID: agent.ID,
			Details: core.Object{}.Str("name", agent.Name).Str("approvalId", a.ID).Close()})
		if p.Budget != nil && *p.Budget > 0 {
			_, err = setPolicy(c, SetBudget{Type: entity.ScopeAgent, Scope: agent.ID, Amount: *p.Budget})
		}
	}
	return agent.ID, err
}

// reviseHire updates a pending agent to a resubmitted payload; hidden values stay.
func reviseHire(c *ledger.Context, a Approval, payload json.RawMessage) error {
	old, ok := entity.AgentTable.Get(c.Tx, a.Company, string(a.Agent))
	if !ok || old.Status != entity.AgentPendingApproval {
		return nil
	}
	p, err := HireOf(payload)
	if err != nil {
		return err
	}
	p.ReplaceAdapterConfig = p.AdapterConfig != nil
	next, err := old.With(p)
	if err != nil {
		return err
	}
	if next.AdapterConfig, err = company.Ask.BindConfig(c.Tx, next.Company, next.AdapterConfig,
		old.AdapterConfig); err != nil {
		return err
	}
	if next.AdapterConfig, err = company.Ask.Skills.Equip(c, next, p); err != nil {
		return err
	}
	next.UpdatedAt = core.TimeOf(c.Now)
	if err := next.Check(); err != nil {
		return err
	}
	if err := company.CheckManager(c.Tx, next); err != nil {
		return err
	}
	if next.Name, err = entity.FreeName(c.Tx, next); err != nil {
		return err
	}
	entity.AgentTable.Put(c.Tx, next.Company, next.ID, next)
	return nil
}

// cancelHire closes the approval of a pending agent that is terminated.
func cancelHire(c *ledger.Context, a entity.Agent) {
	for id := range hireApprovals.IDs(c.Tx, a.Company, a.ID, false) {
		settleApproval(c, id, ApprovalCancelled)
	}
}

// dropHire deletes the reference from a deleted agent to its approval.
func dropHire(tx *ledger.Tx, a entity.Agent) {
	for id := range hireApprovals.IDs(tx, a.Company, a.ID, false) {
		hireApprovals.Remove(tx, a.Company, a.ID, id)
	}
}

// Sealed seals the configurations of the agent.
func (p HireAgent) Sealed(seal conceal.SealFunc) (any, error) {
	v, err := p.Agent.Sealed(seal)
	if err != nil {
		return nil, err
	}
	p.Agent = v.(entity.SaveAgent)
	return p, nil
}
