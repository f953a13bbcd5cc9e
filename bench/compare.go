package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	otherHTTPPort = 23300
	otherMeshPort = 29670
	// turnOps is how many operations of each kind a turn has, so that both meshes do
	// the same and have the same state after each round.
	turnOps = 6_000
	// After a turn its nodes flush and compact what they wrote. The other's turn begins
	// when they rest: when they took less than restPart of a core for restLook, or after
	// restMost.
	restLook = 300 * time.Millisecond
	restPart = 0.1
	restMost = 10 * time.Second
	// turnTries bounds how often an operation is tried again.
	turnTries = 5
)

// comparePart lets a mesh of this binary and one of another take turns: a round is
// a turn of each, which of them first alternates, and its ratio does not mind what else the
// machine does for longer than two turns.
func comparePart(ctx context.Context, b *bench) (err error) {
	if b.Other == "" {
		fmt.Println("# part compare needs -other, the binary to compare with")
		return nil
	}
	var both [2]*mesh
	for i, bin := range []string{b.Bin, b.Other} {
		c := b.Config
		c.Bin = bin
		m, startErr := startMeshAs(ctx, c, fmt.Sprint("compare-", i), otherHTTPPort+10*i, otherMeshPort+10*i)
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, m.down()) }()
		both[i] = m
	}
	var loads [2]*workload
	for i, m := range both {
		company, _, err := m.staff(ctx, 0, "Turns", "")
		if err != nil {
			return err
		}
		loads[i] = &workload{m: m, company: company}
	}
	kinds := []string{"POST issue", "PATCH issue", "comment"}
	var whole [2][]float64 // CPU of a round with what came after it, in µs an operation
	ratios, costs := map[string][]float64{}, map[string][]float64{}
	rates, cpu := [2]map[string][]float64{{}, {}}, [2]map[string][]float64{{}, {}}
	for round := range b.Rounds {
		var now, micros [2]map[string]float64
		for turn := range both {
			i := (turn + round) % 2
			before := both[i].counters().cpuMicros
			if now[i], micros[i], err = loads[i].turn(ctx, b.Clients); err != nil {
				return err
			}
			if err := both[i].rest(ctx); err != nil {
				return err
			}
			whole[i] = append(whole[i], (both[i].counters().cpuMicros-before)/float64(turnOps*len(kinds)))
		}
		line := fmt.Sprintf("round %d:", round+1)
		for _, k := range kinds {
			ratios[k] = append(ratios[k], now[0][k]/now[1][k])
			costs[k] = append(costs[k], micros[0][k]/micros[1][k])
			for i := range both {
				rates[i][k], cpu[i][k] = append(rates[i][k], now[i][k]), append(cpu[i][k], micros[i][k])
			}
			line += fmt.Sprintf(" %s %.0f and %.0f/s (%.2fx);", k, now[0][k], now[1][k], now[0][k]/now[1][k])
		}
		mem, _ := both[0].memory()
		other, _ := both[1].memory()
		fmt.Println(strings.TrimSuffix(line, ";"), "memory", mem, "and", other)
	}
	for _, k := range kinds {
		row(k+", to the other binary", fmt.Sprintf("%s of %s", spread(ratios[k], "x"), spread(rates[1][k], "/s")),
			"≥ 0.97x")
		row("CPU of all nodes for it, to the other's", fmt.Sprintf("%s of %s", spread(costs[k], "x"),
			spread(cpu[1][k], " µs")), "")
	}
	for i := range whole[0] {
		whole[0][i] /= whole[1][i]
	}
	row("CPU of all nodes with what comes after, to the other's", fmt.Sprintf("%s of %s", spread(whole[0], "x"),
		spread(whole[1], " µs")), "")
	return nil
}

// rest waits until the nodes have little to do.
func (m *mesh) rest(ctx context.Context) error {
	for began := time.Now(); time.Since(began) < restMost; {
		before := m.counters().cpuMicros
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(restLook):
		}
		if m.counters().cpuMicros-before < restPart*float64(restLook.Microseconds()) {
			return nil
		}
	}
	return nil
}

// turn makes issues, changes them and comments on them, and returns how many of each
// a second, and their CPU. It needs no runs, which a machine with too much to do loses.
func (l *workload) turn(ctx context.Context, clients int) (rate, micros map[string]float64, err error) {
	rate, micros = map[string]float64{}, map[string]float64{}
	made := make([]string, turnOps)
	path := "/api/companies/" + l.company + "/issues"
	text := strings.Repeat("It fails once in forty runs; find out why and mend it. ", 10)
	for _, k := range []struct {
		name string
		do   op // of client w, the i-th of all
	}{
		{"POST issue", func(ctx context.Context, w, i int) error {
			var row struct{ ID string }
			err := l.m.call(ctx, w%3, "POST", path, "", "", map[string]any{"title": fmt.Sprintf("Fix test number %d", i),
				"description": text, "status": "todo", "priority": "medium"}, &row)
			made[i] = row.ID
			return err
		}},
		{"PATCH issue", func(ctx context.Context, w, i int) error {
			return l.m.call(ctx, w%3, "PATCH", "/api/issues/"+made[i], "", "",
				map[string]any{"title": fmt.Sprintf("Mend test number %d", i)}, nil)
		}},
		{"comment", func(ctx context.Context, w, i int) error {
			return l.m.call(ctx, w%3, "POST", "/api/issues/"+made[i]+"/comments", "", "",
				map[string]any{"body": "Somebody has looked at it and found nothing yet."}, nil)
		}},
	} {
		before, began := l.m.counters(), time.Now()
		if err := share(ctx, turnOps, clients, k.do); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", k.name, err)
		}
		rate[k.name] = turnOps / time.Since(began).Seconds()
		micros[k.name] = (l.m.counters().cpuMicros - before.cpuMicros) / turnOps
	}
	return rate, micros, nil
}

// share has n operations done by some clients; what fails several times ends it.
func share(ctx context.Context, n, clients int, f op) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, clients)
	for w := range clients {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[w] == nil && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				for try := 0; ; try++ { // the leader may change
					if errs[w] = f(ctx, w, i); errs[w] == nil || try == turnTries {
						break
					}
					time.Sleep(time.Second)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}
