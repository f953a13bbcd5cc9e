package scheduler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// on starts a run on a node and returns it when it is at work.
func (m *mesh) onNode(i int, script string) entity.Run {
	m.t.Helper()
	m.salt++
	r := m.invoke(acme, m.agent(acme, fmt.Sprint("on-", i, "-", m.salt), script,
		fmt.Sprintf(`{"placement":{"labels":["node=%d"]}}`, i)))
	return m.untilStatus(r.ID, 10*time.Second, entity.RunRunning)
}

// row is how long a lease the state allows a node's session.
func (m *mesh) row(i int) (d time.Duration) {
	_ = m.Ledger.View(func(tx *ledger.Tx) error {
		s, _ := ledger.SessionOf(tx, m.nodes[i].id())
		d = time.Duration(s.Lease) * time.Millisecond
		return nil
	})
	return d
}

// longest is the longest lease that there is.
const longest = maxLeaseTimes * testLease

// A node that runs late gets a longer lease, within what is told; its run lives
// through a silence that a calm node's does not. When it is calm again so is its lease.
func TestAStarvedNodesLeaseIsLonger(t *testing.T) {
	run(t, 3, func(t *testing.T, m *mesh) {
		starved, calm := m.onNode(1, "sleep 20m"), m.onNode(2, "sleep 20m")
		m.nodes[1].late.Store(int64(2 * time.Second))
		m.until(10*time.Second, "the lease is as long as can be", func() bool { return m.row(1) == longest })
		time.Sleep(5 * time.Second)
		m.nodes[1].setCut(true)
		m.nodes[2].setCut(true)
		time.Sleep(15 * time.Second)
		m.nodes[1].setCut(false)
		m.nodes[2].setCut(false)
		time.Sleep(10 * time.Second)
		if r := m.run(starved.ID); r.Status != entity.RunRunning {
			t.Errorf("the starved node's run is %s: %s", r.Status, r.Error)
		}
		if r := m.run(calm.ID); r.Status != entity.RunInterrupted {
			t.Errorf("the calm node's run is %s: the test shows nothing", r.Status)
		}
		m.nodes[1].late.Store(0)
		m.until(5*time.Minute, "the usual lease", func() bool { return m.row(1) <= testLease })
		time.Sleep(5 * time.Second)
		m.nodes[1].setCut(true)
		cut := time.Now()
		r := m.untilStatus(starved.ID, longest, entity.RunInterrupted)
		if d := time.Since(cut); d > testLease+time.Second {
			t.Errorf("a calm node was lost after %v", d)
		}
		if !strings.HasPrefix(string(r.Error),
			"The node that carried out this run was lost: the leader has not heard it for ") {
			t.Errorf("error %q", r.Error)
		}
		m.wantAuthority()
	})
}

// The leader that granted a long lease is gone, and so is who holds it: the new
// leader waits as long as that one may act, and no longer than the longest.
func TestANewLeaderWaitsForTheLongestLease(t *testing.T) {
	run(t, 3, func(t *testing.T, m *mesh) {
		r := m.onNode(2, "sleep 20m")
		m.nodes[2].late.Store(int64(2 * time.Second))
		m.until(10*time.Second, "a long lease", func() bool { return m.row(2) == longest })
		time.Sleep(5 * time.Second)
		m.nodes[2].setCut(true)
		m.elect(1)
		elected := time.Now()
		m.untilStatus(r.ID, 2*longest, entity.RunInterrupted)
		if d := time.Since(elected); d < longest || d > longest+time.Second {
			t.Errorf("the new leader waited %v, want %v", d, longest)
		}
		k, _ := m.nodes[2].adapter.at(r.ID)
		if k.to == 0 {
			t.Error("the child is still at work")
		}
		m.wantAuthority()
	})
}

// A leader that was deposed and does not know lowers what its successor has granted
// to: its word comes too late.
func TestADeposedLeaderLowersNothing(t *testing.T) {
	run(t, 2, func(t *testing.T, m *mesh) {
		m.nodes[1].late.Store(int64(2 * time.Second))
		m.until(10*time.Second, "a long lease", func() bool { return m.row(1) == longest })
		var s ledger.Session
		_ = m.Ledger.View(func(tx *ledger.Tx) error { s, _ = ledger.SessionOf(tx, m.nodes[1].id()); return nil })
		old := s.Leased
		m.elect(1)
		m.until(10*time.Second, "the new leader's word", func() bool {
			_ = m.Ledger.View(func(tx *ledger.Tx) error { s, _ = ledger.FindSession(tx, s.ID); return nil })
			return s.Leased.After(old)
		})
		_, err := m.nodes[0].Submit(t.Context(), nodeCommand(m.nodes[0].id(), ledger.KindSessionLease, "",
			ledger.SessionLease{Session: s.ID, Lease: 0,
				Mark: ledger.LeaseMark{Term: old.Term, Count: old.Count + 100}}))
		if err != nil || m.row(1) != longest {
			t.Errorf("the lease may be %v, %v", m.row(1), err)
		}
	})
}

// A leader that did not run for a while lost nobody's beats but its own time.
func TestALeaderThatOversleptLosesNobody(t *testing.T) {
	run(t, 2, func(t *testing.T, m *mesh) {
		r := m.onNode(1, "sleep 5m")
		l := m.nodes[0].lead
		l.mu.Lock()
		before := map[uint64]time.Duration{}
		for s, g := range l.leases {
			before[s] = g.expiry
		}
		l.mu.Unlock()
		slow := &Leader{cfg: l.cfg, leases: map[uint64]*lease{1: {expiry: 10 * time.Second}},
			awake: l.cfg.Clock() - 9*time.Second}
		slow.overslept(lookEvery)
		if got := slow.leases[1].expiry; got != 19*time.Second-lookEvery {
			t.Errorf("after 9 s the lease ends at %v", got)
		}
		slow.awake = l.cfg.Clock() - lookEvery
		slow.overslept(lookEvery)
		if got := slow.leases[1].expiry; got != 19*time.Second-lookEvery {
			t.Errorf("after no time the lease ends at %v", got)
		}
		if s := m.run(r.ID).Status; s != entity.RunRunning {
			t.Errorf("the run is %s", s)
		}
	})
}

// Whatever is granted, by whom and to whom, while nodes are starved and calm, cut
// off and back, and leaders come and go: no run is declared over before its children
// are gone.
func TestNoRunOutlivesItsLease(t *testing.T) {
	for seed := range uint64(some(4)) {
		run(t, 3, func(t *testing.T, m *mesh) {
			rng := rand.New(rand.NewPCG(seed, 15))
			var agents []string
			for n := range 12 {
				agents = append(agents, m.agent(acme, fmt.Sprint("a", n), "sleep 2m", ""))
			}
			for range 150 {
				time.Sleep(time.Duration(rng.IntN(6000)) * time.Millisecond)
				switch i := rng.IntN(3); rng.IntN(6) {
				case 0:
					m.nodes[i].late.Store(int64(rng.IntN(2500)) * int64(time.Millisecond))
				case 1:
					m.nodes[i].late.Store(0)
				case 2:
					m.elect(i)
				case 3:
					m.nodes[i].setCut(!m.nodes[i].isCut())
				case 4:
					m.nodes[(i+1)%3].lead.LeadIn(max(m.term, 1) - 1) // does not know that it was deposed
				case 5:
					m.ask(board("agent.wake", acme, m.wake(agents[rng.IntN(len(agents))], entity.WakeOnDemand,
						"manual"))) // whoever is asked may have no session
				}
				m.wantAuthority()
			}
			lost, long := 0, 0
			for _, r := range m.runs(acme) {
				if r.ErrorCode == "node_lost" {
					lost++
				}
			}
			_ = m.Ledger.View(func(tx *ledger.Tx) error {
				for h := uint64(1); h < m.Index; h++ {
					if s, ok := ledger.FindSession(tx, h); ok && s.Leased.Count > 0 {
						long++
					}
				}
				return nil
			})
			if lost == 0 || long == 0 {
				t.Errorf("%d runs lost, %d sessions with leases of their own: the test shows nothing", lost, long)
			}
		})
	}
}

// Why a lease was lost is told in the run: by the node while its session lasts, and
// afterwards when it is back.
func TestARunSaysWhyItsLeaseWasLost(t *testing.T) {
	run(t, 2, func(t *testing.T, m *mesh) {
		const why = "this node could not run for 9.1 s: load 31"
		r := m.onNode(1, "sleep 5m")
		m.nodes[1].why.Store(why)
		m.nodes[1].setCut(true)
		lost := m.untilStatus(r.ID, 20*time.Second, entity.RunInterrupted)
		if !strings.Contains(string(lost.Error), "was lost: the leader has not heard it for 6") {
			t.Errorf("the leader said %q", lost.Error)
		}
		m.nodes[1].setCut(false)
		m.until(30*time.Second, "the node's own word", func() bool {
			return m.run(r.ID).Error == "The node that carried out this run was lost: "+why
		})
		r = m.onNode(1, "sleep 5m")
		m.nodes[1].setCut(true)
		time.Sleep(testLease - testMargin + 500*time.Millisecond) // it stops, and comes back before anybody says it is lost
		m.nodes[1].setCut(false)
		r = m.untilStatus(r.ID, 5*time.Second, entity.RunInterrupted)
		if r.Error != "The node lost its lease and stopped this run: "+core.NullText(why) {
			t.Errorf("the node said %q", r.Error)
		}
	})
}

func TestTheLeaseThatANodeWants(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	for _, c := range []struct{ late, trip, want time.Duration }{
		{0, 0, testLease}, {80 * ms, 100 * ms, testLease}, {200 * ms, 200 * ms, 2 * testLease},
		{0, 3 * time.Second, 3 * testLease}, {time.Hour, 0, longest},
	} {
		if got := wantedLease(testLease, c.late, c.trip); got != c.want {
			t.Errorf("late by %v, beats take %v: %v, want %v", c.late, c.trip, got, c.want)
		}
	}
}

// A node that is calm again still holds what it was granted before: nobody who is
// elected then waits less than that.
func TestALeaseIsNotLoweredUnderItsHolder(t *testing.T) {
	run(t, 3, func(t *testing.T, m *mesh) {
		r := m.onNode(2, "sleep 20m")
		m.nodes[2].late.Store(int64(2 * time.Second))
		m.until(10*time.Second, "a long lease", func() bool { return m.row(2) == longest })
		time.Sleep(5 * time.Second)
		m.nodes[2].late.Store(0)
		time.Sleep(4 * time.Second) // it has asked for the usual one since
		m.nodes[2].setCut(true)
		m.elect(1)
		m.untilStatus(r.ID, 2*longest, entity.RunInterrupted)
		m.wantAuthority()
	})
}

// What a leader grants, step by step: a long lease only between the moment at which
// its own word about it is applied and the moment at which it gives another.
func TestALeaderGrantsByItsOwnWord(t *testing.T) {
	run(t, 2, func(t *testing.T, m *mesh) {
		m.elect(-1)
		p := m.nodes[1]
		p.setCut(true) // its own beats do not come between
		cfg := m.nodes[0].lead.cfg
		cfg.Verify = func(context.Context) error { return nil }
		grant := func(l *Leader, want time.Duration) time.Duration {
			t.Helper()
			got, err := l.KeepAlive(t.Context(), Beat{Node: p.id(), Session: p.session, Want: want.Milliseconds()})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		say := func(l *Leader) {
			t.Helper()
			if err := l.setLeases(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		want := func(what string, got, want time.Duration) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
		m.mu.Lock()
		m.leader = 0 // commands land; no leader's own loop runs
		m.mu.Unlock()
		one, two := NewLeader(cfg), NewLeader(cfg)
		one.LeadIn(100)
		want("before its word", grant(one, longest), testLease)
		say(one)
		want("the state", m.row(1), longest)
		want("after its word", grant(one, longest), longest)
		say(one)
		if one.marks != 1 {
			t.Errorf("it repeats itself: %d", one.marks)
		}
		granted := cfg.Clock()
		want("asked for less", grant(one, testLease), testLease)
		say(one)
		want("while the node holds more", m.row(1), longest)
		time.Sleep(longest - testLease - (cfg.Clock() - granted) + time.Millisecond)
		one.mu.Lock()
		g := one.leases[p.session]
		to, change := one.change(g, cfg.Clock())
		if one.mu.Unlock(); !change || to != testLease {
			t.Fatalf("all that it holds is as long as usual, and the row becomes %v, %v", to, change)
		}

		// The other is elected, and the first one's word is still on its way.
		two.LeadIn(200)
		want("another leader's word", grant(two, longest), testLease)
		stale := ledger.SessionLease{Session: p.session, Lease: testLease.Milliseconds(),
			Mark: ledger.LeaseMark{Term: 100, Count: 2}}
		tell := func() bool {
			r, err := m.nodes[0].Submit(t.Context(), nodeCommand(m.nodes[0].id(), ledger.KindSessionLease, "", stale))
			if err != nil {
				t.Fatal(err)
			}
			return r.Refusal == nil
		}
		if !tell() || m.row(1) != testLease {
			t.Errorf("what the first leader decided with all that was granted in its books is not taken: %v", m.row(1))
		}
		want("after it", grant(two, longest), testLease)
		say(two)
		want("by its own word", grant(two, longest), longest)
		if stale.Mark.Count = 3; tell() || m.row(1) != longest {
			t.Errorf("the first leader's word counts under the second: %v", m.row(1))
		}

		// A word that is given and whose outcome is not known is not relied on.
		two.mu.Lock()
		two.marks++
		two.leases[p.session].mark = ledger.LeaseMark{Term: 200, Count: two.marks}
		two.mu.Unlock()
		want("while its word is on its way", grant(two, longest), testLease)
		say(two)
		want("after it has said it again", grant(two, longest), longest)
	})
}

// An idle node that is lost as another leader begins was never heard by that one. Its session
// ends all the same: processes of other nodes may wait for what ran there.
func TestAnIdleNodeIsLostUnderANewLeader(t *testing.T) {
	run(t, 3, func(t *testing.T, m *mesh) {
		open := func() (is bool) {
			_ = m.Ledger.View(func(tx *ledger.Tx) error { _, is = ledger.SessionOf(tx, m.nodes[2].id()); return nil })
			return is
		}
		m.until(10*time.Second, "a session", open)
		m.nodes[2].setCut(true)
		m.elect(1)
		time.Sleep(testLease - time.Second)
		if !open() {
			t.Error("its session ended before its lease")
		}
		m.until(2*time.Second, "the end of its session", func() bool { return !open() })
	})
}
