package agents

import (
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/skills"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

// The bodies about versions and forks of skills.
type (
	skillVersionBody struct {
		Label   api.Opt[string] `json:"label" maxLength:"200"`
		Summary api.Opt[string] `json:"changeSummary" maxLength:"1000" maxBytes:"2000"`
	}
	skillForkBody struct {
		Name api.Opt[string] `json:"name" minLength:"1" maxLength:"200" maxBytes:"500" pattern:"^[^\\r\\n]+$"`
		Slug api.Opt[string] `json:"slug" minLength:"1" maxLength:"200" maxBytes:"500"`
	}
	skillResetBody struct {
		Version api.Opt[string] `json:"versionId" format:"uuid"`
	}
	skillRenameBody struct {
		Name string          `json:"name" minLength:"1" maxLength:"200" maxBytes:"500" pattern:"^[^\\r\\n]+$"`
		Slug api.Opt[string] `json:"slug" minLength:"1" maxLength:"200" maxBytes:"500"`
	}
	installCatalogBody struct {
		Catalog string          `json:"catalogSkillId" minLength:"1" maxLength:"200"`
		Slug    api.Opt[string] `json:"slug" minLength:"1" maxLength:"200"`
	}
)

// A shownSkillVersion is a version with its files.
type shownSkillVersion struct {
	skill.SkillVersion
	Files []skillVersionFile `json:"files"`
}

type skillVersionFile struct {
	skill.SkillVersionFile
	Content string `json:"content"`
}

type forkPrecheck struct {
	Skill     string      `json:"skillId"`
	Name      string      `json:"suggestedName"`
	Slug      string      `json:"suggestedSlug"`
	Available bool        `json:"slugAvailable"`
	UsedBy    []skillUser `json:"usedByAgents"`
	Forks     []string    `json:"existingForkIds"`
}

// An updateStatus says whether the origin of a forked skill has changed.
type updateStatus struct {
	Skill     string  `json:"skillId"`
	Supported bool    `json:"supported"`
	Reason    *string `json:"reason"`
	HasUpdate bool    `json:"hasUpdate"`
	Changed   bool    `json:"locallyModified"`
	Source    *string `json:"sourceSkillId"`
	Current   *string `json:"currentRef"`
	Latest    *string `json:"latestRef"`
}

type skillRenamed struct {
	Skill skillDetail `json:"skill"`
}

func SkillVersionRoutes() []api.Route {
	const tag, one = "skills", "/api/companies/{companyId}/skills/{skillId}"
	star := func(on bool) func(*api.Request) (api.Response, error) {
		return func(rc *api.Request) (api.Response, error) {
			row, err := ownSkill(rc)
			if err != nil {
				return api.Response{}, err
			}
			return doSkill(rc, skill.KindSkillStar, skill.StarSkill{Skill: row.ID, Star: on})
		}
	}
	return []api.Route{
		api.Show(api.Route{Path: one + "/versions", Tag: tag, Summary: "List the versions of a skill, newest first"},
			pathSkill, unlessBundled(skill.SkillVersionsOf)),
		{Method: "POST", Path: one + "/versions", Tag: tag, Summary: "Keep a skill as it is as a version with a name",
			In: skillVersionBody{}, Out: shownSkillVersion{}, Handle: newSkillVersion},
		{Method: "GET", Path: one + "/versions/{versionId}", Tag: tag, Summary: "Read a version of a skill with its files",
			Out: shownSkillVersion{}, Handle: readSkillVersion},
		{Method: "GET", Path: one + "/fork-precheck", Tag: tag, Summary: "Tell what a fork of a skill would be called",
			Out: forkPrecheck{}, Handle: precheckFork},
		{Method: "POST", Path: one + "/fork", Tag: tag, Summary: "Make a skill of one's own from another",
			In: skillForkBody{}, Out: skillDetail{}, Handle: forkSkill},
		{Method: "POST", Path: one + "/reset", Tag: tag,
			Summary: "Take a skill back to a version, or to what it was forked from", In: skillResetBody{}, Out: skillDetail{},
			Handle: resetSkill},
		{Method: "GET", Path: one + "/update-status", Tag: tag,
			Summary: "Tell whether what a skill was forked from has changed", Out: updateStatus{}, Handle: skillUpdateStatus},
		{Method: "POST", Path: one + "/install-update", Tag: tag,
			Summary: "Take over what has changed in the skill that this one was forked from", Out: skillDetail{},
			Handle: installSkillUpdate},
		{Method: "POST", Path: one + "/rename", Tag: tag, Summary: "Give a skill another name", In: skillRenameBody{},
			Out: skillRenamed{}, Handle: renameSkill},
		{Method: "POST", Path: one + "/star", Tag: tag, Summary: "Star a skill", Who: api.Board, Out: skillDetail{},
			Handle: star(true)},
		{Method: "DELETE", Path: one + "/star", Tag: tag, Summary: "Take one's star from a skill", Who: api.Board,
			Out: skillDetail{}, Handle: star(false)},
		{Method: "POST", Path: "/api/companies/{companyId}/skills/install-catalog", Tag: tag,
			Summary: "Bring a skill of the catalog into a company; the program's own are in every company",
			In:      installCatalogBody{}, Out: skillDetail{}, Handle: installCatalog},
	}
}

// pathSkill returns the skill that the path names.
func pathSkill(tx *ledger.Tx, rc *api.Request) (skillRow, error) {
	of, err := api.CompanyIn(tx, rc)
	if err != nil {
		return skillRow{}, err
	}
	return skillIn(tx, of, rc.Path("skillId"))
}

// viewSkill answers the result of f for the skill that the path names.
func viewSkill(rc *api.Request,
	f func(tx *ledger.Tx, of entity.Company, row skillRow) (any, error)) (api.Response, error) {
	return api.Viewed(rc, func(tx *ledger.Tx) (any, error) {
		of, err := api.CompanyIn(tx, rc)
		if err != nil {
			return nil, err
		}
		row, err := skillIn(tx, of, rc.Path("skillId"))
		if err != nil {
			return nil, err
		}
		return f(tx, of, row)
	})
}

func readSkillVersion(rc *api.Request) (api.Response, error) {
	return skillVersionAt(rc, strings.ToLower(rc.Path("versionId")))
}

func skillVersionAt(rc *api.Request, id string) (api.Response, error) {
	return viewSkill(rc, func(tx *ledger.Tx, _ entity.Company, row skillRow) (any, error) {
		for _, v := range skill.SkillVersionsOf(tx, row.Skill) {
			if v.ID != id {
				continue
			}
			out := shownSkillVersion{SkillVersion: v, Files: []skillVersionFile{}}
			for _, f := range v.Files {
				out.Files = append(out.Files, skillVersionFile{f, skill.SkillVersionText(tx, v, f)})
			}
			return out, nil
		}
		return nil, api.NotFound("Skill version not found")
	})
}

func newSkillVersion(rc *api.Request) (api.Response, error) {
	in, err := api.Body[skillVersionBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	row, err := ownSkill(rc)
	if err != nil {
		return api.Response{}, err
	}
	p := skill.VersionSkill{Skill: row.ID, ID: api.NewID(), Label: in.Label.Or(""), Summary: in.Summary.Or("")}
	if _, err := api.Do[skill.Skill](rc, skill.KindSkillVersion, api.CompanyID(rc), p); err != nil {
		return api.Response{}, err
	}
	return skillVersionAt(rc, p.ID)
}

// slugTaken reports whether a skill of the company or a bundled skill has the slug.
func slugTaken(tx *ledger.Tx, of ledger.CompanyID, slug string) bool {
	if _, taken := skills.Find(slug); taken {
		return true
	}
	for _, s := range skill.SkillsOf(tx, of) {
		if s.Slug == slug {
			return true
		}
	}
	return false
}

// freeSlug returns the first unused of slug, slug-fork, slug-fork-2 and so on.
func freeSlug(tx *ledger.Tx, of ledger.CompanyID, slug string) string {
	free := slug
	for n := 1; slugTaken(tx, of, free) && n <= skill.MaxSkills+1; n++ {
		free = slug + "-fork"
		if n > 1 {
			free += "-" + strconv.Itoa(n)
		}
	}
	return free
}

func precheckFork(rc *api.Request) (api.Response, error) {
	return viewSkill(rc, func(tx *ledger.Tx, of entity.Company, row skillRow) (any, error) {
		out := forkPrecheck{Skill: row.ID, Name: row.Name, Slug: freeSlug(tx, of.ID, row.Slug), Available: true,
			UsedBy: []skillUser{}, Forks: []string{}}
		if users := usersOf(tx, of.ID)[row.Key]; users != nil {
			out.UsedBy = users
		}
		for _, s := range skill.SkillsOf(tx, of.ID) {
			if s.Origin.Skill == row.ID {
				out.Forks = append(out.Forks, s.ID)
			}
		}
		return out, nil
	})
}

func forkSkill(rc *api.Request) (api.Response, error) {
	in, err := api.Body[skillForkBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	var p skill.ForkSkill
	err = api.InCompany(rc, func(tx *ledger.Tx, of entity.Company) error {
		row, err := skillIn(tx, of, rc.Path("skillId"))
		if err != nil {
			return err
		}
		slug := in.Slug.Or("")
		switch {
		case slug == "" && in.Name.Or("") != "":
			slug = freeSlug(tx, of.ID, core.URLKey(in.Name.Value))
		case slug == "":
			slug = freeSlug(tx, of.ID, row.Slug)
		case slugTaken(tx, of.ID, slug):
			return api.Conflict("Skill already exists: "+api.Cut(slug, 200), nil)
		}
		p = skill.ForkSkill{ID: api.NewID(), Version: api.NewID(), Source: row.ID, Slug: slug, Name: in.Name.Or(row.Name),
			About: string(row.Description), Text: row.bundledContent}
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	return doSkill(rc, skill.KindSkillFork, p)
}

// originText returns the text of the bundled skill that a skill was forked from, "" if
// it was forked from another skill.
func originText(of entity.Company, s skill.Skill) string {
	for _, b := range skills.Bundled() {
		if row := bundledIn(of, b); row.ID == s.Origin.Skill {
			return row.bundledContent
		}
	}
	return ""
}

func skillStatus(tx *ledger.Tx, of entity.Company, row skillRow) updateStatus {
	out := updateStatus{Skill: row.ID}
	s := row.Skill
	if row.bundled() || s.Origin.Skill == "" {
		out.Reason = new("The skill was not made from another one.")
		return out
	}
	latest := ""
	if text := originText(of, s); text != "" {
		latest = skill.HashOfFiles(map[string]string{skill.SkillFile: text})
	} else if from, ok := skill.SkillOf(tx, of.ID, s.Origin.Skill); ok {
		latest = skill.HashOfSkill(tx, from)
	} else {
		out.Reason = new("The skill that this one was made from is gone.")
		return out
	}
	out.Supported, out.Source, out.Current, out.Latest = true, &s.Origin.Skill, &s.Origin.Hash, &latest
	out.HasUpdate, out.Changed = latest != s.Origin.Hash, skill.HashOfSkill(tx, s) != s.Origin.Hash
	return out
}

func skillUpdateStatus(rc *api.Request) (api.Response, error) {
	return viewSkill(rc, func(tx *ledger.Tx, of entity.Company, row skillRow) (any, error) {
		return skillStatus(tx, of, row), nil
	})
}

// toReset returns the command that resets the skill of the path to its origin.
func toReset(rc *api.Request) (p skill.ResetSkill, status updateStatus, err error) {
	row, err := ownSkill(rc)
	if err != nil {
		return p, status, err
	}
	err = api.InCompany(rc, func(tx *ledger.Tx, of entity.Company) error {
		p = skill.ResetSkill{Skill: row.ID, Version: api.NewID(), Text: originText(of, row.Skill)}
		status = skillStatus(tx, of, row)
		return nil
	})
	return p, status, err
}

func resetSkill(rc *api.Request) (api.Response, error) {
	in, err := api.Body[skillResetBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	p, _, err := toReset(rc)
	if err != nil {
		return api.Response{}, err
	}
	p.To = api.BodyID(in.Version)
	return doSkill(rc, skill.KindSkillReset, p)
}

func installSkillUpdate(rc *api.Request) (api.Response, error) {
	p, status, err := toReset(rc)
	switch {
	case err != nil:
		return api.Response{}, err
	case !status.Supported:
		return api.Response{}, api.Unprocessable(*status.Reason, nil)
	case !status.HasUpdate:
		return api.Response{}, api.Conflict("The skill is up to date", nil)
	}
	return doSkill(rc, skill.KindSkillReset, p)
}

func renameSkill(rc *api.Request) (r api.Response, err error) {
	in, err := api.Body[skillRenameBody](rc)
	if err != nil {
		return r, err
	}
	row, err := ownSkill(rc)
	if err != nil {
		return r, err
	}
	if slug := in.Slug.Or(""); slug != "" && slug != row.Slug {
		if _, taken := skills.Find(slug); taken {
			return r, api.Conflict("Skill already exists: "+api.Cut(slug, 200), nil)
		}
	}
	s, err := api.Do[skill.Skill](rc, skill.KindSkillRename, api.CompanyID(rc), skill.RenameSkill{Skill: row.ID,
		Name: in.Name, Slug: in.Slug.Or("")})
	if err != nil {
		return r, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		r = api.OK(skillRenamed{showSkill(s).detail(tx)})
		return nil
	})
	return r, err
}

func installCatalog(rc *api.Request) (api.Response, error) {
	in, err := api.Body[installCatalogBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	b, ok := skills.Find(strings.TrimPrefix(in.Catalog, "selvage:bundled:core:"))
	if !ok {
		return api.Response{}, api.NotFound("Catalog skill not found")
	}
	var r api.Response
	var p skill.ForkSkill
	err = api.InCompany(rc, func(tx *ledger.Tx, of entity.Company) error {
		row := bundledIn(of, b)
		slug := in.Slug.Or(row.Slug)
		if slug == row.Slug { // the bundled skill is already there
			r = api.OK(row.detail(tx))
			return nil
		}
		if slugTaken(tx, of.ID, slug) {
			return api.Conflict("Skill already exists: "+api.Cut(slug, 200), nil)
		}
		p = skill.ForkSkill{ID: api.NewID(), Version: api.NewID(), Source: row.ID, Slug: slug, Name: row.Name,
			About: string(row.Description), Text: row.bundledContent}
		return nil
	})
	if err != nil || p.ID == "" {
		return r, err
	}
	return doSkill(rc, skill.KindSkillFork, p)
}
