package company_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
)

func TestARunAsksForAnotherModelAndForNothingElse(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	a, _ := entity.AgentTable.Get(d.Tx, d.Company, ada)
	a.AdapterConfig = []byte(`{"model":"dear","effort":"high","command":"claude","env":{"A":"1"}}`)
	a.RuntimeConfig = []byte(`{"modelProfiles":{"cheap":{"adapterConfig":{"model":"small","effort":"low",` +
		`"command":"rm","env":{"A":"2"},"cwd":"/"}},
		"off":{"enabled":false,"adapterConfig":{"model":"never"}},"odd":{"adapterConfig":{"model":{"$sealed":"x"}}}}}`)
	entity.AgentTable.Put(d.Tx, a.Company, a.ID, a)
	plain := d.Issue(t, company.CreateIssue{})
	own := d.Issue(t, company.CreateIssue{Assignee: ada, Status: entity.IssueTodo,
		AdapterOverrides: json.RawMessage(`{"modelProfile":"cheap","adapterConfig":{"effort":"max","args":["x"],` +
			`"command":"rm"}}`)})
	others := d.Issue(t, company.CreateIssue{AdapterOverrides: json.RawMessage(`{"adapterConfig":{"model":"theirs"}}`)})
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
		_, config, ok := entity.ConfigForRun(d.Tx, entity.Run{Company: d.Company, Agent: ada,
			Context: entity.RunContext{IssueID: c.issue, Payload: json.RawMessage(c.payload)}})
		var got map[string]any
		if err := json.Unmarshal(config, &got); err != nil || !ok {
			t.Fatalf("%s: %s %v", name, config, err)
		}
		if want := (map[string]any{"model": c.model, "effort": c.effort, "command": "claude",
			"env": map[string]any{"A": "1"}}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestAFatContextSaysWhatAThinOnePointsTo(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	aim := d.ID()
	d.Must(t, companytest.Board, "goal.create", entity.SaveGoal{ID: aim, Title: new("Reach the coast"),
		Description: new("By autumn.")}, nil)
	i := d.Issue(t, company.CreateIssue{Title: "Sail", Goal: aim, Description: strings.Repeat("ä", company.MaxFatText),
		Assignee: ada, Status: entity.IssueTodo})
	for range company.MaxFatIssues + 5 {
		d.Issue(t, company.CreateIssue{Assignee: ada, Status: entity.IssueTodo})
	}
	for _, body := range []string{"first", "second"} {
		d.Must(t, companytest.Board, "comment.create", entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: body}, nil)
	}
	r := entity.Run{Company: d.Company, Agent: ada, Context: entity.RunContext{IssueID: i.ID,
		WakeReason: "issue_commented"}}
	thin, err := company.WakeOf(d.Tx, r, core.TimeOf(d.Now))
	if err != nil || strings.Contains(string(thin), "assignments") || !strings.Contains(string(thin), i.ID) {
		t.Fatalf("%s %v", thin, err)
	}
	a, _ := entity.AgentTable.Get(d.Tx, d.Company, ada)
	a.ContextMode = "fat"
	entity.AgentTable.Put(d.Tx, a.Company, a.ID, a)
	fat, err := company.WakeOf(d.Tx, r, core.TimeOf(d.Now))
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
	if got.WakeReason != "issue_commented" || len(got.Assignments) != company.MaxFatIssues || got.Issue.Title != "Sail" ||
		!strings.HasSuffix(got.Issue.Description, "ä…") ||
		got.Budget.SpentMonthlyCents == nil || got.Budget.Policies == nil || len(got.RecentComments) != 2 ||
		got.RecentComments[1].Body != "second" {
		t.Errorf("%s", fat)
	}
	if got.Goal.ID != aim || got.Goal.Title != "Reach the coast" || got.Goal.Description != "By autumn." ||
		strings.Contains(string(thin), "Reach") {
		t.Errorf("the goal is %+v; thin: %s", got.Goal, thin)
	}
}
