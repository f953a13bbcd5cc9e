package company

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// The queue holds the runs that wait for a node:
//
//	sched/queue/<company>/<turn>/<run>   its agent, a space, and since when it may be placed (ms)
//
// Companies take turns, whatever the length of their queues; within a company the
// lowest turn goes first. A turn is the time at which the run came, in ms, less
// what its urgency is worth, and 20 bits of the height that tell apart what came in
// the same millisecond. So what is urgent goes before what came up to an hour
// earlier, and nothing waits for ever behind what is more urgent: after that hour
// what comes newly is behind it. A row of a run from before there were turns has
// its height in place of the turn, which is lower than any, and no value.

// queueAhead is what the urgency of a run is worth, in ms.
var queueAhead = map[entity.Priority]core.Time{
	entity.PriorityCritical: 60 * 60_000,
	entity.PriorityHigh:     10 * 60_000,
	entity.PriorityMedium:   0,
	entity.PriorityLow:      -10 * 60_000,
}

const (
	// turnBits of a turn are the height's.
	turnBits = 20
)

// priorityOf is how urgent a run is: as its issue, and at least high when a person
// asked for it and waits.
func priorityOf(tx *ledger.Tx, r entity.Run) entity.Priority {
	p := entity.PriorityMedium
	if i, ok := entity.IssueTable.Get(tx, r.Company, r.Context.IssueID); ok && r.Context.IssueID != "" && i.Priority != "" {
		p = i.Priority
	}
	if r.Manual && p.Rank() > entity.PriorityHigh.Rank() {
		p = entity.PriorityHigh
	}
	return p
}

// turnOf orders a run that came at an instant, in the entry of a height.
func turnOf(came core.Time, p entity.Priority, height uint64) uint64 {
	return uint64(max(came-queueAhead[p], 0))<<turnBits | height&(1<<turnBits-1)
}

// queued puts a run that has no node into the queue.
func queued(tx *ledger.Tx, r entity.Run, p entity.Priority) entity.Run {
	r.Turn = turnOf(max(r.CreatedAt, r.ScheduledRetryAt), p, r.Queue)
	tx.Set(entity.QueueKey(r), entity.QueueValue(r))
	return r
}

// reorderRuns moves the waiting runs of an issue whose urgency changed to the
// turns that they have now.
func reorderRuns(tx *ledger.Tx, before, next entity.Issue) {
	if before.ID == "" || before.Priority == next.Priority {
		return
	}
	for _, r := range entity.LiveRunsOnIssue(tx, next) {
		if r.Session == 0 {
			tx.Delete(entity.QueueKey(r))
			r = queued(tx, r, priorityOf(tx, r))
			entity.RunTable.Put(tx, r.Company, r.ID, r)
		}
	}
}
