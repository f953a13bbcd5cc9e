package companytest

import (
	"testing"

	"github.com/selvage-mesh/selvage/company/skill"
)

func (d *Desk) Skill(t testing.TB, slug string) skill.Skill {
	t.Helper()
	text := "---\nname: " + slug + "\n---\n"
	var s skill.Skill
	d.Must(t, Board, "skill.create", skill.SaveSkill{ID: d.ID(), Version: d.ID(), Slug: &slug, Name: &slug,
		Markdown: &text}, &s)
	return s
}
