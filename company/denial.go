package company

import (
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// GovernanceDenied is the code for an actor that has the permission but is stopped by a
// decision of the mesh, the company or the board.
const GovernanceDenied = "GovernanceDenied"

// A Denial is the reason why governance stops an actor that has the permission.
type Denial string

// All denials.
const (
	DeniedMeshStopped  Denial = "mesh_stopped"   // the emergency stop
	DeniedCompany      Denial = "company_paused" // or archived
	DeniedAgent        Denial = "agent_paused"   // paused by hand, waiting for the board, or terminated
	DeniedAgentStopped Denial = "agent_stopped"  // the same, in refusals of money reservations
	DeniedBudget       Denial = "budget_paused"  // a hard stop
	DeniedNoProgress   Denial = "no_progress"    // its runs changed nothing
	DeniedTreeHold     Denial = "issue_tree_held"
	DeniedStrategy     Denial = "ceo_strategy_required"
	DeniedStage        Denial = "execution_stage_participant_required"
	DeniedRule         Denial = "rule" // of the constitution
)

var denials = []Denial{DeniedMeshStopped, DeniedCompany, DeniedAgent, DeniedAgentStopped, DeniedBudget,
	DeniedNoProgress, DeniedTreeHold, DeniedStrategy, DeniedStage, DeniedRule}

// IsDenial reports whether a refusal's code is a decision of governance. The same
// request gets it again until somebody decides otherwise. All other codes depend on
// the request.
func IsDenial(code string) bool { return slices.Contains(denials, Denial(code)) }

// DeniedTo returns why an actor may do nothing now, or "". People may act in a paused
// company. During an emergency stop nobody may act.
func DeniedTo(tx *ledger.Tx, of ledger.CompanyID, by ledger.Actor) Denial {
	if _, halted := entity.Halted(tx); halted {
		return DeniedMeshStopped
	}
	if by.Type != "agent" {
		return ""
	}
	if why := DeniedIn(tx, of); why != "" {
		return why
	}
	a, ok := entity.Wakeable(tx, of, by.ID)
	if !ok || a.Stopped(tx) == "" {
		return ""
	}
	switch a.PauseReason {
	case entity.PausedForBudget:
		return DeniedBudget
	case entity.PausedForNoProgress:
		return DeniedNoProgress
	}
	return DeniedAgent
}

// DeniedIn returns why a company is stopped, or "".
func DeniedIn(tx *ledger.Tx, of ledger.CompanyID) Denial {
	row, ok := entity.CompanyTable.Get(tx, of, of)
	switch {
	case !ok || row.Status == entity.CompanyActive:
		return ""
	case row.PauseReason == entity.PausedForBudget:
		return DeniedBudget
	}
	return DeniedCompany
}

// RefuseDenied returns the 409 of a denial.
func RefuseDenied(why Denial, format string, args ...any) error {
	return core.RefuseCode(ledger.Conflict, GovernanceDenied, core.Object{}.Str("code", GovernanceDenied).
		Str("reason", string(why)).Close(), format, args...)
}

// DenyLive ends a live run because governance denies that it continues. The run's row
// has the reason, and that the sandbox was notified.
func DenyLive(c *ledger.Context, r entity.Run, denied Denial, why string) entity.Run {
	return cancelFor(c, r, why, c.Cmd.Actor, denied)
}

// Other reasons that end something that was allowed: its run has ended, or the version
// of its tool was withdrawn. They never appear as [GovernanceDenied].
const (
	DeniedRunOver Denial = "run_over"
	DeniedTool    Denial = "tool_revoked"
)

// EndedFor returns why something that by was allowed to do must end, or "". outlives
// reports that it continues after its run has ended by itself.
func EndedFor(tx *ledger.Tx, of ledger.CompanyID, by ledger.Actor, run string, outlives bool) Denial {
	if why := DeniedTo(tx, of, by); why != "" {
		return why
	}
	if _, ok := entity.CompanyOf(tx, of); !ok {
		return DeniedCompany // it is being deleted
	}
	if by.Type != "agent" {
		return ""
	}
	if _, ok := entity.Wakeable(tx, of, by.ID); !ok {
		return DeniedAgent // the agent does not exist any more
	}
	if run == "" {
		return ""
	}
	r, ok := entity.RunTable.Get(tx, of, run)
	if ok && (r.Status.Live() || outlives && r.Status != entity.RunCancelled) {
		return ""
	}
	var end struct {
		DeniedBy Denial `json:"deniedBy"`
	}
	if ok && json.Unmarshal(r.ResultJSON, &end) == nil && end.DeniedBy != "" {
		return end.DeniedBy // such as the budget of a project
	}
	return DeniedRunOver
}
