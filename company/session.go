package company

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A TaskSession is what an adapter needs to go on where an agent's last run on
// a task ended. There is one for each agent, adapter and task.
type TaskSession struct {
	ID          string          `cbor:"1,keyasint" json:"id"`
	Company     string          `cbor:"2,keyasint" json:"companyId"`
	Agent       string          `cbor:"3,keyasint" json:"agentId"`
	AdapterType string          `cbor:"4,keyasint" json:"adapterType"`
	TaskKey     string          `cbor:"5,keyasint" json:"taskKey"`
	Params      json.RawMessage `cbor:"6,keyasint,omitempty" json:"sessionParamsJson"`
	SessionID   core.NullText   `cbor:"7,keyasint,omitempty" json:"sessionDisplayId"`
	LastRun     core.NullText   `cbor:"8,keyasint,omitempty" json:"lastRunId"`
	LastError   core.NullText   `cbor:"9,keyasint,omitempty" json:"lastError"`
	CreatedAt   core.Time       `cbor:"10,keyasint" json:"createdAt"`
	UpdatedAt   core.Time       `cbor:"11,keyasint" json:"updatedAt"`
	// Fingerprint names the configuration that the session was begun with; with
	// another one a run starts afresh.
	Fingerprint string `cbor:"12,keyasint,omitempty" json:"-"`
}

// A RuntimeState is what an agent's runs added up to.
type RuntimeState struct {
	Agent             string          `cbor:"1,keyasint" json:"agentId"`
	Company           string          `cbor:"2,keyasint" json:"companyId"`
	AdapterType       string          `cbor:"3,keyasint" json:"adapterType"`
	SessionID         core.NullText   `cbor:"4,keyasint,omitempty" json:"sessionId"`
	State             json.RawMessage `cbor:"5,keyasint,omitempty" json:"stateJson"`
	LastRun           core.NullText   `cbor:"6,keyasint,omitempty" json:"lastRunId"`
	LastRunStatus     core.NullText   `cbor:"7,keyasint,omitempty" json:"lastRunStatus"`
	InputTokens       int64           `cbor:"8,keyasint,omitempty" json:"totalInputTokens"`
	OutputTokens      int64           `cbor:"9,keyasint,omitempty" json:"totalOutputTokens"`
	CachedInputTokens int64           `cbor:"10,keyasint,omitempty" json:"totalCachedInputTokens"`
	CostCents         int64           `cbor:"-" json:"totalCostCents"` // filled from the cost rows by whoever serves it
	LastError         core.NullText   `cbor:"11,keyasint,omitempty" json:"lastError"`
	CreatedAt         core.Time       `cbor:"12,keyasint" json:"createdAt"`
	UpdatedAt         core.Time       `cbor:"13,keyasint" json:"updatedAt"`
	DisplayID         core.NullText   `cbor:"14,keyasint,omitempty" json:"sessionDisplayId"`
	Params            json.RawMessage `cbor:"15,keyasint,omitempty" json:"sessionParamsJson"`
}

// ResetSession forgets what an agent's adapters would resume from, for one task
// or, with an empty TaskKey, for all; it is the payload of "agent.reset_session".
type ResetSession struct {
	Agent   string `cbor:"1,keyasint"`
	TaskKey string `cbor:"2,keyasint,omitempty"`
}

// maxTaskSessions bounds the sessions that are kept of one agent; the one that
// was used least lately makes room.
const maxTaskSessions = 200

var (
	taskSessions  = ledger.NewTable[TaskSession]("task-session") // by sessionRow
	runtimeStates = ledger.NewTable[RuntimeState]("runtime-state")
)

// sessionRow is the ID of a session's row; an agent's sessions lie together.
func sessionRow(agent, adapter, task string) string {
	return agent + "." + core.DerivedID(adapter, task)
}

const KindAgentResetSession = "agent.reset_session"

var sessionKinds = []Kind{
	{Name: KindAgentResetSession, From: FromBoard | FromAgent, Traits: EndsKeys, Do: ledger.Typed(resetSession)},
}

// SessionFor returns the session that a run resumes, unless it is to start afresh.
func SessionFor(tx *ledger.Tx, r Run) (TaskSession, bool) {
	task := r.Context.Scope()
	if task == "" || r.Context.ForceFreshSession != nil && *r.Context.ForceFreshSession || r.Context.WakeReason == "issue_assigned" {
		return TaskSession{}, false
	}
	s, ok := taskSessions.Get(tx, r.Company, sessionRow(r.Agent, r.AdapterType, task))
	return s, ok && (s.Fingerprint == "" || r.Fingerprint == "" || s.Fingerprint == r.Fingerprint)
}

// sessionFingerprint is that of the session on a run's task, "" for none.
func sessionFingerprint(tx *ledger.Tx, r Run) string {
	task := r.Context.Scope()
	if task == "" {
		return ""
	}
	s, _ := taskSessions.Get(tx, r.Company, sessionRow(r.Agent, r.AdapterType, task))
	return s.Fingerprint
}

// keepSession notes what a run leaves for the next one on its task.
func keepSession(c *ledger.Context, r *Run, o Outcome) {
	now := core.TimeOf(c.Now)
	state, ok := runtimeStates.Get(c.Tx, r.Company, r.Agent)
	if !ok {
		state = RuntimeState{Agent: r.Agent, Company: r.Company, CreatedAt: now}
	}
	state.AdapterType, state.LastRun, state.LastRunStatus = r.AdapterType, core.NullText(r.ID), core.NullText(r.Status)
	state.LastError, state.UpdatedAt = r.Error, now
	if o.Usage != nil {
		state.InputTokens += o.Usage.InputTokens
		state.OutputTokens += o.Usage.OutputTokens
		state.CachedInputTokens += o.Usage.CachedInputTokens
	}
	task := r.Context.Scope()
	row := sessionRow(r.Agent, r.AdapterType, task)
	switch {
	case o.ClearSession:
		taskSessions.Delete(c.Tx, r.Company, row)
		state.SessionID, state.DisplayID, state.Params = "", "", nil
	case o.SessionID != "":
		r.SessionAfter = core.NullText(o.SessionID)
		state.SessionID, state.DisplayID, state.Params = core.NullText(o.SessionID), core.NullText(o.SessionID), o.SessionParams
		if task == "" {
			break
		}
		s, ok := taskSessions.Get(c.Tx, r.Company, row)
		if !ok {
			roomForSession(c.Tx, r.Company, r.Agent)
			s = TaskSession{ID: core.DerivedID("task-session", r.Agent, r.AdapterType, task), Company: r.Company, Agent: r.Agent,
				AdapterType: r.AdapterType, TaskKey: task, CreatedAt: now}
		}
		s.Fingerprint = r.Fingerprint
		s.Params, s.SessionID, s.LastRun, s.LastError, s.UpdatedAt = o.SessionParams, core.NullText(o.SessionID), core.NullText(r.ID), r.Error, now
		taskSessions.Put(c.Tx, r.Company, row, s)
	}
	runtimeStates.Put(c.Tx, r.Company, r.Agent, state)
}

// roomForSession drops the session that was used least lately when an agent has
// as many as are kept.
func roomForSession(tx *ledger.Tx, company, agent string) {
	all := TaskSessionsOf(tx, company, agent)
	if len(all) < maxTaskSessions {
		return
	}
	oldest := all[0]
	for _, s := range all[1:] {
		if s.UpdatedAt < oldest.UpdatedAt {
			oldest = s
		}
	}
	taskSessions.Delete(tx, company, sessionRow(agent, oldest.AdapterType, oldest.TaskKey))
}

// TaskSessionsOf returns the sessions that are kept of an agent.
func TaskSessionsOf(tx *ledger.Tx, company, agent string) []TaskSession {
	out := []TaskSession{}
	for _, b := range tx.Prefix(taskSessions.Key(company, agent+".")) {
		var s TaskSession
		if err := ledger.Unmarshal(b, &s); err != nil {
			panic("company: task session does not decode: " + err.Error())
		}
		out = append(out, s)
	}
	return out
}

// RuntimeStateOf returns what an agent's runs added up to. An agent that never
// ran has a state of zeros.
func RuntimeStateOf(tx *ledger.Tx, company, agent string) RuntimeState {
	state, ok := runtimeStates.Get(tx, company, agent)
	if a, found := Wakeable(tx, company, agent); !ok && found {
		state = RuntimeState{Agent: agent, Company: company, AdapterType: a.AdapterType, CreatedAt: a.CreatedAt, UpdatedAt: a.CreatedAt}
	}
	if state.State == nil {
		state.State = json.RawMessage("{}")
	}
	return state
}

func resetSession(c *ledger.Context, p ResetSession) (any, error) {
	if core.IsAgent(c) && c.Cmd.Actor.ID != p.Agent {
		return nil, core.ErrBoardOnly()
	}
	if _, ok := Wakeable(c.Tx, c.Cmd.Company, p.Agent); !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Agent not found")
	}
	for _, s := range TaskSessionsOf(c.Tx, c.Cmd.Company, p.Agent) {
		if p.TaskKey == "" || s.TaskKey == p.TaskKey {
			taskSessions.Delete(c.Tx, c.Cmd.Company, sessionRow(p.Agent, s.AdapterType, s.TaskKey))
		}
	}
	state := RuntimeStateOf(c.Tx, c.Cmd.Company, p.Agent)
	if p.TaskKey == "" {
		state.SessionID, state.DisplayID, state.Params = "", "", nil
	}
	state.UpdatedAt = core.TimeOf(c.Now)
	runtimeStates.Put(c.Tx, c.Cmd.Company, p.Agent, state)
	c.Record(ledger.Change{Action: "agent.runtime_session_reset", EntityType: "agent", EntityID: p.Agent,
		Details: core.Object{}.Null("taskKey", p.TaskKey).Close()})
	return state, nil
}
