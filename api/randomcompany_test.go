package api_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/api/transfer"
	"github.com/selvage-mesh/selvage/ledger"
)

// A chancer makes a company of everything that travels, as chance has it.
type chancer struct {
	*rand.Rand
	t  *testing.T
	h  *apitest.Harness
	of ledger.CompanyID
}

// scraps are what texts are made of: what YAML, Markdown and JSON might trip over.
var scraps = []string{"plain words", "\"quoted\"", "it's", ": ", "# ", "- ", "---", "\n", "\n\n", "\n---\n", "null",
	"true", "~", "1e3", "0x1f", "2026-11-22", "é", "日本語", "🤖", "\u200b", "\u2028",
	"\\n", "\\", "`code`", "${HOME}", "<b>", "&amp;", "*ref", "&anchor", "!tag", "|", ">", "%", "@", "  ", "\t", "[a](b)",
	"- [ ] todo", "=", "?", "key: value", "{a: b}", "[1, 2]", "end."}

func (c *chancer) text(most int) string {
	var b strings.Builder
	for range 1 + c.IntN(most) {
		b.WriteString(scraps[c.IntN(len(scraps))])
	}
	return b.String()
}

// name is a text on one line with something to read in it.
func (c *chancer) name(what string) string {
	return strings.Join(strings.Fields(fmt.Sprintf("%s %d %s", what, c.IntN(4), c.text(3))), " ")
}

func (c *chancer) one(list []string) string { return list[c.IntN(len(list))] }
func (c *chancer) maybe(list []string) any {
	if len(list) == 0 || c.IntN(3) == 0 {
		return nil
	}
	return c.one(list)
}

// some are a few of a list, each once.
func (c *chancer) some(list []string) []string {
	out := []string{}
	for _, n := range c.Perm(len(list)) {
		if c.IntN(3) == 0 {
			out = append(out, list[n])
		}
	}
	return out
}

// put sends a body, and returns the ID in the answer.
func (c *chancer) put(method, path string, body map[string]any) string {
	c.t.Helper()
	for k, v := range body {
		if v == nil {
			delete(body, k)
		}
	}
	b, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	a := c.h.Call(method, path, string(b))
	if a.Status >= 300 {
		c.t.Fatalf("%s %s %s: %d %s", method, path, b, a.Status, api.Cut(string(a.Body), 400))
	}
	var row struct{ ID string }
	_ = json.Unmarshal(a.Body, &row) // some answers are lists
	return row.ID
}

func (c *chancer) times(most int, f func()) {
	for range c.IntN(most + 1) {
		f()
	}
}

func (c *chancer) company() {
	c.of = ledger.CompanyID(c.put("POST", "/api/companies", map[string]any{"name": c.name("Company"),
		"description": c.text(6)}))
	in := "/api/companies/" + string(c.of)
	if c.IntN(2) == 0 {
		c.h.Dress(c.t, c.of)
	}
	var agents, goals, projects, labels, issues, folders, skills []string
	keep := func(list *[]string, id string) string { *list = append(*list, id); return id }
	c.times(3, func() {
		keep(&labels, c.put("POST", in+"/labels", map[string]any{"name": c.name("label") + fmt.Sprint(len(labels)),
			"color": "#12ab34"}))
	})
	c.times(3, func() {
		keep(&skills, c.put("POST", in+"/skills", map[string]any{"name": fmt.Sprintf("skill-%d", len(skills)),
			"description": c.name("Skill"),
			"markdown":    fmt.Sprintf("---\nname: skill-%d\ndescription: x\n---\n%s", len(skills), c.text(9))}))
		at := fmt.Sprintf("%s/skills/skill-%d", in, len(skills)-1)
		c.times(2, func() {
			c.put("PATCH", at+"/files", map[string]any{"path": fmt.Sprintf("references/%d.md", c.IntN(9)), "content": c.text(9)})
		})
		c.times(2, func() { c.put("POST", at+"/comments", map[string]any{"body": c.text(9)}) })
		c.times(2, func() {
			c.put("POST", at+"/test-inputs", map[string]any{"name": c.name("input"), "content": "on " + c.text(9)})
		})
	})
	for range 1 + c.IntN(5) {
		id := keep(&agents, c.put("POST", in+"/agents", map[string]any{"name": c.name("Agent"),
			"role": c.one([]string{"ceo", "engineer", "general", "designer"}), "title": c.name("title"),
			"capabilities": c.text(5), "reportsTo": c.maybe(agents), "adapterType": c.one([]string{"process", "http"}),
			"budgetMonthlyCents": c.IntN(2) * 700,
			"adapterConfig": map[string]any{"command": c.one([]string{"true", "/usr/bin/true"}),
				"url": "https://example.org/hook", "timeoutSec": c.IntN(99), "promptTemplate": c.text(5),
				"env": map[string]any{"API_KEY": apitest.PackageCanary, "WHERE": map[string]any{"type": "plain",
					"value": apitest.PackageCanary}}},
			"runtimeConfig": map[string]any{"heartbeat": map[string]any{"enabled": c.IntN(2) == 0, "intervalSec": 60 +
				c.IntN(600)}}}))
		c.times(2, func() {
			c.put("PUT", "/api/agents/"+id+"/instructions-bundle/file",
				map[string]any{"path": c.one([]string{"AGENTS.md", "notes/a.md", "b.md"}), "content": c.text(20)})
		})
		c.times(2, func() {
			c.put("PUT", fmt.Sprintf("/api/agents/%s/memory/key-%d", id, c.IntN(3)), map[string]any{"value": c.text(9)})
		})
		if c.IntN(3) == 0 {
			c.put("POST", in+"/budgets/policies", map[string]any{"scopeType": "agent", "scopeId": id, "amount": 1 + c.IntN(9000),
				"windowKind": c.one([]string{"rolling_24h", "lifetime"}), "warnPercent": 1 + c.IntN(99)})
		}
	}
	c.times(4, func() {
		keep(&goals, c.put("POST", in+"/goals", map[string]any{"title": c.name("Goal") + fmt.Sprint(len(goals)),
			"description": c.text(5), "level": "team", "parentId": c.maybe(goals), "ownerAgentId": c.maybe(agents)}))
	})
	c.times(3, func() {
		id := keep(&projects, c.put("POST", in+"/projects", map[string]any{"name": c.name("Project") +
			fmt.Sprint(len(projects)), "description": c.text(5), "goalIds": c.some(goals), "leadAgentId": c.maybe(agents),
			"status": c.one([]string{"backlog", "planned", "in_progress"}),
			"env":    map[string]any{"DB_PASSWORD": apitest.PackageCanary}}))
		c.times(2, func() {
			c.put("POST", "/api/projects/"+id+"/workspaces", map[string]any{"name": c.name("space"), "repoUrl": "https://bot:" +
				apitest.PackageCanary + "@git.example.org/x.git", "repoRef": c.one([]string{"main", "v1"}),
				"setupCommand": "make " + c.one([]string{"all", "x"})})
		})
		c.times(1, func() {
			c.put("POST", "/api/projects/"+id+"/workspaces", map[string]any{"name": "desk", "cwd": "/home/desk"})
		})
	})
	for n := range 4 + c.IntN(9) {
		parent := c.maybe(issues)
		id := keep(&issues, c.put("POST", in+"/issues", map[string]any{"title": c.name("Issue"), "description": c.text(20),
			"status": c.one([]string{"backlog", "todo"}), "priority": c.one([]string{"low", "medium", "high", "critical"}),
			"projectId": c.maybe(projects), "goalId": c.maybe(goals), "parentId": parent, "labelIds": c.some(labels),
			"billingCode": c.maybe([]string{"007", "BC: 1", "true"}), "assigneeAgentId": c.maybe(agents),
			"allowDuplicate": true}))
		blocked := func(id string, by []string) {
			if len(by) > 0 && c.h.Call("PATCH", "/api/issues/"+id, fmt.Sprintf(`{"blockedByIssueIds":["%s"],"status":"blocked"}`,
				strings.Join(by, `","`))).Status >= 500 {
				c.t.Fatal("blockers are a broken server")
			}
		}
		if n > 0 && c.IntN(3) == 0 {
			blocked(id, c.some(issues[:n]))
		}
		if parent != nil && c.IntN(2) == 0 { // it waits for its part, unless that would make a circle
			blocked(parent.(string), []string{id})
		}
		if c.IntN(4) == 0 { // who waits for it stays blocked until somebody moves it
			c.h.Call("PATCH", "/api/issues/"+id, `{"status":"done"}`)
		}
		c.times(4, func() { c.put("POST", "/api/issues/"+id+"/comments", map[string]any{"body": "c" + c.text(20)}) })
		c.times(2, func() {
			body := map[string]any{"title": c.name("Document"), "format": "markdown", "body": c.text(40)}
			if key := fmt.Sprintf("/api/issues/%s/documents/doc-%d", id, c.IntN(9)); c.h.Call("GET", key, "").Status == 404 {
				c.put("PUT", key, body)
			}
		})
		c.times(2, func() {
			c.put("POST", "/api/issues/"+id+"/work-products", map[string]any{"type": "pull_request", "provider": "github",
				"title": c.name("PR"), "status": "active", "url": "https://github.com/x/y/pull/1", "summary": c.text(5)})
		})
		c.times(1, func() {
			form, contentType := apitest.FormOf(c.t, "file.txt", "text/plain", []byte(c.text(30)))
			c.h.Call("POST", in+"/issues/"+id+"/attachments", form, contentType).Want(c.t, 201, "")
		})
		if c.IntN(4) == 0 {
			c.put("PUT", "/api/issues/"+id+"/watchdog", map[string]any{"agentId": c.one(agents), "instructions": c.text(5)})
		}
	}
	c.times(2, func() {
		keep(&folders, c.put("POST", in+"/folders", map[string]any{"kind": "routine", "name": c.name("Folder") +
			fmt.Sprint(len(folders)), "parentId": c.maybe(folders)}))
	})
	c.times(3, func() {
		id := c.put("POST", in+"/routines", map[string]any{"title": c.name("Routine"), "description": c.text(9) +
			" {{topic}}", "assigneeAgentId": c.one(agents), "projectId": c.maybe(projects), "goalId": c.maybe(goals),
			"concurrencyPolicy": c.one([]string{"coalesce_if_active", "skip_if_active", "always_enqueue"}),
			"catchUpPolicy":     c.one([]string{"skip_missed", "enqueue_missed_with_cap"}),
			"folderId":          c.maybe(folders), "labelIds": c.some(labels),
			"variables": []any{map[string]any{"name": "topic", "type": "text", "defaultValue": c.text(3)}}})
		c.times(2, func() {
			c.put("POST", "/api/routines/"+id+"/triggers", map[string]any{"kind": "schedule",
				"cronExpression": fmt.Sprintf("%d %d * * *", c.IntN(60), c.IntN(24)),
				"timezone":       c.one([]string{"UTC", "Europe/Berlin"}), "label": c.name("t"), "enabled": c.IntN(2) == 0})
		})
		c.times(1, func() {
			c.put("POST", "/api/routines/"+id+"/triggers", map[string]any{"kind": "webhook", "signingMode": "hmac_sha256"})
		})
		if c.IntN(3) == 0 {
			c.put("PATCH", "/api/routines/"+id, map[string]any{"status": c.one([]string{"archived", "paused"})})
		}
	})
	c.times(2, func() {
		c.put("POST", in+"/user-secret-definitions", map[string]any{"key": fmt.Sprintf("KEY_%d", c.IntN(1_000_000)),
			"name": c.name("Key"), "usageGuidance": c.text(5)})
	})
	c.times(2, func() {
		id := c.put("POST", in+"/approvals", map[string]any{"type": "approve_ceo_strategy",
			"requestedByAgentId": c.maybe(agents), "issueIds": c.some(issues), "payload": map[string]any{"plan": c.text(20),
				"apiKey": apitest.PackageCanary}})
		c.put("POST", "/api/approvals/"+id+"/"+c.one([]string{"approve", "reject"}),
			map[string]any{"decisionNote": c.text(5)})
	})
	for _, id := range agents[1:] {
		if c.IntN(4) == 0 {
			c.put("POST", "/api/agents/"+id+"/terminate", nil)
		}
	}
	for _, id := range projects {
		if c.IntN(4) == 0 {
			c.put("PATCH", "/api/projects/"+id, map[string]any{"archivedAt": "2026-11-01T00:00:00.000Z"})
		}
	}
}

// Any company comes back as it was, whatever chance has made of it.
func TestAnyCompanySurvivesARoundTrip(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			c := &chancer{Rand: rand.New(rand.NewPCG(seed, 8)), t: t, h: apitest.NewHarness(t)}
			c.company()
			defer func() {
				if t.Failed() {
					t.Log(c.h.Log.String())
				}
			}()
			first, to := c.h.Export(t, c.of, everything), apitest.NewHarness(t)
			var done transfer.Imported
			if err := json.Unmarshal(to.Call("POST", "/api/companies/import",
				apitest.ImportOf(t, first, `{"mode":"new_company"}`, "")).Want(t, 200, "").Body, &done); err != nil {
				t.Fatal(err)
			}
			if len(done.Warnings) > 0 {
				t.Errorf("warnings %q", done.Warnings)
			}
			sameFiles(t, first.Files, to.Export(t, done.Company.ID, everything).Files)
		})
	}
}
