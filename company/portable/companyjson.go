package portable

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/entity"
)

// CompanyJSON is the name of the file that [FromCompanyJSON] reads.
const CompanyJSON = "company.json"

// A companyJSON is a company as one JSON file describes it, in both published forms. One has agents by name:
//
//	{"agents": {"reviewer": {"adapter": "weftos",
//	 "config": {"base_url": "http://localhost:8080", "model": "local/llama3.1"}}}}
//
// and the other a list, with the runtimes that agents name:
//
//	{"agents": [{"id": "agent-reviewer", "runtime": "weftos", "config": {"baseUrl": "…"}}],
//	 "runtimes": {"weftos": {"adapter": "@paperclipai/adapter-weftos", "version": "0.1.0"}}}
//
// Either may have the members of the types Company, OrgNode and Goal: "id", "name", "description", "role",
// "reports_to", "budget_cents", "goals", "parent_goal", "status". Lines that begin with // are comments. Other members
// are refused, so that a misspelt one is not passed over; a file of ours that grows has a new member.
type companyJSON struct {
	Schema      string                 `json:"$schema"`
	ID          string                 `json:"id"`
	Name        string                 `json:"name"`
	Description string                 `json:"description"`
	CreatedAt   string                 `json:"created_at"`
	Agents      json.RawMessage        `json:"agents"`
	Runtimes    map[string]jsonRuntime `json:"runtimes"`
	Goals       []jsonGoal             `json:"goals"`
}

type jsonRuntime struct {
	Adapter string         `json:"adapter"`
	Version string         `json:"version"`
	Config  map[string]any `json:"config"` // of every agent that has the runtime, below its own
}

type jsonAgent struct {
	ID           string          `json:"id"`
	AgentID      string          `json:"agent_id"` // likewise
	Name         string          `json:"name"`
	Title        *string         `json:"title"`
	Role         json.RawMessage `json:"role"` // a word, or {"custom": word}
	ReportsTo    string          `json:"reports_to"`
	ReportsTo2   string          `json:"reportsTo"` // likewise
	Budget       int64           `json:"budget_cents"`
	Goals        []string        `json:"goals"` // slugs that it owns
	Adapter      string          `json:"adapter"`
	Runtime      string          `json:"runtime"` // likewise, or one of runtimes
	Config       map[string]any  `json:"config"`
	Instructions string          `json:"instructions"`
	Heartbeat    *struct {
		Enabled  bool  `json:"enabled"`
		Interval int64 `json:"interval"` // seconds
	} `json:"heartbeat"`
}

type jsonGoal struct {
	ID          string         `json:"id"`
	Description string         `json:"description"`
	Parent      string         `json:"parent_goal"`
	Status      string         `json:"status"`
	Metrics     map[string]any `json:"metrics"`
}

// LooksLikeCompanyJSON reports whether a file is a JSON object, with comments or not.
func LooksLikeCompanyJSON(b []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(uncommented(b)), []byte("{"))
}

// FromCompanyJSON makes a package of a company.json. fallback is the company's name where the file has none.
func FromCompanyJSON(b []byte, fallback string) (Files, error) {
	if len(b) > MaxText {
		return nil, malformed("%s is longer than %d bytes", CompanyJSON, MaxText)
	}
	var c companyJSON
	if err := strictly(uncommented(b), &c); err != nil {
		return nil, malformed("%s: %s", CompanyJSON, err)
	}
	m := Manifest{SchemaVersion: SchemaVersion, Includes: Includes{Company: true, Agents: true}}
	m.Company = &Company{Path: companyFile, Name: cmp.Or(c.Name, fallback), Description: maybe(c.Description)}
	if strings.TrimSpace(m.Company.Name) == "" {
		return nil, malformed("%s: name: the company needs one", CompanyJSON)
	}
	agents, err := c.agents()
	if err != nil {
		return nil, malformed("%s: %s", CompanyJSON, err)
	}
	m.Agents = agents.list
	if m.Goals, err = agents.goals(c.Goals); err != nil {
		return nil, malformed("%s: %s", CompanyJSON, err)
	}
	return Write(m, nil), nil
}

// uncommented leaves out lines that are comments.
func uncommented(b []byte) []byte {
	var out []byte
	for line := range bytes.Lines(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))) {
		if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("//")) {
			out = append(out, line...)
		}
	}
	return out
}

func strictly(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		text := strings.TrimPrefix(err.Error(), "json: ")
		if name, ok := strings.CutPrefix(text, "unknown field "); ok {
			return fmt.Errorf("%s: no such member; leave it out", strings.Trim(name, `"`))
		}
		return fmt.Errorf("it is not the JSON of a company: %s", text)
	}
	if d.More() {
		return fmt.Errorf("something follows the object")
	}
	return nil
}

// crew are the agents of a file, and which slug each of their names stands for.
type crew struct {
	list  []Agent
	slugs map[string]string
	owner map[string]string // of goals, by the goal's slug
}

// agents reads both forms.
func (c companyJSON) agents() (*crew, error) {
	w := &crew{list: []Agent{}, slugs: map[string]string{}, owner: map[string]string{}}
	var named []struct {
		path string
		jsonAgent
	}
	switch b := bytes.TrimSpace(c.Agents); {
	case len(b) == 0:
		return nil, fmt.Errorf("agents: give an object by name, or a list")
	case b[0] == '{':
		byName := map[string]json.RawMessage{}
		if err := json.Unmarshal(b, &byName); err != nil {
			return nil, fmt.Errorf("agents: %s", err)
		}
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			a := jsonAgent{ID: name}
			if err := strictly(byName[name], &a); err != nil {
				return nil, fmt.Errorf("agents.%s: %s", name, err)
			}
			named = append(named, struct {
				path string
				jsonAgent
			}{"agents." + name, a})
		}
	case b[0] == '[':
		var list []json.RawMessage
		if err := json.Unmarshal(b, &list); err != nil {
			return nil, fmt.Errorf("agents: %s", err)
		}
		for n, one := range list {
			var a jsonAgent
			if err := strictly(one, &a); err != nil {
				return nil, fmt.Errorf("agents[%d]: %s", n, err)
			}
			named = append(named, struct {
				path string
				jsonAgent
			}{fmt.Sprintf("agents[%d]", n), a})
		}
	default:
		return nil, fmt.Errorf("agents: give an object by name, or a list")
	}
	for _, a := range named {
		id := cmp.Or(a.ID, a.AgentID, a.Name)
		slug := slugOf(id)
		if id == "" || slug == "" {
			return nil, fmt.Errorf("%s.id: an agent needs an ID or a name", a.path)
		}
		if w.slugs[id] != "" || slices.ContainsFunc(w.list, func(o Agent) bool { return o.Slug == slug }) {
			return nil, fmt.Errorf("%s.id: %q is there twice", a.path, id)
		}
		agent, err := c.agent(a.jsonAgent, id, slug)
		if err != nil {
			return nil, fmt.Errorf("%s.%s", a.path, err)
		}
		w.list = append(w.list, agent)
		w.slugs[id] = slug
		if a.Name != "" && w.slugs[a.Name] == "" {
			w.slugs[a.Name] = slug
		}
		for _, g := range a.Goals {
			w.owner[slugOf(g)] = slug
		}
	}
	for n, a := range named {
		to := cmp.Or(a.ReportsTo, a.ReportsTo2)
		if to == "" {
			continue
		}
		slug, ok := w.slugs[to]
		if !ok {
			return nil, fmt.Errorf("%s.reports_to: %q is none of the agents", a.path, to)
		}
		w.list[n].ReportsTo = &slug
	}
	return w, nil
}

// agent reads one agent. Its errors begin with the member.
func (c companyJSON) agent(a jsonAgent, id, slug string) (Agent, error) {
	out := Agent{Slug: slug, Path: "agents/" + slug + "/AGENTS.md", Name: cmp.Or(a.Name, id), Title: a.Title,
		BudgetCents: a.Budget, Instructions: a.Instructions,
		AdapterConfig: map[string]any{}, RuntimeConfig: map[string]any{}, Permissions: map[string]bool{}}
	if a.Budget < 0 {
		return out, fmt.Errorf("budget_cents: want 0 or more")
	}
	kind, member := a.Adapter, "adapter"
	if kind == "" {
		kind, member = a.Runtime, "runtime"
	}
	runtime, listed := c.Runtimes[kind]
	if listed {
		kind = cmp.Or(runtime.Adapter, kind)
		maps.Copy(out.AdapterConfig, runtime.Config)
	}
	maps.Copy(out.AdapterConfig, a.Config)
	if out.AdapterType = adapterOf(kind); !slices.Contains(entity.AdapterTypes, out.AdapterType) {
		if kind == "" {
			return out, fmt.Errorf("adapter: name one, or a runtime; there are %s", strings.Join(entity.AdapterTypes, ", "))
		}
		return out, fmt.Errorf("%s: there is no adapter %q; there are %s", member, kind,
			strings.Join(entity.AdapterTypes, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(out.AdapterConfig)) {
		if _, text := out.AdapterConfig[name].(string); text && (name == "token" || name == "apiKey" || name == "password") {
			return out, fmt.Errorf("config.%s: a package has no secrets; leave it out, and give the imported agent a "+
				"reference to a secret", name)
		}
	}
	role, err := roleIn(a.Role)
	if out.Role = role; err != nil {
		return out, err
	}
	if h := a.Heartbeat; h != nil {
		out.RuntimeConfig["heartbeat"] = map[string]any{"enabled": h.Enabled, "intervalSec": h.Interval}
	}
	return out, nil
}

// adapterOf returns the type of an adapter that is named by itself or by its npm package.
func adapterOf(name string) string {
	if slices.Contains(entity.AdapterTypes, name) {
		return name
	}
	short := name[strings.LastIndexByte(name, '/')+1:]
	for _, cut := range []string{"adapter-", "-paperclip-adapter"} {
		short = strings.TrimSuffix(strings.TrimPrefix(short, cut), cut)
	}
	return strings.ReplaceAll(short, "-", "_")
}

// roleIn reads a role: one of ours, ceo, manager or worker, or {"custom": "…"}.
func roleIn(b json.RawMessage) (string, error) {
	var role string
	var custom struct {
		Role string `json:"custom"`
	}
	if len(b) > 0 && json.Unmarshal(b, &role) != nil {
		if json.Unmarshal(b, &custom) != nil || custom.Role == "" {
			return "", fmt.Errorf(`role: want a word, or {"custom": word}`)
		}
		role = custom.Role
	}
	switch role = strings.ToLower(role); {
	case role == "":
		return "general", nil
	case role == "manager":
		return "pm", nil
	case role == "worker":
		return "engineer", nil
	case slices.Contains(entity.Roles, role):
		return role, nil
	case custom.Role != "":
		return "general", nil
	}
	return "", fmt.Errorf("role: %q is none of ceo, manager, worker, %s", role, strings.Join(entity.Roles[1:], ", "))
}

// goalStates are our words for the kernel's states.
var goalStates = map[string]string{"": "planned", "pending": "planned", "active": "active", "complete": "achieved",
	"failed":  "cancelled",
	"planned": "planned", "achieved": "achieved", "cancelled": "cancelled"}

// goals reads the goals, and makes those that agents name and the file does not describe.
func (w *crew) goals(in []jsonGoal) ([]Goal, error) {
	out, at := []Goal{}, map[string]int{}
	for n, g := range in {
		slug := slugOf(cmp.Or(g.ID, g.Description))
		if slug == "" {
			return nil, fmt.Errorf("goals[%d].id: a goal needs an ID", n)
		}
		if _, twice := at[slug]; twice {
			return nil, fmt.Errorf("goals[%d].id: %q is there twice", n, g.ID)
		}
		state, ok := goalStates[g.Status]
		if !ok {
			return nil, fmt.Errorf("goals[%d].status: %q is none of pending, active, complete, failed", n, g.Status)
		}
		title, more, _ := strings.Cut(cmp.Or(g.Description, g.ID), "\n")
		at[slug] = len(out)
		out = append(out, Goal{Slug: slug, Title: title, Description: maybe(strings.TrimSpace(more)), Level: "company",
			Status: state})
	}
	for n, g := range in {
		if g.Parent == "" {
			continue
		}
		parent := slugOf(g.Parent)
		if _, ok := at[parent]; !ok {
			return nil, fmt.Errorf("goals[%d].parent_goal: %q is none of the goals", n, g.Parent)
		}
		out[at[slugOf(cmp.Or(g.ID, g.Description))]].Parent = &parent
	}
	for _, slug := range slices.Sorted(maps.Keys(w.owner)) {
		if _, ok := at[slug]; !ok {
			at[slug] = len(out)
			out = append(out, Goal{Slug: slug, Title: slug, Level: "agent", Status: "active"})
		}
		owner := w.owner[slug]
		out[at[slug]].Owner = &owner
	}
	return out, nil
}
