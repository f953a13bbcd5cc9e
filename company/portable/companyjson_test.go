package portable

import (
	"strings"
	"testing"
)

// Both published forms of a company.json make the same agent.
func TestACompanyJSONIsReadInBothForms(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"by name": `// In Paperclip company.json
{
  "agents": {
    "reviewer": {
      "adapter": "weftos",
      "config": {
        "base_url": "http://localhost:8080",
        "model": "local/llama3.1"
      }
    }
  }
}`,
		"a list": `{"agents":[{"id":"reviewer","runtime":"weftos","config":{"base_url":"http://localhost:8080",` +
			`"model":"local/llama3.1"}}],
"runtimes":{"weftos":{"adapter":"@paperclipai/adapter-weftos","version":"0.1.0"}}}`,
	} {
		if !LooksLikeCompanyJSON([]byte(in)) {
			t.Errorf("%s: it is not recognised", name)
		}
		files, err := FromCompanyJSON([]byte(in), "Acme")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		m, warnings, err := Read(files)
		if err != nil || len(warnings) > 0 || len(m.Agents) != 1 || m.Company.Name != "Acme" {
			t.Fatalf("%s: %+v, %v, %v", name, m, warnings, err)
		}
		a := m.Agents[0]
		if a.Slug != "reviewer" || a.AdapterType != "weftos" || a.AdapterConfig["base_url"] != "http://localhost:8080" ||
			a.AdapterConfig["model"] != "local/llama3.1" {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// The members of the kernel's types are taken over: who reports to whom, budgets, goals, timers.
func TestACompanyJSONHasTheKernelsTypes(t *testing.T) {
	t.Parallel()
	files, err := FromCompanyJSON([]byte(`{"id":"acme","name":"Acme AI Corp","description":"Automated code review company",
"goals":[{"id":"ship-v1","description":"Ship v1","status":"active"},{"id":"review-prs","description":"Review `+
		`PRs","parent_goal":"ship-v1","status":"pending"}],
"agents":[{"agent_id":"agent-reviewer","role":"worker","reports_to":"agent-ceo","budget_cents":2000,`+
		`"goals":["review-prs"],"adapter":"weftos","heartbeat":{"enabled":true,"interval":300}},
{"agent_id":"agent-ceo","role":"ceo","budget_cents":10000,"goals":["ship-v1","grow"],"runtime":"process"}]}`), "x")
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := Read(files)
	if err != nil || len(m.Agents) != 2 || len(m.Goals) != 3 {
		t.Fatalf("%+v %v", m, err)
	}
	for _, a := range m.Agents {
		if a.Slug == "agent-reviewer" && (a.ReportsTo == nil || *a.ReportsTo != "agent-ceo" || a.BudgetCents != 2000 ||
			a.Role != "engineer" || a.RuntimeConfig["heartbeat"] == nil) {
			t.Errorf("%+v", a)
		}
		if a.Slug == "agent-ceo" && (a.Role != "ceo" || a.AdapterType != "process") {
			t.Errorf("%+v", a)
		}
	}
	for _, g := range m.Goals {
		if g.Slug == "review-prs" && (g.Parent == nil || *g.Parent != "ship-v1" || g.Owner == nil ||
			*g.Owner != "agent-reviewer" || g.Status != "planned") {
			t.Errorf("%+v", g)
		}
	}
}

// What does not fit is named with its place.
func TestABadCompanyJSONIsRefused(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{`: "not the JSON of a company", `[]`: "not the JSON of a company", `{"agents":{}} {}`: "something follows",
		`{}`:                                    "agents: give an object by name, or a list",
		`{"agents":3}`:                          "agents: give an object",
		`{"agents":{"a":{"adaptor":"weftos"}}}`: "agents.a: adaptor: no such member", `{"agnts":{}}`: "agnts: no such member",
		`{"agents":{"a":{}}}`: "agents.a.adapter: name one",
		`{"agents":{"a":{"adapter":"abacus"}}}`: `agents.a.adapter: there is no ` +
			`adapter "abacus"`,
		`{"agents":[{"runtime":"weftos"}]}`: "agents[0].id: an agent needs " +
			"an ID or a name",
		`{"agents":[{"id":"a","runtime":"x"}],"runtimes":{"x":{"adapter":"y"}}}`: `agents[0].runtime: there is ` +
			`no adapter "y"`,
		`{"agents":[{"id":"a","adapter":"weftos"},{"id":"A","adapter":"http"}]}`: `agents[1].id: "A" is there twice`,
		`{"agents":{"a":{"adapter":"weftos","reports_to":"b"}}}`: `agents.a.reports_to: "b" is ` +
			`none of the agents`,
		`{"agents":{"a":{"adapter":"weftos","role":"king"}}}`:          `agents.a.role: "king" is none of`,
		`{"agents":{"a":{"adapter":"weftos","config":{"token":"x"}}}}`: "agents.a.config.token: a package has no secrets",
		`{"agents":{},"goals":[{"id":"g","status":"odd"}]}`:            `goals[0].status: "odd" is none of`,
		`{"agents":{},"goals":[{"id":"g","parent_goal":"h"}]}`:         `goals[0].parent_goal: "h" is none of the goals`,
	} {
		if _, err := FromCompanyJSON([]byte(in), "Acme"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
	if _, err := FromCompanyJSON([]byte(`{"agents":{}}`), ""); err == nil || !strings.Contains(err.Error(),
		"name: the company needs one") {
		t.Errorf("without a name: %v", err)
	}
}
