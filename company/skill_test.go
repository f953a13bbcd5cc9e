package company

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

func (d *desk) skill(t testing.TB, slug string) Skill {
	t.Helper()
	text := "---\nname: " + slug + "\n---\n"
	var s Skill
	d.must(t, board, "skill.create", SaveSkill{ID: d.id(), Version: d.id(), Slug: &slug, Name: &slug, Markdown: &text}, &s)
	return s
}

func TestSkillFilesStayWithinTheirSkill(t *testing.T) {
	t.Parallel()
	for path, ok := range map[string]bool{"SKILL.md": true, "references/api.md": true, "a b.txt": true, "": false, ".": false, "..": false, "../x": false,
		"/x": false, "a/../b": false, "a//b": false, "a/": false, `a\b`: false, "a\x00b": false, strings.Repeat("x", maxSkillPath+1): false} {
		if _, err := CleanSkillPath(path); (err == nil) != ok {
			t.Errorf("CleanSkillPath(%q): %v", path, err)
		}
	}
}

func TestSkillsAreBoundedAndLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.skill(t, "weld")
	for i := range MaxSkillFiles - 1 {
		d.must(t, board, "skill.file", SaveSkillFile{Skill: s.ID, Path: "references/" + strings.Repeat("x", i+1), Content: "x", Version: d.id()}, nil)
	}
	wantRefusal(t, d.do(board, "skill.file", SaveSkillFile{Skill: s.ID, Path: "one-more", Version: d.id()}, nil), ledger.Unprocessable, "A skill has at most 64 files")
	wantRefusal(t, d.do(board, "skill.file", SaveSkillFile{Skill: s.ID, Path: "SKILL.md", Content: strings.Repeat("x", MaxSkillFile+1), Version: d.id()}, nil), ledger.TooLarge, "")
	slug := "other"
	wantRefusal(t, d.do(board, "skill.update", SaveSkill{ID: s.ID, Slug: &slug}, nil), ledger.Unprocessable, "The slug of a skill stays: agents name it")
	d.must(t, board, "skill.delete", DeleteSkill{ID: s.ID}, nil)
	for k := range d.tx.Prefix(ledger.Key("c", d.company, "skill-file", "")) {
		t.Errorf("%q is left of a deleted skill", k)
	}
	if len(SkillsOf(d.tx, d.company)) != 0 {
		t.Error("the skill is still listed")
	}
}
