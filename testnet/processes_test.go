package testnet

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/kit"
)

// psRow is what the test reads of a process.
type psRow struct {
	Address, Node, State, Kind, Name, Run, Declared string
	PID                                             uint64
}

// live lists the processes that any node shows.
func live(t *testing.T, p *Processes) (rows []psRow) {
	t.Helper()
	must(t, p, "GET", "/api/v1/processes", nil, &rows)
	return rows
}

// Any node shows the processes of all, and a run is one while it lives: killing it cancels the
// run. A declared process is started elsewhere when its node is killed, once; the old one is
// gone before.
func TestProcessesOfAMesh(t *testing.T) {
	p := processes(t)
	kernels := 0
	for _, r := range live(t, p) {
		if r.Kind == "kernel" && r.State == "running" {
			kernels++
		}
	}
	if kernels != 3 {
		t.Errorf("%d kernels run, want 3", kernels)
	}
	company, _ := newIssue(t, p)
	var agent answer
	must(t, p, "POST", "/api/companies/"+string(company)+"/agents", map[string]any{"name": "Sleeper", "role": "engineer",
		"adapterType":   "process",
		"adapterConfig": map[string]any{"command": "sleep", "args": []string{"600"}}}, &agent)
	var run answer
	must(t, p, "POST", "/api/agents/"+agent.ID+"/heartbeat/invoke", map[string]any{}, &run)
	var of psRow
	kit.Wait{Most: time.Minute, Every: 100 * time.Millisecond}.Until(t, "the run is a process", func() bool {
		for _, r := range live(t, p) {
			if r.Kind == "run" && r.Run == run.ID && r.Name == "Sleeper" && strings.HasPrefix(r.Address, r.Node+":") {
				of = r
				return true
			}
		}
		return false
	})
	must(t, p, "POST", "/api/v1/processes/"+of.Address+"/kill", map[string]any{}, nil)
	kit.Wait{Most: time.Minute, Every: 100 * time.Millisecond}.Until(t, "the run is cancelled", func() bool {
		var now answer
		must(t, p, "GET", "/api/heartbeat-runs/"+run.ID, nil, &now)
		return now.Status == "cancelled"
	})

	must(t, p, "PUT", "/api/v1/declared-processes/sleeper", map[string]any{"command": []string{"sleep", "600"},
		"replicas": 1}, nil)
	var home psRow
	kit.Wait{Most: time.Minute, Every: 100 * time.Millisecond}.Until(t, "the replica runs", func() bool {
		for _, r := range live(t, p) {
			if r.Declared != "" && r.State == "running" {
				home = r
				return true
			}
		}
		return false
	})
	killed := time.Now()
	if err := p.Kill(home.Node); err != nil {
		t.Fatal(err)
	}
	var d struct {
		Running   int
		Instances []struct {
			Node, State string
			Failovers   int
		}
	}
	kit.Wait{Most: time.Minute, Every: 50 * time.Millisecond}.Until(t, "the replica runs elsewhere", func() bool {
		must(t, p, "GET", "/api/v1/declared-processes/sleeper", nil, &d)
		return d.Running == 1 && d.Instances[0].Node != home.Node
	})
	b, _ := json.Marshal(d)
	t.Logf("failed over in %s: %s", time.Since(killed).Round(10*time.Millisecond), b)
	if d.Instances[0].Failovers != 1 {
		t.Errorf("it went to another node %d times, want 1", d.Instances[0].Failovers)
	}
	silent := false
	for _, r := range live(t, p) {
		silent = silent || r.Node == home.Node && (r.State == "unreachable")
	}
	if !silent {
		t.Logf("the killed node is not shown as unreachable yet") // gossip decides when
	}
}
