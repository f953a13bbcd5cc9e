package transfer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/company/transfer"
	"github.com/selvage-mesh/selvage/ledger"
)

// importBody is a package, the parts of it to import, and the target.
type importBody struct {
	Source struct {
		Type     string          `json:"type" enum:"inline,github"`
		RootPath api.Opt[string] `json:"rootPath" maxLength:"500"`
		Files    json.RawMessage `json:"files,omitempty" maxBytes:"67108864"` // by path: text, or {encoding: "base64", data, contentType}
		Expected *int            `json:"expectedFileCount,omitempty"`
		URL      string          `json:"url,omitempty" maxLength:"2000"`
	} `json:"source"`
	importChoice
}

// importChoice selects the parts of a package and the target.
type importChoice struct {
	importWhat
	Target struct {
		Mode           string           `json:"mode" enum:"new_company,existing_company"`
		NewCompanyName api.Opt[string]  `json:"newCompanyName" maxLength:"500"`
		CompanyID      ledger.CompanyID `json:"companyId,omitempty" format:"uuid"`
	} `json:"target"`
}

// importWhat selects the parts of a package.
type importWhat struct {
	Include       *partsWanted      `json:"include,omitempty" nullable:"false"`
	Agents        json.RawMessage   `json:"agents,omitempty" types:"array,string"` // "all" or slugs
	Collision     string            `json:"collisionStrategy,omitempty" enum:"rename,skip,replace"`
	NameOverrides map[string]string `json:"nameOverrides,omitempty"`
	SelectedFiles []string          `json:"selectedFiles,omitempty" maxItems:"40000"`
	// Adapters replaces, by slug, the adapters that the package names for agents.
	Adapters map[string]adapterOverride `json:"adapterOverrides,omitempty"`
	// Secrets are values of variables that the package declares: by name,
	// agent:<slug>:<name> or project:<slug>:<name>. They are sealed before they are
	// submitted.
	Secrets map[string]string `json:"secretValues,omitempty"`
	// Pause has no effect: automations are always imported paused.
	Pause bool `json:"pauseAutomations,omitempty"`
}

// An adapterOverride replaces the adapter that the package names for an agent.
type adapterOverride struct {
	Type   string                   `json:"adapterType" minLength:"1" maxLength:"100"`
	Config api.Opt[json.RawMessage] `json:"adapterConfig"`
}

// An agentPlan says what the import does with one agent; the other plans are alike.
type agentPlan struct {
	Slug     string  `json:"slug"`
	Action   string  `json:"action"` // create, update, skip
	Name     string  `json:"plannedName"`
	Existing *string `json:"existingAgentId"`
	Reason   *string `json:"reason"`
}

type projectPlan struct {
	Slug     string  `json:"slug"`
	Action   string  `json:"action"`
	Name     string  `json:"plannedName"`
	Existing *string `json:"existingProjectId"`
	Reason   *string `json:"reason"`
}

type issuePlan struct {
	Slug   string  `json:"slug"`
	Action string  `json:"action"`
	Title  string  `json:"plannedTitle"`
	Reason *string `json:"reason"`
}

type importPlan struct {
	Company  string        `json:"companyAction"` // create, update, none
	Agents   []agentPlan   `json:"agentPlans"`
	Projects []projectPlan `json:"projectPlans"`
	Issues   []issuePlan   `json:"issuePlans"`
}

// An ImportPreview says what an import would do.
type ImportPreview struct {
	Include       portable.Includes   `json:"include"`
	CompanyID     *ledger.CompanyID   `json:"targetCompanyId"`
	CompanyName   *string             `json:"targetCompanyName"`
	Collision     string              `json:"collisionStrategy"`
	SelectedSlugs []string            `json:"selectedAgentSlugs"`
	Plan          importPlan          `json:"plan"`
	Manifest      portable.Manifest   `json:"manifest"`
	Files         portable.Files      `json:"files"`
	EnvInputs     []portable.EnvInput `json:"envInputs"`
	ToFillIn      []toFillIn          `json:"toFillIn"`
	Warnings      []string            `json:"warnings"`
	Errors        []string            `json:"errors"`
}

// Imported says what an import did.
type Imported struct {
	Company   importedCompany     `json:"company"`
	Agents    []importedRow       `json:"agents"`
	Skills    []importedRow       `json:"skills"`
	Projects  []importedRow       `json:"projects"`
	Routines  []importedRoutine   `json:"routines"`
	EnvInputs []portable.EnvInput `json:"envInputs"`
	ToFillIn  []toFillIn          `json:"toFillIn"`
	Warnings  []string            `json:"warnings"`
}

// A toFillIn is a setting that an imported agent needs to run and that no package
// contains: the program of a process agent is specific to its machine.
type toFillIn struct {
	Agent   string  `json:"agentSlug"`
	AgentID *string `json:"agentId"` // null in a preview
	Name    string  `json:"agentName"`
	Setting string  `json:"setting"`
	Do      string  `json:"do"` // the command that sets it
}

type importedCompany struct {
	ID     ledger.CompanyID `json:"id"`
	Name   string           `json:"name"`
	Action string           `json:"action"` // created, updated, unchanged
}

type importedRow struct {
	Slug   string  `json:"slug"`
	ID     *string `json:"id"`
	Action string  `json:"action"` // created, updated, skipped
	Name   string  `json:"name"`
	Reason *string `json:"reason"`
}

type importedRoutine struct {
	Slug   string  `json:"slug"`
	ID     *string `json:"id"`
	Action string  `json:"action"`
	Title  string  `json:"title"`
	Status string  `json:"status"`
}

func ImportRoutes() []api.Route {
	row := func(path, summary string, out any, handle func(*api.Request) (api.Response, error),
		query ...api.Param) api.Route {
		return api.Route{Method: "POST", Path: path, Tag: "portability", Summary: summary, Who: api.Board, In: importBody{},
			Out: out, Also: []int{202}, MaxBody: api.MaxPackage, Timeout: api.PackageTimeout, NoTool: true, Query: query,
			Handle: handle}
	}
	meta := api.Param{Name: "meta",
		Doc: "what to do with a package that is the body itself, a .zip: the other members of a JSON body, as JSON"}
	async := api.Param{Name: "async", Doc: "1: the answer (202) names a job that goes on"}
	return []api.Route{
		row("/api/companies/import/preview", "Show what an import of a package would do", ImportPreview{},
			previewImport, meta),
		row("/api/companies/import", "Import a package, all of it or nothing", api.Either{Imported{}, JobAccepted{}},
			applyImport, async, meta),
		row("/api/companies/{companyId}/imports/preview", "Show what an import into a company would do", ImportPreview{},
			previewImport, meta),
		row("/api/companies/{companyId}/imports/apply", "Import a package into a company, all of it or nothing",
			api.Either{Imported{}, JobAccepted{}}, applyImport, async, meta),
	}
}

func previewImport(rc *api.Request) (api.Response, error) {
	im, err := readAndPlan(rc)
	if err != nil {
		return api.Response{}, err
	}
	p := ImportPreview{Include: im.include, Collision: im.collision, SelectedSlugs: []string{}, Plan: im.plan,
		Manifest: im.m, Files: im.files,
		EnvInputs: im.m.EnvInputs, ToFillIn: im.toFillIn(), Warnings: im.warnings, Errors: []string{}}
	for _, a := range im.m.Agents {
		p.SelectedSlugs = append(p.SelectedSlugs, a.Slug)
	}
	if !im.created {
		p.CompanyID, p.CompanyName = &im.company.ID, &im.company.Name
	}
	return api.OK(p), nil
}

// toFillIn lists the imported process agents that have no program to run.
func (im *importer) toFillIn() []toFillIn {
	out := []toFillIn{}
	for n, a := range im.m.Agents {
		p := im.plan.Agents[n]
		command, _ := a.AdapterConfig["command"].(string)
		if a.AdapterType != "process" || command != "" || a.Terminated || p.Action == "skip" {
			continue
		}
		f := toFillIn{Agent: a.Slug, Name: p.Name, Setting: "adapterConfig.command"}
		who := "AGENT"
		if id := im.agents[a.Slug]; id != "" {
			f.AgentID, who = &id, id
		}
		f.Do = fmt.Sprintf(`selvage agent update %s --config '{"command": "/path/to/program"}'`, who)
		out = append(out, f)
	}
	return out
}

func applyImport(rc *api.Request) (api.Response, error) {
	if rc.Query("async") == "1" {
		return importAsJob(rc)
	}
	im, err := readAndPlan(rc)
	if err != nil {
		return api.Response{}, err
	}
	done, err := im.carryOut(rc)
	return api.OK(done), err
}

// readAndPlan reads the package of a request and plans its import.
func readAndPlan(rc *api.Request) (*importer, error) {
	if err := takeImport(rc); err != nil {
		return nil, err
	}
	defer func() { <-rc.Server.Imports }()
	body, files, err := bodyOfImport(rc)
	if err != nil {
		return nil, err
	}
	return planImport(rc, body, files)
}

// carryOut applies all planned steps, or none.
func (im *importer) carryOut(rc *api.Request) (*Imported, error) {
	if err := im.steps(rc); err != nil {
		return nil, err
	}
	if im.err != nil {
		return nil, im.err
	}
	if err := transfer.ImportFits(max(len(im.list), 1)); err != nil {
		return nil, err
	}
	details, err := json.Marshal(map[string]any{"agents": len(im.m.Agents), "projects": len(im.m.Projects),
		"issues": len(im.m.Issues), "collisionStrategy": im.collision})
	if err != nil {
		return nil, err
	}
	p := transfer.ImportCompany{Steps: im.list, Details: details, New: im.created}
	if rc.Job != "" {
		if p, err = im.endsJob(rc.Job, p); err != nil {
			return nil, err
		}
	}
	if steps := ledger.Marshal(im.list); len(steps) > transfer.MaxImport {
		return nil, api.Unprocessable(fmt.Sprintf("The texts of an import are at most %d MiB, those of this one are %d: import fewer issues at once", transfer.MaxImport>>20, len(steps)>>20), nil)
	} else if len(steps)+len(p.Result) > company.MaxPart {
		of := im.company.ID
		if im.created {
			of = ""
		}
		rc.Pace.Set("bringing the steps to all nodes", 0)
		if p.Parts, err = api.StageParts(rc, of, steps); err != nil {
			return nil, err
		}
		p.Steps, p.Sum = nil, company.PartName(steps)
	}
	rc.Pace.Set("carrying out", 0)
	if _, err := rc.Submit(transfer.KindCompanyImport, im.company.ID, p); err != nil {
		return nil, err
	}
	return &im.done, nil
}

// endsJob makes the import command end its job. A result over the limit is left out; the
// summary remains.
func (im *importer) endsJob(id string, p transfer.ImportCompany) (_ transfer.ImportCompany, err error) {
	p.Job = id
	if p.Summary, err = json.Marshal(im.done.summary()); err != nil {
		return p, err
	}
	if p.Result, err = json.Marshal(&im.done); err != nil {
		return p, err
	}
	if len(p.Result) > transfer.MaxImportResult {
		p.Result = nil
	}
	return p, nil
}

// An importer turns a package into commands for one company.
type importer struct {
	seal func(payload any) (any, error) // seals the secrets of a step
	err  error                          // first error of sealing a step

	body      importBody
	newID     func() string
	files     portable.Files
	rooted    portable.Files // without the common root folder
	include   portable.Includes
	collision string
	m         portable.Manifest
	warnings  []string
	plan      importPlan
	company   entity.Company // the target, or the known fields of a new one
	created   bool

	agents   map[string]string // ID by slug, of the agents after the import
	past     map[string]string // ID by slug, of terminated agents
	projects map[string]string
	goals    map[string]string
	labels   map[string]string // ID by name
	issues   map[string]string
	spaces   map[string]string // workspace ID by project slug and key
	folders  map[string]string // ID by kind and path
	skills   map[string]string // ID by slug, of those that the import creates
	// skillInputs are the IDs of their test inputs, by slug and name.
	skillInputs map[string]string
	managers    map[string]*string
	early       []portable.Issue // created before some of their blockers
	finished    map[string]bool  // issues with status done, by slug
	archived    []string         // projects to archive at the end
	at          core.Time        // time of the import
	renamed     []string         // pairs of old and new paths of files that texts name

	list []transfer.ImportStep
	done Imported
}

// planImport reads the package and decides, against the current rows, what the import
// would do with each part.
func planImport(rc *api.Request, body importBody, files portable.Files) (*importer, error) {
	if id := api.CompanyID(rc); id != "" {
		body.Target.Mode, body.Target.CompanyID = "existing_company", id
	}
	im := &importer{body: body, files: files, newID: rc.Ids(), collision: cmp.Or(body.Collision, "rename"),
		warnings: []string{}, agents: map[string]string{}, past: map[string]string{}, projects: map[string]string{},
		goals: map[string]string{}, labels: map[string]string{}, issues: map[string]string{}, finished: map[string]bool{},
		spaces: map[string]string{}, folders: map[string]string{}, skills: map[string]string{},
		skillInputs: map[string]string{}, managers: map[string]*string{},
		created: body.Target.Mode == "new_company"}
	if err := im.load(rc); err != nil {
		return nil, err
	}
	files = im.files
	if n := body.Source.Expected; n != nil && *n != len(files) {
		return nil, api.Unprocessable(fmt.Sprintf("The package has %d files, %d were announced", len(files), *n), nil)
	}
	files = selected(files, body.SelectedFiles)
	m, warnings, err := portable.Read(files)
	if errors.Is(err, portable.ErrNoCompany) {
		return nil, api.Unprocessable("Company package is missing COMPANY.md", nil)
	} else if errors.Is(err, portable.ErrPackage) {
		return nil, api.Unprocessable(strings.ToUpper(err.Error()[:1])+err.Error()[1:], nil)
	} else if err != nil {
		return nil, err
	}
	im.m, im.warnings = m, append(im.warnings, warnings...)
	if im.rooted, err = im.files.Rooted(); err != nil {
		return nil, err
	}
	im.at = core.TimeOf(rc.Now())
	im.m.GeneratedAt = im.at.String()
	im.include = body.Include.or(m.Includes)
	if err := im.choose(); err != nil {
		return nil, err
	}
	if err := im.checkTexts(); err != nil {
		return nil, err
	}
	return im, rc.View(im.against)
}

// takeImport acquires one of the node's slots for reading a package. A job waits for a
// slot.
func takeImport(rc *api.Request) error {
	if rc.Waits {
		select {
		case rc.Server.Imports <- struct{}{}:
			return nil
		case <-rc.Context().Done():
			return rc.Context().Err()
		}
	}
	select {
	case rc.Server.Imports <- struct{}{}:
		return nil
	default:
		return api.Unavailable("Too many imports at once; try again")
	}
}

// load reads the files from the body, or from GitHub.
func (im *importer) load(rc *api.Request) error {
	if im.body.Source.Type == "github" {
		return im.fetch(rc)
	}
	if len(im.body.Source.Files) == 0 { // no files, or they came as a zip file
		return nil
	}
	err := json.Unmarshal(im.body.Source.Files, &im.files)
	im.body.Source.Files = nil
	if err != nil {
		return api.Invalid("source.files: a file is its text, or has encoding, data and contentType: %s",
			api.Cut(err.Error(), 200))
	}
	return nil
}

func (im *importer) warn(format string, args ...any) {
	if len(im.warnings) < api.MaxPackageWarnings {
		im.warnings = append(im.warnings, fmt.Sprintf(format, args...))
	}
}

// checkTexts applies the length limits of the API's other routes to the package.
func (im *importer) checkTexts() error {
	long := func(what, slug, field string, n, limit int) error {
		if n > limit {
			return api.Unprocessable(fmt.Sprintf("%s %s: its %s is longer than %d bytes", what, slug, field, limit), nil)
		}
		return nil
	}
	for _, i := range im.m.Issues {
		if err := cmp.Or(long("Task", i.Slug, "name", len(i.Title), entity.MaxTitle),
			long("Task", i.Slug, "text", len(Deref(i.Description)), entity.MaxText),
			long("Task", i.Slug, "billing code", len(Deref(i.BillingCode)), 200)); err != nil {
			return err
		}
		for _, d := range i.Documents {
			if err := long("Task", i.Slug, "document "+api.Cut(d.Key, 40), len(d.Body), paper.MaxDocument); err != nil {
				return err
			}
		}
		for n, c := range i.Comments {
			if err := long("Task", i.Slug, "comment "+strconv.Itoa(n+1), len(c.Body), entity.MaxText); err != nil {
				return err
			}
		}
	}
	for _, l := range im.m.Labels {
		if err := long("Label", api.Cut(l.Name, 20), "name", len(l.Name), 48); err != nil {
			return err
		}
	}
	return nil
}

// choose drops the parts that were not selected.
func (im *importer) choose() error {
	var slugs []string
	if len(im.body.Agents) > 0 && string(im.body.Agents) != `"all"` && string(im.body.Agents) != "null" {
		if err := json.Unmarshal(im.body.Agents, &slugs); err != nil {
			return api.Invalid(`Invalid agents: expected "all" or a list of slugs`)
		}
	}
	if !im.include.Agents {
		im.m.Agents = []portable.Agent{}
	} else if len(slugs) > 0 {
		im.m.Agents = slices.DeleteFunc(im.m.Agents, func(a portable.Agent) bool { return !slices.Contains(slugs, a.Slug) })
	}
	if !im.include.Projects {
		im.m.Projects = []portable.Project{}
	}
	if !im.include.Issues {
		im.m.Issues, im.m.Labels = []portable.Issue{}, []portable.Label{}
	}
	if !im.include.Skills {
		im.m.Skills = []portable.Skill{}
	}
	if !im.include.Projects && !im.include.Issues {
		im.m.Goals = []portable.Goal{}
	}
	for n := range im.m.Agents {
		a := &im.m.Agents[n]
		o, ok := im.body.Adapters[a.Slug]
		if !ok {
			continue
		}
		a.AdapterType = o.Type
		if raw := o.Config.Or(nil); len(raw) > 0 {
			a.AdapterConfig = nil
			if err := json.Unmarshal(raw, &a.AdapterConfig); err != nil {
				return api.Invalid("adapterOverrides.%s.adapterConfig: expected an object", api.Cut(a.Slug, 60))
			}
		}
	}
	for _, slug := range slices.Sorted(maps.Keys(im.body.Adapters)) {
		if !slices.ContainsFunc(im.m.Agents, func(a portable.Agent) bool { return a.Slug == slug }) {
			im.warn("adapterOverrides names agent %s, who is not imported.", api.Cut(slug, 60))
		}
	}
	im.m.Includes = im.include
	there := func(slug *string) bool {
		return slug == nil || slices.ContainsFunc(im.m.Agents, func(a portable.Agent) bool { return a.Slug == *slug }) ||
			slices.ContainsFunc(im.m.Projects, func(p portable.Project) bool { return p.Slug == *slug })
	}
	im.m.EnvInputs = slices.DeleteFunc(im.m.EnvInputs, func(e portable.EnvInput) bool {
		return !there(e.Agent) || !there(e.Project) || e.Routine != nil && !slices.ContainsFunc(im.m.Issues,
			func(i portable.Issue) bool { return i.Recurring && i.Slug == *e.Routine })
	})
	return nil
}

// against compares the package with the rows of the target.
func (im *importer) against(tx *ledger.Tx) error {
	im.plan = importPlan{Company: "none", Agents: []agentPlan{}, Projects: []projectPlan{}, Issues: []issuePlan{}}
	var agents, gone []entity.Agent
	var projects []entity.Project
	if im.created {
		name := im.m.Company.Name
		if n := im.body.Target.NewCompanyName.Value; strings.TrimSpace(n) != "" {
			name = n
		}
		im.company, im.plan.Company = entity.Company{ID: ledger.CompanyID(im.newID()), Name: name}, "create"
	} else {
		row, ok := entity.CompanyOf(tx, ledger.CompanyID(strings.ToLower(string(im.body.Target.CompanyID))))
		if !ok {
			return api.NotFound("Company not found")
		}
		im.company = row
		agents, projects = entity.AgentsOf(tx, row.ID, true), entity.ProjectsOf(tx, row.ID)
		gone = slices.DeleteFunc(slices.Clone(agents),
			func(a entity.Agent) bool { return a.Status != entity.AgentTerminated })
		agents = slices.DeleteFunc(agents, func(a entity.Agent) bool { return a.Status == entity.AgentTerminated })
		for _, l := range entity.LabelsOf(tx, row.ID) {
			im.labels[l.Name] = l.ID
		}
		for _, g := range entity.GoalsOf(tx, row.ID) {
			im.goals["\x00"+g.Title] = g.ID // goals with the same title are the same goal
		}
		if im.include.Company {
			im.plan.Company = "update"
		}
	}
	names := map[string]bool{}
	for _, a := range agents {
		names[nameKey(a.Name)] = true
	}
	for _, a := range im.m.Agents {
		p := agentPlan{Slug: a.Slug, Action: "create", Name: cmp.Or(im.body.NameOverrides[a.Slug], a.Name)}
		if a.Terminated { // reserves no name, and matches only terminated agents
			at := slices.IndexFunc(gone, func(b entity.Agent) bool { return nameKey(b.Name) == nameKey(p.Name) })
			if at >= 0 && im.collision != "rename" {
				why := "Existing slug matched; who has left stays as it was."
				p.Action, p.Reason, p.Existing = "skip", &why, &gone[at].ID
			}
			im.plan.Agents = append(im.plan.Agents, p)
			continue
		}
		key := core.URLKey(p.Name)
		at := slices.IndexFunc(agents, func(b entity.Agent) bool {
			return nameKey(b.Name) == nameKey(p.Name) || b.URLKey() == a.Slug && (key != "" || b.ID == a.Slug)
		})
		if at >= 0 {
			p.Action, p.Reason = im.collide("slug")
			if p.Action == "create" {
				p.Name = freeName(names, p.Name)
			} else {
				p.Existing = &agents[at].ID
			}
		} else if key != "" && names[key] { // several agents may have a name without a key
			p.Name = freeName(names, p.Name)
		}
		names[nameKey(p.Name)] = true
		im.plan.Agents = append(im.plan.Agents, p)
	}
	names = map[string]bool{}
	there := projectSlugs(projects)
	for _, p := range projects {
		names[nameKey(p.Name)] = true
	}
	for _, p := range im.m.Projects {
		plan := projectPlan{Slug: p.Slug, Action: "create", Name: p.Name}
		if at := slices.IndexFunc(projects, func(b entity.Project) bool {
			if core.URLKey(p.Name) == "" {
				return b.Name == p.Name
			}
			return there[b.ID] == p.Slug
		}); at >= 0 {
			plan.Action, plan.Reason = im.collide("slug")
			if plan.Action == "create" {
				plan.Name = freeName(names, p.Name)
			} else {
				plan.Existing = &projects[at].ID
				taken := map[string]string{}
				for _, w := range place.WorkspacesOf(tx, im.company.ID, projects[at].ID) { // named as an export names them
					if w.RepoURL != "" {
						im.spaces[p.Slug+"/"+slug(taken, w.ID, w.Name, "workspace")] = w.ID
					}
				}
			}
		}
		names[nameKey(plan.Name)] = true
		im.plan.Projects = append(im.plan.Projects, plan)
	}
	for _, i := range im.m.Issues {
		plan := issuePlan{Slug: i.Slug, Action: "create", Title: i.Title}
		if i.Recurring {
			why := "Recurring task will be imported as a routine."
			plan.Reason = &why
		}
		im.plan.Issues = append(im.plan.Issues, plan)
	}
	return nil
}

// collide returns what the collision strategy does with a row whose slug exists.
func (im *importer) collide(what string) (action string, reason *string) {
	why := "Existing " + what + " matched; " + im.collision + " strategy."
	switch im.collision {
	case "skip":
		return "skip", &why
	case "replace":
		return "update", &why
	}
	return "create", &why
}

// nameKey is the key by which names are compared: the URL key, or the name itself when
// no letter or digit of it can be in one, as in other scripts.
func nameKey(name string) string { return cmp.Or(core.URLKey(name), name) }

func freeName(taken map[string]bool, name string) string {
	out := name
	for n := 2; taken[nameKey(out)]; n++ {
		out = name + " " + strconv.Itoa(n)
	}
	return out
}

// fetch reads the package from GitHub.
func (im *importer) fetch(rc *api.Request) error {
	r, err := api.ParseRepository(im.body.Source.URL)
	if err != nil {
		return err
	}
	if !api.PinnedRef.MatchString(r.Ref) {
		im.warn("The package comes from %s of %s/%s, which may change; name a commit to pin it.", r.Ref, r.Owner, r.Name)
	}
	im.files, err = rc.FetchRepository(r)
	return err
}
