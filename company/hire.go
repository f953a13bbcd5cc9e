package company

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/ledger"
)

// HireAgent is the payload of agent.hire: an agent that somebody wants. The
// board of a company that asks for no approval gets it at once; else it is made
// pending, beside the approval that decides about it.
type HireAgent struct {
	Agent    SaveAgent `cbor:"1,keyasint"`
	Approval string    `cbor:"2,keyasint"` // ID of the approval, if one is needed
	Issues   []string  `cbor:"3,keyasint,omitempty"`
	Skills   []string  `cbor:"4,keyasint,omitempty"` // desired, as the request named them
}

// A Hire is what agent.hire returns; Approval is empty when none was needed.
type Hire struct {
	Agent    string `cbor:"1,keyasint"`
	Approval string `cbor:"2,keyasint,omitempty"`
}

const KindAgentHire = "agent.hire"

var hireKinds = []Kind{
	{Name: KindAgentHire, From: FromBoard | FromAgent, Needs: CreateAgents, Traits: EndsKeys, Do: ledger.Typed(hireAgent)},
}

// MayHire reports whether the agent may ask for new agents.
func (a Agent) MayHire() bool { return a.Role == "ceo" || a.Permissions.CreateAgents }

func errMayNotHire() error {
	return ledger.Refuse(ledger.Forbidden, nil, "Missing permission: agents:create")
}

func hireAgent(c *ledger.Context, p HireAgent) (any, error) {
	row, err := present(c)
	if err != nil {
		return nil, err
	}
	asked := NullText("")
	if isAgent(c) {
		who, _ := agents.Get(c.Tx, row.ID, c.Cmd.Actor.ID)
		if !who.MayHire() {
			return nil, errMayNotHire()
		}
		// Nobody gives rights that the board has not given.
		p.Agent.Permissions, asked = nil, NullText(who.ID)
	} else if !row.RequireHireApproval {
		a, err := makeAgent(c, row, p.Agent, AgentIdle)
		if err != nil {
			return nil, err
		}
		recordHire(c, a, "", p.Issues)
		return Hire{Agent: a.ID}, nil
	}
	budget := p.Agent.Budget
	p.Agent.Budget = nil // a limit is set when there is somebody who spends
	a, err := makeAgent(c, row, p.Agent, AgentPendingApproval)
	if err != nil {
		return nil, err
	}
	payload := hirePayload(a, budget, p.Skills, asked)
	approval, err := openApproval(c, Approval{ID: p.Approval, Company: row.ID, Type: ApprovalHire, RequestedByAgent: asked, Agent: NullText(a.ID), Payload: payload}, sortedSet(p.Issues))
	if err != nil {
		return nil, err
	}
	recordHire(c, a, approval.ID, p.Issues)
	return Hire{Agent: a.ID, Approval: approval.ID}, nil
}

func recordHire(c *ledger.Context, a Agent, approval string, issues []string) {
	c.Record(ledger.Change{Action: "agent.hire_created", EntityType: "agent", EntityID: a.ID, Details: jsonObject{}.str("name", a.Name).str("role", a.Role).
		null("approvalId", approval).list("issueIds", sortedSet(issues)).bool("requiresApproval", approval != "").close()})
}

// hirePayload tells the board who is to be hired, in the contract's keys and
// without secrets.
func hirePayload(a Agent, budget *Money, skills []string, asked NullText) json.RawMessage {
	cents := int64(0)
	if budget != nil {
		cents = budget.Cents()
	}
	wanted := json.RawMessage("null")
	if len(skills) > 0 {
		wanted = jsonObject{}.list("x", skills).close()
		wanted = wanted[len(`{"x":`) : len(wanted)-1]
	}
	metadata := a.Metadata
	if len(metadata) == 0 {
		metadata = json.RawMessage("{}")
	}
	adapter, runtime := RedactConfig(a.AdapterConfig), RedactConfig(a.RuntimeConfig)
	snapshot := jsonObject{}.str("adapterType", a.AdapterType).raw("adapterConfig", adapter).raw("runtimeConfig", runtime).raw("desiredSkills", wanted)
	b := jsonObject{}.str("name", a.Name).str("role", a.Role).null("title", string(a.Title)).null("icon", string(a.Icon)).null("reportsTo", string(a.ReportsTo)).
		null("capabilities", string(a.Capabilities)).str("adapterType", a.AdapterType).raw("adapterConfig", adapter).
		raw("runtimeConfig", runtime).int("budgetMonthlyCents", cents).raw("metadata", RedactConfig(metadata)).raw("desiredSkills", wanted).
		str("agentId", a.ID).null("requestedByAgentId", string(asked)).raw("requestedConfigurationSnapshot", snapshot.close()).close()
	v, _ := parseJSON(b)
	return formatJSON(v)
}

// maxHireBudget bounds the monthly budget of a hire, in cents, as for any agent.
const maxHireBudget = 1_000_000_000_000

// HireOf reads a hire's payload as the command that makes the agent.
func HireOf(payload json.RawMessage) (SaveAgent, error) {
	var d hireDraft
	if err := json.Unmarshal(payload, &d); err != nil {
		field := "payload"
		if t, ok := err.(*json.UnmarshalTypeError); ok {
			field += "." + t.Field
		}
		return SaveAgent{}, ledger.Refuse(ledger.Invalid, nil, "%s does not describe an agent", field)
	}
	if d.Name == nil {
		return SaveAgent{}, ledger.Refuse(ledger.Invalid, nil, "payload.name is needed to hire an agent")
	}
	p := SaveAgent{Name: d.Name, Role: d.Role, Title: d.Title, Icon: d.Icon, ReportsTo: d.ReportsTo, Capabilities: d.Capabilities, AdapterType: d.AdapterType,
		AdapterConfig: notNull(d.AdapterConfig), RuntimeConfig: notNull(d.RuntimeConfig), DefaultEnvironment: d.DefaultEnvironment, Metadata: notNull(d.Metadata), ContextMode: d.ContextMode}
	var skills []json.RawMessage
	_ = json.Unmarshal(d.DesiredSkills, &skills)
	p.Skills = SkillKeysIn(skills)
	if notNull(d.Instructions) != nil {
		var in struct {
			Entry string            `json:"entryFile"`
			Files map[string]string `json:"files"`
		}
		_ = json.Unmarshal(d.Instructions, &in) // without files it is refused when the agent is made
		p.Instructions = InstructionsIn(in.Entry, in.Files)
	}
	if d.BudgetMonthlyCents != nil {
		if *d.BudgetMonthlyCents < 0 || *d.BudgetMonthlyCents > maxHireBudget {
			return p, ledger.Refuse(ledger.Invalid, nil, "payload.budgetMonthlyCents is out of range")
		}
		p.Budget = new(Cents(*d.BudgetMonthlyCents))
	}
	return p, nil
}

func notNull(b json.RawMessage) json.RawMessage {
	if string(b) == "null" {
		return nil
	}
	return b
}

// checkHire tries what approving would do, and drops it.
func checkHire(c *ledger.Context, a Approval, payload json.RawMessage) error {
	p, err := HireOf(payload)
	if err != nil || a.Agent != "" {
		return err
	}
	row, err := present(c)
	if err != nil {
		return err
	}
	errFine := ledger.Refuse(ledger.Conflict, nil, "")
	err = c.Try(func(c *ledger.Context) error {
		p.ID = derivedID("hire", a.ID)
		if _, err := makeAgent(c, row, p, AgentIdle); err != nil {
			return err
		}
		return errFine
	})
	if err == errFine {
		return nil
	}
	return err
}

// hireApproved lets the agent of an approved hire begin: one that was made
// pending, else a new one. It returns the agent's ID.
func hireApproved(c *ledger.Context, a Approval, payload json.RawMessage) (string, error) {
	p, err := HireOf(payload)
	if err != nil {
		return "", err
	}
	if a.Agent == "" {
		row, err := present(c)
		if err != nil {
			return "", err
		}
		p.ID = derivedID("hire", a.ID)
		agent, err := makeAgent(c, row, p, AgentIdle)
		return agent.ID, err
	}
	agent, ok := agents.Get(c.Tx, a.Company, string(a.Agent))
	if !ok || agent.Status == AgentTerminated {
		return "", ledger.Refuse(ledger.Conflict, nil, "The agent of this hire is gone")
	}
	if agent.Status == AgentPendingApproval {
		agent.Status, agent.UpdatedAt = AgentIdle, TimeOf(c.Now)
		agents.Put(c.Tx, agent.Company, agent.ID, agent)
		c.Record(ledger.Change{Action: "agent.hire_approved", EntityType: "agent", EntityID: agent.ID, Details: jsonObject{}.str("name", agent.Name).str("approvalId", a.ID).close()})
		if p.Budget != nil && *p.Budget > 0 {
			_, err = setPolicy(c, SetBudget{Type: ScopeAgent, Scope: agent.ID, Amount: *p.Budget})
		}
	}
	return agent.ID, err
}

// reviseHire brings a pending agent in line with the payload that was sent for
// it again; what the payload hides stays.
func reviseHire(c *ledger.Context, a Approval, payload json.RawMessage) error {
	old, ok := agents.Get(c.Tx, a.Company, string(a.Agent))
	if !ok || old.Status != AgentPendingApproval {
		return nil
	}
	p, err := HireOf(payload)
	if err != nil {
		return err
	}
	p.ReplaceAdapterConfig = p.AdapterConfig != nil
	next, err := old.with(p)
	if err != nil {
		return err
	}
	if next.AdapterConfig, err = ask.BindConfig(c.Tx, next.Company, next.AdapterConfig, old.AdapterConfig); err != nil {
		return err
	}
	if next.AdapterConfig, err = ask.Skills.Equip(c, next, p); err != nil {
		return err
	}
	next.UpdatedAt = TimeOf(c.Now)
	if err := next.check(); err != nil {
		return err
	}
	if err := next.checkManager(c.Tx); err != nil {
		return err
	}
	if next.Name, err = freeName(c.Tx, next); err != nil {
		return err
	}
	agents.Put(c.Tx, next.Company, next.ID, next)
	return nil
}

// cancelHire closes the approval of an agent that is ended before it began.
func cancelHire(c *ledger.Context, a Agent) {
	for id := range hireApprovals.IDs(c.Tx, a.Company, a.ID, false) {
		settleApproval(c, id, ApprovalCancelled)
	}
}

// dropHire forgets which approval an agent that is being deleted came from.
func dropHire(tx *ledger.Tx, a Agent) {
	for id := range hireApprovals.IDs(tx, a.Company, a.ID, false) {
		hireApprovals.Remove(tx, a.Company, a.ID, id)
	}
}

// Sealed seals the configurations of the agent that is to be hired.
func (p HireAgent) Sealed(seal SealFunc) (any, error) {
	v, err := p.Agent.Sealed(seal)
	if err != nil {
		return nil, err
	}
	p.Agent = v.(SaveAgent)
	return p, nil
}
