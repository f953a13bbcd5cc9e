package company

import (
	"fmt"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

func TestWorkGoesThroughTheStagesOfItsPolicy(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, rev := d.agent("Ada"), d.agent("Rev")
	first, second := d.id(), d.id()
	policy := fmt.Sprintf(`{"stages":[{"id":%q,"type":"review","participants":[{"type":"agent","agentId":%q},{"type":"agent","agentId":%q}]},
		{"id":%q,"type":"approval","participants":[{"type":"user","userId":"local-board"}]}],"maxReviewRounds":2}`, first, ada, rev, second)
	i := d.issue(t, CreateIssue{Assignee: ada, Status: IssueTodo, ExecutionPolicy: []byte(policy)})
	work := func() Issue {
		run := d.run(ada)
		d.must(t, as{ada, run}, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: ada, Expected: []IssueStatus{IssueTodo}}, nil)
		d.must(t, as{ada, run}, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueDone}, nil)
		d.endRun(run)
		return d.load(i.ID)
	}
	say := func(who as, to IssueStatus, text string) error {
		p := UpdateIssue{Issue: i.ID, Status: to}
		if text != "" {
			p.Comment = &CreateComment{ID: d.id(), Issue: i.ID, Body: text}
		}
		return d.do(who, "issue.update", p, nil)
	}

	// Who did the work is not who looks at it, although the policy names it first.
	got := work()
	if got.Status != IssueInReview || got.Assignee != rev || got.Held() || got.Execution.Stage != first || got.Execution.ReturnAgent != ada {
		t.Fatalf("handed in: %+v, %+v", got, got.Execution)
	}
	if live := LiveRunsOfAgent(d.tx, d.company, rev); len(live) != 1 || live[0].Context.WakeReason != "execution_review_requested" {
		t.Errorf("the reviewer has the runs %+v", live)
	}
	asAda := as{ada, d.run(ada)}
	if r := refused(t, say(asAda, IssueDone, "I am sure")); r.ErrCode != "execution_stage_participant_required" || r.Code != ledger.Forbidden {
		t.Errorf("the worker decides: %+v", r)
	}
	d.endRun(asAda.run)
	asRev := as{rev, d.run(rev)}
	wantRefusal(t, say(asRev, IssueDone, ""), ledger.Unprocessable, "A decision on a stage needs a comment that says why")
	if err := say(asRev, IssueInProgress, "Not yet"); err != nil {
		t.Fatal(err)
	}
	d.endRun(asRev.run)
	got = d.load(i.ID)
	if got.Status != IssueTodo || got.Assignee != ada || got.Execution.Status != "changes_requested" || got.Execution.Rounds != 1 {
		t.Fatalf("sent back: %+v, %+v", got, got.Execution)
	}
	if live := LiveRunsOfAgent(d.tx, d.company, ada); len(live) == 0 {
		t.Error("the worker is not woken")
	}

	got = work()
	asRev = as{rev, d.run(rev)}
	if err := say(asRev, IssueDone, "Good"); err != nil {
		t.Fatal(err)
	}
	d.endRun(asRev.run)
	got = d.load(i.ID)
	if got.Status != IssueInReview || got.Assignee != "" || got.AssigneeUser != "local-board" || got.Execution.Stage != second {
		t.Fatalf("after the review: %+v, %+v", got, got.Execution)
	}
	if err := say(board, IssueDone, "Ship it"); err != nil {
		t.Fatal(err)
	}
	got = d.load(i.ID)
	if got.Status != IssueDone || got.Assignee != ada || got.Execution.Status != "completed" || got.LastDecision() == "" {
		t.Fatalf("in the end: %+v, %+v", got, got.Execution)
	}
	list := ExecutionDecisionsOf(d.tx, got)
	if len(list) != 3 || list[0].Outcome != "changes_requested" || list[1].Outcome != "approved" || list[2].StageType != "approval" || string(list[2].User) != "local-board" {
		t.Errorf("decisions: %+v", list)
	}
}

func TestReviewsAreBounded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, rev := d.agent("Ada"), d.agent("Rev")
	policy := fmt.Sprintf(`{"commentRequired":false,"stages":[{"id":%q,"type":"review","participants":[{"type":"agent","agentId":%q}]}],"maxReviewRounds":1}`, d.id(), rev)
	hand := func(i Issue) {
		run := d.run(ada)
		d.must(t, as{ada, run}, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: ada, Expected: []IssueStatus{IssueTodo}}, nil)
		d.must(t, as{ada, run}, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueDone}, nil)
		d.endRun(run)
	}
	i := d.issue(t, CreateIssue{Assignee: ada, Status: IssueTodo, ExecutionPolicy: []byte(policy)})
	hand(i)
	asRev := as{rev, d.run(rev)}
	d.must(t, asRev, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueTodo}, nil)
	d.endRun(asRev.run)
	if got := d.load(i.ID); got.Status != IssueBlocked || got.Assignee != ada {
		t.Errorf("after the last round: %+v", got)
	}
	// The board goes past the stages.
	other := d.issue(t, CreateIssue{Assignee: ada, Status: IssueTodo, ExecutionPolicy: []byte(policy)})
	hand(other)
	d.must(t, board, "issue.update", UpdateIssue{Issue: other.ID, Status: IssueDone}, nil)
	if got := d.load(other.ID); got.Status != IssueDone || got.Execution.Status != "completed" {
		t.Errorf("by the board: %+v", got)
	}
	alone := fmt.Sprintf(`{"stages":[{"id":%q,"type":"review","participants":[{"type":"agent","agentId":%q}]}]}`, d.id(), ada)
	mine := d.issue(t, CreateIssue{Assignee: ada, Status: IssueTodo, ExecutionPolicy: []byte(alone)})
	run := d.run(ada)
	d.must(t, as{ada, run}, "issue.checkout", CheckOutIssue{Issue: mine.ID, Agent: ada, Expected: []IssueStatus{IssueTodo}}, nil)
	if r := refused(t, d.do(as{ada, run}, "issue.update", UpdateIssue{Issue: mine.ID, Status: IssueDone}, nil)); r.ErrCode != "execution_stage_without_participant" {
		t.Errorf("%+v", r)
	}
}

// Work comes to no stage of a user who left.
func TestStagesAreNotOfUsersWhoLeft(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	for participants, want := range map[string]string{`{"type":"user","userId":"eve"},{"type":"user","userId":"ann"}`: "ann", `{"type":"user","userId":"eve"}`: ""} {
		d.enlist("ann", RoleOperator)
		eve := d.enlist("eve", RoleOperator)
		i := d.issue(t, CreateIssue{Title: "x", AllowDuplicate: true, Status: IssueTodo, Assignee: ada,
			ExecutionPolicy: fmt.Appendf(nil, `{"stages":[{"id":%q,"type":"review","participants":[%s]}]}`, d.id(), participants)})
		eve.Status = MemberArchived
		members.Put(d.tx, d.company, eve.ID, eve)
		run := d.run(ada)
		d.must(t, as{ada, run}, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: ada, Expected: []IssueStatus{IssueTodo}}, nil)
		err := d.do(as{ada, run}, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueDone}, nil)
		d.endRun(run)
		if want == "" {
			if r := refused(t, err); r.ErrCode != "execution_stage_without_participant" {
				t.Errorf("%+v", r)
			}
		} else if got := d.load(i.ID); err != nil || got.AssigneeUser != want {
			t.Errorf("handed to %q, want %q, %v", got.AssigneeUser, want, err)
		}
	}
}
