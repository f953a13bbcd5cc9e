package company_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// TestRace lets 50 agents, each under its own run, claim one issue: exactly one
// wins and all others are told who.
func TestRace(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	var racers []companytest.As
	for range 50 {
		a := d.Agent("racer")
		racers = append(racers, companytest.As{Agent: a, Run: d.Run(a)})
	}
	for range 20 {
		i := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo})
		won := ""
		for _, r := range racers {
			var row entity.Issue
			err := d.Do(r, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: r.Agent,
				Expected: []entity.IssueStatus{entity.IssueTodo}}, &row)
			if err == nil {
				if won != "" {
					t.Fatalf("both %s and %s won", won, r.Agent)
				}
				if won = r.Agent; row.Assignee != r.Agent || row.CheckoutRun != r.Run || row.Fence != d.Height ||
					row.Status != entity.IssueInProgress {
					t.Fatalf("winner got %+v", row)
				}
				continue
			}
			m := companytest.Detail(t, companytest.WantRefusal(t, err, ledger.Conflict, "Issue checkout conflict"))
			if m["assigneeAgentId"] != won || m["status"] != "in_progress" || m["issueId"] != i.ID ||
				m["executionRunId"] != m["checkoutRunId"] {
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
	all := entity.IssueStatuses
	claim := entity.Claim{Agent: "ada", Run: "r1", Now: 10, Height: 7}
	for name, tc := range map[string]struct {
		issue    entity.Issue
		claim    entity.Claim
		expected []entity.IssueStatus
		ok       bool
		fence    uint64
	}{
		"free": {entity.Issue{Status: entity.IssueTodo}, claim,
			[]entity.IssueStatus{entity.IssueTodo}, true, 7},
		"backlog":        {entity.Issue{Status: entity.IssueBacklog}, claim, all, true, 7},
		"in review, own": {entity.Issue{Status: entity.IssueInReview, Assignee: "ada"}, claim, all, true, 7},
		"not expected": {entity.Issue{Status: entity.IssueTodo}, claim,
			[]entity.IssueStatus{entity.IssueBlocked}, false, 0},
		"done":      {entity.Issue{Status: entity.IssueDone}, claim, all, false, 0},
		"cancelled": {entity.Issue{Status: entity.IssueCancelled, Assignee: "ada"}, claim, all, false, 0},
		"another's": {entity.Issue{Status: entity.IssueTodo, Assignee: "bob"}, claim, all, false, 0},
		"a user's":  {entity.Issue{Status: entity.IssueTodo, AssigneeUser: "eve"}, claim, all, false, 0},
		"held by the same run": {entity.Issue{Status: entity.IssueInProgress, Assignee: "ada", CheckoutRun: "r1",
			Fence: 3}, claim, nil, true, 3},
		"held by another run": {entity.Issue{Status: entity.IssueInProgress, Assignee: "ada", CheckoutRun: "r0",
			Fence: 3}, claim, all, false, 0},
		"held by the board, run comes": {entity.Issue{Status: entity.IssueInProgress, Assignee: "ada", Fence: 3}, claim,
			nil, true, 7},
		"left in progress": {entity.Issue{Status: entity.IssueInProgress, Assignee: "ada"}, claim, nil, true, 7},
		"board, held by the board": {entity.Issue{Status: entity.IssueInProgress, Assignee: "ada", Fence: 3},
			entity.Claim{Agent: "ada", Now: 10, Height: 7}, nil, true, 3},
		"board, held by a run": {entity.Issue{Status: entity.IssueInProgress, Assignee: "ada", CheckoutRun: "r0",
			Fence: 3}, entity.Claim{Agent: "ada", Now: 10, Height: 7}, all, false, 0},
		"in progress, nobody's by name": {entity.Issue{Status: entity.IssueInProgress, AssigneeUser: "eve"}, claim,
			all, false, 0},
	} {
		got, err := tc.issue.CheckOut(tc.claim, tc.expected)
		if (err == nil) != tc.ok || tc.ok && (got.Fence != tc.fence || got.Assignee != "ada" ||
			got.Status != entity.IssueInProgress) {
			t.Errorf("%s: got fence %d, %v", name, got.Fence, err)
		}
	}
}

func TestCheckOutOfAgents(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	run, bobs := d.Run(ada), d.Run(bob)
	i := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo})
	for name, tc := range map[string]struct {
		who   companytest.As
		agent string
		code  ledger.Code
		text  string
	}{
		"as another":    {companytest.As{Agent: ada, Run: ""}, bob, ledger.Forbidden, "Agent can only checkout as itself"},
		"without a run": {companytest.As{Agent: ada, Run: ""}, ada, ledger.Unauthorized, "Agent run id required"},
		"unknown run": {companytest.As{Agent: ada, Run: companytest.UID(3)}, ada, ledger.Conflict,
			"Issue run ownership conflict"},
		"another's run": {companytest.As{Agent: ada, Run: bobs}, ada, ledger.Conflict, "Issue run ownership conflict"},
		"no such agent": {companytest.Board, companytest.UID(3), ledger.NotFound, "Agent not found"},
	} {
		err := d.Do(tc.who, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: tc.agent,
			Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)
		if r := companytest.Refused(t, err); r.Code != tc.code || r.Message != tc.text {
			t.Errorf("%s: got %s %q", name, r.Code, r.Message)
		}
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.checkout", company.CheckOutIssue{Issue: companytest.UID(4),
		Agent: ada}, nil), ledger.NotFound, "Issue not found")
	d.Must(t, companytest.As{Agent: ada, Run: run}, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: ada,
		Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)
	before := d.Load(i.ID)
	d.Must(t, companytest.As{Agent: ada, Run: run}, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: ada,
		Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)
	if after := d.Load(i.ID); after.Fence != before.Fence || after.UpdatedAt != before.UpdatedAt || len(d.Last) != 0 {
		t.Errorf("asking again changed %+v to %+v", before, after)
	}
}

// TestStaleRunWrites shows the fence: what a run may write under its checkout,
// it may not any more once the run has ended, the issue was taken away, or
// another run of the same agent holds it.
func TestStaleRunWrites(t *testing.T) {
	t.Parallel()
	writes := map[string]func(d *companytest.Desk, who companytest.As, i entity.Issue) error{
		"update": func(d *companytest.Desk, who companytest.As, i entity.Issue) error {
			return d.Do(who, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueDone,
				Comment: &entity.CreateComment{ID: d.ID(), Body: "finished"}}, nil)
		},
		"release": func(d *companytest.Desk, who companytest.As, i entity.Issue) error {
			return d.Do(who, "issue.release", company.ReleaseIssue{Issue: i.ID}, nil)
		},
		"cost": func(d *companytest.Desk, who companytest.As, i entity.Issue) error {
			return d.Do(who, "cost.report", money.ReportCost{Event: money.CostEvent{ID: d.ID(), Agent: who.Agent,
				Issue: core.NullText(i.ID), Provider: "p", Model: "m"}}, nil)
		},
		"comment": func(d *companytest.Desk, who companytest.As, i entity.Issue) error {
			return d.Do(who, "comment.create", entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: "hi"}, nil)
		},
	}
	losses := map[string]func(t *testing.T, d *companytest.Desk, who companytest.As, i entity.Issue){
		"the run ended": func(_ *testing.T, d *companytest.Desk, who companytest.As, _ entity.Issue) { d.EndRun(who.Run) },
		"force-released": func(t *testing.T, d *companytest.Desk, _ companytest.As, i entity.Issue) {
			d.Must(t, companytest.Board, "issue.force_release", company.ForceReleaseIssue{Issue: i.ID}, nil)
		},
		"taken up by a later run": func(t *testing.T, d *companytest.Desk, who companytest.As, i entity.Issue) {
			d.EndRun(who.Run)
			d.Must(t, companytest.As{Agent: who.Agent, Run: d.Run(who.Agent)}, "issue.checkout",
				company.CheckOutIssue{Issue: i.ID, Agent: who.Agent}, nil)
		},
	}
	for what, write := range writes {
		for how, lose := range losses {
			d := companytest.NewDesk(t)
			ada := d.Agent("Ada")
			who := companytest.As{Agent: ada, Run: d.Run(ada)}
			claim := company.CheckOutIssue{Agent: ada, Expected: []entity.IssueStatus{entity.IssueTodo}}
			good := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo})
			claim.Issue = good.ID
			d.Must(t, who, "issue.checkout", claim, nil)
			if err := write(d, who, good); err != nil {
				t.Errorf("%s under a live checkout: %v", what, err)
			}
			i := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo})
			claim.Issue = i.ID
			d.Must(t, who, "issue.checkout", claim, nil)
			lose(t, d, who, i)
			before := d.Load(i.ID)
			err := write(d, who, i)
			live := how == "force-released"
			if live && (what == "comment" || what == "cost") {
				// The run goes on; only what changes the issue is fenced.
				if err != nil {
					t.Errorf("%s after %s: %v", what, how, err)
				}
				continue
			}
			r := companytest.Refused(t, err)
			switch {
			case what == "comment" && how == "the run ended":
				if r.Code != ledger.Forbidden || r.ErrCode != "cross_issue_influence_run_context_required" {
					t.Errorf("%s after %s: %s %q", what, how, r.Code, r.ErrCode)
				}
			case r.Code != ledger.Conflict || r.Message != "Issue run ownership conflict" || companytest.Detail(t,
				r)["actorRunId"] != who.Run:
				t.Errorf("%s after %s: %s %q", what, how, r.Code, r.Message)
			}
			if after := d.Load(i.ID); after.StatusVersion != before.StatusVersion || after.Comments != before.Comments ||
				after.Assignee != before.Assignee {
				t.Errorf("%s after %s changed the issue", what, how)
			}
		}
	}
}

func TestLockEndsWithItsRun(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	run := d.Run(ada)
	i := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo})
	d.Must(t, companytest.As{Agent: ada, Run: run}, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: ada,
		Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)
	if held := slices.Collect(entity.IssuesHeldBy(d.Tx, d.Company, run)); len(held) != 1 || held[0].ID != i.ID {
		t.Fatalf("the run holds %v", held)
	}
	d.EndRun(run)
	if got := d.Load(i.ID); got.Held() || got.CheckoutRun != "" || got.Assignee != ada ||
		got.Status != entity.IssueInProgress {
		t.Errorf("after its run: %+v", got)
	}
	next := d.Run(ada)
	var row entity.Issue
	d.Must(t, companytest.As{Agent: ada, Run: next}, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: ada,
		Expected: []entity.IssueStatus{entity.IssueTodo}}, &row)
	if row.CheckoutRun != next || row.StartedAt != d.Load(i.ID).StartedAt {
		t.Errorf("taken up again: %+v", row)
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	who, other := companytest.As{Agent: ada, Run: d.Run(ada)}, companytest.As{Agent: bob, Run: d.Run(bob)}
	i := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo})
	claim := company.CheckOutIssue{Issue: i.ID, Agent: ada, Expected: []entity.IssueStatus{entity.IssueTodo}}
	d.Must(t, who, "issue.checkout", claim, nil)
	companytest.WantRefusal(t, d.Do(other, "issue.release", company.ReleaseIssue{Issue: i.ID}, nil), ledger.Conflict,
		"Only assignee can release issue")
	companytest.WantRefusal(t, d.Do(other, "issue.update", company.UpdateIssue{Issue: i.ID, Priority: entity.PriorityLow},
		nil), ledger.Conflict, "Issue is checked out by another agent")
	companytest.WantRefusal(t, d.Do(other, "issue.force_release", company.ForceReleaseIssue{Issue: i.ID}, nil),
		ledger.Forbidden, "Board access required")
	var row entity.Issue
	d.Must(t, who, "issue.release", company.ReleaseIssue{Issue: i.ID}, &row)
	if row.Status != entity.IssueTodo || row.Assignee != "" || row.Held() || row.StartedAt == 0 || row.StatusVersion != 2 {
		t.Errorf("released: %+v", row)
	}
	d.Must(t, who, "issue.checkout", claim, nil)
	var forced company.ForceReleased
	c := d.Context(companytest.Board, "issue.force_release", company.ForceReleaseIssue{Issue: i.ID, ClearAssignee: true})
	out, err := d.Mux["issue.force_release"](c)
	if err != nil || len(c.Changes()) != 1 {
		t.Fatal(err, c.Changes())
	}
	if err := ledger.Unmarshal(out, &forced); err != nil {
		t.Fatal(err)
	}
	// The entry says whose lock it was.
	if ch := c.Changes()[0]; ch.Action != "issue.admin_force_release" || ch.EntityID != i.ID ||
		!strings.Contains(string(ch.Details), `"prevCheckoutRunId":"`+who.Run+`"`) ||
		!strings.Contains(string(ch.Details), `"prevExecutionRunId":"`+who.Run+`"`) {
		t.Errorf("recorded %s of %s: %s", ch.Action, ch.EntityID, ch.Details)
	}
	if forced.PreviousRun != who.Run || forced.Issue.Held() || forced.Issue.Assignee != "" ||
		forced.Issue.Status != entity.IssueTodo {
		t.Errorf("force-released: %+v", forced)
	}
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueDone}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.release", company.ReleaseIssue{Issue: i.ID}, nil),
		ledger.Conflict, "Issue checkout conflict")
}

func TestStoppedAgentsGetNothing(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	i := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo})
	claim := company.CheckOutIssue{Issue: i.ID, Agent: ada, Expected: []entity.IssueStatus{entity.IssueTodo}}
	for status, reason := range map[entity.AgentStatus]core.NullText{entity.AgentPaused: "manual",
		entity.AgentTerminated: "", entity.AgentPendingApproval: ""} {
		a, _ := entity.AgentTable.Get(d.Tx, d.Company, ada)
		a.Status, a.PauseReason = status, reason
		entity.AgentTable.Put(d.Tx, d.Company, ada, a)
		m := companytest.Detail(t, companytest.WantRefusal(t, d.Do(companytest.Board, "issue.checkout", claim, nil),
			ledger.Conflict, "Agent is not invokable in its current state"))
		if m["agentId"] != ada || m["agentStatus"] != string(status) {
			t.Errorf("%s: %v", status, m)
		}
	}
	if got := d.Load(i.ID); got.Status != entity.IssueTodo {
		t.Errorf("the issue is %s", got.Status)
	}
}

func TestAgentStartsItsIssueByUpdate(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	who := companytest.As{Agent: ada, Run: d.Run(ada)}
	i := d.Issue(t, company.CreateIssue{Assignee: ada})
	var r entity.IssueResult
	d.Must(t, who, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueInProgress}, &r)
	if r.Issue.CheckoutRun != who.Run || r.Issue.Fence != d.Height {
		t.Errorf("in progress, but not checked out: %+v", r.Issue)
	}
	m := companytest.Detail(t, companytest.WantRefusal(t,
		d.Do(who, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueBacklog}, nil), ledger.Conflict,
		"Issue cannot move from in_progress to backlog"))
	if m["status"] != "in_progress" || len(m["allowedStatuses"].([]any)) != 4 {
		t.Errorf("details %v", m)
	}
	companytest.WantRefusal(t, d.Do(companytest.As{Agent: ada, Run: ""}, "issue.update", company.UpdateIssue{Issue: i.ID,
		Status: entity.IssueDone}, nil), ledger.Unauthorized, "Agent run id required")
	d.Must(t, who, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueDone}, nil)
	companytest.WantRefusal(t, d.Do(who, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueTodo}, nil),
		ledger.Conflict, "Issue cannot move from done to todo")
}

func BenchmarkCheckOut(b *testing.B) {
	d := companytest.NewDesk(b)
	ada := d.Agent("Ada")
	who := companytest.As{Agent: ada, Run: d.Run(ada)}
	i := d.Issue(b, company.CreateIssue{Status: entity.IssueTodo,
		Description: "Find out what the gripper can hold, and write it down."})
	b.ReportAllocs()
	like := *d.Context(who, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: ada,
		Expected: []entity.IssueStatus{entity.IssueTodo, entity.IssueBacklog, entity.IssueBlocked, entity.IssueInReview}})
	for b.Loop() {
		c := like
		c.Tx = d.Tx.Child()
		v, err := d.Mux["issue.checkout"](&c)
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
		status entity.IssueStatus
		wakes  bool
	}{{entity.IssueTodo, true}, {entity.IssueInProgress, true}, {entity.IssueInReview, true}, {entity.IssueBacklog, false},
		{entity.IssueDone, false}} {
		d := companytest.NewDesk(t)
		ada, bob := d.Agent("Ada"), d.Agent("Bob")
		i := d.Issue(t, company.CreateIssue{Title: "Rig", Assignee: ada, Status: entity.IssueBacklog})
		for _, to := range []entity.IssueStatus{entity.IssueTodo, entity.IssueInProgress, c.status} {
			d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Status: to}, nil)
		}
		d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Assignee: &bob}, nil)
		live := entity.LiveRunsOfAgent(d.Tx, d.Company, bob)
		if woken := len(live) == 1 && live[0].Context.WakeReason == "issue_assigned" &&
			live[0].Context.IssueID == i.ID; woken != c.wakes || !c.wakes && len(live) > 0 {
			t.Errorf("%s: woken %v with %d runs, want %v", c.status, woken, len(live), c.wakes)
		}
	}
}
