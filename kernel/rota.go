package kernel

import "sync"

// A Rota says whose turn it is among many that rest between their calls. Each is called by one at
// a time, in the order in which they were woken, and no waking is lost: one that comes during a
// call leads to another call after it. A rota starts no goroutine and keeps none: [Rota.Wake] says
// when a caller is to begin, and [Rota.Next] when it is to end. So it runs in any time.
type Rota[T any] struct {
	most int // callers at once

	mu      sync.Mutex // guards what follows, and all turns
	queue   []*Turn[T] // from head on
	head    int
	callers int
	bug     bool // planted by tests: a waking during a call is lost
}

// A Turn is one that rests, and is called when it was woken. Of says what is called.
type Turn[T any] struct {
	Of    T
	state turnState
	again bool // it was woken since it was called, or while it was held
	held  bool
	ended bool
}

type turnState byte

const (
	resting turnState = iota
	queued
	called
)

// NewRota returns a rota of at most most callers at once.
func NewRota[T any](most int) *Rota[T] { return &Rota[T]{most: most} }

// Wake says that there is something to do for t. If it returns true, a caller is to begin: it asks
// Next until there is none.
func (r *Rota[T]) Wake(t *Turn[T]) (begin bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wake(t)
}

func (r *Rota[T]) wake(t *Turn[T]) (begin bool) {
	switch {
	case t.ended:
	case t.held, t.state == called:
		t.again = t.again || !r.bug
	case t.state == resting:
		return r.enqueue(t)
	}
	return false
}

func (r *Rota[T]) enqueue(t *Turn[T]) (begin bool) {
	t.state, t.again = queued, false
	if r.head > 64 && r.head*2 > len(r.queue) {
		n := copy(r.queue, r.queue[r.head:])
		clear(r.queue[n:])
		r.queue, r.head = r.queue[:n], 0
	}
	r.queue = append(r.queue, t)
	if r.callers < r.most {
		r.callers++
		return true
	}
	return false
}

// Next returns whom a caller is to call now, who is called by nobody else until Done; nil: nobody
// waits, and this caller ends.
func (r *Rota[T]) Next() *Turn[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.head < len(r.queue) {
		t := r.queue[r.head]
		r.queue[r.head] = nil
		if r.head++; r.head == len(r.queue) {
			r.queue, r.head = r.queue[:0], 0
		}
		if t.held || t.ended {
			t.state, t.again = resting, true
			continue
		}
		t.state = called
		return t
	}
	r.callers--
	return nil
}

// Claim makes the one who asks the caller of t, if it rests and nothing is to be done for it.
func (r *Rota[T]) Claim(t *Turn[T]) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.state != resting || t.ended {
		return false
	}
	t.state = called
	return true
}

// Done says that the call of t is over. ended: it is not called again, and whoever called it clears
// up. begin: see Wake.
func (r *Rota[T]) Done(t *Turn[T]) (ended, begin bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.state = resting
	if t.again && !t.held && !t.ended {
		begin = r.enqueue(t)
	}
	return t.ended, begin
}

// Hold keeps t from being called until Release. A call that goes on is not ended by it.
func (r *Rota[T]) Hold(t *Turn[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.held = true
	t.again = t.again || t.state == called // its caller leaves what there is
}

// Release ends Hold; begin: see Wake.
func (r *Rota[T]) Release(t *Turn[T]) (begin bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.held = false
	return t.again && t.state == resting && r.wake(t)
}

// Free reports whether the call of t may go on with what comes next: it was neither held nor ended.
func (r *Rota[T]) Free(t *Turn[T]) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !t.held && !t.ended
}

// End keeps t from being called ever again. busy: it is being called, and Done will say that it has
// ended; if not, whoever ended it clears up. Of a second End it is true.
func (r *Rota[T]) End(t *Turn[T]) (busy bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	busy = t.ended || t.state == called
	t.ended = true
	return busy
}
