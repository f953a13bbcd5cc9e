package agents

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/skills"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

// The bodies about sources of skills.
type (
	skillImportBody struct {
		Source string `json:"source" minLength:"1" maxLength:"2000"`
	}
	skillScanBody struct {
		Projects   []string        `json:"projectIds,omitempty" format:"uuid" maxItems:"100"`
		Workspaces []string        `json:"workspaceIds,omitempty" format:"uuid" maxItems:"100"`
		Mode       string          `json:"mode,omitempty" enum:"import,preview"`
		Selection  []scanSelection `json:"selection,omitempty" maxItems:"100"`
	}
	scanSelection struct {
		Workspace string `json:"workspaceId" format:"uuid"`
		Path      string `json:"path" minLength:"1" maxLength:"1000"`
		Slug      string `json:"slug,omitempty" minLength:"1" maxLength:"200"`
	}
	skillBrowseBody struct {
		Project   string          `json:"projectId" format:"uuid"`
		Workspace string          `json:"workspaceId" format:"uuid"`
		Path      api.Opt[string] `json:"path" maxLength:"1000"`
	}
)

type skillsImported struct {
	Imported []skillDetail `json:"imported"`
	Warnings []string      `json:"warnings"`
}

// A skillScan is the result of a scan of projects' folders.
type skillScan struct {
	Projects   int             `json:"scannedProjects"`
	Workspaces int             `json:"scannedWorkspaces"`
	Discovered int             `json:"discovered"`
	Imported   []skillDetail   `json:"imported"`
	Updated    []skillDetail   `json:"updated"`
	Skipped    []scanSkipped   `json:"skipped"`
	Conflicts  []scanConflict  `json:"conflicts"`
	Candidates []scanCandidate `json:"candidates"`
	Warnings   []string        `json:"warnings"`
}

type scanSkipped struct {
	Project   string `json:"projectId"`
	Workspace string `json:"workspaceId"`
	Path      string `json:"path"`
	Reason    string `json:"reason"`
}

type scanConflict struct {
	Slug      string `json:"slug"`
	Project   string `json:"projectId"`
	Workspace string `json:"workspaceId"`
	Path      string `json:"path"`
	Existing  string `json:"existingSkillId"`
	Reason    string `json:"reason"`
}

type scanCandidate struct {
	Project     string  `json:"projectId"`
	ProjectName string  `json:"projectName"`
	Workspace   string  `json:"workspaceId"`
	Name        string  `json:"name"`
	Slug        string  `json:"slug"`
	About       string  `json:"description"`
	Directory   string  `json:"directoryRoot"`
	Path        string  `json:"relativePath"`
	Status      string  `json:"status"` // new, already_imported, conflict or skipped
	Existing    *string `json:"existingSkillId"`
	Reason      *string `json:"reason"`
}

type browsed struct {
	Project   string        `json:"projectId"`
	Workspace string        `json:"workspaceId"`
	Name      string        `json:"workspaceName"`
	Path      string        `json:"path"`
	Parent    *string       `json:"parentPath"`
	Entries   []browseEntry `json:"entries"`
	Truncated bool          `json:"truncated"`
}

type browseEntry struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Kind    string `json:"kind"` // directory or file
	IsSkill bool   `json:"isSkill"`
}

const (
	// maxScannedSkills bounds the skills that one import or scan creates.
	maxScannedSkills = 50
	// maxBrowsed bounds the entries of a folder in an answer.
	maxBrowsed = 500
)

// skillFolders are the folders in which projects store skills.
var skillFolders = []string{"skills", ".claude/skills", ".agents/skills", ".codex/skills"}

func SkillSourceRoutes() []api.Route {
	const tag, all = "skills", "/api/companies/{companyId}/skills"
	return []api.Route{
		{Method: "POST", Path: all + "/import", Once: true, Tag: tag, Summary: "Bring skills from a repository on GitHub",
			In: skillImportBody{}, Out: skillsImported{}, Status: 201, Handle: importSkills},
		{Method: "POST", Path: all + "/scan-projects", Tag: tag,
			Summary: "Bring the skills that lie in the folders of projects on this node", Who: api.Admin, In: skillScanBody{},
			Out: skillScan{}, Handle: scanProjects},
		{Method: "POST", Path: all + "/browse-project", Tag: tag,
			Summary: "List a folder of a project's workspace on this node", Who: api.Admin, In: skillBrowseBody{},
			Out: browsed{}, Handle: browseProject},
	}
}

// A foundSkill is the files of a skill by relative path.
type foundSkill struct {
	slug, name, about string
	files             map[string]string
	problem           string // why it can not be imported, or ""
}

// foundIn returns the skill of a folder's files.
func foundIn(folder string, files map[string]string) foundSkill {
	f := foundSkill{slug: core.URLKey(path.Base(folder)), files: files}
	f.name, f.about = skills.FrontMatter(files[skill.SkillFile])
	if f.name == "" {
		f.name = path.Base(folder)
	}
	if f.slug == "" || f.slug == "." {
		f.slug = core.URLKey(f.name)
	}
	switch {
	case len(files) > skill.MaxSkillFiles:
		f.problem = fmt.Sprintf("It has more than %d files", skill.MaxSkillFiles)
	case strings.TrimSpace(files[skill.SkillFile]) == "":
		f.problem = skill.SkillFile + " is empty"
	}
	for name, text := range files {
		if _, err := skill.CleanSkillPath(name); err != nil || len(text) > skill.MaxSkillFile || !utf8.ValidString(text) {
			f.problem = "A file is too long, no text, or of a name that can not be taken: " + api.Cut(name, 100)
		}
	}
	return f
}

// take creates a skill of the company: the skill, then its other files. If a file fails,
// it deletes the skill again.
func (f foundSkill) take(rc *api.Request, origin skill.SkillOrigin) (skillDetail, error) {
	text := f.files[skill.SkillFile]
	p := skill.SaveSkill{ID: api.NewID(), Version: api.NewID(), Slug: &f.slug, Name: &f.name, Description: &f.about,
		Markdown: &text, Origin: origin}
	if _, err := rc.Submit(skill.KindSkillCreate, api.CompanyID(rc), p); err != nil {
		return skillDetail{}, err
	}
	if err := f.fill(rc, p.ID, nil); err != nil {
		rc.Submit(skill.KindSkillDelete, api.CompanyID(rc), skill.DeleteSkill{ID: p.ID})
		return skillDetail{}, err
	}
	return shownByID(rc, p.ID)
}

// fill writes those files of a skill that differ from the stored ones.
func (f foundSkill) fill(rc *api.Request, id string, have map[string]string) error {
	names := make([]string, 0, len(f.files))
	for name := range f.files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if was, ok := have[name]; name == skill.SkillFile && have == nil || ok && was == f.files[name] {
			continue
		}
		p := skill.SaveSkillFile{Skill: id, Path: name, Content: f.files[name], Version: api.NewID()}
		if name == skill.SkillFile {
			p.Name, p.Description = f.name, f.about
		}
		if _, err := rc.Submit(skill.KindSkillFile, api.CompanyID(rc), p); err != nil {
			return err
		}
	}
	return nil
}

func shownByID(rc *api.Request, id string) (d skillDetail, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		s, ok := skill.SkillOf(tx, api.CompanyID(rc), id)
		if !ok {
			return api.NotFound("Skill not found")
		}
		d = showSkill(s).detail(tx)
		return nil
	})
	return d, err
}

func importSkills(rc *api.Request) (api.Response, error) {
	in, err := api.Body[skillImportBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	source := in.Source
	if !strings.Contains(source, "://") && strings.Count(source, "/") == 1 {
		source = "https://github.com/" + source // owner/repository
	}
	r, err := api.ParseRepository(source)
	if err != nil {
		return api.Response{}, err
	}
	if err := api.InCompany(rc, func(*ledger.Tx, entity.Company) error { return nil }); err != nil {
		return api.Response{}, err
	}
	files, err := rc.FetchRepository(r)
	if err != nil {
		return api.Response{}, err
	}
	folders := map[string]map[string]string{}
	for name := range files {
		if path.Base(name) == skill.SkillFile {
			folders[path.Dir(name)] = map[string]string{}
		}
	}
	for name, f := range files {
		for at := path.Dir(name); ; at = path.Dir(at) {
			if of := folders[at]; of != nil {
				of[strings.TrimPrefix(strings.TrimPrefix(name, at), "/")] = string(f.Data)
				break
			}
			if at == "." || at == "/" {
				break
			}
		}
	}
	switch n := len(folders); {
	case n == 0:
		return api.Response{}, api.Unprocessable("The repository has no "+skill.SkillFile+" there", nil)
	case n > maxScannedSkills:
		return api.Response{}, api.Unprocessable(fmt.Sprintf("The repository has more than %d skills; name a folder of it",
			maxScannedSkills), nil)
	}
	out := skillsImported{Imported: []skillDetail{}, Warnings: []string{}}
	if !api.PinnedRef.MatchString(r.Ref) {
		out.Warnings = append(out.Warnings,
			fmt.Sprintf("The skills come from %s of %s/%s, which may change; name a commit to pin them.", r.Ref,
				r.Owner, r.Name))
	}
	names := make([]string, 0, len(folders))
	for name := range folders {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		base := path.Join(r.Folder, name)
		if base == "." {
			base = r.Name
		}
		f := foundIn(base, folders[name])
		if f.problem != "" {
			out.Warnings = append(out.Warnings, base+": "+f.problem)
			continue
		}
		if _, taken := skills.Find(f.slug); taken {
			out.Warnings = append(out.Warnings, base+": a skill of the program has this name")
			continue
		}
		d, err := f.take(rc, skill.SkillOrigin{Type: "github", Locator: "https://github.com/" + path.Join(r.Owner, r.Name,
			"tree", r.Ref, base), Ref: core.NullText(r.Ref)})
		if refusal, ok := isRefusal(err); ok && refusal.Code == ledger.Conflict {
			out.Warnings = append(out.Warnings, base+": "+refusal.Message)
			continue
		}
		if err != nil {
			return api.Response{}, err
		}
		out.Imported = append(out.Imported, d)
	}
	return api.OK(out), nil
}

// A scanned is a workspace with a folder.
type scanned struct {
	project entity.Project
	space   place.Workspace
}

func scanProjects(rc *api.Request) (api.Response, error) {
	in, err := api.Body[skillScanBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	out := skillScan{Imported: []skillDetail{}, Updated: []skillDetail{}, Skipped: []scanSkipped{},
		Conflicts: []scanConflict{}, Candidates: []scanCandidate{}, Warnings: []string{}}
	var places []scanned
	err = api.InCompany(rc, func(tx *ledger.Tx, of entity.Company) error {
		for _, p := range entity.ProjectsOf(tx, of.ID) {
			if len(in.Projects) > 0 && !slices.Contains(in.Projects, p.ID) {
				continue
			}
			out.Projects++
			for _, w := range place.WorkspacesOf(tx, of.ID, p.ID) {
				if len(in.Workspaces) == 0 || slices.Contains(in.Workspaces, w.ID) {
					places = append(places, scanned{p, w})
				}
			}
		}
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	for _, at := range places {
		if at.space.Cwd == "" {
			continue
		}
		root, err := os.OpenRoot(string(at.space.Cwd))
		if err != nil {
			out.Warnings = append(out.Warnings, "The folder of workspace "+at.space.Name+" is not on this node")
			continue
		}
		out.Workspaces++
		err = out.scan(rc, in, at, root)
		root.Close()
		if err != nil {
			return api.Response{}, err
		}
	}
	return api.OK(out), nil
}

// scan searches one workspace and imports the selected skills.
func (out *skillScan) scan(rc *api.Request, in skillScanBody, at scanned, root *os.Root) error {
	for _, folder := range skillFolders {
		entries, err := fs.ReadDir(root.FS(), folder)
		if err != nil {
			continue
		}
		for _, e := range entries {
			dir := path.Join(folder, e.Name())
			if !e.IsDir() {
				continue
			}
			files, err := readSkillFolder(root.FS(), dir)
			if err != nil {
				continue // no SKILL.md
			}
			if out.Discovered++; out.Discovered > maxScannedSkills {
				out.Warnings = append(out.Warnings, fmt.Sprintf("More than %d skills were found; the rest was left",
					maxScannedSkills))
				return nil
			}
			if err := out.consider(rc, in, at, dir, foundIn(dir, files)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (out *skillScan) consider(rc *api.Request, in skillScanBody, at scanned, dir string, f foundSkill) error {
	pick := len(in.Selection) == 0
	for _, s := range in.Selection {
		if s.Workspace == at.space.ID && path.Clean(s.Path) == dir {
			pick = true
			if s.Slug != "" {
				f.slug = s.Slug
			}
		}
	}
	c := scanCandidate{Project: at.project.ID, ProjectName: at.project.Name, Workspace: at.space.ID, Name: f.name,
		Slug: f.slug, About: f.about,
		Directory: path.Dir(dir), Path: dir, Status: "new"}
	locator := "workspace:" + at.space.ID + "/" + dir
	var existing skill.Skill
	var have map[string]string
	err := rc.View(func(tx *ledger.Tx) error {
		s, ok := skill.SkillOf(tx, api.CompanyID(rc), f.slug)
		switch {
		case f.problem != "":
			c.Status, c.Reason = "skipped", &f.problem
		case ok && s.Origin.Locator == locator:
			existing, have = s, map[string]string{}
			for _, file := range s.Files {
				have[file.Path], _ = skill.SkillText(tx, s, file.Path)
			}
			c.Status, c.Existing = "already_imported", &existing.ID
		case ok || slugTaken(tx, api.CompanyID(rc), f.slug):
			c.Status, c.Reason = "conflict", new("Another skill has this slug")
			if ok {
				c.Existing = new(s.ID)
			}
		}
		return nil
	})
	out.Candidates = append(out.Candidates, c)
	if err != nil || !pick || in.Mode == "preview" {
		return err
	}
	switch c.Status {
	case "skipped":
		out.Skipped = append(out.Skipped, scanSkipped{c.Project, c.Workspace, dir, *c.Reason})
	case "conflict":
		id := ""
		if c.Existing != nil {
			id = *c.Existing
		}
		out.Conflicts = append(out.Conflicts, scanConflict{c.Slug, c.Project, c.Workspace, dir, id, *c.Reason})
	case "new":
		d, err := f.take(rc, skill.SkillOrigin{Type: "local_path", Locator: locator})
		if err != nil {
			return err
		}
		out.Imported = append(out.Imported, d)
	case "already_imported":
		if skill.HashOfFiles(have) == skill.HashOfFiles(f.files) {
			return nil
		}
		if err := f.fill(rc, existing.ID, have); err != nil {
			return err
		}
		d, err := shownByID(rc, existing.ID)
		if err != nil {
			return err
		}
		out.Updated = append(out.Updated, d)
	}
	return nil
}

// readSkillFolder reads the files of a folder that has a SKILL.md. It reads at most one
// file more than a skill may have, and at most one byte more than a file may have, so
// that the caller can detect an excess.
func readSkillFolder(fsys fs.FS, dir string) (map[string]string, error) {
	if info, err := fs.Stat(fsys, path.Join(dir, skill.SkillFile)); err != nil || !info.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	files := map[string]string{}
	err := fs.WalkDir(fsys, dir, func(at string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && strings.HasPrefix(e.Name(), ".") && at != dir:
			return fs.SkipDir
		case !e.Type().IsRegular():
			return nil
		case len(files) > skill.MaxSkillFiles:
			return fs.SkipAll
		}
		f, err := fsys.Open(at)
		if err != nil {
			return err
		}
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, skill.MaxSkillFile+1))
		files[strings.TrimPrefix(at, dir+"/")] = string(b)
		return err
	})
	return files, err
}

func browseProject(rc *api.Request) (api.Response, error) {
	in, err := api.Body[skillBrowseBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	var space place.Workspace
	err = api.InCompany(rc, func(tx *ledger.Tx, of entity.Company) error {
		for _, w := range place.WorkspacesOf(tx, of.ID, strings.ToLower(in.Project)) {
			if w.ID == strings.ToLower(in.Workspace) {
				space = w
				return nil
			}
		}
		return api.NotFound("Project workspace not found")
	})
	if err != nil {
		return api.Response{}, err
	}
	at := path.Clean(in.Path.Or("."))
	if !fs.ValidPath(at) {
		return api.Response{}, api.Invalid("Invalid path: expected one within the workspace, such as skills")
	}
	root, err := os.OpenRoot(string(space.Cwd))
	if err != nil || space.Cwd == "" {
		return api.Response{}, api.Unprocessable("The folder of this workspace is not on this node", nil)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), at)
	if err != nil {
		return api.Response{}, api.NotFound("Folder not found")
	}
	out := browsed{Project: space.Project, Workspace: space.ID, Name: space.Name, Path: at, Entries: []browseEntry{}}
	if at != "." {
		out.Parent = new(path.Dir(at))
	}
	for _, e := range entries {
		if len(out.Entries) == maxBrowsed {
			out.Truncated = true
			break
		}
		row := browseEntry{Name: e.Name(), Path: path.Join(at, e.Name()), Kind: "file"}
		if e.IsDir() {
			_, err := fs.Stat(root.FS(), path.Join(row.Path, skill.SkillFile))
			row.Kind, row.IsSkill = "directory", err == nil
		} else if !e.Type().IsRegular() {
			continue
		}
		out.Entries = append(out.Entries, row)
	}
	return api.OK(out), nil
}

func isRefusal(err error) (*ledger.Refusal, bool) { return errors.AsType[*ledger.Refusal](err) }
