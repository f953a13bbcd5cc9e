package company

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/selvage-mesh/selvage/ledger"
)

// boss adds a CEO and returns its ID; its issues come under a run of its own.
func (d *desk) boss(t testing.TB) (ceo as) {
	t.Helper()
	name, role := "Cleo", "ceo"
	id := d.id()
	d.must(t, board, "agent.create", SaveAgent{ID: id, Name: &name, Role: &role}, nil)
	return as{id, d.run(id)}
}

// ask creates an approval and returns it.
func (d *desk) ask(t testing.TB, who as, kind ApprovalType, payload string, issues ...string) Approval {
	t.Helper()
	var a Approval
	d.must(t, who, "approval.create", CreateApproval{ID: d.id(), Type: kind, Payload: json.RawMessage(payload), Issues: issues}, &a)
	return a
}

// decide gives a verdict ("approve", "reject", "revise", "cancel") by the board.
func (d *desk) decide(t testing.TB, verdict, id string) Decision {
	t.Helper()
	var v Decision
	d.must(t, board, "approval."+verdict, DecideApproval{Approval: id, Note: "because"}, &v)
	return v
}

func actions(changes []ledger.Change) (list []string) {
	for _, ch := range changes {
		list = append(list, ch.Action)
	}
	return list
}

// The table of statuses: what each verdict makes of each status, "" for a refusal.
func TestApprovalsFollowTheirTable(t *testing.T) {
	t.Parallel()
	table := map[string]map[ApprovalStatus]ApprovalStatus{
		"approve": {ApprovalPending: ApprovalApproved, ApprovalRevision: ApprovalApproved, ApprovalApproved: ApprovalApproved},
		"reject":  {ApprovalPending: ApprovalRejected, ApprovalRevision: ApprovalRejected, ApprovalRejected: ApprovalRejected},
		"cancel":  {ApprovalPending: ApprovalCancelled, ApprovalRevision: ApprovalCancelled, ApprovalCancelled: ApprovalCancelled},
		"revise":  {ApprovalPending: ApprovalRevision},
	}
	reach := map[ApprovalStatus]string{ApprovalRevision: "revise", ApprovalApproved: "approve", ApprovalRejected: "reject", ApprovalCancelled: "cancel"}
	for verdict, row := range table {
		for _, from := range ApprovalStatuses {
			d := newDesk(t)
			a := d.ask(t, board, ApprovalRequest, `{"title":"a yacht"}`)
			if reach[from] != "" {
				d.decide(t, reach[from], a.ID)
			}
			err := d.do(board, "approval."+verdict, DecideApproval{Approval: a.ID}, nil)
			after, _ := ApprovalByID(d.tx, a.ID)
			if want := row[from]; want == "" {
				wantRefusal(t, err, ledger.Unprocessable, "")
				if after.Status != from {
					t.Errorf("a refused %s of %s left %s", verdict, from, after.Status)
				}
			} else if err != nil || after.Status != want {
				t.Errorf("%s of %s: %s, %v, want %s", verdict, from, after.Status, err, want)
			}
			if n, _ := PendingApprovals(d.tx, d.company); (n == 1) != (after.Status == ApprovalPending) {
				t.Errorf("%d are counted as pending while one is %s", n, after.Status)
			}
		}
	}
}

// The integration test of the specification: from an approval to an agent.
func TestSpec_17_2_ApprovingAHireMakesTheAgentInTheSameEntry(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ceo := d.boss(t)
	task := d.issue(t, CreateIssue{Title: "Find a coder"})
	a := d.ask(t, ceo, ApprovalHire, `{"name":"Carl","role":"engineer","reportsTo":"`+ceo.agent+`","budgetMonthlyCents":500,
		"adapterConfig":{"command":"/bin/true","env":{"DB_URL":"canary-1","KEEP":{"type":"secret_ref","secretId":"`+d.secret(t, "KEEP")+`"}}}}`, task.ID)
	if strings.Contains(string(ledger.Marshal(a)), "canary") {
		t.Errorf("the approval shows a secret: %s", a.Payload)
	}
	if string(a.RequestedByAgent) != ceo.agent || a.RequestedByUser != "" {
		t.Errorf("asked for by agent %q, user %q", a.RequestedByAgent, a.RequestedByUser)
	}
	d.decide(t, "revise", a.ID)
	// What was hidden comes back as it was shown.
	var shown map[string]any
	if err := json.Unmarshal(a.Payload, &shown); err != nil {
		t.Fatal(err)
	}
	shown["title"] = "Senior"
	again, _ := json.Marshal(shown)
	d.must(t, ceo, "approval.resubmit", ResubmitApproval{Approval: a.ID, Payload: again}, nil)
	v := d.decide(t, "approve", a.ID)
	if got := actions(d.last); !slices.Contains(got, "agent.created") || !slices.Contains(got, "approval.approved") {
		t.Errorf("the entry says %v", got)
	}
	carl, ok := AgentOf(d.tx, d.company, string(v.Approval.Agent))
	if !ok || carl.Name != "Carl" || carl.Title != "Senior" || carl.Status != AgentIdle || string(carl.ReportsTo) != ceo.agent || !strings.Contains(string(carl.AdapterConfig), "canary-1") {
		t.Fatalf("hired %+v %s", carl, carl.AdapterConfig)
	}
	if limit, _ := AgentBudget(d.tx, d.company, carl.ID, TimeOf(d.now)); limit != Cents(500) {
		t.Errorf("its budget is %d", limit.Cents())
	}
	if _, ok := approvalDrafts.Get(d.tx, d.company, a.ID); ok {
		t.Error("the draft with its secrets outlives the decision")
	}
	// Whoever asked is woken, and told of the decision and the issue.
	woken := slices.IndexFunc(LiveRunsOfAgent(d.tx, d.company, ceo.agent), func(r Run) bool {
		return r.Context.ApprovalID == a.ID && r.Context.ApprovalStatus == "approved" && slices.Equal(r.Context.LinkedIssueIDs, []string{task.ID})
	})
	if woken < 0 {
		t.Errorf("no run tells the CEO: %+v", LiveRunsOfAgent(d.tx, d.company, ceo.agent))
	}
	before := len(AgentsOf(d.tx, d.company, true))
	d.decide(t, "approve", a.ID)
	if len(d.last) != 0 || len(AgentsOf(d.tx, d.company, true)) != before {
		t.Errorf("approving again did %v", actions(d.last))
	}
}

func TestAHireThatIsRefusedStaysOpenAndSaysWhy(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	boss := d.hire(t, "Ada", "")
	a := d.ask(t, board, ApprovalHire, `{"name":"Carl","reportsTo":"`+boss+`"}`)
	d.must(t, board, "agent.terminate", ChangeAgent{Agent: boss}, nil)
	before := len(AgentsOf(d.tx, d.company, true))
	v := d.decide(t, "approve", a.ID)
	if v.Refused == nil || v.Refused.Message != "Cannot report to terminated agents" || v.Approval.Status != ApprovalPending || v.Approval.Refused == nil || v.Approval.Refused.Error != v.Refused.Message {
		t.Fatalf("decision %+v", v)
	}
	if got := actions(d.last); !slices.Equal(got, []string{"approval.refused"}) || len(AgentsOf(d.tx, d.company, true)) != before {
		t.Errorf("the entry says %v", got)
	}
	d.decide(t, "revise", a.ID)
	d.must(t, board, "approval.resubmit", ResubmitApproval{Approval: a.ID, Payload: json.RawMessage(`{"name":"Carl"}`)}, nil)
	if v := d.decide(t, "approve", a.ID); v.Refused != nil || v.Approval.Refused != nil || v.Approval.Agent == "" {
		t.Errorf("after the revision: %+v", v)
	}
}

func TestWhatCouldNotBeCarriedOutIsNotPutBeforeTheBoard(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ceo := d.boss(t)
	worker := as{d.agent("Wes"), ""}
	for _, c := range []struct {
		who     as
		kind    ApprovalType
		agent   string
		payload string
		code    ledger.Code
		message string
	}{
		{board, "buy_yacht", "", `{}`, ledger.Invalid, ""},
		{board, ApprovalHire, "", `{"role":"engineer"}`, ledger.Invalid, "payload.name is needed to hire an agent"},
		{board, ApprovalHire, "", `{"name":7}`, ledger.Invalid, "payload.name does not describe an agent"},
		{board, ApprovalHire, "", `{"name":"X","role":"king"}`, ledger.Invalid, "Unknown role: king"},
		{board, ApprovalHire, "", `{"name":"X","adapterType":"telepathy"}`, ledger.Unprocessable, "Unknown adapter type: telepathy"},
		{board, ApprovalHire, "", `{"name":"X","reportsTo":"` + uid(9) + `"}`, ledger.NotFound, "Manager not found"},
		{board, ApprovalHire, "", `{"name":"X","budgetMonthlyCents":-1}`, ledger.Invalid, "payload.budgetMonthlyCents is out of range"},
		{board, ApprovalBudget, "", `{"scopeType":"galaxy"}`, ledger.Invalid, "payload.scopeType is not a scope: galaxy"},
		{board, ApprovalRequest, "", `[]`, ledger.Invalid, "payload is not a JSON object"},
		{board, ApprovalRequest, uid(9), `{}`, ledger.Unprocessable, "Agent does not belong to company"},
		{ceo, ApprovalRequest, worker.agent, `{}`, ledger.Forbidden, "Agent can only request approvals as itself"},
		{worker, ApprovalStrategy, "", `{}`, ledger.Forbidden, "Only a CEO can propose a strategy"},
		{worker, ApprovalHire, "", `{"name":"X"}`, ledger.Forbidden, "Missing permission: agents:create"},
	} {
		err := d.do(c.who, "approval.create", CreateApproval{ID: d.id(), Type: c.kind, Agent: c.agent, Payload: json.RawMessage(c.payload)}, nil)
		wantRefusal(t, err, c.code, c.message)
	}
	if all := ApprovalsOf(d.tx, d.company, ApprovalQuery{}); len(all) != 0 {
		t.Errorf("%d approvals came of it", len(all))
	}
	if err := d.do(ceo, "approval.create", CreateApproval{ID: d.id(), Type: ApprovalRequest, Payload: json.RawMessage(`{}`), Issues: []string{uid(9)}}, nil); refused(t, err).Code != ledger.NotFound {
		t.Errorf("an unknown issue: %v", err)
	}
}

func TestApprovalsAndIssuesKnowOfEachOther(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	one, two := d.issue(t, CreateIssue{Title: "one"}), d.issue(t, CreateIssue{Title: "two"})
	a := d.ask(t, board, ApprovalRequest, `{}`, one.ID)
	link := LinkApproval{Approval: a.ID, Issue: two.ID}
	d.must(t, board, "approval.link", link, nil)
	d.must(t, board, "approval.link", link, nil) // again
	if got := linkedIssues(d.tx, a); len(got) != 2 {
		t.Errorf("linked to %v", got)
	}
	// An open approval is reason enough to be blocked.
	d.must(t, board, "issue.update", UpdateIssue{Issue: one.ID, Status: IssueBlocked}, nil)
	d.must(t, board, "approval.unlink", link, nil)
	wantRefusal(t, d.do(board, "issue.update", UpdateIssue{Issue: two.ID, Status: IssueBlocked}, nil), ledger.Unprocessable, "")
	d.must(t, board, "issue.delete", DeleteIssue{Issue: one.ID}, nil)
	if got := linkedIssues(d.tx, a); len(got) != 0 || len(ApprovalsOfIssue(d.tx, d.company, one.ID)) != 0 {
		t.Errorf("after the deletion linked to %v", got)
	}
	var cm ApprovalComment
	d.must(t, board, "approval.comment", CommentApproval{ID: d.id(), Approval: a.ID, Body: "why?"}, &cm)
	if list := CommentsOfApproval(d.tx, d.company, a.ID); len(list) != 1 || list[0] != cm {
		t.Errorf("comments %+v", list)
	}
}

func TestAPendingAgentNeitherRunsNorStaysAfterARejection(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"reject", "cancel", "agent.terminate", "agent.delete", "approve"} {
		d := newDesk(t)
		yes, name := true, "Dora"
		d.must(t, board, "company.update", SaveCompany{RequireHireApproval: &yes}, nil)
		refusal := refused(t, d.do(board, "agent.create", SaveAgent{ID: d.id(), Name: &name}, nil))
		if refusal.Code != ledger.Conflict {
			t.Errorf("direct creation: %v", refusal)
		}
		var h Hire
		d.must(t, board, "agent.hire", HireAgent{Agent: SaveAgent{ID: d.id(), Name: &name}, Approval: d.id()}, &h)
		if a, _ := AgentOf(d.tx, d.company, h.Agent); a.Status != AgentPendingApproval {
			t.Fatalf("a hire is %s", a.Status)
		}
		wantRefusal(t, d.do(board, "agent.wake", Wake{Agent: h.Agent, Source: WakeOnDemand, TriggerDetail: "manual", Wakeup: d.id(), Run: d.id()}, nil), ledger.Conflict, "Agent is not invokable in its current state")
		wantRefusal(t, d.do(board, "agent_key.create", CreateKey{ID: d.id(), Agent: h.Agent, Name: "k", Hash: strings.Repeat("a", 64)}, nil), ledger.Conflict, "Cannot create keys for pending approval agents")
		wantRefusal(t, d.do(board, "issue.create", CreateIssue{ID: d.id(), Title: "x", Assignee: h.Agent}, nil), ledger.Conflict, "Cannot assign work to pending approval agents")
		wantRefusal(t, d.do(board, "agent.resume", ChangeAgent{Agent: h.Agent}, nil), ledger.Conflict, "Pending approval agents cannot be activated directly")
		if strings.HasPrefix(end, "agent.") {
			d.must(t, board, end, ChangeAgent{Agent: h.Agent}, nil)
		} else {
			d.decide(t, end, h.Approval)
		}
		want := map[string]AgentStatus{"reject": AgentTerminated, "cancel": AgentTerminated, "agent.terminate": AgentTerminated, "approve": AgentIdle}[end]
		if a, _ := AgentOf(d.tx, d.company, h.Agent); a.Status != want {
			t.Errorf("after %s the agent is %q, want %q", end, a.Status, want)
		}
		if a, _ := ApprovalByID(d.tx, h.Approval); a.Status.Open() {
			t.Errorf("after %s the approval is %s", end, a.Status)
		}
		if end == "approve" {
			d.must(t, board, "agent.wake", Wake{Agent: h.Agent, Source: WakeOnDemand, TriggerDetail: "manual", Wakeup: d.id(), Run: d.id()}, nil)
		}
	}
}

func TestOnlyTheBoardOfAnEasyCompanyHiresAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ceo := d.boss(t)
	name := "Dora"
	var h Hire
	d.must(t, board, "agent.hire", HireAgent{Agent: SaveAgent{ID: d.id(), Name: &name}, Approval: d.id()}, &h)
	if a, _ := AgentOf(d.tx, d.company, h.Agent); a.Status != AgentIdle || h.Approval != "" {
		t.Errorf("the board's hire: %+v, %s", h, a.Status)
	}
	yes := true
	d.must(t, ceo, "agent.hire", HireAgent{Agent: SaveAgent{ID: d.id(), Name: &name, Permissions: &Grant{AssignTasks: &yes}}, Approval: d.id()}, &h)
	if a, _ := AgentOf(d.tx, d.company, h.Agent); a.Status != AgentPendingApproval || a.Permissions.AssignTasks || a.Name != "Dora 2" {
		t.Errorf("the CEO's hire: %+v", a)
	}
	no := false
	wes := as{d.hire(t, "Wes", ""), ""}
	d.must(t, board, "agent.permissions", GrantAgent{Agent: wes.agent, Grant: Grant{CreateAgents: &no}}, nil)
	wantRefusal(t, d.do(wes, "agent.hire", HireAgent{Agent: SaveAgent{ID: d.id(), Name: &name}, Approval: d.id()}, nil), ledger.Forbidden, "Missing permission: agents:create")
}

func TestAHardStopAndItsApprovalEndTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		end      func(d *desk, in BudgetIncident) error
		incident string
		approval ApprovalStatus
		paused   bool
	}{
		{"approve", func(d *desk, in BudgetIncident) error {
			return d.do(board, "approval.approve", DecideApproval{Approval: in.Approval}, nil)
		}, "resolved", ApprovalApproved, false},
		{"reject", func(d *desk, in BudgetIncident) error {
			return d.do(board, "approval.reject", DecideApproval{Approval: in.Approval}, nil)
		}, "dismissed", ApprovalRejected, true},
		{"raise", func(d *desk, in BudgetIncident) error {
			return d.do(board, "budget.resolve", ResolveIncident{Incident: in.ID, Action: "raise_budget_and_resume", Amount: new(Cents(5000))}, nil)
		}, "resolved", ApprovalApproved, false},
		{"keep", func(d *desk, in BudgetIncident) error {
			return d.do(board, "budget.resolve", ResolveIncident{Incident: in.ID, Action: "keep_paused"}, nil)
		}, "dismissed", ApprovalRejected, true},
		{"set", func(d *desk, in BudgetIncident) error {
			return d.do(board, "budget.set", SetBudget{Type: ScopeAgent, Scope: in.Scope, Amount: Cents(5000)}, nil)
		}, "resolved", ApprovalApproved, false},
		{"delete", func(d *desk, in BudgetIncident) error {
			return d.do(board, "agent.delete", ChangeAgent{Agent: in.Scope}, nil)
		}, "resolved", ApprovalCancelled, false},
		{"next month", func(d *desk, in BudgetIncident) error {
			d.now = in.End.Std()
			if !BudgetsToSweep(d.tx, d.company, TimeOf(d.now)) {
				return fmt.Errorf("nothing to sweep")
			}
			return d.do(board, "budget.sweep", SweepBudgets{}, nil)
		}, "resolved", ApprovalApproved, false},
	} {
		d := newDesk(t)
		bob := d.hire(t, "Bob", "")
		d.must(t, board, "budget.set", SetBudget{Type: ScopeAgent, Scope: bob, Amount: Cents(1000)}, nil)
		if err := d.cost(board, bob, 1120); err != nil {
			t.Fatal(err)
		}
		open := OpenIncidents(d.tx, d.company, TimeOf(d.now))
		if len(open) != 1 || open[0].Approval == "" {
			t.Fatalf("open incidents %+v", open)
		}
		in := open[0]
		if a, _ := ApprovalByID(d.tx, in.Approval); a.Status != ApprovalPending || a.Type != ApprovalBudget || !strings.Contains(string(a.Payload), `"proposedAmount":2120`) {
			t.Fatalf("the approval is %+v %s", a, a.Payload)
		}
		if _, n := PendingApprovals(d.tx, d.company); n != 1 {
			t.Errorf("%d approvals about budgets are pending", n)
		}
		if err := c.end(d, in); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		after, _ := Incident(d.tx, d.company, in.ID)
		a, _ := ApprovalByID(d.tx, in.Approval)
		if after.Status != c.incident || a.Status != c.approval || ScopePaused(d.tx, d.company, ScopeAgent, bob) != c.paused {
			t.Errorf("after %s: incident %s, approval %s, paused %v", c.name, after.Status, a.Status, ScopePaused(d.tx, d.company, ScopeAgent, bob))
		}
	}
}

func TestAnOverrideBelowWhatWasSpentIsRefusedAndStaysOpen(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	bob := d.hire(t, "Bob", "")
	d.must(t, board, "budget.set", SetBudget{Type: ScopeAgent, Scope: bob, Amount: Cents(1000)}, nil)
	if err := d.cost(board, bob, 1120); err != nil {
		t.Fatal(err)
	}
	in := OpenIncidents(d.tx, d.company, TimeOf(d.now))[0]
	var v Decision
	d.must(t, board, "approval.approve", DecideApproval{Approval: in.Approval, Amount: new(Cents(1100))}, &v)
	if v.Refused == nil || v.Refused.Message != "New budget must exceed current observed spend" || !v.Approval.Status.Open() {
		t.Errorf("decision %+v", v)
	}
	d.must(t, board, "approval.approve", DecideApproval{Approval: in.Approval, Amount: new(Cents(1121))}, &v)
	if limit, _ := AgentBudget(d.tx, d.company, bob, TimeOf(d.now)); v.Refused != nil || limit != Cents(1121) || ScopePaused(d.tx, d.company, ScopeAgent, bob) {
		t.Errorf("decision %+v, limit %d", v, limit.Cents())
	}
}

func TestDeletingACompanyTakesItsApprovalsWithIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.found(t, "Acme")
	task := d.issue(t, CreateIssue{Title: "x"})
	a := d.ask(t, board, ApprovalHire, `{"name":"Carl","adapterConfig":{"env":{"K":"v"}}}`, task.ID)
	d.must(t, board, "approval.comment", CommentApproval{ID: d.id(), Approval: a.ID, Body: "why?"}, nil)
	for range 3 {
		var done Deletion
		if d.must(t, board, "company.delete", ChangeCompany{}, &done); done.Done {
			break
		}
	}
	for k := range d.tx.Writes() {
		if v, ok := d.tx.Get([]byte(k)); ok && (strings.Contains(k, d.company) || strings.Contains(k, a.ID)) && !strings.Contains(k, "~") {
			t.Errorf("%s is left: %s", k, v)
		}
	}
}

// Any sequence of verdicts leaves each approval under exactly one state, with
// exactly one change of its own an entry, and never two agents for one hire.
func TestApprovalsHoldTogetherWhateverHappens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := newDesk(t)
		ceo := d.boss(t)
		yes, name := true, "Dora"
		d.must(t, board, "company.update", SaveCompany{RequireHireApproval: &yes}, nil)
		var ids, hires []string
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch step := rapid.SampledFrom([]string{"ask", "hire", "approve", "reject", "revise", "cancel", "resubmit"}).Draw(rt, "step"); {
			case step == "ask":
				ids = append(ids, d.ask(t, ceo, ApprovalHire, `{"name":"Carl"}`).ID)
			case step == "hire":
				var h Hire
				d.must(t, ceo, "agent.hire", HireAgent{Agent: SaveAgent{ID: d.id(), Name: &name}, Approval: d.id()}, &h)
				ids, hires = append(ids, h.Approval), append(hires, h.Agent)
			case len(ids) == 0:
			default:
				id := rapid.SampledFrom(ids).Draw(rt, "which")
				before, _ := ApprovalByID(d.tx, id)
				var payload any = DecideApproval{Approval: id}
				if step == "resubmit" {
					payload = ResubmitApproval{Approval: id}
				}
				err := d.do(board, "approval."+step, payload, nil)
				after, _ := ApprovalByID(d.tx, id)
				own := 0
				for _, ch := range d.last {
					if ch.EntityID == id && ch.Action != "approval.requester_wakeup_queued" {
						own++
					}
				}
				if err == nil && before.Status != after.Status && own != 1 {
					rt.Fatalf("%s recorded %v", step, actions(d.last))
				}
				if !before.Status.Open() && before.Status != after.Status {
					rt.Fatalf("%s reopened what was %s", step, before.Status)
				}
			}
			states := map[string]int{}
			for _, s := range ApprovalStatuses {
				for _, kind := range ApprovalTypes {
					for ref := range approvalsByState.IDs(d.tx, d.company, Approval{Status: s, Type: kind}.state(), false) {
						if a, _ := ApprovalByID(d.tx, idOfRef(ref)); a.Status != s {
							rt.Fatalf("%s is listed as %s and is %s", a.ID, s, a.Status)
						}
						states[idOfRef(ref)]++
					}
				}
			}
			made := 1 + len(hires) // the CEO, and those of hires
			for _, id := range ids {
				a, _ := ApprovalByID(d.tx, id)
				if states[id] != 1 {
					rt.Fatalf("%s is listed %d times", id, states[id])
				}
				if !slices.Contains(hires, string(a.Agent)) && a.Status == ApprovalApproved {
					made++
				}
				if agent, ok := AgentOf(d.tx, d.company, string(a.Agent)); ok && slices.Contains(hires, agent.ID) {
					want := map[ApprovalStatus]AgentStatus{ApprovalPending: AgentPendingApproval, ApprovalRevision: AgentPendingApproval, ApprovalApproved: AgentIdle, ApprovalRejected: AgentTerminated, ApprovalCancelled: AgentTerminated}[a.Status]
					if agent.Status != want {
						rt.Fatalf("an agent whose hire is %s is %s", a.Status, agent.Status)
					}
				}
			}
			if n := len(AgentsOf(d.tx, d.company, true)); n != made {
				rt.Fatalf("%d agents, want %d", n, made)
			}
		}
	})
}

func FuzzHirePayload(f *testing.F) {
	for _, s := range []string{`{"name":"Carl"}`, `{"name":null}`, `{"name":"x","budgetMonthlyCents":1e3}`, `{"name":"x","adapterConfig":null,"metadata":[]}`, `[]`, `{`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := HireOf(b)
		if err != nil {
			if r := refused(t, err); r.Code != ledger.Invalid {
				t.Errorf("refused with %s", r.Code)
			}
			return
		}
		if p.Name == nil || p.Budget != nil && *p.Budget < 0 {
			t.Errorf("%q gives %+v", b, p)
		}
		_, _ = overrideOf(b)
	})
}

func TestAListOfApprovalsIsBoundedAndGoesOn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const each = MaxApprovalPayload
	big := json.RawMessage(`{"plan":"` + strings.Repeat("x", each-len(`{"plan":""}`)) + `"}`)
	n := MaxApprovalBytes/each + 10
	for range n { // as by command, but without looking for secrets each time
		d.height++
		putApproval(d.tx, Approval{}, Approval{ID: d.id(), Company: d.company, Type: ApprovalRequest, Status: ApprovalPending, Payload: big, Height: d.height})
	}
	first := ApprovalsOf(d.tx, d.company, ApprovalQuery{Limit: MaxApprovalLimit})
	rest := ApprovalsOf(d.tx, d.company, ApprovalQuery{Limit: MaxApprovalLimit, Offset: len(first)})
	if len(first) != MaxApprovalBytes/each || len(rest) != n-len(first) || first[len(first)-1].Height <= rest[0].Height {
		t.Errorf("%d and %d of %d", len(first), len(rest), n)
	}
	if err := d.do(board, "approval.create", CreateApproval{ID: d.id(), Type: ApprovalRequest, Payload: append(slices.Clone(big[:len(big)-2]), `xx"}`...)}, nil); refused(t, err).Code != ledger.TooLarge {
		t.Errorf("a payload above the bound: %v", err)
	}
}
