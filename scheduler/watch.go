package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// A signal is set by many and taken by one; setting it twice is setting it once.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) set() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// follow calls see for every entry that may concern scheduling, from now on, and
// starts over from where it was when the feed breaks. It returns when ctx ends.
func follow(ctx context.Context, n Node, log *slog.Logger, see func(ledger.Entry)) {
	var after uint64
	known := false
	for ctx.Err() == nil {
		if !known {
			known = view(ctx, n, func(tx *ledger.Tx) error { after = tx.Position().Height; return nil }) == nil
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
				if concerns(e.Kind) {
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

// concerns reports whether commands of a kind may change what is to be done.
// Wakes come with many kinds (an issue assigned, a comment, an approval), so
// this names those that can not.
func concerns(kind string) bool {
	return !strings.HasPrefix(kind, "cost.") && kind != "run.report" && kind != "issue.checkout"
}

// wait waits for s or the next look, and lets what comes in a burst gather.
func (s signal) wait(ctx context.Context) bool {
	t := time.NewTimer(lookEvery)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	case <-s:
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(gather):
		return true
	}
}
