package entity

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A TaskSession is what an adapter needs to go on where an agent's last run on
// a task ended. There is one for each agent, adapter and task.
type TaskSession struct {
	ID          string           `cbor:"1,keyasint" json:"id"`
	Company     ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Agent       string           `cbor:"3,keyasint" json:"agentId"`
	AdapterType string           `cbor:"4,keyasint" json:"adapterType"`
	TaskKey     string           `cbor:"5,keyasint" json:"taskKey"`
	Params      json.RawMessage  `cbor:"6,keyasint,omitempty" json:"sessionParamsJson"`
	SessionID   core.NullText    `cbor:"7,keyasint,omitempty" json:"sessionDisplayId"`
	LastRun     core.NullText    `cbor:"8,keyasint,omitempty" json:"lastRunId"`
	LastError   core.NullText    `cbor:"9,keyasint,omitempty" json:"lastError"`
	CreatedAt   core.Time        `cbor:"10,keyasint" json:"createdAt"`
	UpdatedAt   core.Time        `cbor:"11,keyasint" json:"updatedAt"`
	// Fingerprint names the configuration that the session was begun with; with
	// another one a run starts afresh.
	Fingerprint string `cbor:"12,keyasint,omitempty" json:"-"`
}

// A RuntimeState is what an agent's runs added up to.
type RuntimeState struct {
	Agent             string           `cbor:"1,keyasint" json:"agentId"`
	Company           ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	AdapterType       string           `cbor:"3,keyasint" json:"adapterType"`
	SessionID         core.NullText    `cbor:"4,keyasint,omitempty" json:"sessionId"`
	State             json.RawMessage  `cbor:"5,keyasint,omitempty" json:"stateJson"`
	LastRun           core.NullText    `cbor:"6,keyasint,omitempty" json:"lastRunId"`
	LastRunStatus     core.NullText    `cbor:"7,keyasint,omitempty" json:"lastRunStatus"`
	InputTokens       int64            `cbor:"8,keyasint,omitempty" json:"totalInputTokens"`
	OutputTokens      int64            `cbor:"9,keyasint,omitempty" json:"totalOutputTokens"`
	CachedInputTokens int64            `cbor:"10,keyasint,omitempty" json:"totalCachedInputTokens"`
	CostCents         int64            `cbor:"-" json:"totalCostCents"` // filled from the cost rows by whoever serves it
	LastError         core.NullText    `cbor:"11,keyasint,omitempty" json:"lastError"`
	CreatedAt         core.Time        `cbor:"12,keyasint" json:"createdAt"`
	UpdatedAt         core.Time        `cbor:"13,keyasint" json:"updatedAt"`
	DisplayID         core.NullText    `cbor:"14,keyasint,omitempty" json:"sessionDisplayId"`
	Params            json.RawMessage  `cbor:"15,keyasint,omitempty" json:"sessionParamsJson"`
}

var (
	TaskSessions  = ledger.NewTable[string, TaskSession]("task-session") // by SessionRow
	RuntimeStates = ledger.NewTable[string, RuntimeState]("runtime-state")
)

// SessionRow is the ID of a session's row; an agent's sessions lie together.
func SessionRow(agent, adapter, task string) string {
	return agent + "." + core.DerivedID(adapter, task)
}

// SessionFor returns the session that a run resumes, unless it is to start afresh.
func SessionFor(tx *ledger.Tx, r Run) (TaskSession, bool) {
	task := r.Context.Scope()
	if task == "" || r.Context.ForceFreshSession != nil && *r.Context.ForceFreshSession ||
		r.Context.WakeReason == "issue_assigned" {
		return TaskSession{}, false
	}
	s, ok := TaskSessions.Get(tx, r.Company, SessionRow(r.Agent, r.AdapterType, task))
	return s, ok && (s.Fingerprint == "" || r.Fingerprint == "" || s.Fingerprint == r.Fingerprint)
}

// TaskSessionsOf returns the sessions that are kept of an agent.
func TaskSessionsOf(tx *ledger.Tx, company ledger.CompanyID, agent string) []TaskSession {
	out := []TaskSession{}
	for _, b := range tx.Prefix(TaskSessions.Key(company, agent+".")) {
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
func RuntimeStateOf(tx *ledger.Tx, company ledger.CompanyID, agent string) RuntimeState {
	state, ok := RuntimeStates.Get(tx, company, agent)
	if a, found := Wakeable(tx, company, agent); !ok && found {
		state = RuntimeState{Agent: agent, Company: company, AdapterType: a.AdapterType, CreatedAt: a.CreatedAt,
			UpdatedAt: a.CreatedAt}
	}
	if state.State == nil {
		state.State = json.RawMessage("{}")
	}
	return state
}

// RunsOfSession returns the runs that a session has not given back, by ID.
func RunsOfSession(tx *ledger.Tx, session uint64) []Run {
	prefix := ledger.Key("sched", "session", ledger.Order(session), "")
	var out []Run
	for k, company := range tx.Prefix(prefix) {
		if r, ok := RunTable.Get(tx, ledger.CompanyID(company), string(k[len(prefix):])); ok {
			out = append(out, r)
		}
	}
	return out
}

// CountRunsOfSession is how many runs a session has not given back.
func CountRunsOfSession(tx *ledger.Tx, session uint64) (n int) {
	for range tx.Prefix(ledger.Key("sched", "session", ledger.Order(session), "")) {
		n++
	}
	return n
}

// CountPlacedRuns returns how many runs are on nodes.
func CountPlacedRuns(tx *ledger.Tx) (n int) {
	for range tx.Prefix(ledger.Key("sched", "session", "")) {
		n++
	}
	return n
}

// SessionsWithRuns returns the sessions that have runs to give back, with their
// nodes, by session.
func SessionsWithRuns(tx *ledger.Tx) []NodeLost {
	var out []NodeLost
	prefix := ledger.Key("sched", "session", "")
	for from := prefix; ; {
		next, found := NodeLost{}, false
		for k, company := range tx.Scan(from, ledger.PrefixEnd(prefix), false) {
			session, run := parseSessionKey(k[len(prefix):])
			r, _ := RunTable.Get(tx, ledger.CompanyID(company), run)
			next, found = NodeLost{Node: r.Node, Session: session}, true
			break
		}
		if !found {
			return out
		}
		out = append(out, next)
		from = ledger.PrefixEnd(ledger.Key("sched", "session", ledger.Order(next.Session), ""))
	}
}

func parseSessionKey(rest []byte) (session uint64, run string) {
	order, run, _ := strings.Cut(string(rest), "/")
	session, _ = strconv.ParseUint(order, 16, 64)
	return session, run
}
