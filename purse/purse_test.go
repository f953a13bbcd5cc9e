package purse

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/kit"
	"github.com/selvage-mesh/selvage/ledger"
)

func refusedAs(err error) string {
	var no *ledger.Refusal
	if errors.As(err, &no) {
		return no.ErrCode
	}
	return fmt.Sprint(err)
}

func TestManyCallsShareASlice(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	ada := b.agent(t, "Ada")
	p := b.post(t, "one")
	ask := money.SpendAsk{Company: b.company, Agent: ada, Want: core.Cent}
	var grants []money.SpendGrant
	for range 20 {
		g, err := p.purse.Reserve(t.Context(), ask)
		if err != nil || g.Amount != core.Cent {
			t.Fatalf("granted %+v, %v", g, err)
		}
		grants = append(grants, g)
	}
	for i, g := range grants {
		use := money.SpendUse{Provider: "openai", Model: "m", InputTokens: 10, OutputTokens: 5, Cost: core.Cent / 2,
			Unsent: i == 0}
		for range 2 { // the second time is nothing
			if err := p.purse.Settle(t.Context(), g, use); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.look()
	got := b.budget(entity.ScopeAgent, ada)
	if got.Month != 19*core.Cent/2 || got.Held != DefaultSlice-got.Month || b.commands["budget.reserve"] != 1 ||
		b.commands["budget.settle"] != 1 {
		t.Errorf("spent %d, held %d, with %v", got.Month, got.Held, b.commands)
	}
	b.pass(DefaultIdle + time.Second)
	p.look()
	if got := b.budget(entity.ScopeAgent, ada); got.Held != 0 || got.Month != 19*core.Cent/2 ||
		len(p.purse.Stocks()) != 0 {
		t.Errorf("an idle slice stays: held %d, %+v", got.Held, p.purse.Stocks())
	}
	if _, err := p.purse.Reserve(t.Context(), ask); err != nil {
		t.Error(err)
	}
	if err := p.purse.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := b.budget(entity.ScopeAgent, ada); got.Held == 0 {
		t.Error("a call that is under way is not held")
	}
	p.start()
	p.look()
	if got := b.budget(entity.ScopeAgent, ada); got.Held != 0 || got.Month != 19*core.Cent/2+core.Cent {
		t.Errorf("after a restart: held %d, spent %d", got.Held, got.Month)
	}
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	ada, bob := b.agent(t, "Ada"), b.agent(t, "Bob")
	p := b.post(t, "one")
	b.limit(t, entity.ScopeCompany, string(b.company), money.WindowMonth, core.Cents(100))
	ask := money.SpendAsk{Company: b.company, Agent: ada, Want: core.Cents(80)}
	g, err := p.purse.Reserve(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.purse.Reserve(t.Context(), ask); refusedAs(err) != "budget_exceeded" {
		t.Errorf("beyond the limit: %v", err)
	}
	part := ask
	part.Least = 1
	if g, err := p.purse.Reserve(t.Context(), part); err != nil || g.Amount != core.Cents(20) {
		t.Errorf("what is left: %+v, %v", g, err)
	}
	// What one agent does not use, another gets at once.
	if err := p.purse.Settle(t.Context(), g, money.SpendUse{Unsent: true}); err != nil {
		t.Fatal(err)
	}
	ask.Agent = bob
	if g, err := p.purse.Reserve(t.Context(), ask); err != nil || g.Amount != core.Cents(80) {
		t.Errorf("of another agent: %+v, %v", g, err)
	}
	p.holds = false
	if _, err := p.purse.Reserve(t.Context(), ask); !errors.Is(err, ErrNoAuthority) {
		t.Errorf("without a lease: %v", err)
	}
	p.holds = true
	ask.Want = 0
	if g, err := p.purse.Reserve(t.Context(), ask); err != nil || g.Amount != 0 {
		t.Errorf("a call without a price: %+v, %v", g, err)
	}
	b.must(t, "agent.pause", company.ChangeAgent{Agent: bob}, nil)
	if _, err := p.purse.Reserve(t.Context(), ask); refusedAs(err) != "agent_stopped" {
		t.Errorf("of a paused agent: %v", err)
	}
	ask.Agent, ask.Run = ada, b.id()
	if _, err := p.purse.Reserve(t.Context(), ask); refusedAs(err) != "run_not_running" {
		t.Errorf("of a run that is not: %v", err)
	}
	if err := p.purse.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask.Run = ""
	if _, err := p.purse.Reserve(t.Context(), ask); !errors.Is(err, ErrClosed) {
		t.Errorf("when it is closed: %v", err)
	}
}

func TestAnUpstreamThatLiesIsBookedAndStopsTheScope(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	ada := b.agent(t, "Ada")
	p := b.post(t, "one")
	b.limit(t, entity.ScopeAgent, ada, money.WindowMonth, core.Cents(100))
	g, err := p.purse.Reserve(t.Context(), money.SpendAsk{Company: b.company, Agent: ada, Want: core.Cents(90)})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.purse.Settle(t.Context(), g, money.SpendUse{Provider: "p", Model: "m",
		Cost: core.Cents(130)}); err != nil {
		t.Fatal(err)
	}
	p.look()
	if got := b.budget(entity.ScopeAgent, ada); got.Month != core.Cents(130) {
		t.Errorf("spent %d", got.Month)
	}
	if _, err := p.purse.Reserve(t.Context(), money.SpendAsk{Company: b.company,
		Agent: ada}); refusedAs(err) != "budget_paused" {
		t.Errorf("a paused agent goes on: %v", err)
	}
}

// A reservation whose outcome the node does not know is returned: whether it was made or not,
// nothing of it stays reserved.
func TestUnknownReservationsAreGivenBack(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		b := newBank(t)
		ada := b.agent(t, "Ada")
		p := b.post(t, "one")
		p.cut, p.deaf = !deaf, deaf
		if g, err := p.purse.Reserve(t.Context(), money.SpendAsk{Company: b.company, Agent: ada,
			Want: core.Cent}); err == nil {
			t.Fatalf("granted %+v", g)
		}
		p.cut, p.deaf = false, false
		p.look()
		if got := b.budget(entity.ScopeAgent, ada); got.Held != 0 || len(p.purse.Stocks()) != 0 {
			t.Errorf("deaf %v: held %d, %+v", deaf, got.Held, p.purse.Stocks())
		}
	}
}

func TestConcurrentCallsStayWithinTheLimit(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	agents := []string{b.agent(t, "Ada"), b.agent(t, "Bob")}
	b.limit(t, entity.ScopeCompany, string(b.company), money.WindowMonth, core.Cents(1000))
	var spent atomic.Int64
	var calls atomic.Int64
	var posts []*post
	ctx, stop := context.WithCancel(t.Context())
	var wg, runs sync.WaitGroup
	for n := range 3 {
		p := b.post(t, fmt.Sprint("node-", n))
		posts = append(posts, p)
		runs.Go(func() { _ = p.purse.Run(ctx) })
		for k := range 8 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(n), uint64(k)))
				for range 60 {
					g, err := p.purse.Reserve(ctx, money.SpendAsk{Company: b.company, Agent: agents[k%2], Want: core.Cents(4),
						Least: core.Cent})
					if err != nil {
						continue
					}
					cost := core.Money(rng.Int64N(int64(g.Amount) + 1))
					spent.Add(int64(cost))
					calls.Add(1)
					if err := p.purse.Settle(ctx, g, money.SpendUse{Provider: "p", Model: "m", Cost: cost}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	stop()
	runs.Wait()
	for _, p := range posts {
		if err := p.purse.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	got := b.budget(entity.ScopeCompany, string(b.company))
	if int64(got.Month) != spent.Load() || got.Held != 0 || got.Month > core.Cents(1000) {
		t.Errorf("booked %d, spent %d, held %d", got.Month, spent.Load(), got.Held)
	}
	commands := b.commands["budget.reserve"] + b.commands["budget.settle"]
	t.Logf("%d calls with %d commands, %d micro-cents of %d", calls.Load(), commands, spent.Load(), core.Cents(1000))
	if int64(commands) > calls.Load() {
		t.Errorf("%d commands for %d calls", commands, calls.Load())
	}
}

// TestPartitionsAndRestarts lets three nodes spend while they are partitioned, lost, killed,
// rebooted with part of their journal lost, and restarted, across the ends of days, with an
// operator who writes off what is lost. The calls that were really sent never exceed a limit
// in its window, and in the end all of them are booked.
func TestPartitionsAndRestarts(t *testing.T) {
	t.Parallel()
	worst, least := -core.MaxMoney, core.MaxMoney
	seeds := uint64(16)
	if testing.Short() {
		seeds = 4
	}
	seen := map[string]int{}
	for seed := range seeds {
		over, under := spendThroughPartitions(t, seed, seen)
		worst, least = max(worst, over), min(least, under)
	}
	t.Logf("worst overspend: %d micro-cents (closest to a limit: %d below it); least that was booked beyond what "+
		"was spent: %d; %v", max(worst, 0), max(-worst, 0), least, seen)
	if worst > 0 {
		t.Errorf("overspent by %d micro-cents", worst)
	}
	if least < 0 {
		t.Errorf("%d micro-cents were spent and never booked", -least)
	}
	for _, what := range []string{"cut", "lost", "killed", "rebooted", "written off", "spent"} {
		if seen[what] == 0 {
			t.Errorf("nothing was %s", what)
		}
	}
}

// underWay is a call that an upstream works on.
type underWay struct {
	p    *post
	life *Purse
	g    money.SpendGrant
	cost core.Money
}

func spendThroughPartitions(t *testing.T, seed uint64, seen map[string]int) (over, under core.Money) {
	rng := rand.New(rand.NewPCG(seed, 11))
	b := newBank(t)
	agents := []string{b.agent(t, "Ada"), b.agent(t, "Bob")}
	limits := map[money.WindowKind]core.Money{money.WindowDay: core.Cents(400), money.WindowMonth: core.Cents(1500),
		money.WindowRolling24h: core.Cents(500)}
	for w, amount := range limits {
		b.limit(t, entity.ScopeCompany, string(b.company), w, amount)
	}
	b.limit(t, entity.ScopeAgent, agents[0], money.WindowDay, core.Cents(150))
	posts := []*post{b.post(t, "one"), b.post(t, "two"), b.post(t, "three")}
	type spend struct {
		agent string
		at    time.Time
		cost  core.Money
	}
	var spends []spend
	var calls []underWay
	over = -core.MaxMoney
	check := func() {
		now := b.clock()
		sum := func(agent string, from time.Time) (s core.Money) {
			for _, x := range spends {
				if !x.at.Before(from) && (agent == "" || x.agent == agent) {
					s += x.cost
				}
			}
			return s
		}
		day := money.WindowDay.Window(core.TimeOf(now)).From.Std()
		over = max(over, sum("", day)-limits[money.WindowDay], sum(agents[0], day)-core.Cents(150),
			sum("", now.Add(-24*time.Hour))-limits[money.WindowRolling24h],
			sum("", money.WindowMonth.Window(core.TimeOf(now)).From.Std())-limits[money.WindowMonth])
	}
	for range 500 {
		b.pass(time.Duration(rng.IntN(20)) * time.Second)
		p := posts[rng.IntN(len(posts))]
		switch rng.IntN(36) {
		case 0:
			p.cut = !p.cut
			seen["cut"]++
		case 1:
			p.deaf = !p.deaf
		case 2: // the leader declares it lost; its lease ended before
			p.cut = true
			p.end()
			seen["lost"]++
		case 3:
			if p.purse == nil || !p.holds {
				if p.purse != nil {
					p.kill(rng, false)
				}
				p.start()
				break
			}
			reboot := rng.IntN(2) == 0
			p.kill(rng, reboot)
			p.end()
			seen["killed"]++
			if reboot {
				seen["rebooted"]++
			}
		case 5:
			b.pass(time.Duration(rng.IntN(5)) * time.Hour)
		case 6:
			for _, r := range money.OpenReservations(b.tx, b.company) {
				if (r.Uncertain || money.ReservationLost(b.tx, r)) && rng.IntN(3) == 0 {
					b.must(t, "budget.writeoff", money.WriteOff{Reservation: r.ID}, nil)
					seen["written off"]++
				}
			}
			b.must(t, "budget.sweep", money.SweepBudgets{}, nil)
		case 7, 8, 9, 10, 14, 15:
			if p.purse != nil {
				p.look()
			}
		case 11, 12, 13, 16, 17, 18, 19, 20:
			if len(calls) == 0 {
				break
			}
			n := rng.IntN(len(calls))
			c := calls[n]
			calls = slices.Delete(calls, n, n+1)
			if c.p.purse == c.life && c.life != nil { // else the node that made it is gone
				if err := c.life.Settle(t.Context(), c.g, money.SpendUse{Provider: "p", Model: "m", Cost: c.cost}); err != nil {
					t.Fatal(err)
				}
			}
		default:
			if p.purse == nil {
				break
			}
			want := core.Money(rng.Int64N(int64(core.Cents(30))))
			agent := agents[rng.IntN(2)]
			g, err := p.purse.Reserve(t.Context(), money.SpendAsk{Company: b.company, Agent: agent, Want: want,
				Least: core.Money(rng.Int64N(int64(want) + 1))})
			if err != nil {
				break
			}
			cost := core.Money(rng.Int64N(int64(g.Amount) + 1))
			spends = append(spends, spend{agent, b.clock(), cost})
			calls = append(calls, underWay{p, p.purse, g, cost})
			seen["spent"]++
			check()
		}
	}
	// In the end all come back, what they do not know is written off, and all that was spent is booked.
	for _, p := range posts {
		if p.purse != nil {
			p.kill(rng, false)
		}
		p.start()
		p.look()
	}
	for _, r := range money.OpenReservations(b.tx, b.company) {
		if !r.Uncertain {
			t.Errorf("seed %d: %+v is open and nobody knows why", seed, r)
		}
		b.must(t, "budget.writeoff", money.WriteOff{Reservation: r.ID}, nil)
	}
	whole := b.budget(entity.ScopeCompany, string(b.company))
	real := core.Money(0)
	for _, x := range spends {
		real += x.cost
	}
	if whole.Held != 0 || whole.Holds != 0 {
		t.Errorf("seed %d: in the end %d are held", seed, whole.Held)
	}
	return over, whole.Lifetime - real
}

// A journal that is truncated or has a flipped bit anywhere is read up to there or found
// broken, and never grants anything.
func TestJournalsThatAreDamaged(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	p := b.post(t, "one")
	ask := money.SpendAsk{Company: b.company, Agent: b.agent(t, "Ada"), Want: core.Cent}
	for i := range 6 {
		g, err := p.purse.Reserve(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			if err := p.purse.Settle(t.Context(), g, money.SpendUse{Cost: core.Cent}); err != nil {
				t.Fatal(err)
			}
		}
	}
	whole, err := os.ReadFile(p.path)
	if err != nil {
		t.Fatal(err)
	}
	open := func(b []byte, boot string) (map[string]*stock, error) {
		path := filepath.Join(t.TempDir(), "purse.log")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		j, stocks, err := openJournal(path, "one", boot, p.purse.cfg.Log)
		if err == nil {
			_ = j.close()
		}
		return stocks, err
	}
	stocks, err := open(whole, "boot-0")
	if err != nil || len(stocks) != 1 {
		t.Fatalf("%d stocks, %v", len(stocks), err)
	}
	for _, s := range stocks {
		if len(s.ended) != 6 || len(s.under) != 0 || !s.closing || s.unsure {
			t.Errorf("read as %+v", s)
		}
	}
	if stocks, _ := open(whole, "boot-1"); len(stocks) != 1 {
		t.Error("of another boot: nothing is left")
	} else {
		for _, s := range stocks {
			if !s.unsure {
				t.Error("after another boot all is taken to be there")
			}
		}
	}
	all, _ := decodeNotes(whole)
	for n := range whole {
		if notes, broken := decodeNotes(whole[:n]); broken || len(notes) >= len(all) {
			t.Fatalf("cut at %d: %d notes, broken %v", n, len(notes), broken)
		}
		bad := bytes.Clone(whole)
		bad[n] ^= 0x40
		if notes, _ := decodeNotes(bad); len(notes) >= len(all) {
			t.Fatalf("flipped at %d: nothing is noticed", n)
		}
		if n%256 != 255 {
			continue
		}
		if stocks, err := open(whole[:n], "boot-0"); err == nil {
			for _, s := range stocks {
				if !s.closing {
					t.Fatalf("cut at %d: goes on granting", n)
				}
			}
		}
		if stocks, err := open(bad, "boot-0"); err == nil {
			for _, s := range stocks {
				if _, broken := decodeNotes(bad); broken && !s.unsure {
					t.Fatalf("flipped at %d of %d: all is taken to be there", n, len(whole))
				}
			}
		}
	}
	if _, _, err := openJournal(p.path, "two", "boot-0", p.purse.cfg.Log); err == nil {
		t.Error("another node's journal is read")
	}
}

// The bytes of a journal stay what they are.
func TestJournalIsPinned(t *testing.T) {
	t.Parallel()
	call := money.Metered{Event: money.CostEvent{ID: "c", Provider: "p", Model: "m", Run: "r", InputTokens: 3, Cost: 7,
		OccurredAt: 9}, Beyond: 1}
	var b bytes.Buffer
	for _, n := range []note{
		{Kind: noteHead, Node: "node", Boot: "boot", Clean: true},
		{Kind: noteAsked, Reservation: "one", Company: "acme", Agent: "ada", Project: "arm", Session: 4, Amount: 100,
			Until: 1_800_000_000_000},
		{Kind: noteMade, Reservation: "one", Amount: 80, Until: 1_800_000_000_000},
		{Kind: noteBegun, Reservation: "one", Call: &call}, {Kind: noteEnded, Reservation: "one", Call: &call},
		{Kind: noteUnsent, Reservation: "one", Calls: []string{"d"}}, {Kind: noteTold, Reservation: "one",
			Calls: []string{"c"}},
		{Kind: noteUnsure, Reservation: "one"}, {Kind: noteClosed, Reservation: "one"},
	} {
		b.WriteString(hex.EncodeToString(encodeNote(n)) + "\n")
	}
	kit.Golden(t, "journal.hex", b.String())
}

func FuzzDecodeNotes(f *testing.F) {
	f.Add(encodeNote(note{Kind: noteHead, Node: "n", Boot: "b"}))
	f.Add(append(encodeNote(note{Kind: noteAsked, Reservation: "r", Amount: 5}),
		encodeNote(note{Kind: noteUnsent, Reservation: "r", Calls: []string{"c"}})...))
	f.Fuzz(func(t *testing.T, b []byte) {
		notes, _ := decodeNotes(b)
		var again []byte
		for _, n := range notes {
			again = append(again, encodeNote(n)...)
		}
		back, broken := decodeNotes(again)
		if broken || len(back) != len(notes) {
			t.Fatalf("%d notes become %d", len(notes), len(back))
		}
		replay(notes)
	})
}

func BenchmarkReserveAndSettle(b *testing.B) {
	bk := newBank(b)
	p := bk.post(b, "one")
	ask := money.SpendAsk{Company: bk.company, Agent: bk.agent(b, "Ada"), Want: 1}
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	go func() { _ = p.purse.Run(ctx) }()
	for b.Loop() {
		g, err := p.purse.Reserve(ctx, ask)
		if err != nil {
			b.Fatal(err)
		}
		if err := p.purse.Settle(ctx, g, money.SpendUse{Cost: 1, Provider: "p", Model: "m"}); err != nil {
			b.Fatal(err)
		}
	}
}
