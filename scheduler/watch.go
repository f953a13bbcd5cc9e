package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/ledger"
)

// A signal is set by many goroutines and awaited by one. Setting it twice counts once.
type signal struct {
	raised chan struct{}
	seen   time.Time // when wait last returned; used by the waiter only
}

func newSignal() *signal { return &signal{raised: make(chan struct{}, 1)} }

func (s *signal) set() {
	select {
	case s.raised <- struct{}{}:
	default:
	}
}

// follow calls see for every entry from now on that may concern scheduling. When the
// feed breaks, it continues after the last entry. It calls begun when the start
// position is known: whoever read the state before then may have missed entries
// in between. It returns when ctx ends.
func follow(ctx context.Context, n Node, log *slog.Logger, begun func(), see func(ledger.Entry)) {
	var after uint64
	known := false
	for ctx.Err() == nil {
		if !known {
			if known = view(ctx, n, func(tx *ledger.Tx) error { after = tx.Position().Height; return nil }) == nil; known {
				begun()
			}
		}
		if known {
			for e, err := range n.Entries(ctx, after) {
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						log.Warn("feed of the scheduler broke", "error", err)
					}
					break
				}
				after = e.Height
				if concerns(&e) {
					see(e)
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}

// concerns reports whether an entry may give the scheduler work. Entries about issues
// and comments are frequent and matter only when a run or an agent changed with them,
// which the entry says. An entry with so many changes that some were omitted counts
// as relevant. A missed entry would be noticed at the next look, lookEvery later.
func concerns(e *ledger.Entry) bool {
	switch kind, _ := company.KindOf(e.Kind); {
	case kind.Has(company.NoWork):
		return false
	case !kind.Has(company.SeldomWork):
		return true
	}
	return len(e.Changes) >= manyChanges || slices.ContainsFunc(e.Changes, func(ch ledger.Change) bool {
		return ch.EntityType == "heartbeat_run" || ch.EntityType == "agent" || ch.EntityType == "company"
	})
}

// untilLook returns the time until the next multiple of lookEvery on the wall clock. All
// loops look at these instants, so an idle node wakes up once for all of them.
func untilLook() time.Duration {
	return lookEvery - time.Duration(time.Now().UnixNano()%int64(lookEvery))
}

// wait waits for s, at most for again; 0 means for ever. The first signal of a burst
// returns at once. Later ones are gathered for gatherTimes the duration of the last
// look, so that looks use a small part of a processor.
func (s *signal) wait(ctx context.Context, again time.Duration) bool {
	pause := gatherTimes * min(time.Since(s.seen), gather/gatherTimes)
	var late <-chan time.Time
	if again > 0 {
		t := time.NewTimer(again)
		defer t.Stop()
		late = t.C
	}
	defer func() { s.seen = time.Now() }()
	select {
	case <-ctx.Done():
		return false
	case <-late:
		return true
	case <-s.raised:
	}
	since := time.Since(s.seen)
	if since >= pause {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause - since):
		return true
	}
}
