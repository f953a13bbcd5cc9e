package kit

import (
	"os"
	"testing"
	"time"
)

// dateEnv sets the time at which the worlds of tests begin, in the form of RFC 3339.
const dateEnv = "SELVAGE_DATE"

// began is the machine's time when the program began, bubble the one at which every bubble of testing/synctest does.
var began, bubble = time.Now(), time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Clock returns the clock of a test's world: the machine's, or one that began at SELVAGE_DATE with the program (in a
// bubble, with the bubble) and goes as the machine's does. Whatever in a test tells or reads a date asks it.
func Clock(t testing.TB) func() time.Time {
	t.Helper()
	s := os.Getenv(dateEnv)
	if s == "" {
		return time.Now
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatalf("%s: %v", dateEnv, err)
	}
	if time.Now().Before(began) {
		return clockFrom(at, bubble)
	}
	return clockFrom(at, began)
}

// ClockAt returns a clock that shows a time now, and goes on as the machine's does: that of a story with fixed dates.
func ClockAt(at time.Time) func() time.Time { return clockFrom(at, time.Now()) }

// clockFrom returns a clock that shows at when the machine's shows zero.
func clockFrom(at, zero time.Time) func() time.Time {
	ahead := at.Sub(zero)
	return func() time.Time { return time.Now().Add(ahead) }
}

// Now is what the test's [Clock] shows.
func Now(t testing.TB) time.Time {
	t.Helper()
	return Clock(t)()
}
