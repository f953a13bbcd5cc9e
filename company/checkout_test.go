package company

import (
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// TestRace lets 50 agents, each under its own run, claim one issue: exactly one
// wins and all others are told who.
func TestRace(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var racers []as
	for range 50 {
		a := d.agent("racer")
		racers = append(racers, as{a, d.run(a)})
	}
	for range 20 {
		i := d.issue(t, CreateIssue{Status: IssueTodo})
		won := ""
		for _, r := range racers {
			var row Issue
			err := d.do(r, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: r.agent, Expected: []IssueStatus{IssueTodo}}, &row)
			if err == nil {
				if won != "" {
					t.Fatalf("both %s and %s won", won, r.agent)
				}
				if won = r.agent; row.Assignee != r.agent || row.CheckoutRun != r.run || row.Fence != d.height || row.Status != IssueInProgress {
					t.Fatalf("winner got %+v", row)
				}
				continue
			}
			m := detail(t, wantRefusal(t, err, ledger.Conflict, "Issue checkout conflict"))
			if m["assigneeAgentId"] != won || m["status"] != "in_progress" || m["issueId"] != i.ID || m["executionRunId"] != m["checkoutRunId"] {
				t.Fatalf("loser is told %v", m)
			}
		}
		if won == "" {
			t.Fatal("nobody won")
		}
		racers = append(racers[1:], racers[0])
	}
}

func TestCheckOutRules(t *testing.T) {
	t.Parallel()
	all := IssueStatuses
	claim := Claim{Agent: "ada", Run: "r1", Now: 10, Height: 7}
	for name, tc := range map[string]struct {
		issue    Issue
		claim    Claim
		expected []IssueStatus
		ok       bool
		fence    uint64
	}{
		"free":                          {Issue{Status: IssueTodo}, claim, []IssueStatus{IssueTodo}, true, 7},
		"backlog":                       {Issue{Status: IssueBacklog}, claim, all, true, 7},
		"in review, own":                {Issue{Status: IssueInReview, Assignee: "ada"}, claim, all, true, 7},
		"not expected":                  {Issue{Status: IssueTodo}, claim, []IssueStatus{IssueBlocked}, false, 0},
		"done":                          {Issue{Status: IssueDone}, claim, all, false, 0},
		"cancelled":                     {Issue{Status: IssueCancelled, Assignee: "ada"}, claim, all, false, 0},
		"another's":                     {Issue{Status: IssueTodo, Assignee: "bob"}, claim, all, false, 0},
		"a user's":                      {Issue{Status: IssueTodo, AssigneeUser: "eve"}, claim, all, false, 0},
		"held by the same run":          {Issue{Status: IssueInProgress, Assignee: "ada", CheckoutRun: "r1", Fence: 3}, claim, nil, true, 3},
		"held by another run":           {Issue{Status: IssueInProgress, Assignee: "ada", CheckoutRun: "r0", Fence: 3}, claim, all, false, 0},
		"held by the board, run comes":  {Issue{Status: IssueInProgress, Assignee: "ada", Fence: 3}, claim, nil, true, 7},
		"left in progress":              {Issue{Status: IssueInProgress, Assignee: "ada"}, claim, nil, true, 7},
		"board, held by the board":      {Issue{Status: IssueInProgress, Assignee: "ada", Fence: 3}, Claim{Agent: "ada", Now: 10, Height: 7}, nil, true, 3},
		"board, held by a run":          {Issue{Status: IssueInProgress, Assignee: "ada", CheckoutRun: "r0", Fence: 3}, Claim{Agent: "ada", Now: 10, Height: 7}, all, false, 0},
		"in progress, nobody's by name": {Issue{Status: IssueInProgress, AssigneeUser: "eve"}, claim, all, false, 0},
	} {
		got, err := tc.issue.CheckOut(tc.claim, tc.expected)
		if (err == nil) != tc.ok || tc.ok && (got.Fence != tc.fence || got.Assignee != "ada" || got.Status != IssueInProgress) {
			t.Errorf("%s: got fence %d, %v", name, got.Fence, err)
		}
	}
}

func TestCheckOutOfAgents(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, bob := d.agent("Ada"), d.agent("Bob")
	run, bobs := d.run(ada), d.run(bob)
	i := d.issue(t, CreateIssue{Status: IssueTodo})
	for name, tc := range map[string]struct {
		who   as
		agent string
		code  ledger.Code
		text  string
	}{
		"as another":    {as{ada, ""}, bob, ledger.Forbidden, "Agent can only checkout as itself"},
		"without a run": {as{ada, ""}, ada, ledger.Unauthorized, "Agent run id required"},
		"unknown run":   {as{ada, uid(3)}, ada, ledger.Conflict, "Issue run ownership conflict"},
		"another's run": {as{ada, bobs}, ada, ledger.Conflict, "Issue run ownership conflict"},
		"no such agent": {board, uid(3), ledger.NotFound, "Agent not found"},
	} {
		err := d.do(tc.who, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: tc.agent, Expected: []IssueStatus{IssueTodo}}, nil)
		if r := refused(t, err); r.Code != tc.code || r.Message != tc.text {
			t.Errorf("%s: got %s %q", name, r.Code, r.Message)
		}
	}
	wantRefusal(t, d.do(board, "issue.checkout", CheckOutIssue{Issue: uid(4), Agent: ada}, nil), ledger.NotFound, "Issue not found")
	d.must(t, as{ada, run}, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: ada, Expected: []IssueStatus{IssueTodo}}, nil)
	before := d.load(i.ID)
	d.must(t, as{ada, run}, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: ada, Expected: []IssueStatus{IssueTodo}}, nil)
	if after := d.load(i.ID); after.Fence != before.Fence || after.UpdatedAt != before.UpdatedAt || len(d.last) != 0 {
		t.Errorf("asking again changed %+v to %+v", before, after)
	}
}

// TestStaleRunWrites shows the fence: what a run may write under its checkout,
// it may not any more once the run has ended, the issue was taken away, or
// another run of the same agent holds it.
func TestStaleRunWrites(t *testing.T) {
	t.Parallel()
	writes := map[string]func(d *desk, who as, i Issue) error{
		"update": func(d *desk, who as, i Issue) error {
			return d.do(who, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueDone, Comment: &CreateComment{ID: d.id(), Body: "finished"}}, nil)
		},
		"release": func(d *desk, who as, i Issue) error {
			return d.do(who, "issue.release", ReleaseIssue{Issue: i.ID}, nil)
		},
		"cost": func(d *desk, who as, i Issue) error {
			return d.do(who, "cost.report", ReportCost{CostEvent{ID: d.id(), Agent: who.agent, Issue: NullText(i.ID), Provider: "p", Model: "m"}}, nil)
		},
		"comment": func(d *desk, who as, i Issue) error {
			return d.do(who, "comment.create", CreateComment{ID: d.id(), Issue: i.ID, Body: "hi"}, nil)
		},
	}
	losses := map[string]func(t *testing.T, d *desk, who as, i Issue){
		"the run ended": func(_ *testing.T, d *desk, who as, _ Issue) { d.endRun(who.run) },
		"force-released": func(t *testing.T, d *desk, _ as, i Issue) {
			d.must(t, board, "issue.force_release", ForceReleaseIssue{Issue: i.ID}, nil)
		},
		"taken up by a later run": func(t *testing.T, d *desk, who as, i Issue) {
			d.endRun(who.run)
			d.must(t, as{who.agent, d.run(who.agent)}, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: who.agent}, nil)
		},
	}
	for what, write := range writes {
		for how, lose := range losses {
			d := newDesk(t)
			ada := d.agent("Ada")
			who := as{ada, d.run(ada)}
			claim := CheckOutIssue{Agent: ada, Expected: []IssueStatus{IssueTodo}}
			good := d.issue(t, CreateIssue{Status: IssueTodo})
			claim.Issue = good.ID
			d.must(t, who, "issue.checkout", claim, nil)
			if err := write(d, who, good); err != nil {
				t.Errorf("%s under a live checkout: %v", what, err)
			}
			i := d.issue(t, CreateIssue{Status: IssueTodo})
			claim.Issue = i.ID
			d.must(t, who, "issue.checkout", claim, nil)
			lose(t, d, who, i)
			before := d.load(i.ID)
			err := write(d, who, i)
			live := how == "force-released"
			if live && (what == "comment" || what == "cost") {
				// The run goes on; only what changes the issue is fenced.
				if err != nil {
					t.Errorf("%s after %s: %v", what, how, err)
				}
				continue
			}
			r := refused(t, err)
			switch {
			case what == "comment" && how == "the run ended":
				if r.Code != ledger.Forbidden || r.ErrCode != "cross_issue_influence_run_context_required" {
					t.Errorf("%s after %s: %s %q", what, how, r.Code, r.ErrCode)
				}
			case r.Code != ledger.Conflict || r.Message != "Issue run ownership conflict" || detail(t, r)["actorRunId"] != who.run:
				t.Errorf("%s after %s: %s %q", what, how, r.Code, r.Message)
			}
			if after := d.load(i.ID); after.StatusVersion != before.StatusVersion || after.Comments != before.Comments || after.Assignee != before.Assignee {
				t.Errorf("%s after %s changed the issue", what, how)
			}
		}
	}
}

func TestLockEndsWithItsRun(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	run := d.run(ada)
	i := d.issue(t, CreateIssue{Status: IssueTodo})
	d.must(t, as{ada, run}, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: ada, Expected: []IssueStatus{IssueTodo}}, nil)
	if held := slices.Collect(IssuesHeldBy(d.tx, d.company, run)); len(held) != 1 || held[0].ID != i.ID {
		t.Fatalf("the run holds %v", held)
	}
	d.endRun(run)
	if got := d.load(i.ID); got.Held() || got.CheckoutRun != "" || got.Assignee != ada || got.Status != IssueInProgress {
		t.Errorf("after its run: %+v", got)
	}
	next := d.run(ada)
	var row Issue
	d.must(t, as{ada, next}, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: ada, Expected: []IssueStatus{IssueTodo}}, &row)
	if row.CheckoutRun != next || row.StartedAt != d.load(i.ID).StartedAt {
		t.Errorf("taken up again: %+v", row)
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, bob := d.agent("Ada"), d.agent("Bob")
	who, other := as{ada, d.run(ada)}, as{bob, d.run(bob)}
	i := d.issue(t, CreateIssue{Status: IssueTodo})
	claim := CheckOutIssue{Issue: i.ID, Agent: ada, Expected: []IssueStatus{IssueTodo}}
	d.must(t, who, "issue.checkout", claim, nil)
	wantRefusal(t, d.do(other, "issue.release", ReleaseIssue{Issue: i.ID}, nil), ledger.Conflict, "Only assignee can release issue")
	wantRefusal(t, d.do(other, "issue.update", UpdateIssue{Issue: i.ID, Priority: PriorityLow}, nil), ledger.Conflict, "Issue is checked out by another agent")
	wantRefusal(t, d.do(other, "issue.force_release", ForceReleaseIssue{Issue: i.ID}, nil), ledger.Forbidden, "Board access required")
	var row Issue
	d.must(t, who, "issue.release", ReleaseIssue{Issue: i.ID}, &row)
	if row.Status != IssueTodo || row.Assignee != "" || row.Held() || row.StartedAt == 0 || row.StatusVersion != 2 {
		t.Errorf("released: %+v", row)
	}
	d.must(t, who, "issue.checkout", claim, nil)
	var forced ForceReleased
	c := d.context(board, "issue.force_release", ForceReleaseIssue{Issue: i.ID, ClearAssignee: true})
	out, err := d.mux["issue.force_release"](c)
	if err != nil || len(c.Changes()) != 1 {
		t.Fatal(err, c.Changes())
	}
	if err := ledger.Unmarshal(out, &forced); err != nil {
		t.Fatal(err)
	}
	// The entry says whose lock it was.
	if ch := c.Changes()[0]; ch.Action != "issue.admin_force_release" || ch.EntityID != i.ID || !strings.Contains(string(ch.Details), `"prevCheckoutRunId":"`+who.run+`"`) ||
		!strings.Contains(string(ch.Details), `"prevExecutionRunId":"`+who.run+`"`) {
		t.Errorf("recorded %s of %s: %s", ch.Action, ch.EntityID, ch.Details)
	}
	if forced.PreviousRun != who.run || forced.Issue.Held() || forced.Issue.Assignee != "" || forced.Issue.Status != IssueTodo {
		t.Errorf("force-released: %+v", forced)
	}
	d.must(t, board, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueDone}, nil)
	wantRefusal(t, d.do(board, "issue.release", ReleaseIssue{Issue: i.ID}, nil), ledger.Conflict, "")
}

func TestStoppedAgentsGetNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	i := d.issue(t, CreateIssue{Status: IssueTodo})
	claim := CheckOutIssue{Issue: i.ID, Agent: ada, Expected: []IssueStatus{IssueTodo}}
	for status, reason := range map[AgentStatus]NullText{AgentPaused: "manual", AgentTerminated: "", AgentPendingApproval: ""} {
		a, _ := agents.Get(d.tx, d.company, ada)
		a.Status, a.PauseReason = status, reason
		agents.Put(d.tx, d.company, ada, a)
		m := detail(t, wantRefusal(t, d.do(board, "issue.checkout", claim, nil), ledger.Conflict, "Agent is not invokable in its current state"))
		if m["agentId"] != ada || m["agentStatus"] != string(status) {
			t.Errorf("%s: %v", status, m)
		}
	}
	if got := d.load(i.ID); got.Status != IssueTodo {
		t.Errorf("the issue is %s", got.Status)
	}
}

func TestAgentStartsItsIssueByUpdate(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	who := as{ada, d.run(ada)}
	i := d.issue(t, CreateIssue{Assignee: ada})
	var r IssueResult
	d.must(t, who, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueInProgress}, &r)
	if r.Issue.CheckoutRun != who.run || r.Issue.Fence != d.height {
		t.Errorf("in progress, but not checked out: %+v", r.Issue)
	}
	m := detail(t, wantRefusal(t, d.do(who, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueBacklog}, nil), ledger.Conflict, "Issue cannot move from in_progress to backlog"))
	if m["status"] != "in_progress" || len(m["allowedStatuses"].([]any)) != 4 {
		t.Errorf("details %v", m)
	}
	wantRefusal(t, d.do(as{ada, ""}, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueDone}, nil), ledger.Unauthorized, "Agent run id required")
	d.must(t, who, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueDone}, nil)
	wantRefusal(t, d.do(who, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueTodo}, nil), ledger.Conflict, "")
}

func BenchmarkCheckOut(b *testing.B) {
	d := newDesk(b)
	ada := d.agent("Ada")
	who := as{ada, d.run(ada)}
	i := d.issue(b, CreateIssue{Status: IssueTodo, Description: "Find out what the gripper can hold, and write it down."})
	b.ReportAllocs()
	like := *d.context(who, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: ada, Expected: []IssueStatus{IssueTodo, IssueBacklog, IssueBlocked, IssueInReview}})
	for b.Loop() {
		c := like
		c.Tx = d.tx.Child()
		v, err := d.mux["issue.checkout"](&c)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(v)))
	}
}

// Work that is in progress or in review goes on with the agent that it is handed to,
// who is woken for it at once.
func TestWhoIsHandedWorkThatGoesOnIsWoken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status IssueStatus
		wakes  bool
	}{{IssueTodo, true}, {IssueInProgress, true}, {IssueInReview, true}, {IssueBacklog, false}, {IssueDone, false}} {
		d := newDesk(t)
		ada, bob := d.agent("Ada"), d.agent("Bob")
		i := d.issue(t, CreateIssue{Title: "Rig", Assignee: ada, Status: IssueBacklog})
		for _, to := range []IssueStatus{IssueTodo, IssueInProgress, c.status} {
			d.must(t, board, "issue.update", UpdateIssue{Issue: i.ID, Status: to}, nil)
		}
		d.must(t, board, "issue.update", UpdateIssue{Issue: i.ID, Assignee: &bob}, nil)
		live := LiveRunsOfAgent(d.tx, d.company, bob)
		if woken := len(live) == 1 && live[0].Context.WakeReason == "issue_assigned" && live[0].Context.IssueID == i.ID; woken != c.wakes || !c.wakes && len(live) > 0 {
			t.Errorf("%s: woken %v with %d runs, want %v", c.status, woken, len(live), c.wakes)
		}
	}
}
