package company

import (
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// What named an agent, a project, a goal or an issue that was deleted names it no
// more, and can be changed as before.
func TestWhatIsGoneIsNotNamed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, root, name := d.hire(t, "Ada", ""), d.goal(t, "Root", ""), "Rig"
	goal := d.goal(t, "Ship", root.ID)
	d.must(t, board, "goal.update", SaveGoal{ID: goal.ID, Owner: &ada}, nil)
	project := Project{ID: d.id()}
	d.must(t, board, "project.create", SaveProject{ID: project.ID, Name: &name, Lead: &ada}, nil)
	above := d.issue(t, CreateIssue{})
	parent := d.issue(t, CreateIssue{Parent: above.ID})
	routine := SaveRoutine{ID: d.id(), Title: new("Daily"), Assignee: &ada, Project: &project.ID, Goal: &goal.ID, Parent: &parent.ID}
	d.must(t, board, "routine.create", routine, nil)

	d.must(t, board, "agent.delete", ChangeAgent{Agent: ada}, nil)
	err := d.do(board, "project.update", SaveProject{ID: project.ID, Description: new("x")}, nil)
	p, _ := projects.Get(d.tx, d.company, project.ID)
	g, _ := goals.Get(d.tx, d.company, goal.ID)
	if err != nil || p.Lead != "" || g.Owner != "" {
		t.Errorf("%v: the project has the lead %q, the goal the owner %q", err, p.Lead, g.Owner)
	}
	r, _ := routines.Get(d.tx, d.company, routine.ID)
	if r.Assignee != "" || r.Status != RoutinePaused {
		t.Errorf("the routine is %s with %q", r.Status, r.Assignee)
	}
	d.must(t, board, "project.delete", DeleteProject{ID: project.ID}, nil)
	d.must(t, board, "goal.delete", DeleteGoal{ID: goal.ID}, nil)
	d.must(t, board, "issue.delete", DeleteIssue{Issue: parent.ID}, nil)
	if r, _ := routines.Get(d.tx, d.company, routine.ID); r.Project != "" || string(r.Goal) != root.ID || string(r.Parent) != above.ID {
		t.Errorf("the routine is for project %q, goal %q and issue %q", r.Project, r.Goal, r.Parent)
	}
}

// A company's issues are done where its projects are, and those answer for it who
// belong to it.
func TestWhatIsNamedBelongsThere(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	here, there := d.project("Here"), d.project("There")
	home, away := d.workspace(here, "/tmp/here", ""), d.workspace(there, "/tmp/there", "")
	const no = "Project workspace must belong to the selected project"
	wantRefusal(t, d.do(board, "issue.create", CreateIssue{ID: d.id(), Title: "x", Project: here, Workspace: away}, nil), ledger.Unprocessable, no)
	i := d.issue(t, CreateIssue{Project: here, Workspace: home})
	wantRefusal(t, d.do(board, "issue.update", UpdateIssue{Issue: i.ID, Workspace: &away}, nil), ledger.Unprocessable, no)
	wantRefusal(t, d.do(board, "issue.update", UpdateIssue{Issue: i.ID, Project: &there, Workspace: &home}, nil), ledger.Unprocessable, no)
	d.must(t, board, "issue.update", UpdateIssue{Issue: i.ID, Project: &there, Workspace: &away}, nil)

	acme := d.found(t, "Acme")
	d.company = acme.ID
	wantRefusal(t, d.do(board, "company.update", SaveCompany{ResponsibleUser: new("nobody")}, nil), ledger.NotFound, "Responsible user not found")
	d.must(t, board, "company.update", SaveCompany{ResponsibleUser: new("")}, nil)
	d.must(t, board, "company.update", SaveCompany{ResponsibleUser: new("local-board")}, nil)
}
