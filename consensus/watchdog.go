package consensus

import (
	"sync"
	"time"
)

// A diskWatch knows how long the write to the log that is under way has taken.
// Raft's own leader would go on sending heartbeats while its disk hangs, and so
// keep everyone from electing one that can work; see [guard].
type diskWatch struct {
	long  time.Duration // after a write that took longer,
	ended func()        // this is called; nil: nothing is

	mu    sync.Mutex // guards what follows
	under int        // writes under way; raft seldom has more than one
	since time.Time  // when the first of them began

	writes uint64
	busy   time.Duration
	worst  time.Duration
}

func (w *diskWatch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.under++; w.under == 1 {
		w.since = time.Now()
	}
}

func (w *diskWatch) end() {
	if took := w.done(); took > w.long && w.ended != nil {
		w.ended()
	}
}

// done counts a write that has ended, and returns how long writes were under way
// without a pause if there is none now.
func (w *diskWatch) done() (took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	if w.under--; w.under == 0 {
		took = time.Since(w.since)
		w.busy += took
		w.worst = max(w.worst, took)
	}
	return took
}

// stalled returns how long the write under way has taken, 0 when there is none.
func (w *diskWatch) stalled() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.under == 0 {
		return 0
	}
	return time.Since(w.since)
}

func (w *diskWatch) totals() (writes uint64, busy, worst time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes, w.busy, w.worst
}
