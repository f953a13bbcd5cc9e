package consensus

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

func TestPatience(t *testing.T) {
	t.Parallel()
	const base = 500 * time.Millisecond
	for late, want := range map[time.Duration]time.Duration{
		0: base, 80 * time.Millisecond: base, 200 * time.Millisecond: 1200 * time.Millisecond, time.Hour: mostPatient,
	} {
		if got := patience(base, late); got != want {
			t.Errorf("late by %v: %v, want %v", late, got, want)
		}
	}
	if got := patience(8*time.Second, time.Hour); got != 8*time.Second {
		t.Errorf("a slow disk's time-out became %v", got)
	}
	for election, want := range map[time.Duration]time.Duration{
		base: 2 * base, 2 * time.Second: 4 * time.Second, 4 * time.Second: mostPatient, 8 * time.Second: 8 * time.Second,
	} {
		if got := leadership(election); got != want {
			t.Errorf("with an election time-out of %v a leader goes on for %v, want %v", election, got, want)
		}
	}
}

// lateness lets a test say how late each node runs.
type lateness struct {
	mu sync.Mutex
	by map[string]time.Duration // by server ID
}

func (l *lateness) set(d time.Duration, nodes ...*node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[string]time.Duration{}
	}
	for _, n := range nodes {
		l.by[string(n.cons.self)] = d
	}
}

func (l *lateness) tune(c *Config) {
	id := c.ServerID
	c.Late = func() time.Duration {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.by[id]
	}
}

// A leader that hears nobody for as long as a calm follower waits goes on: after a stall
// of its own machine the answers are still to be read.
func TestAShortSilenceCostsNoLeader(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, m *mesh) {
		l := m.leader()
		term := l.cons.Term()
		for _, f := range m.followers() {
			m.wires.setCut(f.id(), l.id(), true) // it is heard, so that nobody campaigns
		}
		time.Sleep(electionTimeout * 3 / 2)
		for _, f := range m.nodes {
			m.wires.setCut(f.id(), l.id(), false)
		}
		time.Sleep(5 * time.Second)
		if !l.cons.IsLeader() || l.cons.Term() != term {
			t.Errorf("after %v it leads: %v, in term %d, want %d", electionTimeout*3/2, l.cons.IsLeader(), l.cons.Term(), term)
		}
	})
}

// A leader stalls, steps down, and only then knows that it is starved. The others, starved too, wait for
// it as if it led. It does not wait for anybody, so the mesh has a leader again as soon as a calm one.
func TestALeaderThatSteppedDownDoesNotWait(t *testing.T) {
	var late lateness
	bubble(t, 3, late.tune, func(t *testing.T, m *mesh) {
		l, others := m.leader(), m.followers()
		late.set(400*time.Millisecond, others...)
		time.Sleep(2 * time.Second)
		for _, f := range others {
			m.wires.setCut(l.id(), f.id(), true)
			m.wires.setCut(f.id(), l.id(), true)
		}
		m.wait(5*time.Second, "the leader to step down", func() bool { return l.cons.raft.State() != raft.Leader })
		began := time.Now()
		late.set(400*time.Millisecond, l)
		for _, f := range others {
			m.wires.setCut(l.id(), f.id(), false)
			m.wires.setCut(f.id(), l.id(), false)
		}
		m.leader()
		if gap := time.Since(began); gap > 2*electionTimeout+300*time.Millisecond {
			t.Errorf("nobody led for %v", gap)
		}
	})
}

// A mesh whose nodes are starved is not heard for longer than a calm one waits.
// Starved nodes know how late they run and wait: no term passes, as leader nor as
// follower. When they are calm again a dead leader is replaced as soon as ever.
func TestStarvedNodesKeepTheirLeader(t *testing.T) {
	var late atomic.Int64
	bubble(t, 3, func(c *Config) { c.Late = func() time.Duration { return time.Duration(late.Load()) } },
		func(t *testing.T, m *mesh) {
			l := m.leader()
			hold := func(d time.Duration) (terms uint64) {
				before := l.cons.Term()
				for _, f := range m.followers() {
					m.wires.setCut(l.id(), f.id(), true)
					m.wires.setCut(f.id(), l.id(), true)
				}
				time.Sleep(d)
				for _, f := range m.nodes {
					m.wires.setCut(l.id(), f.id(), false)
					m.wires.setCut(f.id(), l.id(), false)
				}
				time.Sleep(10 * time.Second)
				if err := m.nodes[0].add(t.Context(), "after "+d.String()); err != nil {
					t.Fatal(err)
				}
				return m.leader().cons.Term() - before
			}
			late.Store(int64(400 * time.Millisecond))
			time.Sleep(2 * time.Second)
			for _, n := range m.nodes {
				c := n.cons.raft.ReloadableConfig()
				wantBeat := 2400 * time.Millisecond
				if n == l {
					wantBeat = electionTimeout // those that follow it may be calm
				}
				if n.cons.pace.election() != 2400*time.Millisecond || c.HeartbeatTimeout != wantBeat ||
					c.ElectionTimeout != 2400*time.Millisecond {
					t.Fatalf("a starved node, leader %v, waits %v, %+v", n == l, n.cons.pace.election(), c)
				}
			}
			for range 5 {
				if terms := hold(1500 * time.Millisecond); terms != 0 {
					t.Fatalf("%d terms passed", terms)
				}
			}
			if m.leader() != l {
				t.Error("another node leads")
			}
			late.Store(0)
			time.Sleep(2 * time.Second)
			for _, n := range m.nodes {
				if c := n.cons.raft.ReloadableConfig(); n.cons.pace.election() != electionTimeout ||
					c.HeartbeatTimeout != electionTimeout || c.ElectionTimeout != electionTimeout {
					t.Fatalf("a calm node waits %v, %+v", n.cons.pace.election(), c)
				}
			}
			l.stop(true)
			start := time.Now()
			if err := m.alive()[0].add(t.Context(), "killed"); err != nil {
				t.Fatal(err)
			}
			if gap := time.Since(start); gap > 2*time.Second {
				t.Errorf("a dead leader was replaced after %v", gap)
			}
		})
}

// The same silence costs calm nodes their leader, so the test above shows something.
func TestCalmNodesElectAnother(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, m *mesh) {
		l := m.leader()
		before := l.cons.Term()
		for _, f := range m.followers() {
			m.wires.setCut(l.id(), f.id(), true)
			m.wires.setCut(f.id(), l.id(), true)
		}
		time.Sleep(1500 * time.Millisecond)
		for _, f := range m.nodes {
			m.wires.setCut(l.id(), f.id(), false)
			m.wires.setCut(f.id(), l.id(), false)
		}
		m.wait(time.Minute, "a new term", func() bool { n := m.leader(); return n != nil && n.cons.Term() > before })
	})
}

// The lease of raft's leader can be steered in this version of the library, and it
// counts at once: without it a starved leader steps down whatever its followers do.
func TestTheLeadersLeaseIsSteered(t *testing.T) {
	bubble(t, 1, nil, func(t *testing.T, m *mesh) {
		p := m.leader().cons.pace
		if p.conf == nil {
			t.Fatal("raft's configuration is not where it was: see pace.steer")
		}
		if err := p.set(m.leader().cons.raft, 2*time.Second); err != nil {
			t.Fatal(err)
		}
		if got := p.conf.Load().(raft.Config).LeaderLeaseTimeout; got != 4*time.Second {
			t.Errorf("the lease is %v", got)
		}
	})
}
