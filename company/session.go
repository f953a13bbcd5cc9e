package company

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// ResetSession is the payload of "agent.reset_session", which deletes the sessions that an
// agent's adapters would resume: of one task or, with an empty TaskKey, of all.
type ResetSession struct {
	Agent   string `cbor:"1,keyasint"`
	TaskKey string `cbor:"2,keyasint,omitempty"`
}

// maxTaskSessions bounds the stored sessions of one agent; the least recently used one is
// dropped.
const maxTaskSessions = 200

const KindAgentResetSession = "agent.reset_session"

var sessionKinds = []Kind{
	{Name: KindAgentResetSession, From: FromBoard | FromAgent, Traits: EndsKeys, Weight: Weights.SetUp,
		Target: AgentFirst, Do: ledger.Typed(resetSession)},
}

// sessionFingerprint returns the fingerprint of the session on a run's task, "" for none.
func sessionFingerprint(tx *ledger.Tx, r entity.Run) string {
	task := r.Context.Scope()
	if task == "" {
		return ""
	}
	s, _ := entity.TaskSessions.Get(tx, r.Company, entity.SessionRow(r.Agent, r.AdapterType, task))
	return s.Fingerprint
}

// keepSession stores the session that a run leaves for the next one on its task.
func keepSession(c *ledger.Context, r *entity.Run, o Outcome) {
	now := core.TimeOf(c.Now)
	state, ok := entity.RuntimeStates.Get(c.Tx, r.Company, r.Agent)
	if !ok {
		state = entity.RuntimeState{Agent: r.Agent, Company: r.Company, CreatedAt: now}
	}
	state.AdapterType, state.LastRun, state.LastRunStatus = r.AdapterType, core.NullText(r.ID), core.NullText(r.Status)
	state.LastError, state.UpdatedAt = r.Error, now
	if o.Usage != nil {
		state.InputTokens += o.Usage.InputTokens
		state.OutputTokens += o.Usage.OutputTokens
		state.CachedInputTokens += o.Usage.CachedInputTokens
	}
	task := r.Context.Scope()
	row := entity.SessionRow(r.Agent, r.AdapterType, task)
	switch {
	case o.ClearSession:
		entity.TaskSessions.Delete(c.Tx, r.Company, row)
		state.SessionID, state.DisplayID, state.Params = "", "", nil
	case o.SessionID != "":
		r.SessionAfter = core.NullText(o.SessionID)
		state.SessionID, state.DisplayID, state.Params = core.NullText(o.SessionID), core.NullText(o.SessionID),
			o.SessionParams
		if task == "" {
			break
		}
		s, ok := entity.TaskSessions.Get(c.Tx, r.Company, row)
		if !ok {
			roomForSession(c.Tx, r.Company, r.Agent)
			s = entity.TaskSession{ID: core.DerivedID("task-session", r.Agent, r.AdapterType, task), Company: r.Company,
				Agent:       r.Agent,
				AdapterType: r.AdapterType, TaskKey: task, CreatedAt: now}
		}
		s.Fingerprint = r.Fingerprint
		s.Params, s.SessionID, s.LastRun, s.LastError, s.UpdatedAt = o.SessionParams, core.NullText(o.SessionID),
			core.NullText(r.ID), r.Error, now
		entity.TaskSessions.Put(c.Tx, r.Company, row, s)
	}
	entity.RuntimeStates.Put(c.Tx, r.Company, r.Agent, state)
}

// roomForSession drops the least recently used session of an agent that has the maximum.
func roomForSession(tx *ledger.Tx, company ledger.CompanyID, agent string) {
	all := entity.TaskSessionsOf(tx, company, agent)
	if len(all) < maxTaskSessions {
		return
	}
	oldest := all[0]
	for _, s := range all[1:] {
		if s.UpdatedAt < oldest.UpdatedAt {
			oldest = s
		}
	}
	entity.TaskSessions.Delete(tx, company, entity.SessionRow(agent, oldest.AdapterType, oldest.TaskKey))
}

func resetSession(c *ledger.Context, p ResetSession) (any, error) {
	if core.IsAgent(c) && c.Cmd.Actor.ID != p.Agent {
		return nil, core.ErrBoardOnly()
	}
	if _, ok := entity.Wakeable(c.Tx, c.Cmd.Company, p.Agent); !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Agent not found")
	}
	for _, s := range entity.TaskSessionsOf(c.Tx, c.Cmd.Company, p.Agent) {
		if p.TaskKey == "" || s.TaskKey == p.TaskKey {
			entity.TaskSessions.Delete(c.Tx, c.Cmd.Company, entity.SessionRow(p.Agent, s.AdapterType, s.TaskKey))
		}
	}
	state := entity.RuntimeStateOf(c.Tx, c.Cmd.Company, p.Agent)
	if p.TaskKey == "" {
		state.SessionID, state.DisplayID, state.Params = "", "", nil
	}
	state.UpdatedAt = core.TimeOf(c.Now)
	entity.RuntimeStates.Put(c.Tx, c.Cmd.Company, p.Agent, state)
	c.Record(ledger.Change{Action: "agent.runtime_session_reset", EntityType: "agent", EntityID: p.Agent,
		Details: core.Object{}.Null("taskKey", p.TaskKey).Close()})
	return state, nil
}
