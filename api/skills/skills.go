// Package skills holds the skills that come with the program: texts that teach an agent
// how to work with the API, each a SKILL.md with a name and a description in its front
// matter.
package skills

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

//go:embed setup.md */SKILL.md
var files embed.FS

// A Skill is one text for agents.
type Skill struct {
	Name        string
	Description string
	Markdown    string // with its front matter
	Roles, Tags []string
}

// order is the order of lists, with what every agent needs first. Each skill has the
// roles that it is for and words for searches.
var order = []Skill{
	{Name: "paperclip", Roles: []string{"general"}, Tags: []string{"api", "issues", "heartbeat"}},
	{Name: "para-memory-files", Roles: []string{"general"}, Tags: []string{"memory", "files"}},
	{Name: "paperclip-create-agent", Roles: []string{"ceo", "cto", "pm"}, Tags: []string{"hiring", "adapters"}},
	{Name: "paperclip-converting-plans-to-tasks", Roles: []string{"ceo", "pm"}, Tags: []string{"planning", "issues"}},
	{Name: "paperclip-board", Roles: []string{"general"}, Tags: []string{"board", "approvals", "budgets"}},
	{Name: "paperclip-create-plugin", Roles: []string{"engineer"}, Tags: []string{"plugins"}},
	{Name: "paperclip-dev", Roles: []string{"engineer", "devops"}, Tags: []string{"mesh", "api", "operations"}},
	{Name: "agentmail", Roles: []string{"general"}, Tags: []string{"mail"}},
}

var bundled = load()

// load reads the embedded texts. Their common beginning is in setup.md. It panics on a
// malformed text.
func load() []Skill {
	setup := read("setup.md")
	all := make([]Skill, 0, len(order))
	for _, s := range order {
		s.Markdown = strings.Replace(read(s.Name+"/SKILL.md"), "{{setup}}\n", setup+"\n", 1)
		name, description := FrontMatter(s.Markdown)
		if s.Description = description; s.Name != name || description == "" {
			panic(fmt.Sprintf("skills: front matter of %s names %q", s.Name, name))
		}
		all = append(all, s)
	}
	return all
}

func read(name string) string {
	b, err := fs.ReadFile(files, name)
	if err != nil {
		panic("skills: " + err.Error())
	}
	return string(b)
}

// Bundled returns a copy of the bundled skills, in the order of lists.
func Bundled() []Skill { return slices.Clone(bundled) }

// Find returns a bundled skill by name.
func Find(name string) (Skill, bool) {
	i := slices.IndexFunc(bundled, func(s Skill) bool { return s.Name == name })
	if i < 0 {
		return Skill{}, false
	}
	return bundled[i], true
}

// FrontMatter returns the name and description at the beginning of a text: lines "name:
// …" and "description: …" between two lines of dashes. Values may be quoted, or continue
// on indented lines. Both are "" when there is no front matter.
func FrontMatter(markdown string) (name, description string) {
	rest, ok := strings.CutPrefix(strings.ReplaceAll(markdown, "\r\n", "\n"), "---\n")
	if !ok {
		return "", ""
	}
	head, _, ok := strings.Cut(rest, "\n---")
	if !ok {
		return "", ""
	}
	values, at := map[string]string{}, ""
	for line := range strings.SplitSeq(head, "\n") {
		if at != "" && (strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")) {
			values[at] = strings.TrimSpace(values[at] + " " + strings.TrimSpace(line))
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if at = ""; !ok {
			continue
		}
		at, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if strings.Trim(value, ">|-+") == "" {
			value = ""
		}
		values[at] = value
	}
	return unquote(values["name"]), unquote(values["description"])
}

func unquote(s string) string {
	if n := len(s); n >= 2 && (s[0] == '"' && s[n-1] == '"' || s[0] == '\'' && s[n-1] == '\'') {
		return strings.ReplaceAll(s[1:n-1], `\"`, `"`)
	}
	return s
}
