package money_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// The table of statuses: what each verdict makes of each status, "" for a refusal.
func TestApprovalsFollowTheirTable(t *testing.T) {
	t.Parallel()
	table := map[string]map[money.ApprovalStatus]money.ApprovalStatus{
		"approve": {money.ApprovalPending: money.ApprovalApproved, money.ApprovalRevision: money.ApprovalApproved,
			money.ApprovalApproved: money.ApprovalApproved},
		"reject": {money.ApprovalPending: money.ApprovalRejected, money.ApprovalRevision: money.ApprovalRejected,
			money.ApprovalRejected: money.ApprovalRejected},
		"cancel": {money.ApprovalPending: money.ApprovalCancelled, money.ApprovalRevision: money.ApprovalCancelled,
			money.ApprovalCancelled: money.ApprovalCancelled},
		"revise": {money.ApprovalPending: money.ApprovalRevision},
	}
	says := map[string]string{
		"approve": "Only pending or revision requested approvals can be approved",
		"reject":  "Only pending or revision requested approvals can be rejected",
		"cancel":  "Only pending or revision requested approvals can be cancelled",
		"revise":  "Only pending approvals can request revision",
	}
	reach := map[money.ApprovalStatus]string{money.ApprovalRevision: "revise", money.ApprovalApproved: "approve",
		money.ApprovalRejected: "reject", money.ApprovalCancelled: "cancel"}
	for verdict, row := range table {
		for _, from := range money.ApprovalStatuses {
			d := companytest.NewDesk(t)
			a := d.Ask(t, companytest.Board, money.ApprovalRequest, `{"title":"a yacht"}`)
			if reach[from] != "" {
				d.Decide(t, reach[from], a.ID)
			}
			err := d.Do(companytest.Board, "approval."+verdict, money.DecideApproval{Approval: a.ID}, nil)
			after, _ := money.ApprovalByID(d.Tx, a.ID)
			if want := row[from]; want == "" {
				companytest.WantRefusal(t, err, ledger.Unprocessable, says[verdict])
				if after.Status != from {
					t.Errorf("a refused %s of %s left %s", verdict, from, after.Status)
				}
			} else if err != nil || after.Status != want {
				t.Errorf("%s of %s: %s, %v, want %s", verdict, from, after.Status, err, want)
			}
			if n, _ := money.PendingApprovals(d.Tx, d.Company); (n == 1) != (after.Status == money.ApprovalPending) {
				t.Errorf("%d are counted as pending while one is %s", n, after.Status)
			}
		}
	}
}

// The integration test of the specification: from an approval to an agent.
func TestSpec_17_2_ApprovingAHireMakesTheAgentInTheSameEntry(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ceo := d.Boss(t)
	task := d.Issue(t, company.CreateIssue{Title: "Find a coder"})
	a := d.Ask(t, ceo, money.ApprovalHire,
		`{"name":"Carl","role":"engineer","reportsTo":"`+ceo.Agent+`","budgetMonthlyCents":500,
		"adapterConfig":{"command":"/bin/true","env":{"DB_URL":"canary-1","KEEP":{"type":"secret_ref","secretId":"`+
			d.Secret(t, "KEEP")+`"}}}}`, task.ID)
	if strings.Contains(string(ledger.Marshal(a)), "canary") {
		t.Errorf("the approval shows a secret: %s", a.Payload)
	}
	if string(a.RequestedByAgent) != ceo.Agent || a.RequestedByUser != "" {
		t.Errorf("asked for by agent %q, user %q", a.RequestedByAgent, a.RequestedByUser)
	}
	d.Decide(t, "revise", a.ID)
	// What was hidden comes back as it was shown.
	var shown map[string]any
	if err := json.Unmarshal(a.Payload, &shown); err != nil {
		t.Fatal(err)
	}
	shown["title"] = "Senior"
	again, _ := json.Marshal(shown)
	d.Must(t, ceo, "approval.resubmit", money.ResubmitApproval{Approval: a.ID, Payload: again}, nil)
	v := d.Decide(t, "approve", a.ID)
	if got := companytest.Actions(d.Last); !slices.Contains(got, "agent.created") || !slices.Contains(got,
		"approval.approved") {
		t.Errorf("the entry says %v", got)
	}
	carl, ok := entity.AgentOf(d.Tx, d.Company, string(v.Approval.Agent))
	if !ok || carl.Name != "Carl" || carl.Title != "Senior" || carl.Status != entity.AgentIdle ||
		string(carl.ReportsTo) != ceo.Agent || !strings.Contains(string(carl.AdapterConfig), "canary-1") {
		t.Fatalf("hired %+v %s", carl, carl.AdapterConfig)
	}
	if limit, _ := money.AgentBudget(d.Tx, d.Company, carl.ID, core.TimeOf(d.Now)); limit != core.Cents(500) {
		t.Errorf("its budget is %d", limit.Cents())
	}
	if _, ok := money.ApprovalDrafts.Get(d.Tx, d.Company, a.ID); ok {
		t.Error("the draft with its secrets outlives the decision")
	}
	// Whoever asked is woken, and told of the decision and the issue.
	woken := slices.IndexFunc(entity.LiveRunsOfAgent(d.Tx, d.Company, ceo.Agent), func(r entity.Run) bool {
		return r.Context.ApprovalID == a.ID && r.Context.ApprovalStatus == "approved" &&
			slices.Equal(r.Context.LinkedIssueIDs, []string{task.ID})
	})
	if woken < 0 {
		t.Errorf("no run tells the CEO: %+v", entity.LiveRunsOfAgent(d.Tx, d.Company, ceo.Agent))
	}
	before := len(entity.AgentsOf(d.Tx, d.Company, true))
	d.Decide(t, "approve", a.ID)
	if len(d.Last) != 0 || len(entity.AgentsOf(d.Tx, d.Company, true)) != before {
		t.Errorf("approving again did %v", companytest.Actions(d.Last))
	}
}

func TestAHireThatIsRefusedStaysOpenAndSaysWhy(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	boss := d.Hire(t, "Ada", "")
	a := d.Ask(t, companytest.Board, money.ApprovalHire, `{"name":"Carl","reportsTo":"`+boss+`"}`)
	d.Must(t, companytest.Board, "agent.terminate", company.ChangeAgent{Agent: boss}, nil)
	before := len(entity.AgentsOf(d.Tx, d.Company, true))
	v := d.Decide(t, "approve", a.ID)
	if v.Refused == nil || v.Refused.Message != "Cannot report to terminated agents" ||
		v.Approval.Status != money.ApprovalPending || v.Approval.Refused == nil ||
		v.Approval.Refused.Error != v.Refused.Message {
		t.Fatalf("decision %+v", v)
	}
	if got := companytest.Actions(d.Last); !slices.Equal(got, []string{"approval.refused"}) ||
		len(entity.AgentsOf(d.Tx, d.Company, true)) != before {
		t.Errorf("the entry says %v", got)
	}
	d.Decide(t, "revise", a.ID)
	d.Must(t, companytest.Board, "approval.resubmit", money.ResubmitApproval{Approval: a.ID,
		Payload: json.RawMessage(`{"name":"Carl"}`)}, nil)
	if v := d.Decide(t, "approve", a.ID); v.Refused != nil || v.Approval.Refused != nil || v.Approval.Agent == "" {
		t.Errorf("after the revision: %+v", v)
	}
}

func TestWhatCouldNotBeCarriedOutIsNotPutBeforeTheBoard(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ceo := d.Boss(t)
	worker := companytest.As{Agent: d.Agent("Wes"), Run: ""}
	for _, c := range []struct {
		who     companytest.As
		kind    money.ApprovalType
		agent   string
		payload string
		code    ledger.Code
		message string
	}{
		{companytest.Board, "buy_yacht", "", `{}`, ledger.Invalid, "Unknown type of approval: buy_yacht"},
		{companytest.Board, money.ApprovalHire, "", `{"role":"engineer"}`, ledger.Invalid,
			"payload.name is needed to hire an agent"},
		{companytest.Board, money.ApprovalHire, "", `{"name":7}`, ledger.Invalid, "payload.name does not describe an agent"},
		{companytest.Board, money.ApprovalHire, "", `{"name":"X","role":"king"}`, ledger.Invalid, "Unknown role: king"},
		{companytest.Board, money.ApprovalHire, "", `{"name":"X","adapterType":"telepathy"}`, ledger.Unprocessable,
			"Unknown adapter type: telepathy"},
		{companytest.Board, money.ApprovalHire, "", `{"name":"X","reportsTo":"` + companytest.UID(9) + `"}`, ledger.NotFound,
			"Manager not found"},
		{companytest.Board, money.ApprovalHire, "", `{"name":"X","budgetMonthlyCents":-1}`, ledger.Invalid,
			"payload.budgetMonthlyCents is out of range"},
		{companytest.Board, money.ApprovalBudget, "", `{"scopeType":"galaxy"}`, ledger.Invalid,
			"payload.scopeType is not a scope: galaxy"},
		{companytest.Board, money.ApprovalRequest, "", `[]`, ledger.Invalid, "payload is not a JSON object"},
		{companytest.Board, money.ApprovalRequest, companytest.UID(9), `{}`, ledger.Unprocessable,
			"Agent does not belong to company"},
		{ceo, money.ApprovalRequest, worker.Agent, `{}`, ledger.Forbidden, "Agent can only request approvals as itself"},
		{worker, money.ApprovalStrategy, "", `{}`, ledger.Forbidden, "Only a CEO can propose a strategy"},
		{worker, money.ApprovalHire, "", `{"name":"X"}`, ledger.Forbidden, "Missing permission: agents:create"},
	} {
		err := d.Do(c.who, "approval.create", money.CreateApproval{ID: d.ID(), Type: c.kind, Agent: c.agent,
			Payload: json.RawMessage(c.payload)}, nil)
		companytest.WantRefusal(t, err, c.code, c.message)
	}
	if all := money.ApprovalsOf(d.Tx, d.Company, money.ApprovalQuery{}); len(all) != 0 {
		t.Errorf("%d approvals came of it", len(all))
	}
	if err := d.Do(ceo, "approval.create", money.CreateApproval{ID: d.ID(), Type: money.ApprovalRequest,
		Payload: json.RawMessage(`{}`), Issues: []string{companytest.UID(9)}}, nil); companytest.Refused(t, err).
		Code != ledger.NotFound {
		t.Errorf("an unknown issue: %v", err)
	}
}

func TestApprovalsAndIssuesKnowOfEachOther(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	one, two := d.Issue(t, company.CreateIssue{Title: "one"}), d.Issue(t, company.CreateIssue{Title: "two"})
	a := d.Ask(t, companytest.Board, money.ApprovalRequest, `{}`, one.ID)
	link := money.LinkApproval{Approval: a.ID, Issue: two.ID}
	d.Must(t, companytest.Board, "approval.link", link, nil)
	d.Must(t, companytest.Board, "approval.link", link, nil) // again
	if got := money.LinkedIssues(d.Tx, a); len(got) != 2 {
		t.Errorf("linked to %v", got)
	}
	// An open approval is reason enough to be blocked.
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: one.ID, Status: entity.IssueBlocked}, nil)
	d.Must(t, companytest.Board, "approval.unlink", link, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.update", company.UpdateIssue{Issue: two.ID,
		Status: entity.IssueBlocked}, nil), ledger.Unprocessable,
		"Entering blocked requires unresolved blockers, a pending interaction/approval, or unblockDescriptor")
	d.Must(t, companytest.Board, "issue.delete", company.DeleteIssue{Issue: one.ID}, nil)
	if got := money.LinkedIssues(d.Tx, a); len(got) != 0 || len(money.ApprovalsOfIssue(d.Tx, d.Company, one.ID)) != 0 {
		t.Errorf("after the deletion linked to %v", got)
	}
	var cm money.ApprovalComment
	d.Must(t, companytest.Board, "approval.comment", money.CommentApproval{ID: d.ID(), Approval: a.ID, Body: "why?"}, &cm)
	if list := money.CommentsOfApproval(d.Tx, d.Company, a.ID); len(list) != 1 || list[0] != cm {
		t.Errorf("comments %+v", list)
	}
}

func TestAPendingAgentNeitherRunsNorStaysAfterARejection(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"reject", "cancel", "agent.terminate", "agent.delete", "approve"} {
		d := companytest.NewDesk(t)
		yes, name := true, "Dora"
		d.Must(t, companytest.Board, "company.update", entity.SaveCompany{RequireHireApproval: &yes}, nil)
		refusal := companytest.Refused(t, d.Do(companytest.Board, "agent.create",
			entity.SaveAgent{ID: d.ID(), Name: &name}, nil))
		if refusal.Code != ledger.Conflict {
			t.Errorf("direct creation: %v", refusal)
		}
		var h money.Hire
		d.Must(t, companytest.Board, "agent.hire", money.HireAgent{Agent: entity.SaveAgent{ID: d.ID(), Name: &name},
			Approval: d.ID()}, &h)
		if a, _ := entity.AgentOf(d.Tx, d.Company, h.Agent); a.Status != entity.AgentPendingApproval {
			t.Fatalf("a hire is %s", a.Status)
		}
		companytest.WantRefusal(t, d.Do(companytest.Board, "agent.wake",
			entity.Wake{Agent: h.Agent, Source: entity.WakeOnDemand, TriggerDetail: "manual", Wakeup: d.ID(), Run: d.ID()}, nil),
			ledger.Conflict, "Agent is not invokable in its current state")
		companytest.WantRefusal(t, d.Do(companytest.Board, "agent_key.create", people.CreateKey{ID: d.ID(), Agent: h.Agent,
			Name: "k", Hash: strings.Repeat("a", 64)}, nil), ledger.Conflict, "Cannot create keys for pending approval agents")
		companytest.WantRefusal(t, d.Do(companytest.Board, "issue.create", company.CreateIssue{ID: d.ID(), Title: "x",
			Assignee: h.Agent}, nil), ledger.Conflict, "Cannot assign work to pending approval agents")
		companytest.WantRefusal(t, d.Do(companytest.Board, "agent.resume", company.ChangeAgent{Agent: h.Agent}, nil),
			ledger.Conflict, "Pending approval agents cannot be activated directly")
		if strings.HasPrefix(end, "agent.") {
			d.Must(t, companytest.Board, end, company.ChangeAgent{Agent: h.Agent}, nil)
		} else {
			d.Decide(t, end, h.Approval)
		}
		want := map[string]entity.AgentStatus{"reject": entity.AgentTerminated, "cancel": entity.AgentTerminated,
			"agent.terminate": entity.AgentTerminated, "approve": entity.AgentIdle}[end]
		if a, _ := entity.AgentOf(d.Tx, d.Company, h.Agent); a.Status != want {
			t.Errorf("after %s the agent is %q, want %q", end, a.Status, want)
		}
		if a, _ := money.ApprovalByID(d.Tx, h.Approval); a.Status.Open() {
			t.Errorf("after %s the approval is %s", end, a.Status)
		}
		if end == "approve" {
			d.Must(t, companytest.Board, "agent.wake", entity.Wake{Agent: h.Agent, Source: entity.WakeOnDemand,
				TriggerDetail: "manual", Wakeup: d.ID(), Run: d.ID()}, nil)
		}
	}
}

func TestOnlyTheBoardOfAnEasyCompanyHiresAtOnce(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ceo := d.Boss(t)
	name := "Dora"
	var h money.Hire
	d.Must(t, companytest.Board, "agent.hire", money.HireAgent{Agent: entity.SaveAgent{ID: d.ID(), Name: &name},
		Approval: d.ID()}, &h)
	if a, _ := entity.AgentOf(d.Tx, d.Company, h.Agent); a.Status != entity.AgentIdle || h.Approval != "" {
		t.Errorf("the board's hire: %+v, %s", h, a.Status)
	}
	yes := true
	d.Must(t, ceo, "agent.hire", money.HireAgent{Agent: entity.SaveAgent{ID: d.ID(), Name: &name,
		Permissions: &entity.Grant{AssignTasks: &yes}}, Approval: d.ID()}, &h)
	if a, _ := entity.AgentOf(d.Tx, d.Company, h.Agent); a.Status != entity.AgentPendingApproval ||
		a.Permissions.AssignTasks || a.Name != "Dora 2" {
		t.Errorf("the CEO's hire: %+v", a)
	}
	no := false
	wes := companytest.As{Agent: d.Hire(t, "Wes", ""), Run: ""}
	d.Must(t, companytest.Board, "agent.permissions", company.GrantAgent{Agent: wes.Agent,
		Grant: entity.Grant{CreateAgents: &no}}, nil)
	companytest.WantRefusal(t, d.Do(wes, "agent.hire", money.HireAgent{Agent: entity.SaveAgent{ID: d.ID(), Name: &name},
		Approval: d.ID()}, nil), ledger.Forbidden, "Missing permission: agents:create")
}

func TestAHardStopAndItsApprovalEndTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		end      func(d *companytest.Desk, in money.BudgetIncident) error
		incident string
		approval money.ApprovalStatus
		paused   bool
	}{
		{"approve", func(d *companytest.Desk, in money.BudgetIncident) error {
			return d.Do(companytest.Board, "approval.approve", money.DecideApproval{Approval: in.Approval}, nil)
		}, "resolved", money.ApprovalApproved, false},
		{"reject", func(d *companytest.Desk, in money.BudgetIncident) error {
			return d.Do(companytest.Board, "approval.reject", money.DecideApproval{Approval: in.Approval}, nil)
		}, "dismissed", money.ApprovalRejected, true},
		{"raise", func(d *companytest.Desk, in money.BudgetIncident) error {
			return d.Do(companytest.Board, "budget.resolve", money.ResolveIncident{Incident: in.ID,
				Action: "raise_budget_and_resume", Amount: new(core.Cents(5000))}, nil)
		}, "resolved", money.ApprovalApproved, false},
		{"keep", func(d *companytest.Desk, in money.BudgetIncident) error {
			return d.Do(companytest.Board, "budget.resolve", money.ResolveIncident{Incident: in.ID, Action: "keep_paused"}, nil)
		}, "dismissed", money.ApprovalRejected, true},
		{"set", func(d *companytest.Desk, in money.BudgetIncident) error {
			return d.Do(companytest.Board, "budget.set", money.SetBudget{Type: entity.ScopeAgent, Scope: in.Scope,
				Amount: core.Cents(5000)}, nil)
		}, "resolved", money.ApprovalApproved, false},
		{"delete", func(d *companytest.Desk, in money.BudgetIncident) error {
			return d.Do(companytest.Board, "agent.delete", company.ChangeAgent{Agent: in.Scope}, nil)
		}, "resolved", money.ApprovalCancelled, false},
		{"next month", func(d *companytest.Desk, in money.BudgetIncident) error {
			d.Now = in.End.Std()
			if !money.BudgetsToSweep(d.Tx, d.Company, core.TimeOf(d.Now)) {
				return fmt.Errorf("nothing to sweep")
			}
			return d.Do(companytest.Board, "budget.sweep", money.SweepBudgets{}, nil)
		}, "resolved", money.ApprovalApproved, false},
	} {
		d := companytest.NewDesk(t)
		bob := d.Hire(t, "Bob", "")
		d.Must(t, companytest.Board, "budget.set", money.SetBudget{Type: entity.ScopeAgent, Scope: bob,
			Amount: core.Cents(1000)}, nil)
		if err := d.Cost(companytest.Board, bob, 1120); err != nil {
			t.Fatal(err)
		}
		open := money.OpenIncidents(d.Tx, d.Company, core.TimeOf(d.Now))
		if len(open) != 1 || open[0].Approval == "" {
			t.Fatalf("open incidents %+v", open)
		}
		in := open[0]
		if a, _ := money.ApprovalByID(d.Tx, in.Approval); a.Status != money.ApprovalPending ||
			a.Type != money.ApprovalBudget || !strings.Contains(string(a.Payload), `"proposedAmount":2120`) {
			t.Fatalf("the approval is %+v %s", a, a.Payload)
		}
		if _, n := money.PendingApprovals(d.Tx, d.Company); n != 1 {
			t.Errorf("%d approvals about budgets are pending", n)
		}
		if err := c.end(d, in); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		after, _ := money.Incident(d.Tx, d.Company, in.ID)
		a, _ := money.ApprovalByID(d.Tx, in.Approval)
		if after.Status != c.incident || a.Status != c.approval || entity.ScopePaused(d.Tx, d.Company, entity.ScopeAgent,
			bob) != c.paused {
			t.Errorf("after %s: incident %s, approval %s, paused %v", c.name, after.Status, a.Status,
				entity.ScopePaused(d.Tx, d.Company, entity.ScopeAgent, bob))
		}
	}
}

func TestAnOverrideBelowWhatWasSpentIsRefusedAndStaysOpen(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	bob := d.Hire(t, "Bob", "")
	d.Must(t, companytest.Board, "budget.set", money.SetBudget{Type: entity.ScopeAgent, Scope: bob,
		Amount: core.Cents(1000)}, nil)
	if err := d.Cost(companytest.Board, bob, 1120); err != nil {
		t.Fatal(err)
	}
	in := money.OpenIncidents(d.Tx, d.Company, core.TimeOf(d.Now))[0]
	var v money.Decision
	d.Must(t, companytest.Board, "approval.approve", money.DecideApproval{Approval: in.Approval,
		Amount: new(core.Cents(1100))}, &v)
	if v.Refused == nil || v.Refused.Message != "New budget must exceed current observed spend" ||
		!v.Approval.Status.Open() {
		t.Errorf("decision %+v", v)
	}
	d.Must(t, companytest.Board, "approval.approve", money.DecideApproval{Approval: in.Approval,
		Amount: new(core.Cents(1121))}, &v)
	if limit, _ := money.AgentBudget(d.Tx, d.Company, bob, core.TimeOf(d.Now)); v.Refused != nil ||
		limit != core.Cents(1121) || entity.ScopePaused(d.Tx, d.Company, entity.ScopeAgent, bob) {
		t.Errorf("decision %+v, limit %d", v, limit.Cents())
	}
}

func TestDeletingACompanyTakesItsApprovalsWithIt(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	d.Found(t, "Acme")
	task := d.Issue(t, company.CreateIssue{Title: "x"})
	a := d.Ask(t, companytest.Board, money.ApprovalHire, `{"name":"Carl","adapterConfig":{"env":{"K":"v"}}}`, task.ID)
	d.Must(t, companytest.Board, "approval.comment", money.CommentApproval{ID: d.ID(), Approval: a.ID, Body: "why?"}, nil)
	for range 3 {
		var done company.Deletion
		if d.Must(t, companytest.Board, "company.delete", company.ChangeCompany{}, &done); done.Done {
			break
		}
	}
	for k := range d.Tx.Writes() {
		if v, ok := d.Tx.Get([]byte(k)); ok && (strings.Contains(k, string(d.Company)) || strings.Contains(k, a.ID)) &&
			!strings.Contains(k, "~") {
			t.Errorf("%s is left: %s", k, v)
		}
	}
}

// Any sequence of verdicts leaves each approval under exactly one state, with
// exactly one change of its own an entry, and never two agents for one hire.
func TestApprovalsHoldTogetherWhateverHappens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := companytest.NewDesk(t)
		ceo := d.Boss(t)
		yes, name := true, "Dora"
		d.Must(t, companytest.Board, "company.update", entity.SaveCompany{RequireHireApproval: &yes}, nil)
		var ids, hires []string
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch step := rapid.SampledFrom([]string{"ask", "hire", "approve", "reject", "revise", "cancel", "resubmit"}).
				Draw(rt, "step"); {
			case step == "ask":
				ids = append(ids, d.Ask(t, ceo, money.ApprovalHire, `{"name":"Carl"}`).ID)
			case step == "hire":
				var h money.Hire
				d.Must(t, ceo, "agent.hire", money.HireAgent{Agent: entity.SaveAgent{ID: d.ID(), Name: &name},
					Approval: d.ID()}, &h)
				ids, hires = append(ids, h.Approval), append(hires, h.Agent)
			case len(ids) == 0:
			default:
				id := rapid.SampledFrom(ids).Draw(rt, "which")
				before, _ := money.ApprovalByID(d.Tx, id)
				var payload any = money.DecideApproval{Approval: id}
				if step == "resubmit" {
					payload = money.ResubmitApproval{Approval: id}
				}
				err := d.Do(companytest.Board, "approval."+step, payload, nil)
				after, _ := money.ApprovalByID(d.Tx, id)
				own := 0
				for _, ch := range d.Last {
					if ch.EntityID == id && ch.Action != "approval.requester_wakeup_queued" {
						own++
					}
				}
				if err == nil && before.Status != after.Status && own != 1 {
					rt.Fatalf("%s recorded %v", step, companytest.Actions(d.Last))
				}
				if !before.Status.Open() && before.Status != after.Status {
					rt.Fatalf("%s reopened what was %s", step, before.Status)
				}
			}
			states := map[string]int{}
			for _, s := range money.ApprovalStatuses {
				for _, kind := range money.ApprovalTypes {
					for ref := range money.ApprovalsByState.IDs(d.Tx, d.Company,
						money.Approval{Status: s, Type: kind}.State(), false) {
						if a, _ := money.ApprovalByID(d.Tx, money.IDOfRef(ref)); a.Status != s {
							rt.Fatalf("%s is listed as %s and is %s", a.ID, s, a.Status)
						}
						states[money.IDOfRef(ref)]++
					}
				}
			}
			made := 1 + len(hires) // the CEO, and those of hires
			for _, id := range ids {
				a, _ := money.ApprovalByID(d.Tx, id)
				if states[id] != 1 {
					rt.Fatalf("%s is listed %d times", id, states[id])
				}
				if !slices.Contains(hires, string(a.Agent)) && a.Status == money.ApprovalApproved {
					made++
				}
				if agent, ok := entity.AgentOf(d.Tx, d.Company, string(a.Agent)); ok && slices.Contains(hires, agent.ID) {
					want := map[money.ApprovalStatus]entity.AgentStatus{money.ApprovalPending: entity.AgentPendingApproval,
						money.ApprovalRevision: entity.AgentPendingApproval, money.ApprovalApproved: entity.AgentIdle,
						money.ApprovalRejected: entity.AgentTerminated, money.ApprovalCancelled: entity.AgentTerminated}[a.Status]
					if agent.Status != want {
						rt.Fatalf("an agent whose hire is %s is %s", a.Status, agent.Status)
					}
				}
			}
			if n := len(entity.AgentsOf(d.Tx, d.Company, true)); n != made {
				rt.Fatalf("%d agents, want %d", n, made)
			}
		}
	})
}

func FuzzHirePayload(f *testing.F) {
	for _, s := range []string{`{"name":"Carl"}`, `{"name":null}`, `{"name":"x","budgetMonthlyCents":1e3}`,
		`{"name":"x","adapterConfig":null,"metadata":[]}`, `[]`, `{`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := money.HireOf(b)
		if err != nil {
			if r := companytest.Refused(t, err); r.Code != ledger.Invalid {
				t.Errorf("refused with %s", r.Code)
			}
			return
		}
		if p.Name == nil || p.Budget != nil && *p.Budget < 0 {
			t.Errorf("%q gives %+v", b, p)
		}
		_, _ = money.OverrideOf(b)
	})
}

func TestAListOfApprovalsIsBoundedAndGoesOn(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	const each = money.MaxApprovalPayload
	big := json.RawMessage(`{"plan":"` + strings.Repeat("x", each-len(`{"plan":""}`)) + `"}`)
	n := money.MaxApprovalBytes/each + 10
	for range n { // as by command, but without looking for secrets each time
		d.Height++
		money.PutApproval(d.Tx, money.Approval{}, money.Approval{ID: d.ID(), Company: d.Company, Type: money.ApprovalRequest,
			Status: money.ApprovalPending, Payload: big, Height: d.Height})
	}
	first := money.ApprovalsOf(d.Tx, d.Company, money.ApprovalQuery{Limit: money.MaxApprovalLimit})
	rest := money.ApprovalsOf(d.Tx, d.Company, money.ApprovalQuery{Limit: money.MaxApprovalLimit, Offset: len(first)})
	if len(first) != money.MaxApprovalBytes/each || len(rest) != n-len(first) ||
		first[len(first)-1].Height <= rest[0].Height {
		t.Errorf("%d and %d of %d", len(first), len(rest), n)
	}
	if err := d.Do(companytest.Board, "approval.create", money.CreateApproval{ID: d.ID(), Type: money.ApprovalRequest,
		Payload: append(slices.Clone(big[:len(big)-2]), `xx"}`...)}, nil); companytest.Refused(t, err).
		Code != ledger.TooLarge {
		t.Errorf("a payload above the bound: %v", err)
	}
}
