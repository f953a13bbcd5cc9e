package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/company"
)

// A tenure is a worker's lease, counted on the worker's clock.
type tenure struct {
	clock Clock
	mu    sync.Mutex // guards what follows
	until time.Duration
	of    uint64 // the session that has it

	sent   time.Duration // when the last granted beat was sent
	length time.Duration // of the lease it was granted; 0 before the first
	trip   time.Duration // duration of a beat, the slowest of late
	failed error         // of the last beat; nil when it was granted
}

// grant notes that the leader granted a lease of length to a beat of session that was
// sent at the given reading. The session may act for lease of it.
func (t *tenure) grant(session uint64, sent, lease, length time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent, t.length, t.failed = sent, lease, nil
	if t.of != session {
		t.of, t.until = session, 0
	}
	t.until = max(t.until, sent+length)
}

// over notes that a session may no longer act.
func (t *tenure) over(session uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == session {
		t.until = 0
	}
}

// end returns until when session may act, 0 when it may not.
func (t *tenure) end(session uint64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of != session {
		return 0
	}
	return t.until
}

// took notes the duration of a beat.
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

// last returns when the last granted beat was sent, and the error of the beats after it.
func (t *tenure) last() (sent time.Duration, failed error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sent, t.failed
}

// lasts returns the length of the last granted lease.
func (t *tenure) lasts() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.length
}

// slow returns the duration of a slow beat.
func (t *tenure) slow() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.trip
}

// patience returns how long a beat may take: a sixth of a lease or the duration of a
// slow beat, whichever is more, and at most a third, so that there is time for another.
func (t *tenure) patience(usual, late time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return min(max(usual/6, 2*t.trip, 2*lateTimes*late), max(t.length, usual)/3)
}

// holds reports whether session may act now.
func (t *tenure) holds(session uint64) bool { return session != 0 && t.clock() < t.end(session) }

// keepLease renews this node's lease until ctx ends.
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
				pause = every / 4 // a new leader may be elected at any moment
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

// beatOnce sends one beat and notes its result and duration. It returns whether the
// session held a lease before.
func (w *Worker) beatOnce(ctx context.Context, session uint64) (held bool, err error) {
	sent, late := w.cfg.Clock(), w.late()
	attempt, cancel := context.WithTimeout(ctx, w.lease.patience(w.cfg.Lease, late))
	granted, err := w.cfg.KeepAlive(attempt, w.beat(session))
	waited := attempt.Err() != nil // an immediate refusal says nothing about the duration of a beat
	cancel()
	if took := w.cfg.Clock() - sent; err == nil || waited && late > 0 {
		w.lease.took(took)
	}
	if err != nil {
		w.lease.fail(err)
		return false, err
	}
	if granted <= 0 {
		granted = w.cfg.Lease // the leader grants the usual length only
	}
	held = w.lease.holds(session)
	w.lease.grant(session, sent, granted, granted-w.margin(granted))
	return held, nil
}

// margin returns how long before the end of a lease this node stops acting.
func (w *Worker) margin(lease time.Duration) time.Duration {
	return time.Duration(float64(w.cfg.Margin) * (float64(lease) / float64(w.cfg.Lease)))
}

func (w *Worker) late() time.Duration {
	if w.cfg.Late == nil {
		return 0
	}
	return w.cfg.Late()
}

// lapseReason returns why this node lost its lease.
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
