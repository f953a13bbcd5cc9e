package company

import (
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Wish is where an agent's runs may be placed: runtimeConfig.placement. A node
// must fulfil all that it names.
type Wish struct {
	Node     string   `json:"node"`     // ID
	Labels   []string `json:"labels"`   // it carries all
	OS       string   `json:"os"`       // such as linux
	Arch     string   `json:"arch"`     // such as amd64, arm64
	GPU      bool     `json:"gpu"`      // it has one, or is labelled gpu
	MemoryMB int64    `json:"memoryMb"` // free
	Programs []string `json:"programs"` // found on its PATH
}

// commandLines names the program that adapters of a type start, unless the
// agent's adapterConfig names another.
var commandLines = map[string]string{
	"claude_local": "claude", "codex_local": "codex", "gemini_local": "gemini", "opencode_local": "opencode",
	"cursor": "cursor-agent", "pi_local": "pi", "hermes_local": "hermes",
}

// CommandLines returns the programs that adapters start, sorted.
func CommandLines() (out []string) {
	for _, p := range commandLines {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// NeedsOf returns the adapter that a queued run needs now, and the wish of its
// agent. A wish that is malformed counts as none.
func NeedsOf(tx *ledger.Tx, r entity.Run) (adapter string, want Wish) {
	a, ok := entity.Wakeable(tx, r.Company, r.Agent)
	if !ok {
		return r.AdapterType, Wish{}
	}
	var cfg struct {
		Placement Wish `json:"placement"`
	}
	if json.Unmarshal(a.RuntimeConfig, &cfg) != nil {
		cfg.Placement = Wish{}
	}
	var start struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal(a.AdapterConfig, &start) // another type counts as absent
	if p, ok := commandLines[a.AdapterType]; ok && start.Command == "" {
		cfg.Placement.Programs = append(cfg.Placement.Programs, p)
	}
	return a.AdapterType, cfg.Placement
}
