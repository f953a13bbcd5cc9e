package company

import (
	"cmp"
	"testing"

	"pgregory.net/rapid"

	"github.com/selvage-mesh/selvage/ledger"
)

// held is the refusal of what the strategy gate holds back.
func held(t testing.TB, what string, err error) {
	t.Helper()
	if r := refused(t, err); r.ErrCode != "ceo_strategy_required" || r.Code != ledger.Conflict {
		t.Errorf("%s: %v", what, err)
	}
}

func TestACEOOnlyDraftsUntilAStrategyIsApproved(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ceo := d.boss(t)
	wes := as{d.hire(t, "Wes", ceo.agent), ""}
	wes.run = d.run(wes.agent)

	// A draft is in backlog, unless it says otherwise, which is refused.
	var draft IssueResult
	d.must(t, ceo, "issue.create", CreateIssue{ID: d.id(), Title: "build it", Assignee: wes.agent}, &draft)
	if draft.Issue.Status != IssueBacklog || len(LiveRunsOfAgent(d.tx, d.company, wes.agent)) != 1 {
		t.Errorf("a draft is %s, and its assignee has %d runs", draft.Issue.Status, len(LiveRunsOfAgent(d.tx, d.company, wes.agent)))
	}
	for _, status := range []IssueStatus{IssueTodo, IssueInProgress, IssueInReview} {
		held(t, "created as "+string(status), d.do(ceo, "issue.create", CreateIssue{ID: d.id(), Title: "now", Status: status, Assignee: wes.agent}, nil))
	}
	title := "build it well"
	d.must(t, ceo, "issue.update", UpdateIssue{Issue: draft.Issue.ID, Title: &title}, nil)
	d.must(t, ceo, "comment.create", CreateComment{ID: d.id(), Issue: draft.Issue.ID, Body: "a plan"}, nil)

	// Nobody but the board lets it out.
	held(t, "to todo by the CEO", d.do(ceo, "issue.update", UpdateIssue{Issue: draft.Issue.ID, Status: IssueTodo}, nil))
	held(t, "checked out by the assignee", d.do(wes, "issue.checkout", CheckOutIssue{Issue: draft.Issue.ID, Agent: wes.agent, Expected: []IssueStatus{IssueBacklog}}, nil))
	held(t, "to todo by the assignee", d.do(wes, "issue.update", UpdateIssue{Issue: draft.Issue.ID, Status: IssueTodo}, nil))
	d.must(t, board, "issue.update", UpdateIssue{Issue: draft.Issue.ID, Status: IssueTodo}, nil)
	d.must(t, wes, "issue.checkout", CheckOutIssue{Issue: draft.Issue.ID, Agent: wes.agent, Expected: []IssueStatus{IssueTodo}}, nil)

	// What the board put before the CEO is its own to go on with, and not to give away.
	mine := d.issue(t, CreateIssue{Title: "plan", Assignee: ceo.agent})
	open := d.issue(t, CreateIssue{Title: "pool", Status: IssueTodo})
	later := d.issue(t, CreateIssue{Title: "later", Status: IssueBacklog, Assignee: ceo.agent})
	held(t, "from the pool", d.do(ceo, "issue.checkout", CheckOutIssue{Issue: open.ID, Agent: ceo.agent, Expected: []IssueStatus{IssueTodo}}, nil))
	held(t, "from backlog", d.do(ceo, "issue.update", UpdateIssue{Issue: later.ID, Status: IssueTodo}, nil))
	held(t, "given away", d.do(ceo, "issue.update", UpdateIssue{Issue: mine.ID, Assignee: &wes.agent}, nil))
	d.must(t, ceo, "issue.checkout", CheckOutIssue{Issue: mine.ID, Agent: ceo.agent, Expected: []IssueStatus{IssueTodo}}, nil)
	a := d.ask(t, ceo, ApprovalStrategy, `{"plan":"conquer"}`, mine.ID)
	d.must(t, ceo, "issue.update", UpdateIssue{Issue: mine.ID, Status: IssueBlocked}, nil)

	// A rejected strategy opens nothing, an approved one everything.
	d.decide(t, "reject", a.ID)
	held(t, "after a rejection", d.do(ceo, "issue.update", UpdateIssue{Issue: later.ID, Status: IssueTodo}, nil))
	a = d.ask(t, ceo, ApprovalStrategy, `{"plan":"conquer gently"}`, mine.ID)
	d.decide(t, "approve", a.ID)
	if row, _ := CompanyOf(d.tx, d.company); row.Drafting() || string(row.Strategy) != a.ID {
		t.Errorf("after the approval: %+v", row)
	}
	d.must(t, ceo, "issue.update", UpdateIssue{Issue: later.ID, Status: IssueTodo}, nil)
	d.must(t, ceo, "issue.create", CreateIssue{ID: d.id(), Title: "go", Status: IssueTodo, Assignee: wes.agent}, nil)
	d.must(t, ceo, "issue.checkout", CheckOutIssue{Issue: open.ID, Agent: ceo.agent, Expected: []IssueStatus{IssueTodo}}, nil)
}

func TestTheStrategyGateHasASwitchAndHoldsNobodyElse(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ceo := d.boss(t)
	wes := as{d.hire(t, "Wes", ceo.agent), ""}
	wes.run = d.run(wes.agent)
	d.must(t, wes, "issue.create", CreateIssue{ID: d.id(), Title: "mine", Status: IssueTodo, Assignee: wes.agent}, nil)
	d.must(t, board, "issue.create", CreateIssue{ID: d.id(), Title: "theirs", Status: IssueTodo, Assignee: wes.agent}, nil)
	create := func() error {
		return d.do(ceo, "issue.create", CreateIssue{ID: d.id(), Title: "now", Status: IssueTodo, Assignee: wes.agent, AllowDuplicate: true}, nil)
	}
	held(t, "with the gate on", create())
	for _, on := range []bool{false, true} {
		d.must(t, board, "company.update", SaveCompany{RequireStrategy: &on}, nil)
		if err := create(); (err != nil) != on {
			t.Errorf("with the gate set to %v: %v", on, err)
		}
	}
}

// The first story of the specification: the board creates a company, hires a
// CEO, approves its strategy, and the CEO receives work.
func TestSpec_17_3_BoardHiresACEOAndApprovesItsStrategy(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.found(t, "Acme")
	name, role := "Cleo", "ceo"
	var h Hire
	d.must(t, board, "agent.hire", HireAgent{Agent: SaveAgent{ID: d.id(), Name: &name, Role: &role}, Approval: d.id()}, &h)
	ceo := as{h.Agent, d.run(h.Agent)}
	a := d.ask(t, ceo, ApprovalStrategy, `{"plan":"survey, then build"}`)
	d.endRun(ceo.run)
	d.decide(t, "approve", a.ID)
	told := LiveRunsOfAgent(d.tx, d.company, h.Agent)
	if len(told) != 1 || told[0].Context.ApprovalStatus != "approved" || told[0].Context.WakeReason != "approval_approved" {
		t.Fatalf("runs after the approval: %+v", told)
	}
	task := d.issue(t, CreateIssue{Title: "Build it", Assignee: h.Agent})
	woken := 0
	for _, r := range LiveRunsOfAgent(d.tx, d.company, h.Agent) {
		if r.Context.IssueID == task.ID && r.Source == WakeAssignment {
			woken++
		}
	}
	if woken != 1 || task.Status != IssueTodo {
		t.Errorf("the CEO has %d runs for its work, which is %s", woken, task.Status)
	}
	ceo.run = d.run(h.Agent)
	d.must(t, ceo, "issue.checkout", CheckOutIssue{Issue: task.ID, Agent: h.Agent, Expected: []IssueStatus{IssueTodo}}, nil)
}

// The release gate: the board approves and rejects hires and strategies, and
// every decision is in the activity log.
func TestSpec_19_5_BoardApprovesAndRejectsHiresAndStrategies(t *testing.T) {
	t.Parallel()
	for _, verdict := range []string{"approve", "reject"} {
		d := newDesk(t)
		ceo := d.boss(t)
		for _, kind := range []ApprovalType{ApprovalHire, ApprovalStrategy} {
			a := d.ask(t, ceo, kind, `{"name":"Carl","plan":"conquer"}`)
			if err := d.do(ceo, "issue.create", CreateIssue{ID: d.id(), Title: "go " + a.ID, Status: IssueTodo}, nil); err == nil {
				t.Error("the CEO starts work while its strategy waits")
			}
			v := d.decide(t, verdict, a.ID)
			want := map[string]string{"approve": "approval.approved", "reject": "approval.rejected"}[verdict]
			found := 0
			for _, ch := range d.last {
				if ch.Action == want && ch.EntityID == a.ID {
					found++
				}
			}
			if found != 1 || v.Approval.DecidedByUser == "" || v.Approval.DecidedAt == 0 || v.Approval.DecisionNote != "because" {
				t.Errorf("%s of %s: %v, %+v", verdict, kind, actions(d.last), v.Approval)
			}
		}
		hired := len(AgentsOf(d.tx, d.company, false)) == 2
		err := d.do(ceo, "issue.create", CreateIssue{ID: d.id(), Title: "go", Status: IssueTodo}, nil)
		if approved := verdict == "approve"; hired != approved || (err == nil) != approved {
			t.Errorf("after %s: hired %v, starting work: %v", verdict, hired, err)
		}
	}
}

// Whatever a drafting CEO and its worker try, nothing that the CEO wrote down
// leaves backlog unless the board lets it, and no act of the CEO
// wakes its worker for it.
func TestADraftingCEOStartsNothingWhateverItTries(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := newDesk(t)
		ceo := d.boss(t)
		wes := as{d.hire(t, "Wes", ceo.agent), ""}
		wes.run = d.run(wes.agent)
		all := []string{d.issue(t, CreateIssue{Title: "plan", Assignee: ceo.agent}).ID, d.issue(t, CreateIssue{Title: "pool", Status: IssueTodo}).ID,
			d.issue(t, CreateIssue{Title: "later", Status: IssueBacklog, Assignee: wes.agent}).ID, d.issue(t, CreateIssue{Title: "his", Assignee: wes.agent}).ID}
		released := map[string]bool{all[0]: true, all[1]: true, all[3]: true}
		statuses := append([]IssueStatus{""}, IssueStatuses...)
		who := []string{"", ceo.agent, wes.agent}
		live := func() (n int) {
			for _, r := range LiveRunsOfAgent(d.tx, d.company, wes.agent) {
				if !released[r.Context.IssueID] {
					n++
				}
			}
			return n
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			actor := rapid.SampledFrom([]as{ceo, ceo, ceo, wes, board}).Draw(rt, "actor")
			issue := rapid.SampledFrom(all).Draw(rt, "issue")
			status := rapid.SampledFrom(statuses).Draw(rt, "status")
			assignee := rapid.SampledFrom(who).Draw(rt, "assignee")
			before := live()
			switch step := rapid.SampledFrom([]string{"create", "update", "assign", "checkout", "release"}).Draw(rt, "step"); step {
			case "create":
				p := CreateIssue{ID: d.id(), Title: "x", Status: status, Assignee: assignee, AllowDuplicate: true}
				if rapid.Bool().Draw(rt, "child") {
					p.Parent = issue
				}
				if rapid.Bool().Draw(rt, "waits") {
					p.BlockedBy = []string{issue}
				}
				if d.do(actor, "issue.create", p, nil) == nil {
					all = append(all, p.ID)
					if actor.agent != ceo.agent && d.load(p.ID).Status.started() {
						released[p.ID] = true
					}
				}
			case "update", "assign":
				p := UpdateIssue{Issue: issue, Status: status}
				if step == "assign" {
					p.Assignee = &assignee
				}
				if was := d.load(issue); d.do(actor, "issue.update", p, nil) == nil && (actor == board || actor == wes && was.CreatedAgent != ceo.agent) && d.load(issue).Status.started() {
					released[issue] = true
				}
			case "checkout":
				if was := d.load(issue); d.do(actor, "issue.checkout", CheckOutIssue{Issue: issue, Agent: cmp.Or(actor.agent, wes.agent), Expected: IssueStatuses}, nil) == nil &&
					(actor == board || actor == wes && was.CreatedAgent != ceo.agent) {
					released[issue] = true
				}
			case "release":
				_ = d.do(actor, "issue.release", ReleaseIssue{Issue: issue}, nil)
			}
			if actor == ceo && live() > before {
				rt.Fatalf("the CEO woke its worker for what nobody has let out")
			}
			for _, id := range all {
				if i := d.load(id); i.Status.started() && !released[id] {
					rt.Fatalf("%s (%s, by %q) is %s after an act of %q", i.Identifier, i.Title, i.CreatedAgent, i.Status, actor.agent)
				}
			}
		}
	})
}
