// Package transfer is the routes about companies as packages: exports, imports, teams.
package transfer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/chart"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

// exportBody selects what an export holds. Without include it is a template of the
// company: its agents, and none of its work.
type exportBody struct {
	Include       *partsWanted  `json:"include,omitempty" nullable:"false"`
	Agents        []string      `json:"agents,omitempty" maxItems:"2000"` // slugs; empty selects all
	Skills        []string      `json:"skills,omitempty" maxItems:"2000"`
	Projects      []string      `json:"projects,omitempty" maxItems:"2000"`
	Issues        []string      `json:"issues,omitempty" maxItems:"5000"`        // identifiers or IDs
	ProjectIssues []string      `json:"projectIssues,omitempty" maxItems:"2000"` // projects whose issues are exported
	SelectedFiles []string      `json:"selectedFiles,omitempty" maxItems:"40000"`
	ExpandSkills  bool          `json:"expandReferencedSkills,omitempty"`
	SidebarOrder  *sidebarSlugs `json:"sidebarOrder,omitempty" nullable:"false"`
}

// partsWanted selects the parts of a package; absent members take their defaults.
type partsWanted struct {
	Company  *bool `json:"company,omitempty"`
	Agents   *bool `json:"agents,omitempty"`
	Projects *bool `json:"projects,omitempty"`
	Issues   *bool `json:"issues,omitempty"`
	Skills   *bool `json:"skills,omitempty"`
}

type sidebarSlugs struct {
	Agents   []string `json:"agents,omitempty" maxItems:"2000"`
	Projects []string `json:"projects,omitempty" maxItems:"2000"`
}

func (in *partsWanted) or(def portable.Includes) portable.Includes {
	if in == nil {
		return def
	}
	pick := func(p *bool, def bool) bool {
		if p == nil {
			return def
		}
		return *p
	}
	return portable.Includes{Company: pick(in.Company, def.Company), Agents: pick(in.Agents, def.Agents),
		Projects: pick(in.Projects, def.Projects),
		Issues:   pick(in.Issues, def.Issues), Skills: pick(in.Skills, def.Skills)}
}

// Exported is the answer to an export.
type Exported struct {
	RootPath  string            `json:"rootPath"`
	Manifest  portable.Manifest `json:"manifest"`
	Files     portable.Files    `json:"files"`
	Warnings  []string          `json:"warnings"`
	Extension string            `json:"paperclipExtensionPath"`
}

// An exportPreview also lists the files.
type exportPreview struct {
	Exported
	Inventory []inventoryFile `json:"fileInventory"`
	Counts    exportCounts    `json:"counts"`
}

type inventoryFile struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
}

type exportCounts struct {
	Files    int `json:"files"`
	Agents   int `json:"agents"`
	Skills   int `json:"skills"`
	Projects int `json:"projects"`
	Issues   int `json:"issues"`
}

func ExportRoutes() []api.Route {
	rows := []api.Route{{Method: "POST", Path: "/api/companies/{companyId}/exports/preview", Tag: "portability",
		Summary: "Show what an export of a company would hold",
		Who:     api.Board, In: exportBody{}, Out: exportPreview{}, Timeout: api.PackageTimeout, NoTool: true,
		Handle: previewExport}}
	for _, path := range []string{"/api/companies/{companyId}/export", "/api/companies/{companyId}/exports"} {
		rows = append(rows, api.Route{Method: "POST", Path: path, Tag: "portability",
			Summary: "Export a company as a portable package", Who: api.Board,
			In: exportBody{}, Out: Exported{}, Timeout: api.PackageTimeout, NoTool: true,
			Handle: func(rc *api.Request) (api.Response, error) {
				out, err := export(rc)
				return api.OK(out), err
			}})
	}
	return rows
}

func previewExport(rc *api.Request) (api.Response, error) {
	out, err := export(rc)
	if err != nil {
		return api.Response{}, err
	}
	p := exportPreview{Exported: out, Inventory: []inventoryFile{}, Counts: exportCounts{Files: len(out.Files),
		Agents: len(out.Manifest.Agents),
		Skills: len(out.Manifest.Skills), Projects: len(out.Manifest.Projects), Issues: len(out.Manifest.Issues)}}
	for _, name := range out.Files.Paths() {
		p.Inventory = append(p.Inventory, inventoryFile{name, portable.KindOf(name)})
	}
	return api.OK(p), nil
}

// An exporter builds a manifest from the rows of one company in one view of the state.
type exporter struct {
	tx       *ledger.Tx
	of       entity.Company
	body     exportBody
	include  portable.Includes
	m        portable.Manifest
	warnings []string
	agents   map[string]string // slug by ID
	projects map[string]string
	goals    map[string]string
	spaces   map[string]string // keys of the exported workspaces
	labels   map[string]entity.Label
	issues   map[string]string
	lost     map[string][]string // by workspace that is not exported: the issues that name it
	assets   []file.Asset        // whose content is exported
	logo     *file.Asset
	paths    map[string]string // of folders by ID
	at       core.Time
}

func export(rc *api.Request) (out Exported, err error) {
	body, err := api.Body[exportBody](rc)
	if err != nil {
		return out, err
	}
	e := &exporter{body: body, at: core.TimeOf(rc.Now()), agents: map[string]string{}, projects: map[string]string{},
		goals: map[string]string{}, spaces: map[string]string{},
		labels: map[string]entity.Label{}, issues: map[string]string{}, lost: map[string][]string{},
		paths: map[string]string{}, warnings: []string{}}
	e.include = body.Include.or(portable.Includes{Company: true, Agents: true})
	err = rc.View(func(tx *ledger.Tx) (err error) {
		row, ok := entity.CompanyOf(tx, api.CompanyID(rc))
		if !ok {
			return api.NotFound("Company not found")
		}
		e.tx, e.of = tx, row
		for _, gather := range []func() error{e.company, e.structure, e.allGoals, e.allAgents, e.allProjects, e.allIssues,
			e.allSkills, e.allRoutines, e.strategies, e.looseAssets} {
			if err := gather(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	slices.SortStableFunc(e.m.EnvInputs, func(a, b portable.EnvInput) int {
		return cmp.Or(later(a.Agent == nil, b.Agent == nil), later(a.Project == nil, b.Project == nil),
			cmp.Compare(Deref(a.Agent), Deref(b.Agent)),
			cmp.Compare(Deref(a.Project), Deref(b.Project)), cmp.Compare(Deref(a.Routine), Deref(b.Routine)))
	})
	blobs, err := e.blobs(rc)
	if err != nil {
		return out, err
	}
	e.m.SchemaVersion, e.m.GeneratedAt = portable.SchemaVersion, e.at.String()
	e.m.Source = &portable.Source{CompanyID: e.of.ID, CompanyName: e.of.Name}
	e.paintLogo(rc)
	files := portable.Write(e.m, blobs)
	if e.m.Company != nil && len(e.m.Agents) > 0 {
		chart, err := chart.PaintOrg(e.of.Name, chart.OrgOfPackage(e.m))
		if err != nil {
			return out, err
		}
		files[portable.ChartFile] = portable.File{Data: chart, Binary: true, ContentType: "image/png"}
	}
	files = selected(files, body.SelectedFiles)
	e.m.Includes = portable.Includes{Company: e.m.Company != nil, Agents: len(e.m.Agents) > 0,
		Projects: len(e.m.Projects) > 0,
		Issues:   len(e.m.Issues) > 0, Skills: len(e.m.Skills) > 0}
	return Exported{portable.RootPath(e.of.Name), e.m, files, e.warnings, ".paperclip.yaml"}, nil
}

// selected returns the named files and the sidecar; without names, all files.
func selected(files portable.Files, names []string) portable.Files {
	if len(names) == 0 {
		return files
	}
	want, kept := make(map[string]bool, len(names)), portable.Files{}
	for _, name := range names {
		want[name] = true
	}
	for name, f := range files {
		if want[name] || portable.KindOf(name) == "extension" {
			kept[name] = f
		}
	}
	return kept
}

func (e *exporter) warn(format string, args ...any) {
	if len(e.warnings) < api.MaxPackageWarnings {
		e.warnings = append(e.warnings, fmt.Sprintf(format, args...))
	}
}

// slug returns a slug that no other row of its kind has.
func slug(taken map[string]string, id, name, fallback string) string {
	base := cmp.Or(core.URLKey(name), fallback)
	out := base
	for n := 2; slices.Contains(slices.Collect(maps.Values(taken)), out); n++ {
		out = base + "-" + strconv.Itoa(n)
	}
	taken[id] = out
	return out
}

func known(m map[string]string, id string) *string {
	if s, ok := m[id]; ok && id != "" {
		return &s
	}
	return nil
}

func wanted(list []string, names ...string) bool {
	if len(list) == 0 {
		return true
	}
	for _, n := range names {
		if slices.Contains(list, n) {
			return true
		}
	}
	return false
}

func objectOf(raw json.RawMessage) (m map[string]any) {
	if len(raw) == 0 || json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

func (e *exporter) company() error {
	e.m.Labels, e.m.Blobs, e.m.EmbeddedAssets = []portable.Label{}, []portable.Blob{}, []portable.Asset{}
	e.m.Agents, e.m.Skills, e.m.Projects, e.m.Goals = []portable.Agent{}, []portable.Skill{}, []portable.Project{},
		[]portable.Goal{}
	e.m.Teams, e.m.Issues, e.m.EnvInputs = []portable.Team{}, []portable.Issue{}, []portable.EnvInput{}
	e.m.Company = &portable.Company{Path: "COMPANY.md", Name: e.of.Name, Description: api.Optional(e.of.Description),
		RequireHireApproval: e.of.RequireHireApproval,
		BrandColor:          api.Optional(e.of.BrandColor), NoStrategyGate: e.of.NoStrategyGate,
		AttachmentMaxBytes: e.of.AttachmentMaxBytes}
	if a, ok := file.AssetByID(e.tx, string(e.of.LogoAsset)); ok && a.Company == e.of.ID {
		e.logo = &a
	}
	for _, l := range entity.LabelsOf(e.tx, e.of.ID) {
		e.labels[l.ID] = l
		if e.include.Issues {
			e.m.Labels = append(e.m.Labels, portable.Label{Name: l.Name, Color: l.Color})
		}
	}
	return nil
}

// allGoals adds the goals, which are exported with the projects and issues.
func (e *exporter) allGoals() error {
	if !e.include.Projects && !e.include.Issues {
		return nil
	}
	all := entity.GoalsOf(e.tx, e.of.ID)
	for _, g := range all {
		slug(e.goals, g.ID, g.Title, "goal")
	}
	for _, g := range all {
		e.m.Goals = append(e.m.Goals, portable.Goal{Slug: e.goals[g.ID], Title: g.Title,
			Description: api.Optional(g.Description), Level: string(g.Level),
			Status: string(g.Status), Parent: known(e.goals, string(g.Parent))})
	}
	return nil
}

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

// labelNames returns labels by name, as packages have them.
func (e *exporter) labelNames(ids []string) []string {
	names := []string{}
	for _, id := range ids {
		if l, ok := e.labels[id]; ok {
			names = append(names, l.Name)
		}
	}
	slices.Sort(names)
	return names
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

// byMaking sorts projects by creation time, then by ID: projects of an import are
// created at one time and their IDs keep the package's order.
func byMaking(all []entity.Project) []entity.Project {
	slices.SortFunc(all, func(a, b entity.Project) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// projectSlugs returns the slug of each project by ID, as an export of all projects
// assigns them.
func projectSlugs(all []entity.Project) map[string]string {
	taken := map[string]string{}
	for _, p := range byMaking(all) {
		slug(taken, p.ID, p.Name, "project")
	}
	return taken
}

func (e *exporter) allProjects() error {
	if !e.include.Projects {
		return nil
	}
	all := byMaking(entity.ProjectsOf(e.tx, e.of.ID))
	for _, p := range all {
		s := slug(e.projects, p.ID, p.Name, "project")
		if !wanted(e.body.Projects, s, p.ID) || p.ArchivedAt != 0 && !e.include.Issues {
			delete(e.projects, p.ID)
			continue
		}
		if e.m.Sidebar != nil && e.body.SidebarOrder == nil {
			e.m.Sidebar.Projects = append(e.m.Sidebar.Projects, s)
		}
		out := portable.Project{Slug: s, Name: p.Name, Path: "projects/" + s + "/PROJECT.md",
			Description: api.Optional(p.Description), Owner: known(e.agents, string(p.Lead)),
			Lead: known(e.agents, string(p.Lead)), TargetDate: api.Optional(p.TargetDate), Color: api.Optional(p.Color),
			Icon: api.Optional(p.Icon), Status: string(p.Status),
			Archived: p.ArchivedAt != 0, Workspaces: []portable.Workspace{}, Goals: []string{}}
		for _, id := range p.Goals {
			if g := known(e.goals, id); g != nil {
				out.Goals = append(out.Goals, *g)
			}
		}
		out.Budgets = e.budgets(entity.ScopeProject, p.ID)
		e.inputs(any(objectOf(p.Env)), "project", s, func(in *portable.EnvInput) { in.Project = &s })
		taken := map[string]string{}
		for _, w := range place.WorkspacesOf(e.tx, e.of.ID, p.ID) {
			if w.RepoURL == "" {
				e.warn("Project %s workspace %s was omitted from export because it does not have a portable repoUrl.", s, w.Name)
				continue
			}
			key := slug(taken, w.ID, w.Name, "workspace")
			e.spaces[w.ID] = key
			url := conceal.RedactText(withoutUser(string(w.RepoURL)))
			out.Workspaces = append(out.Workspaces, portable.Workspace{Key: key, Name: w.Name, SourceType: w.SourceType,
				RepoURL: &url, RepoRef: api.Optional(w.RepoRef),
				DefaultRef: api.Optional(w.DefaultRef), Visibility: api.Optional(w.Visibility),
				SetupCommand:   api.Optional(redactedText(w.SetupCommand)),
				CleanupCommand: api.Optional(redactedText(w.CleanupCommand)), Primary: w.Primary})
		}
		out.WorkspacePolicy = e.placing("The workspace policy of project "+s, p.WorkspacePolicy)
		slices.SortFunc(out.Workspaces, func(a, b portable.Workspace) int { return cmp.Compare(a.Key, b.Key) })
		e.m.Projects = append(e.m.Projects, out)
	}
	slices.SortFunc(e.m.Projects, func(a, b portable.Project) int { return cmp.Compare(a.Slug, b.Slug) })
	if e.m.Sidebar != nil && e.body.SidebarOrder == nil {
		slices.Sort(e.m.Sidebar.Projects) // an import creates all projects at one time
	}
	return nil
}

// redactedText returns a text without the credentials in it.
func redactedText(s core.NullText) core.NullText {
	return core.NullText(conceal.RedactText(string(s)))
}

// withoutUser removes the user and password from a URL.
func withoutUser(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	host, path, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(host, '@'); at >= 0 && strings.ContainsRune(host[:at], ':') || at >= 0 &&
		scheme != "ssh" {
		host = host[at+1:]
	}
	return strings.TrimSuffix(scheme+"://"+host+"/"+path, "/")
}
