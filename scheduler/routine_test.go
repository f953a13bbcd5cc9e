package scheduler

import (
	"slices"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/ledger"
)

// routine makes a routine with a schedule of an agent, and returns both.
func (m *mesh) routine(of ledger.CompanyID, agent, cron, zone string, change func(*routine.SaveRoutine)) (theRoutine,
	trigger string) {
	m.t.Helper()
	m.mu.Lock()
	m.salt += 2
	theRoutine, trigger = uuid("r", m.salt), uuid("t", m.salt+1)
	m.mu.Unlock()
	s := routine.SaveRoutine{ID: theRoutine, Title: new("Daily"), Assignee: &agent,
		Concurrency: new(routine.RoutineAlways)}
	if change != nil {
		change(&s)
	}
	m.must(board("routine.create", of, s))
	next, err := NextRun(cron, zone, time.Now())
	if err != nil {
		m.t.Fatal(err)
	}
	m.must(board("routine_trigger.create", of, routine.SaveTrigger{ID: trigger, Routine: theRoutine,
		Kind: routine.TriggerSchedule, Cron: &cron, Zone: &zone, Next: next}))
	return theRoutine, trigger
}

// fired returns the runs of a routine, the newest first.
func (m *mesh) fired(theRoutine string) (out []routine.RoutineRun) {
	_ = m.Ledger.View(func(tx *ledger.Tx) error {
		r, _ := routine.RoutineByID(tx, theRoutine)
		out = routine.RoutineRunsOf(tx, r, 1000)
		return nil
	})
	return out
}

func (m *mesh) tick(trigger string, now time.Time) (p routine.TickRoutine) {
	_ = m.Ledger.View(func(tx *ledger.Tx) error {
		t, _ := routine.TriggerByID(tx, trigger)
		p = tickOf(tx, t, core.TimeOf(now))
		return nil
	})
	return p
}

func TestWhatWasMissedIsLeftOutOrCaughtUp(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		m.elect(-1) // what is due waits
		ada := m.agent(acme, "ada", "sleep 1s", "")
		_, skip := m.routine(acme, ada, "0 * * * *", "UTC", nil)
		_, late := m.routine(acme, ada, "0 * * * *", "UTC",
			func(s *routine.SaveRoutine) { s.CatchUp = new(routine.CatchUpEnqueue) })
		_, often := m.routine(acme, ada, "* * * * *", "UTC", nil)
		first, _ := NextRun("0 * * * *", "UTC", time.Now())
		for _, c := range []struct {
			trigger string
			missed  int // hours beyond the first
			next    int // hours after the first
		}{
			{skip, 0, 1}, {skip, 1, 2}, {skip, 100, 101},
			{late, 0, 1}, {late, 1, 1}, {late, 24, 1}, // the tick and those that go on from Next are all within the cap
			{late, 25, 2}, {late, 100, 77}, // the oldest are left out
		} {
			now := first.Std().Add(time.Duration(c.missed)*time.Hour + time.Minute)
			p := m.tick(c.trigger, now)
			if p.Due != first || p.Problem != "" || p.Next != first+core.Time(c.next)*3_600_000 {
				t.Errorf("%d missed: goes on %v after the first, want %d h (%s)", c.missed, (p.Next - first).Std().
					Sub(core.Time(0).Std()), c.next, p.Problem)
			}
			if c.trigger == late {
				if fires := 1 + c.missed + 1 - c.next; c.missed > 24 && fires != routine.MaxCatchUp {
					t.Errorf("%d missed: %d fire, want %d", c.missed, fires, routine.MaxCatchUp)
				}
			}
		}
		// Beyond what anybody counts it goes on from now.
		due := m.tick(often, time.Now()).Due
		now := due.Std().Add((maxLateTimes + 5) * time.Minute)
		if p := m.tick(often, now); p.Next != due+core.Time(maxLateTimes+6)*60_000 {
			t.Errorf("after years it goes on at %s, now is %s", p.Next, now)
		}
	})
}

// A schedule goes by the clock on the wall of its zone: what lies in the hour that
// is left out in spring fires when that hour would have begun, and what lies in the
// hour that comes twice in autumn fires in the first of them, unless it is of every
// hour; and months end.
func TestSchedulesFireWhenClocksChangeAndMonthsEnd(t *testing.T) {
	alone(t)
	for _, c := range []struct {
		name, cron, zone, from string
		fired                  []string
		next                   string
	}{
		{"spring", "30 2 * * *", "Europe/Berlin", "2026-03-29T00:40:00Z", []string{"2026-03-29T01:00:00Z"},
			"2026-03-30T00:30:00Z"},
		{"autumn", "30 2 * * *", "Europe/Berlin", "2026-10-25T00:10:00Z", []string{"2026-10-25T00:30:00Z"},
			"2026-10-26T01:30:00Z"},
		{"autumn, every hour", "30 * * * *", "Europe/Berlin", "2026-10-25T00:10:00Z", []string{"2026-10-25T00:30:00Z",
			"2026-10-25T01:30:00Z"}, "2026-10-25T02:30:00Z"},
		{"a month ends", "0 0 1 * *", "UTC", "2027-02-28T23:50:00Z", []string{"2027-03-01T00:00:00Z"},
			"2027-04-01T00:00:00Z"},
		{"a day that not every month has", "0 12 31 * *", "America/New_York", "2026-08-31T15:50:00Z",
			[]string{"2026-08-31T16:00:00Z"}, "2026-10-31T16:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, err := time.Parse(time.RFC3339, c.from)
			if err != nil {
				t.Fatal(err)
			}
			runAt(t, 1, from, func(t *testing.T, m *mesh) {
				ada := m.agent(acme, "ada", "sleep 1s", "")
				routine, trigger := m.routine(acme, ada, c.cron, c.zone, nil)
				time.Sleep(30*time.Minute + time.Duration(len(c.fired)-1)*time.Hour)
				var fired []string
				for _, r := range m.fired(routine) {
					fired = append(fired, r.TriggeredAt.Std().UTC().Truncate(time.Minute).Format(time.RFC3339))
				}
				slices.Sort(fired)
				if next := m.dueOf(trigger).Std().UTC().Format(time.RFC3339); !slices.Equal(fired, c.fired) || next != c.next {
					t.Errorf("fired at %v, and next at %s; want %v and %s", fired, next, c.fired, c.next)
				}
			})
		})
	}
}

// After a gap without a leader a routine that catches up fires as often as the
// cap says and one that does not once, each under its own time.
func TestCatchingUpStopsAtTheCap(t *testing.T) {
	run(t, 2, func(t *testing.T, m *mesh) {
		m.elect(-1)
		ada := m.agent(acme, "ada", "sleep 1s", "")
		skip, _ := m.routine(acme, ada, "* * * * *", "UTC", nil)
		late, _ := m.routine(acme, ada, "* * * * *", "UTC",
			func(s *routine.SaveRoutine) { s.CatchUp = new(routine.CatchUpEnqueue) })
		time.Sleep(48*time.Minute + 30*time.Second)
		m.elect(1)
		time.Sleep(20 * time.Second)
		if n := len(m.fired(skip)); n != 1 {
			t.Errorf("what is left out fired %d times, want once", n)
		}
		if n := len(m.fired(late)); n != routine.MaxCatchUp {
			t.Errorf("what is caught up fired %d times, want %d", n, routine.MaxCatchUp)
		}
		time.Sleep(time.Minute)
		if a, b := len(m.fired(skip)), len(m.fired(late)); a != 2 || b != routine.MaxCatchUp+1 {
			t.Errorf("a minute later they fired %d and %d times", a, b)
		}
	})
}

func TestAGatedRoutineRestsWhileNothingHappens(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 1s", "")
		project := uuid("p", 1)
		m.must(board("project.create", acme, entity.SaveProject{ID: project, Name: new("Rig")}))
		gate := func(scope string) func(*routine.SaveRoutine) {
			return func(s *routine.SaveRoutine) {
				s.Gate, s.GateScope, s.Project = new("require_external_activity"), &scope, &project
			}
		}
		wide, _ := m.routine(acme, ada, "* * * * *", "UTC", gate("company"))
		narrow, _ := m.routine(acme, ada, "* * * * *", "UTC", gate("project"))
		last := func(what, theRoutine string, n int, want routine.RoutineRunStatus) {
			t.Helper()
			all := m.fired(theRoutine)
			if len(all) != n {
				t.Fatalf("%s: %d runs, want %d", what, len(all), n)
			}
			newest := all[0]
			for _, r := range all {
				if r.TriggeredAt > newest.TriggeredAt {
					newest = r
				}
			}
			if newest.Status != want && !(want == routine.RoutineIssued && newest.Status == routine.RoutineCompleted) {
				t.Errorf("%s: %s %q, want %s", what, newest.Status, newest.Failure, want)
			}
		}
		time.Sleep(30 * time.Second) // the turn of the minute is far
		minute := func() { time.Sleep(time.Minute) }
		issue := func(id, project string) {
			m.must(board("issue.create", acme, company.CreateIssue{ID: id, Title: "seen " + id, Project: project,
				Status: entity.IssueBacklog}))
		}
		minute()
		last("first", wide, 1, routine.RoutineIssued)
		last("first in the project", narrow, 1, routine.RoutineIssued)
		minute() // what the routines and their assignee did does not count
		last("nothing since", wide, 2, routine.RoutineSkipped)
		last("nothing since in the project", narrow, 2, routine.RoutineSkipped)
		issue(uuid("i", 1), "")
		minute()
		last("something in the company", wide, 3, routine.RoutineIssued)
		last("nothing in the project", narrow, 3, routine.RoutineSkipped)
		issue(uuid("i", 2), project)
		minute()
		last("something in the project", narrow, 4, routine.RoutineIssued)
		for _, r := range m.fired(wide) {
			if r.Status == routine.RoutineSkipped && r.Failure != "Nothing happened since the last run" {
				t.Errorf("skipped because of %q", r.Failure)
			}
		}
	})
}

// A schedule is due while leaders come and go, while two of them believe that they lead,
// and while one is cut off: each of its times fires exactly once.
func TestAScheduleFiresOnceWhoeverLeads(t *testing.T) {
	run(t, 3, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 1s", `{"heartbeat":{"wakeOnDemand":false}}`)
		theRoutine, trigger := m.routine(acme, ada, "* * * * *", "UTC",
			func(s *routine.SaveRoutine) { s.CatchUp = new(routine.CatchUpEnqueue) })
		var first core.Time
		_ = m.Ledger.View(func(tx *ledger.Tx) error { tr, _ := routine.TriggerByID(tx, trigger); first = tr.Due; return nil })
		for n := range some(60) {
			// The change falls before, onto and after the instant at which it is due.
			edge := time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)) + time.Duration(n%5-2)*400*time.Millisecond
			time.Sleep(edge)
			m.elect(n % 3)
			m.nodes[(n+1)%3].lead.Lead(true) // does not know yet that it was deposed
			if n%7 == 3 {
				m.nodes[n%3].setCut(true)
				time.Sleep(3 * time.Second)
				m.elect((n + 1) % 3)
				m.nodes[n%3].setCut(false)
			}
		}
		time.Sleep(10 * time.Second)
		for _, p := range m.nodes {
			p.lead.Lead(false)
		}
		m.elect(-1)
		passed := int((core.TimeOf(time.Now())-first)/60_000) + 1
		all, ids := m.fired(theRoutine), map[string]bool{}
		for _, r := range all {
			if ids[r.ID] || r.Source != "schedule" {
				t.Errorf("run %s by %s twice", r.ID, r.Source)
			}
			ids[r.ID] = true
		}
		if len(all) != passed {
			t.Errorf("%d times fired, want %d", len(all), passed)
		}
		issues := map[string]int{}
		for _, r := range all {
			if r.Status == routine.RoutineIssued {
				issues[string(r.Issue)]++
			}
		}
		for id, n := range issues {
			if n != 1 {
				t.Errorf("issue %s is of %d runs", id, n)
			}
		}
	})
}

// A routine that can not be fired keeps no run from its node.
func TestAStepThatFailsHoldsUpNoOther(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 1s", "")
		routine, _ := m.routine(acme, ada, "* * * * *", "UTC", nil)
		m.nodes[0].refuse("routine.tick")
		time.Sleep(2 * time.Minute)
		if n := len(m.fired(routine)); n != 0 {
			t.Fatalf("the routine was fired %d times", n)
		}
		m.untilStatus(m.invoke(acme, ada).ID, 10*time.Second, entity.RunSucceeded)
		m.nodes[0].refuse("")
		m.until(2*time.Minute, "the routine is fired again", func() bool { return len(m.fired(routine)) > 0 })
	})
}
