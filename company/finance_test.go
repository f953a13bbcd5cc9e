package company

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

func (d *desk) book(kind, biller string, cents int64, change func(*FinanceEvent)) error {
	e := FinanceEvent{ID: d.id(), Kind: kind, Biller: biller, Amount: Cents(cents), OccurredAt: TimeOf(d.now)}
	if change != nil {
		change(&e)
	}
	return d.do(board, "finance.book", e, nil)
}

func TestBookingsAreChecked(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	i := d.issue(t, CreateIssue{Title: "T", Project: d.project("Rig"), BillingCode: "R&D"})
	if err := d.book("platform_fee", "stripe", 100, func(e *FinanceEvent) { e.Issue, e.Agent = NullText(i.ID), NullText(ada) }); err != nil {
		t.Fatal(err)
	}
	if e := FinanceEvents(d.tx, d.company, Span{}, 10)[0]; e.BillingCode != "R&D" || e.Project != NullText(i.Project) || e.Direction != Debit || e.Currency != "USD" {
		t.Errorf("booked %+v", e)
	}
	for what, c := range map[string]struct {
		change func(*FinanceEvent)
		code   ledger.Code
	}{
		"an unknown kind":      {func(e *FinanceEvent) { e.Kind = "gift" }, ledger.Invalid},
		"an unknown direction": {func(e *FinanceEvent) { e.Direction = "up" }, ledger.Invalid},
		"no biller":            {func(e *FinanceEvent) { e.Biller = "" }, ledger.Invalid},
		"a negative amount":    {func(e *FinanceEvent) { e.Amount = -1 }, ledger.Invalid},
		"too much":             {func(e *FinanceEvent) { e.Amount = Cents(MaxEventCents) + 1 }, ledger.Invalid},
		"another currency":     {func(e *FinanceEvent) { e.Currency = "EUR" }, ledger.Unprocessable},
		"no such agent":        {func(e *FinanceEvent) { e.Agent = NullText(uid(9)) }, ledger.NotFound},
		"no such issue":        {func(e *FinanceEvent) { e.Issue = NullText(uid(9)) }, ledger.NotFound},
		"no such cost":         {func(e *FinanceEvent) { e.Cost = NullText(uid(9)) }, ledger.NotFound},
		"metadata no object":   {func(e *FinanceEvent) { e.Metadata = []byte(`[1]`) }, ledger.Invalid},
	} {
		if r := refused(t, d.book("platform_fee", "stripe", 1, c.change)); r.Code != c.code {
			t.Errorf("%s: %v", what, r)
		}
	}
	if err := d.do(as{ada, d.run(ada)}, "finance.book", FinanceEvent{ID: d.id(), Kind: "platform_fee", Biller: "x", OccurredAt: 1}, nil); err == nil {
		t.Error("an agent books")
	}
}

func TestFinancesAreTheSumsOfTheirBookings(t *testing.T) {
	t.Parallel()
	seed := uint64(20261121)
	rng := rand.New(rand.NewPCG(seed, 1))
	d := newDesk(t)
	base := TimeOf(d.now)
	for range 200 {
		if err := d.book(FinanceKinds[rng.IntN(4)], fmt.Sprint("biller ", rng.IntN(3)), rng.Int64N(1000), func(e *FinanceEvent) {
			e.Direction, e.Estimated = []string{Debit, Credit}[rng.IntN(2)], rng.IntN(3) == 0
			e.OccurredAt = base - Time(rng.Int64N(int64(10*msPerDay)))
		}); err != nil {
			t.Fatal(err)
		}
	}
	all := FinanceEvents(d.tx, d.company, Span{}, MaxFinanceList)
	if len(all) != 200 || !slices.IsSortedFunc(all, func(a, b FinanceEvent) int { return int(b.OccurredAt - a.OccurredAt) }) {
		t.Fatalf("%d bookings, not the newest first", len(all))
	}
	spans := []Span{{}, {From: base - msPerDay}, {To: base - 3*msPerDay}}
	for range 100 {
		from := base - Time(rng.Int64N(int64(11*msPerDay)))
		spans = append(spans, Span{from, from + Time(rng.Int64N(int64(3*msPerDay)))})
	}
	for _, s := range spans {
		for name, by := range map[string]func(FinanceSum) FinanceSum{"biller": ByFinanceBiller, "kind": ByFinanceKind, "all": AllFinances} {
			want := map[FinanceSum]FinanceSum{}
			for _, e := range all {
				if e.OccurredAt >= s.From && e.OccurredAt < s.end() {
					key := by(FinanceSum{Biller: e.Biller, Kind: e.Kind})
					want[key] = want[key].plus(e.sum())
				}
			}
			got := Finances(d.tx, d.company, s, by)
			if len(got) != len(want) {
				t.Fatalf("seed %d: %s over %v: %d lines, want %d", seed, name, s, len(got), len(want))
			}
			for _, line := range got {
				w := want[by(FinanceSum{Biller: line.Biller, Kind: line.Kind})]
				if line.Debit != w.Debit || line.Credit != w.Credit || line.Estimated != w.Estimated || line.Events != w.Events {
					t.Fatalf("seed %d: %s over %v: %+v, want %+v", seed, name, s, line, w)
				}
			}
		}
	}
}

// A rolling window never counts less than what was spent in its time, nor what
// is more than one unit older, and a scope that it stopped goes on by itself.
func TestRollingWindows(t *testing.T) {
	t.Parallel()
	seed := uint64(42)
	rng := rand.New(rand.NewPCG(seed, 2))
	for _, kind := range []WindowKind{WindowRolling24h, WindowRolling7d, WindowRolling30d} {
		unit, n := kind.rolls()
		d := newDesk(t)
		ada := d.agent("Ada")
		d.must(t, board, "budget.set", SetBudget{Type: ScopeAgent, Scope: ada, Window: kind, Amount: Cents(1_000_000)}, nil)
		type spent struct {
			at Time
			m  Money
		}
		var all []spent
		for range 300 {
			d.now = d.now.Add(time.Duration(rng.Int64N(int64(unit)*3)) * time.Millisecond)
			cents := rng.Int64N(50)
			if err := d.cost(board, ada, cents); err != nil {
				t.Fatal(err)
			}
			all = append(all, spent{TimeOf(d.now) - 0, Cents(cents)})
			if now := TimeOf(d.now); true {
				got, least, most := BudgetOf(d.tx, d.company, ScopeAgent, ada, now).Spent(kind), Money(0), Money(0)
				for _, s := range all {
					if s.at > now-n*unit {
						least += s.m
					}
					if s.at > now-(n+1)*unit {
						most += s.m
					}
				}
				if got < least || got > most {
					t.Fatalf("seed %d: %s at %s: %d, want %d to %d", seed, kind, now, got, least, most)
				}
			}
		}
		if b, _ := budgets.Get(d.tx, d.company, scopeKey(ScopeAgent, ada)); len(b.Hours)+len(b.Days) > int(n)+2 {
			t.Errorf("%s keeps %d sums", kind, len(b.Hours)+len(b.Days))
		}
	}
}

func TestARollingBudgetStopsAndLetsGo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	if err := d.cost(board, ada, 30); err != nil { // before the policy, today: it counts
		t.Fatal(err)
	}
	d.must(t, board, "budget.set", SetBudget{Type: ScopeAgent, Scope: ada, Window: WindowRolling24h, Amount: Cents(100)}, nil)
	status := func() AgentStatus { a, _ := agents.Get(d.tx, d.company, ada); return a.Status }
	if err := d.cost(board, ada, 69); err != nil || status() != AgentIdle || len(OpenIncidents(d.tx, d.company, TimeOf(d.now))) != 1 {
		t.Fatalf("at 99 of 100 the agent is %s, %v", status(), err)
	}
	if err := d.cost(board, ada, 1); err != nil || status() != AgentPaused {
		t.Fatalf("at the limit the agent is %s, %v", status(), err)
	}
	d.now = d.now.Add(23 * time.Hour)
	d.must(t, board, "budget.sweep", SweepBudgets{}, nil)
	if status() != AgentPaused {
		t.Error("it goes on before a day has passed")
	}
	d.now = d.now.Add(2 * time.Hour)
	if !BudgetsToSweep(d.tx, d.company, TimeOf(d.now)) {
		t.Fatal("nobody notices that it may go on")
	}
	d.must(t, board, "budget.sweep", SweepBudgets{}, nil)
	if status() != AgentIdle || len(OpenIncidents(d.tx, d.company, TimeOf(d.now))) != 0 || BudgetsToSweep(d.tx, d.company, TimeOf(d.now)) {
		t.Errorf("a day later it is %s with %d incidents", status(), len(OpenIncidents(d.tx, d.company, TimeOf(d.now))))
	}
	if err := d.cost(board, ada, 100); err != nil || status() != AgentPaused {
		t.Errorf("at the limit again it is %s, %v", status(), err)
	}
	if n := len(IncidentsOf(d.tx, d.company, "")); n != 3 {
		t.Errorf("%d incidents are kept, want 3", n)
	}
}

func TestBillingCodesFollowTheDelegation(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	top := d.issue(t, CreateIssue{Title: "top", BillingCode: "R&D"})
	child := d.issue(t, CreateIssue{Title: "child", Parent: top.ID})
	own := d.issue(t, CreateIssue{Title: "own", Parent: child.ID, BillingCode: "ops"})
	grand := d.issue(t, CreateIssue{Title: "grand", Parent: child.ID})
	for _, c := range []struct {
		issue, code string
		cents       int64
	}{{top.ID, "", 1}, {child.ID, "", 10}, {own.ID, "", 100}, {grand.ID, "", 1000}, {grand.ID, "fix", 10_000}, {"", "", 100_000}} {
		e := CostEvent{ID: d.id(), Agent: ada, Issue: NullText(c.issue), BillingCode: NullText(c.code), Provider: "p", Model: "m", Cost: Cents(c.cents), OccurredAt: TimeOf(d.now)}
		d.must(t, board, "cost.report", ReportCost{e}, nil)
	}
	got := map[string]int64{}
	for _, l := range CostsBy(d.tx, d.company, ByBillingCode, Span{}) {
		got[l.BillingCode] = l.Cost.Cents()
	}
	if len(got) != 3 || got["R&D"] != 1011 || got["ops"] != 100 || got["fix"] != 10_000 {
		t.Errorf("by billing code: %v", got)
	}
}
