package rules_test

import (
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestAgentsDoNotCancelWhatOthersWant(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	boss := d.Hire(t, "Boss", "")
	ada := d.Hire(t, "Ada", boss)
	who := companytest.As{Agent: ada, Run: d.Run(ada)}
	theirs := d.Issue(t, company.CreateIssue{Assignee: ada})
	var own entity.IssueResult
	d.Must(t, who, "issue.create", company.CreateIssue{ID: d.ID(), Title: "Mine"}, &own)
	r := companytest.WantRefusal(t, d.Do(who, "issue.update", company.UpdateIssue{Issue: theirs.ID,
		Status: entity.IssueCancelled}, nil), ledger.Unprocessable,
		"An agent may not cancel a task that another created: complete it, block it, or escalate to its manager")
	if m := companytest.Detail(t, r); len(m["allowedStatuses"].([]any)) != 2 || m["escalateToAgentId"] != boss {
		t.Errorf("details %v", m)
	}
	d.Must(t, who, "issue.update", company.UpdateIssue{Issue: own.Issue.ID, Status: entity.IssueCancelled}, nil)
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: theirs.ID, Status: entity.IssueCancelled}, nil)
}

func TestRequestDepthIsBounded(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	at := d.Issue(t, company.CreateIssue{})
	for n := uint64(1); n < entity.MaxIssueDepth; n++ {
		if at = d.Issue(t, company.CreateIssue{Parent: at.ID}); at.Depth != n {
			t.Fatalf("depth %d, want %d", at.Depth, n)
		}
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.create", company.CreateIssue{ID: d.ID(), Title: "x",
		Parent: at.ID}, nil), ledger.Unprocessable, "Issues can be nested at most 64 deep")
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.create", company.CreateIssue{ID: d.ID(), Title: "y",
		Depth: company.MaxRequestDepth + 1}, nil), ledger.Unprocessable, "Work can be delegated at most 64 deep")
}

func TestEveryIssueResolvesToARootGoal(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	root := d.Goal(t, "Root", "")
	root.Level = "company"
	entity.StoreGoal(d.Tx, root)
	team := d.Goal(t, "Team", root.ID)
	for id, want := range map[string]int{team.ID: 2, root.ID: 1, "": 1, companytest.UID(9): 1} {
		if chain := entity.GoalChain(d.Tx, entity.Issue{Company: d.Company, Goal: id}); len(chain) != want ||
			chain[want-1].ID != root.ID || chain[want-1].Role != entity.Initiative {
			t.Errorf("%q: %+v", id, chain)
		}
	}
}

func TestACompanyAlwaysHasARootGoal(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	i := d.Issue(t, company.CreateIssue{})
	row, _ := entity.CompanyOf(d.Tx, d.Company)
	implied := entity.ImpliedGoalID(d.Company)
	if chain := entity.GoalChain(d.Tx, i); len(chain) != 1 || chain[0].ID != implied || chain[0].Title != row.Name ||
		chain[0].Role != entity.Initiative {
		t.Fatalf("without goals: %+v", chain)
	}
	if g, ok := entity.GoalOf(d.Tx, d.Company, implied); !ok || g.Company != d.Company ||
		len(entity.GoalsOf(d.Tx, d.Company)) != 0 {
		t.Fatalf("the implied root: %+v, %v", g, ok)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "goal.delete", company.DeleteGoal{ID: implied}, nil),
		ledger.Conflict, "The last root goal can not be deleted; create another root goal first")

	// A goal that stands alone is completed by the root; a team's goal of a project is a milestone.
	team := d.Goal(t, "Ship", "")
	levels := map[string]*entity.GoalLevel{}
	for _, l := range entity.GoalLevels {
		levels[string(l)] = &l
	}
	d.Must(t, companytest.Board, "goal.update", entity.SaveGoal{ID: team.ID, Level: levels["team"]}, nil)
	project := d.ID()
	d.Must(t, companytest.Board, "project.create", entity.SaveProject{ID: project, Name: new("Arm"),
		Goals: &[]string{team.ID}}, nil)
	i = d.Issue(t, company.CreateIssue{Project: project})
	chain := entity.GoalChain(d.Tx, i)
	if len(chain) != 2 || chain[0].ID != team.ID || chain[0].Role != entity.Milestone || chain[1].ID != implied {
		t.Fatalf("of a project: %+v", chain)
	}
	i.Goal = ""
	if chain := entity.GoalChain(d.Tx, i); len(chain) != 2 || chain[0].ID != team.ID {
		t.Errorf("by its project: %+v", chain)
	}
	child := d.Issue(t, company.CreateIssue{Parent: i.ID})
	child.Goal, child.Project = "", ""
	if chain := entity.GoalChain(d.Tx, child); len(chain) != 2 || chain[0].ID != team.ID {
		t.Errorf("by the issue above: %+v", chain)
	}

	// A goal that is put below the implied root turns the root into a stored goal of the company.
	d.Must(t, companytest.Board, "goal.update", entity.SaveGoal{ID: team.ID, Parent: &implied}, nil)
	if list := entity.GoalsOf(d.Tx, d.Company); len(list) != 2 || entity.DefaultGoal(d.Tx, d.Company) != implied {
		t.Fatalf("%+v", list)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "goal.delete", company.DeleteGoal{ID: implied}, nil),
		ledger.Conflict, "A company with goals keeps at least one root goal of level company")
	companytest.WantRefusal(t, d.Do(companytest.Board, "goal.update", entity.SaveGoal{ID: implied, Level: levels["team"]},
		nil), ledger.Conflict, "A company with goals keeps at least one root goal of level company")
	companytest.WantRefusal(t, d.Do(companytest.Board, "goal.update", entity.SaveGoal{ID: implied, Level: levels["task"]},
		nil), ledger.Unprocessable, "A goal of level team cannot stand below one of level task")
	companytest.WantRefusal(t, d.Do(companytest.Board, "goal.update", entity.SaveGoal{ID: implied, Parent: &team.ID}, nil),
		ledger.Unprocessable, "Parent relationship would create cycle")
	task := d.Goal(t, "Detail", team.ID)
	companytest.WantRefusal(t, d.Do(companytest.Board, "goal.create", entity.SaveGoal{ID: d.ID(), Title: new("x"),
		Level: levels["company"], Parent: &task.ID}, nil), ledger.Unprocessable,
		"A goal of level company cannot stand below one of level task")

	// Issues of a deleted goal move to its parent.
	served := d.Issue(t, company.CreateIssue{Goal: task.ID})
	d.Must(t, companytest.Board, "goal.delete", company.DeleteGoal{ID: task.ID}, nil)
	if got, _ := entity.IssueOf(d.Tx, d.Company, served.ID); got.Goal != team.ID {
		t.Errorf("the issue serves %q", got.Goal)
	}
	d.Must(t, companytest.Board, "goal.delete", company.DeleteGoal{ID: team.ID}, nil)
	if got, _ := entity.IssueOf(d.Tx, d.Company, served.ID); got.Goal != implied {
		t.Errorf("the issue serves %q", got.Goal)
	}
	d.Must(t, companytest.Board, "goal.delete", company.DeleteGoal{ID: implied},
		nil) // without children, it is implied again
	if chain := entity.GoalChain(d.Tx, served); len(chain) != 1 || chain[0].ID != implied {
		t.Errorf("in the end: %+v", chain)
	}
}

func TestAGoalOfTooManyIssuesStays(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	g := d.Goal(t, "Big", "")
	for n := range company.MaxGoalMoves + 1 {
		entity.IssuesByGoal.Add(d.Tx, d.Company, g.ID, companytest.UID(n))
	}
	if r := companytest.Refused(t, d.Do(companytest.Board, "goal.delete", company.DeleteGoal{ID: g.ID},
		nil)); r.Code != ledger.Conflict || r.ErrCode != "goal_in_use" {
		t.Errorf("%+v", r)
	}
}

// Who may take over an issue: the board from everybody; an agent from itself and its subtree,
// issues that it made, and any issue with the permission to assign tasks.
func TestAgentsTakeNoTasksFromOthers(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	boss := d.Hire(t, "Boss", "")
	ada, bob := d.Hire(t, "Ada", boss), d.Hire(t, "Bob", boss)
	by := func(agent string) companytest.As { return companytest.As{Agent: agent, Run: d.Run(agent)} }
	asAda, asBob, asBoss := by(ada), by(bob), by(boss)
	me, yes, no := "local-board", true, false
	for _, agent := range []string{ada, bob, boss} { // new agents may assign
		d.Must(t, companytest.Board, "agent.permissions", company.GrantAgent{Agent: agent,
			Grant: entity.Grant{CreateAgents: &no, AssignTasks: &no}}, nil)
	}
	of := func(p company.CreateIssue) string { return d.Issue(t, p).ID }
	give := func(who companytest.As, issue string, to *string) error {
		return d.Do(who, "issue.update", company.UpdateIssue{Issue: issue, Assignee: to}, nil)
	}
	theirs := of(company.CreateIssue{Assignee: ada, Status: entity.IssueBacklog})
	companytest.WantRefusal(t, give(asBob, theirs, &bob), ledger.Forbidden, "Missing permission: tasks:assign")
	companytest.WantRefusal(t, give(asBob, theirs, new("")), ledger.Forbidden, "Missing permission: tasks:assign")
	companytest.WantRefusal(t, d.Do(asBob, "issue.update", company.UpdateIssue{Issue: theirs, AssigneeUser: &me}, nil),
		ledger.Forbidden, "Missing permission: tasks:assign")
	persons := of(company.CreateIssue{AssigneeUser: me})
	companytest.WantRefusal(t, give(asBob, persons, &bob), ledger.Forbidden, "Missing permission: tasks:assign")
	var made entity.IssueResult
	d.Must(t, asBob, "issue.create", company.CreateIssue{ID: d.ID(), Title: "Made by Bob", Assignee: ada,
		Status: entity.IssueBacklog}, &made)
	for what, err := range map[string]error{
		"what nobody has":      give(asBob, of(company.CreateIssue{}), &bob),
		"what it made":         give(asBob, made.Issue.ID, &bob),
		"its own, to another":  give(asAda, of(company.CreateIssue{Assignee: ada, Status: entity.IssueBacklog}), &bob),
		"a report's":           give(asBoss, theirs, &bob),
		"anybody's, the board": give(companytest.Board, theirs, &ada),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	d.Must(t, companytest.Board, "agent.permissions", company.GrantAgent{Agent: bob,
		Grant: entity.Grant{AssignTasks: &yes}}, nil)
	if err := give(asBob, persons, &bob); err != nil {
		t.Errorf("with the permission: %v", err)
	}
	d.Must(t, companytest.Board, "agent.permissions", company.GrantAgent{Agent: bob,
		Grant: entity.Grant{AssignTasks: &no}}, nil)
	companytest.WantRefusal(t, give(asBob, theirs, &bob), ledger.Forbidden, "Missing permission: tasks:assign")

	// A hidden issue counts as cancelled.
	at := core.TimeOf(d.Now)
	companytest.WantRefusal(t, d.Do(asAda, "issue.update", company.UpdateIssue{Issue: theirs, HiddenAt: &at}, nil),
		ledger.Forbidden, "Board access required")
	d.Must(t, asBob, "issue.update", company.UpdateIssue{Issue: made.Issue.ID, HiddenAt: &at}, nil)
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: theirs, HiddenAt: &at}, nil)

	// An issue's assignee must belong to the company.
	for user, ok := range map[string]bool{me: true, "stranger": false} {
		if err := d.Do(companytest.Board, "issue.create", company.CreateIssue{ID: d.ID(), Title: "For " + user,
			AssigneeUser: user}, nil); ok {
			if err != nil {
				t.Error(err)
			}
		} else {
			companytest.WantRefusal(t, err, ledger.NotFound, "Assignee user not found")
		}
	}
	d.Enlist("ann", people.RoleOperator)
	gone := d.Enlist("eve", people.RoleOperator)
	gone.Status = people.MemberArchived
	people.Members.Put(d.Tx, d.Company, gone.ID, gone)
	d.Must(t, companytest.Board, "issue.create", company.CreateIssue{ID: d.ID(), Title: "For Ann",
		AssigneeUser: "ann"}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.create", company.CreateIssue{ID: d.ID(), Title: "For Eve",
		AssigneeUser: "eve"}, nil), ledger.NotFound, "Assignee user not found")
	d.SignsIn(t) // the local board may do nothing any more
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.create", company.CreateIssue{ID: d.ID(),
		Title: "For the board", AssigneeUser: me}, nil), ledger.NotFound, "Assignee user not found")
}

// The refusal of a cancellation names only statuses that the issue can have.
func TestCancellingNamesWhatIsLeft(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	who := companytest.As{Agent: ada, Run: d.Run(ada)}
	for _, status := range entity.IssueStatuses {
		if status.Terminal() || status == entity.IssueInProgress {
			continue
		}
		i := entity.Issue{ID: d.ID(), Company: d.Company, Number: 1, Status: status, Assignee: ada,
			CreatedUser: "local-board"}
		entity.IssueTable.Put(d.Tx, d.Company, i.ID, i)
		r := companytest.WantRefusal(t,
			d.Do(who, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueCancelled}, nil),
			ledger.Unprocessable,
			"An agent may not cancel a task that another created: complete it, block it, or escalate to its manager")
		list, _ := companytest.Detail(t, r)["allowedStatuses"].([]any)
		for _, to := range list {
			if _, _, err := i.Move(entity.Move{To: entity.IssueStatus(to.(string)), Routable: true}); err != nil {
				t.Errorf("from %s it is told %s: %v", status, to, err)
			}
		}
		if len(list) != len(status.Next())-1 {
			t.Errorf("from %s it is told %v", status, list)
		}
	}
}
