package company

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestARunAsksForAnotherModelAndForNothingElse(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	a, _ := agents.Get(d.tx, d.company, ada)
	a.AdapterConfig = []byte(`{"model":"dear","effort":"high","command":"claude","env":{"A":"1"}}`)
	a.RuntimeConfig = []byte(`{"modelProfiles":{"cheap":{"adapterConfig":{"model":"small","effort":"low","command":"rm","env":{"A":"2"},"cwd":"/"}},
		"off":{"enabled":false,"adapterConfig":{"model":"never"}},"odd":{"adapterConfig":{"model":{"$sealed":"x"}}}}}`)
	agents.Put(d.tx, a.Company, a.ID, a)
	plain := d.issue(t, CreateIssue{})
	own := d.issue(t, CreateIssue{Assignee: ada, Status: IssueTodo, AdapterOverrides: json.RawMessage(`{"modelProfile":"cheap","adapterConfig":{"effort":"max","args":["x"],"command":"rm"}}`)})
	others := d.issue(t, CreateIssue{AdapterOverrides: json.RawMessage(`{"adapterConfig":{"model":"theirs"}}`)})
	for name, c := range map[string]struct {
		issue, payload, model, effort string
	}{
		"as it is":               {plain.ID, ``, "dear", "high"},
		"a wake asks":            {plain.ID, `{"modelProfile":"cheap"}`, "small", "low"},
		"the issue asks":         {own.ID, ``, "small", "max"},
		"one that is off":        {plain.ID, `{"modelProfile":"off"}`, "dear", "high"},
		"one that there is not":  {plain.ID, `{"modelProfile":"x"}`, "dear", "high"},
		"one that has an object": {plain.ID, `{"modelProfile":"odd"}`, "dear", "high"},
		"of somebody else":       {others.ID, ``, "dear", "high"},
		"malformed":              {plain.ID, `[]`, "dear", "high"},
	} {
		_, config, ok := ConfigForRun(d.tx, Run{Company: d.company, Agent: ada, Context: RunContext{IssueID: c.issue, Payload: json.RawMessage(c.payload)}})
		var got map[string]any
		if err := json.Unmarshal(config, &got); err != nil || !ok {
			t.Fatalf("%s: %s %v", name, config, err)
		}
		if want := (map[string]any{"model": c.model, "effort": c.effort, "command": "claude", "env": map[string]any{"A": "1"}}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestAFatContextSaysWhatAThinOnePointsTo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	aim := d.id()
	d.must(t, board, "goal.create", SaveGoal{ID: aim, Title: new("Reach the coast"), Description: new("By autumn.")}, nil)
	i := d.issue(t, CreateIssue{Title: "Sail", Goal: aim, Description: strings.Repeat("ä", maxFatText), Assignee: ada, Status: IssueTodo})
	for range maxFatIssues + 5 {
		d.issue(t, CreateIssue{Assignee: ada, Status: IssueTodo})
	}
	for _, body := range []string{"first", "second"} {
		d.must(t, board, "comment.create", CreateComment{ID: d.id(), Issue: i.ID, Body: body}, nil)
	}
	r := Run{Company: d.company, Agent: ada, Context: RunContext{IssueID: i.ID, WakeReason: "issue_commented"}}
	thin, err := WakeOf(d.tx, r, TimeOf(d.now))
	if err != nil || strings.Contains(string(thin), "assignments") || !strings.Contains(string(thin), i.ID) {
		t.Fatalf("%s %v", thin, err)
	}
	a, _ := agents.Get(d.tx, d.company, ada)
	a.ContextMode = "fat"
	agents.Put(d.tx, a.Company, a.ID, a)
	fat, err := WakeOf(d.tx, r, TimeOf(d.now))
	if err != nil || len(fat) > 64<<10 {
		t.Fatalf("%d bytes, %v", len(fat), err)
	}
	var got struct {
		WakeReason  string
		Assignments []struct{ ID, Title string }
		Issue       struct{ Title, Description string }
		Goal        struct{ ID, Title, Description string }
		Budget      struct {
			SpentMonthlyCents *int64
			Policies          []any
		}
		RecentComments []struct{ Body string }
	}
	if err := json.Unmarshal(fat, &got); err != nil {
		t.Fatal(err)
	}
	if got.WakeReason != "issue_commented" || len(got.Assignments) != maxFatIssues || got.Issue.Title != "Sail" || !strings.HasSuffix(got.Issue.Description, "ä…") ||
		got.Budget.SpentMonthlyCents == nil || got.Budget.Policies == nil || len(got.RecentComments) != 2 || got.RecentComments[1].Body != "second" {
		t.Errorf("%s", fat)
	}
	if got.Goal.ID != aim || got.Goal.Title != "Reach the coast" || got.Goal.Description != "By autumn." || strings.Contains(string(thin), "Reach") {
		t.Errorf("the goal is %+v; thin: %s", got.Goal, thin)
	}
}
