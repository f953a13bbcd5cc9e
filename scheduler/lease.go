package scheduler

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A tenure is a worker's lease as the worker counts it.
type tenure struct {
	clock Clock
	mu    sync.Mutex // guards what follows
	until time.Duration
	of    uint64 // session
}

// grant notes that a keep-alive for session, sent at the given reading, was
// granted.
func (t *tenure) grant(session uint64, sent, length time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of != session {
		t.of, t.until = session, 0
	}
	t.until = max(t.until, sent+length)
}

// over notes that a session may not act any more.
func (t *tenure) over(session uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == session {
		t.until = 0
	}
}

// end returns until when session may act; 0 when it may not at all.
func (t *tenure) end(session uint64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of != session {
		return 0
	}
	return t.until
}

// holds reports whether session may act now.
func (t *tenure) holds(session uint64) bool { return session != 0 && t.clock() < t.end(session) }

// keepLease asks the leader to let this node act, again and again, until ctx ends.
func (w *Worker) keepLease(ctx context.Context) {
	every := w.cfg.Lease / keepAliveDivisor
	for {
		pause := every
		if session := w.cfg.Session(); session != 0 {
			sent := w.cfg.Clock()
			attempt, cancel := context.WithTimeout(ctx, w.cfg.Lease/2)
			err := w.cfg.KeepAlive(attempt, w.beat(session))
			cancel()
			switch {
			case err == nil:
				held := w.lease.holds(session)
				w.lease.grant(session, sent, w.cfg.Lease-w.cfg.Margin)
				if !held {
					w.wake.set()
				}
			case errors.Is(err, ErrSessionOver):
				w.lease.over(session)
				w.wake.set()
				if w.cfg.SessionOver != nil {
					w.cfg.SessionOver(session)
				}
			default:
				w.cfg.Logger.Debug("keep-alive was not granted", "error", err)
				pause = every / 4 // there may be a new leader at any moment
			}
		} else {
			pause = every / 4
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
