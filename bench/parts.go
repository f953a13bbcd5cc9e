package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// timed is a round with what it cost.
type timed struct {
	*result
	cpuMicros, syncs float64 // an operation; CPU of all nodes, syncs of one
}

// round measures f and what the nodes used meanwhile.
func (b *bench) round(ctx context.Context, clients int, d time.Duration, f op) timed {
	before := b.m.counters()
	r := measure(ctx, clients, d, f)
	after := b.m.counters()
	if r.n() == 0 && ctx.Err() == nil {
		b.fail(fmt.Errorf("nothing succeeded in a round of %s: %d conflicts, %d errors (%v)", d, r.conflicts,
			r.errors, r.last))
	}
	return timed{r, per(after.cpuMicros-before.cpuMicros, r.n()),
		per(after.syncs-before.syncs, r.n()) / float64(len(b.m.nodes))}
}

func (t timed) String() string {
	s := fmt.Sprintf("%.0f/s, p50 %s, p95 %s, p99 %s, %.0f µs CPU of all nodes an operation", t.rate(), t.quantile(.5),
		t.quantile(.95), t.quantile(.99), t.cpuMicros)
	if t.syncs >= 0.005 {
		s += fmt.Sprintf(", %.2f syncs a node", t.syncs)
	}
	if t.conflicts+t.errors > 0 {
		s += fmt.Sprintf(", %d conflicts, %d errors (%v)", t.conflicts, t.errors, t.last)
	}
	return s
}

// row measures f once and prints a line, unless the run ends meanwhile.
func (b *bench) row(ctx context.Context, what, want string, clients int, f op) timed {
	t := b.round(ctx, clients, b.Seconds, f)
	if ctx.Err() == nil {
		row(what, t.String(), want)
	}
	return t
}

// beside alternates rounds of ours and theirs and prints the medians and the
// ratio. Without a rival it measures ours alone.
func (b *bench) beside(ctx context.Context, what, whatTheirs, want string, clients, rounds int, ours op,
	theirs func(round int) op) {
	var o, t, ratio, cpu []float64
	for r := range rounds {
		own := b.round(ctx, clients, b.Seconds, ours)
		if ctx.Err() != nil {
			return
		}
		o, cpu = append(o, own.rate()), append(cpu, own.cpuMicros)
		line := fmt.Sprintf("round %d: %s %s", r+1, what, own)
		if b.rival != nil {
			e := measure(ctx, clients, b.Seconds, theirs(r))
			t, ratio = append(t, e.rate()), append(ratio, own.rate()/max(e.rate(), 1))
			line += fmt.Sprintf("; %s %.0f/s (p50 %s, p99 %s)", whatTheirs, e.rate(), e.quantile(.5), e.quantile(.99))
		}
		fmt.Println(line)
	}
	who := fmt.Sprintf(", %d clients", clients)
	row(what+who, spread(o, "/s"), "")
	row("CPU of all nodes an operation", spread(cpu, " µs"), "")
	if b.rival != nil {
		row(whatTheirs+who, spread(t, "/s"), "")
		row("ratio to etcd", spread(ratio, "x"), want)
	}
}

func create(ctx context.Context, b *bench) error {
	before := b.m.counters()
	began := time.Now()
	err := b.load.fill(ctx, b.Issues, b.Clients)
	took := time.Since(began)
	after := b.m.counters()
	row(fmt.Sprintf("POST issue, %d clients", b.Clients),
		fmt.Sprintf("%.0f/s, %.0f µs CPU of all nodes an operation, %d issues", float64(b.Issues)/took.Seconds(),
			per(after.cpuMicros-before.cpuMicros, b.Issues), b.Issues), "≥ 2000/s")
	return err
}

// race alternates rounds of claims on both systems.
func race(ctx context.Context, b *bench) error {
	b.beside(ctx, "checkout", "etcd claim", "≥ 1x, aim 2x", b.Clients, b.Rounds, b.load.checkout,
		func(r int) op { return b.rival.claim(r) })
	return nil
}

// one measures what one client waits for.
func one(ctx context.Context, b *bench) error {
	leader, err := b.m.leader(ctx)
	if err != nil {
		return err
	}
	follower := (leader + 1) % len(b.m.nodes)
	var ours, theirs []float64
	for r := range b.Rounds {
		o := measure(ctx, 1, b.Seconds/2, b.load.checkoutAt(leader))
		if ctx.Err() != nil {
			return nil // run says why
		}
		ours = append(ours, o.quantile(.5).Seconds()*1e3)
		if b.rival != nil {
			theirs = append(theirs, measure(ctx, 1, b.Seconds/2, b.rival.claim(1000+r)).quantile(.5).Seconds()*1e3)
		}
	}
	row("one client, checkout at the leader, p50", spread(ours, " ms"), "≤ 2 ms")
	if b.rival != nil {
		row("one client, etcd claim, p50", spread(theirs, " ms"), "")
	}
	b.row(ctx, "one client, checkout through a follower", "p50 ≤ 3 ms", 1, b.load.checkoutAt(follower))
	b.row(ctx, "one client, default read at a follower", "p50 ≤ 3 ms", 1, b.load.readAt(follower, "default"))
	b.row(ctx, "one client, strong read at a follower", "", 1, b.load.readAt(follower, "strong"))
	return nil
}

func reads(ctx context.Context, b *bench) error {
	b.row(ctx, "GET issue, 8 clients", "≥ 5000/s, p95 ≤ 5 ms", 8, b.load.readSpread("default"))
	b.row(ctx, fmt.Sprintf("GET issue, %d clients", b.Clients), "", b.Clients, b.load.readSpread("default"))
	b.beside(ctx, "strong read of an issue", "etcd linearizable get", "≥ 0.7x", b.Clients, min(b.Rounds, 3),
		b.load.readSpread("strong"), func(int) op { return b.rival.get })
	return nil
}

func lists(ctx context.Context, b *bench) error {
	small, err := b.small(ctx)
	if err != nil {
		return err
	}
	b.row(ctx, "list of 1,000 issues, one client", "p95 ≤ 25 ms, aim 10", 1,
		small.get("/api/companies/"+small.company+"/issues?limit=1000"))
	b.row(ctx, "list of 500 issues, one client", "", 1, small.get("/api/companies/"+small.company+"/issues?limit=500"))
	b.row(ctx, "list of 1,000 issues, 8 clients", "", 8, small.get("/api/companies/"+small.company+"/issues?limit=1000"))
	b.row(ctx, "dashboard, 8 clients", "", 8, small.get("/api/companies/"+small.company+"/dashboard"))
	return nil
}

// costs measures cost events, by agents with a live run, beside etcd's claims.
func costs(ctx context.Context, b *bench) error {
	l := b.load
	cost := func(ctx context.Context, w, i int) error {
		a := l.agents[w%len(l.agents)]
		return l.m.call(ctx, w%3, "POST", "/api/companies/"+l.company+"/cost-events", a.token, a.run, map[string]any{
			"agentId": a.id, "provider": "openai", "model": "gpt-5", "inputTokens": 1200, "outputTokens": 340, "costCents": 1,
			"occurredAt": time.Now().UTC().Format(time.RFC3339)}, nil)
	}
	// 5,000/s were asked for beside an etcd that made 6,200 claims a second.
	b.beside(ctx, "cost event", "etcd claim", "≥ 0.8x: 5000/s beside 6200/s", b.Clients, b.Rounds, cost,
		func(r int) op { return b.rival.claim(2000 + r) })
	b.row(ctx, "cost event, 8 clients", "", 8, cost)
	return nil
}

// writes measures the other hot writes: by the board, on issues that are not
// checked out, spread over the nodes.
func writes(ctx context.Context, b *bench) error {
	l := b.load
	var n atomic.Int64
	issue := func() string { return l.issues[len(l.issues)-1-int(n.Add(1))%len(l.issues)] }
	b.row(ctx, fmt.Sprintf("PATCH issue, %d clients", b.Clients), "as checkout", b.Clients,
		func(ctx context.Context, w, i int) error {
			return l.m.call(ctx, w%3, "PATCH", "/api/issues/"+issue(), "", "",
				map[string]any{"title": fmt.Sprintf("Mend it at last, try %d of %d", i, w)}, nil)
		})
	b.row(ctx, "PATCH issue, 8 clients", "", 8, func(ctx context.Context, w, i int) error {
		return l.m.call(ctx, w%3, "PATCH", "/api/issues/"+issue(), "", "",
			map[string]any{"title": fmt.Sprintf("Mend it at last, try %d of %d again", i, w)}, nil)
	})
	comment := func(ctx context.Context, w, i int) error {
		return l.m.call(ctx, w%3, "POST", "/api/issues/"+issue()+"/comments", "", "",
			map[string]any{"body": fmt.Sprintf("Client %d has looked at it %d times and found nothing yet.", w, i)}, nil)
	}
	b.row(ctx, fmt.Sprintf("comment, %d clients", b.Clients), "", b.Clients, comment)
	var wg sync.WaitGroup
	var good atomic.Int64
	var mu sync.Mutex
	var took []time.Duration
	for w := range 64 {
		wg.Go(func() {
			began := time.Now()
			if comment(ctx, w, 0) == nil {
				good.Add(1)
			}
			mu.Lock()
			took = append(took, time.Since(began))
			mu.Unlock()
		})
	}
	wg.Wait()
	row("64 comments at once on 64 issues", fmt.Sprintf("%d made, slowest %s", good.Load(), slices.Max(took).
		Round(time.Millisecond)), "64 made")
	return nil
}

// mcpCalls alternates the same read as an MCP tool call and as an HTTP call.
func mcpCalls(ctx context.Context, b *bench) error {
	l := b.load
	tool := func(ctx context.Context, w, i int) error {
		var answer struct {
			Result struct {
				IsError bool `json:"isError"`
			}
			Error json.RawMessage
		}
		err := l.m.call(ctx, 1, "POST", "/mcp", "", "", map[string]any{"jsonrpc": "2.0", "id": i, "method": "tools/call",
			"params": map[string]any{"name": "paperclipGetIssue",
				"arguments": map[string]any{"issueId": l.issues[i%len(l.issues)]}}}, &answer)
		if err == nil && (answer.Error != nil || answer.Result.IsError) {
			err = fmt.Errorf("the tool failed: %s", answer.Error)
		}
		return err
	}
	var plain, called, above []float64
	for range b.Rounds {
		p := measure(ctx, 1, b.Seconds/2, l.readAt(1, "default"))
		c := measure(ctx, 1, b.Seconds/2, tool)
		if c.n() == 0 {
			return fmt.Errorf("no MCP call succeeded: %w", c.last)
		}
		plain, called = append(plain, p.quantile(.5).Seconds()*1e3), append(called, c.quantile(.5).Seconds()*1e3)
		above = append(above, called[len(called)-1]-plain[len(plain)-1])
	}
	row("GET issue over HTTP, one client, p50", spread(plain, " ms"), "")
	row("GET issue over MCP, one client, p50", spread(called, " ms"), "")
	row("MCP call above the HTTP call", spread(above, " ms"), "≤ 2 ms")
	return nil
}

// crud is the specification's §15.4: a company of 1,000 tasks.
func crud(ctx context.Context, b *bench) error {
	small, err := b.small(ctx)
	if err != nil {
		return err
	}
	var made sync.Map
	kinds := []string{"create", "read", "update", "delete"}
	took := make([][]time.Duration, len(kinds))
	var mu sync.Mutex
	r := measure(ctx, 8, b.Seconds, func(ctx context.Context, w, i int) error {
		kind := i % len(kinds)
		id, _ := made.Load(w)
		path, in := "/api/issues/"+fmt.Sprint(id), any(nil)
		method := []string{"POST", "GET", "PATCH", "DELETE"}[kind]
		switch kind {
		case 0:
			path, in = "/api/companies/"+small.company+"/issues",
				map[string]any{"title": fmt.Sprintf("Task %d of client %d", i, w)}
		case 1:
			path += "?read=default"
		case 2:
			in = map[string]any{"priority": "high"}
		}
		var row struct{ ID string }
		began := time.Now()
		err := small.m.call(ctx, w%3, method, path, "", "", in, &row)
		if err == nil {
			mu.Lock()
			took[kind] = append(took[kind], time.Since(began))
			mu.Unlock()
			made.Store(w, row.ID)
		} else if kind == 1 && strings.Contains(err.Error(), "404") {
			return nil // a default read may be of a node that has not got so far
		}
		return err
	})
	for k, name := range kinds {
		t := &result{latencies: slices.Sorted(slices.Values(took[k])), wall: r.wall}
		row("1,000 tasks, 8 clients: "+name, fmt.Sprintf("%.0f/s, p50 %s, p95 %s", t.rate(), t.quantile(.5), t.quantile(.95)),
			"p95 < 250 ms")
	}
	if r.errors > 0 {
		fmt.Printf("# %d errors, the last: %v\n", r.errors, r.last)
	}
	var acks []time.Duration
	for range 20 {
		began := time.Now()
		if err := small.m.call(ctx, 0, "POST", "/api/agents/"+small.agents[0].id+"/heartbeat/invoke", "", "",
			map[string]any{}, nil); err != nil {
			return err
		}
		acks = append(acks, time.Since(began))
	}
	rowDurations("invoke acknowledged", acks, "< 2 s")
	return nil
}

// scale compares reads of a large company with the same reads of a small one.
func scale(ctx context.Context, b *bench) error {
	small, err := b.small(ctx)
	if err != nil {
		return err
	}
	n, err := b.load.grow(ctx, b.Entries)
	if err != nil {
		return err
	}
	row("the large company", fmt.Sprintf("%d issues, about %d activity entries", len(b.load.issues), n), "")
	for _, q := range []struct{ name, path string }{
		{"GET issue", ""},
		{"list of 1,000 issues", "/issues?limit=1000"},
		{"list of todo issues, 100", "/issues?status=todo&limit=100"},
		{"activity, newest 100", "/activity?limit=100"},
		{"activity of an agent, 100", "/activity?limit=100&agentId=AGENT"},
		{"activity of an issue", "/activity?entityType=issue&entityId=ISSUE"},
		{"dashboard", "/dashboard"},
	} {
		var times [2]*result
		var ratio []float64
		for range min(b.Rounds, 3) {
			for k, l := range []*workload{small, b.load} {
				f := l.readAt(0, "default")
				if q.path != "" {
					f = l.get("/api/companies/" + l.company + strings.NewReplacer("AGENT", l.agents[0].id, "ISSUE", l.issues[0]).
						Replace(q.path))
				}
				times[k] = measure(ctx, 1, b.Seconds/5, f)
				if times[k].n() == 0 {
					return fmt.Errorf("%s: no answer: %w", q.name, times[k].last)
				}
			}
			ratio = append(ratio, times[1].quantile(.5).Seconds()/max(times[0].quantile(.5).Seconds(), 1e-5))
		}
		row(q.name+", large to small", fmt.Sprintf("%s; p50 %s beside %s", spread(ratio, "x"), times[1].quantile(.5),
			times[0].quantile(.5)), "≤ 2x")
	}
	mem, err := b.m.memory()
	row("memory of a node then (RSS)", mem, "bounded")
	return err
}

func failover(ctx context.Context, b *bench) error { return b.m.failover(ctx, b.Kills, b.load) }
func deaths(ctx context.Context, b *bench) error   { return b.m.deaths(ctx, b.Deaths) }
func quiet(ctx context.Context, b *bench) error {
	if b.Quiet <= 0 {
		return nil
	}
	return b.m.falseDeaths(ctx, b.Quiet)
}

// small returns the company of 1,000 issues, with as many agents as the large one.
func (b *bench) small(ctx context.Context) (*workload, error) {
	if b.m.small != nil {
		return b.m.small, nil
	}
	l, err := b.m.prepare(ctx, b.Clients)
	if err != nil {
		return nil, err
	}
	b.m.small = l
	return l, l.fill(ctx, 1000, 8)
}

// blocked is how many issues wait for each of the blockers of a round of grow.
const (
	growBlockers = 50
	growBlocked  = 250
)

// grow brings the activity of the company to about n entries: deleting an issue
// that others wait for is a line of each of them.
func (l *workload) grow(ctx context.Context, n int) (int, error) {
	have := len(l.issues) + int(l.next.Load())
	for round := 0; have < n; round++ {
		blockers := make([]string, growBlockers)
		err := l.each(ctx, len(blockers), func(w, i int) error {
			var row struct{ ID string }
			err := l.m.call(ctx, w%3, "POST", "/api/companies/"+l.company+"/issues", "", "",
				map[string]any{"title": fmt.Sprintf("Decision %d of round %d", i, round)}, &row)
			blockers[i] = row.ID
			return err
		})
		if err != nil {
			return have, err
		}
		at := round * growBlocked
		if err := l.each(ctx, growBlocked, func(w, i int) error {
			return l.m.call(ctx, w%3, "PATCH", "/api/issues/"+l.issues[(at+i)%len(l.issues)], "", "",
				map[string]any{"blockedByIssueIds": blockers}, nil)
		}); err != nil {
			return have, err
		}
		if err := l.each(ctx, len(blockers), func(w, i int) error {
			return l.m.call(ctx, w%3, "DELETE", "/api/issues/"+blockers[i], "", "", nil, nil)
		}); err != nil {
			return have, err
		}
		have += growBlockers*(growBlocked+2) + growBlocked
	}
	return have, nil
}

// each calls f for 0 … n-1 from a few clients.
func (l *workload) each(ctx context.Context, n int, f func(w, i int) error) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, 16)
	for w := range errs {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[w] == nil && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				errs[w] = f(w, i)
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}
