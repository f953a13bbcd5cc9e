package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/node"
)

// The checkers are checked: with each of seven planted bugs a story comes to a
// bad end in at least one of a few seeds, and without it in none.
func TestPlantedBugsAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		plant func(*node.Faults)
		story func(seed uint64) func(context.Context, *world) error
	}{
		{"no deduplication", func(f *node.Faults) { f.Ledger.NoDeduplication = true }, lostAnswers},
		{"acknowledgement before commit", func(f *node.Faults) { f.Consensus.AckBeforeCommit = true }, lonelyLeader},
		{"skipped fsync", func(f *node.Faults) { f.Consensus.SkipFsync = true }, powerLoss},
		{"stale strong read", func(f *node.Faults) { f.Consensus.StaleStrongRead = true }, blindFollower},
		{"state ahead of log", func(f *node.Faults) { f.Ledger.StateAheadOfLog = true }, crashesUnderLoad},
		{"lock kept after its run", func(f *node.Faults) { f.Rules = keptLocks }, careless},
		{"unfenced write", func(f *node.Faults) { f.Rules = unfenced }, careless},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var bugs node.Faults
			c.plant(&bugs)
			found := false // then it is known to be found, and only what is without it is played
			for seed := range uint64(bugSeeds) {
				if _, err := play(t, seed, node.Faults{}, c.story(seed)); err != nil {
					t.Errorf("seed %d without the bug: %v", seed, err)
				}
				if found {
					continue
				}
				if _, err := play(t, seed, bugs, c.story(seed)); err != nil {
					t.Logf("seed %d: %v", seed, err)
					found = true
				}
			}
			if !found {
				t.Errorf("not found in %d seeds", bugSeeds)
			}
		})
	}
}

// bugSeeds is how often a story is played: some need a little luck.
const bugSeeds = 3

// lostAnswers has a follower's commands carried out while all answers to it are
// lost, so that it sends them again.
func lostAnswers(uint64) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		leader, err := w.m.WaitLeader(ctx)
		if err != nil {
			return err
		}
		follower := (leader + 1) % len(w.m.Peers)
		w.m.Cut(leader, follower)
		done := make(chan output, len(w.issues))
		for i, issue := range w.issues {
			go func() {
				done <- w.operate(i, w.m.Peers[follower].Up(), input{kind: "release", issue: issue})
			}()
		}
		err = sleep(ctx, patience/2+500*time.Millisecond)
		w.m.Heal()
		for range w.issues {
			<-done
		}
		return err
	}
}

// lonelyLeader has clients at a leader that nobody hears, until others lead.
func lonelyLeader(uint64) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		leader, err := w.m.WaitLeader(ctx)
		if err != nil {
			return err
		}
		w.m.Isolate(leader, true, true)
		l := w.m.Peers[leader].Up()
		for i, issue := range w.issues {
			w.wg.Go(func() { w.operate(i, l, input{kind: "checkout", issue: issue, agent: w.owners[0]}) })
		}
		if err := sleep(ctx, patience+time.Second); err != nil {
			return err
		}
		other := w.m.Peers[(leader+1)%len(w.m.Peers)].Up()
		for i, issue := range w.issues {
			w.operate(100+i, other, input{kind: "checkout", issue: issue, agent: w.owners[1]})
		}
		return nil
	}
}

// blindFollower reads at a follower that no longer hears what is committed.
func blindFollower(uint64) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		leader, err := w.m.WaitLeader(ctx)
		if err != nil {
			return err
		}
		follower := (leader + 1) % len(w.m.Peers)
		w.m.Isolate(follower, true, true)
		for i, issue := range w.issues {
			w.operate(i, w.m.Peers[leader].Up(), input{kind: "checkout", issue: issue, agent: w.owners[0]})
			w.operate(i, w.m.Peers[follower].Up(), input{kind: "read", issue: issue})
		}
		return nil
	}
}

// crashesUnderLoad takes the power from one node after the other.
func crashesUnderLoad(seed uint64) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		return w.work(ctx, seed, 300, func() error {
			for i := range 2 * len(w.m.Peers) {
				if err := w.m.pause(ctx, time.Second, 2*time.Second); err != nil {
					return err
				}
				if err := errors.Join(w.m.Crash(50, i%len(w.m.Peers)), w.m.boot(ctx, i%len(w.m.Peers))); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// careless has runs that end without giving back what they hold, and that write
// on when they are over.
func careless(seed uint64) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		for i := range 2 * len(w.workers) {
			_, err := w.wake(w.m.Peers[i%len(w.m.Peers)].Up(), w.workers[i%len(w.workers)])
			if err != nil {
				return fmt.Errorf("wake: %w", err)
			}
		}
		if err := sleep(ctx, 15*time.Second); err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.runs < len(w.workers) {
			return fmt.Errorf("only %d runs", w.runs)
		}
		return nil
	}
}

// keptLocks leaves an issue locked when its run has ended.
func keptLocks(_ string, h ledger.Handler) ledger.Handler {
	issues := ledger.NewTable[string, entity.Issue]("issue")
	return func(c *ledger.Context) ([]byte, error) {
		held := map[string]entity.Issue{}
		for id, i := range issues.All(c.Tx, c.Cmd.Company) {
			if i.Held() {
				held[id] = i
			}
		}
		v, err := h(c)
		if err != nil {
			return v, err
		}
		for _, id := range slices.Sorted(maps.Keys(held)) {
			was := held[id]
			now, ok := issues.Get(c.Tx, c.Cmd.Company, id)
			if r, known := entity.RunByID(c.Tx, was.CheckoutRun); ok && !now.Held() && known && !r.Status.Live() {
				now.CheckoutRun, now.Fence = was.CheckoutRun, was.Fence
				issues.Put(c.Tx, c.Cmd.Company, id, now)
			}
		}
		return v, err
	}
}

// unfenced takes the writes of a run that no longer holds the issue: as if the board
// had sent them.
func unfenced(kind string, h ledger.Handler) ledger.Handler {
	if kind != company.KindIssueUpdate {
		return h
	}
	return func(c *ledger.Context) ([]byte, error) {
		sent := c.Cmd
		defer func() { c.Cmd = sent }()
		cmd := *sent
		cmd.Actor, cmd.Run = ledger.Actor{Type: "user", ID: "local-board"}, ""
		c.Cmd = &cmd
		return h(c)
	}
}
