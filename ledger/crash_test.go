package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/selvage-mesh/selvage/ledger/store"
)

// crashes is a file system that keeps, before every operation that changes it,
// what a power loss at that moment would leave.
type crashes struct {
	mem *vfs.MemFS
	rng *rand.Rand
	// keep is asked before each changing operation; it returns the share of
	// unsynced data that survives, in percent, or -1 to take no clone.
	keep func(op int) int

	mu     sync.Mutex
	ops    int
	acked  uint64 // what was acknowledged so far
	clones []crash
}

// notReusing is a file system that makes a new file instead of using an old
// one again: the memory file system takes its lock twice there, which hangs
// when a clone waits for it in between.
type notReusing struct{ vfs.FS }

func (fs notReusing) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := fs.Remove(from); err != nil {
		return nil, err
	}
	return fs.Create(to, c)
}

type crash struct {
	fs    *vfs.MemFS
	op    int
	acked uint64
}

func (c *crashes) String() string { return "crashes" }

func (c *crashes) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ops++
	if percent := c.keep(c.ops); percent >= 0 {
		c.clones = append(c.clones, crash{c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: c.rng}),
			c.ops, c.acked})
	}
	return nil
}

func (c *crashes) ack(index uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked = index
}

// appendLog does what consensus does: a synced write of raft entries to its span.
func appendLog(t testing.TB, sp *store.Span, entries []LogEntry) {
	t.Helper()
	b := sp.NewBatch()
	defer b.Close()
	for _, e := range entries {
		v := append([]byte{1}, e.Data...)
		if e.Data == nil {
			v = []byte{0}
		}
		b.Set(binary.BigEndian.AppendUint64(nil, e.Index), v)
	}
	if err := sp.Commit(b, true); err != nil {
		t.Fatal(err)
	}
}

func readLog(sp *store.Span) (out []LogEntry) {
	for k, v := range sp.Scan(nil, nil, false) {
		e := LogEntry{Index: binary.BigEndian.Uint64(k), Term: 1}
		if v[0] == 1 {
			e.Data = bytes.Clone(v[1:])
		}
		out = append(out, e)
	}
	return out
}

// TestPowerLossAtEveryFileOperation lets the power fail before each change of
// the file system while a log is written and applied: the state is then a
// prefix of the log, every acknowledged entry is in the log, and replay leads
// to the same bytes.
func TestPowerLossAtEveryFileOperation(t *testing.T) {
	for _, percent := range []int{0, 60} {
		t.Run(fmt.Sprintf("%d percent of unsynced data survive", percent), func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, uint64(percent)))
			log := randomLog(t, r, 160)
			states := []map[string]string{{}} // by applied index
			ref := newLedger(t)
			for i := range log {
				ref.ApplyBatch(log[i : i+1])
				states = append(states, dump(ref))
			}

			c := &crashes{mem: vfs.NewCrashableMem(), rng: rand.New(rand.NewPCG(r.Uint64(), 0)),
				keep: func(int) int { return percent }}
			s, err := store.Open("db", store.Options{FS: errorfs.Wrap(notReusing{c.mem}, c), Small: true,
				MemTableBytes: 64 << 10})
			if err != nil {
				t.Fatal(err)
			}
			l := openLedger(t, s)
			for at := 0; at < len(log); {
				end := min(len(log), at+1+r.IntN(4))
				appendLog(t, s.Span('r'), log[at:end])
				l.ApplyBatch(log[at:end])
				c.ack(log[end-1].Index)
				at = end
			}
			if err := errors.Join(l.Close(), s.Close()); err != nil {
				t.Fatal(err)
			}
			if len(c.clones) < 100 {
				t.Fatalf("only %d crashes", len(c.clones))
			}
			behind, each := 0, 1
			if testing.Short() { // under the race detector a start costs ten times the work
				each = 21
			}
			for n, crash := range c.clones {
				if n%each > 0 {
					continue
				}
				s := openStore(t, crash.fs)
				l := openLedger(t, s)
				stored := readLog(s.Span('r'))
				applied := l.Applied()
				if n := uint64(len(stored)); n < crash.acked || applied > n {
					t.Fatalf("crash %d: %d entries acknowledged, %d in the log, %d applied", crash.op, crash.acked, n, applied)
				}
				if applied < uint64(len(stored)) {
					behind++
				}
				wantSameState(t, dump(l), states[applied])
				l.ApplyBatch(stored)
				wantSameState(t, dump(l), states[len(stored)])
				if err := errors.Join(l.Close(), s.Close()); err != nil {
					t.Fatal(err)
				}
				if t.Failed() {
					t.Fatalf("crash before operation %d of %d", crash.op, c.ops)
				}
			}
			t.Logf("%d crashes, of which one in %d was tried; %d with a state behind its log", len(c.clones), each, behind)
		})
	}
}

// TestPowerLossDuringRestore: the state is the old or the new one as a whole,
// and the raft log is untouched.
func TestPowerLossDuringRestore(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	log := randomLog(t, r, 60)
	far := newLedger(t)
	far.ApplyBatch(log)
	want := dump(far)
	snapshot := snapshotOf(t, far)

	c := &crashes{mem: vfs.NewCrashableMem(), rng: rand.New(rand.NewPCG(r.Uint64(), 0)),
		keep: func(op int) int { return 100 * (op % 2) / 2 }}
	s, err := store.Open("db", store.Options{FS: errorfs.Wrap(notReusing{c.mem}, c), Small: true})
	if err != nil {
		t.Fatal(err)
	}
	l := openLedger(t, s)
	appendLog(t, s.Span('r'), log[:20])
	l.ApplyBatch(log[:20])
	old := dump(l)
	appendLog(t, s.Span('r'), nil) // a sync, so that the old state is on the disk
	b := s.Span('r').NewBatch()
	b.Set(binary.BigEndian.AppendUint64(nil, 1), []byte{0})
	if err := s.Span('r').Commit(b, true); err != nil {
		t.Fatal(err)
	}
	b.Close()
	c.mu.Lock()
	c.clones = nil
	c.mu.Unlock()
	if err := l.Restore(bytes.NewReader(snapshot)); err != nil {
		t.Fatal(err)
	}
	c.ack(1)
	wantSameState(t, dump(l), want)
	if l.Position() != far.Position() {
		t.Errorf("position %+v, want %+v", l.Position(), far.Position())
	}
	appendLog(t, s.Span('r'), log[20:40])
	if err := errors.Join(l.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	olds, news := 0, 0
	for _, crash := range c.clones {
		s := openStore(t, crash.fs)
		l := openLedger(t, s)
		switch got := dump(l); {
		case l.Applied() == far.Applied():
			news++
			wantSameState(t, got, want)
		case crash.acked == 0:
			olds++
			wantSameState(t, got, old)
		default:
			t.Errorf("crash %d: the restored state is gone", crash.op)
		}
		if n := len(readLog(s.Span('r'))); n < 20 {
			t.Errorf("crash %d: %d log entries, want 20", crash.op, n)
		}
		if err := errors.Join(l.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if olds == 0 || news == 0 {
		t.Errorf("%d crashes before the step and %d after: want both", olds, news)
	}
}
