package consensus

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// roundsKit counts what is pushed, and how.
type roundsKit struct {
	rounds
	running atomic.Int64
	pushed  []int // batches of each round
}

func newRoundsKit() *roundsKit {
	k := &roundsKit{}
	k.push = func(all []*entrant) { k.pushed = append(k.pushed, len(all)) }
	return k
}

// one is a batch of a node whose round takes d.
func (k *roundsKit) one(t *testing.T, node byte, d time.Duration) {
	if err := k.enter(t.Context(), &entrant{origin: batchOrigin{node}}); err != nil {
		t.Error(err)
		return
	}
	k.running.Add(1)
	time.Sleep(d)
	k.running.Add(-1)
	k.leave()
}

func TestWhatArrivesDuringARoundIsTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newRoundsKit()
		go k.one(t, 1, time.Second)
		synctest.Wait()
		for range 5 {
			go k.one(t, 1, time.Second)
		}
		synctest.Wait()
		if n := k.running.Load(); n != 1 {
			t.Errorf("%d are under way beside the first", n-1)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := k.running.Load(); n != 5 {
			t.Errorf("%d of 5 are under way together", n)
		}
		// Whoever gives up while waiting holds nobody up.
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() { gone <- k.enter(ctx, &entrant{}) }()
		synctest.Wait()
		cancel()
		if err := <-gone; err == nil {
			t.Error("entered after its context had ended")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		began := time.Now()
		k.one(t, 1, 0) // nothing is under way and nobody else was: at once
		if d := time.Since(began); d > 0 {
			t.Errorf("waited %s for nobody", d)
		}
		if len(k.pushed) != 3 || k.pushed[1] != 5 {
			t.Errorf("rounds of %v batches", k.pushed)
		}
		if k.busy != 0 || len(k.waiting) != 0 {
			t.Errorf("left behind: %d under way, %d waiting", k.busy, len(k.waiting))
		}
	})
}

func TestARoundWaitsForWhoWasAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newRoundsKit()
		const round, pause = 8 * time.Millisecond, roundWait / 4
		// Three nodes that ask again as soon as they are answered, the second and
		// the third while the first's round is under way.
		began := time.Now()
		done := make(chan struct{})
		for node := range byte(3) {
			go func() {
				time.Sleep(time.Duration(node) * time.Millisecond)
				for range 10 {
					k.one(t, node, round)
					time.Sleep(pause)
				}
				done <- struct{}{}
			}()
		}
		for range 3 {
			<-done
		}
		if len(k.pushed) > 12 {
			t.Errorf("%d rounds for 10 batches of each of three nodes: %v", len(k.pushed), k.pushed)
		}
		if d := time.Since(began); d > 12*(round+roundWait) {
			t.Errorf("took %s", d)
		}
	})
}

func TestARoundDoesNotWaitLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newRoundsKit()
		const round = 100 * time.Millisecond
		go k.one(t, 1, round)
		synctest.Wait()
		go k.one(t, 2, round)
		time.Sleep(round)
		synctest.Wait()
		if n := k.running.Load(); n != 0 {
			t.Error("the first was not waited for")
		}
		time.Sleep(min(round, roundWait)) // it does not come again
		synctest.Wait()
		if n := k.running.Load(); n != 1 {
			t.Error("the first was waited for too long")
		}
		time.Sleep(round + roundWait)
		// It has had its chance: the second is alone from here on, and so is who comes after it.
		for node := range byte(3) {
			began := time.Now()
			k.one(t, node, round)
			if d := time.Since(began); d != round {
				t.Errorf("waited %s for who is gone", d-round)
			}
		}
	})
}

func TestWhoGivesUpAsItsRoundBeginsPushesItAllTheSame(t *testing.T) {
	for range 200 {
		k := newRoundsKit()
		k.began = time.Now()
		first := &entrant{origin: batchOrigin{1}}
		if err := k.enter(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		second, third := make(chan error, 1), make(chan error, 1)
		enter := func(ctx context.Context, to chan error) {
			err := k.enter(ctx, &entrant{origin: batchOrigin{1}})
			if err == nil {
				k.leave()
			}
			to <- err
		}
		go enter(ctx, second)
		go enter(t.Context(), third)
		go cancel()
		k.leave()
		<-second
		if err := <-third; err != nil {
			t.Fatal(err)
		}
	}
}
