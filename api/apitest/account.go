package apitest

import (
	"testing"
	"time"
)

// Eventually waits for what the feed brings about.
func Eventually(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come about")
		}
	}
}
