package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// starvedWriters write beside the runs, each with a rest of starvedRest, so that
	// it is the nodes that wait for a processor and not a queue.
	starvedWriters = 6
	starvedRest    = 100 * time.Millisecond
	// starvedLoop is what each run does: it uses all of a processor that it gets, and
	// says so now and then.
	starvedLoop = `while :; do i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo working; done`
	// settled bounds the wait until all runs are at work before the hogs start.
	settled = 2 * time.Minute
)

// starved measures a mesh whose machine is overloaded: hogs beside it, and runs
// at work that use what they get. Nothing may be lost, and it goes on writing.
func starved(ctx context.Context, b *bench) error {
	m := b.m
	company, agents, err := m.staff(ctx, b.StarvedRuns, "Worker", "sh", "-c", starvedLoop)
	if err != nil {
		return err
	}
	for i, a := range agents {
		if err := m.call(ctx, i%len(m.nodes), "PATCH", "/api/agents/"+a, "", "", map[string]any{
			"adapterConfig": map[string]any{"command": "sh", "args": []string{"-c", starvedLoop}, "timeoutSec": sleeperSeconds}},
			nil); err != nil {
			return err
		}
		if err := m.call(ctx, i%len(m.nodes), "POST", "/api/agents/"+a+"/heartbeat/invoke", "", "", map[string]any{},
			nil); err != nil {
			return err
		}
	}
	for began := time.Now(); ; time.Sleep(time.Second) {
		rows, err := m.runsOf(ctx, company)
		if err == nil && count(rows, "running") == b.StarvedRuns {
			break
		}
		if time.Since(began) > settled {
			return fmt.Errorf("not all of %d runs are at work after %s: %v, %w", b.StarvedRuns, settled, statuses(rows), err)
		}
	}
	goals := make([]string, starvedWriters)
	for i := range goals {
		var row struct{ ID string }
		if err := m.call(ctx, i%len(m.nodes), "POST", "/api/companies/"+company+"/goals", "", "",
			map[string]any{"title": "Keep going"}, &row); err != nil {
			return err
		}
		goals[i] = row.ID
	}
	term, changes := m.terms()
	stop := hogs(b.Hogs)
	late := newLateness()
	written := measure(ctx, starvedWriters, b.Starved, func(ctx context.Context, w, i int) error {
		defer time.Sleep(starvedRest)
		return m.call(ctx, w%len(m.nodes), "PATCH", "/api/goals/"+goals[w], "", "",
			map[string]any{"title": fmt.Sprintf("Keep going, for the time %d", i)}, nil)
	})
	load := loadavg()
	own := late.stop()
	lastTerm, lastChanges := m.terms()
	rows, err := m.runsOf(ctx, company)
	stop()
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s, %d hogs a core, %d runs", b.Starved, b.Hogs, b.StarvedRuns)
	row("starved: "+what, "load "+load, "")
	row("runs lost", fmt.Sprintf("%d (%v)", len(rows)-count(rows, "running"), statuses(rows)), "0")
	row("changes of leader; terms", fmt.Sprintf("%.0f; %.0f", lastChanges-changes, lastTerm-term), "≤ 1")
	row("writes beside it", fmt.Sprintf("%d, %.1f/s, p50 %s, p99 %s, worst %s, %d refused, %d errors (%v)", written.n(),
		written.rate(), written.quantile(.5), written.quantile(.99), written.quantile(1), written.conflicts, written.errors,
		written.last), "p99 ≤ 2 s")
	row("of which who asks waited for a processor", fmt.Sprintf("p50 %s, p99 %s", own.quantile(.5), own.quantile(.99)), "")
	for _, r := range rows {
		if r.Status != "running" && r.Error != "" {
			fmt.Printf("# run %s is %s: %s\n", r.ID, r.Status, r.Error)
		}
	}
	for _, a := range agents { // what comes after is measured without them
		if err := m.call(ctx, 0, "POST", "/api/agents/"+a+"/pause", "", "", map[string]any{}, nil); err != nil {
			return err
		}
	}
	return nil
}

type starvedRun struct{ ID, Status, Error, ErrorCode string }

// runsOf are all runs of a company, also those that were begun in place of others.
func (m *mesh) runsOf(ctx context.Context, company string) (rows []starvedRun, err error) {
	for try := range 10 {
		if err = m.call(ctx, try%len(m.nodes), "GET", "/api/companies/"+company+"/heartbeat-runs?limit=1000", "", "", nil,
			&rows); err == nil {
			return rows, nil
		}
	}
	return nil, err
}

func count(rows []starvedRun, status string) (n int) {
	for _, r := range rows {
		if r.Status == status {
			n++
		}
	}
	return n
}

func statuses(rows []starvedRun) string {
	by := map[string]int{}
	for _, r := range rows {
		by[strings.TrimSpace(r.Status+" "+r.ErrorCode)]++
	}
	var out []string
	for _, s := range slices.Sorted(maps.Keys(by)) {
		out = append(out, fmt.Sprint(by[s], " ", s))
	}
	return strings.Join(out, ", ")
}

// terms are the highest term of a node, and the most changes of leader that one saw.
func (m *mesh) terms() (term, changes float64) {
	for i := range m.nodes {
		term = max(term, m.metric(i, "selvage_raft_term"))
		changes = max(changes, m.metric(i, "selvage_raft_leader_changes_total"))
	}
	return term, changes
}

func loadavg() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(b))[:1], "")
}

// A lateness measures how late this process' own timers fire: the writers wait as
// long for a processor as anybody.
type lateness struct {
	end  chan struct{}
	done sync.WaitGroup
	result
}

func newLateness() *lateness {
	l := &lateness{end: make(chan struct{})}
	l.done.Go(func() {
		for {
			due := time.Now().Add(starvedRest)
			select {
			case <-l.end:
				return
			case <-time.After(starvedRest):
				l.latencies = append(l.latencies, time.Since(due))
			}
		}
	})
	return l
}

func (l *lateness) stop() *result {
	close(l.end)
	l.done.Wait()
	slices.Sort(l.latencies)
	return &l.result
}
