package rules_test

import (
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/ledger"
)

// Rows that referred to a deleted agent, project, goal or issue no longer do, and can be
// changed as before.
func TestWhatIsGoneIsNotNamed(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, root, name := d.Hire(t, "Ada", ""), d.Goal(t, "Root", ""), "Rig"
	goal := d.Goal(t, "Ship", root.ID)
	d.Must(t, companytest.Board, "goal.update", entity.SaveGoal{ID: goal.ID, Owner: &ada}, nil)
	project := entity.Project{ID: d.ID()}
	d.Must(t, companytest.Board, "project.create", entity.SaveProject{ID: project.ID, Name: &name, Lead: &ada}, nil)
	above := d.Issue(t, company.CreateIssue{})
	parent := d.Issue(t, company.CreateIssue{Parent: above.ID})
	theRoutine := routine.SaveRoutine{ID: d.ID(), Title: new("Daily"), Assignee: &ada, Project: &project.ID,
		Goal: &goal.ID, Parent: &parent.ID}
	d.Must(t, companytest.Board, "routine.create", theRoutine, nil)

	d.Must(t, companytest.Board, "agent.delete", company.ChangeAgent{Agent: ada}, nil)
	err := d.Do(companytest.Board, "project.update", entity.SaveProject{ID: project.ID, Description: new("x")}, nil)
	p, _ := entity.ProjectTable.Get(d.Tx, d.Company, project.ID)
	g, _ := entity.Goals.Get(d.Tx, d.Company, goal.ID)
	if err != nil || p.Lead != "" || g.Owner != "" {
		t.Errorf("%v: the project has the lead %q, the goal the owner %q", err, p.Lead, g.Owner)
	}
	r, _ := routine.Routines.Get(d.Tx, d.Company, theRoutine.ID)
	if r.Assignee != "" || r.Status != routine.RoutinePaused {
		t.Errorf("the routine is %s with %q", r.Status, r.Assignee)
	}
	d.Must(t, companytest.Board, "project.delete", company.DeleteProject{ID: project.ID}, nil)
	d.Must(t, companytest.Board, "goal.delete", company.DeleteGoal{ID: goal.ID}, nil)
	d.Must(t, companytest.Board, "issue.delete", company.DeleteIssue{Issue: parent.ID}, nil)
	if r, _ := routine.Routines.Get(d.Tx, d.Company, theRoutine.ID); r.Project != "" || string(r.Goal) != root.ID ||
		string(r.Parent) != above.ID {
		t.Errorf("the routine is for project %q, goal %q and issue %q", r.Project, r.Goal, r.Parent)
	}
}

// Projects, workspaces and responsible users of an issue must belong to its company.
func TestWhatIsNamedBelongsThere(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	here, there := d.Project("Here"), d.Project("There")
	home, away := d.Workspace(here, "/tmp/here", ""), d.Workspace(there, "/tmp/there", "")
	const no = "Project workspace must belong to the selected project"
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.create", company.CreateIssue{ID: d.ID(), Title: "x",
		Project: here, Workspace: away}, nil), ledger.Unprocessable, no)
	i := d.Issue(t, company.CreateIssue{Project: here, Workspace: home})
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Workspace: &away},
		nil), ledger.Unprocessable, no)
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Project: &there,
		Workspace: &home}, nil), ledger.Unprocessable, no)
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Project: &there, Workspace: &away}, nil)

	acme := d.Found(t, "Acme")
	d.Company = acme.ID
	companytest.WantRefusal(t, d.Do(companytest.Board, "company.update",
		entity.SaveCompany{ResponsibleUser: new("nobody")}, nil), ledger.NotFound, "Responsible user not found")
	d.Must(t, companytest.Board, "company.update", entity.SaveCompany{ResponsibleUser: new("")}, nil)
	d.Must(t, companytest.Board, "company.update", entity.SaveCompany{ResponsibleUser: new("local-board")}, nil)
}
