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
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/company/portable"
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
	blobs := e.blobs(rc)
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
