package skill

import (
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/ledger"
)

// A ToolUse is one execution of a tool's version that tool.execute allowed.
type ToolUse struct {
	Company ledger.CompanyID
	Name    string
	Version uint32
	By      ledger.Actor
	Run     string // of the agent that asked, "" for none
}

// Over returns why the execution may no longer continue, or "". It ends for every reason for
// which tool.execute would now refuse it, and at the end of the run that asked for it.
func (u ToolUse) Over(tx *ledger.Tx) company.Denial {
	if why := company.EndedFor(tx, u.Company, u.By, u.Run, false); why != "" {
		return why
	}
	t, _ := toolRows.Get(tx, u.Company, u.Name)
	at := slices.IndexFunc(t.Versions, func(v ToolVersion) bool { return v.Version == u.Version })
	if at < 0 || t.Versions[at].Revoked || t.Rests {
		return company.DeniedTool
	}
	return ""
}
