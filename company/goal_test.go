package company

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

func (d *desk) goal(t testing.TB, title, parent string) Goal {
	t.Helper()
	var g Goal
	d.must(t, board, "goal.create", SaveGoal{ID: d.id(), Title: &title, Parent: &parent}, &g)
	return g
}

func TestGoalsAreATree(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	root := d.goal(t, "root", "")
	mid := d.goal(t, "mid", root.ID)
	leaf := d.goal(t, "leaf", mid.ID)
	const cycle = "Parent relationship would create cycle"
	for _, parent := range []string{root.ID, mid.ID, leaf.ID} {
		wantRefusal(t, d.do(board, "goal.update", SaveGoal{ID: root.ID, Parent: &parent}, nil), ledger.Unprocessable, cycle)
	}
	nobody, title := d.id(), "x"
	wantRefusal(t, d.do(board, "goal.create", SaveGoal{ID: d.id(), Title: &title, Parent: &nobody}, nil), ledger.NotFound, "Parent goal not found")
	wantRefusal(t, d.do(board, "goal.create", SaveGoal{ID: d.id(), Title: &title, Owner: &nobody}, nil), ledger.NotFound, "Agent not found")
	wantRefusal(t, d.do(board, "goal.update", SaveGoal{ID: nobody, Title: &title}, nil), ledger.NotFound, "Goal not found")
	galaxy, lost := GoalLevel("galaxy"), GoalStatus("lost")
	wantRefusal(t, d.do(board, "goal.update", SaveGoal{ID: leaf.ID, Level: &galaxy}, nil), ledger.Invalid, "")
	wantRefusal(t, d.do(board, "goal.update", SaveGoal{ID: leaf.ID, Status: &lost}, nil), ledger.Invalid, "")

	project := d.id()
	d.must(t, board, "project.create", SaveProject{ID: project, Name: &title, Goals: &[]string{mid.ID, leaf.ID, mid.ID}}, nil)
	d.must(t, board, "goal.delete", DeleteGoal{ID: mid.ID}, nil)
	if g, _ := GoalOf(d.tx, d.company, leaf.ID); string(g.Parent) != root.ID {
		t.Errorf("the child of a deleted goal hangs on %q", g.Parent)
	}
	if p, _ := ProjectOf(d.tx, d.company, project); p.Goal != leaf.ID || len(p.Goals) != 1 {
		t.Errorf("the project serves %q, %v", p.Goal, p.Goals)
	}
	if _, ok := GoalByID(d.tx, mid.ID); ok {
		t.Error("the goal is still found")
	}
	d.must(t, board, "goal.delete", DeleteGoal{ID: root.ID}, nil)
	if g, _ := GoalOf(d.tx, d.company, leaf.ID); g.Parent != "" {
		t.Errorf("the child of a deleted root hangs on %q", g.Parent)
	}
}

func TestProjectsAndTheirWorkspaces(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id, name, cwd, repo, yes := d.id(), "Robot Arm", "/tmp", "https://example.org/arm.git", true
	d.must(t, board, "project.create", SaveProject{ID: id, Name: &name, Env: []byte(`{"A":"canary"}`)}, nil)
	if strings.Contains(string(d.last[0].Details), "canary") || !strings.Contains(string(d.last[0].Details), `"envKeys":["A"]`) {
		t.Errorf("the activity says %s", d.last[0].Details)
	}
	primary := func() string { p, _ := ProjectOf(d.tx, d.company, id); return p.Workspace }
	var first, second Workspace
	d.must(t, board, "workspace.create", SaveWorkspace{ID: d.id(), Project: id, Cwd: &cwd}, &first)
	d.must(t, board, "workspace.create", SaveWorkspace{ID: d.id(), Project: id, RepoURL: &repo}, &second)
	if !first.Primary || second.Primary || primary() != first.ID || second.Name != "arm" || second.SourceType != "git_repo" {
		t.Errorf("first %+v\nsecond %+v", first, second)
	}
	d.must(t, board, "workspace.update", SaveWorkspace{ID: second.ID, Project: id, Primary: &yes}, &second)
	list := WorkspacesOf(d.tx, d.company, id)
	if len(list) != 2 || list[0].ID != second.ID || !list[0].Primary || list[1].Primary || primary() != second.ID {
		t.Errorf("workspaces %+v, primary %s", list, primary())
	}
	d.must(t, board, "workspace.delete", DeleteWorkspace{ID: second.ID, Project: id}, nil)
	if primary() != first.ID || !WorkspacesOf(d.tx, d.company, id)[0].Primary {
		t.Errorf("after the primary one went, it is %s", primary())
	}
	wantRefusal(t, d.do(board, "workspace.create", SaveWorkspace{ID: d.id(), Project: id}, nil), ledger.Invalid, "")
	wantRefusal(t, d.do(board, "workspace.delete", DeleteWorkspace{ID: second.ID, Project: id}, nil), ledger.NotFound, "Project workspace not found")

	// The value that was shown hidden stays, a new one is taken.
	d.must(t, board, "project.update", SaveProject{ID: id, Env: []byte(`{"A":{"type":"plain","value":"***REDACTED***"},"B":"2"}`)}, nil)
	if p, _ := ProjectOf(d.tx, d.company, id); string(p.Env) != `{"A":"canary","B":"2"}` {
		t.Errorf("env %s", p.Env)
	}
	when, date := Time(77), "soon"
	d.must(t, board, "project.update", SaveProject{ID: id, ArchivedAt: &when}, nil)
	wantRefusal(t, d.do(board, "project.update", SaveProject{ID: id, TargetDate: &date}, nil), ledger.Invalid, "")
	nobody := d.id()
	wantRefusal(t, d.do(board, "project.update", SaveProject{ID: id, Goals: &[]string{nobody}}, nil), ledger.NotFound, "Goal not found")
	wantRefusal(t, d.do(board, "project.update", SaveProject{ID: id, Lead: &nobody}, nil), ledger.NotFound, "Agent not found")

	if p, err := ProjectByRef(d.tx, d.company, "robot-arm"); err != nil || p.ID != id || p.ArchivedAt != when {
		t.Errorf("by name: %+v, %v", p, err)
	}
	i := d.issue(t, CreateIssue{Project: id})
	d.must(t, board, "project.delete", DeleteProject{ID: id}, nil)
	if i = d.load(i.ID); i.Project != "" || i.Workspace != "" {
		t.Errorf("the issue of a deleted project is in %q, %q", i.Project, i.Workspace)
	}
	if OwnerOf(d.tx, id) != "" || OwnerOf(d.tx, first.ID) != "" {
		t.Error("the project or its workspace is still found")
	}
}

func TestKeysOpenUntilTheyAreRevoked(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.hire(t, "Ada", "")
	hash := func(n int) string { return ledger.Order(uint64(n)) + strings.Repeat("0", 48) }
	var first AgentKey
	d.must(t, board, "agent_key.create", CreateKey{ID: d.id(), Agent: ada, Name: "one", Hash: hash(1)}, &first)
	if strings.Contains(string(d.last[0].Details), hash(1)) {
		t.Error("the activity log names the hash")
	}
	if k, ok := KeyByHash(d.tx, hash(1)); !ok || k.Agent != ada || k.ResponsibleUser != "local-board" {
		t.Errorf("the key opens %+v", k)
	}
	for _, p := range []CreateKey{
		{ID: d.id(), Agent: ada, Name: "same token", Hash: hash(1)}, {ID: first.ID, Agent: ada, Name: "same ID", Hash: hash(2)},
		{ID: d.id(), Agent: ada, Name: "token", Hash: "pcp_canary"}, {ID: d.id(), Agent: ada, Hash: hash(3)}, {ID: d.id(), Agent: d.id(), Name: "x", Hash: hash(4)},
	} {
		refused(t, d.do(board, "agent_key.create", p, nil))
	}
	bob := d.hire(t, "Bob", "")
	wantRefusal(t, d.do(board, "agent_key.revoke", RevokeKey{ID: first.ID, Agent: bob}, nil), ledger.NotFound, "Key not found")
	d.must(t, board, "agent_key.revoke", RevokeKey{ID: first.ID, Agent: ada}, nil)
	d.must(t, board, "agent_key.revoke", RevokeKey{ID: first.ID, Agent: ada}, nil) // again changes nothing
	if _, ok := KeyByHash(d.tx, hash(1)); ok {
		t.Error("a revoked key opens")
	}
	if list := KeysOf(d.tx, d.company, ada); len(list) != 1 || list[0].RevokedAt == 0 {
		t.Errorf("keys %+v", list)
	}
	for n := range MaxAgentKeys {
		d.must(t, board, "agent_key.create", CreateKey{ID: d.id(), Agent: ada, Name: "more", Hash: hash(100 + n)}, nil)
	}
	if _, ok := KeyByID(d.tx, first.ID); ok {
		t.Error("the revoked key did not make room")
	}
	wantRefusal(t, d.do(board, "agent_key.create", CreateKey{ID: d.id(), Agent: ada, Name: "too many", Hash: hash(999)}, nil), ledger.Conflict, "")
	d.must(t, board, "agent.terminate", ChangeAgent{Agent: ada}, nil)
	if _, ok := KeyByHash(d.tx, hash(100)); ok {
		t.Error("the key of an agent that is gone opens")
	}
	wantRefusal(t, d.do(board, "agent_key.create", CreateKey{ID: d.id(), Agent: ada, Name: "x", Hash: hash(5)}, nil), ledger.Conflict, "Cannot create keys for terminated agents")
}

func TestDashboardCounts(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	name, limit := "Acme", Cents(1000)
	d.company = d.id()
	d.must(t, board, "company.create", SaveCompany{ID: d.company, Name: &name, Budget: &limit}, nil)
	ada, bob := d.hire(t, "Ada", ""), d.hire(t, "Bob", "")
	d.must(t, board, "agent.pause", ChangeAgent{Agent: bob}, nil)
	for _, s := range []IssueStatus{IssueBacklog, IssueTodo, IssueTodo} {
		d.issue(t, CreateIssue{Status: s})
	}
	done := d.issue(t, CreateIssue{Status: IssueTodo})
	d.must(t, board, "issue.update", UpdateIssue{Issue: done.ID, Status: IssueDone}, nil)
	if err := d.cost(board, ada, 250); err != nil {
		t.Fatal(err)
	}
	day := TimeOf(d.now)
	put := func(id string, status RunStatus, retryOf string, at Time) {
		d.height++
		r := Run{ID: id, Company: d.company, Agent: ada, Status: status, RetryOf: NullText(retryOf), Queue: d.height, CreatedAt: at}
		runs.Put(d.tx, d.company, id, r)
	}
	lost, old := d.id(), d.id()
	put(old, RunFailed, "", day-20*86_400_000)
	put(lost, RunInterrupted, "", day)
	put(d.id(), RunFailed, "", day)
	put(d.id(), RunSucceeded, lost, day)
	put(d.id(), RunCancelled, "", day)
	b := DashboardOf(d.tx, d.company, day)
	if b.Agents.Active != 1 || b.Agents.Paused != 1 || b.Tasks.Open != 3 || b.Tasks.Done != 1 || b.Costs.Spend.Cents() != 250 || b.Costs.Utilization != 2500 {
		t.Errorf("dashboard %+v", b)
	}
	today := b.RunActivity[len(b.RunActivity)-1]
	if len(b.RunActivity) != dashboardDays || today.Total != 4 || today.Succeeded != 1 || today.Failed != 1 || today.Recovered != 1 || today.Other != 1 || today.ByError["unknown"] != 1 {
		t.Errorf("runs of today %+v of %d days", today, len(b.RunActivity))
	}
	total := 0
	for _, day := range b.RunActivity {
		total += day.Total
	}
	if total != 4 {
		t.Errorf("%d runs in the last days, the one of three weeks ago does not count", total)
	}
	if s := Stats(d.tx)[d.company]; s.Agents != 2 || s.Issues != 4 {
		t.Errorf("stats %+v", s)
	}
}

func TestNotesHoldNoSecrets(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	n := Note{Action: "custom.note", EntityType: "company", EntityID: d.company, Details: []byte(`{"x":1,"token":"canary"}`)}
	d.must(t, board, "activity.note", n, nil)
	if got := string(d.last[0].Details); got != `{"token":"***REDACTED***","x":1}` {
		t.Errorf("details %s", got)
	}
	n.Action = ""
	wantRefusal(t, d.do(board, "activity.note", n, nil), ledger.Invalid, "")
	n.Action, n.Details = "x", []byte(`{"x":"`+strings.Repeat("y", MaxNote)+`"}`)
	wantRefusal(t, d.do(board, "activity.note", n, nil), ledger.TooLarge, "")
}
