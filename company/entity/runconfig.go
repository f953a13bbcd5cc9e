package entity

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/ledger"
)

// overridable are the members of adapterConfig that a model profile, or the
// issue of a run, may set: how a model thinks, and which. What is started, where
// and with which variables is the agent's alone: whoever may change an issue must
// not run programs by it.
var overridable = []string{"model", "effort", "modelReasoningEffort", "thinking", "variant", "maxTurnsPerRun"}

// ConfigForRun returns an agent's name and the adapterConfig of one of its runs:
// the agent's as it is stored, over it that of the model profile that the run asks
// for (runtimeConfig.modelProfiles), over it that of its issue
// (assigneeAdapterOverrides.adapterConfig). A run asks for a profile by
// modelProfile in the payload of its wake, or by that of its issue's overrides.
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
		_ = json.Unmarshal(i.AdapterOverrides, &issue) // one that is malformed overrides nothing
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

// overridden is config with the members of over that may be set so.
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
		if v = bytes.TrimSpace(v); slices.Contains(overridable, k) && len(v) > 0 && v[0] != '{' && v[0] != '[' && v[0] != 'n' {
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
