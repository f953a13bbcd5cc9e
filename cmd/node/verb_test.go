package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/api"
)

// allVerbs are the commands that are one request each.
func allVerbs() (all []verb) {
	for _, list := range [][]verb{companyVerbs, agentVerbs, runVerbs, costVerbs, memberVerbs, issueVerbs, holdVerbs, queueVerbs, watchdogVerbs, monitorVerbs, planVerbs, remarkVerbs, skillVerbs,
		skillTestVerbs, goalVerbs, projectVerbs, workspaceVerbs, labelVerbs, environmentVerbs, inboxVerbs, folderVerbs, teamVerbs, feedbackVerbs, settingsVerbs, topVerbs} {
		all = append(all, list...)
	}
	return all
}

// Each verb is a route of the API, and what it sends are members that the route
// knows: the table of verbs and the table of routes agree.
func TestVerbsAreRoutes(t *testing.T) {
	b, err := api.Describe("test")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string } `json:"parameters"`
			Body       struct {
				Content map[string]struct {
					Schema json.RawMessage `json:"schema"`
				} `json:"content"`
			} `json:"requestBody"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]struct {
				Properties map[string]json.RawMessage `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	plain := regexp.MustCompile(`\{[^}]*\}`)
	for _, v := range allVerbs() {
		method := strings.ToLower(v.method)
		if method == "" {
			method = "get"
		}
		found := false
		for path, ops := range doc.Paths {
			op, ok := ops[method]
			if !ok || plain.ReplaceAllString(path, "{}") != plain.ReplaceAllString(v.path, "{}") {
				continue
			}
			found = true
			known := map[string]bool{}
			for _, p := range op.Parameters {
				known[p.Name] = p.In == "query"
			}
			for _, c := range op.Body.Content {
				var s struct {
					Ref        string                     `json:"$ref"`
					Properties map[string]json.RawMessage `json:"properties"`
				}
				if err := json.Unmarshal(c.Schema, &s); err != nil {
					t.Fatal(err)
				}
				for _, of := range []map[string]json.RawMessage{s.Properties, doc.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")].Properties} {
					for name := range of {
						known[name] = true
					}
				}
			}
			for _, f := range v.fields {
				if head, _, _ := strings.Cut(f.member, "."); !known[head] {
					t.Errorf("%s: %s %s knows no %s", v.use, v.method, path, f.member)
				}
			}
			for name := range v.fixed {
				if !known[name] {
					t.Errorf("%s: %s %s knows no %s", v.use, v.method, path, name)
				}
			}
		}
		if !found {
			t.Errorf("%s: nothing answers %s %s", v.use, v.method, v.path)
		}
	}
}

// Every command has a sentence that says what it does, and no two of a group
// have one name.
func TestCommandsAreDescribed(t *testing.T) {
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
