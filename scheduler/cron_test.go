package scheduler

import (
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/cron"
	"github.com/selvage-mesh/selvage/company/topic"
	"github.com/selvage-mesh/selvage/ledger"
)

// cron adds a job of a company, or of the mesh for "", that publishes to a topic of its name.
func (m *mesh) cron(of ledger.CompanyID, name, at, missed string) (first core.Time) {
	m.t.Helper()
	if of != "" {
		m.agent(of, name, "true", "") // founds the company
	}
	first, err := NextRun(at, "UTC", time.Now())
	if err != nil {
		m.t.Fatal(err)
	}
	m.must(board(cron.KindSave, of, cron.Save{Name: name, Cron: at, Zone: "UTC", Missed: missed, Topic: name,
		Next: first}))
	return first
}

// heard returns what a job published, by number.
func (m *mesh) heard(of ledger.CompanyID, name string) (out []topic.Message) {
	_ = m.Ledger.View(func(tx *ledger.Tx) error {
		out = topic.Read(tx, of, name, 0, topic.MaxPage, core.TimeOf(time.Now()))
		return nil
	})
	return out
}

// Each time of a job fires once, whoever leads, while leaders change before, at and after it,
// and while one leads on that does not know that it was deposed.
func TestACronJobFiresOnceWhoeverLeads(t *testing.T) {
	run(t, 3, func(t *testing.T, m *mesh) {
		first := m.cron(acme, "all", "* * * * *", cron.MissedAll)
		m.cron("", "mesh", "* * * * *", cron.MissedAll)
		for n := range some(60) {
			time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)) + time.Duration(n%5-2)*400*time.Millisecond)
			m.elect(n % 3)
			m.nodes[(n+1)%3].lead.Lead(true)
			if n%7 == 3 {
				m.nodes[n%3].setCut(true)
				time.Sleep(3 * time.Second)
				m.elect((n + 1) % 3)
				m.nodes[n%3].setCut(false)
			}
		}
		time.Sleep(10 * time.Second)
		m.elect(-1)
		passed := int((core.TimeOf(time.Now())-first)/60_000) + 1
		for of, name := range map[ledger.CompanyID]string{acme: "all", "": "mesh"} {
			all := m.heard(of, name)
			if len(all) != passed {
				t.Errorf("%s: %d times fired, want %d", name, len(all), passed)
			}
			for n, one := range all {
				if one.Number != int64(n+1) {
					t.Errorf("%s: message %d has number %d", name, n+1, one.Number)
				}
			}
		}
	})
}

// After a gap without a leader a job fires once for all that it missed, or for each, at most
// as often as the bound says; then it goes on at its times.
func TestMissedTimesOfCronJobs(t *testing.T) {
	run(t, 2, func(t *testing.T, m *mesh) {
		m.elect(-1)
		m.cron(acme, "once", "* * * * *", cron.MissedOnce)
		m.cron(acme, "all", "* * * * *", cron.MissedAll)
		time.Sleep(48*time.Minute + 30*time.Second)
		m.elect(1)
		time.Sleep(20 * time.Second)
		if a, b := len(m.heard(acme, "once")), len(m.heard(acme, "all")); a != 1 || b != cron.MaxLate {
			t.Errorf("after the gap they fired %d and %d times, want 1 and %d", a, b, cron.MaxLate)
		}
		time.Sleep(time.Minute)
		if a, b := len(m.heard(acme, "once")), len(m.heard(acme, "all")); a != 2 || b != cron.MaxLate+1 {
			t.Errorf("a minute later they fired %d and %d times", a, b)
		}
	})
}
