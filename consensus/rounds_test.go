package consensus

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatArrivesDuringARoundIsTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rounds
		var running, begun atomic.Int64
		one := func(d time.Duration) {
			if err := r.enter(t.Context()); err != nil {
				t.Error(err)
				return
			}
			running.Add(1)
			begun.Add(1)
			time.Sleep(d)
			running.Add(-1)
			r.leave()
		}
		go one(time.Second)
		synctest.Wait()
		for range 5 {
			go one(time.Second)
		}
		synctest.Wait()
		if n := running.Load(); n != 1 {
			t.Errorf("%d are under way beside the first", n-1)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := running.Load(); n != 5 {
			t.Errorf("%d of 5 are under way together", n)
		}
		// Whoever gives up while waiting holds nobody up, neither does one whose round had begun.
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() { gone <- r.enter(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-gone; err == nil {
			t.Error("entered after its context had ended")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		one(0) // nothing is under way: at once
		if n := begun.Load(); n != 7 {
			t.Errorf("%d rounds began", n)
		}
		if r.busy != 0 || len(r.waiting) != 0 {
			t.Errorf("left behind: %d under way, %d waiting", r.busy, len(r.waiting))
		}
	})
}
