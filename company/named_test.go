package company

import (
	"encoding/json"
	"fmt"
	"testing"
)

// What names nothing, or what is gone, is refused where it is said. What was named before it went stays.
func TestWhatIsNamedIsThere(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, gone, name := d.hire(t, "Ada", ""), d.hire(t, "Gone", ""), "Rig"
	stages := func(who ...string) json.RawMessage {
		b := `{"stages":[`
		for n, w := range who {
			if n > 0 {
				b += ","
			}
			b += fmt.Sprintf(`{"id":%q,"type":"review","participants":[%s]}`, uid(900+n), w)
		}
		return json.RawMessage(b + `]}`)
	}
	reviewer := func(agent string) string { return fmt.Sprintf(`{"type":"agent","agentId":%q}`, agent) }
	i := d.issue(t, CreateIssue{Assignee: ada})
	reviewed := d.issue(t, CreateIssue{ExecutionPolicy: stages(reviewer(gone))})
	d.must(t, board, "agent.terminate", ChangeAgent{Agent: gone}, nil)
	here, there := d.project("Here"), d.project("There")
	home, away := d.workspace(here, "/tmp/here", ""), d.workspace(there, "/tmp/there", "")
	space := func(id string) json.RawMessage { return fmt.Appendf(nil, `{"defaultProjectWorkspaceId":%q}`, id) }
	product := WorkProduct{ID: d.id()}
	kind, provider := "preview_url", "x"
	d.must(t, board, "product.create", SaveProduct{ID: product.ID, Issue: i.ID, Type: &kind, Provider: &provider, Title: &name}, nil)
	service := d.id()
	services.Put(d.tx, d.company, service, RuntimeService{ID: service, Company: d.company})
	propose := func(task string) CreateInteraction {
		return CreateInteraction{ID: d.id(), Issue: i.ID, Kind: SuggestTasks, Payload: fmt.Appendf(nil, `{"version":1,"tasks":[{"clientKey":"a","title":"x",%s}]}`, task)}
	}
	for what, c := range map[string]struct {
		kind    string
		payload any
	}{
		"a window":                      {"budget.set", SetBudget{Type: ScopeAgent, Scope: ada, Window: "fortnight", Amount: Cents(5)}},
		"a service":                     {"product.update", SaveProduct{ID: product.ID, RuntimeService: new(nowhere)}},
		"a project's workspace":         {"project.update", SaveProject{ID: here, WorkspacePolicy: space(nowhere)}},
		"another project's workspace":   {"project.update", SaveProject{ID: here, WorkspacePolicy: space(away)}},
		"a new project's workspace":     {"project.create", SaveProject{ID: d.id(), Name: &name, WorkspacePolicy: space(home)}},
		"a stage's agent":               {"issue.update", UpdateIssue{Issue: i.ID, ExecutionPolicy: stages(reviewer(ada), reviewer(nowhere))}},
		"a stage's agent that is ended": {"issue.update", UpdateIssue{Issue: i.ID, ExecutionPolicy: stages(reviewer(gone))}},
		"a stage's user":                {"issue.create", CreateIssue{ID: d.id(), Title: "x", AllowDuplicate: true, ExecutionPolicy: stages(`{"type":"user","userId":"nobody"}`)}},
		"a task's agent":                {"interaction.create", propose(`"assigneeAgentId":"` + nowhere + `"`)},
		"a task's ended agent":          {"interaction.create", propose(`"assigneeAgentId":"` + gone + `"`)},
		"a task's user":                 {"interaction.create", propose(`"assigneeUserId":"nobody"`)},
		"a task's project":              {"interaction.create", propose(`"projectId":"` + nowhere + `"`)},
		"a task's goal":                 {"interaction.create", propose(`"goalId":"` + nowhere + `"`)},
		"a task's parent":               {"interaction.create", propose(`"parentId":"` + nowhere + `"`)},
	} {
		at := d.tx
		d.tx = at.Child()
		if err := d.do(board, c.kind, c.payload, nil); err == nil {
			t.Errorf("%s that is not there is taken", what)
		}
		d.tx = at
	}
	d.must(t, board, "budget.set", SetBudget{Type: ScopeAgent, Scope: ada, Window: WindowWeek, Amount: Cents(5)}, nil)
	d.must(t, board, "product.update", SaveProduct{ID: product.ID, RuntimeService: &service}, nil)
	services.Delete(d.tx, d.company, service)
	d.must(t, board, "product.update", SaveProduct{ID: product.ID, RuntimeService: &service, Title: new("y")}, nil)
	d.must(t, board, "project.update", SaveProject{ID: here, WorkspacePolicy: space(home)}, nil)
	workspaces.Delete(d.tx, d.company, home)
	d.must(t, board, "project.update", SaveProject{ID: here, WorkspacePolicy: fmt.Appendf(nil, `{"enabled":true,"defaultProjectWorkspaceId":%q}`, home)}, nil)
	d.must(t, board, "issue.update", UpdateIssue{Issue: reviewed.ID, ExecutionPolicy: stages(reviewer(gone), reviewer(ada))}, nil)
	d.must(t, board, "interaction.create", propose(`"assigneeAgentId":"`+ada+`","projectId":"`+here+`","parentId":"`+reviewed.ID+`"`), nil)
}
