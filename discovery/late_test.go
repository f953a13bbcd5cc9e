package discovery

import (
	"sync/atomic"
	"testing"
	"time"
)

// A peer that is silent for longer than a calm node waits is not declared dead by
// one that knows that it runs late itself; when that has passed, a dead one is
// declared as soon as ever.
func TestANodeThatRunsLateIsPatient(t *testing.T) {
	t.Parallel()
	for _, starved := range []bool{false, true} {
		inMesh(t, 0, func(m *mesh) {
			var late atomic.Int64
			m.nodes = make([]*Discovery, 3)
			for i := range m.nodes {
				m.start(i, func(c *Config) { c.Late = func() time.Duration { return time.Duration(late.Load()) } })
			}
			m.within(10*time.Second, "complete", m.complete)
			if starved {
				late.Store(int64(600 * time.Millisecond))
			}
			for range 20 {
				m.net.hold(testAddr(1, 9470), 3200*time.Millisecond)
				time.Sleep(15 * time.Second)
			}
			if f := m.failures(); starved && f != 0 || !starved && f == 0 {
				t.Errorf("starved %v: live nodes were declared dead %d times", starved, f)
			}
			late.Store(0)
			m.within(time.Minute, "complete", m.complete)
			m.crash(2)
			m.within(4*time.Second, "a dead one is declared by calm nodes", func() bool { return m.nobodySees(2) })
		})
	}
}

func TestAttemptsOfALastCall(t *testing.T) {
	t.Parallel()
	for late, want := range map[time.Duration]int{0: callAttempts, 100 * time.Millisecond: callAttempts + 5,
		time.Hour: maxAttempts} {
		if got := attemptsFor(late); got != want {
			t.Errorf("late by %v: %d attempts, want %d", late, got, want)
		}
	}
}
