package transfer

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/skills"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

// skillsOf returns an agent's skills as a package names them: the company's by slug,
// bundled ones by key.
func (e *exporter) skillsOf(agent string) []string {
	out := []string{}
	for _, key := range skill.SkillsOfAgent(e.tx, e.of.ID, agent) {
		out = append(out, strings.TrimPrefix(key, "company/"+string(e.of.ID)+"/"))
	}
	slices.Sort(out)
	return out
}

// allSkills exports the company's own skills; every node has the bundled ones.
func (e *exporter) allSkills() error {
	if !e.include.Skills && len(e.body.Skills) == 0 {
		return nil
	}
	for _, s := range skill.SkillsOf(e.tx, e.of.ID) {
		if !wanted(e.body.Skills, s.Slug, s.ID, s.Key()) {
			continue
		}
		out := portable.Skill{Key: "company/" + s.Slug, Slug: s.Slug, Name: s.Name, Path: "skills/" + s.Slug + "/" +
			skill.SkillFile, Description: api.Optional(s.Description),
			SourceType: "local_path", Metadata: map[string]any{"sourceKind": "local_path"}, Compatibility: "compatible",
			Inventory: []portable.SkillFile{}, Files: map[string]string{}}
		for _, f := range s.Files {
			text, _ := skill.SkillText(e.tx, s, f.Path)
			out.Files[f.Path] = text
			out.Inventory = append(out.Inventory, portable.SkillFile{Path: f.Path, Kind: f.Kind})
		}
		out.Comments, out.Inputs = e.onSkill(s)
		out.Tests = e.tests(s)
		e.m.Skills = append(e.m.Skills, out)
	}
	return nil
}

// skillSteps create the skills of a package. Assigning them is part of the steps of the
// agents that the import creates or changes.
func (im *importer) skillSteps(rc *api.Request) error {
	keys := map[string]string{} // by slug and by the package's key
	there, texts := map[string]skill.Skill{}, map[string]map[string]string{}
	err := rc.View(func(tx *ledger.Tx) error {
		for _, s := range skill.SkillsOf(tx, im.company.ID) {
			keys[s.Slug], there[s.Slug], texts[s.Slug] = s.Key(), s, map[string]string{}
			for _, f := range s.Files {
				texts[s.Slug][f.Path], _ = skill.SkillText(tx, s, f.Path)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, s := range im.m.Skills {
		name, description := s.Name, Deref(s.Description)
		slug := core.URLKey(s.Slug)
		row := importedRow{Slug: s.Slug, Name: name, Action: "created"}
		_, bundled := skills.Find(slug)
		switch {
		case slug == "" || bundled:
			why := "The program has this skill."
			row.Action, row.Reason = "skipped", &why
			im.done.Skills = append(im.done.Skills, row)
			continue
		case keys[slug] != "" && maps.Equal(s.Files, texts[slug]):
			why := "Existing slug matched; the company's skill is the same."
			row.Action, row.Reason = "skipped", &why
			im.done.Skills = append(im.done.Skills, row)
			keys[s.Key] = keys[slug]
			continue
		case keys[slug] != "":
			action, why := im.collide("slug")
			if row.Reason = why; action == "skip" {
				row.Action = "skipped"
			}
			if old, ok := there[slug]; ok && action == "update" {
				row.ID, row.Action = &old.ID, "updated"
				im.replaceSkill(old, s)
			}
			if action != "create" {
				im.done.Skills = append(im.done.Skills, row)
				keys[s.Key] = keys[slug]
				continue
			}
			base := slug
			for n := 2; keys[slug] != ""; n++ {
				slug = base + "-" + strconv.Itoa(n)
			}
			row.Name = slug
		}
		id, text := im.newID(), s.Files[skill.SkillFile]
		row.ID = &id
		im.done.Skills = append(im.done.Skills, row)
		im.step(skill.KindSkillCreate, skill.SaveSkill{ID: id, Version: im.newID(), Slug: &slug, Name: &name,
			Description: &description, Markdown: &text})
		for _, f := range s.Inventory {
			if f.Path != skill.SkillFile {
				im.step(skill.KindSkillFile, skill.SaveSkillFile{Skill: id, Path: f.Path, Content: s.Files[f.Path],
					Version: im.newID()})
			}
		}
		im.skills[s.Slug] = id
		im.onSkillSteps(id, s)
		keys[slug] = "company/" + string(im.company.ID) + "/" + slug
		keys[s.Key], keys[s.Slug] = keys[slug], keys[slug] // the package's key
	}
	for n, a := range im.m.Agents {
		if im.plan.Agents[n].Action == "skip" || len(a.Skills) == 0 {
			continue
		}
		var want []string
		for _, ref := range a.Skills {
			if _, ok := skills.Find(strings.TrimPrefix(ref, api.BundledKey)); ok {
				want = append(want, api.BundledKey+strings.TrimPrefix(ref, api.BundledKey))
			} else if key := keys[ref]; key != "" {
				want = append(want, key)
			} else {
				im.warn("Agent %s: skill %s is not in the package and was left out.", a.Slug, ref)
			}
		}
		if len(want) > 0 {
			im.step(skill.KindAgentSkills, skill.SyncSkills{Agent: im.agents[a.Slug], Mode: "replace", Keys: want})
		}
	}
	return nil
}

// replaceSkill replaces the files of a company's skill by those of the package.
func (im *importer) replaceSkill(old skill.Skill, s portable.Skill) {
	for _, f := range s.Inventory {
		im.step(skill.KindSkillFile, skill.SaveSkillFile{Skill: old.ID, Path: f.Path, Content: s.Files[f.Path],
			Version: im.newID()})
	}
	for _, f := range old.Files {
		if _, ok := s.Files[f.Path]; !ok && f.Path != skill.SkillFile {
			im.step(skill.KindSkillFile, skill.SaveSkillFile{Skill: old.ID, Path: f.Path, Delete: "file", Version: im.newID()})
		}
	}
}
