package consensus

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// bubble runs f with a mesh of n nodes in virtual time.
func bubble(t *testing.T, n int, tune func(*Config), f func(t *testing.T, m *mesh)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t, n, tune)
		defer m.close()
		f(t, m)
	})
}

func TestEveryNodeProposesAndAllAgree(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, m *mesh) {
		var acked []string
		for i, n := range m.nodes {
			for k := range 3 {
				id := fmt.Sprintf("%d-%d", i, k)
				if err := n.add(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				acked = append(acked, id)
			}
		}
		m.same(acked)
	})
}

func TestKilledLeaderIsReplacedInTime(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, m *mesh) {
		l := m.leader()
		follower := m.followers()[0]
		if err := follower.add(t.Context(), "before"); err != nil {
			t.Fatal(err)
		}
		l.stop(true)
		start := time.Now()
		if err := follower.add(t.Context(), "after"); err != nil {
			t.Fatal(err)
		}
		if gap := time.Since(start); gap > 3*time.Second {
			t.Errorf("writes were accepted again after %s, want at most 3 s", gap)
		} else {
			t.Logf("gap %s", gap)
		}
		m.same([]string{"before", "after"})
	})
}
