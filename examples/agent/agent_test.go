package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/examples/wasmkit"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Review PR #42 for security issues":      "CodeReview",
		"Implement a function that parses dates": "CodeGeneration",
		"Find sources and compare them":          "Research",
		"Explain why the metrics fell":           "Analysis",
		"Draft a blog announcement":              "Creative",
		"Hello":                                  "Chat",
		"":                                       "Unknown",
		strings.Repeat("refactor the architecture ", 400): "CodeGeneration",
	} {
		got := classify(text)
		if got.Type != want || got.Complexity < 0 || got.Complexity > 1 || len(got.Keywords) > maxKeywords {
			t.Errorf("%.40q: %+v, want %s", text, got, want)
		}
	}
	if easy, hard := classify("Review this").Complexity,
		classify("Review the security architecture of the distributed design").Complexity; easy >= hard {
		t.Errorf("complexity %v is not below %v", easy, hard)
	}
}

func models(ids ...string) call {
	return func(method string, _, out any) error {
		var rows []string
		for _, id := range ids {
			rows = append(rows, fmt.Sprintf(`{"id":%q}`, id))
		}
		return json.Unmarshal([]byte(`{"data":[`+strings.Join(rows, ",")+`]}`), out)
	}
}

func TestRoute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		complexity float64
		poor       bool
		env        string
		models     []string
		tier       string
		want       []string
	}{
		{0.1, false, "", []string{"tier/free", "tier/standard", "x"}, "free", []string{"tier/free", "tier/standard", "x"}},
		{0.1, true, "", []string{"tier/free", "tier/standard"}, "standard", []string{"tier/standard", "tier/free"}},
		{0.5, false, "", []string{"x", "y*"}, "standard", []string{"x"}},
		{1, true, "mine", []string{"tier/elite"}, "elite", []string{"mine", "tier/elite"}},
		{0.5, false, "", nil, "standard", nil},
		{0.5, false, "", []string{"a", "b", "c", "d", "e"}, "standard", []string{"a", "b", "c", "d"}},
	} {
		got := route(models(c.models...), func(k string) string {
			if k == "AGENT_MODEL" {
				return c.env
			}
			return ""
		}, Profile{Complexity: c.complexity}, c.poor)
		if got.Tier != c.tier || !slices.Equal(got.Models, c.want) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

func TestParseSkill(t *testing.T) {
	t.Parallel()
	s, ok := parseSkill("---\nname: \"tidy\"\ndescription: how to tidy\nallowed-tools:\n  - comment\n  - finish\n" +
		"disable-model-invocation: true\n---\n\nFold it.\n")
	if !ok || s.Name != "tidy" || s.Text != "Fold it." || !s.Disabled ||
		!slices.Equal(s.AllowedTools, []string{"comment", "finish"}) {
		t.Errorf("%+v, %t", s, ok)
	}
	for _, bad := range []string{"---\nname: x", "---\ndescription: y\n---\nz", strings.Repeat("x", maxSkill+1), ""} {
		if s, ok := parseSkill(bad); ok {
			t.Errorf("%.20q was taken for %+v", bad, s)
		}
	}
}

// What is assembled stays within its budget, whatever there is to say.
func TestAssembleKeepsItsBudget(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long words ", 20_000)
	var comments []Comment
	for i := range 200 {
		comments = append(comments, Comment{Body: fmt.Sprint(i, " ", long)})
	}
	for _, budget := range []int{4096, 16384} {
		skills := []Skill{{Name: "s", Description: "long", Text: long}, {Name: "t", Description: long, Text: "x"}}
		talk := assemble(instructions("Ada", tools), long, skills, []string{long, long},
			Issue{Title: long, Description: long}, comments, long, Profile{Keywords: []string{"long"}}, budget)
		n := 0
		for _, m := range talk {
			n += tokens(m.Content)
		}
		if n > budget {
			t.Errorf("%d tokens, of %d", n, budget)
		}
		if !strings.Contains(talk[1].Content, "199 long") {
			t.Error("the latest comment was left out")
		}
	}
}

func TestOfferedTools(t *testing.T) {
	t.Parallel()
	p := Profile{Keywords: []string{"tidy"}}
	few := Skill{Name: "tidy", AllowedTools: []string{"comment"}}
	for _, c := range []struct {
		skills []Skill
		want   int
	}{
		{nil, len(tools)}, {[]Skill{few}, 2}, {[]Skill{few, {Name: "tidy too"}}, len(tools)},
		{[]Skill{few, {Name: "other"}}, 2},
		{[]Skill{{Name: "tidy", AllowedTools: []string{"comment"}, Disabled: true}}, len(tools)},
	} {
		if got := offered(c.skills, p); len(got) != c.want {
			t.Errorf("%+v: %d tools, want %d", c.skills, len(got), c.want)
		}
	}
}

func TestScore(t *testing.T) {
	t.Parallel()
	good := Outcome{
		Status:  "done",
		Result:  "the databases compared",
		Tokens:  900,
		Profile: Profile{Keywords: []string{"databases", "compared"}},
	}
	bad := Outcome{Status: "blocked", Result: "no", Tokens: 100_000, Tools: 4, Failed: 4, Profile: good.Profile}
	if g, b := score(good), score(bad); g != 1 || b > 0.2 {
		t.Errorf("scores %v and %v", g, b)
	}
	if good.Score = score(good); lesson(good) != "" {
		t.Error("good work has a lesson")
	}
	if bad.Score = score(bad); !strings.Contains(lesson(bad), "tools failed") {
		t.Errorf("lesson %q", lesson(bad))
	}
}

// A model that never comes to an end does not keep the agent for ever, and the
// issue ends where somebody sees it.
func TestAModelThatGoesOnForEver(t *testing.T) {
	t.Parallel()
	asked, status := 0, ""
	ask := func(method string, in, out any) error {
		put := func(s string) error { return json.Unmarshal([]byte(s), out) }
		switch method {
		case "run.context":
			return put(`{"agentId":"a","taskId":"i"}`)
		case "issue.get":
			return put(`{"id":"i","title":"Go on","status":"todo"}`)
		case "model.list":
			return put(`{"data":[{"id":"m"}]}`)
		case "model.chat":
			asked++
			return put(`{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"list_agents",` +
				`"arguments":"{}"}}]}}],"usage":{"total_tokens":10}}`)
		case "api":
			return &wasmkit.Error{Code: "Forbidden", Message: "403"}
		case "issue.update":
			status = in.(map[string]string)["status"]
		}
		return nil
	}
	if err := work(ask, func(string) string { return "" }, func(...any) (int, error) { return 0, nil }); err != nil {
		t.Fatal(err)
	}
	if asked != maxRounds || status != "blocked" {
		t.Errorf("asked %d times, the issue is %q", asked, status)
	}
}

// A model that fails is asked again when that may help, and then the next one.
func TestFailover(t *testing.T) {
	t.Parallel()
	var asked []string
	a := &agent{env: func(string) string { return "" }, ask: func(method string, in, out any) error {
		name := in.(map[string]any)["model"].(string)
		asked = append(asked, name)
		switch name {
		case "busy":
			return fmt.Errorf("x: %w", &wasmkit.Error{Code: "Unavailable"})
		case "dear":
			return &wasmkit.Error{Code: "BudgetExceeded"}
		}
		return json.Unmarshal([]byte(`{"choices":[{"message":{"content":"yes"}}],"usage":{"total_tokens":5}}`), out)
	}}
	r := Route{Models: []string{"busy", "dear", "good"}}
	m, used, err := a.model(&r, nil, nil)
	if err != nil || m.Content != "yes" || used != 5 || !r.Constrained || r.Models[0] != "good" ||
		!slices.Equal(asked, []string{"busy", "busy", "busy", "dear", "good"}) {
		t.Errorf("%+v %d %v, asked %v, route %+v", m, used, err, asked, r)
	}
	a.ask = func(string, any, any) error { return errors.New("no host") }
	if _, _, err := a.model(&Route{Models: []string{"x"}}, nil, nil); err == nil {
		t.Error("no answer was taken for one")
	}
}
