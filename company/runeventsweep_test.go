package company_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
)

// Events of runs go when they are older than the settings say; those of younger runs
// and of live ones stay, and so do the runs.
func TestEventsOfOldRunsAreSwept(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	made := func(status entity.RunStatus, events int) string {
		r, _ := entity.RunTable.Get(d.Tx, d.Company, d.Run(ada))
		r.Status, r.CreatedAt = status, core.TimeOf(d.Now)
		for range events {
			r = company.AddEvent(d.Context(companytest.Board, "", nil), r, "lifecycle", "info", "something", nil)
		}
		entity.RunTable.Put(d.Tx, d.Company, r.ID, r)
		return r.ID
	}
	have := func(run string) int { return len(entity.EventsOf(d.Tx, d.Company, run, 0, 10*company.MaxRunEvents)) }
	sweep := func() {
		t.Helper()
		if err := d.ByNode("n1", "run_event.sweep", company.SweepEvents{}); err != nil {
			t.Fatal(err)
		}
	}
	var old []string
	for range 4 { // more than one command removes
		old = append(old, made(entity.RunSucceeded, 800))
	}
	live := made(entity.RunRunning, 3)
	d.Now = d.Now.Add(20 * 24 * time.Hour)
	young := made(entity.RunFailed, 3)
	d.Now = d.Now.Add(20 * 24 * time.Hour)
	due := func() bool { return company.EventsToSweep(d.Tx, d.Company, core.TimeOf(d.Now)) }
	if due() {
		t.Error("events are to go although nobody said so")
	}
	d.Must(t, companytest.Board, "instance.settings", company.PatchSettings{Section: "general",
		Values: json.RawMessage(`{"runEventRetention":{"days":30}}`)}, nil)
	if !due() {
		t.Fatal("nothing is due")
	}
	sweep()
	if have(old[0]) != 0 || have(old[3]) == 0 {
		t.Errorf("after one command the oldest run has %d events and the last %d", have(old[0]), have(old[3]))
	}
	for n := 0; due(); n++ {
		if n == 5 {
			t.Fatal("there is always more to remove")
		}
		sweep()
	}
	for _, run := range old {
		if _, ok := entity.RunOf(d.Tx, d.Company, run); !ok || have(run) != 0 {
			t.Errorf("an old run is there: %v, with %d events", ok, have(run))
		}
	}
	if have(live) == 0 || have(young) == 0 {
		t.Errorf("the live run has %d events, the young one %d", have(live), have(young))
	}
	d.Now = d.Now.Add(20 * 24 * time.Hour)
	if !due() {
		t.Fatal("the young run has become old, and nothing is due")
	}
	if sweep(); have(young) != 0 {
		t.Errorf("%d events are left of a run that has become old", have(young))
	}
	if sweep(); due() { // with nothing to do
		t.Error("something is due after all is gone")
	}
}
