package testkit

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/node"
)

// Gateways on three nodes spend as fast as they are let, while one of the nodes
// is cut off for longer than its lease and another is killed in the middle of its
// calls and started again. What really went to the upstream may never exceed the
// limit, and when all have told, it is booked.
func TestMeteredSpendingThroughAPartition(t *testing.T) {
	t.Parallel()
	const limit = 2_000 // cents
	cut := &Cut{}
	b := Mesh(t, 3, func(i int, c *node.Config) {
		c.Lease = 6 * time.Second
		if i == 2 {
			c.Conn = cut
		}
	})
	of := b.Company("Acme")
	var agents []Agent
	for _, name := range []string{"Ada", "Bob"} {
		a, err := b.Hire(0, of, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		agents = append(agents, a)
	}
	b.Must(0, "POST", "/api/companies/"+string(of)+"/budgets/policies",
		map[string]any{"scopeType": "company", "scopeId": of, "windowKind": "calendar_month_utc", "amount": limit}, nil)

	var upstream atomic.Int64 // what really was spent, micro-cents
	var worst atomic.Int64
	worst.Store(-int64(core.Cents(limit)))
	var calls, refused atomic.Int64
	spend := func(ctx context.Context, on int, rng *rand.Rand) {
		p := b.Nodes[on].Purse()
		for ctx.Err() == nil {
			g, err := p.Reserve(ctx, money.SpendAsk{Company: of, Agent: agents[rng.IntN(2)].ID, Want: core.Cents(6),
				Least: core.Cents(1)})
			if err != nil {
				refused.Add(1)
				time.Sleep(20 * time.Millisecond)
				continue
			}
			cost := core.Money(rng.Int64N(int64(g.Amount) + 1))
			calls.Add(1)
			for now, old := upstream.Add(int64(cost))-int64(core.Cents(limit)), worst.Load(); now > old &&
				!worst.CompareAndSwap(old, now); old = worst.Load() {
			}
			time.Sleep(time.Duration(rng.IntN(120)) * time.Millisecond)
			_ = p.Settle(ctx, g, money.SpendUse{Provider: "p", Model: "m", Cost: cost})
		}
	}
	var wg sync.WaitGroup
	start := func(on int) context.CancelFunc {
		ctx, stop := context.WithCancel(t.Context())
		for k := range 4 {
			wg.Go(func() { spend(ctx, on, rand.New(rand.NewPCG(uint64(on), uint64(k)))) })
		}
		return stop
	}
	stops := []context.CancelFunc{start(0), start(1), start(2)}
	time.Sleep(time.Second)
	cut.Off()
	time.Sleep(500 * time.Millisecond)
	b.Kill(1) // a majority is gone: nobody is granted anything beyond what is held
	stops[1]()
	time.Sleep(time.Second)
	b.Restart(1)
	stops[1] = start(1)
	time.Sleep(7 * time.Second) // the one that is cut off is lost
	cut.On()
	time.Sleep(3 * time.Second)
	for deadline := time.Now().Add(settle); upstream.Load() < int64(core.Cents(limit/2)) && time.Now().
		Before(deadline); { // a busy machine takes longer to come near the limit
		time.Sleep(poll)
	}
	for _, stop := range stops {
		stop()
	}
	wg.Wait()

	// What is not told is held, and goes when its node tells or a person writes it off.
	type row struct {
		ID              string
		Held            int64
		Lost, Uncertain bool
	}
	b.Until("nothing is held but what is lost", func() bool {
		var rows []row
		if _, err := b.Do(0, "GET", "/api/companies/"+string(of)+"/budgets/reservations", nil, &rows, Strong...); err != nil {
			return false
		}
		for _, r := range rows {
			if r.Uncertain {
				b.Must(0, "POST", "/api/companies/"+string(of)+"/budgets/reservations/"+r.ID+"/write-off", map[string]any{}, nil)
			}
		}
		return len(rows) == 0
	})
	var sum struct{ SpendCents int64 }
	b.Must(0, "GET", "/api/companies/"+string(of)+"/costs/summary", nil, &sum, Strong...)
	t.Logf("%d calls, %d refused; upstream %d micro-cents, booked %d cents of %d; worst overspend of metered "+
		"calls: %d micro-cents (closest: %d below the limit)", calls.Load(), refused.Load(), upstream.Load(),
		sum.SpendCents, limit, max(worst.Load(), 0), max(-worst.Load(), 0))
	if worst.Load() > 0 {
		t.Errorf("overspent by %d micro-cents", worst.Load())
	}
	if real := core.Money(upstream.Load()).Cents(); sum.SpendCents < real || sum.SpendCents > limit {
		t.Errorf("booked %d cents, spent %d, limit %d", sum.SpendCents, real, limit)
	}
	if refused.Load() == 0 || upstream.Load() < int64(core.Cents(limit/2)) {
		t.Error("the limit was never near; the test shows nothing")
	}
}
