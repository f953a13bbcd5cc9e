package consensus

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/identity"
)

// atMost is how long a caller waits at most to hear that there is no quorum.
const atMost = 5 * time.Second

// patiently is a write as the API makes it.
func (n *node) patiently(t *testing.T, id string) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	ctx, stop := n.cons.Patient(ctx)
	defer stop()
	began := time.Now()
	err = n.add(ctx, id)
	return time.Since(began), err
}

// heard makes discovery see the nodes that run.
func heard(of *atomic.Pointer[mesh]) func(*Config) {
	return func(c *Config) {
		c.Alive = func(id identity.NodeID) bool {
			m := of.Load()
			if m == nil { // it is being founded
				return true
			}
			m.wires.mu.Lock()
			defer m.wires.mu.Unlock()
			return m.wires.nodes[id] != nil
		}
	}
}

// Two of three nodes die. What the third is asked is answered within 5 s: writes that
// may have left it with an unknown outcome, the others certainly not carried out.
func TestWithoutAQuorumCallersAreToldSoon(t *testing.T) {
	for _, leads := range []bool{true, false} { // whether the survivor led
		for _, busy := range []bool{true, false} { // whether it is asked when the others die
			name := fmt.Sprintf("leads %t, busy %t", leads, busy)
			t.Run(name, func(t *testing.T) {
				var met atomic.Pointer[mesh]
				bubble(t, 3, heard(&met), func(t *testing.T, m *mesh) {
					met.Store(m)
					n := m.leader()
					if !leads {
						n = m.followers()[0]
					}
					if took, err := n.patiently(t, "before"); err != nil {
						t.Fatal(err, took)
					}
					for _, o := range m.nodes {
						if o != n {
							o.stop(true)
						}
					}
					if !busy {
						time.Sleep(time.Minute)
					}
					for i := range 3 {
						took, err := n.patiently(t, fmt.Sprint("lost ", i))
						if !errors.Is(err, ErrNoQuorum) || took > atMost || took < leastPatience {
							t.Errorf("write %d: %v after %s", i, err, took)
						}
						if unknown := errors.Is(err, ErrOutcomeUnknown); unknown && (!busy || i > 0) {
							t.Errorf("write %d never left the node, and yet: %v", i, err)
						}
						began := time.Now()
						if _, err := n.cons.ReadIndex(t.Context()); !errors.Is(err, ErrNoQuorum) || time.Since(began) > atMost {
							t.Errorf("strong read: %v after %s", err, time.Since(began))
						}
					}
					if q := n.cons.Quorum(); len(q.Silent) != 2 || len(q.Heard) != 0 || !q.Voter || q.Enough() || q.Leaderless == 0 {
						t.Errorf("%+v", q)
					}
					if age, ok := n.cons.Silence(); !ok || age < time.Second || age > 2*time.Minute {
						t.Errorf("it heard of a leader %s ago", age)
					}
					// With one of them back it goes on, and nothing that was said not to be done is.
					for _, o := range m.nodes {
						if o != n {
							o.start()
							break
						}
					}
					if _, err := n.patiently(t, "after"); err != nil {
						t.Error(err)
					}
					for i := range 3 {
						if c := n.count(fmt.Sprint("lost ", i)); c != 0 && (!busy || i > 0) {
							t.Errorf("write %d was carried out", i)
						}
					}
				})
			})
		}
	}
}

// An election is waited out: the leader dies, again and again, and no call fails.
func TestAnElectionIsNoLossOfTheQuorum(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, m *mesh) {
		for round := range 20 {
			l := m.leader()
			n := m.followers()[round%2]
			time.Sleep(time.Duration(round) * 37 * time.Millisecond)
			l.stop(true)
			if took, err := n.patiently(t, fmt.Sprint(round)); err != nil {
				t.Errorf("round %d: %v after %s", round, err, took)
			}
			if _, err := n.cons.ReadIndex(t.Context()); err != nil {
				t.Errorf("round %d: strong read: %v", round, err)
			}
			l.start()
			m.leader()
			time.Sleep(3 * time.Second)
		}
	})
}

// A starved node's elections take longer, and its callers wait them out before they are told
// that there is no quorum.
func TestAStarvedNodeIsPatientWithItsElection(t *testing.T) {
	late := func(c *Config) { c.Late = func() time.Duration { return 200 * time.Millisecond } }
	bubble(t, 3, late, func(t *testing.T, m *mesh) {
		n := m.leader()
		time.Sleep(2 * time.Second)
		election := n.cons.pace.election()
		if election != 1200*time.Millisecond {
			t.Fatalf("a starved node's election time-out is %v", election)
		}
		for _, o := range m.followers() {
			o.stop(true)
		}
		took, err := n.patiently(t, "lost")
		if !errors.Is(err, ErrNoQuorum) || took < quorumElections*election {
			t.Errorf("%v after %v, want %v after at least %v", err, took, ErrNoQuorum, quorumElections*election)
		}
	})
}
