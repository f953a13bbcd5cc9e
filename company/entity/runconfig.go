package entity

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/ledger"
)

// overridable are the members of adapterConfig that a model profile, or the issue of a run,
// may set: which model, and how it thinks. Programs, folders and variables are the agent's
// alone, so that nobody runs programs by changing an issue.
var overridable = []string{"model", "effort", "modelReasoningEffort", "thinking", "variant", "maxTurnsPerRun"}

// ConfigForRun returns an agent's name and the adapterConfig of one of its runs: the stored
// one, overridden by the model profile that the run asks for (runtimeConfig.modelProfiles),
// overridden by its issue (assigneeAdapterOverrides.adapterConfig). A run asks for a profile
// by modelProfile in the payload of its wake or in its issue's overrides.
func ConfigForRun(tx *ledger.Tx, r Run) (name string, config json.RawMessage, ok bool) {
	a, ok := Wakeable(tx, r.Company, r.Agent)
	if !ok {
		return "", nil, false
	}
	var issue, wake struct {
		Profile string          `json:"modelProfile"`
		Config  json.RawMessage `json:"adapterConfig"`
	}
	if i, ok := IssueOf(tx, r.Company, r.Context.Issue()); ok && i.Assignee == r.Agent {
		_ = json.Unmarshal(i.AdapterOverrides, &issue) // malformed overrides change nothing
	}
	_ = json.Unmarshal(r.Context.Payload, &wake)
	profile := wake.Profile
	if profile == "" {
		profile = issue.Profile
	}
	config = json.RawMessage(a.AdapterConfig)
	if profile != "" {
		var runtime struct {
			Profiles map[string]struct {
				Enabled *bool           `json:"enabled"`
				Config  json.RawMessage `json:"adapterConfig"`
			} `json:"modelProfiles"`
		}
		_ = json.Unmarshal(a.RuntimeConfig, &runtime) // likewise
		if p := runtime.Profiles[profile]; p.Enabled == nil || *p.Enabled {
			config = overridden(config, p.Config)
		}
	}
	return a.Name, overridden(config, issue.Config), true
}

// overridden returns config with the overridable members of over.
func overridden(config, over json.RawMessage) json.RawMessage {
	var set, base map[string]json.RawMessage
	if len(over) == 0 || json.Unmarshal(over, &set) != nil || len(config) > 0 && json.Unmarshal(config, &base) != nil {
		return config
	}
	if base == nil {
		base = map[string]json.RawMessage{}
	}
	changed := false
	for k, v := range set {
		if v = bytes.TrimSpace(v); slices.Contains(overridable, k) && len(v) > 0 && v[0] != '{' && v[0] != '[' &&
			v[0] != 'n' {
			base[k], changed = v, true
		}
	}
	if !changed {
		return config
	}
	b, err := json.Marshal(base)
	if err != nil {
		return config // raw JSON that was decoded encodes
	}
	return b
}
