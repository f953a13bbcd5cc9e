package kit

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// dateEnv sets the time at which the worlds of tests begin, in the form of RFC 3339. Behind an @ may stand what the
// machine's clock showed then, for programs that are started one after the other in one world.
const dateEnv = "SELVAGE_DATE"

// began is the machine's time when the program began, bubble the one at which every bubble of testing/synctest does.
var began, bubble = time.Now(), time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Clock returns the clock of a test's world: the machine's, or one that began at SELVAGE_DATE with the program (in a
// bubble, with the bubble) and goes as the machine's does. Whatever in a test tells or reads a date asks it.
func Clock(t testing.TB) func() time.Time {
	t.Helper()
	clock, err := ProgramClock()
	if err != nil {
		t.Fatal(err)
	}
	return clock
}

// ProgramClock is [Clock] for a program that tests start.
func ProgramClock() (func() time.Time, error) {
	s := os.Getenv(dateEnv)
	if s == "" {
		return time.Now, nil
	}
	date, since, given := strings.Cut(s, "@")
	at, err := time.Parse(time.RFC3339, date)
	zero := began
	if given && err == nil {
		zero, err = time.Parse(time.RFC3339, since)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", dateEnv, err)
	case time.Now().Before(began):
		zero = bubble
	}
	return clockFrom(at, zero), nil
}

// ProgramDate is the value of SELVAGE_DATE for programs that go by clock; nothing for the machine's.
func ProgramDate(clock func() time.Time) string {
	if os.Getenv(dateEnv) == "" {
		return ""
	}
	return clock().Format(time.RFC3339Nano) + "@" + time.Now().Format(time.RFC3339Nano)
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
