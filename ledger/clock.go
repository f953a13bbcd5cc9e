package ledger

import "time"

// NextStamp returns the time that a leader gives its next batch. last is the
// mesh's clock ([Ledger.Time]); elapsed is the monotonic time since that stamp
// was made, or since the leader first saw it applied; wall is the leader's own
// clock. The result follows wall, never goes back, and is at most [MaxStep]
// ahead of last + elapsed: a clock that jumps moves the mesh's time slowly, and
// a larger step needs an operator's time.step. When wall is behind, the result
// goes on at half the pace of elapsed until wall has caught up, so that what is
// to fall due still does.
func NextStamp(last time.Time, elapsed time.Duration, wall time.Time) time.Time {
	wall = wall.UTC().Truncate(time.Millisecond)
	if last.IsZero() {
		return wall
	}
	slow := last.Add(max(elapsed, 0) / slowest).Truncate(time.Millisecond)
	latest := last.Add(max(elapsed, 0) + MaxStep).Truncate(time.Millisecond)
	switch {
	case wall.After(latest):
		return latest.UTC()
	case wall.Before(slow):
		return slow.UTC()
	default:
		return wall
	}
}

// slowest is the part of the elapsed time, one in so many, that a leader's time
// goes on by at least.
const slowest = 2
