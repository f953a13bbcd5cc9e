package paper_test

import (
	"fmt"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestWorkGoesThroughTheStagesOfItsPolicy(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, rev := d.Agent("Ada"), d.Agent("Rev")
	first, second := d.ID(), d.ID()
	policy := fmt.Sprintf(`{"stages":[{"id":%q,"type":"review","participants":[{"type":"agent","agentId":%q},`+
		`{"type":"agent","agentId":%q}]},
		{"id":%q,"type":"approval","participants":[{"type":"user","userId":"local-board"}]}],"maxReviewRounds":2}`, first,
		ada, rev, second)
	i := d.Issue(t, company.CreateIssue{Assignee: ada, Status: entity.IssueTodo, ExecutionPolicy: []byte(policy)})
	work := func() entity.Issue {
		run := d.Run(ada)
		d.Must(t, companytest.As{Agent: ada, Run: run}, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: ada,
			Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)
		d.Must(t, companytest.As{Agent: ada, Run: run}, "issue.update", company.UpdateIssue{Issue: i.ID,
			Status: entity.IssueDone}, nil)
		d.EndRun(run)
		return d.Load(i.ID)
	}
	say := func(who companytest.As, to entity.IssueStatus, text string) error {
		p := company.UpdateIssue{Issue: i.ID, Status: to}
		if text != "" {
			p.Comment = &entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: text}
		}
		return d.Do(who, "issue.update", p, nil)
	}

	// Who did the work is not who looks at it, although the policy names it first.
	got := work()
	if got.Status != entity.IssueInReview || got.Assignee != rev || got.Held() || got.Execution.Stage != first ||
		got.Execution.ReturnAgent != ada {
		t.Fatalf("handed in: %+v, %+v", got, got.Execution)
	}
	if live := entity.LiveRunsOfAgent(d.Tx, d.Company, rev); len(live) != 1 ||
		live[0].Context.WakeReason != "execution_review_requested" {
		t.Errorf("the reviewer has the runs %+v", live)
	}
	asAda := companytest.As{Agent: ada, Run: d.Run(ada)}
	if r := companytest.Refused(t,
		say(asAda, entity.IssueDone, "I am sure")); r.ErrCode != "execution_stage_participant_required" ||
		r.Code != ledger.Forbidden {
		t.Errorf("the worker decides: %+v", r)
	}
	d.EndRun(asAda.Run)
	asRev := companytest.As{Agent: rev, Run: d.Run(rev)}
	companytest.WantRefusal(t, say(asRev, entity.IssueDone, ""), ledger.Unprocessable,
		"A decision on a stage needs a comment that says why")
	if err := say(asRev, entity.IssueInProgress, "Not yet"); err != nil {
		t.Fatal(err)
	}
	d.EndRun(asRev.Run)
	got = d.Load(i.ID)
	if got.Status != entity.IssueTodo || got.Assignee != ada || got.Execution.Status != "changes_requested" ||
		got.Execution.Rounds != 1 {
		t.Fatalf("sent back: %+v, %+v", got, got.Execution)
	}
	if live := entity.LiveRunsOfAgent(d.Tx, d.Company, ada); len(live) == 0 {
		t.Error("the worker is not woken")
	}

	got = work()
	asRev = companytest.As{Agent: rev, Run: d.Run(rev)}
	if err := say(asRev, entity.IssueDone, "Good"); err != nil {
		t.Fatal(err)
	}
	d.EndRun(asRev.Run)
	got = d.Load(i.ID)
	if got.Status != entity.IssueInReview || got.Assignee != "" || got.AssigneeUser != "local-board" ||
		got.Execution.Stage != second {
		t.Fatalf("after the review: %+v, %+v", got, got.Execution)
	}
	if err := say(companytest.Board, entity.IssueDone, "Ship it"); err != nil {
		t.Fatal(err)
	}
	got = d.Load(i.ID)
	if got.Status != entity.IssueDone || got.Assignee != ada || got.Execution.Status != "completed" ||
		paper.LastDecision(got) == "" {
		t.Fatalf("in the end: %+v, %+v", got, got.Execution)
	}
	list := paper.ExecutionDecisionsOf(d.Tx, got)
	if len(list) != 3 || list[0].Outcome != "changes_requested" || list[1].Outcome != "approved" ||
		list[2].StageType != "approval" || string(list[2].User) != "local-board" {
		t.Errorf("decisions: %+v", list)
	}
}

func TestReviewsAreBounded(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, rev := d.Agent("Ada"), d.Agent("Rev")
	policy := fmt.Sprintf(`{"commentRequired":false,"stages":[{"id":%q,"type":"review",`+
		`"participants":[{"type":"agent","agentId":%q}]}],"maxReviewRounds":1}`, d.ID(), rev)
	hand := func(i entity.Issue) {
		run := d.Run(ada)
		d.Must(t, companytest.As{Agent: ada, Run: run}, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: ada,
			Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)
		d.Must(t, companytest.As{Agent: ada, Run: run}, "issue.update", company.UpdateIssue{Issue: i.ID,
			Status: entity.IssueDone}, nil)
		d.EndRun(run)
	}
	i := d.Issue(t, company.CreateIssue{Assignee: ada, Status: entity.IssueTodo, ExecutionPolicy: []byte(policy)})
	hand(i)
	asRev := companytest.As{Agent: rev, Run: d.Run(rev)}
	d.Must(t, asRev, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueTodo}, nil)
	d.EndRun(asRev.Run)
	if got := d.Load(i.ID); got.Status != entity.IssueBlocked || got.Assignee != ada {
		t.Errorf("after the last round: %+v", got)
	}
	// The board goes past the stages.
	other := d.Issue(t, company.CreateIssue{Assignee: ada, Status: entity.IssueTodo, ExecutionPolicy: []byte(policy)})
	hand(other)
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: other.ID, Status: entity.IssueDone}, nil)
	if got := d.Load(other.ID); got.Status != entity.IssueDone || got.Execution.Status != "completed" {
		t.Errorf("by the board: %+v", got)
	}
	alone := fmt.Sprintf(`{"stages":[{"id":%q,"type":"review","participants":[{"type":"agent","agentId":%q}]}]}`,
		d.ID(), ada)
	mine := d.Issue(t, company.CreateIssue{Assignee: ada, Status: entity.IssueTodo, ExecutionPolicy: []byte(alone)})
	run := d.Run(ada)
	d.Must(t, companytest.As{Agent: ada, Run: run}, "issue.checkout", company.CheckOutIssue{Issue: mine.ID, Agent: ada,
		Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)
	if r := companytest.Refused(t, d.Do(companytest.As{Agent: ada, Run: run}, "issue.update",
		company.UpdateIssue{Issue: mine.ID, Status: entity.IssueDone},
		nil)); r.ErrCode != "execution_stage_without_participant" {
		t.Errorf("%+v", r)
	}
}

// Work comes to no stage of a user who left.
func TestStagesAreNotOfUsersWhoLeft(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	for participants, want := range map[string]string{`{"type":"user","userId":"eve"},{"type":"user",` +
		`"userId":"ann"}`: "ann", `{"type":"user","userId":"eve"}`: ""} {
		d.Enlist("ann", people.RoleOperator)
		eve := d.Enlist("eve", people.RoleOperator)
		i := d.Issue(t, company.CreateIssue{Title: "x", AllowDuplicate: true, Status: entity.IssueTodo, Assignee: ada,
			ExecutionPolicy: fmt.Appendf(nil, `{"stages":[{"id":%q,"type":"review","participants":[%s]}]}`, d.ID(),
				participants)})
		eve.Status = people.MemberArchived
		people.Members.Put(d.Tx, d.Company, eve.ID, eve)
		run := d.Run(ada)
		d.Must(t, companytest.As{Agent: ada, Run: run}, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: ada,
			Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)
		err := d.Do(companytest.As{Agent: ada, Run: run}, "issue.update", company.UpdateIssue{Issue: i.ID,
			Status: entity.IssueDone}, nil)
		d.EndRun(run)
		if want == "" {
			if r := companytest.Refused(t, err); r.ErrCode != "execution_stage_without_participant" {
				t.Errorf("%+v", r)
			}
		} else if got := d.Load(i.ID); err != nil || got.AssigneeUser != want {
			t.Errorf("handed to %q, want %q, %v", got.AssigneeUser, want, err)
		}
	}
}
