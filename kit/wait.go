package kit

import (
	"cmp"
	"testing"
	"time"
)

const every = 20 * time.Millisecond

// A Wait bounds how long a test waits for something, in virtual time in a bubble.
type Wait struct {
	Most  time.Duration // after that the test fails; generous, because machines are small and busy
	Every time.Duration // how often it looks; 0 is 20 ms
	State func() string // what to say of the world when the test fails; nil for nothing
}

// Until waits until ok holds, and returns how long that took. what is what
// it waits for.
func (w Wait) Until(t testing.TB, what string, ok func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !ok() {
		if time.Since(began) > w.Most {
			state := ""
			if w.State != nil {
				state = "\n" + w.State()
			}
			t.Fatalf("timed out after %s waiting for: %s%s", w.Most, what, state)
		}
		time.Sleep(cmp.Or(w.Every, every))
	}
	return time.Since(began)
}
