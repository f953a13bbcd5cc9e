package skill_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestSkillFilesStayWithinTheirSkill(t *testing.T) {
	t.Parallel()
	for path, ok := range map[string]bool{"SKILL.md": true, "references/api.md": true, "a b.txt": true, "": false,
		".": false, "..": false, "../x": false,
		"/x": false, "a/../b": false, "a//b": false, "a/": false, `a\b`: false, "a\x00b": false,
		strings.Repeat("x", skill.MaxSkillPath+1): false} {
		if _, err := skill.CleanSkillPath(path); (err == nil) != ok {
			t.Errorf("CleanSkillPath(%q): %v", path, err)
		}
	}
}

func TestSkillsAreBoundedAndLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	s := d.Skill(t, "weld")
	for i := range skill.MaxSkillFiles - 1 {
		d.Must(t, companytest.Board, "skill.file", skill.SaveSkillFile{Skill: s.ID, Path: "references/" +
			strings.Repeat("x", i+1), Content: "x", Version: d.ID()}, nil)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "skill.file", skill.SaveSkillFile{Skill: s.ID, Path: "one-more",
		Version: d.ID()}, nil), ledger.Unprocessable, "A skill has at most 64 files")
	companytest.WantRefusal(t, d.Do(companytest.Board, "skill.file", skill.SaveSkillFile{Skill: s.ID, Path: "SKILL.md",
		Content: strings.Repeat("x", skill.MaxSkillFile+1), Version: d.ID()}, nil), ledger.TooLarge,
		"A file of a skill has at most 131072 bytes")
	slug := "other"
	companytest.WantRefusal(t, d.Do(companytest.Board, "skill.update", skill.SaveSkill{ID: s.ID, Slug: &slug}, nil),
		ledger.Unprocessable, "The slug of a skill stays: agents name it")
	d.Must(t, companytest.Board, "skill.delete", skill.DeleteSkill{ID: s.ID}, nil)
	for k := range d.Tx.Prefix(ledger.Key("c", string(d.Company), "skill-file", "")) {
		t.Errorf("%q is left of a deleted skill", k)
	}
	if len(skill.SkillsOf(d.Tx, d.Company)) != 0 {
		t.Error("the skill is still listed")
	}
}
