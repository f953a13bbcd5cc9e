package consensus

import (
	"context"
	"slices"
	"sync"
)

// rounds lets batches of several nodes into the log together. While a round is
// on its way, what arrives waits for its end, and all of that is the next round:
// one sync and one message for it, however many nodes sent a batch. Nothing
// waits when nothing is under way.
type rounds struct {
	mu      sync.Mutex
	busy    int // batches of the round that is under way
	waiting []chan struct{}
}

// enter waits for the batch's round to begin; leave must follow.
func (r *rounds) enter(ctx context.Context) error {
	r.mu.Lock()
	if r.busy == 0 {
		r.busy = 1
		r.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	r.waiting = append(r.waiting, turn)
	r.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	n := slices.Index(r.waiting, turn)
	if n >= 0 {
		r.waiting = slices.Delete(r.waiting, n, n+1)
	}
	r.mu.Unlock()
	if n < 0 {
		r.leave() // its round had begun
	}
	return ctx.Err()
}

func (r *rounds) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy--; r.busy > 0 {
		return
	}
	r.busy = len(r.waiting)
	for _, turn := range r.waiting {
		close(turn)
	}
	r.waiting = nil
}
