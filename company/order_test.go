package company_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/ledger"
)

// ordering carries out a comment with orders, by itself or with an update of the issue.
var ordering = map[string]func(d *companytest.Desk, who companytest.As, cm entity.CreateComment) error{
	"comment": func(d *companytest.Desk, who companytest.As, cm entity.CreateComment) error {
		return d.Do(who, "comment.create", cm, nil)
	},
	"update": func(d *companytest.Desk, who companytest.As, cm entity.CreateComment) error {
		return d.Do(who, "issue.update", company.UpdateIssue{Issue: cm.Issue, Comment: &cm}, nil)
	},
}

// The board's word ends the run at work on an issue in the entry of the comment, and
// wakes its agent with the comment; the assignee stays who it is.
func TestACommentInterruptsTheRunAtWork(t *testing.T) {
	t.Parallel()
	for name, say := range ordering {
		d := companytest.NewDesk(t)
		ada := d.Hired("Ada")
		i, other := d.Issue(t, company.CreateIssue{Assignee: ada, Status: entity.IssueBacklog}),
			d.Issue(t, company.CreateIssue{Assignee: ada, Status: entity.IssueBacklog})
		who, elsewhere := d.OnIssue(t, ada, i), d.OnIssue(t, ada, other)
		cm := entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: "Stop, do otherwise", ClientRequest: companytest.UID(7),
			Interrupt: true}
		companytest.WantCode(t, say(d, who, cm), ledger.Forbidden, "board_required")
		if r := companytest.RunOfDesk(d, who); r.Status != entity.RunRunning {
			t.Fatalf("%s: an agent ended a run", name)
		}
		if err := say(d, companytest.Board, cm); err != nil {
			t.Fatal(name, err)
		}
		if r := companytest.RunOfDesk(d, who); r.Status != entity.RunCancelled || r.Error != company.Interrupted {
			t.Errorf("%s: the run at work is %s (%s)", name, r.Status, r.Error)
		}
		if n := occursAction(d.Last, "heartbeat.cancelled"); n != 1 {
			t.Errorf("%s: %d lines say that a run was cancelled", name, n)
		}
		if r := companytest.RunOfDesk(d, elsewhere); r.Status != entity.RunRunning {
			t.Errorf("%s: the run on another issue is %s", name, r.Status)
		}
		live := entity.LiveRunsOnIssue(d.Tx, d.Load(i.ID))
		if len(live) != 1 || live[0].Status != entity.RunQueued || !slices.Equal(live[0].Context.CommentIDs,
			[]string{cm.ID}) || live[0].Deferred(d.Tx) {
			t.Fatalf("%s: runs that wait: %+v", name, live)
		}
		if got := d.Load(i.ID); got.Assignee != ada || got.Status != entity.IssueInProgress {
			t.Errorf("%s: the issue is %s with %q", name, got.Status, got.Assignee)
		}
		// The same request again interrupts nothing.
		next := d.OnIssue(t, ada, i)
		if err := say(d, companytest.Board, cm); err != nil {
			t.Fatal(name, err)
		}
		if r := companytest.RunOfDesk(d, next); r.Status != entity.RunRunning {
			t.Errorf("%s: a repeated request ended the next run", name)
		}
	}
}

func occursAction(changes []ledger.Change, action string) (n int) {
	for _, ch := range changes {
		if ch.Action == action {
			n++
		}
	}
	return n
}

// What is done, cancelled or blocked is to do again when the board says so, an agent
// may for what is blocked, and the assignee is woken. What somebody else has to let go
// is refused, and says why.
func TestACommentResumesTheWork(t *testing.T) {
	t.Parallel()
	for name, say := range ordering {
		for _, tc := range []struct {
			status, want entity.IssueStatus
			refused      string
			agent        bool // may too
		}{{entity.IssueDone, entity.IssueTodo, "", false}, {entity.IssueCancelled, entity.IssueTodo, "", false},
			{entity.IssueBlocked, entity.IssueTodo, "", true}, {entity.IssueTodo, entity.IssueTodo, "", true},
			{entity.IssueInProgress, entity.IssueInProgress, "", true}, {entity.IssueBacklog, entity.IssueBacklog,
				"issue_not_resumable", false}, {entity.IssueInReview, entity.IssueInReview, "issue_not_resumable", false}} {
			for _, byAgent := range []bool{false, true} {
				d := companytest.NewDesk(t)
				ada, bob := d.Hired("Ada"), d.Hired("Bob")
				i := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo})
				d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Assignee: &ada, Status: tc.status,
					UnblockDescriptor: []byte(`{"owner":"board","action":"look"}`)}, nil)
				for _, r := range entity.LiveRunsOfAgent(d.Tx, d.Company, ada) {
					company.EndRun(d.Context(companytest.As{}, "", nil), r, company.Outcome{Status: entity.RunCancelled})
				}
				who, refused := companytest.Board, tc.refused
				if byAgent {
					who = companytest.As{Agent: bob, Run: d.Run(bob)}
					if name == "update" && tc.status == entity.IssueInProgress {
						continue // of another agent: that is not about the order
					}
				}
				err := say(d, who, entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: "Go on", Resume: true})
				got := d.Load(i.ID)
				if byAgent && !tc.agent || refused != "" {
					if refused != "" {
						companytest.WantCode(t, err, ledger.Conflict, refused)
					} else {
						companytest.WantRefusal(t, err, ledger.Conflict, fmt.Sprintf("Issue cannot move from %s to todo", tc.status))
					}
					if got.Comments != 0 || got.Status != tc.status {
						t.Errorf("%s, %s: refused, and the issue is %s with %d comments", name, tc.status, got.Status, got.Comments)
					}
					continue
				}
				if err != nil || got.Status != tc.want {
					t.Errorf("%s, %s, by an agent %v: the issue is %s, %v", name, tc.status, byAgent, got.Status, err)
				}
				if live := entity.LiveRunsOnIssue(d.Tx, got); len(live) != 1 || len(live[0].Context.CommentIDs) != 1 {
					t.Errorf("%s, %s, by an agent %v: %d runs wait", name, tc.status, byAgent, len(live))
				}
			}
		}
	}
}

func TestWorkThatWaitsIsNotResumed(t *testing.T) {
	t.Parallel()
	for name, say := range ordering {
		d := companytest.NewDesk(t)
		ada := d.Hired("Ada")
		first := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo})
		i := d.Issue(t, company.CreateIssue{Assignee: ada, Status: entity.IssueBlocked, BlockedBy: []string{first.ID}})
		resume := entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: "Go on", Resume: true}
		companytest.WantCode(t, say(d, companytest.Board, resume), ledger.Conflict, "issue_blocked")
		d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, BlockedBy: &[]string{},
			Comment: &resume}, nil)
		if got := d.Load(i.ID); got.Status != entity.IssueTodo {
			t.Errorf("%s: freed and resumed at once, the issue is %s", name, got.Status)
		}
		hold := d.ID()
		d.Must(t, companytest.Board, "tree.hold", care.HoldTree{ID: hold, Issue: i.ID, Mode: "pause"}, nil)
		resume.ID = d.ID()
		companytest.WantCode(t, say(d, companytest.Board, resume), ledger.Conflict, "issue_tree_held")
	}
}

// A status that is given with the comment stands before what resume would make of it.
func TestResumeWithAStatus(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Hired("Ada")
	i := d.Issue(t, company.CreateIssue{Assignee: ada, Status: entity.IssueTodo})
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueBlocked,
		UnblockDescriptor: []byte(`{"owner":"board","action":"look"}`)}, nil)
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueInProgress,
		Comment: &entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: "Go on", Resume: true}}, nil)
	if got := d.Load(i.ID); got.Status != entity.IssueInProgress {
		t.Errorf("the issue is %s", got.Status)
	}
}

// Reopening by an agent is refused as the change of the status is.
func TestAnAgentDoesNotReopen(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Hired("Ada")
	i := d.Issue(t, company.CreateIssue{Assignee: ada, Status: entity.IssueDone})
	err := d.Do(companytest.As{Agent: ada, Run: d.Run(ada)}, "comment.create", entity.CreateComment{ID: d.ID(),
		Issue: i.ID, Body: "Again", Reopen: true}, nil)
	if err == nil || d.Load(i.ID).Status != entity.IssueDone {
		t.Errorf("%v, the issue is %s", err, d.Load(i.ID).Status)
	}
}

// An issue that inherits works where the other one does, and the folder stays as long
// as a run of either is at work there.
func TestAnIssueInheritsAnExecutionWorkspace(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	project, elsewhere := d.Project("Site"), d.Project("Yard")
	d.Workspace(project, "/srv/site", "https://example.org/site.git")
	p, _ := entity.ProjectTable.Get(d.Tx, d.Company, project)
	p.WorkspacePolicy = []byte(`{"enabled":true,"defaultMode":"isolated_workspace",` +
		`"workspaceStrategy":{"type":"git_worktree"}}`)
	entity.ProjectTable.Put(d.Tx, d.Company, project, p)
	source := d.Issue(t, company.CreateIssue{Project: project, Title: "Source"})
	first := d.Start(d.Run(ada), "n1", source.ID)
	made := d.Issue(t, company.CreateIssue{Title: "Follows", InheritFrom: source.ID})
	later := d.Issue(t, company.CreateIssue{Title: "Later", Project: project})
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: later.ID, InheritFrom: made.ID}, nil)
	for _, i := range []entity.Issue{d.Load(made.ID), d.Load(later.ID)} {
		if i.ExecutionWorkspace != first.ExecutionWorkspace || i.Project != project || i.Workspace != source.Workspace {
			t.Errorf("%s works in %q of %q", i.Title, i.ExecutionWorkspace, i.Project)
		}
	}
	second := d.Start(d.Run(ada), "n1", made.ID)
	if second.ExecutionWorkspace != first.ExecutionWorkspace {
		t.Errorf("the run works in %s, want %s", second.ExecutionWorkspace, first.ExecutionWorkspace)
	}
	d.EndRun(second.ID)
	over := func(id string) {
		r, _ := entity.RunTable.Get(d.Tx, d.Company, id)
		r.Owed = false
		entity.RunTable.Put(d.Tx, d.Company, id, r)
	}
	over(second.ID)
	archive := place.UpdateExecutionWorkspace{ID: first.ExecutionWorkspace, Status: new(place.WorkspaceArchived)}
	companytest.WantRefusal(t, d.Do(companytest.Board, "exec_workspace.update", archive, nil), ledger.Conflict,
		"A run works in the execution workspace")
	d.EndRun(first.ID)
	over(first.ID)
	d.Must(t, companytest.Board, "exec_workspace.update", archive, nil)
	if again := d.Start(d.Run(ada), "n1", made.ID); again.ExecutionWorkspace == first.ExecutionWorkspace ||
		again.ExecutionWorkspace == "" {
		t.Errorf("a run works in a closed workspace, or in none: %q", again.ExecutionWorkspace)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.create", company.CreateIssue{ID: d.ID(), Title: "x",
		InheritFrom: companytest.UID(77)}, nil),
		ledger.NotFound, "Issue to inherit the execution workspace from not found")
	companytest.WantCode(t, d.Do(companytest.Board, "issue.create", company.CreateIssue{ID: d.ID(), Title: "y",
		Project: elsewhere, InheritFrom: source.ID}, nil), ledger.Unprocessable, "other_project")
	bare := d.Issue(t, company.CreateIssue{Title: "Bare"})
	if i := d.Issue(t, company.CreateIssue{Title: "Of bare", InheritFrom: bare.ID}); i.ExecutionWorkspace != "" {
		t.Errorf("it inherits %q of an issue that has none", i.ExecutionWorkspace)
	}
}

// What a reviewer is asked is there while the stage is, and with nobody to ask it is refused.
func TestAReviewIsAskedFor(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, rev := d.Agent("Ada"), d.Agent("Rev")
	policy := `{"stages":[{"id":"` + d.ID() + `","type":"review","participants":[{"type":"agent","agentId":"` +
		rev + `"}]},
		{"id":"` + d.ID() + `","type":"approval","participants":[{"type":"user","userId":"local-board"}]}]}`
	i := d.Issue(t, company.CreateIssue{Assignee: ada, Status: entity.IssueTodo, ExecutionPolicy: []byte(policy)})
	ask := func(text string) company.UpdateIssue { return company.UpdateIssue{Issue: i.ID, ReviewRequest: &text} }
	asked := func() string { return string(d.Load(i.ID).ReviewRequest()) }
	companytest.WantCode(t, d.Do(companytest.Board, "issue.update", ask("Look at the welds"), nil), ledger.Unprocessable,
		"no_stage_pending")
	d.Must(t, companytest.Board, "issue.update", ask(""), nil)
	who := companytest.As{Agent: ada, Run: d.Run(ada)}
	d.Must(t, who, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: ada,
		Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)
	hand := ask("Look at the welds")
	hand.Status = entity.IssueDone
	d.Must(t, who, "issue.update", hand, nil)
	d.EndRun(who.Run)
	if got := asked(); got != `{"instructions":"Look at the welds"}` {
		t.Errorf("handed in with %s", got)
	}
	d.Must(t, companytest.Board, "issue.update", ask("And at the paint"), nil)
	if got := asked(); got != `{"instructions":"And at the paint"}` || occursAction(d.Last, "issue.updated") != 1 {
		t.Errorf("asked again: %s, %v", got, d.Last)
	}
	d.Must(t, companytest.As{Agent: rev, Run: d.Run(rev)}, "issue.update", company.UpdateIssue{Issue: i.ID,
		Status: entity.IssueDone, Comment: &entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: "Fine"}}, nil)
	if got := d.Load(i.ID); asked() != "null" || got.Execution.Status != "pending" {
		t.Errorf("the next stage is asked %s in %+v", asked(), got.Execution)
	}
	d.Must(t, companytest.Board, "issue.update", ask("Sign"), nil)
	d.Must(t, companytest.Board, "issue.update", ask(""), nil)
	if asked() != "null" {
		t.Errorf("taken back: %s", asked())
	}
}

// A project begins with a workspace for each repository.
func TestAProjectOfManyRepositories(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	id := d.ID()
	d.Must(t, companytest.Board, "project.create", entity.SaveProject{ID: id, Name: new("Site"),
		More: []entity.SaveWorkspace{{ID: d.ID(), RepoURL: new("https://example.org/a.git")},
			{ID: d.ID(), RepoURL: new("https://example.org/b.git")}}}, nil)
	list := place.WorkspacesOf(d.Tx, d.Company, id)
	if len(list) != 2 || (!list[0].Primary || list[0].Name != "a" || list[1].Primary || list[1].SourceType != "git_repo") {
		t.Errorf("%+v", list)
	}
}

// An issue that the board cancels takes the work on it along: the run at work, that
// which holds it without being about it, and what waits for nothing else. What a person
// asked for begins nevertheless, and an agent that cancels its own goes on to its end.
func TestCancellingAnIssueEndsTheWorkOnIt(t *testing.T) {
	t.Parallel()
	how := map[string]func(d *companytest.Desk, i entity.Issue) error{
		"update": func(d *companytest.Desk, i entity.Issue) error {
			return d.Do(companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueCancelled,
				Comment: &entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: "Not needed"}}, nil)
		},
		"tree": func(d *companytest.Desk, i entity.Issue) error {
			return d.Do(companytest.Board, "tree.hold", care.HoldTree{ID: d.ID(), Issue: i.ID, Mode: "cancel"}, nil)
		},
	}
	for name, cancel := range how {
		d := companytest.NewDesk(t)
		ada, bob := d.Hired("Ada"), d.Hired("Bob")
		i, other := d.Issue(t, company.CreateIssue{Assignee: ada, Status: entity.IssueBacklog}),
			d.Issue(t, company.CreateIssue{Assignee: ada, Status: entity.IssueBacklog})
		held := d.Issue(t, company.CreateIssue{Assignee: bob, Status: entity.IssueBacklog})
		who, elsewhere := d.OnIssue(t, ada, i), d.OnIssue(t, ada, other)
		d.Must(t, companytest.Board, "comment.create", entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: "And then"},
			nil) // waits behind the run
		d.Must(t, companytest.Board, "agent.wake", entity.Wake{Agent: ada, Source: entity.WakeOnDemand,
			TriggerDetail: "manual", Issue: i.ID, Wakeup: d.ID(), Run: d.ID()}, nil)
		holder := companytest.As{Agent: bob, Run: d.Run(bob)} // of its timer
		d.Must(t, holder, "issue.checkout", company.CheckOutIssue{Issue: held.ID, Agent: bob,
			Expected: entity.IssueStatuses}, nil)
		if n := len(entity.LiveRunsOnIssue(d.Tx, d.Load(i.ID))); n != 3 {
			t.Fatalf("%s: %d runs are about the issue", name, n)
		}
		for _, x := range []entity.Issue{i, held} {
			if err := cancel(d, x); err != nil {
				t.Fatal(name, err)
			}
		}
		tree := name == "tree"
		if r := companytest.RunOfDesk(d, who); r.Status != entity.RunCancelled {
			t.Errorf("%s: the run at work is %s", name, r.Status)
		}
		if r := companytest.RunOfDesk(d, holder); r.Status != entity.RunCancelled {
			t.Errorf("%s: the run that holds an issue is %s", name, r.Status)
		}
		if r := companytest.RunOfDesk(d, elsewhere); r.Status != entity.RunRunning {
			t.Errorf("%s: the run on another issue is %s", name, r.Status)
		}
		left := entity.LiveRunsOnIssue(d.Tx, d.Load(i.ID))
		switch {
		case tree && len(left) != 0, !tree && (len(left) != 1 || !left[0].Manual):
			t.Errorf("%s: left are %+v", name, left)
		}
		if got := d.Load(i.ID); got.Status != entity.IssueCancelled || got.Held() {
			t.Errorf("%s: the issue is %s, held %v", name, got.Status, got.Held())
		}
	}
	d := companytest.NewDesk(t)
	ada := d.Hired("Ada")
	var made entity.IssueResult
	d.Must(t, companytest.As{Agent: ada, Run: d.Run(ada)}, "issue.create", company.CreateIssue{ID: d.ID(), Title: "Mine",
		Assignee: ada, Status: entity.IssueBacklog}, &made)
	own := d.OnIssue(t, ada, made.Issue)
	d.Must(t, own, "issue.update", company.UpdateIssue{Issue: made.Issue.ID, Status: entity.IssueCancelled}, nil)
	i := d.Issue(t, company.CreateIssue{Assignee: ada, Status: entity.IssueBacklog})
	done := d.OnIssue(t, ada, i)
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueDone}, nil)
	for what, who := range map[string]companytest.As{"cancelled by its agent": own, "done": done} {
		if r := companytest.RunOfDesk(d, who); r.Status != entity.RunRunning {
			t.Errorf("an issue is %s, and the run is %s", what, r.Status)
		}
	}
}

// A run that waits to be tried again begins when the work is resumed; a comment that
// does not say so joins it and leaves it where it is, and so does an agent's that may not
// change the issue.
func TestResumedWorkBeginsNow(t *testing.T) {
	t.Parallel()
	for name, say := range ordering {
		for _, tc := range []struct {
			resume  bool
			byAgent bool
			want    bool
		}{{true, false, true}, {false, false, false}, {true, true, false}} {
			if tc.byAgent && name == "update" {
				continue // it is refused
			}
			d := companytest.NewDesk(t)
			ada, bob := d.Hired("Ada"), d.Hired("Bob")
			i := d.Issue(t, company.CreateIssue{Assignee: ada, Status: entity.IssueBacklog})
			first := d.OnIssue(t, ada, i)
			company.EndRun(d.Context(companytest.As{}, "", nil), companytest.RunOfDesk(d, first),
				company.Outcome{Status: entity.RunFailed, ErrorCode: "upstream", Transient: true})
			r, ok := company.RetryOf(d.Tx, d.Load(i.ID))
			if !ok || len(entity.QueuedRuns(d.Tx, core.TimeOf(d.Now), "", 10, 10)) != 0 {
				t.Fatalf("nothing waits to be tried again: %+v", r)
			}
			who := companytest.Board
			if tc.byAgent {
				who = companytest.As{Agent: bob, Run: d.Run(bob)}
			}
			cm := entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: "Go on", Resume: tc.resume,
				ClientRequest: companytest.UID(7)}
			if err := say(d, who, cm); err != nil {
				t.Fatal(name, err)
			}
			live := entity.LiveRunsOnIssue(d.Tx, d.Load(i.ID))
			if len(live) != 1 || live[0].ID != r.ID || !slices.Contains(live[0].Context.CommentIDs, cm.ID) {
				t.Fatalf("%s, %+v: runs that wait: %+v", name, tc, live)
			}
			if got := len(entity.QueuedRuns(d.Tx, core.TimeOf(d.Now), "", 10, 10)) == 1; got != tc.want ||
				tc.want != (occursAction(d.Last, "issue.scheduled_retry_triggered") == 1) {
				t.Errorf("%s, %+v: it may begin: %v; %v", name, tc, got, d.Last)
			}
		}
	}
}
