package sim

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/cron"
	"github.com/selvage-mesh/selvage/company/topic"
	"github.com/selvage-mesh/selvage/ledger"
)

// The death of the leader neither loses nor doubles a time of a cron job: before, at and
// after the minute, three nodes, with the power cut of the one that leads and its return.
func TestTheLeadersDeathNeitherLosesNorDoublesATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Hour)
		defer cancel()
		m, err := New(ctx, 7, 3, dir, slog.New(slog.DiscardHandler), nil)
		defer func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			time.Sleep(stragglers)
		}()
		if err != nil {
			t.Fatal(err)
		}
		minute := func() time.Time { return time.Now().Truncate(time.Minute).Add(time.Minute) }
		first := minute()
		w := world{}
		r, err := m.Peers[0].Up().Submit(ctx, w.command(cron.KindSave, cron.Save{Name: "beat", Cron: "* * * * *", Zone: "UTC",
			Missed: cron.MissedAll, Topic: "beats", Next: core.TimeOf(first)}))
		if err != nil || r.Err() != nil {
			t.Fatal(err, r.Err())
		}
		deaths := 0
		for n := range 12 {
			// The leader dies up to a second before the minute and up to a second after it.
			time.Sleep(time.Until(minute().Add(time.Duration(n-6) * 170 * time.Millisecond)))
			leader, err := m.WaitLeader(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Crash(50, leader); err != nil {
				t.Fatal(err)
			}
			deaths++
			time.Sleep(20 * time.Second)
			if err := m.Start(ctx, leader); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Until(minute().Add(30 * time.Second)))
		want := int(time.Since(first)/time.Minute) + 1
		for _, p := range m.Peers {
			var all []topic.Message
			var job cron.Job
			if _, err := p.Up().View(ctx, ledger.Read{Mode: ledger.ReadStrong}, func(tx *ledger.Tx) error {
				all = topic.Read(tx, "", "beats", 0, topic.MaxPage, core.TimeOf(time.Now()))
				job, _ = cron.Of(tx, "", "beat")
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if len(all) != want || job.Fired != int64(want) {
				t.Errorf("%s: %d messages and %d firings after %d deaths, want %d", p.Name, len(all), job.Fired, deaths, want)
			}
			due := map[core.Time]bool{}
			for _, f := range job.Firings {
				if due[f.Due] || !f.OK || f.Due%60_000 != 0 {
					t.Errorf("%s: a firing %+v", p.Name, f)
				}
				due[f.Due] = true
			}
		}
	})
}
