package service

import "time"

// A State is how a breaker stands.
type State string

// The states of a breaker.
const (
	Closed   State = "closed"    // calls pass
	Open     State = "open"      // no call passes until a pause is over
	HalfOpen State = "half_open" // one call passes, and decides
)

const (
	// openAfter failures in a row open a breaker.
	openAfter = 5
	// firstPause is how long a breaker is open at first; each trial that fails doubles it, up to
	// mostPause.
	firstPause = 5 * time.Second
	mostPause  = time.Minute
)

// A breaker keeps calls from a provider that fails again and again. The zero value is closed.
// Its owner gives it the time and guards it.
type breaker struct {
	failures int // in a row
	until    time.Time
	pause    time.Duration // 0: closed
	trial    bool          // a call of the half-open state is under way
	why      string        // the last failure
}

func (b *breaker) state(now time.Time) State {
	switch {
	case b.pause == 0:
		return Closed
	case now.Before(b.until):
		return Open
	}
	return HalfOpen
}

// allow reports whether a call may be made now. Whoever gets true calls done.
func (b *breaker) allow(now time.Time) bool {
	switch b.state(now) {
	case Closed:
		return true
	case Open:
		return false
	}
	if b.trial {
		return false
	}
	b.trial = true
	return true
}

// done notes how a call ended; why is "" for a good end.
func (b *breaker) done(now time.Time, why string) {
	b.trial = false
	if why == "" {
		*b = breaker{}
		return
	}
	b.failures++
	b.why = why
	switch {
	case b.pause > 0 && !now.Before(b.until): // the trial failed
		b.pause = min(2*b.pause, mostPause)
		b.until = now.Add(b.pause)
	case b.pause == 0 && b.failures >= openAfter:
		b.pause = firstPause
		b.until = now.Add(b.pause)
	}
}

// release gives back a permission that was not used.
func (b *breaker) release() { b.trial = false }
