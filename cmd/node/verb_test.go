package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/api/routes"
	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// allVerbs returns the commands that are single requests.
func allVerbs() []cli.Verb {
	made := []cli.Verb{}
	newRootWith(&cli.CLI{Made: &made})
	return made
}

// A schema is a value's schema in the API description.
type schema struct {
	Ref        string            `json:"$ref"`
	Properties map[string]schema `json:"properties"`
	Items      *schema           `json:"items"`
}

type schemas map[string]schema

// at reports whether a schema has a path of members, also through lists. A schema
// without details allows any.
func (all schemas) at(s schema, path string) bool {
	if s.Ref != "" {
		s = all[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	if s.Items != nil {
		return all.at(*s.Items, path)
	}
	head, rest, deeper := strings.Cut(path, ".")
	next, ok := s.Properties[head]
	return len(s.Properties) == 0 || ok && (!deeper || all.at(next, rest))
}

// row returns the schema of a row in an answer.
func (all schemas) row(s schema, rows string) schema {
	if s.Ref != "" {
		s = all[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	if rows != "" {
		return s.Properties[rows]
	}
	return s
}

// best returns the path of the table that matches a requested one, with placeholders for
// IDs. Of several it returns the most specific, as a ServeMux does.
func best[T any](paths map[string]T, asked string) (found string) {
	most := -1
	for path := range paths {
		if n := serves(strings.Split(path, "/"), strings.Split(asked, "/")); n > most {
			found, most = path, n
		}
	}
	return found
}

// serves counts the equal words of a path and a requested one, -1 if they do not match.
func serves(path, asked []string) (words int) {
	if len(path) != len(asked) {
		return -1
	}
	for n := range path {
		switch {
		case path[n] == asked[n]:
			words++
		case !strings.HasPrefix(path[n], "{"):
			return -1
		}
	}
	return words
}

// membersIn returns the paths that a cell reads.
func membersIn(cell string) (paths []string) {
	for one := range strings.FieldsFuncSeq(cell, func(r rune) bool { return r == '|' || r == '+' }) {
		if _, err := strconv.Atoi(one); err == nil || one[0] == '\'' {
			continue // an argument, or a word
		}
		if _, path, ok := strings.Cut(one, "?"); ok {
			one = path
		}
		if _, path, ok := strings.Cut(one, ":"); ok {
			one = path
		}
		paths = append(paths, strings.ReplaceAll(one, ".0", ""))
	}
	return paths
}

// The table of verbs agrees with the table of routes: each verb is a route, sends
// members that the route accepts, and shows members that the route answers.
func TestVerbsAreRoutes(t *testing.T) {
	t.Parallel()
	b, err := routes.Describe("test")
	if err != nil {
		t.Fatal(err)
	}
	type body struct {
		Content map[string]struct {
			Schema schema `json:"schema"`
		} `json:"content"`
	}
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string } `json:"parameters"`
			Body       body                        `json:"requestBody"`
			Responses  map[string]body             `json:"responses"`
		} `json:"paths"`
		Components struct {
			Schemas schemas `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	all, plain := doc.Components.Schemas, regexp.MustCompile(`\{[^}]*\}`)
	verbs := allVerbs()
	if len(verbs) < 200 {
		t.Errorf("%d verbs were found", len(verbs))
	}
	for _, v := range verbs {
		method := strings.ToLower(cmp.Or(v.Method, "GET"))
		found := false
		asked, _, _ := strings.Cut(plain.ReplaceAllString(v.Path, "{}"), "?")
		path := best(doc.Paths, asked) // once: it looks at all of them
		if op, ok := doc.Paths[path][method]; ok {
			found = true
			knows := func(name string) bool {
				for _, p := range op.Parameters {
					if p.Name == name && p.In == "query" {
						return true
					}
				}
				for _, c := range op.Body.Content {
					if all.at(c.Schema, name) {
						return true
					}
				}
				return false
			}
			for _, f := range v.Fields {
				if strings.HasPrefix(f.Member, "{") {
					continue // its name is an argument
				}
				if !knows(f.Member) {
					t.Errorf("%s: %s %s knows no %s", v.Use, v.Method, path, f.Member)
				}
			}
			for name := range v.Fixed {
				if !knows(name) {
					t.Errorf("%s: %s %s knows no %s", v.Use, v.Method, path, name)
				}
			}
			for status, answer := range op.Responses {
				if status[0] != '2' {
					continue
				}
				for _, c := range answer.Content {
					for column := range strings.FieldsSeq(v.Columns) {
						_, cell, _ := strings.Cut(column, "=")
						for _, from := range membersIn(cell) {
							if !all.at(all.row(c.Schema, v.Rows), from) {
								t.Errorf("%s: %s %s answers no %s", v.Use, v.Method, path, from)
							}
						}
					}
					for line := range strings.FieldsSeq(v.Lines) {
						_, cell, _ := strings.Cut(line, "=")
						for _, from := range membersIn(cell) {
							if !all.at(c.Schema, from) {
								t.Errorf("%s: %s %s answers no %s", v.Use, v.Method, path, from)
							}
						}
					}
					for _, m := range cli.InWords.FindAllStringSubmatch(v.Says, -1) {
						for _, from := range membersIn(m[1]) {
							if !all.at(c.Schema, from) {
								t.Errorf("%s: %s %s answers no %s", v.Use, v.Method, path, from)
							}
						}
					}
				}
			}
		}
		if !found {
			t.Errorf("%s: nothing answers %s %s", v.Use, v.Method, v.Path)
		}
	}
}

// Every command has a description, and no two of a group have the same name.
func TestCommandsAreDescribed(t *testing.T) {
	for _, c := range newRoot().Commands() {
		if c.GroupID == "" && !c.Hidden {
			t.Errorf("%s is under no heading of the help", c.CommandPath())
		}
	}
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		seen := map[string]bool{}
		for _, sub := range c.Commands() {
			if seen[sub.Name()] {
				t.Errorf("two commands %s", sub.CommandPath())
			}
			seen[sub.Name()] = true
			if sub.Hidden {
				continue
			}
			if sub.Short == "" || strings.HasSuffix(sub.Short, ".") {
				t.Errorf("%s: %q", sub.CommandPath(), sub.Short)
			}
			look(sub)
		}
	}
	look(newRoot())
}

// Values with a name for people are translated to the API's values.
func TestFieldsAreTranslated(t *testing.T) {
	seen := ""
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/companies":
			w.Write([]byte(oneCompany))
		case "/api/companies/c/agents":
			w.Write([]byte(`[{"id": "b", "name": "Bob"}]`))
		case "/api/issues/ACM-1":
			w.Write([]byte(`{"id": "i", "identifier": "ACM-1"}`))
		default:
			seen = r.URL.RawQuery
			w.Write([]byte(`[]`))
		}
	}))
	defer node.Close()
	t.Setenv("SELVAGE_API_URL", node.URL)
	t.Setenv("SELVAGE_CREDENTIALS", t.TempDir()+"/credentials.json")
	for _, c := range []struct {
		line, seen, says string
		status           int
	}{
		{line: "issue list --assignee none", seen: "assigneeAgentId=none&sortDir=asc&sortField=created"},
		{line: "issue list --assignee bob --user me",
			seen: "assigneeAgentId=b&assigneeUserId=me&sortDir=asc&sortField=created"},
		{line: "issue list --limit 0", says: "--limit is 0: want at least 1", status: cli.ExitMisused},
		{line: "activity --entity ACM-1 --limit 3", seen: "entityId=i&limit=3"},
		{line: "audit list --entity ACM-1 --kind issue", seen: "entityId=i&entityType=issue"},
		{line: "agent message send Bob hello", says: `JSON is neither JSON nor a file: "hello"`, status: cli.ExitMisused},
		{line: "secret show", says: "selvage secret has no command \"show\": it has accesses, create",
			status: cli.ExitMisused},
	} {
		seen = ""
		if status, _, talk := told(t, strings.Fields(c.line)...); status != c.status || seen != c.seen ||
			!strings.Contains(talk, c.says) {
			t.Errorf("selvage %s ended with %d, asked for %q and said %s, want %+v", c.line, status, seen, talk, c)
		}
	}
}

// The help for newcomers is short; `selvage help all` lists everything.
func TestHelpIsShort(t *testing.T) {
	help := func(args ...string) string {
		var out, talk bytes.Buffer
		if status := execute(t.Context(), args, nil, &out, &talk); status != 0 {
			t.Fatalf("%v: status %d: %s", args, status, &talk)
		}
		return out.String()
	}
	listed := regexp.MustCompile(`(?m)^  ([a-z-]+) {2,}\S`)
	short, all := help("--help"), help("help", "all")
	if n := len(listed.FindAllString(short, -1)); n < 10 || n > newcomers {
		t.Errorf("%d commands in the help, at most %d:\n%s", n, newcomers, short)
	}
	if help() != short || help("help") != short {
		t.Error("selvage, selvage help and selvage --help differ")
	}
	for _, c := range newRoot().Commands() {
		if !c.Hidden && !strings.Contains(all, "\n  "+c.Name()+" ") {
			t.Errorf("help all does not list %s", c.Name())
		}
	}
	if got := help("help", "issue", "create"); !strings.Contains(got, "selvage issue create TITLE") {
		t.Errorf("help issue create:\n%s", got)
	}
}
