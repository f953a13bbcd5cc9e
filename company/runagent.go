package company

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A heartbeatPolicy is when an agent may be woken: runtimeConfig.heartbeat, or
// the same fields in adapterConfig where the specification has them.
type heartbeatPolicy struct {
	Enabled                       bool
	IntervalSec                   int64
	WakeOnDemand                  bool
	MaxConcurrentRuns             int
	MaxDailyRuns                  int64      // 0: no limit
	MaxDailyCost                  core.Money // 0: no limit
	SkipTimerWhenNoActionableWork bool
	MaxFruitlessRuns              int64 // in a row; 0: any number
}

// Timer returns whether an agent is woken by time, and every how many seconds; 0
// is never.
func (a Agent) Timer() (on bool, intervalSec int64) {
	p := parsePolicy(a.RuntimeConfig, a.AdapterConfig)
	return p.Enabled, p.IntervalSec
}

const (
	// DefaultConcurrentRuns and MaxConcurrentRuns bound the runs of one agent.
	DefaultConcurrentRuns = 20
	MaxConcurrentRuns     = 50
	// MaxDailyCostCents bounds what an agent may be allowed to spend in a day
	// (ten million dollars), so that the amount fits.
	MaxDailyCostCents = core.MaxEventCents
)

// parsePolicy reads the policy out of an agent's two configurations. A value of
// the wrong type counts as absent; the API refuses it where it is set.
func parsePolicy(runtimeConfig, adapterConfig []byte) heartbeatPolicy {
	type fields struct {
		Enabled      setting[bool]  `json:"enabled"`
		Interval     setting[int64] `json:"intervalSec"`
		WakeOnDemand setting[bool]  `json:"wakeOnDemand"`
		Concurrent   setting[int64] `json:"maxConcurrentRuns"`
		Daily        setting[int64] `json:"maxDailyRuns"`
		DailyCost    setting[int64] `json:"maxDailyCostCents"`
		SkipIdle     setting[bool]  `json:"skipTimerWhenNoActionableWork"`
		Fruitless    setting[int64] `json:"maxFruitlessRuns"`
	}
	var runtime struct {
		Heartbeat fields `json:"heartbeat"`
	}
	var adapter fields
	_ = json.Unmarshal(runtimeConfig, &runtime)
	_ = json.Unmarshal(adapterConfig, &adapter)
	h := runtime.Heartbeat
	return heartbeatPolicy{
		Enabled:                       first(false, h.Enabled, adapter.Enabled),
		IntervalSec:                   first(0, h.Interval, adapter.Interval),
		WakeOnDemand:                  first(true, h.WakeOnDemand, adapter.WakeOnDemand),
		MaxConcurrentRuns:             int(min(max(first(DefaultConcurrentRuns, h.Concurrent, adapter.Concurrent), 1), MaxConcurrentRuns)),
		MaxDailyRuns:                  first(0, h.Daily, adapter.Daily),
		MaxDailyCost:                  core.Cents(min(max(first(0, h.DailyCost, adapter.DailyCost), 0), MaxDailyCostCents)),
		SkipTimerWhenNoActionableWork: first(false, h.SkipIdle, adapter.SkipIdle),
		MaxFruitlessRuns:              min(max(first(DefaultFruitlessRuns, h.Fruitless, adapter.Fruitless), 0), MaxFruitlessRuns),
	}
}

// A setting is a value that may be absent; one of the wrong type is.
type setting[T any] struct {
	value T
	given bool
}

func (s *setting[T]) UnmarshalJSON(b []byte) error {
	s.given = string(b) != "null" && json.Unmarshal(b, &s.value) == nil
	return nil
}

func first[T any](otherwise T, settings ...setting[T]) T {
	for _, s := range settings {
		if s.given {
			return s.value
		}
	}
	return otherwise
}

// A wakeTarget is an agent as waking sees it.
type WakeTarget struct{ Agent }

func Wakeable(tx *ledger.Tx, company, agent string) (WakeTarget, bool) {
	a, ok := AgentTable.Get(tx, company, agent)
	return WakeTarget{a}, ok
}

func (a WakeTarget) Policy() heartbeatPolicy { return parsePolicy(a.RuntimeConfig, a.AdapterConfig) }

func (a WakeTarget) Gone() bool { return a.Status == AgentTerminated }

// Stopped says why an agent may not be invoked now, or "".
func (a WakeTarget) Stopped(tx *ledger.Tx) string {
	switch {
	case a.Status == AgentTerminated:
		return "agent.terminated"
	case a.Status == AgentPendingApproval:
		return "agent.pending_approval"
	case a.Status == AgentPaused && a.PauseReason == "budget":
		return "budget.blocked"
	case a.Status == AgentPaused:
		return "agent.paused"
	}
	if row, ok := CompanyTable.Get(tx, a.Company, a.Company); ok && row.Status != "active" {
		return "company." + string(row.Status)
	}
	if _, halted := Halted(tx); halted {
		return "mesh.stopped"
	}
	return ""
}

// invokable refuses to invoke an agent that may not be invoked now, with the
// bodies that clients know.
func (a WakeTarget) invokable(tx *ledger.Tx) error {
	switch why := a.Stopped(tx); why {
	case "":
		return nil
	case "budget.blocked":
		return ledger.Refuse(ledger.Conflict, core.Object{}.Str("scopeType", "agent").Str("scopeId", a.ID).Close(),
			"Agent is paused because its budget hard-stop was reached.")
	default:
		_, reason, _ := strings.Cut(why, ".")
		return ledger.Refuse(ledger.Conflict, core.Object{}.Str("status", string(a.Status)).Str("reason", reason).
			Bool("invalidOrgChain", false).Str("agentId", a.ID).Str("agentStatus", string(a.Status)).Close(),
			"Agent is not invokable in its current state")
	}
}

// AdapterConfigOf returns an agent's name and adapterConfig as it is stored,
// plain values and all; it is for the node that carries out the agent's runs
// and must not be shown.
func AdapterConfigOf(tx *ledger.Tx, company, agent string) (name string, config json.RawMessage, ok bool) {
	a, ok := Wakeable(tx, company, agent)
	return a.Name, json.RawMessage(a.AdapterConfig), ok
}

// setAgentRunning notes that an agent is at work; an earlier error is over.
func setAgentRunning(c *ledger.Context, a WakeTarget) {
	a.Status, a.ErrorReason, a.UpdatedAt = AgentRunning, "", core.TimeOf(c.Now)
	AgentTable.Put(c.Tx, a.Company, a.ID, a.Agent)
	RecordLive(c, ledger.Change{Action: "agent.status", EntityType: "agent", EntityID: a.ID,
		Details: core.Object{}.Str("agentId", a.ID).Str("status", "running").Str("outcome", "running").Close()})
}

// settleAgent sets an agent's state after one of its runs ended: at work while
// another runs, in error when this one went wrong and nothing makes up for it,
// else idle. A paused or terminated agent stays what it is.
func settleAgent(c *ledger.Context, r Run, started bool, next *Run) {
	a, ok := Wakeable(c.Tx, r.Company, r.Agent)
	if !ok || !started {
		return
	}
	now := core.TimeOf(c.Now)
	a.LastHeartbeatAt, a.UpdatedAt = now, now
	if a.Status == AgentRunning || a.Status == AgentIdle || a.Status == AgentError {
		a.Status, a.ErrorReason = AgentIdle, ""
		switch {
		case slices.ContainsFunc(LiveRunsOfAgent(c.Tx, r.Company, r.Agent), func(o Run) bool { return o.Status == RunRunning }):
			a.Status = AgentRunning
		case r.Status == RunFailed, r.Status == RunTimedOut, r.Status == RunInterrupted && next == nil:
			a.Status, a.ErrorReason = AgentError, core.NullText(r.Error)
		}
	}
	AgentTable.Put(c.Tx, a.Company, a.ID, a.Agent)
	RecordLive(c, ledger.Change{Action: "agent.status", EntityType: "agent", EntityID: a.ID,
		Details: core.Object{}.Str("agentId", a.ID).Str("status", string(a.Status)).Time("lastHeartbeatAt", now).
			Str("outcome", string(r.Status)).Close()})
}

// hasActionableWork reports whether an agent has an issue that it could go on with.
func hasActionableWork(tx *ledger.Tx, company, agent string) bool {
	for range IssuesOf(tx, company, agent, IssueTodo, IssueInProgress, IssueInReview) {
		return true
	}
	return false
}

const (
	// DefaultFruitlessRuns is how many runs in a row may come to nothing before
	// their agent is paused, unless runtimeConfig.heartbeat.maxFruitlessRuns says
	// otherwise; MaxFruitlessRuns bounds that. 0 there means that it is never
	// paused for it.
	DefaultFruitlessRuns = 10
	MaxFruitlessRuns     = 1_000
	// PausedForNoProgress is the pause reason of an agent whose runs came to nothing.
	PausedForNoProgress = "no_progress"
)
