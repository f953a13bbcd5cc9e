package ledger

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func snapshotOf(t testing.TB, l *Ledger) []byte {
	t.Helper()
	snap, err := l.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	var buf bytes.Buffer
	n, err := snap.WriteTo(&buf)
	if err != nil || n != int64(buf.Len()) {
		t.Fatalf("WriteTo = %d, %v; %d bytes", n, err, buf.Len())
	}
	return buf.Bytes()
}

// unsummedOf is a snapshot as it lies in a backup.
func unsummedOf(t testing.TB, l *Ledger) []byte {
	t.Helper()
	snap, err := l.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	var buf bytes.Buffer
	if err := snap.WriteUnsummed(&buf); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// kinds are the two streams that a snapshot is written as.
var kinds = map[string]func(testing.TB, *Ledger) []byte{"summed": snapshotOf, "unsummed": unsummedOf}

func TestRestoreGivesTheStateOfTheSnapshot(t *testing.T) {
	for name, of := range kinds {
		t.Run(name, func(t *testing.T) { restoreGivesTheState(t, of) })
	}
}

func restoreGivesTheState(t *testing.T, of func(testing.TB, *Ledger) []byte) {
	log := randomLog(t, rand.New(rand.NewPCG(1, 2)), 100)
	from, to := newLedger(t), newLedger(t)
	from.ApplyBatch(log[:80])
	stream := of(t, from)
	want := dump(from)
	from.ApplyBatch(log[80:]) // what comes later is not in it

	to.ApplyBatch(log[:30])
	if pos, err := newSnapshotStream(bytes.NewReader(stream)).head(); err != nil || pos.Applied != 80 {
		t.Errorf("the head of the snapshot is %+v, %v", pos, err)
	}
	if err := to.Restore(iotest.OneByteReader(bytes.NewReader(stream))); err != nil {
		t.Fatal(err)
	}
	wantSameState(t, dump(to), want)
	to.ApplyBatch(log) // goes on behind the snapshot
	wantSameState(t, dump(to), dump(from))
	if _, err := to.Verify(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestDamagedSnapshotChangesNothing(t *testing.T) {
	for name, of := range kinds {
		t.Run(name, func(t *testing.T) { damagedChangesNothing(t, of) })
	}
}

func damagedChangesNothing(t *testing.T, of func(testing.TB, *Ledger) []byte) {
	log := randomLog(t, rand.New(rand.NewPCG(1, 3)), 40)
	from, to := newLedger(t), newLedger(t)
	from.ApplyBatch(log)
	stream := of(t, from)
	to.ApplyBatch(log[:20])
	want := dump(to)
	r := rand.New(rand.NewPCG(4, 4))
	for i := range 150 {
		bad := bytes.Clone(stream)
		if i%3 == 0 {
			bad = bad[:r.IntN(len(bad))]
		} else {
			bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
		}
		if err := to.Restore(bytes.NewReader(bad)); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("Restore of damaged stream %d = %v, want ErrSnapshot", i, err)
		}
	}
	wantSameState(t, dump(to), want)
	broken := errors.New("connection lost")
	if err := to.Restore(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("Restore = %v, want the reader's error", err)
	}
}

// TestRestoreDrainsReaders runs views and feeds while the state is replaced:
// each sees the old or the new state, never a mixture.
func TestRestoreDrainsReaders(t *testing.T) {
	log := randomLog(t, rand.New(rand.NewPCG(1, 4)), 80)
	far, l := newLedger(t), newLedger(t)
	far.ApplyBatch(log)
	stream := snapshotOf(t, far)
	l.ApplyBatch(log[:10])
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for ctx.Err() == nil {
				err := l.View(func(tx *Tx) error {
					pos := tx.Position()
					if _, ok := EntryAt(tx, pos.Height); !ok {
						t.Errorf("position says height %d, but there is no such entry", pos.Height)
					}
					if _, ok := EntryAt(tx, pos.Height+1); ok {
						t.Errorf("entry above height %d", pos.Height)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	fed := make(chan struct{})
	wg.Go(func() {
		next := uint64(1)
		for e, err := range l.Entries(ctx, 0) {
			if err != nil {
				t.Error(err)
				return
			}
			if e.Height != next {
				t.Errorf("feed gave height %d, want %d", e.Height, next)
			}
			if next++; next == far.Position().Height+1 {
				close(fed)
			}
		}
	})
	if err := l.Restore(bytes.NewReader(stream)); err != nil {
		t.Fatal(err)
	}
	<-fed // the feed went on across the change and came to the end
	cancel()
	wg.Wait()
}

func TestClosedLedgerAnswersErrClosed(t *testing.T) {
	s := openStore(t, vfs.NewMem())
	defer s.Close()
	l, w := openLedger(t, s), newWorld(t)
	w.found()
	w.apply(l)
	done := make(chan error)
	go func() { done <- l.WaitApplied(context.Background(), 99) }()
	go func() {
		for _, err := range l.Entries(context.Background(), 2) {
			done <- err
		}
	}()
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-done; !errors.Is(err, ErrClosed) {
			t.Errorf("waiter got %v, want ErrClosed", err)
		}
	}
	if err := l.View(func(*Tx) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("View = %v", err)
	}
	if _, err := l.Snapshot(); !errors.Is(err, ErrClosed) {
		t.Errorf("Snapshot = %v", err)
	}
	if rs := l.ApplyBatch([]LogEntry{{Index: 4}}); rs[0] != nil || l.Applied() != 3 {
		t.Errorf("ApplyBatch after Close applied")
	}
}

func TestSumFindsAChangedRow(t *testing.T) {
	log := randomLog(t, rand.New(rand.NewPCG(1, 6)), 40)
	sum := func(l *Ledger) Hash {
		t.Helper()
		snap, err := l.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		defer snap.Close()
		h, err := snap.Sum()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	a, b := newLedger(t), newLedger(t)
	a.ApplyBatch(log)
	applyIn(b, log, func() int { return 3 })
	want := sum(a)
	if got := sum(b); got != want {
		t.Errorf("sum %x, want %x", got, want)
	}
	stream := snapshotOf(t, a)
	if !bytes.Equal(stream[len(stream)-32:], want[:]) {
		t.Error("the sum is not the one that ends the stream")
	}
	batch := b.span.NewBatch()
	defer batch.Close()
	batch.Set([]byte("c/x/note/a"), []byte{0})
	if err := b.span.Commit(batch, false); err != nil {
		t.Fatal(err)
	}
	if sum(b) == want {
		t.Error("a changed row went unnoticed")
	}
}

// tooFull is a writer that takes n bytes.
type tooFull struct{ n int }

var errTooFull = errors.New("no more room")

func (w *tooFull) Write(b []byte) (int, error) {
	if w.n -= len(b); w.n < 0 {
		return 0, errTooFull
	}
	return len(b), nil
}

// Who reads a snapshot ahead, or writes one, ends with the other: nothing waits
// for ever, and the error is the one that ended it.
func TestSnapshotEndsWithItsOtherEnd(t *testing.T) {
	l := newLedger(t)
	batch := l.span.NewBatch()
	for i := range 40 { // blocks of their own
		batch.Set([]byte{'z', byte(i)}, make([]byte, snapshotBlock))
	}
	if err := l.span.Commit(batch, false); err != nil {
		t.Fatal(err)
	}
	batch.Close()
	stream := snapshotOf(t, l)
	if len(stream) < 40*snapshotBlock {
		t.Fatalf("a stream of %d bytes", len(stream))
	}
	for _, n := range []int{0, 100, snapshotBlock, 7 * snapshotBlock, len(stream) - 10} {
		snap, err := l.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := snap.WriteTo(&tooFull{n}); !errors.Is(err, errTooFull) {
			t.Errorf("a disk of %d bytes: %v", n, err)
		}
		if err := snap.Close(); err != nil {
			t.Error(err)
		}
	}
	for stop := range 45 {
		s := newSnapshotStream(bytes.NewReader(stream))
		if _, err := s.head(); err != nil {
			t.Fatal(err)
		}
		seen := 0
		err := s.rows(func(k, v []byte) error {
			if seen++; seen > stop {
				return errTooFull
			}
			return nil
		})
		if enough := seen <= stop; enough != (err == nil) || !enough && !errors.Is(err, errTooFull) {
			t.Errorf("stopped at row %d: %v", stop, err)
		}
	}
	damaged := bytes.Clone(stream)
	damaged[20*snapshotBlock] ^= 1
	s := newSnapshotStream(bytes.NewReader(damaged))
	if _, err := s.head(); err != nil {
		t.Fatal(err)
	}
	if err := s.rows(func(k, v []byte) error { return nil }); !errors.Is(err, ErrSnapshot) {
		t.Errorf("damaged: %v", err)
	}
}
