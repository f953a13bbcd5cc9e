package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	startsMeasured = 60                     // invocations whose child tells when it began
	startPause     = 100 * time.Millisecond // after each of them
	steadyRuns     = 1000                   // runs of /bin/true on one node, one every 60 ms
	idleAgents     = 10_000                 // in companies of companyAgents
	companyAgents  = 2_000                  // the most that a company may have
	idleWatch      = 30 * time.Second       // how long the nodes are watched with them
)

// staff makes agents in a company of their own and returns its ID and theirs.
func (m *mesh) staff(ctx context.Context, n int, name, command string, args ...string) (company string, agents []string,
	err error) {
	var row struct{ ID string }
	if err := m.call(ctx, 0, "POST", "/api/companies", "", "", map[string]any{"name": name}, &row); err != nil {
		return "", nil, err
	}
	company, agents = row.ID, make([]string, n)
	err = (&workload{m: m}).each(ctx, n, func(w, i int) error {
		var row struct{ ID string }
		err := m.call(ctx, w%len(m.nodes), "POST", "/api/companies/"+company+"/agents", "", "",
			map[string]any{"name": fmt.Sprint(name, " ", i), "adapterType": "process",
				"adapterConfig": map[string]any{"command": command, "args": args}}, &row)
		agents[i] = row.ID
		return err
	})
	return company, agents, err
}

// a runRow is what the parts below look at of a run.
type runRow struct {
	ID, Status, NodeID    string
	CreatedAt, FinishedAt time.Time
}

// ended waits until a run is over.
func (m *mesh) ended(ctx context.Context, node int, run string) (row runRow, err error) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if err := m.call(ctx, node, "GET", "/api/heartbeat-runs/"+run, "", "", nil, &row); err != nil {
			return row, err
		}
		if !row.FinishedAt.IsZero() {
			return row, nil
		}
	}
	return row, fmt.Errorf("run %s is %s after a minute", run, row.Status)
}

// runs measures how soon a child starts, and whether one node keeps up.
func runs(ctx context.Context, b *bench) error {
	if err := b.m.starts(ctx); err != nil {
		return err
	}
	return b.m.steady(ctx)
}

// starts measures how soon a child starts on the node that was asked, and on another.
func (m *mesh) starts(ctx context.Context) error {
	_, agents, err := m.staff(ctx, 8, "Starter", "/bin/date", "+%s%N")
	if err != nil {
		return err
	}
	var here, there []time.Duration
	for i := range startsMeasured {
		asked := i % len(m.nodes)
		var run struct{ ID string }
		began := time.Now()
		if err := m.call(ctx, asked, "POST", "/api/agents/"+agents[i%len(agents)]+"/heartbeat/invoke", "", "",
			map[string]any{}, &run); err != nil {
			return err
		}
		time.Sleep(startPause) // who asks whether it has ended takes the cores from it
		row, err := m.ended(ctx, asked, run.ID)
		if err != nil {
			return err
		}
		var log struct{ Content string }
		if err := m.call(ctx, asked, "GET", "/api/heartbeat-runs/"+run.ID+"/log", "", "", nil, &log); err != nil {
			return err
		}
		at, ok := told(log.Content)
		if !ok {
			return fmt.Errorf("run %s, %s, does not tell when its child began: %q", run.ID, row.Status, log.Content)
		}
		if row.NodeID == m.nodes[asked].ID {
			here = append(here, at.Sub(began))
		} else {
			there = append(there, at.Sub(began))
		}
	}
	for _, t := range []struct {
		name string
		took []time.Duration
	}{{"invoke to the child's first instruction, same node", here},
		{"invoke to the child's first instruction, another", there}} {
		r := &result{latencies: slices.Sorted(slices.Values(t.took))}
		row(t.name, fmt.Sprintf("p50 %s, p95 %s, n=%d", r.quantile(.5), r.quantile(.95), r.n()), "p50 ≤ 20 ms")
	}
	return nil
}

// steady measures whether one node carries out what three are asked for.
func (m *mesh) steady(ctx context.Context) error {
	for _, n := range m.nodes[1:] {
		if err := m.call(ctx, 0, "POST", "/api/v1/mesh/nodes/"+n.ID+"/cordon", "", "", map[string]any{}, nil); err != nil {
			return err
		}
	}
	company, agents, err := m.staff(ctx, 50, "Runner", "/bin/true")
	if err != nil {
		return err
	}
	began, late := time.Now(), time.Duration(0)
	ids := make([]string, steadyRuns)
	err = (&workload{m: m}).each(ctx, steadyRuns, func(w, i int) error {
		due := began.Add(time.Duration(i) * time.Minute / steadyRuns)
		time.Sleep(time.Until(due))
		var run struct{ ID string }
		err := m.call(ctx, w%len(m.nodes), "POST", "/api/agents/"+agents[i%len(agents)]+"/heartbeat/invoke", "", "",
			map[string]any{}, &run)
		ids[i] = run.ID
		return err
	})
	if err != nil {
		return err
	}
	asked := time.Now()
	for {
		var live []struct{ ID string }
		if err := m.call(ctx, 0, "GET", "/api/companies/"+company+"/live-runs", "", "", nil, &live); err != nil {
			return err
		}
		if late = time.Since(asked); len(live) == 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	var took []time.Duration
	distinct, succeeded := map[string]bool{}, 0
	for _, id := range ids {
		if distinct[id] {
			continue
		}
		distinct[id] = true
		row, err := m.ended(ctx, 0, id)
		if err != nil {
			return err
		}
		if row.Status == "succeeded" && row.NodeID == m.nodes[0].ID {
			succeeded++
		}
		took = append(took, row.FinishedAt.Sub(row.CreatedAt))
	}
	r := &result{latencies: slices.Sorted(slices.Values(took))}
	row("1,000 runs of /bin/true a minute on one node", fmt.Sprintf("%d in %s, p50 %s, p95 %s, the last over after %s",
		succeeded, asked.Sub(began).Round(time.Second),
		r.quantile(.5), r.quantile(.95), late.Round(time.Millisecond)), "keeps up")
	for _, n := range m.nodes[1:] {
		err = errors.Join(err, m.call(ctx, 0, "POST", "/api/v1/mesh/nodes/"+n.ID+"/uncordon", "", "", map[string]any{}, nil))
	}
	return err
}

// told finds the nanoseconds since 1970 that a child wrote to its log.
func told(log string) (time.Time, bool) {
	for line := range strings.Lines(log) {
		var l struct{ Stream, Chunk string }
		if json.Unmarshal([]byte(line), &l) != nil || l.Stream != "stdout" {
			continue
		}
		if ns, err := strconv.ParseInt(strings.TrimSpace(l.Chunk), 10, 64); err == nil {
			return time.Unix(0, ns), true
		}
	}
	return time.Time{}, false
}

// agents measures what ten thousand agents that have nothing to do cost.
func agents(ctx context.Context, b *bench) error {
	m := b.m
	time.Sleep(idleWatch / 3)
	before, err := m.memory()
	if err != nil {
		return err
	}
	for i := range idleAgents / companyAgents {
		if _, _, err := m.staff(ctx, companyAgents, fmt.Sprint("Idle ", i+1), "/bin/true"); err != nil {
			return err
		}
	}
	time.Sleep(2 * idleWatch) // what came with making them is collected, compacted and given back
	cpu := make([]float64, len(m.nodes))
	for i, n := range m.nodes {
		cpu[i] = cpuMicros(n.PID)
	}
	time.Sleep(idleWatch)
	var share []float64
	for i, n := range m.nodes {
		share = append(share, (cpuMicros(n.PID)-cpu[i])/float64(idleWatch.Microseconds())*100)
	}
	after, err := m.memory()
	row("10,000 idle agents: CPU of a node, of one core", spread(share, " %"), "< 5 %")
	row("memory of a node (RSS), without and with them", before+"; "+after, "≤ 20 KB each")
	return err
}
