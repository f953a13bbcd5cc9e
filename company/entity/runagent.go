package entity

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A HeartbeatPolicy says when an agent may be woken: runtimeConfig.heartbeat, or the same
// fields in adapterConfig, where the specification has them.
type HeartbeatPolicy struct {
	Enabled                       bool
	IntervalSec                   int64
	WakeOnDemand                  bool
	MaxConcurrentRuns             int
	MaxDailyRuns                  int64      // 0: no limit
	MaxDailyCost                  core.Money // 0: no limit
	SkipTimerWhenNoActionableWork bool
	MaxFruitlessRuns              int64 // in a row; 0: no limit
}

const (
	// DefaultConcurrentRuns and MaxConcurrentRuns bound the runs of one agent.
	DefaultConcurrentRuns = 20
	MaxConcurrentRuns     = 50
	// MaxDailyCostCents bounds the daily spending limit of an agent (ten million dollars).
	MaxDailyCostCents = core.MaxEventCents
)

// ParsePolicy reads the policy from an agent's two configurations. A value of the wrong type
// counts as absent; the API refuses it when it is set.
func ParsePolicy(runtimeConfig, adapterConfig []byte) HeartbeatPolicy {
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
	return HeartbeatPolicy{
		Enabled:      first(false, h.Enabled, adapter.Enabled),
		IntervalSec:  first(0, h.Interval, adapter.Interval),
		WakeOnDemand: first(true, h.WakeOnDemand, adapter.WakeOnDemand),
		MaxConcurrentRuns: int(min(max(first(DefaultConcurrentRuns, h.Concurrent, adapter.Concurrent), 1),
			MaxConcurrentRuns)),
		MaxDailyRuns:                  first(0, h.Daily, adapter.Daily),
		MaxDailyCost:                  core.Cents(min(max(first(0, h.DailyCost, adapter.DailyCost), 0), MaxDailyCostCents)),
		SkipTimerWhenNoActionableWork: first(false, h.SkipIdle, adapter.SkipIdle),
		MaxFruitlessRuns: min(max(first(DefaultFruitlessRuns, h.Fruitless, adapter.Fruitless), 0),
			MaxFruitlessRuns),
	}
}

// A setting is a value that may be absent. A value of the wrong type counts as absent.
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

// A WakeTarget is an agent with the methods that waking needs.
type WakeTarget struct{ Agent }

func Wakeable(tx *ledger.Tx, company ledger.CompanyID, agent string) (WakeTarget, bool) {
	a, ok := AgentTable.Get(tx, company, agent)
	return WakeTarget{a}, ok
}

func (a WakeTarget) Policy() HeartbeatPolicy { return ParsePolicy(a.RuntimeConfig, a.AdapterConfig) }

func (a WakeTarget) Gone() bool { return a.Status == AgentTerminated }

// Stopped returns why an agent may not be invoked now, or "".
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

// AdapterConfigOf returns an agent's name and stored adapterConfig, with plain values. It is
// for the node that executes the agent's runs and must not be shown.
func AdapterConfigOf(tx *ledger.Tx, company ledger.CompanyID, agent string) (name string,
	config json.RawMessage, ok bool) {
	a, ok := Wakeable(tx, company, agent)
	return a.Name, json.RawMessage(a.AdapterConfig), ok
}

const (
	// DefaultFruitlessRuns is how many runs in a row may change nothing before their agent is
	// paused, unless runtimeConfig.heartbeat.maxFruitlessRuns is set; 0 there means never.
	// MaxFruitlessRuns bounds the setting.
	DefaultFruitlessRuns = 10
	MaxFruitlessRuns     = 1_000
	// PausedForNoProgress is the pause reason of an agent whose runs changed nothing.
	PausedForNoProgress = "no_progress"
)
