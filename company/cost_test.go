package company

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/selvage-mesh/selvage/ledger"
)

func (d *desk) project(name string) string {
	id := d.id()
	projects.Put(d.tx, d.company, id, Project{ID: id, Company: d.company, Name: name, Status: "backlog"})
	return id
}

func (d *desk) cost(who as, agent string, cents int64) error {
	return d.do(who, "cost.report", ReportCost{CostEvent{ID: d.id(), Agent: agent, Provider: "openai", Model: "gpt-5", Cost: Cents(cents), OccurredAt: TimeOf(d.now)}}, nil)
}

func TestMoney(t *testing.T) {
	t.Parallel()
	for m, want := range map[Money]int64{0: 0, 499_999: 0, 500_000: 1, Cent: 1, 1_499_999: 1, 1_500_000: 2, Cents(89): 89} {
		if got := m.Cents(); got != want {
			t.Errorf("%d micro-cents are %d cents, want %d", m, got, want)
		}
	}
	if MaxMoney.Plus(1) != MaxMoney || Cents(1<<62) != MaxMoney {
		t.Error("sums wrap around")
	}
	for _, tc := range []struct {
		spent, limit int64
		want         string
	}{{820, 1000, "82"}, {820, 500_000, "0.16"}, {1120, 500_000, "0.22"}, {1120, 1000, "112"}, {1120, 100_000, "1.12"}, {3, 200, "1.5"}, {7, 0, "0"}, {1 << 42, 1 << 41, "200"}} {
		if got, _ := Cents(tc.spent).Percent(Cents(tc.limit)).MarshalJSON(); string(got) != tc.want {
			t.Errorf("%d of %d is %s %%, want %s", tc.spent, tc.limit, got, tc.want)
		}
	}
	if !Cents(800).Reaches(Cents(1000), 80) || (Cents(800)-1).Reaches(Cents(1000), 80) || !Money(3).Reaches(3, 99) || Money(2).Reaches(3, 99) {
		t.Error("the threshold is not exact")
	}
}

func TestReportCost(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, bob := d.agent("Ada"), d.agent("Bob")
	i := d.issue(t, CreateIssue{Project: d.project("Arm")})
	var e CostEvent
	d.must(t, as{ada, ""}, "cost.report", ReportCost{CostEvent{ID: d.id(), Agent: ada, Issue: NullText(i.ID), Provider: "openai", Model: "gpt-5", InputTokens: 1234, OutputTokens: 567, Cost: Cents(89), OccurredAt: 5}}, &e)
	if e.Biller != "openai" || e.BillingType != "unknown" || e.CostStatus != "reported" || string(e.Project) != i.Project || e.CreatedAt != TimeOf(d.now) {
		t.Errorf("got %+v", e)
	}
	wantRefusal(t, d.cost(as{ada, ""}, bob, 1), ledger.Forbidden, "Agent can only report its own costs")
	wantRefusal(t, d.cost(board, uid(3), 1), ledger.NotFound, "Agent not found")
	agents.Put(d.tx, uid(4), uid(5), Agent{ID: uid(5), Company: uid(4)})
	wantRefusal(t, d.cost(board, uid(5), 1), ledger.Unprocessable, "Agent does not belong to company")
	for what, e := range map[string]CostEvent{"Issue": {Issue: NullText(uid(3))}, "Project": {Project: NullText(uid(3))}, "Goal": {Goal: NullText(uid(3))}, "Heartbeat run": {Run: NullText(uid(3))}} {
		e.ID, e.Agent, e.Provider, e.Model = d.id(), ada, "p", "m"
		wantRefusal(t, d.do(board, "cost.report", ReportCost{e}, nil), ledger.NotFound, what+" not found")
	}
	wantRefusal(t, d.do(board, "cost.report", ReportCost{e}, nil), ledger.Conflict, "Cost event ID is taken")
	e.ID, e.Cost = d.id(), -1
	wantRefusal(t, d.do(board, "cost.report", ReportCost{e}, nil), ledger.Invalid, "")
	e.ID, e.Cost, e.OccurredAt = d.id(), 1, TimeOf(d.now)+2*msPerDay
	wantRefusal(t, d.do(board, "cost.report", ReportCost{e}, nil), ledger.Unprocessable, "occurredAt is more than a day ahead; give the time at which the cost arose")
	sums := CostsOfIssue(d.tx, d.company, i.ID, Span{})
	if sums.Cost != Cents(89) || sums.Input != 1234 || sums.Issues != 1 {
		t.Errorf("of the issue: %+v", sums)
	}
}

func TestSubIssuesCostTogether(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	top := d.issue(t, CreateIssue{})
	child := d.issue(t, CreateIssue{Parent: top.ID})
	at := TimeOf(d.now) - 2*msPerDay
	for n, i := range []Issue{top, child, child} {
		e := CostEvent{ID: d.id(), Agent: ada, Issue: NullText(i.ID), Provider: "p", Model: "m", Cost: Cents(10), OccurredAt: at + Time(n)*msPerDay}
		d.must(t, board, "cost.report", ReportCost{e}, nil)
	}
	for _, tc := range []struct {
		issue string
		span  Span
		want  int64
	}{{top.ID, Span{}, 30}, {child.ID, Span{}, 20}, {top.ID, Span{at, at + 1}, 10}, {top.ID, Span{at + 1, at + msPerDay + 1}, 10}, {top.ID, Span{at + 1, 0}, 20}} {
		if got := CostsOfIssue(d.tx, d.company, tc.issue, tc.span); got.Cost != Cents(tc.want) {
			t.Errorf("%v: got %d cents, want %d", tc.span, got.Cost.Cents(), tc.want)
		}
	}
}

func TestRunsAreCountedOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	run := d.run(ada)
	for _, model := range []string{"a", "b", "a"} {
		for range 2 {
			e := CostEvent{ID: d.id(), Agent: ada, Run: NullText(run), Provider: "p", Model: model, BillingType: "metered_api", Cost: Cents(1), OccurredAt: TimeOf(d.now)}
			d.must(t, board, "cost.report", ReportCost{e}, nil)
		}
	}
	if by := CostsBy(d.tx, d.company, ByAgent, Span{}); len(by) != 1 || by[0].APIRuns != 1 || by[0].Cost != Cents(6) {
		t.Errorf("by agent: %+v", by)
	}
	by := CostsBy(d.tx, d.company, ByProvider, Span{})
	if len(by) != 2 || by[0].Model != "a" || by[0].APIRuns != 1 || by[1].APIRuns != 1 {
		t.Errorf("by provider: %+v", by)
	}
	if by := CostsBy(d.tx, d.company, ByBiller, Span{}); by[0].Models != 2 || by[0].Providers != 1 {
		t.Errorf("by biller: %+v", by)
	}
}

func TestBudgetWarnsAndStops(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	bob := d.agent("Bob")
	who := as{bob, d.run(bob)}
	i := d.issue(t, CreateIssue{Status: IssueTodo})
	d.must(t, board, "budget.set", SetBudget{Type: ScopeAgent, Scope: bob, Amount: Cents(1000)}, nil)
	d.must(t, who, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: bob, Expected: []IssueStatus{IssueTodo}}, nil)
	report := func(cents int64) []string {
		t.Helper()
		if err := d.cost(board, bob, cents); err != nil {
			t.Fatal(err)
		}
		var actions []string
		for _, ch := range d.last {
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
	a, _ := agents.Get(d.tx, d.company, bob)
	if a.Status != AgentPaused || a.PauseReason != "budget" || a.PausedAt != TimeOf(d.now) {
		t.Errorf("the agent is %s, %q", a.Status, a.PauseReason)
	}
	if r, _ := RunOf(d.tx, d.company, who.run); r.Status != RunCancelled {
		t.Errorf("its run is %s", r.Status)
	}
	if d.load(i.ID).Held() {
		t.Error("its lock is left")
	}
	m := detail(t, wantRefusal(t, d.do(board, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: bob}, nil), ledger.Conflict, "Agent is paused because its budget hard-stop was reached."))
	if m["scopeType"] != "agent" || m["scopeId"] != bob {
		t.Errorf("details %v", m)
	}
	open := OpenIncidents(d.tx, d.company, TimeOf(d.now))
	if len(open) != 1 || open[0].Threshold != "hard" || open[0].Observed != Cents(1120) || open[0].Limit != Cents(1000) {
		t.Fatalf("open incidents: %+v", open)
	}
	raise := ResolveIncident{Incident: open[0].ID, Action: "raise_budget_and_resume", Amount: new(Cents(1120))}
	wantRefusal(t, d.do(board, "budget.resolve", raise, nil), ledger.Unprocessable, "New budget must exceed current observed spend")
	wantRefusal(t, d.do(who, "budget.resolve", raise, nil), ledger.Forbidden, "Board access required")
	raise.Amount = new(Cents(5000))
	var in BudgetIncident
	d.must(t, board, "budget.resolve", raise, &in)
	if in.Status != "resolved" || in.ResolvedAt == 0 {
		t.Errorf("incident: %+v", in)
	}
	wantRefusal(t, d.do(board, "budget.resolve", raise, nil), ledger.Conflict, "")
	if a, _ = agents.Get(d.tx, d.company, bob); a.Status != AgentIdle || a.PauseReason != "" {
		t.Errorf("after the raise the agent is %s, %q", a.Status, a.PauseReason)
	}
	d.must(t, board, "budget.set", SetBudget{Type: ScopeAgent, Scope: bob, Amount: Cents(100)}, nil)
	if a, _ = agents.Get(d.tx, d.company, bob); a.Status != AgentPaused {
		t.Errorf("with a lowered limit the agent is %s", a.Status)
	}
	d.now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	if !BudgetsToSweep(d.tx, d.company, TimeOf(d.now)) {
		t.Error("a new month leaves nothing to sweep")
	}
	d.must(t, board, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: bob}, nil)
	if a, _ = agents.Get(d.tx, d.company, bob); a.Status != AgentIdle {
		t.Errorf("in a new month the agent is %s", a.Status)
	}
}

func TestBudgetsOfCompanyAndProject(t *testing.T) {
	t.Parallel()
	for _, scope := range []ScopeType{ScopeCompany, ScopeProject} {
		d := newDesk(t)
		ada, project := d.agent("Ada"), d.project("Arm")
		id := map[ScopeType]string{ScopeCompany: d.company, ScopeProject: project}[scope]
		who := as{ada, d.run(ada)}
		i := d.issue(t, CreateIssue{Status: IssueTodo, Project: project})
		d.must(t, who, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: ada, Expected: []IssueStatus{IssueTodo}}, nil)
		d.must(t, board, "budget.set", SetBudget{Type: scope, Scope: id, Window: WindowLifetime, Amount: Cents(10)}, nil)
		e := CostEvent{ID: d.id(), Agent: ada, Issue: NullText(i.ID), Provider: "p", Model: "m", Cost: Cents(10)}
		d.must(t, board, "cost.report", ReportCost{e}, nil)
		if !ScopePaused(d.tx, d.company, scope, id) {
			t.Errorf("%s is not paused", scope)
		}
		if r, _ := RunOf(d.tx, d.company, who.run); r.Status != RunCancelled {
			t.Errorf("%s: the run is %s", scope, r.Status)
		}
		r := refused(t, d.do(board, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: ada}, nil))
		if r.Code != ledger.Conflict || detail(t, r)["scopeType"] != string(scope) {
			t.Errorf("%s: checkout answers %s %q", scope, r.Code, r.Message)
		}
		d.must(t, board, "budget.set", SetBudget{Type: scope, Scope: id, Window: WindowLifetime, Amount: 0}, nil)
		d.must(t, board, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: ada}, nil)
	}
}

// An agent that may work begins no run about an issue whose project its budget has
// stopped: who wakes it is refused or its wake is skipped, what waits is cancelled when
// it would start, and nobody takes the issue for stranded. When the limit is raised, or
// its window has passed, it begins.
func TestNoRunBeginsInAStoppedProject(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"a raise", "a month"} {
		d := newDesk(t)
		ada, project := d.hired("Ada"), d.project("Arm")
		waits := d.issue(t, CreateIssue{Status: IssueTodo, Project: project, Assignee: ada})
		first := LiveRunsOnIssue(d.tx, d.load(waits.ID))[0].ID
		set := SetBudget{Type: ScopeProject, Scope: project, Window: WindowMonth, Amount: Cents(10)}
		d.must(t, board, "budget.set", set, nil)
		d.must(t, board, "cost.report", ReportCost{CostEvent{ID: d.id(), Agent: ada, Project: NullText(project), Provider: "p", Model: "m", Cost: Cents(10)}}, nil)
		placed, _ := RunOf(d.tx, d.company, first)
		placed.Node, placed.Session = "n1", 1
		d.storeRun(placed)
		if err := d.byNode("n1", "run.start", Start{Run: first}); err != nil {
			t.Fatal(err)
		}
		if r, _ := RunOf(d.tx, d.company, first); r.Status != RunCancelled {
			t.Errorf("what waited when the project was stopped is %s", r.Status)
		}
		later := d.issue(t, CreateIssue{Status: IssueTodo, Project: project, Assignee: ada})
		if n := len(LiveRunsOnIssue(d.tx, d.load(later.ID))); n != 0 {
			t.Errorf("%d runs wait for an issue of the project", n)
		}
		manual := func() error {
			return d.do(board, "agent.wake", Wake{Agent: ada, Source: WakeOnDemand, TriggerDetail: "manual", Issue: later.ID, Wakeup: d.id(), Run: d.id()}, nil)
		}
		wantRefusal(t, manual(), ledger.Conflict, "Project is paused because its budget hard-stop was reached.")
		if path := PathOf(d.tx, d.load(later.ID), TimeOf(d.now)); path != "paused" {
			t.Errorf("what brings the issue on is %q", path)
		}
		elsewhere := d.issue(t, CreateIssue{Status: IssueTodo, Assignee: ada})
		if n := len(LiveRunsOnIssue(d.tx, d.load(elsewhere.ID))); n != 1 {
			t.Errorf("%d runs wait for an issue of no project", n)
		}
		if next == "a month" {
			d.now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
		} else {
			set.Amount = Cents(100)
			d.must(t, board, "budget.set", set, nil)
		}
		if err := manual(); err != nil || ScopePaused(d.tx, d.company, ScopeProject, project) {
			t.Errorf("after %s: %v", next, err)
		}
	}
}

func TestWindows(t *testing.T) {
	t.Parallel()
	at := func(s string) Time { v, _ := time.Parse(time.RFC3339, s); return TimeOf(v) }
	now := at("2026-11-21T03:06:12Z") // a Saturday
	for kind, want := range map[WindowKind]Span{
		WindowMonth:    {at("2026-11-01T00:00:00Z"), at("2026-12-01T00:00:00Z")},
		WindowWeek:     {at("2026-11-16T00:00:00Z"), at("2026-11-23T00:00:00Z")},
		WindowDay:      {at("2026-11-21T00:00:00Z"), at("2026-11-22T00:00:00Z")},
		WindowLifetime: {0, at("9999-01-01T00:00:00Z")},
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
		d := newDesk(t)
		all := []string{d.agent("Ada"), d.agent("Bob"), d.agent("Cy")}
		areas := []string{"", d.project("Arm"), d.project("Leg")}
		var events []CostEvent
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			d.now = d.now.Add(time.Duration(rapid.IntRange(0, 200).Draw(rt, "hours")) * time.Hour)
			if rapid.IntRange(0, 3).Draw(rt, "what") == 0 {
				p := SetBudget{Type: rapid.SampledFrom([]ScopeType{ScopeAgent, ScopeProject, ScopeCompany}).Draw(rt, "type"),
					Window: rapid.SampledFrom(WindowKinds).Draw(rt, "window"), Amount: Cents(rapid.Int64Range(0, 300).Draw(rt, "limit"))}
				p.Scope = map[ScopeType]string{ScopeCompany: d.company, ScopeAgent: rapid.SampledFrom(all).Draw(rt, "agent"), ScopeProject: rapid.SampledFrom(areas[1:]).Draw(rt, "project")}[p.Type]
				d.must(t, board, "budget.set", p, nil)
			} else {
				e := CostEvent{ID: d.id(), Agent: rapid.SampledFrom(all).Draw(rt, "agent"), Project: NullText(rapid.SampledFrom(areas).Draw(rt, "project")),
					Provider: rapid.SampledFrom([]string{"openai", "a/b"}).Draw(rt, "provider"), Model: rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "model"),
					BillingCode: NullText(rapid.SampledFrom([]string{"", "R&D", "ops"}).Draw(rt, "code")),
					Cost:        Money(rapid.Int64Range(0, int64(Cents(100))).Draw(rt, "cost")), InputTokens: rapid.Int64Range(0, 1000).Draw(rt, "tokens"),
					OccurredAt: TimeOf(d.now) - Time(rapid.Int64Range(0, int64(90*msPerDay)).Draw(rt, "ago"))}
				d.must(t, board, "cost.report", ReportCost{e}, &e)
				events = append(events, e)
			}
			checkNoScopeGoesOn(rt, d)
		}
		checkWindows(rt, d, events)
		for range 3 {
			from := TimeOf(d.now) - Time(rapid.Int64Range(0, int64(200*msPerDay)).Draw(rt, "from"))
			span := Span{from, from + Time(rapid.Int64Range(0, int64(200*msPerDay)).Draw(rt, "long"))}
			checkReports(rt, d, events, span)
		}
		checkReports(rt, d, events, Span{})
	})
}

func checkNoScopeGoesOn(rt *rapid.T, d *desk) {
	for _, b := range Budgets(d.tx, d.company, TimeOf(d.now)) {
		if p, over := b.Exceeded(); over && !ScopePaused(d.tx, d.company, b.Type, b.ID) {
			rt.Fatalf("%s %s spent %d of %d and goes on", b.Type, b.ID, b.Spent(p.Window), p.Amount)
		}
	}
}

func checkWindows(rt *rapid.T, d *desk, events []CostEvent) {
	now := TimeOf(d.now)
	want := map[string]Money{}
	for _, e := range events {
		for _, s := range e.scopesOf() {
			for _, w := range WindowKinds {
				if w.rolling() {
					continue // see TestRollingWindows
				}
				if span := w.Window(now); e.CreatedAt >= span.From && e.CreatedAt < span.To {
					want[fmt.Sprint(s.Type, s.ID, w)] += e.Cost
				}
			}
		}
	}
	for _, e := range events {
		for _, s := range e.scopesOf() {
			b := BudgetOf(d.tx, d.company, s.Type, s.ID, now)
			for _, w := range WindowKinds {
				if w.rolling() {
					continue
				}
				if got := b.Spent(w); got != want[fmt.Sprint(s.Type, s.ID, w)] {
					rt.Fatalf("%s %s in %s: got %d, want %d", s.Type, s.ID, w, got, want[fmt.Sprint(s.Type, s.ID, w)])
				}
			}
		}
	}
}

func checkReports(rt *rapid.T, d *desk, events []CostEvent, span Span) {
	for by := ByAgent; by <= ByBillingCode; by++ {
		want := map[CostCell]Total{}
		for _, e := range events {
			if e.OccurredAt < span.From || e.OccurredAt >= span.end() || by == ByProject && e.Project == "" || by == ByBillingCode && e.BillingCode == "" {
				continue
			}
			key := by.key(e.cell())
			want[key] = want[key].plus(e.total())
		}
		got := CostsBy(d.tx, d.company, by, span)
		if len(got) != len(want) {
			rt.Fatalf("report %d over %v has %d lines, want %d", by, span, len(got), len(want))
		}
		for _, line := range got {
			key := CostCell{Agent: line.Agent, Project: line.Project, Provider: line.Provider, Biller: line.Biller, BillingType: line.BillingType, Model: line.Model, BillingCode: line.BillingCode}
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
		d := newDesk(t)
		ada, bob, area := d.agent("Ada"), d.agent("Bob"), d.project("Arm")
		d.must(t, board, "budget.set", SetBudget{Type: ScopeAgent, Scope: ada, Amount: Cents(50)}, nil)
		d.must(t, board, "label.create", CreateLabel{ID: d.id(), Name: "bug", Color: "#ff0000"}, nil)
		for n := range 30 {
			who := as{[]string{ada, bob}[n%2], d.run([]string{ada, bob}[n%2])}
			i := d.issue(t, CreateIssue{Project: area, Status: IssueTodo})
			if d.do(who, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: who.agent, Expected: []IssueStatus{IssueTodo}}, nil) == nil {
				d.must(t, who, "comment.create", CreateComment{ID: d.id(), Issue: i.ID, Body: "done"}, nil)
				d.must(t, who, "cost.report", ReportCost{CostEvent{ID: d.id(), Agent: who.agent, Issue: NullText(i.ID), Provider: "p", Model: "m", Cost: Cents(4), OccurredAt: TimeOf(d.now)}}, nil)
				_ = d.do(who, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueDone}, nil)
			}
		}
		state := map[string]string{}
		for k, v := range d.tx.Writes() {
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
	d := newDesk(b)
	ada := d.agent("Ada")
	i := d.issue(b, CreateIssue{})
	d.must(b, board, "budget.set", SetBudget{Type: ScopeAgent, Scope: ada, Amount: Cents(1 << 30)}, nil)
	like := *d.context(board, "cost.report", ReportCost{CostEvent{ID: d.id(), Agent: ada, Issue: NullText(i.ID), Provider: "openai", Model: "gpt-5", Cost: Cents(1), OccurredAt: TimeOf(d.now)}})
	b.ReportAllocs()
	for b.Loop() {
		c := like
		c.Tx = d.tx.Child()
		if _, err := d.mux["cost.report"](&c); err != nil {
			b.Fatal(err)
		}
	}
}
