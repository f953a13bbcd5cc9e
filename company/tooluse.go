package company

import (
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/ledger"
)

// What ends something that was allowed besides governance: its run is over, or the
// version of the tool was taken out of use. A request meets neither as a
// [GovernanceDenied].
const (
	DeniedRunOver Denial = "run_over"
	DeniedTool    Denial = "tool_revoked"
)

// A ToolUse is one execution of a version of a tool that tool.execute allowed.
type ToolUse struct {
	Company string
	Name    string
	Version uint32
	By      ledger.Actor
	Run     string // of the agent that asked, "" for none
}

// Over returns why the use may go on no longer, or "" while it may: what
// tool.execute would refuse now ends what it allowed before, and so does the end of
// the run that asked for it.
func (u ToolUse) Over(tx *ledger.Tx) Denial {
	if why := endedFor(tx, u.Company, u.By, u.Run, false); why != "" {
		return why
	}
	t, _ := toolRows.Get(tx, u.Company, u.Name)
	at := slices.IndexFunc(t.Versions, func(v ToolVersion) bool { return v.Version == u.Version })
	if at < 0 || t.Versions[at].Revoked {
		return DeniedTool
	}
	return ""
}

// Over returns why a command that an agent asked for in a workspace may go on no
// longer, or "": its agent may do nothing now, or its run was cancelled. A run that
// came to its own end leaves it at work. What a person asked for goes on but for
// the emergency stop.
func (o WorkspaceOperation) Over(tx *ledger.Tx) Denial {
	r, ok := runs.Get(tx, o.Company, string(o.Run))
	if o.Run == "" || !ok {
		return endedFor(tx, o.Company, ledger.Actor{}, "", false)
	}
	return endedFor(tx, o.Company, ledger.Actor{Type: "agent", ID: r.Agent}, r.ID, true)
}

// endedFor returns why what by was allowed to do has to end, or "". outlives says
// that it goes on when the run came to its own end.
func endedFor(tx *ledger.Tx, of string, by ledger.Actor, run string, outlives bool) Denial {
	if why := deniedTo(tx, of, by); why != "" {
		return why
	}
	if _, ok := CompanyOf(tx, of); !ok {
		return DeniedCompany // it is being deleted
	}
	if by.Type != "agent" {
		return ""
	}
	if _, ok := wakeable(tx, of, by.ID); !ok {
		return DeniedAgent // it is gone
	}
	if run == "" {
		return ""
	}
	r, ok := runs.Get(tx, of, run)
	if ok && (r.Status.Live() || outlives && r.Status != RunCancelled) {
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
