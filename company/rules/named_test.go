package rules_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/company/place"
)

// A new reference to a row that does not exist is refused. A reference to a row that was
// deleted later may stay.
func TestWhatIsNamedIsThere(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, gone, name := d.Hire(t, "Ada", ""), d.Hire(t, "Gone", ""), "Rig"
	stages := func(who ...string) json.RawMessage {
		b := `{"stages":[`
		for n, w := range who {
			if n > 0 {
				b += ","
			}
			b += fmt.Sprintf(`{"id":%q,"type":"review","participants":[%s]}`, companytest.UID(900+n), w)
		}
		return json.RawMessage(b + `]}`)
	}
	reviewer := func(agent string) string { return fmt.Sprintf(`{"type":"agent","agentId":%q}`, agent) }
	i := d.Issue(t, company.CreateIssue{Assignee: ada})
	reviewed := d.Issue(t, company.CreateIssue{ExecutionPolicy: stages(reviewer(gone))})
	d.Must(t, companytest.Board, "agent.terminate", company.ChangeAgent{Agent: gone}, nil)
	here, there := d.Project("Here"), d.Project("There")
	home, away := d.Workspace(here, "/tmp/here", ""), d.Workspace(there, "/tmp/there", "")
	space := func(id string) json.RawMessage { return fmt.Appendf(nil, `{"defaultProjectWorkspaceId":%q}`, id) }
	product := file.WorkProduct{ID: d.ID()}
	kind, provider := "preview_url", "x"
	d.Must(t, companytest.Board, "product.create", file.SaveProduct{ID: product.ID, Issue: i.ID, Type: &kind,
		Provider: &provider, Title: &name}, nil)
	service := d.ID()
	place.Services.Put(d.Tx, d.Company, service, place.RuntimeService{ID: service, Company: d.Company})
	propose := func(task string) paper.CreateInteraction {
		return paper.CreateInteraction{ID: d.ID(), Issue: i.ID, Kind: paper.SuggestTasks,
			Payload: fmt.Appendf(nil, `{"version":1,"tasks":[{"clientKey":"a","title":"x",%s}]}`, task)}
	}
	for what, c := range map[string]struct {
		kind    string
		payload any
	}{
		"a window": {"budget.set", money.SetBudget{Type: entity.ScopeAgent, Scope: ada,
			Window: "fortnight", Amount: core.Cents(5)}},
		"a service":                   {"product.update", file.SaveProduct{ID: product.ID, RuntimeService: new(nowhere)}},
		"a project's workspace":       {"project.update", entity.SaveProject{ID: here, WorkspacePolicy: space(nowhere)}},
		"another project's workspace": {"project.update", entity.SaveProject{ID: here, WorkspacePolicy: space(away)}},
		"a new project's workspace": {"project.create", entity.SaveProject{ID: d.ID(), Name: &name,
			WorkspacePolicy: space(home)}},
		"a stage's agent": {"issue.update", company.UpdateIssue{Issue: i.ID,
			ExecutionPolicy: stages(reviewer(ada), reviewer(nowhere))}},
		"a stage's agent that is ended": {"issue.update", company.UpdateIssue{Issue: i.ID,
			ExecutionPolicy: stages(reviewer(gone))}},
		"a stage's user": {"issue.create", company.CreateIssue{ID: d.ID(), Title: "x", AllowDuplicate: true,
			ExecutionPolicy: stages(`{"type":"user","userId":"nobody"}`)}},
		"a task's agent":       {"interaction.create", propose(`"assigneeAgentId":"` + nowhere + `"`)},
		"a task's ended agent": {"interaction.create", propose(`"assigneeAgentId":"` + gone + `"`)},
		"a task's user":        {"interaction.create", propose(`"assigneeUserId":"nobody"`)},
		"a task's project":     {"interaction.create", propose(`"projectId":"` + nowhere + `"`)},
		"a task's goal":        {"interaction.create", propose(`"goalId":"` + nowhere + `"`)},
		"a task's parent":      {"interaction.create", propose(`"parentId":"` + nowhere + `"`)},
	} {
		at := d.Tx
		d.Tx = at.Child()
		if err := d.Do(companytest.Board, c.kind, c.payload, nil); err == nil {
			t.Errorf("%s that is not there is taken", what)
		}
		d.Tx = at
	}
	d.Must(t, companytest.Board, "budget.set", money.SetBudget{Type: entity.ScopeAgent, Scope: ada,
		Window: money.WindowWeek, Amount: core.Cents(5)}, nil)
	d.Must(t, companytest.Board, "product.update", file.SaveProduct{ID: product.ID, RuntimeService: &service}, nil)
	place.Services.Delete(d.Tx, d.Company, service)
	d.Must(t, companytest.Board, "product.update", file.SaveProduct{ID: product.ID, RuntimeService: &service,
		Title: new("y")}, nil)
	d.Must(t, companytest.Board, "project.update", entity.SaveProject{ID: here, WorkspacePolicy: space(home)}, nil)
	place.Workspaces.Delete(d.Tx, d.Company, home)
	d.Must(t, companytest.Board, "project.update", entity.SaveProject{ID: here, WorkspacePolicy: fmt.Appendf(nil,
		`{"enabled":true,"defaultProjectWorkspaceId":%q}`, home)}, nil)
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: reviewed.ID,
		ExecutionPolicy: stages(reviewer(gone), reviewer(ada))}, nil)
	d.Must(t, companytest.Board, "interaction.create",
		propose(`"assigneeAgentId":"`+ada+`","projectId":"`+here+`","parentId":"`+reviewed.ID+`"`), nil)
}
