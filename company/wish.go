package company

import (
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Wish is where an agent's runs may be placed: runtimeConfig.placement. A node must meet
// all of it.
type Wish struct {
	Node     string   `json:"node"`     // ID
	Labels   []string `json:"labels"`   // the node must have all of them
	OS       string   `json:"os"`       // such as linux
	Arch     string   `json:"arch"`     // such as amd64, arm64
	GPU      bool     `json:"gpu"`      // the node has a GPU or the label gpu
	MemoryMB int64    `json:"memoryMb"` // free
	Programs []string `json:"programs"` // found on the node's PATH
}

// commandLines are the programs that adapters start by type, unless the agent's
// adapterConfig names another.
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

// NeedsOf returns the adapter and the wish of a queued run's agent. A malformed wish counts
// as none.
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
