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

// A signal is set by many and taken by one; setting it twice is setting it once.
type signal struct {
	raised chan struct{}
	seen   time.Time // when wait returned last; the waiter's own
}

func newSignal() *signal { return &signal{raised: make(chan struct{}, 1)} }

func (s *signal) set() {
	select {
	case s.raised <- struct{}{}:
	default:
	}
}

// follow calls see for every entry that may concern scheduling, from now on, and
// starts over from where it was when the feed breaks. It calls begun when it knows
// where it begins: who has looked at the state before then may have missed what
// came between. It returns when ctx ends.
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

// concerns reports whether an entry may change what is to be done. What is about
// issues and their threads comes by the thousand a second and matters only when
// a run or an agent changed with it, which the entry says; one with so many
// changes that some were left out is taken to matter. Were one missed, the next
// look, lookEvery later, would find it.
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

// untilLook is the time until the next whole lookEvery of the clock on the wall,
// at which whoever looks does so, so that a node at rest wakes for all at once.
func untilLook() time.Duration {
	return lookEvery - time.Duration(time.Now().UnixNano()%int64(lookEvery))
}

// wait waits for s, or as long as again says, 0 for ever. The first of a burst is
// answered at once; what comes soon after it gathers, for a few times as long as
// the last look took, so that looks take a small part of a processor and what is
// cheap to look at is looked at soon.
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
