package company

import (
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// GovernanceDenied is the code of what was granted and may not be done
// nevertheless, because the mesh, the company or the board says no.
const GovernanceDenied = "GovernanceDenied"

// A Denial is why governance says no to what somebody might do otherwise.
type Denial string

// The denials that there are.
const (
	DeniedMeshStopped  Denial = "mesh_stopped"   // the emergency stop
	DeniedCompany      Denial = "company_paused" // or archived
	DeniedAgent        Denial = "agent_paused"   // by hand, or it waits for the board, or its end
	DeniedAgentStopped Denial = "agent_stopped"  // the same, as reservations of money say it
	DeniedBudget       Denial = "budget_paused"  // a hard stop
	DeniedNoProgress   Denial = "no_progress"    // its runs came to nothing
	DeniedTreeHold     Denial = "issue_tree_held"
	DeniedStrategy     Denial = "ceo_strategy_required"
	DeniedStage        Denial = "execution_stage_participant_required"
)

var denials = []Denial{DeniedMeshStopped, DeniedCompany, DeniedAgent, DeniedAgentStopped, DeniedBudget, DeniedNoProgress, DeniedTreeHold, DeniedStrategy, DeniedStage}

// IsDenial reports whether the code of a refusal is a decision of governance,
// which the same request meets again until somebody decides otherwise; all other
// codes are rules of what is asked for.
func IsDenial(code string) bool { return slices.Contains(denials, Denial(code)) }

// DeniedTo returns why an actor may do nothing now, or "". A person acts in a
// company that is paused; nobody does while everything is stopped.
func DeniedTo(tx *ledger.Tx, of string, by ledger.Actor) Denial {
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

// DeniedIn returns why a company is at rest, or "".
func DeniedIn(tx *ledger.Tx, of string) Denial {
	row, ok := entity.CompanyTable.Get(tx, of, of)
	switch {
	case !ok || row.Status == entity.CompanyActive:
		return ""
	case row.PauseReason == entity.PausedForBudget:
		return DeniedBudget
	}
	return DeniedCompany
}

// RefuseDenied is the 409 for what governance says no to.
func RefuseDenied(why Denial, format string, args ...any) error {
	return core.RefuseCode(ledger.Conflict, GovernanceDenied, core.Object{}.Str("code", GovernanceDenied).Str("reason", string(why)).Close(), format, args...)
}

// DenyLive ends a live run because governance says no to its going on: what its
// row says of its end names why, and that the sandbox was told so.
func DenyLive(c *ledger.Context, r entity.Run, denied Denial, why string) entity.Run {
	return cancelFor(c, r, why, c.Cmd.Actor, denied)
}

// What ends something that was allowed besides governance: its run is over, or the
// version of the tool was taken out of use. A request meets neither as a
// [GovernanceDenied].
const (
	DeniedRunOver Denial = "run_over"
	DeniedTool    Denial = "tool_revoked"
)

// EndedFor returns why what by was allowed to do has to end, or "". outlives says
// that it goes on when the run came to its own end.
func EndedFor(tx *ledger.Tx, of string, by ledger.Actor, run string, outlives bool) Denial {
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
		return DeniedAgent // it is gone
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
