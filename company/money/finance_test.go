package money_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestBookingsAreChecked(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	i := d.Issue(t, company.CreateIssue{Title: "T", Project: d.Project("Rig"), BillingCode: "R&D"})
	if err := d.Book("platform_fee", "stripe", 100, func(e *money.FinanceEvent) {
		e.Issue, e.Agent = core.NullText(i.ID),
			core.NullText(ada)
	}); err != nil {
		t.Fatal(err)
	}
	if e := money.FinanceEvents(d.Tx, d.Company, money.Span{}, 10)[0]; e.BillingCode != "R&D" ||
		e.Project != core.NullText(i.Project) || e.Direction != money.Debit || e.Currency != "USD" {
		t.Errorf("booked %+v", e)
	}
	for what, c := range map[string]struct {
		change func(*money.FinanceEvent)
		code   ledger.Code
	}{
		"an unknown kind":      {func(e *money.FinanceEvent) { e.Kind = "gift" }, ledger.Invalid},
		"an unknown direction": {func(e *money.FinanceEvent) { e.Direction = "up" }, ledger.Invalid},
		"no biller":            {func(e *money.FinanceEvent) { e.Biller = "" }, ledger.Invalid},
		"a negative amount":    {func(e *money.FinanceEvent) { e.Amount = -1 }, ledger.Invalid},
		"too much": {func(e *money.FinanceEvent) { e.Amount = core.Cents(core.MaxEventCents) + 1 },
			ledger.Invalid},
		"another currency": {func(e *money.FinanceEvent) { e.Currency = "EUR" }, ledger.Unprocessable},
		"no such agent": {func(e *money.FinanceEvent) { e.Agent = core.NullText(companytest.UID(9)) },
			ledger.NotFound},
		"no such issue": {func(e *money.FinanceEvent) { e.Issue = core.NullText(companytest.UID(9)) },
			ledger.NotFound},
		"no such cost":       {func(e *money.FinanceEvent) { e.Cost = core.NullText(companytest.UID(9)) }, ledger.NotFound},
		"metadata no object": {func(e *money.FinanceEvent) { e.Metadata = []byte(`[1]`) }, ledger.Invalid},
	} {
		if r := companytest.Refused(t, d.Book("platform_fee", "stripe", 1, c.change)); r.Code != c.code {
			t.Errorf("%s: %v", what, r)
		}
	}
	if err := d.Do(companytest.As{Agent: ada, Run: d.Run(ada)}, "finance.book", money.FinanceEvent{ID: d.ID(),
		Kind: "platform_fee", Biller: "x", OccurredAt: 1}, nil); err == nil {
		t.Error("an agent books")
	}
}

func TestFinancesAreTheSumsOfTheirBookings(t *testing.T) {
	t.Parallel()
	seed := uint64(20261121)
	rng := rand.New(rand.NewPCG(seed, 1))
	d := companytest.NewDesk(t)
	base := core.TimeOf(d.Now)
	for range 200 {
		if err := d.Book(money.FinanceKinds[rng.IntN(4)], fmt.Sprint("biller ", rng.IntN(3)), rng.Int64N(1000),
			func(e *money.FinanceEvent) {
				e.Direction, e.Estimated = []string{money.Debit, money.Credit}[rng.IntN(2)], rng.IntN(3) == 0
				e.OccurredAt = base - core.Time(rng.Int64N(int64(10*money.MsPerDay)))
			}); err != nil {
			t.Fatal(err)
		}
	}
	all := money.FinanceEvents(d.Tx, d.Company, money.Span{}, money.MaxFinanceList)
	if len(all) != 200 || !slices.IsSortedFunc(all,
		func(a, b money.FinanceEvent) int { return int(b.OccurredAt - a.OccurredAt) }) {
		t.Fatalf("%d bookings, not the newest first", len(all))
	}
	spans := []money.Span{{}, {From: base - money.MsPerDay}, {To: base - 3*money.MsPerDay}}
	for range 100 {
		from := base - core.Time(rng.Int64N(int64(11*money.MsPerDay)))
		spans = append(spans, money.Span{From: from, To: from + core.Time(rng.Int64N(int64(3*money.MsPerDay)))})
	}
	for _, s := range spans {
		for name, by := range map[string]func(money.FinanceSum) money.FinanceSum{"biller": money.ByFinanceBiller,
			"kind": money.ByFinanceKind, "all": money.AllFinances} {
			want := map[money.FinanceSum]money.FinanceSum{}
			for _, e := range all {
				if e.OccurredAt >= s.From && e.OccurredAt < s.End() {
					key := by(money.FinanceSum{Biller: e.Biller, Kind: e.Kind})
					want[key] = want[key].Plus(e.Sum())
				}
			}
			got := money.Finances(d.Tx, d.Company, s, by)
			if len(got) != len(want) {
				t.Fatalf("seed %d: %s over %v: %d lines, want %d", seed, name, s, len(got), len(want))
			}
			for _, line := range got {
				w := want[by(money.FinanceSum{Biller: line.Biller, Kind: line.Kind})]
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
	for _, kind := range []money.WindowKind{money.WindowRolling24h, money.WindowRolling7d, money.WindowRolling30d} {
		unit, n := kind.Rolls()
		d := companytest.NewDesk(t)
		ada := d.Agent("Ada")
		d.Must(t, companytest.Board, "budget.set", money.SetBudget{Type: entity.ScopeAgent, Scope: ada, Window: kind,
			Amount: core.Cents(1_000_000)}, nil)
		type spent struct {
			at core.Time
			m  core.Money
		}
		var all []spent
		for range 300 {
			d.Now = d.Now.Add(time.Duration(rng.Int64N(int64(unit)*3)) * time.Millisecond)
			cents := rng.Int64N(50)
			if err := d.Cost(companytest.Board, ada, cents); err != nil {
				t.Fatal(err)
			}
			all = append(all, spent{core.TimeOf(d.Now) - 0, core.Cents(cents)})
			if now := core.TimeOf(d.Now); true {
				got, least, most := money.BudgetOf(d.Tx, d.Company, entity.ScopeAgent, ada, now).Spent(kind), core.Money(0),
					core.Money(0)
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
		if b, _ := money.BudgetTable.Get(d.Tx, d.Company, money.ScopeKey(entity.ScopeAgent,
			ada)); len(b.Hours)+len(b.Days) > int(n)+2 {
			t.Errorf("%s keeps %d sums", kind, len(b.Hours)+len(b.Days))
		}
	}
}

func TestARollingBudgetStopsAndLetsGo(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	if err := d.Cost(companytest.Board, ada, 30); err != nil { // before the policy, today: it counts
		t.Fatal(err)
	}
	d.Must(t, companytest.Board, "budget.set", money.SetBudget{Type: entity.ScopeAgent, Scope: ada,
		Window: money.WindowRolling24h, Amount: core.Cents(100)}, nil)
	status := func() entity.AgentStatus { a, _ := entity.AgentTable.Get(d.Tx, d.Company, ada); return a.Status }
	if err := d.Cost(companytest.Board, ada, 69); err != nil || status() != entity.AgentIdle ||
		len(money.OpenIncidents(d.Tx, d.Company, core.TimeOf(d.Now))) != 1 {
		t.Fatalf("at 99 of 100 the agent is %s, %v", status(), err)
	}
	if err := d.Cost(companytest.Board, ada, 1); err != nil || status() != entity.AgentPaused {
		t.Fatalf("at the limit the agent is %s, %v", status(), err)
	}
	d.Now = d.Now.Add(23 * time.Hour)
	d.Must(t, companytest.Board, "budget.sweep", money.SweepBudgets{}, nil)
	if status() != entity.AgentPaused {
		t.Error("it goes on before a day has passed")
	}
	d.Now = d.Now.Add(2 * time.Hour)
	if !money.BudgetsToSweep(d.Tx, d.Company, core.TimeOf(d.Now)) {
		t.Fatal("nobody notices that it may go on")
	}
	d.Must(t, companytest.Board, "budget.sweep", money.SweepBudgets{}, nil)
	if status() != entity.AgentIdle || len(money.OpenIncidents(d.Tx, d.Company, core.TimeOf(d.Now))) != 0 ||
		money.BudgetsToSweep(d.Tx, d.Company, core.TimeOf(d.Now)) {
		t.Errorf("a day later it is %s with %d incidents", status(),
			len(money.OpenIncidents(d.Tx, d.Company, core.TimeOf(d.Now))))
	}
	if err := d.Cost(companytest.Board, ada, 100); err != nil || status() != entity.AgentPaused {
		t.Errorf("at the limit again it is %s, %v", status(), err)
	}
	if n := len(money.IncidentsOf(d.Tx, d.Company, "")); n != 3 {
		t.Errorf("%d incidents are kept, want 3", n)
	}
}

func TestBillingCodesFollowTheDelegation(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	top := d.Issue(t, company.CreateIssue{Title: "top", BillingCode: "R&D"})
	child := d.Issue(t, company.CreateIssue{Title: "child", Parent: top.ID})
	own := d.Issue(t, company.CreateIssue{Title: "own", Parent: child.ID, BillingCode: "ops"})
	grand := d.Issue(t, company.CreateIssue{Title: "grand", Parent: child.ID})
	for _, c := range []struct {
		issue, code string
		cents       int64
	}{{top.ID, "", 1}, {child.ID, "", 10}, {own.ID, "", 100}, {grand.ID, "", 1000}, {grand.ID, "fix", 10_000},
		{"", "", 100_000}} {
		e := money.CostEvent{ID: d.ID(), Agent: ada, Issue: core.NullText(c.issue), BillingCode: core.NullText(c.code),
			Provider: "p", Model: "m", Cost: core.Cents(c.cents), OccurredAt: core.TimeOf(d.Now)}
		d.Must(t, companytest.Board, "cost.report", money.ReportCost{Event: e}, nil)
	}
	got := map[string]int64{}
	for _, l := range money.CostsBy(d.Tx, d.Company, money.ByBillingCode, money.Span{}) {
		got[l.BillingCode] = l.Cost.Cents()
	}
	if len(got) != 3 || got["R&D"] != 1011 || got["ops"] != 100 || got["fix"] != 10_000 {
		t.Errorf("by billing code: %v", got)
	}
}
