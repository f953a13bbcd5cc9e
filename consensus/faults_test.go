package consensus

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage-mesh/selvage/identity"
)

// The checkers are checked: each planted bug must be found by what the tests
// above check.

func TestFaultSkipFsyncIsFound(t *testing.T) {
	bubble(t, 3, func(c *Config) { c.Faults.SkipFsync = true }, func(t *testing.T, m *mesh) {
		// Raft refuses to start, or what was acknowledged is gone.
		acked := lossy(t, m)
		for _, n := range m.alive() {
			for _, id := range acked {
				if n.count(id) != 1 {
					return // found
				}
			}
		}
		t.Errorf("a skipped fsync lost none of %d acknowledged commands", len(acked))
	})
}

// lossy is powerLoss for nodes that may not come back.
func lossy(t *testing.T, m *mesh) []string {
	_, stop := m.load(t, 4)
	time.Sleep(time.Second)
	for _, n := range m.nodes {
		m.wires.unplug(n.id())
	}
	acked := stop()
	for _, n := range m.nodes {
		n.crash()
	}
	for _, n := range m.nodes {
		n.start()
	}
	return acked
}

func TestFaultAckBeforeCommitIsFound(t *testing.T) {
	bubble(t, 3, func(c *Config) { c.Faults.AckBeforeCommit = true }, func(t *testing.T, m *mesh) {
		l := m.leader()
		if err := l.add(t.Context(), "warm"); err != nil { // opens the session
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		others := m.followers()
		for _, o := range others {
			m.wires.setCut(l.id(), o.id(), true)
			m.wires.setCut(o.id(), l.id(), true)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.add(ctx, "lost"); err != nil {
			t.Fatal("the planted bug did not acknowledge:", err)
		}
		if err := others[0].add(t.Context(), "other"); err != nil {
			t.Fatal(err)
		}
		for _, o := range others {
			m.wires.setCut(l.id(), o.id(), false)
			m.wires.setCut(o.id(), l.id(), false)
		}
		time.Sleep(5 * time.Second)
		m.same([]string{"other"})
		if l.count("lost") != 0 {
			t.Error("an early acknowledgement was not lost")
		}
	})
}

func TestFaultStaleStrongReadIsFound(t *testing.T) {
	bubble(t, 3, func(c *Config) { c.Faults.StaleStrongRead = true }, func(t *testing.T, m *mesh) {
		if staleReads(t, m) == 0 {
			t.Error("no stale strong read was found")
		}
	})
}

// liar is a state machine that reports a wrong digest.
type liar struct{ ledgerState }

func (l liar) DigestAt(index uint64) ([32]byte, bool, error) {
	d, ok, err := l.ledgerState.DigestAt(index)
	d[0] ^= 1
	return d, ok, err
}

func TestDivergenceIsToldToTheMinority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := 0
		m := newMesh(t, 3, func(c *Config) {
			if opened++; opened == 2 {
				c.State = liar{c.State.(ledgerState)}
			}
		})
		for i := range 600 {
			if err := m.nodes[0].add(t.Context(), fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(4 * digestInterval)
		m.mu.Lock()
		defer m.mu.Unlock()
		bad := m.nodes[1].id()
		if len(m.diverged) != 1 || len(m.diverged[bad]) == 0 {
			t.Fatalf("divergences: %v", m.diverged)
		}
		if d := m.diverged[bad][0]; d.NoMajority || d.Own == d.Majority {
			t.Errorf("%+v", d)
		}
	})
}

func TestJudge(t *testing.T) {
	x, y, z := [32]byte{1}, [32]byte{2}, [32]byte{3}
	type answers = map[identity.NodeID][32]byte
	for _, tt := range []struct {
		name        string
		own         [32]byte
		self        bool
		answers     answers
		voters      int
		bad, nobody bool
	}{
		{"all agree", x, true, answers{"a": x, "b": x}, 2, false, false},
		{"one of three is another", x, true, answers{"a": x, "b": y}, 2, false, false},
		{"this one is the other", y, true, answers{"a": x, "b": x}, 2, true, false},
		{"three differ", x, true, answers{"a": y, "b": z}, 2, true, true},
		{"two differ, one is silent", x, true, answers{"a": y}, 2, false, false},
		{"two voters differ", x, true, answers{"a": y}, 1, true, true},
		{"a learner differs", y, false, answers{"a": x, "b": x, "c": x}, 3, true, false},
		{"a learner, one silent", x, false, answers{"a": x, "b": x}, 3, false, false},
	} {
		v, bad := judge(256, tt.own, tt.self, "me", tt.answers, tt.voters)
		if bad != tt.bad || v.NoMajority != tt.nobody {
			t.Errorf("%s: %v %+v, want %v, no majority %v", tt.name, bad, v, tt.bad, tt.nobody)
		}
	}
}
