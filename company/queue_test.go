package company

import (
	"slices"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// Nothing is overtaken for ever: what is of low priority goes before anything that
// comes an hour and ten minutes later, however urgent that is.
func TestNothingIsOvertakenForEver(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	names := map[string]string{}
	add := func(name string, p Priority, after time.Duration) {
		i := d.issue(t, CreateIssue{Title: name, Priority: p, AllowDuplicate: true})
		began := d.now
		d.now = d.now.Add(after)
		c := d.context(board, "", nil)
		r := enqueue(c, Run{ID: d.id(), Company: d.company, Agent: ada, Status: RunQueued, Source: WakeAutomation, Context: RunContext{IssueID: i.ID}, CreatedAt: TimeOf(c.Now)})
		names[r.ID], d.now = name, began
	}
	add("critical in 71 minutes", PriorityCritical, 71*time.Minute)
	add("critical in 60 minutes", PriorityCritical, 60*time.Minute)
	add("low", PriorityLow, 0)
	add("medium in 9 minutes", PriorityMedium, 9*time.Minute)
	add("medium in 12 minutes", PriorityMedium, 12*time.Minute)
	var got []string
	for _, r := range QueuedRuns(d.tx, TimeOf(d.now.Add(2*time.Hour)), "", 10, 10) {
		got = append(got, names[r.ID])
	}
	want := []string{"critical in 60 minutes", "medium in 9 minutes", "low", "critical in 71 minutes", "medium in 12 minutes"}
	if !slices.Equal(got, want) {
		t.Errorf("the queue is %q, want %q", got, want)
	}
	// A row from before there were turns goes first.
	r := Run{ID: d.id(), Company: d.company, Agent: ada, Status: RunQueued, Queue: 3}
	runs.Put(d.tx, d.company, r.ID, r)
	d.tx.Set(queueKey(r), nil)
	if all := QueuedRuns(d.tx, TimeOf(d.now.Add(2*time.Hour)), "", 10, 10); len(all) != 6 || all[0].ID != r.ID {
		t.Errorf("%d runs, the first is not the old one", len(all))
	}
}

// What waits to try again and is told to go at once has one place in the queue.
func TestARunHasOnePlaceInTheQueue(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.hired("Ada")
	i := d.issue(t, CreateIssue{Status: IssueTodo, Assignee: ada})
	for r := range RunsOfIssue(d.tx, d.company, i.ID) {
		endRun(d.context(as{}, "", nil), r, Outcome{Status: RunCancelled})
	}
	c := d.context(board, "", nil)
	r := enqueue(c, Run{ID: d.id(), Company: d.company, Agent: ada, Status: RunScheduledRetry, Source: WakeAutomation, Context: RunContext{IssueID: i.ID}, CreatedAt: TimeOf(c.Now), ScheduledRetryAt: TimeOf(c.Now.Add(time.Hour))})
	d.must(t, board, "run.retry_now", RetryNow{Issue: i.ID}, nil)
	n := 0
	for range d.tx.Prefix(ledger.Key("sched", "queue", "")) {
		n++
	}
	if n != 1 {
		t.Errorf("%d places, want one", n)
	}
	later := TimeOf(d.now.Add(2 * time.Hour))
	if all := QueuedRuns(d.tx, later, "", 10, 10); len(all) != 1 || all[0].ID != r.ID {
		t.Errorf("%d runs wait, want one", len(all))
	}
	r, _ = runs.Get(d.tx, d.company, r.ID)
	endRun(d.context(as{}, "", nil), r, Outcome{Status: RunCancelled})
	if all := QueuedRuns(d.tx, later, "", 10, 10); len(all) != 0 {
		t.Errorf("%d runs wait that are over", len(all))
	}
}
