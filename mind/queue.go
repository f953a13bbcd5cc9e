package mind

import (
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// A Kind says what an impulse tells. The words are part of the API: do not rename.
type Kind string

// The kinds of impulses.
const (
	Novelty   Kind = "novelty_detected"  // a record is new
	Belief    Kind = "belief_update"     // a record says something else than before
	Refined   Kind = "embedding_refined" // a record has a vector of a model
	Coherence Kind = "coherence_alert"   // changes were missed: the whole company is looked at
	Confirmed Kind = "edge_confirmed"    // the mesh has applied links
)

// A Structure is what an impulse comes from or goes to.
type Structure string

// The structures.
const (
	Index  Structure = "index"
	Causal Structure = "causal_graph"
	Ledger Structure = "ledger"
)

// An Impulse tells that something changed. Impulses are taken in the order of their
// heights, and of their numbers at the same height.
type Impulse struct {
	Number  uint64
	Kind    Kind
	From    Structure
	To      Structure
	Company ledger.CompanyID
	Record  string // "": the company as a whole
	Change  uint64 // number of the change in its company
	At      time.Time
	Until   time.Time // when it is dropped
	Done    bool      // it was acknowledged
}

// A queue holds impulses in their order.
type queue struct {
	list    []Impulse
	number  uint64
	dropped uint64 // for lack of room
	expired uint64
	done    uint64
	last    []Impulse // that were taken, the newest last
}

// push adds an impulse, unless there is no room.
func (q *queue) push(i Impulse, now time.Time) bool {
	if len(q.list) >= maxImpulses {
		q.dropped++
		return false
	}
	q.number++
	i.Number, i.At, i.Until = q.number, now, now.Add(impulseLife)
	q.list = append(q.list, i)
	return true
}

// drain takes at most n impulses; those that are too old are dropped.
func (q *queue) drain(n int, now time.Time) (out []Impulse) {
	at := 0
	for ; at < len(q.list) && len(out) < n; at++ {
		if i := q.list[at]; now.Before(i.Until) {
			out = append(out, i)
		} else {
			q.expired++
		}
	}
	q.list = append(q.list[:0:0], q.list[at:]...)
	return out
}

// back returns impulses that were taken and not worked on, in front.
func (q *queue) back(list []Impulse) {
	q.list = append(append(q.list[:0:0], list...), q.list...)
}

// acknowledge notes what was worked on.
func (q *queue) acknowledge(i Impulse) {
	i.Done = true
	q.done++
	q.last = append(q.last, i)
	if len(q.last) > kept {
		q.last = append(q.last[:0:0], q.last[len(q.last)-kept:]...)
	}
}
