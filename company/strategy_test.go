package company_test

import (
	"cmp"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"pgregory.net/rapid"
)

func TestACEOOnlyDraftsUntilAStrategyIsApproved(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ceo := d.Boss(t)
	wes := companytest.As{Agent: d.Hire(t, "Wes", ceo.Agent), Run: ""}
	wes.Run = d.Run(wes.Agent)

	// A draft is in backlog, unless it says otherwise, which is refused.
	var draft entity.IssueResult
	d.Must(t, ceo, "issue.create", company.CreateIssue{ID: d.ID(), Title: "build it", Assignee: wes.Agent}, &draft)
	if draft.Issue.Status != entity.IssueBacklog || len(entity.LiveRunsOfAgent(d.Tx, d.Company, wes.Agent)) != 1 {
		t.Errorf("a draft is %s, and its assignee has %d runs", draft.Issue.Status,
			len(entity.LiveRunsOfAgent(d.Tx, d.Company, wes.Agent)))
	}
	for _, status := range []entity.IssueStatus{entity.IssueTodo, entity.IssueInProgress, entity.IssueInReview} {
		companytest.Held(t, "created as "+string(status),
			d.Do(ceo, "issue.create", company.CreateIssue{ID: d.ID(), Title: "now", Status: status, Assignee: wes.Agent}, nil))
	}
	title := "build it well"
	d.Must(t, ceo, "issue.update", company.UpdateIssue{Issue: draft.Issue.ID, Title: &title}, nil)
	d.Must(t, ceo, "comment.create", entity.CreateComment{ID: d.ID(), Issue: draft.Issue.ID, Body: "a plan"}, nil)

	// Nobody but the board lets it out.
	companytest.Held(t, "to todo by the CEO", d.Do(ceo, "issue.update", company.UpdateIssue{Issue: draft.Issue.ID,
		Status: entity.IssueTodo}, nil))
	companytest.Held(t, "checked out by the assignee",
		d.Do(wes, "issue.checkout", company.CheckOutIssue{Issue: draft.Issue.ID, Agent: wes.Agent,
			Expected: []entity.IssueStatus{entity.IssueBacklog}}, nil))
	companytest.Held(t, "to todo by the assignee", d.Do(wes, "issue.update", company.UpdateIssue{Issue: draft.Issue.ID,
		Status: entity.IssueTodo}, nil))
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: draft.Issue.ID, Status: entity.IssueTodo}, nil)
	d.Must(t, wes, "issue.checkout", company.CheckOutIssue{Issue: draft.Issue.ID, Agent: wes.Agent,
		Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)

	// What the board put before the CEO is its own to go on with, and not to give away.
	mine := d.Issue(t, company.CreateIssue{Title: "plan", Assignee: ceo.Agent})
	open := d.Issue(t, company.CreateIssue{Title: "pool", Status: entity.IssueTodo})
	later := d.Issue(t, company.CreateIssue{Title: "later", Status: entity.IssueBacklog, Assignee: ceo.Agent})
	companytest.Held(t, "from the pool", d.Do(ceo, "issue.checkout", company.CheckOutIssue{Issue: open.ID,
		Agent: ceo.Agent, Expected: []entity.IssueStatus{entity.IssueTodo}}, nil))
	companytest.Held(t, "from backlog", d.Do(ceo, "issue.update", company.UpdateIssue{Issue: later.ID,
		Status: entity.IssueTodo}, nil))
	companytest.Held(t, "given away", d.Do(ceo, "issue.update", company.UpdateIssue{Issue: mine.ID,
		Assignee: &wes.Agent}, nil))
	d.Must(t, ceo, "issue.checkout", company.CheckOutIssue{Issue: mine.ID, Agent: ceo.Agent,
		Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)
	a := d.Ask(t, ceo, money.ApprovalStrategy, `{"plan":"conquer"}`, mine.ID)
	d.Must(t, ceo, "issue.update", company.UpdateIssue{Issue: mine.ID, Status: entity.IssueBlocked}, nil)

	// A rejected strategy opens nothing, an approved one everything.
	d.Decide(t, "reject", a.ID)
	companytest.Held(t, "after a rejection", d.Do(ceo, "issue.update", company.UpdateIssue{Issue: later.ID,
		Status: entity.IssueTodo}, nil))
	a = d.Ask(t, ceo, money.ApprovalStrategy, `{"plan":"conquer gently"}`, mine.ID)
	d.Decide(t, "approve", a.ID)
	if row, _ := entity.CompanyOf(d.Tx, d.Company); row.Drafting() || string(row.Strategy) != a.ID {
		t.Errorf("after the approval: %+v", row)
	}
	d.Must(t, ceo, "issue.update", company.UpdateIssue{Issue: later.ID, Status: entity.IssueTodo}, nil)
	d.Must(t, ceo, "issue.create", company.CreateIssue{ID: d.ID(), Title: "go", Status: entity.IssueTodo,
		Assignee: wes.Agent}, nil)
	d.Must(t, ceo, "issue.checkout", company.CheckOutIssue{Issue: open.ID, Agent: ceo.Agent,
		Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)
}

func TestTheStrategyGateHasASwitchAndHoldsNobodyElse(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ceo := d.Boss(t)
	wes := companytest.As{Agent: d.Hire(t, "Wes", ceo.Agent), Run: ""}
	wes.Run = d.Run(wes.Agent)
	d.Must(t, wes, "issue.create", company.CreateIssue{ID: d.ID(), Title: "mine", Status: entity.IssueTodo,
		Assignee: wes.Agent}, nil)
	d.Must(t, companytest.Board, "issue.create", company.CreateIssue{ID: d.ID(), Title: "theirs", Status: entity.IssueTodo,
		Assignee: wes.Agent}, nil)
	create := func() error {
		return d.Do(ceo, "issue.create", company.CreateIssue{ID: d.ID(), Title: "now", Status: entity.IssueTodo,
			Assignee: wes.Agent, AllowDuplicate: true}, nil)
	}
	companytest.Held(t, "with the gate on", create())
	for _, on := range []bool{false, true} {
		d.Must(t, companytest.Board, "company.update", entity.SaveCompany{RequireStrategy: &on}, nil)
		if err := create(); (err != nil) != on {
			t.Errorf("with the gate set to %v: %v", on, err)
		}
	}
}

// The first story of the specification: the board creates a company, hires a
// CEO, approves its strategy, and the CEO receives work.
func TestSpec_17_3_BoardHiresACEOAndApprovesItsStrategy(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	d.Found(t, "Acme")
	name, role := "Cleo", "ceo"
	var h money.Hire
	d.Must(t, companytest.Board, "agent.hire", money.HireAgent{Agent: entity.SaveAgent{ID: d.ID(), Name: &name,
		Role: &role}, Approval: d.ID()}, &h)
	ceo := companytest.As{Agent: h.Agent, Run: d.Run(h.Agent)}
	a := d.Ask(t, ceo, money.ApprovalStrategy, `{"plan":"survey, then build"}`)
	d.EndRun(ceo.Run)
	d.Decide(t, "approve", a.ID)
	told := entity.LiveRunsOfAgent(d.Tx, d.Company, h.Agent)
	if len(told) != 1 || told[0].Context.ApprovalStatus != "approved" ||
		told[0].Context.WakeReason != "approval_approved" {
		t.Fatalf("runs after the approval: %+v", told)
	}
	task := d.Issue(t, company.CreateIssue{Title: "Build it", Assignee: h.Agent})
	woken := 0
	for _, r := range entity.LiveRunsOfAgent(d.Tx, d.Company, h.Agent) {
		if r.Context.IssueID == task.ID && r.Source == entity.WakeAssignment {
			woken++
		}
	}
	if woken != 1 || task.Status != entity.IssueTodo {
		t.Errorf("the CEO has %d runs for its work, which is %s", woken, task.Status)
	}
	ceo.Run = d.Run(h.Agent)
	d.Must(t, ceo, "issue.checkout", company.CheckOutIssue{Issue: task.ID, Agent: h.Agent,
		Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)
}

// The release gate: the board approves and rejects hires and strategies, and
// every decision is in the activity log.
func TestSpec_19_5_BoardApprovesAndRejectsHiresAndStrategies(t *testing.T) {
	t.Parallel()
	for _, verdict := range []string{"approve", "reject"} {
		d := companytest.NewDesk(t)
		ceo := d.Boss(t)
		for _, kind := range []money.ApprovalType{money.ApprovalHire, money.ApprovalStrategy} {
			a := d.Ask(t, ceo, kind, `{"name":"Carl","plan":"conquer"}`)
			if err := d.Do(ceo, "issue.create", company.CreateIssue{ID: d.ID(), Title: "go " + a.ID, Status: entity.IssueTodo},
				nil); err == nil {
				t.Error("the CEO starts work while its strategy waits")
			}
			v := d.Decide(t, verdict, a.ID)
			want := map[string]string{"approve": "approval.approved", "reject": "approval.rejected"}[verdict]
			found := 0
			for _, ch := range d.Last {
				if ch.Action == want && ch.EntityID == a.ID {
					found++
				}
			}
			if found != 1 || v.Approval.DecidedByUser == "" || v.Approval.DecidedAt == 0 ||
				v.Approval.DecisionNote != "because" {
				t.Errorf("%s of %s: %v, %+v", verdict, kind, companytest.Actions(d.Last), v.Approval)
			}
		}
		hired := len(entity.AgentsOf(d.Tx, d.Company, false)) == 2
		err := d.Do(ceo, "issue.create", company.CreateIssue{ID: d.ID(), Title: "go", Status: entity.IssueTodo}, nil)
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
		d := companytest.NewDesk(t)
		ceo := d.Boss(t)
		wes := companytest.As{Agent: d.Hire(t, "Wes", ceo.Agent), Run: ""}
		wes.Run = d.Run(wes.Agent)
		all := []string{d.Issue(t, company.CreateIssue{Title: "plan", Assignee: ceo.Agent}).ID,
			d.Issue(t, company.CreateIssue{Title: "pool", Status: entity.IssueTodo}).ID,
			d.Issue(t, company.CreateIssue{Title: "later", Status: entity.IssueBacklog, Assignee: wes.Agent}).ID,
			d.Issue(t, company.CreateIssue{Title: "his", Assignee: wes.Agent}).ID}
		released := map[string]bool{all[0]: true, all[1]: true, all[3]: true}
		statuses := append([]entity.IssueStatus{""}, entity.IssueStatuses...)
		who := []string{"", ceo.Agent, wes.Agent}
		live := func() (n int) {
			for _, r := range entity.LiveRunsOfAgent(d.Tx, d.Company, wes.Agent) {
				if !released[r.Context.IssueID] {
					n++
				}
			}
			return n
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			actor := rapid.SampledFrom([]companytest.As{ceo, ceo, ceo, wes, companytest.Board}).Draw(rt, "actor")
			issue := rapid.SampledFrom(all).Draw(rt, "issue")
			status := rapid.SampledFrom(statuses).Draw(rt, "status")
			assignee := rapid.SampledFrom(who).Draw(rt, "assignee")
			before := live()
			switch step := rapid.SampledFrom([]string{"create", "update", "assign", "checkout", "release"}).
				Draw(rt, "step"); step {
			case "create":
				p := company.CreateIssue{ID: d.ID(), Title: "x", Status: status, Assignee: assignee, AllowDuplicate: true}
				if rapid.Bool().Draw(rt, "child") {
					p.Parent = issue
				}
				if rapid.Bool().Draw(rt, "waits") {
					p.BlockedBy = []string{issue}
				}
				if d.Do(actor, "issue.create", p, nil) == nil {
					all = append(all, p.ID)
					if actor.Agent != ceo.Agent && d.Load(p.ID).Status.Started() {
						released[p.ID] = true
					}
				}
			case "update", "assign":
				p := company.UpdateIssue{Issue: issue, Status: status}
				if step == "assign" {
					p.Assignee = &assignee
				}
				if was := d.Load(issue); d.Do(actor, "issue.update", p, nil) == nil && (actor == companytest.Board ||
					actor == wes && was.CreatedAgent != ceo.Agent) && d.Load(issue).Status.Started() {
					released[issue] = true
				}
			case "checkout":
				if was := d.Load(issue); d.Do(actor, "issue.checkout", company.CheckOutIssue{Issue: issue,
					Agent: cmp.Or(actor.Agent, wes.Agent), Expected: entity.IssueStatuses}, nil) == nil &&
					(actor == companytest.Board || actor == wes && was.CreatedAgent != ceo.Agent) {
					released[issue] = true
				}
			case "release":
				_ = d.Do(actor, "issue.release", company.ReleaseIssue{Issue: issue}, nil)
			}
			if actor == ceo && live() > before {
				rt.Fatalf("the CEO woke its worker for what nobody has let out")
			}
			for _, id := range all {
				if i := d.Load(id); i.Status.Started() && !released[id] {
					rt.Fatalf("%s (%s, by %q) is %s after an act of %q", i.Identifier, i.Title, i.CreatedAgent, i.Status, actor.Agent)
				}
			}
		}
	})
}
