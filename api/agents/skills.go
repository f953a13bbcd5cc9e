package agents

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/selvage-mesh/selvage/adapter"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/skills"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

// BundledKey is the prefix of the keys of bundled skills, as clients know them.
// bundledFolder is the folder where lists show them.
const (
	bundledFolder = "bundled/paperclip-core"
	errBundled    = "Bundled skills are read-only."
)

// newSkill is the body that creates a skill.
type newSkill struct {
	FolderID    api.Opt[string] `json:"folderId" format:"uuid"`
	Name        string          `json:"name" minLength:"1" maxLength:"200"`
	Slug        api.Opt[string] `json:"slug" minLength:"1" maxLength:"200" maxBytes:"500"`
	Description api.Opt[string] `json:"description" maxLength:"20000"`
	Markdown    api.Opt[string] `json:"markdown" maxLength:"131072" maxBytes:"131072"`
	skillLooks
}

// patchSkill is the body that changes a skill.
type patchSkill struct {
	Name        *string         `json:"name,omitempty" minLength:"1" maxLength:"200" maxBytes:"500" nullable:"false"`
	Description api.Opt[string] `json:"description" maxLength:"20000"`
	Markdown    *string         `json:"markdown,omitempty" minLength:"1" maxLength:"131072" maxBytes:"131072" nullable:"false"`
	skillLooks
}

type skillLooks struct {
	IconURL    api.Opt[string] `json:"iconUrl" maxLength:"4096" maxBytes:"4096"`
	Color      api.Opt[string] `json:"color" maxLength:"50" maxBytes:"50"`
	Tagline    api.Opt[string] `json:"tagline" maxLength:"120"`
	Author     api.Opt[string] `json:"authorName" maxLength:"200" maxBytes:"200"`
	Homepage   api.Opt[string] `json:"homepageUrl" maxLength:"4096" maxBytes:"4096"`
	Categories *[]string       `json:"categories,omitempty" minLength:"1" maxLength:"200" maxBytes:"500" maxItems:"20" nullable:"false"`
	Scope      string          `json:"sharingScope,omitempty" enum:"private,company,public_link"`
}

type skillFileBody struct {
	Path    string `json:"path" minLength:"1" maxLength:"200"`
	Content string `json:"content" maxLength:"131072" maxBytes:"131072"`
}

type skillFileDelete struct {
	Path   string `json:"path" minLength:"1" maxLength:"200"`
	Target string `json:"target" enum:"file,folder"`
}

type syncSkillsBody struct {
	Mode    string            `json:"mode" enum:"add,remove,replace" default:"replace"`
	Desired []json.RawMessage `json:"desiredSkills" maxItems:"100" types:"string,object" maxBytes:"8192"`
}

// A skillRow is a skill as answers show it, of the company or bundled.
type skillRow struct {
	skill.Skill
	Folder         *string           `json:"folderId"`
	FolderPath     *string           `json:"folderPath"`
	Key            string            `json:"key"`
	SourceType     string            `json:"sourceType"`
	SourceLocator  string            `json:"sourceLocator"`
	SourceRef      *string           `json:"sourceRef"`
	TrustLevel     string            `json:"trustLevel"`
	Compatibility  string            `json:"compatibility"`
	ShareToken     *string           `json:"publicShareToken"`
	ForkedFrom     *string           `json:"forkedFromSkillId"`
	ForkedFromOf   *ledger.CompanyID `json:"forkedFromCompanyId"`
	Stars          int               `json:"starCount"`
	Installs       int               `json:"installCount"`
	Forks          int               `json:"forkCount"`
	VersionOrNull  *string           `json:"currentVersionId"`
	bundledContent string
}

// A skillInList is a skillRow with the further members of a list.
type skillInList struct {
	skillRow
	Attached       int     `json:"attachedAgentCount"`
	Editable       bool    `json:"editable"`
	EditableReason *string `json:"editableReason"`
	SourceLabel    string  `json:"sourceLabel"`
	SourceBadge    string  `json:"sourceBadge"`
	SourcePath     *string `json:"sourcePath"`
	CatalogKind    *string `json:"catalogKind"`
	OriginHash     *string `json:"originHash"`
	PackageName    *string `json:"packageName"`
	PackageVersion *string `json:"packageVersion"`
}

// A skillDetail is one skill in full.
type skillDetail struct {
	skillInList
	Markdown string        `json:"markdown"`
	Metadata skillMetadata `json:"metadata"`
	UsedBy   []skillUser   `json:"usedByAgents"`
}

type skillMetadata struct {
	Key        string `json:"skillKey"`
	SourceKind string `json:"sourceKind"`
}

type skillUser struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type skillFileRow struct {
	Skill    string  `json:"skillId"`
	Path     string  `json:"path"`
	Kind     string  `json:"kind"`
	Content  string  `json:"content"`
	Language *string `json:"language"`
	Markdown bool    `json:"markdown"`
	Editable bool    `json:"editable"`
}

type agentSkillSet struct {
	Adapter   string              `json:"adapterType"`
	Supported bool                `json:"supported"`
	Mode      string              `json:"mode"`
	Desired   []string            `json:"desiredSkills"`
	Entries   []desiredSkill      `json:"desiredSkillEntries"`
	Available []agentSkillInstall `json:"entries"`
	Warnings  []string            `json:"warnings"`
}

type desiredSkill struct {
	Key     string  `json:"key"`
	Version *string `json:"versionId"`
}

// An agentSkillInstall says where an agent finds the text of a skill.
type agentSkillInstall struct {
	Key     string `json:"key"`
	Name    string `json:"name"`
	Desired bool   `json:"desired"`
	// configured: passed to the next run; available: can be read at path; missing: the skill was deleted
	State string `json:"state"`
	Path  string `json:"path"` // path of the API that returns the text
}

type categoryCount struct {
	Slug  string `json:"slug"`
	Count int    `json:"count"`
}

func SkillRoutes() []api.Route {
	const tag, all, one = "skills", "/api/companies/{companyId}/skills", "/api/companies/{companyId}/skills/{skillId}"
	return []api.Route{
		{Method: "GET", Path: all, Tag: tag, Summary: "List the skills that agents of a company can have",
			Out: []skillInList{}, Handle: listSkills},
		{Method: "POST", Path: all, Tag: tag, Summary: "Create a skill", In: newSkill{}, Out: skillDetail{}, Status: 201,
			Handle: createSkill},
		{Method: "GET", Path: all + "/categories", Tag: tag, Summary: "List the categories of a company's skills",
			Out: []categoryCount{}, Handle: skillCategories},
		{Method: "GET", Path: one, Tag: tag, Summary: "Read a skill by ID or slug", Out: skillDetail{}, Handle: readSkill},
		{Method: "PATCH", Path: one, Tag: tag, Summary: "Change a skill", In: patchSkill{}, Out: skillDetail{},
			Handle: updateSkill},
		{Method: "DELETE", Path: one, Tag: tag, Summary: "Delete a skill", Out: skillDetail{}, Handle: deleteSkill},
		{Method: "GET", Path: one + "/files", Tag: tag, Summary: "Read a file of a skill",
			Query: []api.Param{{Name: "path", Doc: "the file, SKILL.md unless given"}}, Out: skillFileRow{},
			Handle: readSkillFile},
		{Method: "PATCH", Path: one + "/files", Tag: tag, Summary: "Write a file of a skill", In: skillFileBody{},
			Out: skillFileRow{}, Handle: writeSkillFile},
		{Method: "DELETE", Path: one + "/files", Tag: tag, Summary: "Remove a file or folder of a skill",
			In: skillFileDelete{}, Out: skillDetail{}, Handle: removeSkillFile},
		{Method: "GET", Path: "/api/agents/{id}/skills", Tag: tag, Summary: "List the skills that an agent is to have",
			Query: api.ByName(), Out: agentSkillSet{}, Handle: readAgentSkills},
		{Method: "POST", Path: "/api/agents/{id}/skills/sync", Tag: tag, Summary: "Say which skills an agent is to have",
			Query: api.ByName(), In: syncSkillsBody{}, Out: agentSkillSet{}, Handle: syncAgentSkills},
		{Method: "GET", Path: "/api/skills/catalog", Tag: tag,
			Summary: "List the skills that come with the program, with their files", Out: []catalogSkill{}, Handle: listCatalog},
		{Method: "GET", Path: "/api/skills/catalog/{catalogId}", Tag: tag, Summary: "Read a skill of the catalog",
			Out: catalogSkill{}, Handle: readCatalog},
		{Method: "GET", Path: "/api/skills/catalog/{catalogId}/files", Tag: tag,
			Summary: "Read the text of a skill of the catalog", Out: skillFileRow{}, Handle: readCatalogFile},
	}
}

// bundledIDs is the UUID name space for the IDs of bundled skills.
var bundledIDs = uuid.MustParse("6f0a6d56-7a0e-4f0c-9c39-2a9f3f1f7c11")

// bundledIn is a bundled skill as a company shows it. Its ID is derived from the company
// and the name.
func bundledIn(of entity.Company, b skills.Skill) skillRow {
	folder := uuid.NewSHA1(bundledIDs, []byte(of.ID)).String()
	return skillRow{Skill: skill.Skill{ID: uuid.NewSHA1(bundledIDs, []byte(string(of.ID)+"/"+b.Name)).String(),
		Company: of.ID, Slug: b.Name, Name: b.Name,
		Description: core.NullText(b.Description), Categories: []string{}, Scope: "company",
		Files:     []skill.SkillPath{{Path: skill.SkillFile, Kind: "skill"}},
		CreatedAt: of.CreatedAt, UpdatedAt: of.CreatedAt},
		Folder: &folder, FolderPath: new(bundledFolder), Key: api.BundledKey + b.Name, SourceType: "local_path",
		SourceLocator: "bundled/" + b.Name,
		TrustLevel:    "markdown_only", Compatibility: "compatible", Installs: 1, bundledContent: b.Markdown}
}

func showSkill(s skill.Skill) skillRow {
	row := skillRow{Skill: s, Key: s.Key(), SourceType: "local_path", SourceLocator: "skills/" + string(s.Company) + "/" +
		s.Slug, TrustLevel: "markdown_only",
		Compatibility: "compatible", Installs: 1, VersionOrNull: &s.Version}
	if o := s.Origin; o.Locator != "" {
		row.SourceType, row.SourceLocator = o.Type, o.Locator
		if o.Ref != "" {
			row.SourceRef = new(string(o.Ref))
		}
	} else if o.Skill != "" {
		row.ForkedFrom, row.ForkedFromOf = &o.Skill, &s.Company
	}
	if row.Categories == nil {
		row.Categories = []string{}
	}
	for _, f := range s.Files {
		switch {
		case f.Kind == "script":
			row.TrustLevel = "scripts_executables"
		case f.Kind == "asset" && row.TrustLevel == "markdown_only":
			row.TrustLevel = "assets"
		}
	}
	return row
}

func (r skillRow) bundled() bool { return r.bundledContent != "" }

// inList adds the members of a list. users are the agents that have the skill.
func (r skillRow) inList(users []skillUser) skillInList {
	in := skillInList{skillRow: r, Attached: len(users), Editable: true, SourceLabel: "Company", SourceBadge: "local"}
	if r.bundled() {
		in.Editable, in.EditableReason, in.SourceLabel, in.SourceBadge = false, new(errBundled), "Bundled", "paperclip"
	}
	return in
}

func (r skillRow) detail(tx *ledger.Tx) skillDetail {
	users := usersOf(tx, r.Company)[r.Key]
	if !r.bundled() {
		r.Stars = skill.StarsOfSkill(tx, r.Skill)
	}
	d := skillDetail{skillInList: r.inList(users), Markdown: r.bundledContent, Metadata: skillMetadata{r.Key,
		"paperclip_bundled"}, UsedBy: users}
	if !r.bundled() {
		d.Markdown, _ = skill.SkillText(tx, r.Skill, skill.SkillFile)
		d.Metadata.SourceKind = "managed_local"
	}
	if d.UsedBy == nil {
		d.UsedBy = []skillUser{}
	}
	return d
}

// usersOf returns the agents that have each skill, by key.
func usersOf(tx *ledger.Tx, of ledger.CompanyID) map[string][]skillUser {
	users := map[string][]skillUser{}
	for _, a := range entity.AgentsOf(tx, of, true) {
		for _, k := range skill.SkillsOfAgent(tx, of, a.ID) {
			users[k] = append(users[k], skillUser{a.ID, a.Name})
		}
	}
	return users
}

// skillIn finds the skill that the path names by ID, slug or key.
func skillIn(tx *ledger.Tx, of entity.Company, ref string) (skillRow, error) {
	if s, ok := skill.SkillOf(tx, of.ID, ref); ok {
		return showSkill(s), nil
	}
	for _, b := range skills.Bundled() {
		if row := bundledIn(of, b); row.ID == strings.ToLower(ref) || row.Slug == ref || row.Key == ref {
			return row, nil
		}
	}
	return skillRow{}, api.NotFound("Skill not found")
}

func listSkills(rc *api.Request) (api.Response, error) {
	out := []skillInList{}
	err := api.InCompany(rc, func(tx *ledger.Tx, of entity.Company) error {
		users := usersOf(tx, of.ID)
		for _, b := range skills.Bundled() {
			row := bundledIn(of, b)
			out = append(out, row.inList(users[row.Key]))
		}
		for _, s := range skill.SkillsOf(tx, of.ID) {
			row := showSkill(s)
			row.Stars = skill.StarsOfSkill(tx, s)
			out = append(out, row.inList(users[row.Key]))
		}
		return nil
	})
	slices.SortStableFunc(out, func(a, b skillInList) int { return strings.Compare(a.Slug, b.Slug) })
	return api.OK(out), err
}

func skillCategories(rc *api.Request) (api.Response, error) {
	out := []categoryCount{}
	err := api.InCompany(rc, func(tx *ledger.Tx, of entity.Company) error {
		for _, s := range skill.SkillsOf(tx, of.ID) {
			for _, name := range s.Categories {
				i, found := slices.BinarySearchFunc(out, name,
					func(c categoryCount, n string) int { return strings.Compare(c.Slug, n) })
				if !found {
					out = slices.Insert(out, i, categoryCount{Slug: name})
				}
				out[i].Count++
			}
		}
		return nil
	})
	return api.OK(out), err
}

func (in skillLooks) into(p *skill.SaveSkill) {
	p.IconURL, p.Color, p.Tagline, p.Author, p.Homepage = api.TextOf(in.IconURL), api.TextOf(in.Color),
		api.TextOf(in.Tagline), api.TextOf(in.Author), api.TextOf(in.Homepage)
	p.Categories, p.Scope = in.Categories, api.Given[string](in.Scope)
}

func createSkill(rc *api.Request) (api.Response, error) {
	in, err := api.Body[newSkill](rc)
	if err != nil {
		return api.Response{}, err
	}
	if in.FolderID.Or("") != "" {
		return api.Response{}, api.Unprocessable("Skills do not lie in folders; leave folderId out", nil)
	}
	text := in.Markdown.Or("")
	name, description := skills.FrontMatter(text)
	id := api.NewID()
	slug := in.Slug.Or(cmp.Or(core.URLKey(in.Name), api.OwnSlug("skill", id)))
	if name == "" {
		name = in.Name
	}
	if d := in.Description.Or(""); d != "" {
		description = d
	}
	if strings.TrimSpace(text) == "" {
		text = "---\nname: " + slug + "\ndescription: " + strings.Join(strings.Fields(description), " ") + "\n---\n# " +
			strings.Join(strings.Fields(in.Name), " ") + "\n"
	}
	if _, taken := skills.Find(slug); taken {
		return api.Response{}, api.Conflict("Skill already exists: "+slug, nil)
	}
	p := skill.SaveSkill{ID: id, Version: api.NewID(), Slug: &slug, Name: &name, Description: &description,
		Markdown: &text}
	in.skillLooks.into(&p)
	if !api.IsUUID(api.CompanyID(rc)) {
		return api.Response{}, api.NotFound("Company not found")
	}
	return doSkill(rc, skill.KindSkillCreate, p)
}

// doSkill submits a command that returns a skill, and answers it.
func doSkill(rc *api.Request, kind string, payload any) (r api.Response, err error) {
	s, err := api.Do[skill.Skill](rc, kind, api.CompanyID(rc), payload)
	if err != nil {
		return r, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		r = api.OK(showSkill(s).detail(tx))
		return nil
	})
	return r, err
}

func readSkill(rc *api.Request) (r api.Response, err error) {
	err = api.InCompany(rc, func(tx *ledger.Tx, of entity.Company) error {
		row, err := skillIn(tx, of, rc.Path("skillId"))
		if err == nil {
			r = api.OK(row.detail(tx))
		}
		return err
	})
	return r, err
}

// ownSkill finds the skill that the path names, which must be the company's own.
func ownSkill(rc *api.Request) (row skillRow, err error) {
	err = api.InCompany(rc, func(tx *ledger.Tx, of entity.Company) (err error) {
		if row, err = skillIn(tx, of, rc.Path("skillId")); err == nil && row.bundled() {
			err = api.Unprocessable(errBundled, nil)
		}
		return err
	})
	return row, err
}

func updateSkill(rc *api.Request) (api.Response, error) {
	in, err := api.Body[patchSkill](rc)
	if err != nil {
		return api.Response{}, err
	}
	row, err := ownSkill(rc)
	if err != nil {
		return api.Response{}, err
	}
	p := skill.SaveSkill{ID: row.ID, Version: api.NewID(), Name: in.Name, Description: api.TextOf(in.Description),
		Markdown: in.Markdown}
	if in.Markdown != nil {
		name, description := skills.FrontMatter(*in.Markdown)
		if name != "" && p.Name == nil {
			p.Name = &name
		}
		if description != "" && p.Description == nil {
			p.Description = &description
		}
	}
	in.skillLooks.into(&p)
	return doSkill(rc, skill.KindSkillUpdate, p)
}

func deleteSkill(rc *api.Request) (r api.Response, err error) {
	row, err := ownSkill(rc)
	if err != nil {
		return r, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		r = api.OK(row.detail(tx))
		return nil
	})
	if err != nil {
		return r, err
	}
	_, err = rc.Submit(skill.KindSkillDelete, api.CompanyID(rc), skill.DeleteSkill{ID: row.ID})
	return r, err
}

func fileRow(row skillRow, path, content string) skillFileRow {
	f := skillFileRow{Skill: row.ID, Path: path, Kind: skill.KindOfSkillFile(path), Content: content,
		Editable: !row.bundled()}
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		switch path[i:] {
		case ".md", ".markdown":
			f.Language, f.Markdown = new("markdown"), true
		case ".sh":
			f.Language = new("bash")
		case ".py":
			f.Language = new("python")
		case ".js", ".mjs", ".cjs":
			f.Language = new("javascript")
		case ".ts":
			f.Language = new("typescript")
		case ".json":
			f.Language = new("json")
		case ".yaml", ".yml":
			f.Language = new("yaml")
		}
	}
	return f
}

func readSkillFile(rc *api.Request) (r api.Response, err error) {
	path := rc.Query("path")
	if path == "" {
		path = skill.SkillFile
	}
	if _, err := skill.CleanSkillPath(path); err != nil {
		return r, err
	}
	err = api.InCompany(rc, func(tx *ledger.Tx, of entity.Company) error {
		row, err := skillIn(tx, of, rc.Path("skillId"))
		if err != nil {
			return err
		}
		text, ok := row.bundledContent, path == skill.SkillFile
		if !row.bundled() {
			text, ok = skill.SkillText(tx, row.Skill, path)
		}
		if !ok {
			return api.NotFound("Skill file not found")
		}
		r = api.OK(fileRow(row, path, text))
		return nil
	})
	return r, err
}

func writeSkillFile(rc *api.Request) (api.Response, error) {
	in, err := api.Body[skillFileBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	row, err := ownSkill(rc)
	if err != nil {
		return api.Response{}, err
	}
	p := skill.SaveSkillFile{Skill: row.ID, Path: in.Path, Content: in.Content, Version: api.NewID()}
	if in.Path == skill.SkillFile {
		p.Name, p.Description = skills.FrontMatter(in.Content)
	}
	if _, err := api.Do[skill.Skill](rc, skill.KindSkillFile, api.CompanyID(rc), p); err != nil {
		return api.Response{}, err
	}
	return api.OK(fileRow(row, in.Path, in.Content)), nil
}

func removeSkillFile(rc *api.Request) (api.Response, error) {
	in, err := api.Body[skillFileDelete](rc)
	if err != nil {
		return api.Response{}, err
	}
	row, err := ownSkill(rc)
	if err != nil {
		return api.Response{}, err
	}
	return doSkill(rc, skill.KindSkillFile, skill.SaveSkillFile{Skill: row.ID, Path: in.Path, Delete: in.Target,
		Version: api.NewID()})
}

// skillsOf returns the skills of an agent. Command-line adapters receive the texts with
// each run, and skills that were removed are deleted (ephemeral). The default agent of
// the sandbox reads them by path. Other adapters receive none.
func skillsOf(tx *ledger.Tx, a entity.Agent) agentSkillSet {
	out := agentSkillSet{Adapter: a.AdapterType, Mode: "unsupported", Desired: []string{}, Entries: []desiredSkill{},
		Available: []agentSkillInstall{},
		Warnings:  []string{"This adapter does not implement skill sync yet."}}
	state := "available"
	switch k, _ := adapter.Find(a.AdapterType); {
	case k.Tool:
		out.Supported, out.Mode, out.Warnings, state = true, "ephemeral", []string{}, "configured"
	case a.AdapterType == "wasm":
		out.Supported, out.Mode, out.Warnings = true, "ephemeral", []string{}
	}
	of, _ := entity.CompanyOf(tx, a.Company)
	for _, k := range skill.SkillsOfAgent(tx, a.Company, a.ID) {
		out.Desired = append(out.Desired, k)
		out.Entries = append(out.Entries, desiredSkill{Key: k})
		e := agentSkillInstall{Key: k, Name: k, Desired: true, State: "missing"}
		if row, err := skillIn(tx, of, k); err == nil {
			e.Name, e.State, e.Path = row.Name, state, "/api/companies/"+string(a.Company)+"/skills/"+row.ID+"/files"
		}
		out.Available = append(out.Available, e)
	}
	return out
}

func readAgentSkills(rc *api.Request) (api.Response, error) {
	return api.Showing(rc, api.AgentIn, skillsOf)
}

func syncAgentSkills(rc *api.Request) (api.Response, error) {
	in, err := api.Body[syncSkillsBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	a, err := api.FindAgent(rc)
	if err != nil {
		return api.Response{}, err
	}
	p := skill.SyncSkills{Agent: a.ID, Mode: in.Mode}
	err = rc.View(func(tx *ledger.Tx) error {
		of, _ := entity.CompanyOf(tx, a.Company)
		for i, raw := range in.Desired {
			var ref string
			var object struct {
				Key string `json:"key"`
			}
			if json.Unmarshal(raw, &ref) != nil && json.Unmarshal(raw, &object) == nil {
				ref = object.Key
			}
			if ref == "" {
				return api.ValidationError(api.Issue{Code: "invalid_type", Expected: "string", Path: []any{"desiredSkills", i},
					Message: "Invalid input: expected a skill's key"})
			}
			row, err := skillIn(tx, of, ref)
			switch {
			case err == nil:
				p.Keys = append(p.Keys, row.Key)
			case in.Mode == "remove":
				p.Keys = append(p.Keys, ref)
			default:
				return api.Unprocessable("Unknown skill: "+api.Cut(ref, 200), nil)
			}
		}
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	if _, err := rc.Submit(skill.KindAgentSkills, a.Company, p); err != nil {
		return api.Response{}, err
	}
	return readAgentSkills(rc)
}
