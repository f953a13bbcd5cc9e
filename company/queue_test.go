package company_test

import (
	"slices"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Nothing is overtaken for ever: what is of low priority goes before anything that
// comes an hour and ten minutes later, however urgent that is.
func TestNothingIsOvertakenForEver(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	names := map[string]string{}
	add := func(name string, p entity.Priority, after time.Duration) {
		i := d.Issue(t, company.CreateIssue{Title: name, Priority: p, AllowDuplicate: true})
		began := d.Now
		d.Now = d.Now.Add(after)
		c := d.Context(companytest.Board, "", nil)
		r := company.Enqueue(c, entity.Run{ID: d.ID(), Company: d.Company, Agent: ada, Status: entity.RunQueued,
			Source: entity.WakeAutomation, Context: entity.RunContext{IssueID: i.ID}, CreatedAt: core.TimeOf(c.Now)})
		names[r.ID], d.Now = name, began
	}
	add("critical in 71 minutes", entity.PriorityCritical, 71*time.Minute)
	add("critical in 60 minutes", entity.PriorityCritical, 60*time.Minute)
	add("low", entity.PriorityLow, 0)
	add("medium in 9 minutes", entity.PriorityMedium, 9*time.Minute)
	add("medium in 12 minutes", entity.PriorityMedium, 12*time.Minute)
	var got []string
	for _, r := range entity.QueuedRuns(d.Tx, core.TimeOf(d.Now.Add(2*time.Hour)), "", 10, 10) {
		got = append(got, names[r.ID])
	}
	want := []string{"critical in 60 minutes", "medium in 9 minutes", "low", "critical in 71 minutes",
		"medium in 12 minutes"}
	if !slices.Equal(got, want) {
		t.Errorf("the queue is %q, want %q", got, want)
	}
	// A row from before there were turns goes first.
	r := entity.Run{ID: d.ID(), Company: d.Company, Agent: ada, Status: entity.RunQueued, Queue: 3}
	entity.RunTable.Put(d.Tx, d.Company, r.ID, r)
	d.Tx.Set(entity.QueueKey(r), nil)
	if all := entity.QueuedRuns(d.Tx, core.TimeOf(d.Now.Add(2*time.Hour)), "", 10, 10); len(all) != 6 ||
		all[0].ID != r.ID {
		t.Errorf("%d runs, the first is not the old one", len(all))
	}
}

// What waits to try again and is told to go at once has one place in the queue.
func TestARunHasOnePlaceInTheQueue(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Hired("Ada")
	i := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Assignee: ada})
	for r := range entity.RunsOfIssue(d.Tx, d.Company, i.ID) {
		company.EndRun(d.Context(companytest.As{}, "", nil), r, company.Outcome{Status: entity.RunCancelled})
	}
	c := d.Context(companytest.Board, "", nil)
	r := company.Enqueue(c, entity.Run{ID: d.ID(), Company: d.Company, Agent: ada, Status: entity.RunScheduledRetry,
		Source: entity.WakeAutomation, Context: entity.RunContext{IssueID: i.ID}, CreatedAt: core.TimeOf(c.Now),
		ScheduledRetryAt: core.TimeOf(c.Now.Add(time.Hour))})
	d.Must(t, companytest.Board, "run.retry_now", company.RetryNow{Issue: i.ID}, nil)
	n := 0
	for range d.Tx.Prefix(ledger.Key("sched", "queue", "")) {
		n++
	}
	if n != 1 {
		t.Errorf("%d places, want one", n)
	}
	later := core.TimeOf(d.Now.Add(2 * time.Hour))
	if all := entity.QueuedRuns(d.Tx, later, "", 10, 10); len(all) != 1 || all[0].ID != r.ID {
		t.Errorf("%d runs wait, want one", len(all))
	}
	r, _ = entity.RunTable.Get(d.Tx, d.Company, r.ID)
	company.EndRun(d.Context(companytest.As{}, "", nil), r, company.Outcome{Status: entity.RunCancelled})
	if all := entity.QueuedRuns(d.Tx, later, "", 10, 10); len(all) != 0 {
		t.Errorf("%d runs wait that are over", len(all))
	}
}
