package testnet

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// How long nodes are killed, and how many agents have a run at once. make soak
// asks for ten minutes and 200.
const (
	chaosFor    = 30 * time.Second
	chaosAgents = 40
)

// A worker that says outside, once each, that it began and that it had its
// effect. Its environment and argv carry the mark by which it is found.
const chaosWorker = `echo "began $PAPERCLIP_RUN_ID" >> "$EFFECTS"; sleep $SPAN; echo "did $PAPERCLIP_RUN_ID" >> ` +
	`"$EFFECTS"`

// effects is how often each run began and had its effect, by its own account.
func effects(t *testing.T, file string) (began, did map[string]int) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	began, did = map[string]int{}, map[string]int{}
	for s := bufio.NewScanner(f); s.Scan(); {
		switch what, run, _ := strings.Cut(s.Text(), " "); what {
		case "began":
			began[run]++
		case "did":
			did[run]++
		default:
			t.Errorf("torn line %q", s.Text())
		}
	}
	return began, did
}

// marked counts the processes whose environment holds the mark.
func marked(mark string) (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(mark)) {
			pids = append(pids, filepath.Base(filepath.Dir(f)))
		}
	}
	return pids
}

// Nodes are killed at random under many runs. Every run that was promised ends
// in exactly one final state, the same on all nodes; none began twice; whatever
// says succeeded had its effect once; what had its effect and does not say so
// was on a node that was killed; no process is left over.
func TestRunsUnderKills(t *testing.T) {
	long, most, seed := chaosFor, chaosAgents, uint64(time.Now().UnixNano())
	if s := os.Getenv("SELVAGE_CHAOS"); s != "" {
		var err error
		if long, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
		most = 200
	}
	if s := os.Getenv("SELVAGE_CHAOS_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SELVAGE_CHAOS_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	flags := []string{fmt.Sprintf("--slots=%d", most), "--log-level=warn"}
	p := processes(t, flags...)
	file := filepath.Join(t.TempDir(), "effects")
	mark := "EFFECTS=" + file
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	company, _ := newIssue(t, p)
	agents := make([]string, most)
	var wg sync.WaitGroup
	for i := range agents {
		wg.Go(func() {
			var a answer
			must(t, p, "POST", "/api/companies/"+string(company)+"/agents", map[string]any{"name": fmt.Sprintf("Agent %d", i),
				"adapterType": "process", "adapterConfig": map[string]any{
					"command": "/bin/sh", "args": []string{"-c", chaosWorker}, "env": map[string]any{"EFFECTS": file,
						"SPAN": fmt.Sprint(3 + i%7)}}}, &a)
			agents[i] = a.ID
		})
	}
	wg.Wait()

	// Each agent is invoked, its run awaited, and so on, through any node.
	var mu sync.Mutex
	promised := map[string]bool{}
	ctx, stop := context.WithTimeout(t.Context(), long)
	defer stop()
	var live atomic.Int64
	var peak int64
	for i, a := range agents {
		wg.Go(func() {
			for try := i; ctx.Err() == nil; try++ {
				var run answer
				one, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				_, err := p.Nodes[try%3].Call(one, "POST", "/api/agents/"+a+"/heartbeat/invoke", map[string]any{}, &run,
					"Idempotency-Key", fmt.Sprint(a, try))
				cancel()
				if err != nil || run.ID == "" {
					time.Sleep(200 * time.Millisecond)
					continue
				}
				mu.Lock()
				promised[run.ID] = true
				mu.Unlock()
				live.Add(1)
				for ctx.Err() == nil {
					time.Sleep(300 * time.Millisecond)
					var row answer
					one, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					_, err := p.Nodes[(try+1)%3].Call(one, "GET", "/api/heartbeat-runs/"+run.ID, nil, &row,
						"X-Selvage-Read", "default")
					cancel()
					if err == nil && over(row.Status) {
						break
					}
					try++
				}
				live.Add(-1)
			}
		})
	}
	kills := 0
	for ctx.Err() == nil {
		pause(ctx, time.Duration(1500+rng.IntN(3500))*time.Millisecond)
		peak = max(peak, live.Load())
		n := p.Nodes[rng.IntN(3)].Name
		if ctx.Err() != nil || p.Kill(n) != nil {
			break
		}
		kills++
		pause(ctx, time.Duration(500+rng.IntN(4500))*time.Millisecond)
		if err := p.Start(t.Context(), n, flags...); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()

	// Whatever is under way comes to its end.
	within(3*time.Minute).Until(t, "all runs are over", func() bool {
		var rows []answer
		must(t, p, "GET", "/api/companies/"+string(company)+"/live-runs", nil, &rows)
		return len(rows) == 0
	})
	heads(t, p)
	began, did := effects(t, file)
	ids := map[string]bool{}
	for _, m := range []map[string]int{began, did} {
		for id := range m {
			ids[id] = true
		}
	}
	for id := range promised {
		ids[id] = true
	}
	states := map[string]int{}
	unsaid := 0
	for id := range ids {
		status := ""
		for _, n := range p.Nodes {
			var row struct{ Status, ErrorCode string }
			if _, err := n.Call(t.Context(), "GET", "/api/heartbeat-runs/"+id, nil, &row, "X-Selvage-Read",
				"default"); err != nil {
				t.Fatalf("run %s (promised: %t): %v", id, promised[id], err)
			}
			if !over(row.Status) || cmp.Or(status, row.Status) != row.Status {
				t.Errorf("run %s is %s on %s, %s elsewhere", id, row.Status, n.Name, status)
			}
			status = row.Status
		}
		states[status]++
		switch {
		case began[id] > 1 || did[id] > 1:
			t.Errorf("run %s, %s, began %d times and had its effect %d times", id, status, began[id], did[id])
		case status == "succeeded" && did[id] != 1:
			t.Errorf("run %s says succeeded and had its effect %d times", id, did[id])
		case status != "succeeded" && did[id] == 1:
			unsaid++
			if status != "interrupted" {
				t.Errorf("run %s had its effect and is %s", id, status)
			}
		}
	}
	within(30*time.Second).Until(t, "the last process is gone", func() bool { return len(marked(mark)) == 0 })
	t.Logf("%d kills in %s; up to %d runs at once; %d runs promised, %d with their retries: %v; %d effects, %d "+
		"of them of runs that were cut off before they could say so; 0 processes left", kills, long, peak,
		len(promised), len(ids), states, len(did), unsaid)
	if states["succeeded"]+unsaid != len(did) || states["succeeded"] == 0 || kills == 0 {
		t.Errorf("%d succeeded and %d were cut off after their effect; there are %d effects, %d kills", states["succeeded"],
			unsaid, len(did), kills)
	}
}

func over(status string) bool {
	switch status {
	case "succeeded", "failed", "cancelled", "timed_out", "interrupted":
		return true
	}
	return false
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
