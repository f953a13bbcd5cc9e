package scheduler

import (
	"slices"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/identity"
)

// A run goes on where its session was left, though another node has less to do;
// the reason is said.
func TestARunGoesWhereItsSessionIs(t *testing.T) {
	run(t, 3, func(t *testing.T, m *mesh) {
		busy := func(least int) {
			for i, p := range m.nodes {
				p.mu.Lock()
				p.facts = Facts{CPUs: 1, Load: 900}
				if i == least {
					p.facts.Load = 0
				}
				p.mu.Unlock()
			}
			time.Sleep(testLease) // every node has said so
		}
		busy(1)
		ada := m.agent(acme, "ada", "sleep 1s, session", "")
		issue := m.issue(acme, ada)
		time.Sleep(10 * time.Second)
		for _, r := range m.runs(acme) {
			if m.on(r) != 1 || r.SessionAfter != "s-1" {
				t.Fatalf("a run went to node %d, session %q", m.on(r), r.SessionAfter)
			}
		}
		busy(2)
		before := len(m.runs(acme))
		m.must(board("comment.create", acme, entity.CreateComment{ID: uuid("c", 1), Issue: issue, Body: "go on"}))
		m.until(5*time.Second, "the comment's run works", func() bool {
			all := m.runs(acme)
			return len(all) > before && all[before].StartedAt != 0
		})
		r := m.runs(acme)[before]
		if m.on(r) != 1 || r.SessionBefore != "s-1" {
			t.Errorf("it went to node %d with session %q", m.on(r), r.SessionBefore)
		}
		if c := m.placement(r.ID).Candidates; len(c) != 3 || c[0].Node != r.Node || c[0].Affinity != "session" {
			t.Errorf("the reason is %+v", c)
		}
		// What has no session goes where there is least to do.
		if r := m.untilStatus(m.invoke(acme, m.agent(acme, "bob", "sleep 9s", "")).ID, 3*time.Second,
			entity.RunRunning); m.on(r) != 2 {
			t.Errorf("a run without a session went to node %d", m.on(r))
		}
	})
}

// What draws a run to a node: its worktree more than its session, and both more
// than half of the slots; a node whose slots are nearly all taken loses it.
func TestWhatDrawsARunToANode(t *testing.T) {
	at := func(node string, busy int, load int64) bench {
		return bench{Beat: Beat{Node: identity.NodeID(node), Slots: 10, Facts: Facts{CPUs: 1, Load: load}}, busy: busy}
	}
	for name, c := range map[string]struct {
		benches            []bench
		session, workspace string
		want, drawn        string
	}{
		"nothing":               {[]bench{at("a", 3, 0), at("b", 2, 0)}, "", "", "b", ""},
		"load":                  {[]bench{at("a", 2, 900), at("b", 4, 0)}, "", "", "b", ""},
		"session":               {[]bench{at("a", 5, 0), at("b", 0, 0)}, "a", "", "a", "session"},
		"session, nearly full":  {[]bench{at("a", 8, 0), at("b", 0, 0)}, "a", "", "b", ""},
		"worktree, nearly full": {[]bench{at("a", 8, 0), at("b", 0, 0)}, "", "a", "a", "workspace"},
		"worktree and session":  {[]bench{at("a", 4, 0), at("b", 4, 0)}, "b", "a", "a", "workspace"},
		"both against slots":    {[]bench{at("a", 9, 500), at("b", 0, 0)}, "a", "a", "a", "workspace and session"},
	} {
		best := slices.MinFunc(c.benches, func(x, y bench) int {
			return int(x.score(c.session, c.workspace).Score - y.score(c.session, c.workspace).Score)
		})
		if string(best.Node) != c.want {
			t.Errorf("%s: it goes to %s, want %s", name, best.Node, c.want)
		}
		if got := best.score(c.session, c.workspace).Affinity; string(got) != c.drawn {
			t.Errorf("%s: it is drawn by %q, want %q", name, got, c.drawn)
		}
	}
}

// A node carries a run out on a state that has its start: the answer to the start
// comes before the node has applied it, and what the start made, such as the issue's
// workspace, would be missing.
func TestARunIsCarriedOutOnTheStateOfItsStart(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 1s", "")
		m.issue(acme, ada)
		m.until(5*time.Second, "the run works", func() bool {
			all := m.runs(acme)
			return len(all) > 0 &&
				all[0].StartedAt != 0
		})
		time.Sleep(100 * time.Millisecond)
		p := m.nodes[0]
		p.mu.Lock()
		started := p.started
		p.mu.Unlock()
		if waited := p.waited.Load(); started == 0 || waited < started {
			t.Errorf("the run started at index %d and was read of at %d", started, waited)
		}
	})
}
