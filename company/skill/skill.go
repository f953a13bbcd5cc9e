package skill

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// MaxSkills bounds the skills of a company: lists return all of them.
	MaxSkills = 500
	// MaxSkillFiles bounds the files of one skill. MaxSkillFile bounds one file, in bytes:
	// it must fit a command, and agents read it whole.
	MaxSkillFiles = 64
	MaxSkillFile  = 128 << 10
	// maxSkillPath bounds a file's path, in bytes; maxAgentSkills the skills of one agent.
	maxSkillPath   = 200
	maxAgentSkills = 100
	// SkillFile is the file that every skill has.
	SkillFile = "SKILL.md"
)

// A Skill is a text of a company from which agents learn how to do something, with the files
// that it refers to. Slugs are unique in a company.
type Skill struct {
	ID          string           `cbor:"1,keyasint" json:"id"`
	Company     ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Slug        string           `cbor:"3,keyasint" json:"slug"`
	Name        string           `cbor:"4,keyasint" json:"name"`
	Description core.NullText    `cbor:"5,keyasint,omitempty" json:"description"`
	IconURL     core.NullText    `cbor:"6,keyasint,omitempty" json:"iconUrl"`
	Color       core.NullText    `cbor:"7,keyasint,omitempty" json:"color"`
	Tagline     core.NullText    `cbor:"8,keyasint,omitempty" json:"tagline"`
	Author      core.NullText    `cbor:"9,keyasint,omitempty" json:"authorName"`
	Homepage    core.NullText    `cbor:"10,keyasint,omitempty" json:"homepageUrl"`
	Categories  []string         `cbor:"11,keyasint,omitempty" json:"categories"`
	Scope       string           `cbor:"12,keyasint" json:"sharingScope"` // private, company or public_link
	Files       []SkillPath      `cbor:"13,keyasint,omitempty" json:"fileInventory"`
	Version     string           `cbor:"14,keyasint" json:"currentVersionId"` // the version of its files
	CreatedAt   core.Time        `cbor:"15,keyasint" json:"createdAt"`
	UpdatedAt   core.Time        `cbor:"16,keyasint" json:"updatedAt"`
	Origin      SkillOrigin      `cbor:"17,keyasint,omitempty" json:"-"`
}

// Clone returns a copy that shares no memory with s.
func (s Skill) Clone() Skill {
	s.Categories, s.Files = slices.Clone(s.Categories), slices.Clone(s.Files)
	return s
}

// Key is the name by which agents refer to the skill.
func (s Skill) Key() string { return "company/" + string(s.Company) + "/" + s.Slug }

// A SkillPath is a file of a skill: SKILL.md, or one below references, scripts or assets.
type SkillPath struct {
	Path string `cbor:"1,keyasint" json:"path"`
	Kind string `cbor:"2,keyasint" json:"kind"` // skill, reference, script, asset or other
}

// agentSkills are the keys of an agent's skills.
type agentSkills struct {
	Keys []string `cbor:"1,keyasint,omitempty"`
}

// Clone returns a copy that shares no memory with a.
func (a agentSkills) Clone() agentSkills { return agentSkills{slices.Clone(a.Keys)} }

var (
	SkillRows    = ledger.NewTable[string, Skill]("skill")
	wantedSkills = ledger.NewTable[string, agentSkills]("agent-skills")
)

// skillFileKey is the key of a file's text.
func skillFileKey(company ledger.CompanyID, skill, path string) []byte {
	sum := sha256.Sum256([]byte(path))
	return ledger.Key("c", string(company), "skill-file", skill+"."+hex.EncodeToString(sum[:16]))
}

// SkillScopes lists who may see a skill, in the contract's order.
var SkillScopes = []string{"private", "company", "public_link"}

// SaveSkill is the payload of skill.create and skill.update. In an update a nil field keeps
// the value and an empty one clears it. Markdown is the text of SKILL.md.
type SaveSkill struct {
	ID          string      `cbor:"1,keyasint"`
	Slug        *string     `cbor:"2,keyasint,omitempty"`
	Name        *string     `cbor:"3,keyasint,omitempty"`
	Description *string     `cbor:"4,keyasint,omitempty"`
	IconURL     *string     `cbor:"5,keyasint,omitempty"`
	Color       *string     `cbor:"6,keyasint,omitempty"`
	Tagline     *string     `cbor:"7,keyasint,omitempty"`
	Author      *string     `cbor:"8,keyasint,omitempty"`
	Homepage    *string     `cbor:"9,keyasint,omitempty"`
	Categories  *[]string   `cbor:"10,keyasint,omitempty"`
	Scope       *string     `cbor:"11,keyasint,omitempty"`
	Markdown    *string     `cbor:"12,keyasint,omitempty"`
	Version     string      `cbor:"13,keyasint"`           // ID of the version that is made if files change
	Origin      SkillOrigin `cbor:"14,keyasint,omitempty"` // of a new skill that was imported
}

// SaveSkillFile is the payload of skill.file. It writes a file, or deletes it if Delete is
// set; "folder" deletes everything below the path. For SKILL.md, Name and Description are
// the values of its front matter.
type SaveSkillFile struct {
	Skill       string `cbor:"1,keyasint"`
	Path        string `cbor:"2,keyasint"`
	Content     string `cbor:"3,keyasint,omitempty"`
	Delete      string `cbor:"4,keyasint,omitempty"` // "", "file" or "folder"
	Version     string `cbor:"5,keyasint"`
	Name        string `cbor:"6,keyasint,omitempty"`
	Description string `cbor:"7,keyasint,omitempty"`
}

// DeleteSkill is the payload of skill.delete.
type DeleteSkill struct {
	ID string `cbor:"1,keyasint"`
}

// SyncSkills is the payload of agent.skills, which sets an agent's skills by their keys. Mode
// is add, remove or replace.
type SyncSkills struct {
	Agent string   `cbor:"1,keyasint"`
	Mode  string   `cbor:"2,keyasint"`
	Keys  []string `cbor:"3,keyasint,omitempty"`
}

const (
	KindSkillCreate = "skill.create"
	KindSkillUpdate = "skill.update"
	KindSkillDelete = "skill.delete"
	KindSkillFile   = "skill.file"
	KindAgentSkills = "agent.skills"
)

var skillKinds = []company.Kind{
	{Name: KindSkillCreate, From: company.FromBoard | company.FromAgent, Needs: entity.CreateSkills,
		Traits: company.Importable, Weight: company.Weights.Skilling, Do: ledger.Typed(createSkill)},
	{Name: KindSkillUpdate, From: company.FromBoard | company.FromAgent, Needs: entity.CreateSkills,
		Weight: company.Weights.Skilling, Do: ledger.Typed(updateSkill)},
	{Name: KindSkillDelete, From: company.FromBoard | company.FromAgent, Needs: entity.CreateSkills,
		Weight: company.Weights.Erase, Do: ledger.Typed(deleteSkill)},
	{Name: KindSkillFile, From: company.FromBoard | company.FromAgent, Needs: entity.CreateSkills,
		Traits: company.Importable, Weight: company.Weights.Skilling, Do: ledger.Typed(saveSkillFile)},
	{Name: KindAgentSkills, From: company.FromBoard | company.FromAgent, Traits: company.Importable,
		Weight: company.Weights.Skilling, Target: company.AgentFirst, Do: ledger.Typed(syncSkills)},
}

// SkillsOf returns the skills of company by slug.
func SkillsOf(tx *ledger.Tx, company ledger.CompanyID) []Skill {
	out := []Skill{}
	for _, s := range SkillRows.All(tx, company) {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Skill) int { return strings.Compare(a.Slug, b.Slug) })
	return out
}

// SkillOf returns a skill of company by its ID, slug or key.
func SkillOf(tx *ledger.Tx, company ledger.CompanyID, ref string) (Skill, bool) {
	if s, ok := SkillRows.Get(tx, company, strings.ToLower(ref)); ok && core.IsID(strings.ToLower(ref)) {
		return s, true
	}
	for _, s := range SkillRows.All(tx, company) {
		if s.Slug == ref || s.Key() == ref {
			return s, true
		}
	}
	return Skill{}, false
}

// SkillText returns the text of a file of a skill.
func SkillText(tx *ledger.Tx, s Skill, path string) (text string, ok bool) {
	b, ok := tx.Get(skillFileKey(s.Company, s.ID, path))
	return string(b), ok
}

// SkillsOfAgent returns the keys of an agent's skills.
func SkillsOfAgent(tx *ledger.Tx, company ledger.CompanyID, agent string) []string {
	a, _ := wantedSkills.Get(tx, company, agent)
	return slices.Clone(a.Keys)
}

func errNoSkill() error { return ledger.Refuse(ledger.NotFound, nil, "Skill not found") }

// maySkill refuses agents that may not change skills.
func maySkill(c *ledger.Context) error {
	if core.IsBoard(c) {
		return nil
	}
	if a, ok := entity.AgentTable.Get(c.Tx, c.Cmd.Company, c.Cmd.Actor.ID); !ok || !a.Permissions.CreateSkills {
		return ledger.Refuse(ledger.Forbidden, nil, "Missing permission: canCreateSkills")
	}
	return nil
}

func (s Skill) with(p SaveSkill) Skill {
	core.Assign(&s.Slug, p.Slug)
	core.Assign(&s.Name, p.Name)
	core.AssignText(&s.Description, p.Description)
	core.AssignText(&s.IconURL, p.IconURL)
	core.AssignText(&s.Color, p.Color)
	core.AssignText(&s.Tagline, p.Tagline)
	core.AssignText(&s.Author, p.Author)
	core.AssignText(&s.Homepage, p.Homepage)
	core.Assign(&s.Scope, p.Scope)
	if p.Categories != nil {
		s.Categories = core.Unique(*p.Categories)
	}
	return s
}

func (s Skill) check(tx *ledger.Tx) error {
	switch {
	case strings.TrimSpace(s.Name) == "" || len(s.Name) > entity.MaxName || len(s.Slug) > entity.MaxName:
		return ledger.Refuse(ledger.Invalid, nil, "A skill needs a name of at most %d bytes", entity.MaxName)
	case s.Slug == "" || s.Slug != core.URLKey(s.Slug):
		return ledger.Refuse(ledger.Invalid, nil, "slug may have small letters, digits and dashes")
	case !slices.Contains(SkillScopes, s.Scope):
		return ledger.Refuse(ledger.Invalid, nil, "Unknown sharing scope: %s", s.Scope)
	case len(s.Description) > entity.MaxText || len(s.Tagline) > 500 || len(s.Color) > 50 || len(s.Categories) > 20 ||
		len(s.IconURL) > 4096 || len(s.Homepage) > 4096 || len(s.Author) > entity.MaxName:
		return ledger.Refuse(ledger.TooLarge, nil, "The skill's fields are too long")
	}
	for _, name := range s.Categories {
		if name == "" || len(name) > entity.MaxName {
			return ledger.Refuse(ledger.Invalid, nil, "A category is a word of at most %d bytes", entity.MaxName)
		}
	}
	for _, other := range SkillRows.All(tx, s.Company) {
		if other.Slug == s.Slug && other.ID != s.ID {
			return ledger.Refuse(ledger.Conflict, nil, "Skill already exists: %s", s.Slug)
		}
	}
	return nil
}

func createSkill(c *ledger.Context, p SaveSkill) (any, error) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	if err := maySkill(c); err != nil {
		return nil, err
	}
	if !core.IsID(p.ID) || !core.IsID(p.Version) || p.Markdown == nil {
		return nil, ledger.Refuse(ledger.Invalid, nil, "A skill has an ID, a version and a text")
	}
	if _, taken := SkillRows.Get(c.Tx, company, p.ID); taken {
		return nil, ledger.Refuse(ledger.Conflict, nil, "ID %s is in use", p.ID)
	}
	if err := core.HasRoom(SkillRows.All(c.Tx, company), MaxSkills, "skills"); err != nil {
		return nil, err
	}
	s := Skill{ID: p.ID, Company: company, Scope: "company", Origin: p.Origin, CreatedAt: now}.with(p)
	if len(p.Origin.Locator)+len(p.Origin.Ref)+len(p.Origin.Type) > 4096 {
		return nil, ledger.Refuse(ledger.TooLarge, nil, "The origin of the skill is too long")
	}
	if err := s.check(c.Tx); err != nil {
		return nil, err
	}
	s, err := putSkillFile(c.Tx, s, SkillFile, *p.Markdown, p.Version)
	if err != nil {
		return nil, err
	}
	s.UpdatedAt = now
	keepVersion(c, s, "", "")
	c.Record(s.change("company.skill_created"))
	return SkillRows.Put(c.Tx, company, s.ID, s), nil
}

func (s Skill) change(action string) ledger.Change {
	return ledger.Change{Action: action, EntityType: "company_skill", EntityID: s.ID, Details: core.Object{}.Str("slug",
		s.Slug).Str("name", s.Name).Close()}
}

func updateSkill(c *ledger.Context, p SaveSkill) (any, error) {
	if err := maySkill(c); err != nil {
		return nil, err
	}
	s, ok := SkillRows.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok {
		return nil, errNoSkill()
	}
	if p.Slug != nil && *p.Slug != s.Slug {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "The slug of a skill stays: agents name it")
	}
	s = s.with(p)
	if err := s.check(c.Tx); err != nil {
		return nil, err
	}
	if p.Markdown != nil {
		var err error
		if s, err = putSkillFile(c.Tx, s, SkillFile, *p.Markdown, p.Version); err != nil {
			return nil, err
		}
		keepVersion(c, s, "", "")
	}
	s.UpdatedAt = core.TimeOf(c.Now)
	c.Record(s.change("company.skill_updated"))
	return SkillRows.Put(c.Tx, s.Company, s.ID, s), nil
}

func deleteSkill(c *ledger.Context, p DeleteSkill) (any, error) {
	if err := maySkill(c); err != nil {
		return nil, err
	}
	s, ok := SkillRows.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok {
		return nil, errNoSkill()
	}
	for _, f := range s.Files {
		c.Delete(skillFileKey(s.Company, s.ID, f.Path))
	}
	for agent, a := range wantedSkills.All(c.Tx, s.Company) {
		if slices.Contains(a.Keys, s.Key()) {
			a.Keys = slices.DeleteFunc(slices.Clone(a.Keys), func(k string) bool { return k == s.Key() })
			wantedSkills.Put(c.Tx, s.Company, agent, a)
		}
	}
	dropVersions(c.Tx, s)
	dropReviews(c.Tx, s)
	SkillRows.Delete(c.Tx, s.Company, s.ID)
	c.Record(s.change("company.skill_deleted"))
	return s, nil
}

// CleanSkillPath returns the path of a file in canonical form. It refuses a path that leads
// out of the skill's folder.
func CleanSkillPath(p string) (string, error) {
	if p == "" || len(p) > maxSkillPath || strings.ContainsAny(p, "\\\x00") || strings.HasPrefix(p, "/") ||
		path.Clean(p) != p || p == "." || p == ".." || strings.HasPrefix(p, "../") {
		return "", ledger.Refuse(ledger.Invalid, nil,
			"Invalid path: expected one within the skill, such as references/api.md")
	}
	return p, nil
}

// KindOfSkillFile returns the kind of a skill's file, by its path.
func KindOfSkillFile(p string) string {
	top, _, below := strings.Cut(p, "/")
	switch {
	case p == SkillFile:
		return "skill"
	case below && top == "references":
		return "reference"
	case below && top == "scripts":
		return "script"
	case below && top == "assets":
		return "asset"
	}
	return "other"
}

func putSkillFile(tx *ledger.Tx, s Skill, at, content, version string) (Skill, error) {
	at, err := CleanSkillPath(at)
	switch {
	case err != nil:
		return s, err
	case !core.IsID(version):
		return s, ledger.Refuse(ledger.Invalid, nil, "A version is a UUID")
	case len(content) > MaxSkillFile:
		return s, ledger.Refuse(ledger.TooLarge, nil, "A file of a skill has at most %d bytes", MaxSkillFile)
	case at == SkillFile && strings.TrimSpace(content) == "":
		return s, ledger.Refuse(ledger.Unprocessable, nil, "%s can not be empty", SkillFile)
	}
	if !slices.ContainsFunc(s.Files, func(f SkillPath) bool { return f.Path == at }) {
		if len(s.Files) >= MaxSkillFiles {
			return s, ledger.Refuse(ledger.Unprocessable, nil, "A skill has at most %d files", MaxSkillFiles)
		}
		s.Files = append(slices.Clone(s.Files), SkillPath{at, KindOfSkillFile(at)})
		slices.SortFunc(s.Files, func(a, b SkillPath) int { return strings.Compare(a.Path, b.Path) })
	}
	tx.Set(skillFileKey(s.Company, s.ID, at), []byte(content))
	s.Version = version
	return s, nil
}

func saveSkillFile(c *ledger.Context, p SaveSkillFile) (any, error) {
	if err := maySkill(c); err != nil {
		return nil, err
	}
	s, ok := SkillRows.Get(c.Tx, c.Cmd.Company, p.Skill)
	if !ok {
		return nil, errNoSkill()
	}
	at, err := CleanSkillPath(p.Path)
	switch {
	case err != nil:
		return nil, err
	case p.Delete != "":
		gone := func(f SkillPath) bool {
			return f.Path == at || p.Delete == "folder" && strings.HasPrefix(f.Path, at+"/")
		}
		switch {
		case at == SkillFile:
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "%s can not be deleted", SkillFile)
		case !core.IsID(p.Version):
			return nil, ledger.Refuse(ledger.Invalid, nil, "A version is a UUID")
		case !slices.ContainsFunc(s.Files, gone):
			return nil, ledger.Refuse(ledger.NotFound, nil, "Skill file not found")
		}
		for _, f := range s.Files {
			if gone(f) {
				c.Delete(skillFileKey(s.Company, s.ID, f.Path))
			}
		}
		s.Files, s.Version = slices.DeleteFunc(slices.Clone(s.Files), gone), p.Version
	default:
		if s, err = putSkillFile(c.Tx, s, at, p.Content, p.Version); err != nil {
			return nil, err
		}
		if at == SkillFile {
			if p.Name != "" {
				s.Name = p.Name
			}
			if p.Description != "" {
				s.Description = core.NullText(p.Description)
			}
			if err := s.check(c.Tx); err != nil {
				return nil, err
			}
		}
	}
	s.UpdatedAt = core.TimeOf(c.Now)
	keepVersion(c, s, "", "")
	c.Record(ledger.Change{Action: "company.skill_file_updated", EntityType: "company_skill", EntityID: s.ID,
		Details: core.Object{}.Str("path", at).Str("slug", s.Slug).Close()})
	return SkillRows.Put(c.Tx, s.Company, s.ID, s), nil
}

func errTooManySkills() error {
	return ledger.Refuse(ledger.Unprocessable, nil, "An agent has at most %d skills", maxAgentSkills)
}

// checkSkillKeys refuses keys of skills that do not exist. With gone it accepts keys of
// skills that the company no longer has.
func checkSkillKeys(c *ledger.Context, keys []string, gone bool) error {
	for _, k := range keys {
		if k == "" || len(k) > entity.MaxName {
			return ledger.Refuse(ledger.Invalid, nil, "A skill's key has at most %d bytes", entity.MaxName)
		}
		if strings.HasPrefix(k, "company/") && !gone {
			if _, ok := SkillOf(c.Tx, c.Cmd.Company, k); !ok {
				return ledger.Refuse(ledger.Unprocessable, nil, "Unknown skill: %s", k)
			}
		}
	}
	return nil
}

// syncSkills sets an agent's skills. The board may set them, and the agent itself.
func syncSkills(c *ledger.Context, p SyncSkills) (any, error) {
	of := c.Cmd.Company
	if _, ok := entity.AgentTable.Get(c.Tx, of, p.Agent); !ok {
		return nil, entity.ErrNoAgent()
	}
	if !core.IsBoard(c) && c.Cmd.Actor.ID != p.Agent {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "Only the board or the agent itself can change its skills")
	}
	if err := checkSkillKeys(c, p.Keys, p.Mode == "remove"); err != nil {
		return nil, err
	}
	have := SkillsOfAgent(c.Tx, of, p.Agent)
	switch p.Mode {
	case "add":
		have = core.Unique(append(have, p.Keys...))
	case "remove":
		have = slices.DeleteFunc(have, func(k string) bool { return slices.Contains(p.Keys, k) })
	case "replace":
		have = core.Unique(p.Keys)
	default:
		return nil, ledger.Refuse(ledger.Invalid, nil, "Unknown mode: %s", p.Mode)
	}
	if len(have) > maxAgentSkills {
		return nil, errTooManySkills()
	}
	wantedSkills.Put(c.Tx, of, p.Agent, agentSkills{have})
	c.Record(ledger.Change{Action: "agent.skills_synced", EntityType: "agent", EntityID: p.Agent,
		Details: core.Object{}.List("desiredSkills", have).Close()})
	return nil, nil
}
