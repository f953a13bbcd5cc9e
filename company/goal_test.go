package company_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestGoalsAreATree(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	root := d.Goal(t, "root", "")
	mid := d.Goal(t, "mid", root.ID)
	leaf := d.Goal(t, "leaf", mid.ID)
	const cycle = "Parent relationship would create cycle"
	for _, parent := range []string{root.ID, mid.ID, leaf.ID} {
		companytest.WantRefusal(t, d.Do(companytest.Board, "goal.update", entity.SaveGoal{ID: root.ID, Parent: &parent}, nil),
			ledger.Unprocessable, cycle)
	}
	nobody, title := d.ID(), "x"
	companytest.WantRefusal(t, d.Do(companytest.Board, "goal.create", entity.SaveGoal{ID: d.ID(), Title: &title,
		Parent: &nobody}, nil), ledger.NotFound, "Parent goal not found")
	companytest.WantRefusal(t, d.Do(companytest.Board, "goal.create", entity.SaveGoal{ID: d.ID(), Title: &title,
		Owner: &nobody}, nil), ledger.NotFound, "Agent not found")
	companytest.WantRefusal(t, d.Do(companytest.Board, "goal.update", entity.SaveGoal{ID: nobody, Title: &title}, nil),
		ledger.NotFound, "Goal not found")
	galaxy, lost := entity.GoalLevel("galaxy"), entity.GoalStatus("lost")
	companytest.WantRefusal(t, d.Do(companytest.Board, "goal.update", entity.SaveGoal{ID: leaf.ID, Level: &galaxy}, nil),
		ledger.Invalid, "Unknown goal level: galaxy")
	companytest.WantRefusal(t, d.Do(companytest.Board, "goal.update", entity.SaveGoal{ID: leaf.ID, Status: &lost}, nil),
		ledger.Invalid, "Unknown goal status: lost")

	project := d.ID()
	d.Must(t, companytest.Board, "project.create", entity.SaveProject{ID: project, Name: &title,
		Goals: &[]string{mid.ID, leaf.ID, mid.ID}}, nil)
	d.Must(t, companytest.Board, "goal.delete", company.DeleteGoal{ID: mid.ID}, nil)
	if g, _ := entity.GoalOf(d.Tx, d.Company, leaf.ID); string(g.Parent) != root.ID {
		t.Errorf("the child of a deleted goal hangs on %q", g.Parent)
	}
	if p, _ := entity.ProjectOf(d.Tx, d.Company, project); p.Goal != leaf.ID || len(p.Goals) != 1 {
		t.Errorf("the project serves %q, %v", p.Goal, p.Goals)
	}
	if _, ok := entity.GoalByID(d.Tx, mid.ID); ok {
		t.Error("the goal is still found")
	}
	d.Must(t, companytest.Board, "goal.delete", company.DeleteGoal{ID: root.ID}, nil)
	if g, _ := entity.GoalOf(d.Tx, d.Company, leaf.ID); g.Parent != "" {
		t.Errorf("the child of a deleted root hangs on %q", g.Parent)
	}
}

func TestProjectsAndTheirWorkspaces(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	id, name, cwd, repo, yes := d.ID(), "Robot Arm", "/tmp", "https://example.org/arm.git", true
	d.Must(t, companytest.Board, "project.create", entity.SaveProject{ID: id, Name: &name,
		Env: []byte(`{"A":"canary"}`)}, nil)
	if strings.Contains(string(d.Last[0].Details), "canary") || !strings.Contains(string(d.Last[0].Details),
		`"envKeys":["A"]`) {
		t.Errorf("the activity says %s", d.Last[0].Details)
	}
	primary := func() string { p, _ := entity.ProjectOf(d.Tx, d.Company, id); return p.Workspace }
	var first, second place.Workspace
	d.Must(t, companytest.Board, "workspace.create", entity.SaveWorkspace{ID: d.ID(), Project: id, Cwd: &cwd}, &first)
	d.Must(t, companytest.Board, "workspace.create", entity.SaveWorkspace{ID: d.ID(), Project: id,
		RepoURL: &repo}, &second)
	if !first.Primary || second.Primary || primary() != first.ID || second.Name != "arm" ||
		second.SourceType != "git_repo" {
		t.Errorf("first %+v\nsecond %+v", first, second)
	}
	d.Must(t, companytest.Board, "workspace.update", entity.SaveWorkspace{ID: second.ID, Project: id,
		Primary: &yes}, &second)
	list := place.WorkspacesOf(d.Tx, d.Company, id)
	if len(list) != 2 || list[0].ID != second.ID || !list[0].Primary || list[1].Primary || primary() != second.ID {
		t.Errorf("workspaces %+v, primary %s", list, primary())
	}
	d.Must(t, companytest.Board, "workspace.delete", place.DeleteWorkspace{ID: second.ID, Project: id}, nil)
	if primary() != first.ID || !place.WorkspacesOf(d.Tx, d.Company, id)[0].Primary {
		t.Errorf("after the primary one went, it is %s", primary())
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "workspace.create", entity.SaveWorkspace{ID: d.ID(), Project: id},
		nil), ledger.Invalid, "A workspace needs cwd, repoUrl or remoteWorkspaceRef")
	companytest.WantRefusal(t, d.Do(companytest.Board, "workspace.delete", place.DeleteWorkspace{ID: second.ID,
		Project: id}, nil), ledger.NotFound, "Project workspace not found")

	// The value that was shown hidden stays, a new one is taken.
	d.Must(t, companytest.Board, "project.update",
		entity.SaveProject{ID: id, Env: []byte(`{"A":{"type":"plain","value":"***REDACTED***"},"B":"2"}`)}, nil)
	if p, _ := entity.ProjectOf(d.Tx, d.Company, id); string(p.Env) != `{"A":"canary","B":"2"}` {
		t.Errorf("env %s", p.Env)
	}
	when, date := core.Time(77), "soon"
	d.Must(t, companytest.Board, "project.update", entity.SaveProject{ID: id, ArchivedAt: &when}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, "project.update", entity.SaveProject{ID: id, TargetDate: &date},
		nil), ledger.Invalid, "targetDate is not a date such as 2026-12-31")
	nobody := d.ID()
	companytest.WantRefusal(t, d.Do(companytest.Board, "project.update",
		entity.SaveProject{ID: id, Goals: &[]string{nobody}}, nil), ledger.NotFound, "Goal not found")
	companytest.WantRefusal(t, d.Do(companytest.Board, "project.update", entity.SaveProject{ID: id, Lead: &nobody}, nil),
		ledger.NotFound, "Agent not found")

	if p, err := entity.ProjectByRef(d.Tx, d.Company, "robot-arm"); err != nil || p.ID != id || p.ArchivedAt != when {
		t.Errorf("by name: %+v, %v", p, err)
	}
	i := d.Issue(t, company.CreateIssue{Project: id})
	d.Must(t, companytest.Board, "project.delete", company.DeleteProject{ID: id}, nil)
	if i = d.Load(i.ID); i.Project != "" || i.Workspace != "" {
		t.Errorf("the issue of a deleted project is in %q, %q", i.Project, i.Workspace)
	}
	if core.OwnerOf(d.Tx, id) != "" || core.OwnerOf(d.Tx, first.ID) != "" {
		t.Error("the project or its workspace is still found")
	}
}

func TestKeysOpenUntilTheyAreRevoked(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Hire(t, "Ada", "")
	hash := func(n int) string { return ledger.Order(uint64(n)) + strings.Repeat("0", 48) }
	var first people.AgentKey
	d.Must(t, companytest.Board, "agent_key.create", people.CreateKey{ID: d.ID(), Agent: ada, Name: "one",
		Hash: hash(1)}, &first)
	if strings.Contains(string(d.Last[0].Details), hash(1)) {
		t.Error("the activity log names the hash")
	}
	if k, ok := people.KeyByHash(d.Tx, hash(1)); !ok || k.Agent != ada || k.ResponsibleUser != "local-board" {
		t.Errorf("the key opens %+v", k)
	}
	for _, p := range []people.CreateKey{
		{ID: d.ID(), Agent: ada, Name: "same token", Hash: hash(1)}, {ID: first.ID, Agent: ada, Name: "same ID",
			Hash: hash(2)},
		{ID: d.ID(), Agent: ada, Name: "token", Hash: "pcp_canary"}, {ID: d.ID(), Agent: ada, Hash: hash(3)},
		{ID: d.ID(), Agent: d.ID(), Name: "x", Hash: hash(4)},
	} {
		companytest.Refused(t, d.Do(companytest.Board, "agent_key.create", p, nil))
	}
	bob := d.Hire(t, "Bob", "")
	companytest.WantRefusal(t, d.Do(companytest.Board, "agent_key.revoke", people.RevokeKey{ID: first.ID, Agent: bob},
		nil), ledger.NotFound, "Key not found")
	d.Must(t, companytest.Board, "agent_key.revoke", people.RevokeKey{ID: first.ID, Agent: ada}, nil)
	d.Must(t, companytest.Board, "agent_key.revoke", people.RevokeKey{ID: first.ID, Agent: ada},
		nil) // again changes nothing
	if _, ok := people.KeyByHash(d.Tx, hash(1)); ok {
		t.Error("a revoked key opens")
	}
	if list := people.KeysOf(d.Tx, d.Company, ada); len(list) != 1 || list[0].RevokedAt == 0 {
		t.Errorf("keys %+v", list)
	}
	for n := range people.MaxAgentKeys {
		d.Must(t, companytest.Board, "agent_key.create", people.CreateKey{ID: d.ID(), Agent: ada, Name: "more",
			Hash: hash(100 + n)}, nil)
	}
	if _, ok := people.KeyByID(d.Tx, first.ID); ok {
		t.Error("the revoked key did not make room")
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "agent_key.create", people.CreateKey{ID: d.ID(), Agent: ada,
		Name: "too many", Hash: hash(999)}, nil), ledger.Conflict, "The agent has 50 keys already; revoke one")
	d.Must(t, companytest.Board, "agent.terminate", company.ChangeAgent{Agent: ada}, nil)
	if _, ok := people.KeyByHash(d.Tx, hash(100)); ok {
		t.Error("the key of an agent that is gone opens")
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "agent_key.create", people.CreateKey{ID: d.ID(), Agent: ada,
		Name: "x", Hash: hash(5)}, nil), ledger.Conflict, "Cannot create keys for terminated agents")
}

func TestDashboardCounts(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	name, limit := "Acme", core.Cents(1000)
	d.Company = ledger.CompanyID(d.ID())
	d.Must(t, companytest.Board, "company.create", entity.SaveCompany{ID: d.Company, Name: &name, Budget: &limit}, nil)
	ada, bob := d.Hire(t, "Ada", ""), d.Hire(t, "Bob", "")
	d.Must(t, companytest.Board, "agent.pause", company.ChangeAgent{Agent: bob}, nil)
	for _, s := range []entity.IssueStatus{entity.IssueBacklog, entity.IssueTodo, entity.IssueTodo} {
		d.Issue(t, company.CreateIssue{Status: s})
	}
	done := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo})
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: done.ID, Status: entity.IssueDone}, nil)
	if err := d.Cost(companytest.Board, ada, 250); err != nil {
		t.Fatal(err)
	}
	day := core.TimeOf(d.Now)
	put := func(id string, status entity.RunStatus, retryOf string, at core.Time) {
		d.Height++
		r := entity.Run{ID: id, Company: d.Company, Agent: ada, Status: status, RetryOf: core.NullText(retryOf),
			Queue: d.Height, CreatedAt: at}
		entity.RunTable.Put(d.Tx, d.Company, id, r)
	}
	lost, old := d.ID(), d.ID()
	put(old, entity.RunFailed, "", day-20*86_400_000)
	put(lost, entity.RunInterrupted, "", day)
	put(d.ID(), entity.RunFailed, "", day)
	put(d.ID(), entity.RunSucceeded, lost, day)
	put(d.ID(), entity.RunCancelled, "", day)
	b := rules.DashboardOf(d.Tx, d.Company, day)
	if b.Agents.Active != 1 || b.Agents.Paused != 1 || b.Tasks.Open != 3 || b.Tasks.Done != 1 ||
		b.Costs.Spend.Cents() != 250 || b.Costs.Utilization != 2500 {
		t.Errorf("dashboard %+v", b)
	}
	today := b.RunActivity[len(b.RunActivity)-1]
	if len(b.RunActivity) != rules.DashboardDays || today.Total != 4 || today.Succeeded != 1 || today.Failed != 1 ||
		today.Recovered != 1 || today.Other != 1 || today.ByError["unknown"] != 1 {
		t.Errorf("runs of today %+v of %d days", today, len(b.RunActivity))
	}
	total := 0
	for _, day := range b.RunActivity {
		total += day.Total
	}
	if total != 4 {
		t.Errorf("%d runs in the last days, the one of three weeks ago does not count", total)
	}
	if s := rules.Stats(d.Tx)[d.Company]; s.Agents != 2 || s.Issues != 4 {
		t.Errorf("stats %+v", s)
	}
}

func TestNotesHoldNoSecrets(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	n := company.Note{Action: "custom.note", EntityType: "company", EntityID: string(d.Company),
		Details: []byte(`{"x":1,"token":"canary"}`)}
	d.Must(t, companytest.Board, "activity.note", n, nil)
	if got := string(d.Last[0].Details); got != `{"token":"***REDACTED***","x":1}` {
		t.Errorf("details %s", got)
	}
	n.Action = ""
	companytest.WantRefusal(t, d.Do(companytest.Board, "activity.note", n, nil), ledger.Invalid,
		"action, entityType and entityId are needed, at most 500 bytes each")
	n.Action, n.Details = "x", []byte(`{"x":"`+strings.Repeat("y", company.MaxNote)+`"}`)
	companytest.WantRefusal(t, d.Do(companytest.Board, "activity.note", n, nil), ledger.TooLarge,
		"details is longer than 4096 bytes")
}
