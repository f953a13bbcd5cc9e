package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/company"
)

// A tenure is a worker's lease as the worker counts it.
type tenure struct {
	clock Clock
	mu    sync.Mutex // guards what follows
	until time.Duration
	of    uint64 // session

	sent   time.Duration // when the beat was sent that was granted last
	length time.Duration // and how long a lease it was; 0 before the first
	trip   time.Duration // how long a beat takes, the worst of late
	failed error         // of the last beat; nil when it was granted
}

// grant notes that a keep-alive for session, sent at the given reading, was
// granted a lease, for so much of which the session may act.
func (t *tenure) grant(session uint64, sent, lease, length time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent, t.length, t.failed = sent, lease, nil
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

// took notes how long a beat was on its way.
func (t *tenure) took(trip time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trip = max(trip, t.trip*(100-tripFades)/100)
}

// fail notes that a beat was not granted.
func (t *tenure) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = err
}

// last returns when the beat was sent that was granted last, and why none was since.
func (t *tenure) last() (sent time.Duration, failed error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sent, t.failed
}

// lasts is how long the lease is that was granted last.
func (t *tenure) lasts() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.length
}

// slow is how long a beat takes.
func (t *tenure) slow() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.trip
}

// patience is how long a beat may take: a sixth of a lease, or as long as they have
// taken, and a third at most, so that another one has a chance.
func (t *tenure) patience(usual, late time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return min(max(usual/6, 2*t.trip, 2*lateTimes*late), max(t.length, usual)/3)
}

// holds reports whether session may act now.
func (t *tenure) holds(session uint64) bool { return session != 0 && t.clock() < t.end(session) }

// keepLease asks the leader to let this node act, again and again, until ctx ends.
func (w *Worker) keepLease(ctx context.Context) {
	every := w.cfg.Lease / keepAliveDivisor
	for {
		pause := every
		if session := w.cfg.Session(); session != 0 {
			held, err := w.beatOnce(ctx, session)
			switch {
			case err == nil:
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

// beatOnce sends one beat and notes what became of it, and how long that took. It
// returns whether the session was held before.
func (w *Worker) beatOnce(ctx context.Context, session uint64) (held bool, err error) {
	sent, late := w.cfg.Clock(), w.late()
	attempt, cancel := context.WithTimeout(ctx, w.lease.patience(w.cfg.Lease, late))
	granted, err := w.cfg.KeepAlive(attempt, w.beat(session))
	waited := attempt.Err() != nil // a refusal comes soon, and says nothing of how long an answer takes
	cancel()
	if took := w.cfg.Clock() - sent; err == nil || waited && late > 0 {
		w.lease.took(took)
	}
	if err != nil {
		w.lease.fail(err)
		return false, err
	}
	if granted <= 0 {
		granted = w.cfg.Lease // a leader that knows one length
	}
	held = w.lease.holds(session)
	w.lease.grant(session, sent, granted, granted-w.margin(granted))
	return held, nil
}

// margin is how long before the end of a lease this node stops acting.
func (w *Worker) margin(lease time.Duration) time.Duration {
	return time.Duration(float64(w.cfg.Margin) * (float64(lease) / float64(w.cfg.Lease)))
}

func (w *Worker) late() time.Duration {
	if w.cfg.Late == nil {
		return 0
	}
	return w.cfg.Late()
}

// lapseReason says why this node lost its lease.
func (w *Worker) lapseReason() string {
	since, err := w.lease.last()
	if w.cfg.Why != nil {
		if why := w.cfg.Why(since); why != "" {
			return why
		}
	}
	why := fmt.Sprintf("the leader granted it none for %.1f s", (w.cfg.Clock() - since).Seconds())
	if err != nil {
		why += ": " + err.Error()
	}
	return why[:min(len(why), company.MaxLossReason)]
}
