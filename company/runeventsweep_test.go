package company

import (
	"encoding/json"
	"testing"
	"time"
)

// Events of runs go when they are older than the settings say; those of younger runs
// and of live ones stay, and so do the runs.
func TestEventsOfOldRunsAreSwept(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	made := func(status RunStatus, events int) string {
		r, _ := runs.Get(d.tx, d.company, d.run(ada))
		r.Status, r.CreatedAt = status, TimeOf(d.now)
		for range events {
			r = addEvent(d.context(board, "", nil), r, "lifecycle", "info", "something", nil)
		}
		runs.Put(d.tx, d.company, r.ID, r)
		return r.ID
	}
	have := func(run string) int { return len(EventsOf(d.tx, d.company, run, 0, 10*maxRunEvents)) }
	sweep := func() {
		t.Helper()
		if err := d.byNode("n1", "run_event.sweep", SweepEvents{}); err != nil {
			t.Fatal(err)
		}
	}
	var old []string
	for range 4 { // more than one command removes
		old = append(old, made(RunSucceeded, 800))
	}
	live := made(RunRunning, 3)
	d.now = d.now.Add(20 * 24 * time.Hour)
	young := made(RunFailed, 3)
	d.now = d.now.Add(20 * 24 * time.Hour)
	due := func() bool { return EventsToSweep(d.tx, d.company, TimeOf(d.now)) }
	if due() {
		t.Error("events are to go although nobody said so")
	}
	d.must(t, board, "instance.settings", PatchSettings{Section: "general", Values: json.RawMessage(`{"runEventRetention":{"days":30}}`)}, nil)
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
		if _, ok := RunOf(d.tx, d.company, run); !ok || have(run) != 0 {
			t.Errorf("an old run is there: %v, with %d events", ok, have(run))
		}
	}
	if have(live) == 0 || have(young) == 0 {
		t.Errorf("the live run has %d events, the young one %d", have(live), have(young))
	}
	d.now = d.now.Add(20 * 24 * time.Hour)
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
