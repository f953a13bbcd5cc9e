package scheduler

import (
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/ledger"
)

// dueOf is the time at which a schedule fires next.
func (m *mesh) dueOf(trigger string) (due core.Time) {
	_ = m.Ledger.View(func(tx *ledger.Tx) error {
		t, _ := routine.TriggerByID(tx, trigger)
		due = t.Due
		return nil
	})
	return due
}

// some is n of what a test does again and again, or a third of it under the race
// detector, where each costs six times the work.
func some(n int) int {
	if testing.Short() {
		return n / 3
	}
	return n
}

// alone passes over a test of what one node decides by itself, over hours, where tests
// are to be short: its goroutines race in no other way than those of the other tests.
func alone(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("what one node decides alone is seen without the race detector")
	}
}

// fireUnder lets a schedule of every minute and a timer of every minute fall due
// for n minutes of the mesh's time, while disturb does what it likes at each, and
// then checks that each time fired exactly once.
func fireUnder(t *testing.T, m *mesh, n int, disturb func(minute int)) {
	t.Helper()
	idle := m.agent(acme, "ada", "sleep 1s", `{"heartbeat":{"wakeOnDemand":false}}`)
	timed := m.agent(zeta, "zed", "sleep 1s", `{"heartbeat":{"enabled":true,"intervalSec":60}}`)
	routine, trigger := m.routine(acme, idle, "* * * * *", "UTC",
		func(s *routine.SaveRoutine) { s.CatchUp = new(routine.CatchUpEnqueue) })
	first, began := m.dueOf(trigger), m.now()
	for minute := range n {
		for end := first.Std().Add(time.Duration(minute) * time.Minute); m.now().Before(end.Add(-50 * time.Millisecond)); {
			time.Sleep(20 * time.Millisecond)
		}
		disturb(minute) // about when it fires
	}
	time.Sleep(30 * time.Second)
	for _, p := range m.nodes {
		p.lead.Lead(false)
	}
	m.elect(-1)
	passed := int((core.TimeOf(m.now())-first)/60_000) + 1
	due := map[string]int{}
	for _, r := range m.fired(routine) {
		due[r.ID]++
	}
	for id, times := range due { // a run is named after the time at which it was due
		if times != 1 {
			t.Errorf("%s fired %d times", id, times)
		}
	}
	if len(due) != passed {
		t.Errorf("%d times of the schedule fired, want %d", len(due), passed)
	}
	// A timer that is late leaves out what it missed, so there may be fewer.
	intervals, ticks := int(m.now().Sub(began)/time.Minute), 0
	for _, r := range m.runs(zeta) {
		if r.RetryOf == "" { // the node of the one that it stands for died under it
			ticks++
		}
	}
	if ticks > intervals+1 || ticks < intervals-n/4-1 {
		t.Errorf("%d ticks of a timer in %d intervals", ticks, intervals)
	}
	_ = timed
}

// The node that leads dies at the moment at which timers fire, again and again,
// with what it submitted landed or not; who leads next goes on.
func TestWhatIsDueFiresOnceWhenTheLeaderDiesAtThatMoment(t *testing.T) {
	run(t, 3, func(t *testing.T, m *mesh) {
		lead := 0
		fireUnder(t, m, some(24), func(minute int) {
			time.Sleep(time.Duration(minute) * 7 * time.Millisecond) // before, while and after it fires
			dying := m.nodes[lead]
			dying.setCut(true)
			m.elect(-1)
			dying.halt()
			time.Sleep(time.Duration(minute%4) * time.Second)
			lead = (lead + 1) % 3
			m.elect(lead)
			dying.setCut(false)
			dying.open()
			dying.start()
		})
	})
}

// The clock of the node that leads is set an hour ahead and an hour back, also
// while leaders change. The mesh's time neither jumps nor stands still, so no time
// of a schedule is left out, fires twice, or waits for an hour.
func TestWhatIsDueFiresOnceWhenClocksJump(t *testing.T) {
	run(t, 3, func(t *testing.T, m *mesh) {
		began, real := m.now(), time.Now()
		jumps := []time.Duration{time.Hour, -time.Hour, 0, time.Hour, time.Hour, -time.Hour}
		fireUnder(t, m, some(30), func(minute int) {
			lead := minute / 5 % 3
			m.nodes[lead].skew.Store(int64(jumps[minute%len(jumps)]))
			if minute%5 == 0 {
				m.elect(lead)
			}
			if minute%5 == 2 {
				time.Sleep(100 * time.Millisecond)
				m.nodes[(lead+1)%3].lead.Lead(true) // believes in itself, with another clock
			}
		})
		mesh, passed := m.now().Sub(began), time.Since(real)
		t.Logf("in %v the mesh's time went on by %v", passed.Round(time.Second), mesh.Round(time.Second))
		if mesh < passed/3 {
			t.Errorf("in %v the mesh's time went on by %v only", passed, mesh)
		}
	})
}

// A mesh that leads with a clock that was set back goes on at half the pace at
// least: what is due in a minute fires within two.
func TestAClockThatIsSetBackDelaysByHalf(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 1s", `{"heartbeat":{"enabled":true,"intervalSec":60}}`)
		m.nodes[0].skew.Store(int64(-time.Hour))
		time.Sleep(10*time.Minute + 5*time.Second)
		if n := len(m.runs(acme)); n < 4 || n > 10 {
			t.Errorf("%d ticks in ten minutes with a clock that was set back, want 5", n)
		}
		_ = ada
	})
}
