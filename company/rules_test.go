package company

import (
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

func TestAgentsDoNotCancelWhatOthersWant(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	boss := d.hire(t, "Boss", "")
	ada := d.hire(t, "Ada", boss)
	who := as{ada, d.run(ada)}
	theirs := d.issue(t, CreateIssue{Assignee: ada})
	var own IssueResult
	d.must(t, who, "issue.create", CreateIssue{ID: d.id(), Title: "Mine"}, &own)
	r := wantRefusal(t, d.do(who, "issue.update", UpdateIssue{Issue: theirs.ID, Status: IssueCancelled}, nil), ledger.Unprocessable, "")
	if m := detail(t, r); len(m["allowedStatuses"].([]any)) != 2 || m["escalateToAgentId"] != boss {
		t.Errorf("details %v", m)
	}
	d.must(t, who, "issue.update", UpdateIssue{Issue: own.Issue.ID, Status: IssueCancelled}, nil)
	d.must(t, board, "issue.update", UpdateIssue{Issue: theirs.ID, Status: IssueCancelled}, nil)
}

func TestRequestDepthIsBounded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	at := d.issue(t, CreateIssue{})
	for n := uint64(1); n < MaxIssueDepth; n++ {
		if at = d.issue(t, CreateIssue{Parent: at.ID}); at.Depth != n {
			t.Fatalf("depth %d, want %d", at.Depth, n)
		}
	}
	wantRefusal(t, d.do(board, "issue.create", CreateIssue{ID: d.id(), Title: "x", Parent: at.ID}, nil), ledger.Unprocessable, "")
	wantRefusal(t, d.do(board, "issue.create", CreateIssue{ID: d.id(), Title: "y", Depth: MaxRequestDepth + 1}, nil), ledger.Unprocessable, "")
}

func TestEveryIssueResolvesToARootGoal(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	root := d.goal(t, "Root", "")
	root.Level = "company"
	storeGoal(d.tx, root)
	team := d.goal(t, "Team", root.ID)
	for id, want := range map[string]int{team.ID: 2, root.ID: 1, "": 1, uid(9): 1} {
		if chain := GoalChain(d.tx, Issue{Company: d.company, Goal: id}); len(chain) != want || chain[want-1].ID != root.ID || chain[want-1].Role != Initiative {
			t.Errorf("%q: %+v", id, chain)
		}
	}
}

func TestACompanyAlwaysHasARootGoal(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	i := d.issue(t, CreateIssue{})
	row, _ := CompanyOf(d.tx, d.company)
	implied := impliedGoalID(d.company)
	if chain := GoalChain(d.tx, i); len(chain) != 1 || chain[0].ID != implied || chain[0].Title != row.Name || chain[0].Role != Initiative {
		t.Fatalf("without goals: %+v", chain)
	}
	if g, ok := GoalOf(d.tx, d.company, implied); !ok || g.Company != d.company || len(GoalsOf(d.tx, d.company)) != 0 {
		t.Fatalf("the implied root: %+v, %v", g, ok)
	}
	wantRefusal(t, d.do(board, "goal.delete", DeleteGoal{ID: implied}, nil), ledger.Conflict, "")

	// A goal that stands alone is completed by the root; a team's goal of a project is a milestone.
	team := d.goal(t, "Ship", "")
	levels := map[string]*GoalLevel{}
	for _, l := range GoalLevels {
		levels[string(l)] = &l
	}
	d.must(t, board, "goal.update", SaveGoal{ID: team.ID, Level: levels["team"]}, nil)
	project := d.id()
	d.must(t, board, "project.create", SaveProject{ID: project, Name: new("Arm"), Goals: &[]string{team.ID}}, nil)
	i = d.issue(t, CreateIssue{Project: project})
	chain := GoalChain(d.tx, i)
	if len(chain) != 2 || chain[0].ID != team.ID || chain[0].Role != Milestone || chain[1].ID != implied {
		t.Fatalf("of a project: %+v", chain)
	}
	i.Goal = ""
	if chain := GoalChain(d.tx, i); len(chain) != 2 || chain[0].ID != team.ID {
		t.Errorf("by its project: %+v", chain)
	}
	child := d.issue(t, CreateIssue{Parent: i.ID})
	child.Goal, child.Project = "", ""
	if chain := GoalChain(d.tx, child); len(chain) != 2 || chain[0].ID != team.ID {
		t.Errorf("by the issue above: %+v", chain)
	}

	// What is put below the implied root makes it one of the company's own.
	d.must(t, board, "goal.update", SaveGoal{ID: team.ID, Parent: &implied}, nil)
	if list := GoalsOf(d.tx, d.company); len(list) != 2 || defaultGoal(d.tx, d.company) != implied {
		t.Fatalf("%+v", list)
	}
	wantRefusal(t, d.do(board, "goal.delete", DeleteGoal{ID: implied}, nil), ledger.Conflict, "A company with goals keeps at least one root goal of level company")
	wantRefusal(t, d.do(board, "goal.update", SaveGoal{ID: implied, Level: levels["team"]}, nil), ledger.Conflict, "")
	wantRefusal(t, d.do(board, "goal.update", SaveGoal{ID: implied, Level: levels["task"]}, nil), ledger.Unprocessable, "A goal of level team cannot stand below one of level task")
	wantRefusal(t, d.do(board, "goal.update", SaveGoal{ID: implied, Parent: &team.ID}, nil), ledger.Unprocessable, "Parent relationship would create cycle")
	task := d.goal(t, "Detail", team.ID)
	wantRefusal(t, d.do(board, "goal.create", SaveGoal{ID: d.id(), Title: new("x"), Level: levels["company"], Parent: &task.ID}, nil), ledger.Unprocessable, "A goal of level company cannot stand below one of level task")

	// Issues of a goal that goes move up.
	served := d.issue(t, CreateIssue{Goal: task.ID})
	d.must(t, board, "goal.delete", DeleteGoal{ID: task.ID}, nil)
	if got, _ := IssueOf(d.tx, d.company, served.ID); got.Goal != team.ID {
		t.Errorf("the issue serves %q", got.Goal)
	}
	d.must(t, board, "goal.delete", DeleteGoal{ID: team.ID}, nil)
	if got, _ := IssueOf(d.tx, d.company, served.ID); got.Goal != implied {
		t.Errorf("the issue serves %q", got.Goal)
	}
	d.must(t, board, "goal.delete", DeleteGoal{ID: implied}, nil) // alone, it is implied again
	if chain := GoalChain(d.tx, served); len(chain) != 1 || chain[0].ID != implied {
		t.Errorf("in the end: %+v", chain)
	}
}

func TestAGoalOfTooManyIssuesStays(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	g := d.goal(t, "Big", "")
	for n := range MaxGoalMoves + 1 {
		issuesByGoal.Add(d.tx, d.company, g.ID, uid(n))
	}
	if r := refused(t, d.do(board, "goal.delete", DeleteGoal{ID: g.ID}, nil)); r.Code != ledger.Conflict || r.ErrCode != "goal_in_use" {
		t.Errorf("%+v", r)
	}
}

// Who may take an issue from whom: the board from everybody, an agent from itself
// and its subtree, what it made, and with the permission to assign tasks.
func TestAgentsTakeNoTasksFromOthers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	boss := d.hire(t, "Boss", "")
	ada, bob := d.hire(t, "Ada", boss), d.hire(t, "Bob", boss)
	by := func(agent string) as { return as{agent, d.run(agent)} }
	asAda, asBob, asBoss := by(ada), by(bob), by(boss)
	me, yes, no := "local-board", true, false
	for _, agent := range []string{ada, bob, boss} { // new ones may assign
		d.must(t, board, "agent.permissions", GrantAgent{Agent: agent, Grant: Grant{CreateAgents: &no, AssignTasks: &no}}, nil)
	}
	of := func(p CreateIssue) string { return d.issue(t, p).ID }
	give := func(who as, issue string, to *string) error {
		return d.do(who, "issue.update", UpdateIssue{Issue: issue, Assignee: to}, nil)
	}
	theirs := of(CreateIssue{Assignee: ada, Status: IssueBacklog})
	wantRefusal(t, give(asBob, theirs, &bob), ledger.Forbidden, "Missing permission: tasks:assign")
	wantRefusal(t, give(asBob, theirs, new("")), ledger.Forbidden, "Missing permission: tasks:assign")
	wantRefusal(t, d.do(asBob, "issue.update", UpdateIssue{Issue: theirs, AssigneeUser: &me}, nil), ledger.Forbidden, "Missing permission: tasks:assign")
	persons := of(CreateIssue{AssigneeUser: me})
	wantRefusal(t, give(asBob, persons, &bob), ledger.Forbidden, "Missing permission: tasks:assign")
	var made IssueResult
	d.must(t, asBob, "issue.create", CreateIssue{ID: d.id(), Title: "Made by Bob", Assignee: ada, Status: IssueBacklog}, &made)
	for what, err := range map[string]error{
		"what nobody has":      give(asBob, of(CreateIssue{}), &bob),
		"what it made":         give(asBob, made.Issue.ID, &bob),
		"its own, to another":  give(asAda, of(CreateIssue{Assignee: ada, Status: IssueBacklog}), &bob),
		"a report's":           give(asBoss, theirs, &bob),
		"anybody's, the board": give(board, theirs, &ada),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	d.must(t, board, "agent.permissions", GrantAgent{Agent: bob, Grant: Grant{AssignTasks: &yes}}, nil)
	if err := give(asBob, persons, &bob); err != nil {
		t.Errorf("with the permission: %v", err)
	}
	d.must(t, board, "agent.permissions", GrantAgent{Agent: bob, Grant: Grant{AssignTasks: &no}}, nil)
	wantRefusal(t, give(asBob, theirs, &bob), ledger.Forbidden, "")

	// Out of sight is as good as cancelled.
	at := TimeOf(d.now)
	wantRefusal(t, d.do(asAda, "issue.update", UpdateIssue{Issue: theirs, HiddenAt: &at}, nil), ledger.Forbidden, "Board access required")
	d.must(t, asBob, "issue.update", UpdateIssue{Issue: made.Issue.ID, HiddenAt: &at}, nil)
	d.must(t, board, "issue.update", UpdateIssue{Issue: theirs, HiddenAt: &at}, nil)

	// Whom an issue is assigned to belongs to the company.
	for user, ok := range map[string]bool{me: true, "stranger": false} {
		if err := d.do(board, "issue.create", CreateIssue{ID: d.id(), Title: "For " + user, AssigneeUser: user}, nil); ok {
			if err != nil {
				t.Error(err)
			}
		} else {
			wantRefusal(t, err, ledger.NotFound, "Assignee user not found")
		}
	}
	d.enlist("ann", RoleOperator)
	gone := d.enlist("eve", RoleOperator)
	gone.Status = MemberArchived
	members.Put(d.tx, d.company, gone.ID, gone)
	d.must(t, board, "issue.create", CreateIssue{ID: d.id(), Title: "For Ann", AssigneeUser: "ann"}, nil)
	wantRefusal(t, d.do(board, "issue.create", CreateIssue{ID: d.id(), Title: "For Eve", AssigneeUser: "eve"}, nil), ledger.NotFound, "Assignee user not found")
	d.signsIn(t) // the machine's user can do nothing any more
	wantRefusal(t, d.do(board, "issue.create", CreateIssue{ID: d.id(), Title: "For the board", AssigneeUser: me}, nil), ledger.NotFound, "Assignee user not found")
}

// What a cancellation is refused with names statuses that the issue can have.
func TestCancellingNamesWhatIsLeft(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	who := as{ada, d.run(ada)}
	for _, status := range IssueStatuses {
		if status.Terminal() || status == IssueInProgress {
			continue
		}
		i := Issue{ID: d.id(), Company: d.company, Number: 1, Status: status, Assignee: ada, CreatedUser: "local-board"}
		issues.Put(d.tx, d.company, i.ID, i)
		r := wantRefusal(t, d.do(who, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueCancelled}, nil), ledger.Unprocessable, "")
		list, _ := detail(t, r)["allowedStatuses"].([]any)
		for _, to := range list {
			if _, _, err := i.Move(Move{To: IssueStatus(to.(string)), Routable: true}); err != nil {
				t.Errorf("from %s it is told %s: %v", status, to, err)
			}
		}
		if len(list) != len(status.Next())-1 {
			t.Errorf("from %s it is told %v", status, list)
		}
	}
}
