package skill

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A SkillVersion is one state of a skill's files. Each change of a file makes a version.
type SkillVersion struct {
	ID           string             `cbor:"1,keyasint" json:"id"`
	Company      ledger.CompanyID   `cbor:"2,keyasint" json:"companyId"`
	Skill        string             `cbor:"3,keyasint" json:"skillId"`
	Number       uint64             `cbor:"4,keyasint" json:"versionNumber"`
	Label        core.NullText      `cbor:"5,keyasint,omitempty" json:"label"`
	Summary      core.NullText      `cbor:"6,keyasint,omitempty" json:"changeSummary"`
	Files        []SkillVersionFile `cbor:"7,keyasint,omitempty" json:"fileInventory"`
	CreatedAgent core.NullText      `cbor:"8,keyasint,omitempty" json:"createdByAgentId"`
	CreatedUser  core.NullText      `cbor:"9,keyasint,omitempty" json:"createdByUserId"`
	CreatedAt    core.Time          `cbor:"10,keyasint" json:"createdAt"`
}

// Clone returns a copy that shares nothing with v.
func (v SkillVersion) Clone() SkillVersion {
	v.Files = slices.Clone(v.Files)
	return v
}

// A SkillVersionFile is a file as it was in a version.
type SkillVersionFile struct {
	Path string `cbor:"1,keyasint" json:"path"`
	Kind string `cbor:"2,keyasint" json:"kind"`
	Sum  string `cbor:"3,keyasint" json:"sha256"`
	Size int    `cbor:"4,keyasint" json:"sizeBytes"`
}

// A SkillOrigin says where the files of a skill came from: the skill from which it was
// forked, or an external source.
type SkillOrigin struct {
	Type    string        `cbor:"1,keyasint,omitempty" json:"sourceType"` // catalog, local_path, github
	Locator string        `cbor:"2,keyasint,omitempty" json:"sourceLocator"`
	Ref     core.NullText `cbor:"3,keyasint,omitempty" json:"sourceRef"`
	Skill   string        `cbor:"4,keyasint,omitempty" json:"-"` // ID of the skill from which it was forked
	Hash    string        `cbor:"5,keyasint,omitempty" json:"-"` // hash of that skill's files when they were copied
}

// KeptSkillVersions bounds the versions of one skill. Beyond it, the oldest is deleted.
const KeptSkillVersions = 20

// maxVersionLabel bounds label and summary of a version, in bytes.
const maxVersionLabel = 2_000

// Versions are keyed by <skill>.<number>. The texts of all kept versions of a skill are
// stored once each, by their hash:
//
//	skill-version/<skill>.<number>
//	skill-text/<skill>.<sha256>
var skillVersions = ledger.NewTable[string, SkillVersion]("skill-version")

func skillTextKey(company ledger.CompanyID, skill, sum string) []byte {
	return ledger.Key("c", string(company), "skill-text", skill+"."+sum)
}

// VersionSkill is the payload of skill.version, which names the current state of the files.
type VersionSkill struct {
	Skill   string `cbor:"1,keyasint"`
	ID      string `cbor:"2,keyasint"`
	Label   string `cbor:"3,keyasint,omitempty"`
	Summary string `cbor:"4,keyasint,omitempty"`
}

// ForkSkill is the payload of skill.fork, which makes a new skill with the files of another
// one of the company. If Source names a skill of the program, its files are in Text.
type ForkSkill struct {
	ID      string `cbor:"1,keyasint"`
	Version string `cbor:"2,keyasint"`
	Source  string `cbor:"3,keyasint"`
	Slug    string `cbor:"4,keyasint"`
	Name    string `cbor:"5,keyasint"`
	About   string `cbor:"6,keyasint,omitempty"`
	Text    string `cbor:"7,keyasint,omitempty"`
}

// ResetSkill is the payload of skill.reset, which sets the files to those of an older
// version. Without a version it sets them to those of the skill from which it was forked; if
// that is a skill of the program, its files are in Text.
type ResetSkill struct {
	Skill   string `cbor:"1,keyasint"`
	To      string `cbor:"2,keyasint,omitempty"`
	Version string `cbor:"3,keyasint"`
	Text    string `cbor:"4,keyasint,omitempty"`
}

// RenameSkill is the payload of skill.rename. Agents that have the skill keep it under its
// new slug.
type RenameSkill struct {
	Skill string `cbor:"1,keyasint"`
	Name  string `cbor:"2,keyasint"`
	Slug  string `cbor:"3,keyasint,omitempty"`
}

// StarSkill is the payload of skill.star, by which a user stars a skill or removes the star.
type StarSkill struct {
	Skill string `cbor:"1,keyasint"`
	Star  bool   `cbor:"2,keyasint,omitempty"`
}

const (
	KindSkillVersion = "skill.version"
	KindSkillFork    = "skill.fork"
	KindSkillReset   = "skill.reset"
	KindSkillRename  = "skill.rename"
	KindSkillStar    = "skill.star"
)

var skillVersionKinds = []company.Kind{
	{Name: KindSkillVersion, From: company.FromBoard | company.FromAgent, Needs: entity.CreateSkills,
		Weight: company.Weights.Skilling, Do: ledger.Typed(versionSkill)},
	{Name: KindSkillFork, From: company.FromBoard | company.FromAgent, Needs: entity.CreateSkills,
		Weight: company.Weights.Skilling, Do: ledger.Typed(forkSkill)},
	{Name: KindSkillReset, From: company.FromBoard | company.FromAgent, Needs: entity.CreateSkills,
		Weight: company.Weights.Skilling, Do: ledger.Typed(resetSkill)},
	{Name: KindSkillRename, From: company.FromBoard | company.FromAgent, Needs: entity.CreateSkills,
		Weight: company.Weights.Skilling, Do: ledger.Typed(renameSkill)},
	{Name: KindSkillStar, From: company.FromBoard, Weight: company.Weights.Marks, Do: ledger.Typed(starSkill)},
}

func textSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// SkillVersionsOf returns the kept versions of a skill, newest first.
func SkillVersionsOf(tx *ledger.Tx, s Skill) []SkillVersion {
	out := []SkillVersion{}
	from := skillVersions.Key(s.Company, s.ID+".")
	for _, v := range tx.Scan(from, ledger.PrefixEnd(from), true) {
		out = append(out, core.DecodeRow[SkillVersion](v))
	}
	return out
}

// SkillVersionText returns a file of a version.
func SkillVersionText(tx *ledger.Tx, v SkillVersion, f SkillVersionFile) string {
	b, _ := tx.Get(skillTextKey(v.Company, v.Skill, f.Sum))
	return string(b)
}

// HashOfSkill is the SHA-256 of the paths and texts of a skill's files.
func HashOfSkill(tx *ledger.Tx, s Skill) string {
	files := map[string]string{}
	for _, f := range s.Files {
		files[f.Path], _ = SkillText(tx, s, f.Path)
	}
	return HashOfFiles(files)
}

// HashOfFiles is the same hash for files by their paths.
func HashOfFiles(files map[string]string) string {
	h := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(files)) {
		for _, part := range []string{path, files[path]} {
			h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// keepVersion stores the files of s as version s.Version.
func keepVersion(c *ledger.Context, s Skill, label, summary string) {
	kept := SkillVersionsOf(c.Tx, s)
	v := SkillVersion{ID: s.Version, Company: s.Company, Skill: s.ID, Number: 1, Label: core.NullText(label),
		Summary: core.NullText(summary), CreatedAt: core.TimeOf(c.Now)}
	v.CreatedAgent, v.CreatedUser = core.ActedBy(c)
	if len(kept) > 0 {
		v.Number = kept[0].Number + 1
	}
	for _, f := range s.Files {
		text, _ := SkillText(c.Tx, s, f.Path)
		sum := textSum(text)
		if key := skillTextKey(s.Company, s.ID, sum); !c.Has(key) {
			c.Set(key, []byte(text))
		}
		v.Files = append(v.Files, SkillVersionFile{f.Path, f.Kind, sum, len(text)})
	}
	skillVersions.Put(c.Tx, s.Company, s.ID+"."+ledger.Order(v.Number), v)
	if len(kept) < KeptSkillVersions {
		return
	}
	used := map[string]bool{}
	for _, o := range append([]SkillVersion{v}, kept[:KeptSkillVersions-1]...) {
		for _, f := range o.Files {
			used[f.Sum] = true
		}
	}
	for _, o := range kept[KeptSkillVersions-1:] {
		for _, f := range o.Files {
			if !used[f.Sum] {
				c.Delete(skillTextKey(s.Company, s.ID, f.Sum))
			}
		}
		skillVersions.Delete(c.Tx, s.Company, s.ID+"."+ledger.Order(o.Number))
	}
}

// dropVersions deletes the versions of a skill that is deleted.
func dropVersions(tx *ledger.Tx, s Skill) {
	for _, prefix := range [][]byte{skillVersions.Key(s.Company, s.ID+"."), skillTextKey(s.Company, s.ID, ""),
		starKey(s.Company, s.ID, "")} {
		for k := range tx.Prefix(prefix) {
			tx.Delete(slices.Clone(k))
		}
	}
}

func versionSkill(c *ledger.Context, p VersionSkill) (any, error) {
	s, err := changedSkill(c, p.Skill)
	switch {
	case err != nil:
		return nil, err
	case !core.IsID(p.ID):
		return nil, ledger.Refuse(ledger.Invalid, nil, "A version is a UUID")
	case len(p.Label)+len(p.Summary) > maxVersionLabel:
		return nil, ledger.Refuse(ledger.TooLarge, nil, "Label and summary of a version have at most %d bytes",
			maxVersionLabel)
	}
	s.Version, s.UpdatedAt = p.ID, core.TimeOf(c.Now)
	keepVersion(c, s, p.Label, p.Summary)
	c.Record(s.change("company.skill_version_created"))
	return SkillRows.Put(c.Tx, s.Company, s.ID, s), nil
}

// changedSkill returns a skill that the actor may change.
func changedSkill(c *ledger.Context, id string) (Skill, error) {
	if err := maySkill(c); err != nil {
		return Skill{}, err
	}
	s, ok := SkillRows.Get(c.Tx, c.Cmd.Company, id)
	if !ok {
		return s, errNoSkill()
	}
	return s, nil
}

// setFiles replaces the files of s by files.
func setFiles(c *ledger.Context, s Skill, files map[string]string, version string) (Skill, error) {
	if strings.TrimSpace(files[SkillFile]) == "" {
		return s, ledger.Refuse(ledger.Unprocessable, nil, "%s can not be empty", SkillFile)
	}
	for _, f := range s.Files {
		if _, keep := files[f.Path]; !keep {
			c.Delete(skillFileKey(s.Company, s.ID, f.Path))
		}
	}
	s.Files = nil
	for _, path := range slices.Sorted(maps.Keys(files)) {
		var err error
		if s, err = putSkillFile(c.Tx, s, path, files[path], version); err != nil {
			return s, err
		}
	}
	return s, nil
}

// filesFrom returns the files of the skill from which another one is made.
func filesFrom(c *ledger.Context, source, text string) (map[string]string, error) {
	if text != "" {
		return map[string]string{SkillFile: text}, nil
	}
	from, ok := SkillRows.Get(c.Tx, c.Cmd.Company, source)
	if !ok {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "The skill that this one was made from is gone")
	}
	files := map[string]string{}
	for _, f := range from.Files {
		files[f.Path], _ = SkillText(c.Tx, from, f.Path)
	}
	return files, nil
}

func forkSkill(c *ledger.Context, p ForkSkill) (any, error) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	if err := maySkill(c); err != nil {
		return nil, err
	}
	if !core.IsID(p.ID) || !core.IsID(p.Version) || !core.IsID(p.Source) {
		return nil, ledger.Refuse(ledger.Invalid, nil, "A skill has an ID, a version and a source")
	}
	if _, taken := SkillRows.Get(c.Tx, company, p.ID); taken {
		return nil, ledger.Refuse(ledger.Conflict, nil, "ID %s is in use", p.ID)
	}
	if err := core.HasRoom(SkillRows.All(c.Tx, company), MaxSkills, "skills"); err != nil {
		return nil, err
	}
	files, err := filesFrom(c, p.Source, p.Text)
	if err != nil {
		return nil, err
	}
	s := Skill{ID: p.ID, Company: company, Slug: p.Slug, Name: p.Name, Description: core.NullText(p.About),
		Scope: "company", CreatedAt: now, UpdatedAt: now,
		Origin: SkillOrigin{Skill: p.Source, Hash: HashOfFiles(files)}}
	if err := s.check(c.Tx); err != nil {
		return nil, err
	}
	if s, err = setFiles(c, s, files, p.Version); err != nil {
		return nil, err
	}
	keepVersion(c, s, "", "")
	c.Record(s.change("company.skill_forked"))
	return SkillRows.Put(c.Tx, company, s.ID, s), nil
}

func resetSkill(c *ledger.Context, p ResetSkill) (any, error) {
	s, err := changedSkill(c, p.Skill)
	if err != nil {
		return nil, err
	}
	if !core.IsID(p.Version) {
		return nil, ledger.Refuse(ledger.Invalid, nil, "A version is a UUID")
	}
	files := map[string]string{}
	switch {
	case p.To != "":
		list := SkillVersionsOf(c.Tx, s)
		at := slices.IndexFunc(list, func(v SkillVersion) bool { return v.ID == p.To })
		if at < 0 {
			return nil, ledger.Refuse(ledger.NotFound, nil, "Skill version not found")
		}
		for _, f := range list[at].Files {
			files[f.Path] = SkillVersionText(c.Tx, list[at], f)
		}
	case s.Origin.Skill == "":
		return nil, ledger.Refuse(ledger.Unprocessable, nil,
			"The skill was not made from another one; name a version to go back to")
	default:
		if files, err = filesFrom(c, s.Origin.Skill, p.Text); err != nil {
			return nil, err
		}
		s.Origin.Hash = HashOfFiles(files)
	}
	if s, err = setFiles(c, s, files, p.Version); err != nil {
		return nil, err
	}
	s.UpdatedAt = core.TimeOf(c.Now)
	keepVersion(c, s, "", "")
	c.Record(s.change("company.skill_reset"))
	return SkillRows.Put(c.Tx, s.Company, s.ID, s), nil
}

func renameSkill(c *ledger.Context, p RenameSkill) (any, error) {
	s, err := changedSkill(c, p.Skill)
	if err != nil {
		return nil, err
	}
	was := s.Key()
	s.Name, s.Slug, s.UpdatedAt = p.Name, cmp.Or(p.Slug, s.Slug), core.TimeOf(c.Now)
	if err := s.check(c.Tx); err != nil {
		return nil, err
	}
	if s.Key() != was {
		for agent, a := range wantedSkills.All(c.Tx, s.Company) {
			if at := slices.Index(a.Keys, was); at >= 0 {
				a = a.Clone()
				a.Keys[at] = s.Key()
				wantedSkills.Put(c.Tx, s.Company, agent, a)
			}
		}
	}
	c.Record(s.change("company.skill_renamed"))
	return SkillRows.Put(c.Tx, s.Company, s.ID, s), nil
}

func starKey(company ledger.CompanyID, skill, user string) []byte {
	return ledger.Key("c", string(company), "skill-star", skill+"."+user)
}

// maxSkillStars bounds the users who star one skill; they are counted whenever it is shown.
const maxSkillStars = 1_000

// StarsOfSkill returns how many users star a skill.
func StarsOfSkill(tx *ledger.Tx, s Skill) (n int) {
	for range tx.Prefix(starKey(s.Company, s.ID, "")) {
		n++
	}
	return n
}

func starSkill(c *ledger.Context, p StarSkill) (any, error) {
	s, ok := SkillRows.Get(c.Tx, c.Cmd.Company, p.Skill)
	if !ok {
		return nil, errNoSkill()
	}
	key := starKey(s.Company, s.ID, core.HashedUser(c.Cmd.Actor.ID))
	if c.Has(key) == p.Star {
		return s, nil
	}
	if !p.Star {
		c.Delete(key)
		c.Record(s.change("company.skill_unstarred"))
		return s, nil
	}
	if StarsOfSkill(c.Tx, s) >= maxSkillStars {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "A skill has at most %d stars", maxSkillStars)
	}
	c.Set(key, nil)
	c.Record(s.change("company.skill_starred"))
	return s, nil
}
