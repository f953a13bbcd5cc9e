package entity

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// An AgentStatus is what an agent does now. Persisted: do not rename.
type AgentStatus string

const (
	AgentActive          AgentStatus = "active" // like idle, in rows of older exports
	AgentIdle            AgentStatus = "idle"
	AgentRunning         AgentStatus = "running"
	AgentPaused          AgentStatus = "paused"
	AgentError           AgentStatus = "error"
	AgentPendingApproval AgentStatus = "pending_approval"
	AgentTerminated      AgentStatus = "terminated"
)

// Roles and AdapterTypes list all values, in the contract's order.
var (
	Roles = []string{"ceo", "cto", "cmo", "cfo", "security", "engineer", "designer", "pm", "qa", "devops",
		"researcher", "general"}
	AdapterTypes = []string{"process", "http", "claude_local", "codex_local", "gemini_local", "opencode_local",
		"cursor", "pi_local",
		"hermes_local", "openclaw_gateway", "acp", "wasm", "container", "weftos",
		"a2a"}
)

// An Agent is a worker of a company: who it is, whom it reports to, and how it is invoked.
// Its configurations hold secrets. They are shown through RedactConfig only; JSON of the
// row leaves them out.
type Agent struct {
	ID                 string           `cbor:"1,keyasint" json:"id"`
	Company            ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Name               string           `cbor:"3,keyasint" json:"name"`
	Role               string           `cbor:"4,keyasint" json:"role"`
	Title              core.NullText    `cbor:"5,keyasint,omitempty" json:"title"`
	Icon               core.NullText    `cbor:"6,keyasint,omitempty" json:"icon"`
	Status             AgentStatus      `cbor:"7,keyasint" json:"status"`
	ReportsTo          core.NullText    `cbor:"8,keyasint,omitempty" json:"reportsTo"`
	Capabilities       core.NullText    `cbor:"9,keyasint,omitempty" json:"capabilities"`
	AdapterType        string           `cbor:"10,keyasint" json:"adapterType"`
	AdapterConfig      json.RawMessage  `cbor:"11,keyasint" json:"-"`
	RuntimeConfig      json.RawMessage  `cbor:"12,keyasint" json:"-"`
	DefaultEnvironment core.NullText    `cbor:"13,keyasint,omitempty" json:"defaultEnvironmentId"`
	PauseReason        core.NullText    `cbor:"14,keyasint,omitempty" json:"pauseReason"`
	PausedAt           core.Time        `cbor:"15,keyasint,omitempty" json:"pausedAt"`
	ErrorReason        core.NullText    `cbor:"16,keyasint,omitempty" json:"errorReason"`
	Permissions        Permissions      `cbor:"17,keyasint" json:"permissions"`
	LastHeartbeatAt    core.Time        `cbor:"18,keyasint,omitempty" json:"lastHeartbeatAt"`
	Metadata           json.RawMessage  `cbor:"19,keyasint,omitempty" json:"-"`
	ContextMode        string           `cbor:"20,keyasint,omitempty" json:"-"` // "thin", also for "", or "fat"
	CreatedAt          core.Time        `cbor:"21,keyasint" json:"createdAt"`
	UpdatedAt          core.Time        `cbor:"22,keyasint" json:"updatedAt"`
	// CreatedBy is the creator: a user's ID or an agent's UUID.
	CreatedBy string `cbor:"23,keyasint,omitempty" json:"-"`
}

// Clone returns a copy that shares no memory with a. The ledger's cache of decoded rows
// needs it.
func (a Agent) Clone() Agent {
	a.AdapterConfig, a.RuntimeConfig, a.Metadata = slices.Clone(a.AdapterConfig), slices.Clone(a.RuntimeConfig),
		slices.Clone(a.Metadata)
	return a
}

// Mode returns how much context a run of the agent gets: "thin" or "fat".
func (a Agent) Mode() string { return cmp.Or(a.ContextMode, "thin") }

// Permissions are what an agent may do apart from its work.
type Permissions struct {
	CreateAgents bool `cbor:"1,keyasint,omitempty" json:"canCreateAgents"`
	CreateSkills bool `cbor:"2,keyasint,omitempty" json:"canCreateSkills"`
	AssignTasks  bool `cbor:"3,keyasint,omitempty" json:"canAssignTasks,omitempty"`
}

// agentsByKey indexes agents by urlKey, AgentsByManager by manager ("root" for none),
// AgentsByStatus by status.
var (
	AgentTable = core.Owned(ledger.NewTable[string, Agent]("agent").
			Beside(ledger.Indexed(agentsByKey, func(a *Agent) string { return a.URLKey() })).
			Beside(ledger.Indexed(AgentsByManager, func(a *Agent) string { return ManagerValue(*a) })).
			Beside(ledger.Indexed(AgentsByStatus, func(a *Agent) string { return string(a.Status) })))
	agentsByKey     = ledger.NewIndex[string, string]("agent-urlkey")
	AgentsByManager = ledger.NewIndex[string, string]("agent-manager")
	AgentsByStatus  = ledger.NewIndex[string, string]("agent-status")
)

const (
	// MaxAgents bounds the agents of a company: org chart and lists show all of them.
	MaxAgents = 2_000
	// MaxOrgDepth bounds the chain of managers.
	MaxOrgDepth = 64
	// MaxConfig bounds each configuration of an agent, in bytes; a command holds
	// two of them and a revision keeps two before and after.
	MaxConfig = 64 << 10
	// minInterval is the shortest interval of a timer, in seconds.
	minInterval = 30
)

// URLKey returns the agent's key in addresses, its ID when the name gives none.
func (a Agent) URLKey() string {
	if k := core.URLKey(a.Name); k != "" {
		return k
	}
	return a.ID
}

// AgentOf returns an agent of company.
func AgentOf(tx *ledger.Tx, company ledger.CompanyID, id string) (Agent, bool) {
	return AgentTable.Get(tx, company, id)
}

// AgentByID returns the agent with an ID, in any company.
func AgentByID(tx *ledger.Tx, id string) (Agent, bool) {
	if company := core.OwnerOf(tx, id); company != "" {
		return AgentTable.Get(tx, company, id)
	}
	return Agent{}, false
}

// AgentByRef finds an agent by ID, or by urlKey or name within company. A terminated agent
// is found by ID only.
func AgentByRef(tx *ledger.Tx, company ledger.CompanyID, ref string) (Agent, error) {
	if id := strings.ToLower(ref); core.IsID(id) {
		if a, ok := AgentByID(tx, id); ok {
			return a, nil
		}
		return Agent{}, ErrNoAgent()
	}
	if company == "" {
		return Agent{}, ledger.Refuse(ledger.Unprocessable, nil, "Agent shortname lookup requires companyId query parameter")
	}
	found := Agent{}
	for id := range agentsByKey.IDs(tx, company, core.URLKey(ref), false) {
		a, ok := AgentTable.Get(tx, company, id)
		if !ok || a.Status == AgentTerminated {
			continue
		}
		if found.ID != "" {
			return Agent{}, ledger.Refuse(ledger.Conflict, nil,
				"Agent shortname is ambiguous in this company. Use the agent ID.")
		}
		found = a
	}
	if found.ID == "" {
		return Agent{}, ErrNoAgent()
	}
	return found, nil
}

// AgentsOf returns the agents of company by ID; terminated ones only if asked for.
func AgentsOf(tx *ledger.Tx, company ledger.CompanyID, terminated bool) []Agent {
	out := []Agent{}
	for _, a := range AgentTable.All(tx, company) {
		if terminated || a.Status != AgentTerminated {
			out = append(out, a)
		}
	}
	return out
}

func ErrNoAgent() error { return ledger.Refuse(ledger.NotFound, nil, "Agent not found") }

// SaveAgent is the payload of agent.create and agent.update. In an update nil keeps a field
// and an empty value clears it.
type SaveAgent struct {
	ID           string  `cbor:"1,keyasint"`
	Name         *string `cbor:"2,keyasint,omitempty"`
	Role         *string `cbor:"3,keyasint,omitempty"`
	Title        *string `cbor:"4,keyasint,omitempty"`
	Icon         *string `cbor:"5,keyasint,omitempty"`
	ReportsTo    *string `cbor:"6,keyasint,omitempty"`
	Capabilities *string `cbor:"7,keyasint,omitempty"`
	AdapterType  *string `cbor:"8,keyasint,omitempty"`
	// merged into the present one, see ReplaceAdapterConfig
	AdapterConfig      json.RawMessage `cbor:"9,keyasint,omitempty"`
	RuntimeConfig      json.RawMessage `cbor:"10,keyasint,omitempty"`
	DefaultEnvironment *string         `cbor:"11,keyasint,omitempty"`
	Budget             *core.Money     `cbor:"12,keyasint,omitempty"` // per month
	Metadata           json.RawMessage `cbor:"13,keyasint,omitempty"`
	ContextMode        *string         `cbor:"14,keyasint,omitempty"`
	Permissions        *Grant          `cbor:"15,keyasint,omitempty"`
	// ReplaceAdapterConfig replaces the present configuration by AdapterConfig. A new adapter
	// type does so too.
	ReplaceAdapterConfig bool `cbor:"16,keyasint,omitempty"`
	// Skills and Instructions of a new agent. Later they have commands of their own.
	Skills       []string         `cbor:"17,keyasint,omitempty"` // keys
	Instructions *NewInstructions `cbor:"18,keyasint,omitempty"`
}

// A Grant changes permissions; nil keeps one.
type Grant struct {
	CreateAgents *bool `cbor:"1,keyasint,omitempty"`
	CreateSkills *bool `cbor:"2,keyasint,omitempty"`
	AssignTasks  *bool `cbor:"3,keyasint,omitempty"`
}

// Next lists the statuses that a person may set on an agent with status s. Runs set running,
// idle and error. An approval sets a hire to idle, a rejection terminates it.
func (s AgentStatus) Next() []AgentStatus {
	switch s {
	case AgentTerminated:
		return nil
	case AgentPendingApproval, AgentPaused:
		return []AgentStatus{AgentIdle, AgentTerminated}
	case AgentError:
		return []AgentStatus{AgentIdle, AgentPaused, AgentTerminated}
	}
	return []AgentStatus{AgentPaused, AgentTerminated}
}

// Illegal returns the 409 for a transition that the agent's status does not allow.
func (a Agent) Illegal(to AgentStatus, text string) error {
	return core.Illegal("agentId", a.ID, a.Status, to, a.Status.Next(), "%s", text)
}

// Standing returns the details of a refusal that is caused by the agent's status.
func (a Agent) Standing() []byte { return core.StatusDetail("agentId", a.ID, a.Status) }

// Pause returns the agent paused for a reason. A paused agent does not change, except that
// a pause by a person replaces one by the budget.
func (a Agent) Pause(reason string, now core.Time) (Agent, error) {
	switch a.Status {
	case AgentTerminated:
		return a, a.Illegal(AgentPaused, "Cannot pause terminated agent")
	case AgentPendingApproval:
		return a, a.Illegal(AgentPaused, "Pending approval agents cannot be paused")
	case AgentPaused:
		if reason == PausedForBudget {
			return a, nil
		}
		a.PauseReason, a.UpdatedAt = core.NullText(reason), now
		return a, nil
	}
	a.Status, a.PauseReason, a.PausedAt, a.UpdatedAt = AgentPaused, core.NullText(reason), now, now
	return a, nil
}

// Resume returns the agent ready for work, from a pause or an error.
func (a Agent) Resume(now core.Time) (Agent, error) {
	switch a.Status {
	case AgentTerminated:
		return a, a.Illegal(AgentIdle, "Cannot resume terminated agent")
	case AgentPendingApproval:
		return a, a.Illegal(AgentIdle, "Pending approval agents cannot be activated directly")
	case AgentRunning:
		return a, nil
	}
	a.Status, a.PauseReason, a.PausedAt, a.ErrorReason, a.UpdatedAt = AgentIdle, "", 0, "", now
	return a, nil
}

// Terminate returns the agent terminated.
func (a Agent) Terminate(now core.Time) Agent {
	if a.Status != AgentTerminated {
		a.Status, a.PauseReason, a.PausedAt, a.ErrorReason, a.UpdatedAt = AgentTerminated, "", 0, "", now
	}
	return a
}

// With returns a with the fields of p. The configurations must be objects.
func (a Agent) With(p SaveAgent) (Agent, error) {
	core.Assign(&a.Name, p.Name)
	core.Assign(&a.Role, p.Role)
	core.AssignText(&a.Title, p.Title)
	core.AssignText(&a.Icon, p.Icon)
	core.AssignText(&a.ReportsTo, p.ReportsTo)
	core.AssignText(&a.Capabilities, p.Capabilities)
	core.AssignText(&a.DefaultEnvironment, p.DefaultEnvironment)
	core.Assign(&a.ContextMode, p.ContextMode)
	if p.Permissions != nil {
		a.Permissions = a.Permissions.With(*p.Permissions)
	}
	other := p.AdapterType != nil && *p.AdapterType != a.AdapterType
	core.Assign(&a.AdapterType, p.AdapterType)
	adapter, err := core.CheckObject("adapterConfig", p.AdapterConfig, MaxConfig)
	if err != nil {
		return a, err
	}
	switch adapter = conceal.KeepHidden(adapter, a.AdapterConfig); {
	case adapter == nil && p.ReplaceAdapterConfig:
		a.AdapterConfig = json.RawMessage("{}")
	case adapter == nil:
	case other || p.ReplaceAdapterConfig:
		a.AdapterConfig = adapter
	default:
		a.AdapterConfig = core.MergeObjects(a.AdapterConfig, adapter)
	}
	runtime, err := core.CheckObject("runtimeConfig", p.RuntimeConfig, MaxConfig)
	if err != nil {
		return a, err
	}
	if runtime = conceal.KeepHidden(runtime, a.RuntimeConfig); runtime != nil {
		a.RuntimeConfig = runtime
	}
	metadata, err := core.CheckObject("metadata", p.Metadata, MaxConfig)
	if err != nil {
		return a, err
	}
	if len(p.Metadata) > 0 {
		a.Metadata = conceal.KeepHidden(metadata, a.Metadata)
	}
	return a, nil
}

func (p Permissions) With(g Grant) Permissions {
	core.Assign(&p.CreateAgents, g.CreateAgents)
	core.Assign(&p.CreateSkills, g.CreateSkills)
	core.Assign(&p.AssignTasks, g.AssignTasks)
	return p
}

// Check refuses an invalid agent, without looking at other rows.
func (a Agent) Check() error {
	for _, text := range []struct {
		field, value string
		most         int
	}{{"name", a.Name, MaxName}, {"title", string(a.Title), MaxName}, {"icon", string(a.Icon), MaxName},
		{"capabilities", string(a.Capabilities), MaxText / 4}} {
		if len(text.value) > text.most {
			return ledger.Refuse(ledger.Invalid, nil, "%s of an agent is longer than %d bytes", text.field, text.most)
		}
	}
	switch {
	case strings.TrimSpace(a.Name) == "":
		return ledger.Refuse(ledger.Invalid, nil, "An agent needs a name")
	case !slices.Contains(Roles, a.Role):
		return ledger.Refuse(ledger.Invalid, nil, "Unknown role: %s", a.Role)
	case !slices.Contains(AdapterTypes, a.AdapterType):
		return ledger.Refuse(ledger.Unprocessable, nil, "Unknown adapter type: %s", a.AdapterType)
	case a.Mode() != "thin" && a.Mode() != "fat":
		return ledger.Refuse(ledger.Invalid, nil, "contextMode is thin or fat")
	case len(a.AdapterConfig) > MaxConfig:
		return ledger.Refuse(ledger.TooLarge, nil, "adapterConfig is longer than %d bytes", MaxConfig)
	}
	if p := ParsePolicy(a.RuntimeConfig, a.AdapterConfig); p.Enabled && p.IntervalSec != 0 && p.IntervalSec < minInterval {
		return ledger.Refuse(ledger.Invalid, nil, "heartbeat.intervalSec must be at least %d", minInterval)
	}
	return nil
}

func ManagerValue(a Agent) string {
	if a.ReportsTo == "" {
		return "root"
	}
	return string(a.ReportsTo)
}

// NameTaken reports whether another agent has the same key in addresses.
func NameTaken(tx *ledger.Tx, a Agent) bool {
	for id := range agentsByKey.IDs(tx, a.Company, a.URLKey(), false) {
		if other, ok := AgentTable.Get(tx, a.Company, id); ok && id != a.ID && other.Status != AgentTerminated {
			return true
		}
	}
	return false
}

// FreeName appends a number to an agent's name if another agent has it.
func FreeName(tx *ledger.Tx, a Agent) (string, error) {
	name := a.Name
	for n := 2; n <= MaxAgents+1; n++ {
		if !NameTaken(tx, a) {
			return a.Name, nil
		}
		a.Name = name + " " + strconv.Itoa(n)
	}
	return "", ledger.Refuse(ledger.Conflict, nil, "No name like %q is free", name)
}

// HireDraft is the payload of a hire. Unknown keys are stored and shown, and have no effect.
type HireDraft struct {
	Name               *string         `json:"name"`
	Role               *string         `json:"role"`
	Title              *string         `json:"title"`
	Icon               *string         `json:"icon"`
	ReportsTo          *string         `json:"reportsTo"`
	Capabilities       *string         `json:"capabilities"`
	AdapterType        *string         `json:"adapterType"`
	AdapterConfig      json.RawMessage `json:"adapterConfig"`
	RuntimeConfig      json.RawMessage `json:"runtimeConfig"`
	DefaultEnvironment *string         `json:"defaultEnvironmentId"`
	BudgetMonthlyCents *int64          `json:"budgetMonthlyCents"`
	Metadata           json.RawMessage `json:"metadata"`
	ContextMode        *string         `json:"contextMode"`
	DesiredSkills      json.RawMessage `json:"desiredSkills"`
	Instructions       json.RawMessage `json:"instructionsBundle"`
}

// NewInstructions are the instruction files of a new agent.
type NewInstructions struct {
	Entry string           `cbor:"1,keyasint,omitempty"` // one of Files; "" is InstructionsEntry
	Files []NewInstruction `cbor:"2,keyasint"`           // sorted by path
}

// A NewInstruction is one of the files.
type NewInstruction struct {
	Path    string `cbor:"1,keyasint"`
	Content string `cbor:"2,keyasint"`
}

// InstructionsIn returns the instruction files of a new agent from texts by path.
func InstructionsIn(entry string, files map[string]string) *NewInstructions {
	n := &NewInstructions{Entry: entry}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		n.Files = append(n.Files, NewInstruction{path, files[path]})
	}
	return n
}

// SkillKeysIn returns the keys in a body's list of skills. Each element is a key or an
// object with a key.
func SkillKeysIn(list []json.RawMessage) (names []string) {
	for _, b := range list {
		var name string
		var keyed struct {
			Key string `json:"key"`
		}
		if json.Unmarshal(b, &name) != nil {
			_ = json.Unmarshal(b, &keyed)
			name = keyed.Key
		}
		if name != "" && len(name) <= MaxName {
			names = append(names, name)
		}
	}
	return names
}

// MayAssign reports whether the agent may assign tasks to others.
func (a Agent) MayAssign() bool {
	return a.Role == "ceo" || a.Permissions.CreateAgents || a.Permissions.AssignTasks
}

// Timer returns whether a timer wakes the agent, and its interval in seconds, 0 for never.
func (a Agent) Timer() (on bool, intervalSec int64) {
	p := ParsePolicy(a.RuntimeConfig, a.AdapterConfig)
	return p.Enabled, p.IntervalSec
}

// Sealed seals the configurations of an agent.
func (p SaveAgent) Sealed(seal conceal.SealFunc) (any, error) {
	for _, f := range []struct {
		name   string
		config *json.RawMessage
	}{{"adapterConfig", &p.AdapterConfig}, {"runtimeConfig", &p.RuntimeConfig}, {"metadata", &p.Metadata}} {
		var err error
		if *f.config, err = conceal.SealConfig(*f.config, f.name, func(path, plain string) (string,
			error) {
			return seal(p.ID, path, plain)
		}); err != nil {
			return nil, err
		}
	}
	return p, nil
}
