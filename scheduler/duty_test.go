package scheduler

import (
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// placement returns what was decided about a run.
func (m *mesh) placement(id string) (p company.Placement) {
	r := m.run(id)
	_ = m.Ledger.View(func(tx *ledger.Tx) error { p, _ = company.PlacementOf(tx, r.Company, id); return nil })
	return p
}

// refusal returns why a node did not get a run, "" when it could have.
func (m *mesh) refusal(id string, node int) string {
	for _, c := range m.placement(id).Candidates {
		if c.Node == string(m.nodes[node].id()) {
			return string(c.Refusal)
		}
	}
	return "is not among the candidates"
}

// atWork counts the children that live on a node.
func (p *peer) atWork() (n int) {
	p.adapter.mu.Lock()
	defer p.adapter.mu.Unlock()
	for _, k := range p.adapter.runs {
		if k.to == 0 {
			n++
		}
	}
	return n
}

// A stop ends what runs on every node, also on one that does not hear of it,
// within the lease; nothing begins until the mesh is resumed, and what waited
// goes on then.
func TestAStopHoldsEverywhere(t *testing.T) {
	run(t, 3, func(t *testing.T, m *mesh) {
		time.Sleep(2 * time.Second)
		ada := m.agent(acme, "ada", "sleep 300s", `{"heartbeat":{"enabled":true,"intervalSec":30}}`)
		zed := m.agent(zeta, "zed", "sleep 300s", "")
		for range 7 {
			m.invoke(acme, ada)
			m.invoke(zeta, zed)
		}
		time.Sleep(2 * time.Second)
		waits := 0
		for _, r := range append(m.runs(acme), m.runs(zeta)...) {
			if r.Status == entity.RunQueued {
				waits++
			}
		}
		if waits == 0 || m.nodes[2].atWork() == 0 {
			t.Fatalf("%d runs wait, %d work on the last node; the test shows nothing", waits, m.nodes[2].atWork())
		}
		m.nodes[2].setCut(true)
		m.must(board("mesh.stop", "", company.StopAll{Reason: "drill"}))
		m.until(testLease, "no child is left anywhere", func() bool {
			return m.nodes[0].atWork()+m.nodes[1].atWork()+m.nodes[2].atWork() == 0
		})
		time.Sleep(2 * time.Minute)
		if got := m.ask(board("agent.wake", acme, m.wake(ada, entity.WakeOnDemand, "manual"))); got.Refusal == nil {
			t.Error("an agent is woken while everything is stopped")
		}
		left, skipped := 0, 0
		for _, r := range append(m.runs(acme), m.runs(zeta)...) {
			switch r.Status {
			case entity.RunQueued:
				left++
			case entity.RunRunning:
				t.Errorf("run %s runs", r.ID)
			}
		}
		_ = m.Ledger.View(func(tx *ledger.Tx) error {
			for _, u := range entity.WakeupsOf(tx, acme, ada) {
				if u.Error == "mesh.stopped" {
					skipped++
				}
			}
			return nil
		})
		if left < waits || skipped == 0 {
			t.Errorf("%d of %d runs wait, %d wakes were skipped", left, waits, skipped)
		}
		m.nodes[2].setCut(false)
		time.Sleep(10 * time.Second)
		if n := m.nodes[0].atWork() + m.nodes[1].atWork() + m.nodes[2].atWork(); n != 0 {
			t.Errorf("%d children after the last node came back", n)
		}
		m.must(board("mesh.resume", "", company.ResumeAll{}))
		m.until(10*time.Second, "what waited works", func() bool {
			return m.nodes[0].atWork()+m.nodes[1].atWork()+m.nodes[2].atWork() >= min(waits, 8)
		})
		if got := m.ask(board("mesh.resume", "", company.ResumeAll{})); got.Refusal == nil {
			t.Error("it is resumed twice")
		}
		m.wantAuthority()
	})
}

// A node that is cordoned gets no new runs; one that drains gives back what it
// has not begun besides; both are said of the runs that went elsewhere.
func TestCordonedNodesGetNoRuns(t *testing.T) {
	run(t, 3, func(t *testing.T, m *mesh) {
		time.Sleep(2 * time.Second)
		ada := m.agent(acme, "ada", "sleep 20s", "")
		for range 6 {
			m.invoke(acme, ada)
		}
		time.Sleep(time.Second)
		before := m.nodes[1].atWork()
		if before == 0 {
			t.Fatal("nothing works on the second node; the test shows nothing")
		}
		m.must(board("node.cordon", "", company.Cordon{Node: string(m.nodes[1].id()), Drain: true, Reason: "new disk"}))
		m.must(board("node.cordon", "", company.Cordon{Node: string(m.nodes[2].id())}))
		for range 4 {
			r := m.invoke(acme, ada)
			time.Sleep(300 * time.Millisecond)
			if on := m.on(m.run(r.ID)); on > 0 {
				t.Errorf("a run went to node %d", on)
			}
			if on := m.on(m.run(r.ID)); on == 0 {
				if why := m.refusal(r.ID, 1); why != "is being drained" {
					t.Errorf("of the one that drains: %q", why)
				}
				if why := m.refusal(r.ID, 2); why != "is cordoned" {
					t.Errorf("of the one that is cordoned: %q", why)
				}
			}
		}
		if n := m.nodes[1].atWork(); n != before {
			t.Errorf("%d runs on the node that drains, want the %d that it had begun", n, before)
		}
		m.until(time.Minute, "it has none", func() bool { return m.nodes[1].atWork() == 0 })
		m.must(board("node.uncordon", "", company.Uncordon{Node: string(m.nodes[1].id())}))
		m.until(2*time.Minute, "it gets runs again", func() bool {
			m.invoke(acme, ada)
			time.Sleep(time.Second)
			return m.nodes[1].atWork() > 0
		})
	})
}

// Runs go where there is what they need, to the least busy machine, and back to
// where their session was; a run that fits nowhere says why.
func TestPlacementKnowsTheMachines(t *testing.T) {
	run(t, 3, func(t *testing.T, m *mesh) {
		for i, f := range []Facts{
			{OS: "linux", Arch: "amd64", CPUs: 2, Load: 1900, FreeMB: 500, Programs: []string{"codex"}},
			{OS: "linux", Arch: "amd64", CPUs: 8, Load: 800, FreeMB: 4000},
			{OS: "linux", Arch: "arm64", CPUs: 4, Load: 3000, GPUs: 1, FreeMB: 9000},
		} {
			p := m.nodes[i]
			p.mu.Lock()
			p.facts = f
			p.mu.Unlock()
		}
		time.Sleep(4 * time.Second)
		for name, tc := range map[string]struct {
			wish string
			on   int
			why  map[int]string
		}{
			"arm":    {`{"arch":"arm64"}`, 2, map[int]string{0: "is amd64, not arm64"}},
			"gpu":    {`{"gpu":true}`, 2, map[int]string{1: "has no GPU"}},
			"memory": {`{"memoryMb":2000,"arch":"amd64"}`, 1, map[int]string{0: "needs 2000 MB of free memory"}},
			"codex":  {`{"programs":["codex"]}`, 0, map[int]string{2: "has no program codex"}},
			"load":   {`{}`, 1, nil},
			"plan9":  {`{"os":"plan9"}`, -1, map[int]string{0: "runs linux, not plan9"}},
		} {
			r := m.invoke(acme, m.agent(acme, name, "sleep 1s", `{"placement":`+tc.wish+`}`))
			time.Sleep(3 * time.Second)
			if on := m.on(m.run(r.ID)); on != tc.on {
				t.Errorf("%s went to node %d, want %d: %+v", name, on, tc.on, m.placement(r.ID))
			}
			for node, want := range tc.why {
				if got := m.refusal(r.ID, node); got != want {
					t.Errorf("%s: node %d %q, want %q", name, node, got, want)
				}
			}
		}
		if p := m.placement(m.runs(acme)[0].ID); len(p.Candidates) != 3 || p.At == 0 {
			t.Errorf("placement %+v", p)
		}
	})
}

// An agent whose runs come to nothing, one after the other, is paused, and says so.
func TestAnAgentThatComesToNothingIsPaused(t *testing.T) {
	alone(t)
	run(t, 1, func(t *testing.T, m *mesh) {
		for _, tc := range []struct {
			name, runtime string
			runs          int // 0: never paused
		}{
			{"ada", `{"heartbeat":{"enabled":true,"intervalSec":30,"maxFruitlessRuns":4}}`, 4},
			{"bob", `{"heartbeat":{"enabled":true,"intervalSec":30}}`, entity.DefaultFruitlessRuns},
			{"cy", `{"heartbeat":{"enabled":true,"intervalSec":30,"maxFruitlessRuns":0}}`, 0},
		} {
			agent := m.agent(acme, tc.name, "sleep 1s, fail", tc.runtime)
			before := len(m.runs(acme))
			time.Sleep(15 * time.Minute)
			n := len(m.runs(acme)) - before
			var a entity.Agent
			_ = m.Ledger.View(func(tx *ledger.Tx) error { a, _ = entity.AgentByID(tx, agent); return nil })
			switch {
			case tc.runs == 0 && (n < 20 || a.Status == entity.AgentPaused):
				t.Errorf("%s has %d runs and is %s", tc.name, n, a.Status)
			case tc.runs > 0 && (n != tc.runs || a.Status != entity.AgentPaused || a.PauseReason != "no_progress"):
				t.Errorf("%s has %d runs, want %d, and is %s, %q", tc.name, n, tc.runs, a.Status, a.PauseReason)
			}
			if tc.runs > 0 {
				m.must(board("agent.resume", acme, company.ChangeAgent{Agent: agent}))
				time.Sleep(2 * time.Minute)
				if more := len(m.runs(acme)) - before - n; more == 0 {
					t.Errorf("%s does not run after it was resumed", tc.name)
				}
			}
			m.must(board("agent.terminate", acme, company.ChangeAgent{Agent: agent}))
		}
	})
}
