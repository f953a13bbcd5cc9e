package consensus

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// rounds lets batches of several nodes into the log together. While a round is
// on its way, what arrives waits for its end, and all of that is the next round:
// one sync and one message for it, however many nodes sent a batch.
//
// Who has just been answered soon asks again. So after a round of several batches,
// or one at whose end others waited, the next waits for the same nodes, for as long
// as that round took at most. Without that, nodes take turns in rounds that are half
// empty. A batch that comes alone after one that came alone waits for nothing.
type rounds struct {
	push func([]*entrant) // hands a round to raft, in its order

	mu      sync.Mutex // guards what follows
	busy    int        // batches of the round that is under way
	many    bool       // it has several
	waiting []*entrant
	origins []batchOrigin // whom the next round waits for
	began   time.Time     // the last round
	until   time.Time     // for how long the next one waits
	timer   *time.Timer   // ends that
}

// An entrant is a batch that a leader lets into the log.
type entrant struct {
	batch  []byte
	origin batchOrigin

	// Set when its round has begun: one of them.
	future raft.ApplyFuture
	err    error

	turn chan struct{} // closed when its round has begun
	crew []*entrant    // of the first of a round: all of it, which it is to push
}

// A batchOrigin is the node that made a batch.
type batchOrigin [16]byte

// enter waits for the batch's round to begin and returns when raft has it, or
// with the error of ctx and without effect. After nil, leave must follow.
func (r *rounds) enter(ctx context.Context, e *entrant) error {
	e.turn = make(chan struct{})
	r.mu.Lock()
	r.waiting = append(r.waiting, e)
	r.next()
	r.mu.Unlock()
	select {
	case <-e.turn:
	case <-ctx.Done():
		r.mu.Lock()
		n := slices.Index(r.waiting, e)
		if n >= 0 {
			r.waiting = slices.Delete(r.waiting, n, n+1)
		}
		r.mu.Unlock()
		if n >= 0 {
			return ctx.Err()
		}
		<-e.turn // its round has begun, and others may wait for it
	}
	if e.crew != nil {
		r.push(e.crew)
		for _, other := range e.crew[1:] {
			close(other.turn)
		}
	}
	return nil
}

// next begins a round if one may begin now, and else sees to it that it does
// later; r.mu is held.
func (r *rounds) next() {
	if r.busy > 0 || len(r.waiting) == 0 {
		return
	}
	now := time.Now()
	if wait := r.until.Sub(now); wait > 0 && r.missing() {
		if r.timer == nil {
			r.timer = time.AfterFunc(wait, r.waited)
		}
		return
	}
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	all := r.waiting
	r.waiting, r.busy, r.many, r.began = nil, len(all), len(all) > 1, now
	r.origins = r.origins[:0]
	r.expect(all)
	all[0].crew = all
	close(all[0].turn)
}

// waited is the end of a wait.
func (r *rounds) waited() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer = nil // an old timer may find a later wait, and cuts it short
	r.until = time.Time{}
	r.next()
}

// missing tells whether a node that is expected has no batch here.
func (r *rounds) missing() bool {
	for _, o := range r.origins {
		if !slices.ContainsFunc(r.waiting, func(e *entrant) bool { return e.origin == o }) {
			return true
		}
	}
	return false
}

func (r *rounds) expect(all []*entrant) {
	for _, e := range all {
		if !slices.Contains(r.origins, e.origin) {
			r.origins = append(r.origins, e.origin)
		}
	}
}

// leave ends a batch's part in its round.
func (r *rounds) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy--; r.busy > 0 {
		return
	}
	now := time.Now()
	if r.until = now; len(r.waiting) > 0 || r.many {
		r.expect(r.waiting)
		r.until = now.Add(min(now.Sub(r.began), roundWait))
	}
	r.next()
}
