package sim

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	mrand "math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/scheduler"
)

var verbose = flag.Bool("nodelogs", false, "print what the nodes log")

// play makes a mesh of three nodes with planted bugs, or none, and a world in
// it, plays a story, mends everything, and checks. All that happens in virtual
// time. It returns what the checkers found.
func play(t *testing.T, seed uint64, bugs node.Faults, story func(context.Context, *world) error) (w *world,
	found error) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	if *verbose {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	dir := t.TempDir()
	w = &world{}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), playTimeout)
		defer w.wg.Wait()
		defer cancel()
		var err error
		w.m, err = New(ctx, seed, 3, dir, log, func(c *node.Config) {
			c.Faults, c.Slots = bugs, 3
			c.Adapters = map[string]scheduler.Adapter{"process": newAgents(w, seed)}
		})
		if err == nil {
			err = w.found(ctx)
		}
		if err != nil {
			t.Error("make a mesh:", err)
		} else if found = story(ctx, w); found == nil {
			w.m.Heal()
			found = w.check(ctx)
		}
		cancel()
		w.wg.Wait()
		if err := w.m.Close(); err != nil && found == nil {
			t.Error("close:", err)
		}
		time.Sleep(stragglers) // of memberlist, which does not wait for its own
	})
	if found == nil {
		found = w.linearizable()
	}
	return w, found
}

// playTimeout bounds a story in virtual time, many times what one takes.
const playTimeout = 15 * time.Minute

// stragglers is longer than any timer that outlives a node.
const stragglers = time.Minute

// work lets clients and runs operate until f has returned and at least n
// operations were acknowledged.
func (w *world) work(ctx context.Context, seed uint64, n int, f func() error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { w.client(ctx, i, mrand.New(mrand.NewPCG(seed, uint64(i)))) })
	}
	wg.Go(func() { w.waker(ctx, mrand.New(mrand.NewPCG(seed, clients))) })
	err := f()
	for err == nil && w.acknowledged() < n {
		err = sleep(ctx, 100*time.Millisecond)
	}
	stop()
	wg.Wait()
	return err
}

// clients is how many of them operate at once.
const clients = 8

// Whatever breaks, as long as it is a minority: what was acknowledged is in
// every node's chain once, all chains and states are the same, what the clients
// saw of the locks fits one order, and no issue ever had two owners.
//
// SELVAGE_SEEDS says how many meshes are broken, SELVAGE_SEED which one alone.
func TestMeshUnderFaults(t *testing.T) {
	t.Parallel()
	first, n := uint64(1), uint64(200)
	if s := os.Getenv("SELVAGE_SEEDS"); s != "" {
		n = number(t, s)
	} else if testing.Short() {
		n = 6
	}
	if s := os.Getenv("SELVAGE_SEED"); s != "" {
		first, n = number(t, s), 1
	}
	for seed := first; seed < first+n; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			var faults []Fault
			w, err := play(t, seed, node.Faults{}, func(ctx context.Context, w *world) error {
				return w.work(ctx, seed, leastAcknowledged, func() (err error) {
					faults, err = w.m.Harm(ctx, faultsPerSeed)
					return err
				})
			})
			t.Logf("seed %d: %d faults %v, %d operations acknowledged, %d unknown, %d runs", seed, len(faults), faults, w.known,
				w.unknown, w.runs)
			if err != nil {
				t.Fatalf("%v\nto see it again: SELVAGE_SEED=%d go test ./testnet/sim -run TestMeshUnderFaults", err, seed)
			}
			if len(faults) < 3 || w.known < leastAcknowledged {
				t.Errorf("seed %d was too easy", seed)
			}
		})
	}
}

const (
	faultsPerSeed     = 5
	leastAcknowledged = 1000
)

func number(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The power fails everywhere at once, and every disk loses all that it had not
// synced: nothing that was acknowledged is lost.
func TestPowerLossEverywhere(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			if w, err := play(t, seed, node.Faults{}, powerLoss(seed)); err != nil {
				t.Errorf("after %d operations: %v", w.known, err)
			}
		})
	}
}

// powerLoss has every node restarted in order, so that each has a log that is
// safe on its disk, then works, and takes all power away, twice.
func powerLoss(seed uint64) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		for i := range w.m.Peers {
			if err := errors.Join(w.m.Stop(i), w.m.Start(ctx, i)); err != nil {
				return err
			}
		}
		for round := range uint64(2) {
			err := w.work(ctx, 2*seed+round, w.acknowledged()+100,
				func() error { return w.m.pause(ctx, time.Second, 3*time.Second) })
			if err != nil {
				return err
			}
			if err := w.m.Crash(100, 0, 1, 2); err != nil {
				return err
			}
			for i := range w.m.Peers {
				if err := w.m.Start(ctx, i); err != nil {
					return fmt.Errorf("start %s after the power loss: %w", w.m.Peers[i].Name, err)
				}
			}
		}
		return nil
	}
}
