package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/selvage-mesh/selvage/adapter/live"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/secret"
)

// Causes for which the context of a [Bound] ends.
var (
	ErrCancelled = errors.New("cancelled")
	ErrLate      = errors.New("timed out")
	errLease     = errors.New("the node may not act any more")
)

// A Bound ends the work of an adapter that calls others instead of starting a program: when
// the run is cancelled, late, or its node may act no more.
type Bound struct {
	whole, ctx context.Context
	limit      time.Duration
	source     string // of the limit, see [Timeout]
}

// Within bounds a run. The work is done in the returned context; over ends the watching.
func Within(whole context.Context, runs *live.Runs, inv company.Invocation, seconds *float64) (b *Bound,
	ctx context.Context, over func()) {
	b = &Bound{whole: whole}
	b.limit, b.source = Timeout(seconds)
	ctx, stop := context.WithCancelCause(whole)
	b.ctx = ctx
	remove := runs.Begin(inv.Run.ID, func() { stop(ErrCancelled) })
	timer := time.AfterFunc(b.limit, func() { stop(ErrLate) })
	unwatch := live.Watch(ctx, inv, func() { stop(errLease) })
	return b, ctx, func() {
		unwatch()
		timer.Stop()
		remove()
		stop(nil)
	}
}

// Ended completes the outcome of a run whose work returned err and said something, which has no
// secrets in it. failed says more of a failure of the work itself; more is added to the result.
func (b *Bound) Ended(out company.Outcome, said string, err error, red *secret.Redactor, failed func(*company.Outcome),
	more map[string]any) company.Outcome {
	empty, reason := "", "completed"
	out.Status, out.Stdout, out.Stderr = entity.RunSucceeded, &said, &empty
	switch cause := context.Cause(b.ctx); {
	case err == nil:
	case errors.Is(cause, ErrCancelled):
		out.Status, out.ErrorCode, out.Error, reason = entity.RunCancelled, "cancelled", "Cancelled", "cancelled"
	case errors.Is(cause, ErrLate):
		out.Status, out.ErrorCode, reason = entity.RunTimedOut, "timeout", "timeout"
		out.Error = fmt.Sprintf("Timed out after %ds", int64(b.limit.Seconds()))
	case errors.Is(cause, errLease), b.whole.Err() != nil:
		return Interrupted("The node stopped the run")
	default:
		out.Status, out.ErrorCode, out.Error, reason = entity.RunFailed, "adapter_failed", red.Clean(err.Error()),
			"adapter_failed"
		failed(&out)
	}
	result := map[string]any{"summary": said, "stopReason": reason, "timeoutFired": reason == "timeout",
		"timeoutSource": b.source, "effectiveTimeoutSec": int64(b.limit.Seconds())}
	maps.Copy(result, more)
	out.Result, _ = json.Marshal(result) // never fails
	return out
}
