package transfer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/company/transfer"
	"github.com/selvage-mesh/selvage/ledger"
)

// importBody is a package, the parts of it to import, and the target.
type importBody struct {
	Source struct {
		Type     string          `json:"type" enum:"inline,github"`
		RootPath api.Opt[string] `json:"rootPath" maxLength:"500"`
		// by path: text, or {encoding: "base64", data, contentType}
		Files    json.RawMessage `json:"files,omitempty" maxBytes:"67108864"`
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
		return nil, api.Unprocessable(fmt.Sprintf("The texts of an import are at most %d MiB, those of this one are %d: "+
			"import fewer issues at once", transfer.MaxImport>>20, len(steps)>>20), nil)
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
