package skill

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/selvage-mesh/selvage/company/core"
)

// A SkillFinding is something suspicious in a skill's files, for whoever decides whether
// agents may use the skill.
type SkillFinding struct {
	Code     string        `json:"code"`
	Severity string        `json:"severity"` // warning or error
	Message  string        `json:"message"`
	Path     core.NullText `json:"path"`
}

// SkillAuditVersion is the version of AuditSkill's rules.
const SkillAuditVersion = "selvage-1"

// maxFindings bounds the findings of one audit.
const maxFindings = 200

// skillSigns are the patterns that are searched for in each line of each file.
var skillSigns = []struct {
	code, severity, message string
	sign                    *regexp.Regexp
}{
	{"pipes_download_to_shell", "error", "Has a download run as it comes",
		regexp.MustCompile(`(?i)\b(curl|wget)\b[^|\n]*\|\s*(sudo\s+)?(ba|z|da)?sh\b`)},
	{"private_key", "error", "Holds a private key", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)},
	{"token", "error", "Holds what looks like a token",
		regexp.MustCompile(
			`\b(pcp_(board_)?[0-9a-f]{40,}|gh[pousr]_[A-Za-z0-9]{36,}|sk-[A-Za-z0-9_-]{32,}|` +
				`AKIA[0-9A-Z]{16}|xox[abprs]-[A-Za-z0-9-]{20,})\b`)},
	{"sends_credentials", "error", "Has an environment or key file sent away",
		regexp.MustCompile(`(?i)\b(env|printenv|cat\s+\S*(\.env|id_[a-z0-9]+|credentials\S*))\b[^\n]*\|\s*(curl|nc|wget)\b`)},
	{"asks_to_ignore_rules", "warning", "Asks its reader to set other instructions aside",
		regexp.MustCompile(
			`(?i)\b(ignore|disregard|forget)\b[^.\n]{0,40}\b(previous|prior|above|other|system)\b` +
				`[^.\n]{0,20}\b(instructions?|rules?|prompts?)\b`)},
	{"hides_from_people", "warning", "Asks that people are not told",
		regexp.MustCompile(
			`(?i)\b(do not|don't|never)\b[^.\n]{0,20}\b(tell|inform|mention)\b` +
				`[^.\n]{0,20}\b(user|human|board|operator|anyone)\b`)},
	{"deletes_recursively", "warning", "Deletes folders with all that is in them",
		regexp.MustCompile(`\brm\s+-[a-zA-Z]*(rf|fr)[a-zA-Z]*\s`)},
	{"raises_privileges", "warning", "Calls for another user's rights", regexp.MustCompile(`(?m)(^|[\s;&|])sudo\s`)},
}

// AuditSkill searches the files of a skill, by path, for suspicious content. It finds
// patterns, not intentions. The verdict is fail if there is an error, else warning if there
// is any finding, else pass.
func AuditSkill(files map[string]string) (verdict string, findings []SkillFinding) {
	findings = []SkillFinding{}
	add := func(code, severity, message, path string) {
		if len(findings) < maxFindings {
			findings = append(findings, SkillFinding{code, severity, message, core.NullText(path)})
		}
	}
	if strings.TrimSpace(files[SkillFile]) == "" {
		add("no_text", "error", "There is no "+SkillFile, SkillFile)
	} else if !strings.HasPrefix(files[SkillFile], "---\n") {
		add("no_front_matter", "warning", SkillFile+" does not begin with its name and description", SkillFile)
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if KindOfSkillFile(path) == "script" {
			add("script", "warning", "A script, which agents may run", path)
		}
		for n, line := range strings.Split(files[path], "\n") {
			at := ", line " + strconv.Itoa(n+1)
			for _, s := range skillSigns {
				if s.sign.MatchString(line) {
					add(s.code, s.severity, s.message+at, path)
				}
			}
			if strings.ContainsFunc(line, unseen) {
				add("invisible_characters", "error", "Has characters that are not seen but are read"+at, path)
			}
		}
	}
	verdict = "pass"
	if len(findings) > 0 {
		verdict = "warning"
	}
	if slices.ContainsFunc(findings, func(f SkillFinding) bool { return f.Severity == "error" }) {
		verdict = "fail"
	}
	return verdict, findings
}

// unseen reports whether a character is invisible or changes how text is displayed: tag
// characters, direction marks, and characters without width.
func unseen(r rune) bool {
	switch {
	case r >= 0xE0000 && r <= 0xE007F, r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069, r == 0x200B, r == 0x2060,
		r == 0xFEFF:
		return true
	}
	return r != '\t' && r != '\r' && unicode.IsControl(r)
}
