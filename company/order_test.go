package company

import (
	"errors"
	"slices"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// wantCode looks for a refusal with a code that clients branch on, "" for any.
func wantCode(t *testing.T, err error, status ledger.Code, code string) {
	t.Helper()
	if r, ok := errors.AsType[*ledger.Refusal](err); !ok || r.Code != status || code != "" && r.ErrCode != code {
		t.Errorf("got %v, want %s %s", err, status, code)
	}
}

// ordering carries out a comment with orders, by itself or with an update of the issue.
var ordering = map[string]func(d *desk, who as, cm CreateComment) error{
	"comment": func(d *desk, who as, cm CreateComment) error { return d.do(who, "comment.create", cm, nil) },
	"update": func(d *desk, who as, cm CreateComment) error {
		return d.do(who, "issue.update", UpdateIssue{Issue: cm.Issue, Comment: &cm}, nil)
	},
}

// The board's word ends the run at work on an issue in the entry of the comment, and
// wakes its agent with the comment; the assignee stays who it is.
func TestACommentInterruptsTheRunAtWork(t *testing.T) {
	t.Parallel()
	for name, say := range ordering {
		d := newDesk(t)
		ada := d.hired("Ada")
		i, other := d.issue(t, CreateIssue{Assignee: ada, Status: IssueBacklog}), d.issue(t, CreateIssue{Assignee: ada, Status: IssueBacklog})
		who, elsewhere := d.onIssue(t, ada, i), d.onIssue(t, ada, other)
		cm := CreateComment{ID: d.id(), Issue: i.ID, Body: "Stop, do otherwise", ClientRequest: uid(7), Interrupt: true}
		wantCode(t, say(d, who, cm), ledger.Forbidden, "board_required")
		if r := runOfDesk(d, who); r.Status != RunRunning {
			t.Fatalf("%s: an agent ended a run", name)
		}
		if err := say(d, board, cm); err != nil {
			t.Fatal(name, err)
		}
		if r := runOfDesk(d, who); r.Status != RunCancelled || r.Error != interrupted {
			t.Errorf("%s: the run at work is %s (%s)", name, r.Status, r.Error)
		}
		if n := occursAction(d.last, "heartbeat.cancelled"); n != 1 {
			t.Errorf("%s: %d lines say that a run was cancelled", name, n)
		}
		if r := runOfDesk(d, elsewhere); r.Status != RunRunning {
			t.Errorf("%s: the run on another issue is %s", name, r.Status)
		}
		live := LiveRunsOnIssue(d.tx, d.load(i.ID))
		if len(live) != 1 || live[0].Status != RunQueued || !slices.Equal(live[0].Context.CommentIDs, []string{cm.ID}) || live[0].deferred(d.tx) {
			t.Fatalf("%s: runs that wait: %+v", name, live)
		}
		if got := d.load(i.ID); got.Assignee != ada || got.Status != IssueInProgress {
			t.Errorf("%s: the issue is %s with %q", name, got.Status, got.Assignee)
		}
		// The same request again interrupts nothing.
		next := d.onIssue(t, ada, i)
		if err := say(d, board, cm); err != nil {
			t.Fatal(name, err)
		}
		if r := runOfDesk(d, next); r.Status != RunRunning {
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
			status, want IssueStatus
			refused      string
			agent        bool // may too
		}{{IssueDone, IssueTodo, "", false}, {IssueCancelled, IssueTodo, "", false}, {IssueBlocked, IssueTodo, "", true}, {IssueTodo, IssueTodo, "", true},
			{IssueInProgress, IssueInProgress, "", true}, {IssueBacklog, IssueBacklog, "issue_not_resumable", false}, {IssueInReview, IssueInReview, "issue_not_resumable", false}} {
			for _, byAgent := range []bool{false, true} {
				d := newDesk(t)
				ada, bob := d.hired("Ada"), d.hired("Bob")
				i := d.issue(t, CreateIssue{Status: IssueTodo})
				d.must(t, board, "issue.update", UpdateIssue{Issue: i.ID, Assignee: &ada, Status: tc.status, UnblockDescriptor: []byte(`{"owner":"board","action":"look"}`)}, nil)
				for _, r := range LiveRunsOfAgent(d.tx, d.company, ada) {
					endRun(d.context(as{}, "", nil), r, Outcome{Status: RunCancelled})
				}
				who, refused := board, tc.refused
				if byAgent {
					who = as{bob, d.run(bob)}
					if name == "update" && tc.status == IssueInProgress {
						continue // of another agent: that is not about the order
					}
				}
				err := say(d, who, CreateComment{ID: d.id(), Issue: i.ID, Body: "Go on", Resume: true})
				got := d.load(i.ID)
				if byAgent && !tc.agent || refused != "" {
					wantCode(t, err, ledger.Conflict, refused)
					if got.Comments != 0 || got.Status != tc.status {
						t.Errorf("%s, %s: refused, and the issue is %s with %d comments", name, tc.status, got.Status, got.Comments)
					}
					continue
				}
				if err != nil || got.Status != tc.want {
					t.Errorf("%s, %s, by an agent %v: the issue is %s, %v", name, tc.status, byAgent, got.Status, err)
				}
				if live := LiveRunsOnIssue(d.tx, got); len(live) != 1 || len(live[0].Context.CommentIDs) != 1 {
					t.Errorf("%s, %s, by an agent %v: %d runs wait", name, tc.status, byAgent, len(live))
				}
			}
		}
	}
}

func TestWorkThatWaitsIsNotResumed(t *testing.T) {
	t.Parallel()
	for name, say := range ordering {
		d := newDesk(t)
		ada := d.hired("Ada")
		first := d.issue(t, CreateIssue{Status: IssueTodo})
		i := d.issue(t, CreateIssue{Assignee: ada, Status: IssueBlocked, BlockedBy: []string{first.ID}})
		resume := CreateComment{ID: d.id(), Issue: i.ID, Body: "Go on", Resume: true}
		wantCode(t, say(d, board, resume), ledger.Conflict, "issue_blocked")
		d.must(t, board, "issue.update", UpdateIssue{Issue: i.ID, BlockedBy: &[]string{}, Comment: &resume}, nil)
		if got := d.load(i.ID); got.Status != IssueTodo {
			t.Errorf("%s: freed and resumed at once, the issue is %s", name, got.Status)
		}
		hold := d.id()
		d.must(t, board, "tree.hold", HoldTree{ID: hold, Issue: i.ID, Mode: "pause"}, nil)
		resume.ID = d.id()
		wantCode(t, say(d, board, resume), ledger.Conflict, "issue_tree_held")
	}
}

// A status that is given with the comment stands before what resume would make of it.
func TestResumeWithAStatus(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.hired("Ada")
	i := d.issue(t, CreateIssue{Assignee: ada, Status: IssueTodo})
	d.must(t, board, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueBlocked, UnblockDescriptor: []byte(`{"owner":"board","action":"look"}`)}, nil)
	d.must(t, board, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueInProgress, Comment: &CreateComment{ID: d.id(), Issue: i.ID, Body: "Go on", Resume: true}}, nil)
	if got := d.load(i.ID); got.Status != IssueInProgress {
		t.Errorf("the issue is %s", got.Status)
	}
}

// Reopening by an agent is refused as the change of the status is.
func TestAnAgentDoesNotReopen(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.hired("Ada")
	i := d.issue(t, CreateIssue{Assignee: ada, Status: IssueDone})
	err := d.do(as{ada, d.run(ada)}, "comment.create", CreateComment{ID: d.id(), Issue: i.ID, Body: "Again", Reopen: true}, nil)
	if err == nil || d.load(i.ID).Status != IssueDone {
		t.Errorf("%v, the issue is %s", err, d.load(i.ID).Status)
	}
}

// An issue that inherits works where the other one does, and the folder stays as long
// as a run of either is at work there.
func TestAnIssueInheritsAnExecutionWorkspace(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	project, elsewhere := d.project("Site"), d.project("Yard")
	d.workspace(project, "/srv/site", "https://example.org/site.git")
	p, _ := projects.Get(d.tx, d.company, project)
	p.WorkspacePolicy = []byte(`{"enabled":true,"defaultMode":"isolated_workspace","workspaceStrategy":{"type":"git_worktree"}}`)
	projects.Put(d.tx, d.company, project, p)
	source := d.issue(t, CreateIssue{Project: project, Title: "Source"})
	first := d.start(d.run(ada), "n1", source.ID)
	made := d.issue(t, CreateIssue{Title: "Follows", InheritFrom: source.ID})
	later := d.issue(t, CreateIssue{Title: "Later", Project: project})
	d.must(t, board, "issue.update", UpdateIssue{Issue: later.ID, InheritFrom: made.ID}, nil)
	for _, i := range []Issue{d.load(made.ID), d.load(later.ID)} {
		if i.ExecutionWorkspace != first.ExecutionWorkspace || i.Project != project || i.Workspace != source.Workspace {
			t.Errorf("%s works in %q of %q", i.Title, i.ExecutionWorkspace, i.Project)
		}
	}
	second := d.start(d.run(ada), "n1", made.ID)
	if second.ExecutionWorkspace != first.ExecutionWorkspace {
		t.Errorf("the run works in %s, want %s", second.ExecutionWorkspace, first.ExecutionWorkspace)
	}
	d.endRun(second.ID)
	over := func(id string) {
		r, _ := runs.Get(d.tx, d.company, id)
		r.Owed = false
		runs.Put(d.tx, d.company, id, r)
	}
	over(second.ID)
	archive := UpdateExecutionWorkspace{ID: first.ExecutionWorkspace, Status: new(WorkspaceArchived)}
	wantCode(t, d.do(board, "exec_workspace.update", archive, nil), ledger.Conflict, "")
	d.endRun(first.ID)
	over(first.ID)
	d.must(t, board, "exec_workspace.update", archive, nil)
	if again := d.start(d.run(ada), "n1", made.ID); again.ExecutionWorkspace == first.ExecutionWorkspace || again.ExecutionWorkspace == "" {
		t.Errorf("a run works in a closed workspace, or in none: %q", again.ExecutionWorkspace)
	}
	wantCode(t, d.do(board, "issue.create", CreateIssue{ID: d.id(), Title: "x", InheritFrom: uid(77)}, nil), ledger.NotFound, "")
	wantCode(t, d.do(board, "issue.create", CreateIssue{ID: d.id(), Title: "y", Project: elsewhere, InheritFrom: source.ID}, nil), ledger.Unprocessable, "other_project")
	bare := d.issue(t, CreateIssue{Title: "Bare"})
	if i := d.issue(t, CreateIssue{Title: "Of bare", InheritFrom: bare.ID}); i.ExecutionWorkspace != "" {
		t.Errorf("it inherits %q of an issue that has none", i.ExecutionWorkspace)
	}
}

// What a reviewer is asked is there while the stage is, and with nobody to ask it is refused.
func TestAReviewIsAskedFor(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, rev := d.agent("Ada"), d.agent("Rev")
	policy := `{"stages":[{"id":"` + d.id() + `","type":"review","participants":[{"type":"agent","agentId":"` + rev + `"}]},
		{"id":"` + d.id() + `","type":"approval","participants":[{"type":"user","userId":"local-board"}]}]}`
	i := d.issue(t, CreateIssue{Assignee: ada, Status: IssueTodo, ExecutionPolicy: []byte(policy)})
	ask := func(text string) UpdateIssue { return UpdateIssue{Issue: i.ID, ReviewRequest: &text} }
	asked := func() string { return string(d.load(i.ID).reviewRequest()) }
	wantCode(t, d.do(board, "issue.update", ask("Look at the welds"), nil), ledger.Unprocessable, "no_stage_pending")
	d.must(t, board, "issue.update", ask(""), nil)
	who := as{ada, d.run(ada)}
	d.must(t, who, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: ada, Expected: []IssueStatus{IssueTodo}}, nil)
	hand := ask("Look at the welds")
	hand.Status = IssueDone
	d.must(t, who, "issue.update", hand, nil)
	d.endRun(who.run)
	if got := asked(); got != `{"instructions":"Look at the welds"}` {
		t.Errorf("handed in with %s", got)
	}
	d.must(t, board, "issue.update", ask("And at the paint"), nil)
	if got := asked(); got != `{"instructions":"And at the paint"}` || occursAction(d.last, "issue.updated") != 1 {
		t.Errorf("asked again: %s, %v", got, d.last)
	}
	d.must(t, as{rev, d.run(rev)}, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueDone, Comment: &CreateComment{ID: d.id(), Issue: i.ID, Body: "Fine"}}, nil)
	if got := d.load(i.ID); asked() != "null" || got.Execution.Status != "pending" {
		t.Errorf("the next stage is asked %s in %+v", asked(), got.Execution)
	}
	d.must(t, board, "issue.update", ask("Sign"), nil)
	d.must(t, board, "issue.update", ask(""), nil)
	if asked() != "null" {
		t.Errorf("taken back: %s", asked())
	}
}

// A project begins with a workspace for each repository.
func TestAProjectOfManyRepositories(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.id()
	d.must(t, board, "project.create", SaveProject{ID: id, Name: new("Site"), More: []SaveWorkspace{{ID: d.id(), RepoURL: new("https://example.org/a.git")}, {ID: d.id(), RepoURL: new("https://example.org/b.git")}}}, nil)
	list := WorkspacesOf(d.tx, d.company, id)
	if len(list) != 2 || (!list[0].Primary || list[0].Name != "a" || list[1].Primary || list[1].SourceType != "git_repo") {
		t.Errorf("%+v", list)
	}
}

// An issue that the board cancels takes the work on it along: the run at work, that
// which holds it without being about it, and what waits for nothing else. What a person
// asked for begins nevertheless, and an agent that cancels its own goes on to its end.
func TestCancellingAnIssueEndsTheWorkOnIt(t *testing.T) {
	t.Parallel()
	how := map[string]func(d *desk, i Issue) error{
		"update": func(d *desk, i Issue) error {
			return d.do(board, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueCancelled, Comment: &CreateComment{ID: d.id(), Issue: i.ID, Body: "Not needed"}}, nil)
		},
		"tree": func(d *desk, i Issue) error {
			return d.do(board, "tree.hold", HoldTree{ID: d.id(), Issue: i.ID, Mode: "cancel"}, nil)
		},
	}
	for name, cancel := range how {
		d := newDesk(t)
		ada, bob := d.hired("Ada"), d.hired("Bob")
		i, other := d.issue(t, CreateIssue{Assignee: ada, Status: IssueBacklog}), d.issue(t, CreateIssue{Assignee: ada, Status: IssueBacklog})
		held := d.issue(t, CreateIssue{Assignee: bob, Status: IssueBacklog})
		who, elsewhere := d.onIssue(t, ada, i), d.onIssue(t, ada, other)
		d.must(t, board, "comment.create", CreateComment{ID: d.id(), Issue: i.ID, Body: "And then"}, nil) // waits behind the run
		d.must(t, board, "agent.wake", Wake{Agent: ada, Source: WakeOnDemand, TriggerDetail: "manual", Issue: i.ID, Wakeup: d.id(), Run: d.id()}, nil)
		holder := as{bob, d.run(bob)} // of its timer
		d.must(t, holder, "issue.checkout", CheckOutIssue{Issue: held.ID, Agent: bob, Expected: IssueStatuses}, nil)
		if n := len(LiveRunsOnIssue(d.tx, d.load(i.ID))); n != 3 {
			t.Fatalf("%s: %d runs are about the issue", name, n)
		}
		for _, x := range []Issue{i, held} {
			if err := cancel(d, x); err != nil {
				t.Fatal(name, err)
			}
		}
		tree := name == "tree"
		if r := runOfDesk(d, who); r.Status != RunCancelled {
			t.Errorf("%s: the run at work is %s", name, r.Status)
		}
		if r := runOfDesk(d, holder); r.Status != RunCancelled {
			t.Errorf("%s: the run that holds an issue is %s", name, r.Status)
		}
		if r := runOfDesk(d, elsewhere); r.Status != RunRunning {
			t.Errorf("%s: the run on another issue is %s", name, r.Status)
		}
		left := LiveRunsOnIssue(d.tx, d.load(i.ID))
		switch {
		case tree && len(left) != 0, !tree && (len(left) != 1 || !left[0].Manual):
			t.Errorf("%s: left are %+v", name, left)
		}
		if got := d.load(i.ID); got.Status != IssueCancelled || got.Held() {
			t.Errorf("%s: the issue is %s, held %v", name, got.Status, got.Held())
		}
	}
	d := newDesk(t)
	ada := d.hired("Ada")
	var made IssueResult
	d.must(t, as{ada, d.run(ada)}, "issue.create", CreateIssue{ID: d.id(), Title: "Mine", Assignee: ada, Status: IssueBacklog}, &made)
	own := d.onIssue(t, ada, made.Issue)
	d.must(t, own, "issue.update", UpdateIssue{Issue: made.Issue.ID, Status: IssueCancelled}, nil)
	i := d.issue(t, CreateIssue{Assignee: ada, Status: IssueBacklog})
	done := d.onIssue(t, ada, i)
	d.must(t, board, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueDone}, nil)
	for what, who := range map[string]as{"cancelled by its agent": own, "done": done} {
		if r := runOfDesk(d, who); r.Status != RunRunning {
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
			d := newDesk(t)
			ada, bob := d.hired("Ada"), d.hired("Bob")
			i := d.issue(t, CreateIssue{Assignee: ada, Status: IssueBacklog})
			first := d.onIssue(t, ada, i)
			endRun(d.context(as{}, "", nil), runOfDesk(d, first), Outcome{Status: RunFailed, ErrorCode: "upstream", Transient: true})
			r, ok := RetryOf(d.tx, d.load(i.ID))
			if !ok || len(QueuedRuns(d.tx, TimeOf(d.now), "", 10, 10)) != 0 {
				t.Fatalf("nothing waits to be tried again: %+v", r)
			}
			who := board
			if tc.byAgent {
				who = as{bob, d.run(bob)}
			}
			cm := CreateComment{ID: d.id(), Issue: i.ID, Body: "Go on", Resume: tc.resume, ClientRequest: uid(7)}
			if err := say(d, who, cm); err != nil {
				t.Fatal(name, err)
			}
			live := LiveRunsOnIssue(d.tx, d.load(i.ID))
			if len(live) != 1 || live[0].ID != r.ID || !slices.Contains(live[0].Context.CommentIDs, cm.ID) {
				t.Fatalf("%s, %+v: runs that wait: %+v", name, tc, live)
			}
			if got := len(QueuedRuns(d.tx, TimeOf(d.now), "", 10, 10)) == 1; got != tc.want || tc.want != (occursAction(d.last, "issue.scheduled_retry_triggered") == 1) {
				t.Errorf("%s, %+v: it may begin: %v; %v", name, tc, got, d.last)
			}
		}
	}
}
