package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/ledger"
)

// importBody is a package, what to take of it, and where to put it.
type importBody struct {
	Source struct {
		Type     string          `json:"type" enum:"inline,github"`
		RootPath Opt[string]     `json:"rootPath" maxLength:"500"`
		Files    json.RawMessage `json:"files,omitempty" maxBytes:"67108864"` // by path: text, or {encoding: "base64", data, contentType}
		Expected *int            `json:"expectedFileCount,omitempty"`
		URL      string          `json:"url,omitempty" maxLength:"2000"`
	} `json:"source"`
	importChoice
}

// importChoice says what to take of a package, and where to put it.
type importChoice struct {
	importWhat
	Target struct {
		Mode           string      `json:"mode" enum:"new_company,existing_company"`
		NewCompanyName Opt[string] `json:"newCompanyName" maxLength:"500"`
		CompanyID      string      `json:"companyId,omitempty" format:"uuid"`
	} `json:"target"`
}

// importWhat says what to take of a package.
type importWhat struct {
	Include       *partsWanted      `json:"include,omitempty" nullable:"false"`
	Agents        json.RawMessage   `json:"agents,omitempty" types:"array,string"` // "all" or slugs
	Collision     string            `json:"collisionStrategy,omitempty" enum:"rename,skip,replace"`
	NameOverrides map[string]string `json:"nameOverrides,omitempty"`
	SelectedFiles []string          `json:"selectedFiles,omitempty" maxItems:"5000"`
}

// An agentPlan says what becomes of one agent of a package, and so on.
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

// An importPreview is what an import would do.
type importPreview struct {
	Include       portable.Includes   `json:"include"`
	CompanyID     *string             `json:"targetCompanyId"`
	CompanyName   *string             `json:"targetCompanyName"`
	Collision     string              `json:"collisionStrategy"`
	SelectedSlugs []string            `json:"selectedAgentSlugs"`
	Plan          importPlan          `json:"plan"`
	Manifest      portable.Manifest   `json:"manifest"`
	Files         portable.Files      `json:"files"`
	EnvInputs     []portable.EnvInput `json:"envInputs"`
	Warnings      []string            `json:"warnings"`
	Errors        []string            `json:"errors"`
}

// An imported is what an import did.
type imported struct {
	Company   importedCompany     `json:"company"`
	Agents    []importedRow       `json:"agents"`
	Skills    []importedRow       `json:"skills"`
	Projects  []importedRow       `json:"projects"`
	Routines  []importedRoutine   `json:"routines"`
	EnvInputs []portable.EnvInput `json:"envInputs"`
	Warnings  []string            `json:"warnings"`
}

type importedCompany struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Action string `json:"action"` // created, updated, unchanged
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

func (s *Server) importRoutes() []Route {
	row := func(path, summary string, handle func(*Request) (Response, error)) Route {
		return Route{Method: "POST", Path: path, Tag: "portability", Summary: summary, Who: Board, In: importBody{}, MaxBody: maxPackage, NoTool: true, Handle: handle}
	}
	return []Route{
		row("/api/companies/import/preview", "Show what an import of a package would do", previewImport),
		row("/api/companies/import", "Import a package, all of it or nothing", applyImport),
		row("/api/companies/{companyId}/imports/preview", "Show what an import into a company would do", previewImport),
		row("/api/companies/{companyId}/imports/apply", "Import a package into a company, all of it or nothing", applyImport),
	}
}

func previewImport(rc *Request) (Response, error) {
	im, err := planImport(rc)
	if err != nil {
		return Response{}, err
	}
	p := importPreview{Include: im.include, Collision: im.collision, SelectedSlugs: []string{}, Plan: im.plan, Manifest: im.m, Files: im.files,
		EnvInputs: im.m.EnvInputs, Warnings: im.warnings, Errors: []string{}}
	for _, a := range im.m.Agents {
		p.SelectedSlugs = append(p.SelectedSlugs, a.Slug)
	}
	if !im.created {
		p.CompanyID, p.CompanyName = &im.company.ID, &im.company.Name
	}
	return OK(p), nil
}

func applyImport(rc *Request) (Response, error) {
	began := rc.Now()
	done, err := importAll(rc)
	switch {
	case rc.Query("async") == "1":
		return rc.asJob(began, done, err)
	case err != nil:
		return Response{}, err
	}
	return OK(done), nil
}

// importAll plans an import and carries it out, all of it or nothing.
func importAll(rc *Request) (*imported, error) {
	im, err := planImport(rc)
	if err != nil {
		return nil, err
	}
	if err := im.steps(rc); err != nil {
		return nil, err
	}
	if im.err != nil {
		return nil, im.err
	}
	details, err := json.Marshal(map[string]any{"agents": len(im.m.Agents), "projects": len(im.m.Projects), "issues": len(im.m.Issues), "collisionStrategy": im.collision})
	if err != nil {
		return nil, err
	}
	p := company.ImportCompany{Steps: im.list, Details: details, New: im.created}
	if steps := ledger.Marshal(im.list); len(steps) > company.MaxPart {
		of := im.company.ID
		if im.created {
			of = ""
		}
		if p.Parts, err = stageParts(rc, of, steps); err != nil {
			return nil, err
		}
		p.Steps, p.Sum = nil, company.PartName(steps)
	}
	if _, err := rc.Submit("company.import", im.company.ID, p); err != nil {
		return nil, err
	}
	return &im.done, nil
}

// An importer turns a package into commands for one company.
type importer struct {
	seal func(payload any) (any, error) // seals what is secret in a step
	err  error                          // of the first step that could not be sealed

	body      importBody
	newID     func() string
	files     portable.Files
	include   portable.Includes
	collision string
	m         portable.Manifest
	warnings  []string
	plan      importPlan
	company   company.Company // the target, or as much as is known of a new one
	created   bool

	agents   map[string]string // ID by slug, of those that are there afterwards
	projects map[string]string
	goals    map[string]string
	labels   map[string]string // ID by name
	issues   map[string]string
	spaces   map[string]string // workspace ID by project slug and key
	managers map[string]*string

	list []company.ImportStep
	done imported
}

// planImport reads the package and decides, against the rows as they are, what
// would become of each part.
func planImport(rc *Request) (*importer, error) {
	select {
	case rc.server.imports <- struct{}{}:
		defer func() { <-rc.server.imports }()
	default:
		return nil, Unavailable("Too many imports at once; try again")
	}
	body, files, err := rc.importBody()
	if err != nil {
		return nil, err
	}
	if id := companyID(rc); id != "" {
		body.Target.Mode, body.Target.CompanyID = "existing_company", id
	}
	im := &importer{body: body, files: files, newID: rc.ids(), collision: cmp.Or(body.Collision, "rename"), warnings: []string{}, agents: map[string]string{}, projects: map[string]string{},
		goals: map[string]string{}, labels: map[string]string{}, issues: map[string]string{}, spaces: map[string]string{}, managers: map[string]*string{},
		created: body.Target.Mode == "new_company"}
	if err := im.load(rc); err != nil {
		return nil, err
	}
	files = im.files
	if n := body.Source.Expected; n != nil && *n != len(files) {
		return nil, Unprocessable(fmt.Sprintf("The package has %d files, %d were announced", len(files), *n), nil)
	}
	if len(body.SelectedFiles) > 0 {
		kept := portable.Files{}
		for name, f := range files {
			if slices.Contains(body.SelectedFiles, name) || portable.KindOf(name) == "extension" {
				kept[name] = f
			}
		}
		files = kept
	}
	m, warnings, err := portable.Read(files)
	if errors.Is(err, portable.ErrNoCompany) {
		return nil, Unprocessable("Company package is missing COMPANY.md", nil)
	} else if errors.Is(err, portable.ErrPackage) {
		return nil, Unprocessable(strings.ToUpper(err.Error()[:1])+err.Error()[1:], nil)
	} else if err != nil {
		return nil, err
	}
	im.m, im.warnings = m, append(im.warnings, warnings...)
	im.m.GeneratedAt = company.TimeOf(rc.Now()).String()
	im.include = body.Include.or(m.Includes)
	if err := im.choose(); err != nil {
		return nil, err
	}
	if err := im.checkTexts(); err != nil {
		return nil, err
	}
	return im, rc.View(im.against)
}

// load takes the files from the body, or from GitHub.
func (im *importer) load(rc *Request) error {
	if im.body.Source.Type == "github" {
		return im.fetch(rc)
	}
	if len(im.body.Source.Files) == 0 { // none, or they came as a zip file
		return nil
	}
	err := json.Unmarshal(im.body.Source.Files, &im.files)
	im.body.Source.Files = nil
	if err != nil {
		return Invalid("source.files: a file is its text, or has encoding, data and contentType: %s", cut(err.Error(), 200))
	}
	return nil
}

func (im *importer) warn(format string, args ...any) {
	if len(im.warnings) < maxPackageWarnings {
		im.warnings = append(im.warnings, fmt.Sprintf(format, args...))
	}
}

// checkTexts holds the package to the lengths that the API's other routes hold
// their bodies to.
func (im *importer) checkTexts() error {
	long := func(what, slug, field string, n, limit int) error {
		if n > limit {
			return Unprocessable(fmt.Sprintf("%s %s: its %s is longer than %d bytes", what, slug, field, limit), nil)
		}
		return nil
	}
	for _, i := range im.m.Issues {
		if err := cmp.Or(long("Task", i.Slug, "name", len(i.Title), company.MaxTitle), long("Task", i.Slug, "text", len(deref(i.Description)), company.MaxText),
			long("Task", i.Slug, "billing code", len(deref(i.BillingCode)), 200)); err != nil {
			return err
		}
		for _, d := range i.Documents {
			if err := long("Task", i.Slug, "document "+cut(d.Key, 40), len(d.Body), company.MaxDocument); err != nil {
				return err
			}
		}
		for n, c := range i.Comments {
			if err := long("Task", i.Slug, "comment "+strconv.Itoa(n+1), len(c.Body), company.MaxText); err != nil {
				return err
			}
		}
	}
	for _, l := range im.m.Labels {
		if err := long("Label", cut(l.Name, 20), "name", len(l.Name), 48); err != nil {
			return err
		}
	}
	return nil
}

// choose drops what is not asked for.
func (im *importer) choose() error {
	var slugs []string
	if len(im.body.Agents) > 0 && string(im.body.Agents) != `"all"` && string(im.body.Agents) != "null" {
		if err := json.Unmarshal(im.body.Agents, &slugs); err != nil {
			return Invalid(`Invalid agents: expected "all" or a list of slugs`)
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
	im.m.Includes = im.include
	there := func(slug *string) bool {
		return slug == nil || slices.ContainsFunc(im.m.Agents, func(a portable.Agent) bool { return a.Slug == *slug }) || slices.ContainsFunc(im.m.Projects, func(p portable.Project) bool { return p.Slug == *slug })
	}
	im.m.EnvInputs = slices.DeleteFunc(im.m.EnvInputs, func(e portable.EnvInput) bool {
		return !there(e.Agent) || !there(e.Project) || e.Routine != nil && !slices.ContainsFunc(im.m.Issues, func(i portable.Issue) bool { return i.Recurring && i.Slug == *e.Routine })
	})
	return nil
}

// against compares the package with what the target has.
func (im *importer) against(tx *ledger.Tx) error {
	im.plan = importPlan{Company: "none", Agents: []agentPlan{}, Projects: []projectPlan{}, Issues: []issuePlan{}}
	var agents []company.Agent
	var projects []company.Project
	if im.created {
		name := im.m.Company.Name
		if n := im.body.Target.NewCompanyName.Value; strings.TrimSpace(n) != "" {
			name = n
		}
		im.company, im.plan.Company = company.Company{ID: im.newID(), Name: name}, "create"
	} else {
		row, ok := company.CompanyOf(tx, strings.ToLower(im.body.Target.CompanyID))
		if !ok {
			return NotFound("Company not found")
		}
		im.company = row
		agents, projects = company.AgentsOf(tx, row.ID, false), company.ProjectsOf(tx, row.ID)
		for _, l := range company.LabelsOf(tx, row.ID) {
			im.labels[l.Name] = l.ID
		}
		for _, g := range company.GoalsOf(tx, row.ID) {
			im.goals["\x00"+g.Title] = g.ID // a goal of the same title is the same goal
		}
		if im.include.Company {
			im.plan.Company = "update"
		}
	}
	names := map[string]bool{}
	for _, a := range agents {
		names[a.URLKey()] = true
	}
	for _, a := range im.m.Agents {
		p := agentPlan{Slug: a.Slug, Action: "create", Name: cmp.Or(im.body.NameOverrides[a.Slug], a.Name)}
		at := slices.IndexFunc(agents, func(b company.Agent) bool { return b.URLKey() == a.Slug || b.URLKey() == company.URLKey(p.Name) })
		if at >= 0 {
			p.Action, p.Reason = im.collide("slug")
			if p.Action == "create" {
				p.Name = freeName(names, p.Name)
			} else {
				p.Existing = &agents[at].ID
			}
		} else if names[company.URLKey(p.Name)] {
			p.Name = freeName(names, p.Name)
		}
		names[company.URLKey(p.Name)] = true
		im.plan.Agents = append(im.plan.Agents, p)
	}
	names = map[string]bool{}
	for _, p := range projects {
		names[company.URLKey(p.Name)] = true
	}
	for _, p := range im.m.Projects {
		plan := projectPlan{Slug: p.Slug, Action: "create", Name: p.Name}
		if at := slices.IndexFunc(projects, func(b company.Project) bool { return company.URLKey(b.Name) == p.Slug }); at >= 0 {
			plan.Action, plan.Reason = im.collide("slug")
			if plan.Action == "create" {
				plan.Name = freeName(names, p.Name)
			} else {
				plan.Existing = &projects[at].ID
			}
		}
		names[company.URLKey(plan.Name)] = true
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

// collide says what the strategy does with a row whose slug is there already.
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

func freeName(taken map[string]bool, name string) string {
	out := name
	for n := 2; taken[company.URLKey(out)]; n++ {
		out = name + " " + strconv.Itoa(n)
	}
	return out
}

func (im *importer) step(kind string, payload any) *company.ImportStep {
	sealed, err := im.seal(payload)
	if err != nil && im.err == nil {
		im.err = err
	}
	payload = sealed
	im.list = append(im.list, company.ImportStep{Kind: kind, Payload: ledger.Marshal(payload)})
	return &im.list[len(im.list)-1]
}

// steps writes the commands, in an order in which each finds what it names.
func (im *importer) steps(rc *Request) error {
	im.seal = func(payload any) (any, error) { return rc.sealed(im.company.ID, payload) }
	im.done = imported{Company: importedCompany{im.company.ID, im.company.Name, "unchanged"}, Agents: []importedRow{}, Skills: []importedRow{}, Projects: []importedRow{},
		Routines: []importedRoutine{}, EnvInputs: im.m.EnvInputs}
	c := im.m.Company
	switch im.plan.Company {
	case "create":
		nobody := "" // answers for it by default, as recorded
		im.step("company.create", company.SaveCompany{ID: im.company.ID, Name: &im.company.Name, Description: c.Description, ResponsibleUser: &nobody})
		im.done.Company.Action = "created"
	case "update":
		im.step("company.update", company.SaveCompany{ID: im.company.ID, Description: c.Description})
		im.done.Company.Action = "updated"
	}
	im.goalSteps()
	if err := im.agentSteps(); err != nil {
		return err
	}
	im.skillSteps(rc)
	if err := im.projectSteps(); err != nil {
		return err
	}
	if err := im.issueSteps(rc); err != nil {
		return err
	}
	if err := im.routineSteps(rc); err != nil {
		return err
	}
	if im.created && c.RequireHireApproval { // last: the agents come with the package
		im.step("company.update", company.SaveCompany{ID: im.company.ID, RequireHireApproval: &c.RequireHireApproval})
	}
	im.done.Warnings = im.warnings
	return nil
}

// goalSteps come first, parents before children; an owner is set with the agents.
func (im *importer) goalSteps() {
	left := slices.Clone(im.m.Goals)
	for len(left) > 0 {
		n := len(left)
		left = slices.DeleteFunc(left, func(g portable.Goal) bool {
			parent := ""
			if g.Parent != nil {
				if parent = im.goals[*g.Parent]; parent == "" {
					return false
				}
			}
			if id := im.goals["\x00"+g.Title]; id != "" {
				im.goals[g.Slug] = id
				return true
			}
			id, level, status := im.newID(), company.GoalLevel(g.Level), company.GoalStatus(g.Status)
			im.goals[g.Slug] = id
			s := company.SaveGoal{ID: id, Title: &g.Title, Description: g.Description, Level: &level, Status: &status}
			if parent != "" {
				s.Parent = &parent
			}
			im.step("goal.create", s)
			return true
		})
		if len(left) == n {
			return // portable.Read refuses circles
		}
	}
}

func rawObject(m map[string]any) (json.RawMessage, error) {
	if m == nil {
		return nil, nil
	}
	return json.Marshal(m)
}

func (im *importer) agentSteps() error {
	for n, a := range im.m.Agents {
		p := im.plan.Agents[n]
		row := importedRow{Slug: a.Slug, Name: p.Name, Reason: p.Reason, Action: map[string]string{"create": "created", "update": "updated", "skip": "skipped"}[p.Action]}
		id := ""
		if p.Existing != nil {
			id = *p.Existing
		} else {
			id = im.newID()
		}
		im.agents[a.Slug], row.ID = id, &id
		im.done.Agents = append(im.done.Agents, row)
		if p.Action == "skip" {
			continue
		}
		s, err := im.agent(a, p, id)
		if err != nil {
			return err
		}
		if p.Action == "update" {
			im.step("agent.update", s)
		} else {
			im.step("agent.create", s)
		}
		if a.Instructions != "" {
			im.step("instructions.file", company.SaveInstructionFile{Agent: id, Path: company.InstructionsEntry, Content: a.Instructions})
		}
		for _, at := range slices.Sorted(maps.Keys(a.OtherInstructions)) {
			im.step("instructions.file", company.SaveInstructionFile{Agent: id, Path: at, Content: a.OtherInstructions[at]})
		}
		im.managers[id] = a.ReportsTo
	}
	// Who reports to whom is known when all are there.
	for n, a := range im.m.Agents {
		if im.plan.Agents[n].Action == "skip" || a.ReportsTo == nil || im.agents[*a.ReportsTo] == "" {
			continue
		}
		boss := im.agents[*a.ReportsTo]
		im.step("agent.update", company.SaveAgent{ID: im.agents[a.Slug], ReportsTo: &boss})
	}
	for _, g := range im.m.Goals {
		if g.Owner != nil && im.agents[*g.Owner] != "" {
			owner := im.agents[*g.Owner]
			im.step("goal.update", company.SaveGoal{ID: im.goals[g.Slug], Owner: &owner})
		}
	}
	return nil
}

func (im *importer) agent(a portable.Agent, p agentPlan, id string) (s company.SaveAgent, err error) {
	s = company.SaveAgent{ID: id, Name: &p.Name, Role: &a.Role, Title: a.Title, Icon: a.Icon, Capabilities: a.Capabilities, AdapterType: &a.AdapterType}
	config := map[string]any{}
	for k, v := range a.AdapterConfig {
		if b, err := json.Marshal(v); err == nil && strings.Contains(string(b), company.Redacted) {
			im.warn("Agent %s: adapterConfig.%s is hidden in the package and was left out.", a.Slug, k)
			continue
		}
		config[k] = v
	}
	if env := im.env(func(e portable.EnvInput) bool { return deref(e.Agent) == a.Slug }); env != nil {
		config["env"] = env
	}
	config["paperclipSkillSync"] = map[string]any{"desiredSkills": a.Skills}
	if err := json.Unmarshal(company.ManagedInstructionsConfig(im.company.ID, id, company.InstructionsEntry), &config); err != nil {
		return s, err
	}
	if s.AdapterConfig, err = json.Marshal(config); err != nil {
		return s, err
	}
	// No timer runs because of an import.
	runtime := map[string]any{}
	for k, v := range a.RuntimeConfig {
		runtime[k] = v
	}
	beat := map[string]any{}
	if b, ok := runtime["heartbeat"].(map[string]any); ok {
		for k, v := range b {
			beat[k] = v
		}
	}
	beat["enabled"] = false
	if beat["maxConcurrentRuns"] == nil {
		beat["maxConcurrentRuns"] = company.DefaultConcurrentRuns
	}
	runtime["heartbeat"] = beat
	if s.RuntimeConfig, err = json.Marshal(runtime); err != nil {
		return s, err
	}
	if s.Metadata, err = rawObject(a.Metadata); err != nil {
		return s, err
	}
	if a.BudgetCents > 0 {
		budget := company.Money(a.BudgetCents) * company.Cent
		s.Budget = &budget
	}
	grant := company.Grant{}
	for key, field := range map[string]**bool{"canCreateAgents": &grant.CreateAgents, "canCreateSkills": &grant.CreateSkills, "canAssignTasks": &grant.AssignTasks} {
		if v, ok := a.Permissions[key]; ok {
			*field = &v
		}
	}
	s.Permissions = &grant
	return s, nil
}

// labelIDs finds labels of the package by their names.
func (im *importer) labelIDs(names []string) (ids []string) {
	for _, l := range names {
		if id := im.labels[l]; id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// env declares the variables that the package asks for; whoever imported it
// fills them in.
func (im *importer) env(of func(portable.EnvInput) bool) map[string]any {
	var env map[string]any
	for _, e := range im.m.EnvInputs {
		if of(e) {
			if env == nil {
				env = map[string]any{}
			}
			env[e.Key] = map[string]any{"type": "plain", "value": e.Default}
		}
	}
	return env
}

func (im *importer) projectSteps() error {
	for n, p := range im.m.Projects {
		plan := im.plan.Projects[n]
		row := importedRow{Slug: p.Slug, Name: plan.Name, Reason: plan.Reason, Action: map[string]string{"create": "created", "update": "updated", "skip": "skipped"}[plan.Action]}
		id := im.newID()
		if plan.Existing != nil {
			id = *plan.Existing
		}
		im.projects[p.Slug], row.ID = id, &id
		im.done.Projects = append(im.done.Projects, row)
		if plan.Action == "skip" {
			continue
		}
		status := company.ProjectStatus(p.Status)
		s := company.SaveProject{ID: id, Name: &plan.Name, Description: p.Description, Status: &status, TargetDate: p.TargetDate, Color: p.Color, Icon: p.Icon}
		if p.Lead != nil && im.agents[*p.Lead] != "" {
			lead := im.agents[*p.Lead]
			s.Lead = &lead
		}
		goals := []string{}
		for _, g := range p.Goals {
			if id := im.goals[g]; id != "" {
				goals = append(goals, id)
			}
		}
		if len(goals) > 0 {
			s.Goals = &goals
		}
		var err error
		if s.WorkspacePolicy, err = rawObject(p.WorkspacePolicy); err != nil {
			return err
		}
		if s.Env, err = rawObject(im.env(func(e portable.EnvInput) bool { return deref(e.Project) == p.Slug })); err != nil {
			return err
		}
		if plan.Action == "update" {
			im.step("project.update", s)
			continue // its workspaces stay as they are
		}
		im.step("project.create", s)
		for _, w := range p.Workspaces {
			space := company.SaveWorkspace{ID: im.newID(), Project: id, Name: &w.Name, RepoURL: w.RepoURL, RepoRef: w.RepoRef, DefaultRef: w.DefaultRef, Visibility: w.Visibility,
				SetupCommand: w.SetupCommand, CleanupCommand: w.CleanupCommand, Primary: &w.Primary}
			if w.SourceType != "" {
				space.SourceType = &w.SourceType
			}
			im.spaces[p.Slug+"/"+w.Key] = space.ID
			im.step("workspace.create", space)
		}
	}
	return nil
}

// importedStatus is what an issue comes in as: work in progress was somebody else's
// run, and what was blocked is blocked again where its blockers came along.
func importedStatus(i portable.Issue) company.IssueStatus {
	switch s := company.IssueStatus(deref(i.Status)); {
	case s == company.IssueInProgress, s == company.IssueBlocked && len(i.BlockedBy) == 0:
		return company.IssueTodo
	case slices.Contains(company.IssueStatuses, s):
		return s
	case i.Assignee != nil:
		return company.IssueTodo
	}
	return company.IssueBacklog
}

func (im *importer) issueSteps(rc *Request) error {
	for _, l := range im.m.Labels {
		if im.labels[l.Name] == "" {
			im.labels[l.Name] = im.newID()
			im.step("label.create", company.CreateLabel{ID: im.labels[l.Name], Name: l.Name, Color: l.Color})
		}
	}
	left := slices.DeleteFunc(slices.Clone(im.m.Issues), func(i portable.Issue) bool { return i.Recurring })
	// Parents before children, blockers before who waits for them; within that in
	// the order of their numbers.
	for len(left) > 0 {
		at := slices.IndexFunc(left, func(i portable.Issue) bool {
			ready := i.Parent == nil || im.issues[*i.Parent] != ""
			for _, b := range i.BlockedBy {
				ready = ready && im.issues[b] != ""
			}
			return ready
		})
		if at < 0 { // blockers in a circle: break it where the numbers are lowest
			at = 0
			im.warn("Task %s: its blockers wait for each other; the circle was broken.", left[0].Slug)
			left[0].BlockedBy = slices.DeleteFunc(slices.Clone(left[0].BlockedBy), func(b string) bool { return im.issues[b] == "" })
			if left[0].Parent != nil && im.issues[*left[0].Parent] == "" {
				left[0].Parent = nil
			}
		}
		if err := im.issue(rc, left[at]); err != nil {
			return err
		}
		left = slices.Delete(left, at, at+1)
	}
	return nil
}

func (im *importer) issue(rc *Request, i portable.Issue) (err error) {
	id := im.newID()
	im.issues[i.Slug] = id
	s := company.CreateIssue{ID: id, Title: i.Title, Description: deref(i.Description), Status: importedStatus(i), Priority: company.Priority(deref(i.Priority)),
		BillingCode: deref(i.BillingCode), AllowDuplicate: true}
	if !slices.Contains(company.Priorities, s.Priority) {
		s.Priority = company.PriorityMedium
	}
	if i.Assignee != nil {
		s.Assignee = im.agents[*i.Assignee]
	}
	if s.Status == company.IssueTodo && s.Assignee == "" && i.Assignee != nil {
		s.Status = company.IssueBacklog
	}
	if i.Project != nil {
		s.Project = im.projects[*i.Project]
		if i.WorkspaceKey != nil {
			s.Workspace = im.spaces[*i.Project+"/"+*i.WorkspaceKey]
		}
	}
	if i.Goal != nil {
		s.Goal = im.goals[*i.Goal]
	}
	if i.Parent != nil {
		s.Parent = im.issues[*i.Parent]
	}
	for _, b := range i.BlockedBy {
		s.BlockedBy = append(s.BlockedBy, im.issues[b])
	}
	s.Labels = im.labelIDs(i.Labels)
	if s.WorkspaceSettings, err = rawObject(i.WorkspaceSettings); err != nil {
		return err
	}
	if s.AdapterOverrides, err = rawObject(i.AdapterOverrides); err != nil {
		return err
	}
	step := im.step("issue.create", s)
	if _, digits, ok := strings.Cut(deref(i.Identifier), "-"); ok {
		step.Number, _ = strconv.ParseUint(digits, 10, 64) // 0: the next one
	}
	var comments []string // IDs, in their order
	for _, cm := range i.Comments {
		p := company.CreateComment{Issue: id, ID: im.newID(), Body: cm.Body}
		if p.Presentation, err = rawObject(cm.Presentation); err != nil {
			return err
		}
		if p.Metadata, err = rawObject(cm.Metadata); err != nil {
			return err
		}
		step := im.step("comment.create", p)
		if cm.AuthorAgent != nil {
			step.Author = im.agents[*cm.AuthorAgent]
		}
		comments = append(comments, p.ID)
	}
	for _, d := range i.Documents {
		p := company.SaveDocument{Issue: id, Key: strings.ToLower(d.Key), ID: im.newID(), Revision: im.newID(), Format: d.Format, Body: d.Body}
		if d.Title != "" {
			p.Title = &d.Title
		}
		im.step("document.save", p)
		im.remarkSteps("annotation", id, p.Key, p.Revision, d.Remarks)
	}
	if err := im.products(i, id); err != nil {
		return err
	}
	return im.attachments(rc, i, id, comments)
}

// products are what the issue made; the ones that name this mesh's services do
// not travel.
func (im *importer) products(i portable.Issue, issue string) (err error) {
	for _, w := range slices.Backward(i.WorkProducts) { // the newest is listed first
		p := company.SaveProduct{ID: im.newID(), Issue: issue, Type: &w.Type, Provider: &w.Provider, External: w.ExternalID, Title: &w.Title, URL: w.URL, Status: &w.Status,
			ReviewState: &w.ReviewState, Primary: &w.Primary, Health: &w.HealthStatus, Summary: w.Summary}
		if p.Metadata, err = rawObject(w.Metadata); err != nil {
			return err
		}
		im.step("product.create", p)
	}
	return nil
}

// attachments brings the bytes to the nodes that shall have them, before the
// command that names them.
func (im *importer) attachments(rc *Request, i portable.Issue, issue string, comments []string) error {
	for _, a := range i.Attachments {
		data, ok := im.files.Blob(a.SHA256)
		if !ok {
			continue // portable.Read has refused such packages
		}
		up, err := rc.keep(data, deref(a.Filename), a.ContentType)
		if err != nil {
			return err
		}
		up.File.ID, up.File.Object = im.newID(), im.newID()
		p := company.CreateAttachment{Issue: issue, ID: im.newID(), File: up.File}
		if n := a.CommentIndex; n != nil && *n >= 0 && *n < len(comments) {
			p.Comment = comments[*n]
		}
		im.step("attachment.create", p)
	}
	return nil
}
