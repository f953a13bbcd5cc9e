package money_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestMoney(t *testing.T) {
	t.Parallel()
	for m, want := range map[core.Money]int64{0: 0, 499_999: 0, 500_000: 1, core.Cent: 1, 1_499_999: 1, 1_500_000: 2,
		core.Cents(89): 89} {
		if got := m.Cents(); got != want {
			t.Errorf("%d micro-cents are %d cents, want %d", m, got, want)
		}
	}
	if core.MaxMoney.Plus(1) != core.MaxMoney || core.Cents(1<<62) != core.MaxMoney {
		t.Error("sums wrap around")
	}
	for _, tc := range []struct {
		spent, limit int64
		want         string
	}{{820, 1000, "82"}, {820, 500_000, "0.16"}, {1120, 500_000, "0.22"}, {1120, 1000, "112"}, {1120, 100_000, "1.12"},
		{3, 200, "1.5"}, {7, 0, "0"}, {1 << 42, 1 << 41, "200"}} {
		if got, _ := core.Cents(tc.spent).Percent(core.Cents(tc.limit)).MarshalJSON(); string(got) != tc.want {
			t.Errorf("%d of %d is %s %%, want %s", tc.spent, tc.limit, got, tc.want)
		}
	}
	if !core.Cents(800).Reaches(core.Cents(1000), 80) || (core.Cents(800)-1).Reaches(core.Cents(1000), 80) ||
		!core.Money(3).Reaches(3, 99) || core.Money(2).Reaches(3, 99) {
		t.Error("the threshold is not exact")
	}
}

func TestReportCost(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	i := d.Issue(t, company.CreateIssue{Project: d.Project("Arm")})
	var e money.CostEvent
	d.Must(t, companytest.As{Agent: ada, Run: ""}, "cost.report",
		money.ReportCost{Event: money.CostEvent{ID: d.ID(), Agent: ada, Issue: core.NullText(i.ID), Provider: "openai",
			Model: "gpt-5", InputTokens: 1234, OutputTokens: 567, Cost: core.Cents(89), OccurredAt: 5}}, &e)
	if e.Biller != "openai" || e.BillingType != "unknown" || e.CostStatus != "reported" ||
		string(e.Project) != i.Project || e.CreatedAt != core.TimeOf(d.Now) {
		t.Errorf("got %+v", e)
	}
	companytest.WantRefusal(t, d.Cost(companytest.As{Agent: ada, Run: ""}, bob, 1), ledger.Forbidden,
		"Agent can only report its own costs")
	companytest.WantRefusal(t, d.Cost(companytest.Board, companytest.UID(3), 1), ledger.NotFound, "Agent not found")
	entity.AgentTable.Put(d.Tx, ledger.CompanyID(companytest.UID(4)), companytest.UID(5),
		entity.Agent{ID: companytest.UID(5), Company: ledger.CompanyID(companytest.UID(4))})
	companytest.WantRefusal(t, d.Cost(companytest.Board, companytest.UID(5), 1), ledger.Unprocessable,
		"Agent does not belong to company")
	for what, e := range map[string]money.CostEvent{"Issue": {Issue: core.NullText(companytest.UID(3))},
		"Project": {Project: core.NullText(companytest.UID(3))}, "Goal": {Goal: core.NullText(companytest.UID(3))},
		"Heartbeat run": {Run: core.NullText(companytest.UID(3))}} {
		e.ID, e.Agent, e.Provider, e.Model = d.ID(), ada, "p", "m"
		companytest.WantRefusal(t, d.Do(companytest.Board, "cost.report", money.ReportCost{Event: e}, nil), ledger.NotFound,
			what+" not found")
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "cost.report", money.ReportCost{Event: e}, nil), ledger.Conflict,
		"Cost event ID is taken")
	e.ID, e.Cost = d.ID(), -1
	companytest.WantRefusal(t, d.Do(companytest.Board, "cost.report", money.ReportCost{Event: e}, nil), ledger.Invalid,
		"Cost event is out of range")
	e.ID, e.Cost, e.OccurredAt = d.ID(), 1, core.TimeOf(d.Now)+2*money.MsPerDay
	companytest.WantRefusal(t, d.Do(companytest.Board, "cost.report", money.ReportCost{Event: e}, nil),
		ledger.Unprocessable, "occurredAt is more than a day ahead; give the time at which the cost arose")
	sums := money.CostsOfIssue(d.Tx, d.Company, i.ID, money.Span{})
	if sums.Cost != core.Cents(89) || sums.Input != 1234 || sums.Issues != 1 {
		t.Errorf("of the issue: %+v", sums)
	}
}

func TestSubIssuesCostTogether(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	top := d.Issue(t, company.CreateIssue{})
	child := d.Issue(t, company.CreateIssue{Parent: top.ID})
	at := core.TimeOf(d.Now) - 2*money.MsPerDay
	for n, i := range []entity.Issue{top, child, child} {
		e := money.CostEvent{ID: d.ID(), Agent: ada, Issue: core.NullText(i.ID), Provider: "p", Model: "m",
			Cost: core.Cents(10), OccurredAt: at + core.Time(n)*money.MsPerDay}
		d.Must(t, companytest.Board, "cost.report", money.ReportCost{Event: e}, nil)
	}
	for _, tc := range []struct {
		issue string
		span  money.Span
		want  int64
	}{{top.ID, money.Span{}, 30}, {child.ID, money.Span{}, 20}, {top.ID, money.Span{From: at, To: at + 1}, 10},
		{top.ID, money.Span{From: at + 1, To: at + money.MsPerDay + 1}, 10}, {top.ID, money.Span{From: at + 1, To: 0}, 20}} {
		if got := money.CostsOfIssue(d.Tx, d.Company, tc.issue, tc.span); got.Cost != core.Cents(tc.want) {
			t.Errorf("%v: got %d cents, want %d", tc.span, got.Cost.Cents(), tc.want)
		}
	}
}

func TestRunsAreCountedOnce(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	run := d.Run(ada)
	for _, model := range []string{"a", "b", "a"} {
		for range 2 {
			e := money.CostEvent{ID: d.ID(), Agent: ada, Run: core.NullText(run), Provider: "p", Model: model,
				BillingType: "metered_api", Cost: core.Cents(1), OccurredAt: core.TimeOf(d.Now)}
			d.Must(t, companytest.Board, "cost.report", money.ReportCost{Event: e}, nil)
		}
	}
	if by := money.CostsBy(d.Tx, d.Company, money.ByAgent, money.Span{}); len(by) != 1 || by[0].APIRuns != 1 ||
		by[0].Cost != core.Cents(6) {
		t.Errorf("by agent: %+v", by)
	}
	by := money.CostsBy(d.Tx, d.Company, money.ByProvider, money.Span{})
	if len(by) != 2 || by[0].Model != "a" || by[0].APIRuns != 1 || by[1].APIRuns != 1 {
		t.Errorf("by provider: %+v", by)
	}
	if by := money.CostsBy(d.Tx, d.Company, money.ByBiller, money.Span{}); by[0].Models != 2 || by[0].Providers != 1 {
		t.Errorf("by biller: %+v", by)
	}
}

func TestBudgetWarnsAndStops(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	bob := d.Agent("Bob")
	who := companytest.As{Agent: bob, Run: d.Run(bob)}
	i := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo})
	d.Must(t, companytest.Board, "budget.set", money.SetBudget{Type: entity.ScopeAgent, Scope: bob,
		Amount: core.Cents(1000)}, nil)
	d.Must(t, who, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: bob,
		Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)
	report := func(cents int64) []string {
		t.Helper()
		if err := d.Cost(companytest.Board, bob, cents); err != nil {
			t.Fatal(err)
		}
		var actions []string
		for _, ch := range d.Last {
			if ch.EntityType == "budget_incident" {
				actions = append(actions, ch.Action)
			}
		}
		return actions
	}
	if got := report(799); got != nil {
		t.Errorf("79.9 %%: %v", got)
	}
	if got := report(1); !slices.Equal(got, []string{"budget.soft_threshold_crossed"}) {
		t.Errorf("80 %%: %v", got)
	}
	if got := report(199); got != nil {
		t.Errorf("99.9 %%: %v", got)
	}
	if got := report(121); !slices.Equal(got, []string{"budget.hard_threshold_crossed"}) {
		t.Errorf("112 %%: %v", got)
	}
	a, _ := entity.AgentTable.Get(d.Tx, d.Company, bob)
	if a.Status != entity.AgentPaused || a.PauseReason != "budget" || a.PausedAt != core.TimeOf(d.Now) {
		t.Errorf("the agent is %s, %q", a.Status, a.PauseReason)
	}
	if r, _ := entity.RunOf(d.Tx, d.Company, who.Run); r.Status != entity.RunCancelled {
		t.Errorf("its run is %s", r.Status)
	}
	if d.Load(i.ID).Held() {
		t.Error("its lock is left")
	}
	m := companytest.Detail(t, companytest.WantRefusal(t, d.Do(companytest.Board, "issue.checkout",
		company.CheckOutIssue{Issue: i.ID, Agent: bob}, nil), ledger.Conflict,
		"Agent is paused because its budget hard-stop was reached."))
	if m["scopeType"] != "agent" || m["scopeId"] != bob {
		t.Errorf("details %v", m)
	}
	open := money.OpenIncidents(d.Tx, d.Company, core.TimeOf(d.Now))
	if len(open) != 1 || open[0].Threshold != "hard" || open[0].Observed != core.Cents(1120) ||
		open[0].Limit != core.Cents(1000) {
		t.Fatalf("open incidents: %+v", open)
	}
	raise := money.ResolveIncident{Incident: open[0].ID, Action: "raise_budget_and_resume", Amount: new(core.Cents(1120))}
	companytest.WantRefusal(t, d.Do(companytest.Board, "budget.resolve", raise, nil), ledger.Unprocessable,
		"New budget must exceed current observed spend")
	companytest.WantRefusal(t, d.Do(who, "budget.resolve", raise, nil), ledger.Forbidden, "Board access required")
	raise.Amount = new(core.Cents(5000))
	var in money.BudgetIncident
	d.Must(t, companytest.Board, "budget.resolve", raise, &in)
	if in.Status != "resolved" || in.ResolvedAt == 0 {
		t.Errorf("incident: %+v", in)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "budget.resolve", raise, nil), ledger.Conflict,
		"Budget incident is already resolved")
	if a, _ = entity.AgentTable.Get(d.Tx, d.Company, bob); a.Status != entity.AgentIdle || a.PauseReason != "" {
		t.Errorf("after the raise the agent is %s, %q", a.Status, a.PauseReason)
	}
	d.Must(t, companytest.Board, "budget.set", money.SetBudget{Type: entity.ScopeAgent, Scope: bob,
		Amount: core.Cents(100)}, nil)
	if a, _ = entity.AgentTable.Get(d.Tx, d.Company, bob); a.Status != entity.AgentPaused {
		t.Errorf("with a lowered limit the agent is %s", a.Status)
	}
	d.Now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	if !money.BudgetsToSweep(d.Tx, d.Company, core.TimeOf(d.Now)) {
		t.Error("a new month leaves nothing to sweep")
	}
	d.Must(t, companytest.Board, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: bob}, nil)
	if a, _ = entity.AgentTable.Get(d.Tx, d.Company, bob); a.Status != entity.AgentIdle {
		t.Errorf("in a new month the agent is %s", a.Status)
	}
}

func TestBudgetsOfCompanyAndProject(t *testing.T) {
	t.Parallel()
	for _, scope := range []entity.ScopeType{entity.ScopeCompany, entity.ScopeProject} {
		d := companytest.NewDesk(t)
		ada, project := d.Agent("Ada"), d.Project("Arm")
		id := map[entity.ScopeType]string{entity.ScopeCompany: string(d.Company), entity.ScopeProject: project}[scope]
		who := companytest.As{Agent: ada, Run: d.Run(ada)}
		i := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Project: project})
		d.Must(t, who, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: ada,
			Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)
		d.Must(t, companytest.Board, "budget.set", money.SetBudget{Type: scope, Scope: id, Window: money.WindowLifetime,
			Amount: core.Cents(10)}, nil)
		e := money.CostEvent{ID: d.ID(), Agent: ada, Issue: core.NullText(i.ID), Provider: "p", Model: "m",
			Cost: core.Cents(10)}
		d.Must(t, companytest.Board, "cost.report", money.ReportCost{Event: e}, nil)
		if !entity.ScopePaused(d.Tx, d.Company, scope, id) {
			t.Errorf("%s is not paused", scope)
		}
		if r, _ := entity.RunOf(d.Tx, d.Company, who.Run); r.Status != entity.RunCancelled {
			t.Errorf("%s: the run is %s", scope, r.Status)
		}
		r := companytest.Refused(t, d.Do(companytest.Board, "issue.checkout", company.CheckOutIssue{Issue: i.ID,
			Agent: ada}, nil))
		if r.Code != ledger.Conflict || companytest.Detail(t, r)["scopeType"] != string(scope) {
			t.Errorf("%s: checkout answers %s %q", scope, r.Code, r.Message)
		}
		d.Must(t, companytest.Board, "budget.set", money.SetBudget{Type: scope, Scope: id, Window: money.WindowLifetime,
			Amount: 0}, nil)
		d.Must(t, companytest.Board, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: ada}, nil)
	}
}

// An agent that may work begins no run about an issue whose project its budget has
// stopped: who wakes it is refused or its wake is skipped, what waits is cancelled when
// it would start, and nobody takes the issue for stranded. When the limit is raised, or
// its window has passed, it begins.
func TestNoRunBeginsInAStoppedProject(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"a raise", "a month"} {
		d := companytest.NewDesk(t)
		ada, project := d.Hired("Ada"), d.Project("Arm")
		waits := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Project: project, Assignee: ada})
		first := entity.LiveRunsOnIssue(d.Tx, d.Load(waits.ID))[0].ID
		set := money.SetBudget{Type: entity.ScopeProject, Scope: project, Window: money.WindowMonth, Amount: core.Cents(10)}
		d.Must(t, companytest.Board, "budget.set", set, nil)
		d.Must(t, companytest.Board, "cost.report", money.ReportCost{Event: money.CostEvent{ID: d.ID(), Agent: ada,
			Project: core.NullText(project), Provider: "p", Model: "m", Cost: core.Cents(10)}}, nil)
		placed, _ := entity.RunOf(d.Tx, d.Company, first)
		placed.Node, placed.Session = "n1", 1
		d.StoreRun(placed)
		if err := d.ByNode("n1", "run.start", company.Start{Run: first}); err != nil {
			t.Fatal(err)
		}
		if r, _ := entity.RunOf(d.Tx, d.Company, first); r.Status != entity.RunCancelled {
			t.Errorf("what waited when the project was stopped is %s", r.Status)
		}
		later := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Project: project, Assignee: ada})
		if n := len(entity.LiveRunsOnIssue(d.Tx, d.Load(later.ID))); n != 0 {
			t.Errorf("%d runs wait for an issue of the project", n)
		}
		manual := func() error {
			return d.Do(companytest.Board, "agent.wake", entity.Wake{Agent: ada, Source: entity.WakeOnDemand,
				TriggerDetail: "manual", Issue: later.ID, Wakeup: d.ID(), Run: d.ID()}, nil)
		}
		companytest.WantRefusal(t, manual(), ledger.Conflict, "Project is paused because its budget hard-stop was reached.")
		if path := company.PathOf(d.Tx, d.Load(later.ID), core.TimeOf(d.Now)); path != "paused" {
			t.Errorf("what brings the issue on is %q", path)
		}
		elsewhere := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Assignee: ada})
		if n := len(entity.LiveRunsOnIssue(d.Tx, d.Load(elsewhere.ID))); n != 1 {
			t.Errorf("%d runs wait for an issue of no project", n)
		}
		if next == "a month" {
			d.Now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
		} else {
			set.Amount = core.Cents(100)
			d.Must(t, companytest.Board, "budget.set", set, nil)
		}
		if err := manual(); err != nil || entity.ScopePaused(d.Tx, d.Company, entity.ScopeProject, project) {
			t.Errorf("after %s: %v", next, err)
		}
	}
}

func TestWindows(t *testing.T) {
	t.Parallel()
	at := func(s string) core.Time { v, _ := time.Parse(time.RFC3339, s); return core.TimeOf(v) }
	now := at("2026-11-21T03:06:12Z") // a Saturday
	for kind, want := range map[money.WindowKind]money.Span{
		money.WindowMonth:    {From: at("2026-11-01T00:00:00Z"), To: at("2026-12-01T00:00:00Z")},
		money.WindowWeek:     {From: at("2026-11-16T00:00:00Z"), To: at("2026-11-23T00:00:00Z")},
		money.WindowDay:      {From: at("2026-11-21T00:00:00Z"), To: at("2026-11-22T00:00:00Z")},
		money.WindowLifetime: {From: 0, To: at("9999-01-01T00:00:00Z")},
	} {
		if got := kind.Window(now); got != want {
			t.Errorf("%s: got %v to %v", kind, got.From, got.To)
		}
	}
}

// TestCostProperties reports random costs at random times under random budgets,
// and compares what is kept with the plain sum of the events: each report over
// random spans, each window, and that no scope goes on beyond its limit.
func TestCostProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := companytest.NewDesk(t)
		all := []string{d.Agent("Ada"), d.Agent("Bob"), d.Agent("Cy")}
		areas := []string{"", d.Project("Arm"), d.Project("Leg")}
		var events []money.CostEvent
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			d.Now = d.Now.Add(time.Duration(rapid.IntRange(0, 200).Draw(rt, "hours")) * time.Hour)
			if rapid.IntRange(0, 3).Draw(rt, "what") == 0 {
				p := money.SetBudget{Type: rapid.SampledFrom([]entity.ScopeType{entity.ScopeAgent, entity.ScopeProject,
					entity.ScopeCompany}).Draw(rt, "type"),
					Window: rapid.SampledFrom(money.WindowKinds).Draw(rt, "window"),
					Amount: core.Cents(rapid.Int64Range(0, 300).Draw(rt, "limit"))}
				p.Scope = map[entity.ScopeType]string{entity.ScopeCompany: string(d.Company),
					entity.ScopeAgent: rapid.SampledFrom(all).Draw(rt, "agent"), entity.ScopeProject: rapid.SampledFrom(areas[1:]).
								Draw(rt, "project")}[p.Type]
				d.Must(t, companytest.Board, "budget.set", p, nil)
			} else {
				e := money.CostEvent{ID: d.ID(), Agent: rapid.SampledFrom(all).Draw(rt, "agent"),
					Project:     core.NullText(rapid.SampledFrom(areas).Draw(rt, "project")),
					Provider:    rapid.SampledFrom([]string{"openai", "a/b"}).Draw(rt, "provider"),
					Model:       rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "model"),
					BillingCode: core.NullText(rapid.SampledFrom([]string{"", "R&D", "ops"}).Draw(rt, "code")),
					Cost:        core.Money(rapid.Int64Range(0, int64(core.Cents(100))).Draw(rt, "cost")),
					InputTokens: rapid.Int64Range(0, 1000).Draw(rt, "tokens"),
					OccurredAt:  core.TimeOf(d.Now) - core.Time(rapid.Int64Range(0, int64(90*money.MsPerDay)).Draw(rt, "ago"))}
				d.Must(t, companytest.Board, "cost.report", money.ReportCost{Event: e}, &e)
				events = append(events, e)
			}
			checkNoScopeGoesOn(rt, d)
		}
		checkWindows(rt, d, events)
		for range 3 {
			from := core.TimeOf(d.Now) - core.Time(rapid.Int64Range(0, int64(200*money.MsPerDay)).Draw(rt, "from"))
			span := money.Span{From: from, To: from + core.Time(rapid.Int64Range(0, int64(200*money.MsPerDay)).Draw(rt, "long"))}
			checkReports(rt, d, events, span)
		}
		checkReports(rt, d, events, money.Span{})
	})
}

func checkNoScopeGoesOn(rt *rapid.T, d *companytest.Desk) {
	for _, b := range money.Budgets(d.Tx, d.Company, core.TimeOf(d.Now)) {
		if p, over := b.Exceeded(); over && !entity.ScopePaused(d.Tx, d.Company, b.Type, b.ID) {
			rt.Fatalf("%s %s spent %d of %d and goes on", b.Type, b.ID, b.Spent(p.Window), p.Amount)
		}
	}
}

func checkWindows(rt *rapid.T, d *companytest.Desk, events []money.CostEvent) {
	now := core.TimeOf(d.Now)
	want := map[string]core.Money{}
	for _, e := range events {
		for _, s := range e.ScopesOf() {
			for _, w := range money.WindowKinds {
				if w.Rolling() {
					continue // see TestRollingWindows
				}
				if span := w.Window(now); e.CreatedAt >= span.From && e.CreatedAt < span.To {
					want[fmt.Sprint(s.Type, s.ID, w)] += e.Cost
				}
			}
		}
	}
	for _, e := range events {
		for _, s := range e.ScopesOf() {
			b := money.BudgetOf(d.Tx, d.Company, s.Type, s.ID, now)
			for _, w := range money.WindowKinds {
				if w.Rolling() {
					continue
				}
				if got := b.Spent(w); got != want[fmt.Sprint(s.Type, s.ID, w)] {
					rt.Fatalf("%s %s in %s: got %d, want %d", s.Type, s.ID, w, got, want[fmt.Sprint(s.Type, s.ID, w)])
				}
			}
		}
	}
}

func checkReports(rt *rapid.T, d *companytest.Desk, events []money.CostEvent, span money.Span) {
	for by := money.ByAgent; by <= money.ByBillingCode; by++ {
		want := map[money.CostCell]money.Total{}
		for _, e := range events {
			if e.OccurredAt < span.From || e.OccurredAt >= span.End() || by == money.ByProject && e.Project == "" ||
				by == money.ByBillingCode && e.BillingCode == "" {
				continue
			}
			key := by.Key(e.Cell())
			want[key] = want[key].Plus(e.Total())
		}
		got := money.CostsBy(d.Tx, d.Company, by, span)
		if len(got) != len(want) {
			rt.Fatalf("report %d over %v has %d lines, want %d", by, span, len(got), len(want))
		}
		for _, line := range got {
			key := money.CostCell{Agent: line.Agent, Project: line.Project, Provider: line.Provider, Biller: line.Biller,
				BillingType: line.BillingType, Model: line.Model, BillingCode: line.BillingCode}
			if line.Total != want[key] {
				rt.Fatalf("report %d over %v, %+v: got %+v, want %+v", by, span, key, line.Total, want[key])
			}
		}
	}
}

// TestReplayIsDeterministic carries out the same commands twice and compares
// every byte of the state.
func TestReplayIsDeterministic(t *testing.T) {
	t.Parallel()
	play := func() map[string]string {
		d := companytest.NewDesk(t)
		ada, bob, area := d.Agent("Ada"), d.Agent("Bob"), d.Project("Arm")
		d.Must(t, companytest.Board, "budget.set", money.SetBudget{Type: entity.ScopeAgent, Scope: ada,
			Amount: core.Cents(50)}, nil)
		d.Must(t, companytest.Board, "label.create", company.CreateLabel{ID: d.ID(), Name: "bug", Color: "#ff0000"}, nil)
		for n := range 30 {
			who := companytest.As{Agent: []string{ada, bob}[n%2], Run: d.Run([]string{ada, bob}[n%2])}
			i := d.Issue(t, company.CreateIssue{Project: area, Status: entity.IssueTodo})
			if d.Do(who, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: who.Agent,
				Expected: []entity.IssueStatus{entity.IssueTodo}}, nil) == nil {
				d.Must(t, who, "comment.create", entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: "done"}, nil)
				d.Must(t, who, "cost.report", money.ReportCost{Event: money.CostEvent{ID: d.ID(), Agent: who.Agent,
					Issue: core.NullText(i.ID), Provider: "p", Model: "m", Cost: core.Cents(4), OccurredAt: core.TimeOf(d.Now)}}, nil)
				_ = d.Do(who, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueDone}, nil)
			}
		}
		state := map[string]string{}
		for k, v := range d.Tx.Writes() {
			state[k] = string(v)
		}
		return state
	}
	a, b := play(), play()
	if len(a) != len(b) {
		t.Fatalf("%d and %d keys", len(a), len(b))
	}
	for k, v := range a {
		if b[k] != v {
			t.Errorf("%q differs", k)
		}
	}
}

func BenchmarkReportCost(b *testing.B) {
	d := companytest.NewDesk(b)
	ada := d.Agent("Ada")
	i := d.Issue(b, company.CreateIssue{})
	d.Must(b, companytest.Board, "budget.set", money.SetBudget{Type: entity.ScopeAgent, Scope: ada,
		Amount: core.Cents(1 << 30)}, nil)
	like := *d.Context(companytest.Board, "cost.report", money.ReportCost{Event: money.CostEvent{ID: d.ID(), Agent: ada,
		Issue: core.NullText(i.ID), Provider: "openai", Model: "gpt-5", Cost: core.Cents(1), OccurredAt: core.TimeOf(d.Now)}})
	b.ReportAllocs()
	for b.Loop() {
		c := like
		c.Tx = d.Tx.Child()
		if _, err := d.Mux["cost.report"](&c); err != nil {
			b.Fatal(err)
		}
	}
}
