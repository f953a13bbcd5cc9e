package company

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// The queue holds the runs that wait for a node:
//
//	sched/queue/<company>/<turn>/<run>   agent, space, and from when it may be placed (ms)
//
// Companies take turns, whatever the length of their queues. Within a company the lowest
// turn is next. A turn is the arrival time of the run in ms, less an amount for its
// priority, followed by 20 bits of the height, which order arrivals of the same
// millisecond. So an urgent run overtakes runs that arrived up to an hour earlier, and no
// run waits for ever behind more urgent ones. Rows from before there were turns have the
// height in place of the turn, which is lower than every turn, and no value.

// queueAhead is how many ms each priority subtracts from the arrival time.
var queueAhead = map[entity.Priority]core.Time{
	entity.PriorityCritical: 60 * 60_000,
	entity.PriorityHigh:     10 * 60_000,
	entity.PriorityMedium:   0,
	entity.PriorityLow:      -10 * 60_000,
}

const (
	// turnBits is the number of bits of a turn that hold the height.
	turnBits = 20
)

// priorityOf returns the priority of a run: its issue's, and at least high when a person
// asked for the run.
func priorityOf(tx *ledger.Tx, r entity.Run) entity.Priority {
	p := entity.PriorityMedium
	if i, ok := entity.IssueTable.Get(tx, r.Company, r.Context.IssueID); ok && r.Context.IssueID != "" &&
		i.Priority != "" {
		p = i.Priority
	}
	if r.Manual && p.Rank() > entity.PriorityHigh.Rank() {
		p = entity.PriorityHigh
	}
	return p
}

// turnOf returns the turn of a run that arrived at an instant, in the entry with height.
func turnOf(came core.Time, p entity.Priority, height uint64) uint64 {
	return uint64(max(came-queueAhead[p], 0))<<turnBits | height&(1<<turnBits-1)
}

// queued adds a run without a node to the queue.
func queued(tx *ledger.Tx, r entity.Run, p entity.Priority) entity.Run {
	r.Turn = turnOf(max(r.CreatedAt, r.ScheduledRetryAt), p, r.Queue)
	tx.Set(entity.QueueKey(r), entity.QueueValue(r))
	return r
}

// reorderRuns moves the queued runs of an issue whose priority changed to their new
// turns.
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
