package company

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
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
	if i, ok := IssueOf(tx, r.Company, r.Context.issue()); ok && i.Assignee == r.Agent {
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

// issue is the issue that a run is for, "" for none.
func (c RunContext) issue() string {
	if c.IssueID != "" {
		return c.IssueID
	}
	return c.TaskID
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

// Bounds of a fat context, so that it fits into one variable of a process.
const (
	maxFatIssues   = 20
	maxFatComments = 10
	maxFatText     = 2 << 10
)

type fatIssue struct {
	ID       string        `json:"id"`
	Title    string        `json:"title"`
	Status   IssueStatus   `json:"status"`
	Priority Priority      `json:"priority"`
	Project  core.NullText `json:"projectId"`
}

type fatComment struct {
	ID          string        `json:"id"`
	AuthorAgent core.NullText `json:"authorAgentId"`
	AuthorUser  core.NullText `json:"authorUserId"`
	Body        string        `json:"body"`
	CreatedAt   core.Time     `json:"createdAt"`
}

type fatGoal struct {
	ID          string     `json:"id"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Status      GoalStatus `json:"status"`
}

// WakeOf is the context of a run as the agent is given it: for agents whose
// contextMode is thin, which is the default, IDs and reasons; for fat ones also
// what is assigned to them, the goal of the issue, their budget, and the latest
// comments on the issue, oldest first.
func WakeOf(tx *ledger.Tx, r Run, now core.Time) (json.RawMessage, error) {
	thin, err := json.Marshal(r.Context)
	a, ok := Wakeable(tx, r.Company, r.Agent)
	if err != nil || !ok || a.Mode() != "fat" {
		return thin, err
	}
	var all map[string]any
	if err := json.Unmarshal(thin, &all); err != nil {
		return nil, err
	}
	assigned := []fatIssue{}
	for id := range IssuesOf(tx, r.Company, r.Agent, IssueInProgress, IssueTodo, IssueInReview, IssueBlocked) {
		if len(assigned) == maxFatIssues {
			break
		}
		if i, ok := IssueOf(tx, r.Company, id); ok {
			assigned = append(assigned, fatIssue{i.ID, fatText(i.Title), i.Status, i.Priority, core.NullText(i.Project)})
		}
	}
	all["assignments"] = assigned
	all["budget"] = Ask.Told(tx, r.Company, r.Agent, now)
	comments := []fatComment{}
	if i, ok := IssueOf(tx, r.Company, r.Context.issue()); ok {
		all["issue"] = map[string]any{"id": i.ID, "title": i.Title, "status": i.Status, "description": fatText(i.Description)}
		if g, ok := GoalOf(tx, r.Company, i.Goal); ok {
			all["goal"] = fatGoal{g.ID, g.Title, fatText(string(g.Description)), g.Status}
		}
		list, err := CommentsOf(tx, i, CommentQuery{Limit: maxFatComments})
		if err != nil {
			return nil, err
		}
		for _, c := range slices.Backward(list) {
			if c.DeletedAt == 0 {
				comments = append(comments, fatComment{c.ID, c.AuthorAgent, c.AuthorUser, fatText(c.Body), c.CreatedAt})
			}
		}
	}
	all["recentComments"] = comments
	return json.Marshal(all)
}

// fatText is the beginning of a text.
func fatText(s string) string {
	if len(s) <= maxFatText {
		return s
	}
	cut := maxFatText
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}
