package portable

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A reader collects the content of a package and warnings about it.
type reader struct {
	files    Files
	paths    []string // of files, in order
	side     sidecar
	m        Manifest
	warnings []string
}

func (r *reader) warn(format string, args ...any) {
	if len(r.warnings) < maxWarnings {
		r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
	}
}

// Read returns the content of a package, sorted by slug (issues by number), and warnings
// about what it ignored. Errors wrap [ErrPackage]; without a COMPANY.md the error is
// [ErrNoCompany].
func Read(files Files) (m Manifest, warnings []string, err error) {
	if len(files) == 0 {
		return m, nil, ErrNoCompany
	}
	r := reader{}
	if r.files, err = files.Rooted(); err != nil {
		return m, nil, err
	}
	r.paths = r.files.Paths()
	if err := r.sidecar(); err != nil {
		return m, nil, err
	}
	r.m = Manifest{SchemaVersion: SchemaVersion, Sidebar: r.side.Sidebar, Labels: list(r.side.Labels),
		Blobs: list(r.side.Blobs), EmbeddedAssets: list(r.side.Assets),
		Agents: []Agent{}, Skills: []Skill{}, Projects: []Project{}, Goals: []Goal{}, Teams: []Team{}, Issues: []Issue{},
		EnvInputs: []EnvInput{}}
	for _, read := range []func() error{r.company, r.blobs, r.assets, r.goals, r.agents, r.teams, r.projects,
		r.tasks, r.skills} {
		if err := read(); err != nil {
			return m, nil, err
		}
	}
	r.m.Structure = r.side.Structure
	for n := range r.m.Strategies {
		s := &r.m.Strategies[n]
		s.Tasks = list(s.Tasks)
	}
	r.m.Includes = Includes{true, len(r.m.Agents) > 0, len(r.m.Projects) > 0, len(r.m.Issues) > 0, len(r.m.Skills) > 0}
	return r.m, r.warnings, nil
}

func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// page reads one Markdown file.
func (r *reader) page(name string, front any) (body string, err error) {
	text, err := r.files.text(name)
	if err != nil {
		return "", err
	}
	return split(name, text, front)
}

// below returns the paths that begin with dir, in order.
func (r *reader) below(dir string) []string {
	from, _ := slices.BinarySearch(r.paths, dir)
	n := slices.IndexFunc(r.paths[from:], func(name string) bool { return !strings.HasPrefix(name, dir) })
	if n < 0 {
		return r.paths[from:]
	}
	return r.paths[from : from+n]
}

// folders yields the slug and the path of each file of a kind: <dir>/<slug>/<base>.
func (r *reader) folders(dir, base string) (out [][2]string) {
	for _, name := range r.paths {
		if parts := strings.Split(name, "/"); len(parts) == 3 && parts[0] == dir && parts[2] == base {
			out = append(out, [2]string{parts[1], name})
		}
	}
	slices.SortFunc(out, func(a, b [2]string) int { return natural(a[0], b[0]) })
	return out
}

func (r *reader) company() error {
	var f frontCompany
	body, err := r.page(companyFile, &f)
	if err != nil {
		return err
	}
	if strings.TrimSpace(f.Name) == "" {
		return malformed("%s needs a name", companyFile)
	}
	if f.Description == nil {
		f.Description = maybe(strings.TrimSpace(body))
	}
	c := r.side.Company
	r.m.Company = &Company{Path: companyFile, Name: f.Name, Description: f.Description, LogoPath: c.LogoPath,
		RequireHireApproval: c.RequireHireApproval, FeedbackSharing: c.FeedbackSharing, BrandColor: c.BrandColor,
		NoStrategyGate: c.NoStrategyGate, AttachmentMaxBytes: c.AttachmentMaxBytes}
	if c.LogoPath == nil {
		return nil
	}
	logo, ok := r.files[path.Clean(*c.LogoPath)]
	if logo.ContentType = cmp.Or(logo.ContentType, logoTypes[path.Ext(*c.LogoPath)]); !ok || logo.ContentType == "" {
		r.warn("The logo %.200q is not in the package, or no image.", *c.LogoPath)
		r.m.Company.LogoPath = nil
		return nil
	}
	r.m.Company.Logo = &logo
	return nil
}

// blobs checks that each blob has the hash that the index states.
func (r *reader) blobs() error {
	for _, b := range r.side.Blobs {
		f, ok := r.files[blobPath(b.SHA256)]
		if !ok {
			return malformed("blobs/%s is missing", b.SHA256)
		}
		if sum := sha256.Sum256(f.Data); hex.EncodeToString(sum[:]) != b.SHA256 || int64(len(f.Data)) != b.ByteSize {
			return malformed("blobs/%s has other bytes than its name says", b.SHA256)
		}
	}
	return nil
}

// logoTypes are the types of images that a logo may have, by file extension.
var logoTypes = map[string]string{".png": "image/png", ".jpg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
	".svg": "image/svg+xml"}

// LogoPath returns the path of a company's logo of a type in a package; "" if a logo may not
// have the type.
func LogoPath(contentType string) string {
	for ext, t := range logoTypes {
		if t == contentType {
			return logoBase + ext
		}
	}
	return ""
}

// assets checks that each asset has a unique ID and a blob.
func (r *reader) assets() error {
	blobs, ids := map[string]bool{}, map[string]bool{}
	for _, b := range r.side.Blobs {
		blobs[b.SHA256] = true
	}
	for _, a := range r.side.Assets {
		switch {
		case !assetID.MatchString(a.ID) || ids[a.ID]:
			return malformed("embedded asset %.60q: an ID is a UUID, and no two are the same", a.ID)
		case !blobs[a.SHA256]:
			return malformed("embedded asset %s is not among the blobs", a.ID)
		}
		ids[a.ID] = true
	}
	return nil
}

var assetID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// Blob returns the content of a blob. The files must be those that Read accepted; see Rooted.
func (files Files) Blob(sum string) ([]byte, bool) {
	f, ok := files[blobPath(sum)]
	return f.Data, ok
}

func (r *reader) goals() error {
	for _, slug := range slices.Sorted(maps.Keys(r.side.Goals)) {
		g := r.side.Goals[slug]
		g.Slug = slug
		if g.Parent != nil {
			if _, ok := r.side.Goals[*g.Parent]; !ok {
				return malformed("goal %s: no goal %s", slug, *g.Parent)
			}
		}
		for at, n := g, 0; at.Parent != nil; at, n = r.side.Goals[*at.Parent], n+1 {
			if n > len(r.side.Goals) {
				return malformed("goal %s is its own ancestor", slug)
			}
		}
		r.m.Goals = append(r.m.Goals, g)
	}
	return nil
}

func (r *reader) agents() error {
	for _, at := range r.folders("agents", "AGENTS.md") {
		slug, name := at[0], at[1]
		var f frontAgent
		body, err := r.page(name, &f)
		if err != nil {
			return err
		}
		if strings.HasPrefix(body, "_No AGENTS instructions") {
			body = "" // Paperclip writes this if there are none
		}
		s := r.side.Agents[slug]
		a := Agent{Slug: slug, Name: cmp.Or(f.Name, slug), Path: name, Skills: list(f.Skills),
			Role: cmp.Or(s.Role, f.Role, "general"), Title: f.Title, Icon: s.Icon,
			Capabilities: s.Capabilities, ReportsTo: f.ReportsTo, AdapterType: cmp.Or(s.Adapter.Type, "process"),
			AdapterConfig: s.Adapter.Config,
			RuntimeConfig: s.Runtime, Permissions: s.Permissions, PermissionGrants: list(s.PermissionGrants),
			BudgetCents: s.BudgetCents,
			Metadata:    s.Metadata, Instructions: body, Budgets: s.Budgets, Memories: s.Memories, ContextMode: s.ContextMode,
			Terminated: s.Terminated}
		if a.AdapterConfig == nil {
			a.AdapterConfig = map[string]any{}
		}
		if a.RuntimeConfig == nil {
			a.RuntimeConfig = map[string]any{}
		}
		if a.Permissions == nil {
			a.Permissions = map[string]bool{}
		}
		dir := path.Dir(name) + "/"
		for _, other := range r.below(dir) {
			if rest := other[len(dir):]; rest != "AGENTS.md" && !r.files[other].Binary {
				text, err := r.files.verbatim(other)
				if err != nil {
					return err
				}
				put(&a.OtherInstructions, rest, text)
			}
		}
		r.inputs(s.Inputs, "agent", slug, func(e *EnvInput) { e.Agent = &slug })
		r.m.Agents = append(r.m.Agents, a)
	}
	known := map[string]bool{}
	for _, a := range r.m.Agents {
		known[a.Slug] = true
	}
	for n := range r.m.Agents {
		if a := &r.m.Agents[n]; a.ReportsTo != nil && !known[*a.ReportsTo] {
			r.warn("Agent %s reports to %s, who is not in the package.", a.Slug, *a.ReportsTo)
			a.ReportsTo = nil
		}
	}
	for _, slug := range slices.Sorted(maps.Keys(r.side.Agents)) {
		if !known[slug] {
			r.warn("The sidecar describes agent %s, whose AGENTS.md is not in the package.", slug)
		}
	}
	return nil
}

func (r *reader) inputs(s sideInputs, what, slug string, of func(*EnvInput)) {
	for _, key := range slices.Sorted(maps.Keys(s.Env)) {
		in := s.Env[key]
		e := EnvInput{Key: key, Kind: cmp.Or(in.Kind, "secret"), Requirement: cmp.Or(in.Requirement, "optional"),
			Default: in.Default, Portability: cmp.Or(in.Portability, "portable"),
			Description: cmp.Or(in.Description, "Provide "+key+" for "+what+" "+slug)}
		of(&e)
		r.m.EnvInputs = append(r.m.EnvInputs, e)
	}
}

func (r *reader) teams() error {
	for _, at := range r.folders("teams", "TEAM.md") {
		var f frontTeam
		if _, err := r.page(at[1], &f); err != nil {
			return err
		}
		t := Team{Slug: at[0], Name: cmp.Or(f.Name, at[0]), Path: at[1], Members: []string{}}
		if f.Manager != nil {
			t.Manager = maybe(slugIn(*f.Manager))
		}
		for _, m := range append(f.Includes, f.Members...) {
			t.Members = append(t.Members, slugIn(m))
		}
		r.m.Teams = append(r.m.Teams, t)
		for n := range r.m.Agents {
			a := &r.m.Agents[n]
			if a.ReportsTo == nil && t.Manager != nil && a.Slug != *t.Manager && slices.Contains(t.Members, a.Slug) {
				a.ReportsTo = t.Manager
			}
		}
	}
	return nil
}

// slugIn returns the slug in a reference: the reference itself, or the folder in a path such
// as ../../agents/ada/AGENTS.md.
func slugIn(ref string) string {
	if base := path.Base(ref); base == "AGENTS.md" {
		return path.Base(path.Dir(ref))
	}
	return path.Base(ref)
}

func (r *reader) projects() error {
	for _, at := range r.folders("projects", "PROJECT.md") {
		slug, name := at[0], at[1]
		var f frontProject
		body, err := r.page(name, &f)
		if err != nil {
			return err
		}
		s := r.side.Projects[slug]
		p := Project{Slug: slug, Name: cmp.Or(f.Name, slug), Path: name, Description: f.Description, Owner: f.Owner,
			Lead: s.Lead, TargetDate: s.TargetDate,
			Color: s.Color, Icon: s.Icon, Status: cmp.Or(s.Status, "backlog"), Archived: s.Archived,
			WorkspacePolicy: s.WorkspacePolicy, Workspaces: []Workspace{}, Goals: list(s.Goals), Budgets: s.Budgets}
		if p.Description == nil {
			p.Description = maybe(body)
		}
		if p.Lead == nil {
			p.Lead = p.Owner
		}
		for _, key := range slices.Sorted(maps.Keys(s.Workspaces)) {
			w := s.Workspaces[key]
			w.Key = key
			p.Workspaces = append(p.Workspaces, w)
		}
		r.inputs(s.Inputs, "project", slug, func(e *EnvInput) { e.Project = &slug })
		r.m.Projects = append(r.m.Projects, p)
	}
	return nil
}

func maybe(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// tasks reads tasks/<slug>/TASK.md and projects/<project>/tasks/<slug>/TASK.md.
func (r *reader) tasks() error {
	seen := map[string]string{}
	for _, name := range r.paths {
		parts := strings.Split(name, "/")
		n := len(parts)
		inProject := n == 5 && parts[0] == "projects" && parts[2] == "tasks"
		if parts[n-1] != "TASK.md" || !inProject && (n != 3 || parts[0] != "tasks") {
			continue
		}
		slug := parts[n-2]
		if other, ok := seen[slug]; ok {
			return malformed("%s and %s have the same slug", other, name)
		}
		seen[slug] = name
		var f frontTask
		body, err := r.page(name, &f)
		if err != nil {
			return err
		}
		i := Issue{Slug: slug, Title: cmp.Or(f.Name, slug), Path: name, Project: f.Project, Assignee: f.Assignee,
			Description: maybe(body), Recurring: f.Recurring,
			LabelIDs: []string{}, Labels: []string{}, Comments: []Comment{}, BlockedBy: []string{}, Documents: []Document{},
			WorkProducts: []WorkProduct{}, Attachments: []Attachment{}}
		if i.Project == nil && inProject {
			i.Project = &parts[1]
		}
		if s, ok := r.side.Routines[slug]; f.Recurring {
			i.Status, i.Priority, i.Goal, i.Labels, i.BillingCode = s.Status, s.Priority, s.Goal, list(s.Labels), s.BillingCode
			i.Folder = s.Folder
			r.inputs(s.Inputs, "routine", slug, func(e *EnvInput) { e.Routine = &slug })
			i.Routine = &s.Routine
			i.Routine.Variables, i.Routine.Triggers = list(s.Variables), list(s.Triggers)
			for n := range i.Routine.Triggers {
				t := &i.Routine.Triggers[n]
				t.Enabled = t.Disabled == nil || *t.Disabled
			}
			for n := range i.Routine.Variables {
				i.Routine.Variables[n].Options = list(i.Routine.Variables[n].Options)
			}
			if !ok {
				r.warn("Task %s recurs, but the package does not say when: it is imported as a routine without triggers.", slug)
			}
		} else if err := r.task(&i, r.side.Tasks[slug]); err != nil {
			return err
		}
		r.m.Issues = append(r.m.Issues, i)
	}
	slices.SortStableFunc(r.m.Issues, func(a, b Issue) int { return cmp.Compare(a.number(), b.number()) })
	return r.checkTasks()
}

// number sorts issues in the order in which they were made; those without an identifier come
// last.
func (i Issue) number() uint64 {
	_, digits, _ := strings.Cut(text(i.Identifier), "-")
	var n uint64
	if _, err := fmt.Sscanf(digits, "%d", &n); err != nil {
		return 1 << 62
	}
	return n
}

func (r *reader) task(i *Issue, s sideTask) error {
	i.Identifier, i.Status, i.Priority, i.Parent, i.Goal = s.Identifier, s.Status, s.Priority, s.Parent, s.Goal
	i.CreatedAt, i.UpdatedAt, i.StartedAt, i.CompletedAt, i.CancelledAt = s.CreatedAt, s.UpdatedAt, s.StartedAt,
		s.CompletedAt, s.CancelledAt
	i.Labels, i.BillingCode, i.WorkspaceKey, i.WorkspaceSettings = list(s.Labels), s.BillingCode, s.WorkspaceKey,
		s.WorkspaceSettings
	i.AdapterOverrides, i.Monitor, i.ExecutionPolicy, i.Watchdog = s.AdapterOverrides, s.Monitor,
		s.ExecutionPolicy, s.Watchdog
	i.WorkMode, i.ReviewPolicy, i.WorkspacePref = s.WorkMode, s.ReviewPolicy, s.WorkspacePref
	i.Comments, i.BlockedBy, i.WorkProducts, i.Attachments = list(s.Comments), list(s.BlockedBy), list(s.WorkProducts),
		list(s.Attachments)
	for n := range i.WorkProducts {
		w := &i.WorkProducts[n]
		w.ReviewState, w.HealthStatus = cmp.Or(w.ReviewState, "none"), cmp.Or(w.HealthStatus, "unknown")
	}
	declared := map[string]Document{}
	for _, d := range s.Documents {
		declared[cmp.Or(d.Path, path.Join(path.Dir(i.Path), "documents", d.Key+".md"))] = d
	}
	dir := path.Join(path.Dir(i.Path), "documents") + "/"
	for _, name := range r.below(dir) {
		rest := name[len(dir):]
		if strings.Contains(rest, "/") {
			continue
		}
		text, err := r.files.verbatim(name)
		if err != nil {
			return err
		}
		d := declared[name]
		delete(declared, name)
		i.Documents = append(i.Documents, Document{Key: cmp.Or(d.Key, strings.TrimSuffix(rest, path.Ext(rest))),
			Title:  d.Title,
			Format: cmp.Or(d.Format, "markdown"), Path: name, Body: text, Remarks: d.Remarks})
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		r.warn("Task %s names a document %s that is not in the package.", i.Slug, name)
	}
	return nil
}

// checkTasks removes references to what is not in the package.
func (r *reader) checkTasks() error {
	agents, projects, tasks, goals, blobs := map[string]bool{}, map[string]bool{}, map[string]Issue{}, map[string]bool{},
		map[string]bool{}
	ends := map[string]bool{} // issues whose chain of parents is known to end
	for _, a := range r.m.Agents {
		agents[a.Slug] = true
	}
	for _, p := range r.m.Projects {
		projects[p.Slug] = true
	}
	for _, g := range r.m.Goals {
		goals[g.Slug] = true
	}
	for _, b := range r.m.Blobs {
		blobs[b.SHA256] = true
	}
	for _, i := range r.m.Issues {
		tasks[i.Slug] = i
	}
	drop := func(slug, what string, ref **string, known bool) {
		if *ref != nil && !known {
			r.warn("Task %s names %s %s, which is not in the package.", slug, what, **ref)
			*ref = nil
		}
	}
	for n := range r.m.Issues {
		i := &r.m.Issues[n]
		drop(i.Slug, "agent", &i.Assignee, agents[text(i.Assignee)])
		drop(i.Slug, "project", &i.Project, projects[text(i.Project)])
		drop(i.Slug, "goal", &i.Goal, goals[text(i.Goal)])
		if w := i.Watchdog; w != nil && !agents[w.Agent] {
			r.warn("Task %s is watched by agent %s, who is not in the package.", i.Slug, w.Agent)
			i.Watchdog = nil
		}
		parent, ok := tasks[text(i.Parent)]
		drop(i.Slug, "task", &i.Parent, ok && !parent.Recurring)
		var line []string // from the task up to one whose chain is known to end
		for at := i.Slug; !ends[at]; {
			line = append(line, at)
			if at = text(tasks[at].Parent); at == "" {
				break
			}
			if len(line) > len(tasks) {
				return malformed("task %s is its own ancestor", i.Slug)
			}
		}
		for _, slug := range line {
			ends[slug] = true
		}
		i.BlockedBy = slices.DeleteFunc(i.BlockedBy, func(slug string) bool {
			_, ok := tasks[slug]
			if !ok {
				r.warn("Task %s is blocked by %s, which is not in the package.", i.Slug, slug)
			}
			return !ok
		})
		for _, a := range i.Attachments {
			if a.ID != "" && !assetID.MatchString(a.ID) {
				return malformed("task %s: the ID of an attachment is a UUID", i.Slug)
			}
			if !blobs[a.SHA256] {
				return malformed("task %s: its attachment %s is not among the blobs", i.Slug, a.SHA256)
			}
		}
	}
	return nil
}

// skills reads every folder below skills/ that has a SKILL.md.
func (r *reader) skills() error {
	for _, name := range r.paths {
		if !strings.HasPrefix(name, "skills/") || path.Base(name) != "SKILL.md" {
			continue
		}
		var f frontSkill
		if _, err := r.page(name, &f); err != nil {
			return err
		}
		dir := path.Dir(name)
		s := Skill{Key: strings.TrimPrefix(dir, "skills/"), Slug: path.Base(dir), Name: cmp.Or(f.Name, path.Base(dir)),
			Path: name, Description: f.Description,
			SourceType: "catalog", Compatibility: "compatible", Inventory: []SkillFile{}}
		for _, other := range r.below(dir + "/") {
			rest := other[len(dir)+1:]
			if r.files[other].Binary {
				continue
			}
			text, err := r.files.text(other)
			if err != nil {
				return err
			}
			put(&s.Files, rest, text)
			kind := "reference"
			if rest == "SKILL.md" {
				kind = "skill"
			}
			s.Inventory = append(s.Inventory, SkillFile{rest, kind})
		}
		left := r.side.Skills[s.Slug]
		s.Comments, s.Inputs, s.Tests = left.Comments, left.Inputs, left.Tests
		r.m.Skills = append(r.m.Skills, s)
	}
	return nil
}
