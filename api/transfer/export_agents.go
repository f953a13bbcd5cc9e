package transfer

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/company/skill"
)

func (e *exporter) allAgents() error {
	if !e.include.Agents {
		return nil
	}
	all := entity.AgentsOf(e.tx, e.of.ID,
		e.include.Issues) // with issues also the terminated agents, because they have work
	over := func(a entity.Agent) bool { return a.Status == entity.AgentTerminated }
	slices.SortFunc(all, func(a, b entity.Agent) int {
		keyA, keyB := core.URLKey(a.Name), core.URLKey(b.Name)
		return cmp.Or(later(keyA == "", keyB == ""), cmp.Compare(keyA, keyB), later(over(a), over(b)),
			cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, a := range all {
		if s := slug(e.agents, a.ID, a.Name, "agent"); !wanted(e.body.Agents, s, a.ID) {
			delete(e.agents, a.ID)
		}
	}
	for _, a := range all {
		if s, ok := e.agents[a.ID]; ok {
			if a.Status == entity.AgentPendingApproval {
				e.warn("Agent %s waits for the board's approval here; whoever imports it hires it.", s)
			}
			e.m.Agents = append(e.m.Agents, e.agent(a, s))
		}
	}
	for n := range e.m.Goals {
		for _, g := range entity.GoalsOf(e.tx, e.of.ID) {
			if e.goals[g.ID] == e.m.Goals[n].Slug {
				e.m.Goals[n].Owner = known(e.agents, string(g.Owner))
			}
		}
	}
	e.sidebar()
	return nil
}

// later compares two flags: false sorts before true.
func later(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (e *exporter) agent(a entity.Agent, s string) portable.Agent {
	limit, _ := money.AgentBudget(e.tx, e.of.ID, a.ID, e.at)
	out := portable.Agent{Slug: s, Name: a.Name, Path: "agents/" + s + "/AGENTS.md", Skills: e.skillsOf(a.ID),
		Role: a.Role, Title: api.Optional(a.Title), Icon: api.Optional(a.Icon),
		Capabilities: api.Optional(a.Capabilities), ReportsTo: known(e.agents, string(a.ReportsTo)),
		AdapterType: a.AdapterType,
		Permissions: map[string]bool{"canCreateAgents": a.Permissions.CreateAgents,
			"canCreateSkills": a.Permissions.CreateSkills},
		PermissionGrants: []portable.PermissionGrant{}, BudgetCents: limit.Cents(),
		Metadata: objectOf(conceal.RedactConfig(a.Metadata))}
	if len(out.Metadata) == 0 {
		out.Metadata = nil
	}
	if mode := a.Mode(); mode != "thin" {
		out.ContextMode = mode
	}
	if a.Permissions.AssignTasks {
		out.Permissions["canAssignTasks"] = true
	}
	for _, g := range people.AccessOf(a).Grants {
		out.PermissionGrants = append(out.PermissionGrants, portable.PermissionGrant{Key: g.Permission})
	}
	config := objectOf(conceal.RedactConfig(a.AdapterConfig))
	e.inputs(objectOf(a.AdapterConfig)["env"], "agent", s, func(in *portable.EnvInput) { in.Agent = &s })
	if command, ok := config["command"].(string); ok && strings.ContainsAny(command, `/\`) {
		e.warn("Agent %s command %s was omitted from export because it is system-dependent.", s, command)
		delete(config, "command")
	}
	out.AdapterConfig = e.scrub("Agent "+s, config)
	out.RuntimeConfig = e.scrub("Agent "+s, objectOf(conceal.RedactConfig(a.RuntimeConfig)))
	if beat, ok := out.RuntimeConfig["heartbeat"].(map[string]any); ok {
		delete(beat, "enabled") // a package never starts runs by itself
		if n, ok := beat["maxConcurrentRuns"].(float64); ok && n == entity.DefaultConcurrentRuns {
			delete(beat, "maxConcurrentRuns")
		}
		if len(beat) == 0 {
			delete(out.RuntimeConfig, "heartbeat")
		}
	}
	e.instructions(a, &out)
	out.Budgets, out.Memories = e.budgets(entity.ScopeAgent, a.ID), e.memories(a.ID)
	out.Terminated = a.Status == entity.AgentTerminated
	return out
}

// instructions adds the files that the mesh stores for an agent. The entry file becomes
// the body of AGENTS.md.
func (e *exporter) instructions(a entity.Agent, out *portable.Agent) {
	in := skill.InstructionsOf(e.tx, a)
	if in.Mode != "managed" {
		if in.Mode == "external" {
			e.warn("Agent %s: its instructions are files of a node and were left out.", out.Slug)
		}
		return
	}
	for _, f := range in.Files {
		text, _ := skill.InstructionText(e.tx, a.Company, a.ID, f.Path)
		switch {
		case f.Path == in.Entry:
			out.Instructions = text
		case f.Path == skill.InstructionsEntry:
			e.warn("Agent %s: its %s is not what it reads first and was left out.", out.Slug, f.Path)
		default:
			if out.OtherInstructions == nil {
				out.OtherInstructions = map[string]string{}
			}
			out.OtherInstructions[f.Path] = text
		}
	}
}

// local are the keys of a configuration that are valid on one machine only, or that the
// package has in another place.
var local = []string{"env", "cwd", "instructionsFilePath", "instructionsRootPath", "instructionsEntryFile",
	"instructionsBundleMode", "agentsMdPath",
	"paperclipSkillSync", "workspaceStrategy"}

// scrub removes what is not exported: local paths and redacted values. A text with a
// redacted part, such as a command's argument with a credential, is exported with the
// mark in its place, so that the importer sees what to fill in.
func (e *exporter) scrub(what string, m map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		if slices.Contains(local, k) {
			continue
		}
		v, left, holes := travelling(v)
		if left {
			e.warn("%s: %s holds a secret and was left out.", what, k)
		}
		if holes {
			e.warn("%s: %s names a credential; "+conceal.Redacted+" stands in its place.", what, k)
		}
		if v != nil || !left {
			out[k] = v
		}
	}
	return out
}

// travelling returns the exported part of a redacted value. left reports that a
// completely redacted value was removed, holes that an exported text contains the mark.
func travelling(v any) (kept any, left, holes bool) {
	switch x := v.(type) {
	case string:
		if x == conceal.Redacted {
			return nil, true, false
		}
		return x, false, strings.Contains(x, conceal.Redacted)
	case []any:
		out := make([]any, 0, len(x))
		for _, v := range x {
			if v == conceal.Redacted { // keep it: positions in a list matter
				out, holes = append(out, v), true
				continue
			}
			w, l, h := travelling(v)
			left, holes = left || l, holes || h
			if w != nil || !l {
				out = append(out, w)
			}
		}
		return out, left, holes
	case map[string]any:
		out := map[string]any{}
		for k, v := range x {
			w, l, h := travelling(v)
			left, holes = left || l, holes || h
			if w != nil || !l {
				out[k] = w
			}
		}
		if left && len(out) == 0 {
			return nil, true, holes
		}
		return out, left, holes
	}
	return v, false, false
}

// inputs declares the variables of an environment without their values.
func (e *exporter) inputs(env any, what, slug string, of func(*portable.EnvInput)) {
	m, _ := env.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		in := portable.EnvInput{Key: key, Kind: "plain", Requirement: "optional", Portability: "portable",
			Description: "Provide " + key + " for " + what + " " + slug}
		if ref, ok := m[key].(map[string]any); ok && (ref["type"] == "secret_ref" || ref["type"] == "user_secret_ref") ||
			conceal.SecretName(key) {
			in.Kind = "secret"
		}
		of(&in)
		e.m.EnvInputs = append(e.m.EnvInputs, in)
	}
}

// sidebar exports the sidebar's saved order, or the order of the org chart and of the
// list.
func (e *exporter) sidebar() {
	e.m.Sidebar = &portable.Sidebar{Agents: []string{}, Projects: []string{}}
	if o := e.body.SidebarOrder; o != nil {
		e.m.Sidebar.Agents, e.m.Sidebar.Projects = append(e.m.Sidebar.Agents, o.Agents...),
			append(e.m.Sidebar.Projects, o.Projects...)
		return
	}
	var walk func([]*people.OrgNode)
	walk = func(level []*people.OrgNode) {
		level = slices.SortedFunc(slices.Values(level), func(a, b *people.OrgNode) int {
			return cmp.Compare(e.agents[a.ID],
				e.agents[b.ID])
		})
		for _, n := range level {
			if s, ok := e.agents[n.ID]; ok {
				e.m.Sidebar.Agents = append(e.m.Sidebar.Agents, s)
			}
		}
		for _, n := range level {
			walk(n.Reports)
		}
	}
	walk(people.Org(e.tx, e.of.ID))
}
