package ledger

import "time"

// NextStamp returns the time that a leader gives its next batch. last is the
// mesh's clock ([Ledger.Time]); elapsed is the monotonic time since that stamp
// was made, or since the leader first saw it applied; wall is the leader's own
// clock. The result follows wall, never goes back, and is at most [MaxStep]
// ahead of last + elapsed: a clock that jumps moves the mesh's time slowly, and
// a larger step needs an operator's time.step.
func NextStamp(last time.Time, elapsed time.Duration, wall time.Time) time.Time {
	wall = wall.UTC().Truncate(time.Millisecond)
	if last.IsZero() {
		return wall
	}
	latest := last.Add(max(elapsed, 0) + MaxStep).Truncate(time.Millisecond)
	switch {
	case wall.After(latest):
		return latest.UTC()
	case wall.Before(last):
		return last.UTC()
	default:
		return wall
	}
}
