package testnet

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// A mesh on a machine that is overloaded, with four hogs a core beside runs that
// use all they get, loses none of them, keeps its leader but for a change or two,
// and takes writes. It is a short form of the benchmark's part starved; make soak
// says how long with SELVAGE_STARVED.
func TestAStarvedMeshLosesNothing(t *testing.T) {
	long, runs := 12*time.Second, 6 // two leases of a node
	if s := os.Getenv("SELVAGE_STARVED"); s != "" {
		var err error
		if long, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
		runs = 20
	}
	if testing.Short() {
		t.Skip("real processes are left out of -short")
	}
	p := started(t, "--log-level=warn") // beside nothing else: it overloads the machine
	company, issue := newIssue(t, p)
	ids := make([]string, runs)
	for i := range ids {
		var a, r answer
		must(t, p, "POST", "/api/companies/"+string(company)+"/agents", map[string]any{"name": fmt.Sprint("Hungry ", i),
			"adapterType": "process", "adapterConfig": map[string]any{
				"command": "/bin/sh", "args": []string{"-c", "while :; do :; done"}, "timeoutSec": 7200}}, &a)
		must(t, p, "POST", "/api/agents/"+a.ID+"/heartbeat/invoke", map[string]any{}, &r)
		ids[i] = r.ID
	}
	status := func(id string) string {
		var row struct{ Status, Error string }
		must(t, p, "GET", "/api/heartbeat-runs/"+id, nil, &row)
		return row.Status + " " + row.Error
	}
	for _, id := range ids {
		within(2*time.Minute).Until(t, "a run is at work", func() bool { return status(id) == "running " })
	}
	term := func() (term uint64) {
		for i := range p.Nodes {
			var s struct{ Term uint64 }
			must(t, &Processes{Nodes: p.Nodes[i : i+1]}, "GET", "/api/v1/mesh/raft", nil, &s)
			term = max(term, s.Term)
		}
		return term
	}
	before := term()
	for range 4 * runtime.NumCPU() {
		hog := exec.Command("/bin/sh", "-c", "while :; do :; done")
		hog.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // each counts, also where sessions share the processor
		if err := hog.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = hog.Process.Kill(); _ = hog.Wait() }()
	}
	writes := 0
	for start := time.Now(); time.Since(start) < long; writes++ {
		must(t, p, "PATCH", "/api/issues/"+issue, map[string]any{"title": fmt.Sprint("Still here, ", writes)}, nil)
		time.Sleep(50 * time.Millisecond)
	}
	passed := term() - before
	t.Logf("%d writes, %d terms in %v", writes, passed, long)
	if most := 2 + uint64(long/(3*time.Minute)); passed > most {
		t.Errorf("%d terms passed in %v, want %d at most", passed, long, most)
	}
	for _, id := range ids {
		if s := status(id); s != "running " {
			t.Errorf("run %s is %s", id, s)
		}
	}
}
