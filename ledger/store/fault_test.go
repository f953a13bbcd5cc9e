package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestPowerLossKeepsTheOrderOfCommits commits to both spans and cuts the power
// at random: what was synced is there, and the unsynced span is a prefix that
// reaches at least to what was committed before the last sync.
func TestPowerLossKeepsTheOrderOfCommits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for round := range 60 {
		fs := vfs.NewCrashableMem()
		s, err := Open("db", Options{FS: fs, Small: true})
		if err != nil {
			t.Fatal(err)
		}
		r, st := s.Span('r'), s.Span('s')
		synced, states, safe := 0, 0, 0
		for range rng.IntN(60) {
			if rng.IntN(3) == 0 {
				commit(t, r, true, fmt.Sprintf("%06d", synced), "entry")
				synced++
				safe = states
			} else {
				commit(t, st, false, fmt.Sprintf("%06d", states), "row")
				states++
			}
		}
		clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, clone)
		if got := len(contents(s.Span('r'))); got != synced {
			t.Errorf("round %d: %d of %d synced entries", round, got, synced)
		}
		got := contents(s.Span('s'))
		if len(got) < safe || len(got) > states {
			t.Errorf("round %d: %d rows, want %d to %d", round, len(got), safe, states)
		}
		for i, row := range got {
			if row != fmt.Sprintf("%06d=row", i) {
				t.Errorf("round %d: row %d is %s: not a prefix", round, i, row)
			}
		}
	}
}

// disk is a file system of limited size.
type disk struct {
	vfs.FS
	mem  *vfs.MemFS
	free atomic.Int64
}

func newDisk(free int64) *disk {
	d := &disk{mem: vfs.NewMem()}
	d.FS = d.mem
	d.free.Store(free)
	return d
}

func (d *disk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: uint64(max(0, d.free.Load())), TotalBytes: 1 << 40}, nil
}

func (d *disk) Unwrap() vfs.FS { return d.mem }

func (d *disk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	return d.wrap(name, f, err)
}

func (d *disk) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.ReuseForWrite(from, to, c)
	return d.wrap(to, f, err)
}

func (d *disk) wrap(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &limitedFile{f, d}, nil
}

func (d *disk) Remove(name string) error {
	i, err := d.FS.Stat(name)
	if err == nil {
		d.free.Add(i.Size())
	}
	return d.FS.Remove(name)
}

type limitedFile struct {
	vfs.File
	d *disk
}

func (f *limitedFile) Write(b []byte) (int, error) {
	if f.d.free.Add(-int64(len(b))) < 0 {
		f.d.free.Add(int64(len(b)))
		return 0, syscall.ENOSPC
	}
	return f.File.Write(b)
}

// TestFullDiskRefusesWritesKeepsReadsAndRecovers walks down the three lines of
// a disk that fills up, and back.
func TestFullDiskRefusesWritesKeepsReadsAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const reserve = SmallReserveBytes
		d := newDisk(2 * reserve)
		fatal := ""
		s, err := Open("db", Options{FS: d, Small: true, OnFatal: func(err error) { fatal = err.Error() }})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r, st := s.Span('r'), s.Span('s')
		value := strings.Repeat("x", 1000)
		put := func(sp *Span, sync bool, key, v string) error {
			b := sp.NewBatch()
			defer b.Close()
			b.Set([]byte(key), []byte(v))
			return sp.Commit(b, sync)
		}
		if err := errors.Join(s.Writable(), put(r, true, "log", value)); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Stat("db/BALLAST"); err != nil {
			t.Errorf("no ballast: %v", err)
		}

		// below the reserve: no new work, but what is under way goes on
		d.free.Store(reserve - 1)
		time.Sleep(2 * measureEvery)
		if err := s.Writable(); !errors.Is(err, ErrDiskFull) {
			t.Errorf("Writable = %v, want ErrDiskFull", err)
		}
		if err := put(r, true, "log2", value); err != nil {
			t.Errorf("log within the reserve: %v", err)
		}
		if err := st.Replace(func(func(k, v []byte) error) error { return nil }); !errors.Is(err, ErrDiskFull) {
			t.Errorf("Replace = %v, want ErrDiskFull", err)
		}

		// the reserve is used up: no log, but votes and state
		d.free.Store(reserve/2 - 1)
		time.Sleep(2 * measureEvery)
		if err := put(r, true, "log3", value); !errors.Is(err, ErrDiskFull) {
			t.Errorf("log beyond the reserve = %v, want ErrDiskFull", err)
		}
		if err := errors.Join(put(r, true, "vote", "7"), put(st, false, "row", value)); err != nil {
			t.Errorf("vote and state: %v", err)
		}

		// nothing left at all: the ballast saves the write that meets it
		d.free.Store(0)
		if err := put(r, true, "vote", "8"); err != nil {
			t.Errorf("vote on a full disk: %v", err)
		}
		if fatal != "" {
			t.Errorf("fatal: %s", fatal)
		}
		if _, err := d.Stat("db/BALLAST"); err == nil {
			t.Error("the ballast is still there")
		}
		if v, err := r.Get([]byte("log")); err != nil || string(v) != value {
			t.Errorf("read on a full disk: %v", err)
		}

		// room again
		d.free.Store(2 * reserve)
		time.Sleep(2 * measureEvery)
		if err := errors.Join(s.Writable(), put(r, true, "log3", value)); err != nil {
			t.Errorf("after there was room again: %v", err)
		}
		if _, err := d.Stat("db/BALLAST"); err != nil {
			t.Errorf("no ballast: %v", err)
		}
	})
}

// TestFailedSyncIsFatal: an error of the disk ends the work at once, it is not
// tried again behind the caller's back.
func TestFailedSyncIsFatal(t *testing.T) {
	var failing atomic.Bool
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing.Load() && strings.HasSuffix(op.Path, ".log") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return syscall.EIO
		}
		return nil
	})
	fatal := make(chan error, 8)
	s, err := Open("db", Options{FS: errorfs.Wrap(vfs.NewMem(), inject), Small: true, OnFatal: func(err error) {
		select {
		case fatal <- err:
		default:
		}
		select {} // as if the process had ended here
	}})
	if err != nil {
		t.Fatal(err)
	}
	// never closed: a store after a fatal error is only good for being left
	sp := s.Span('r')
	commit(t, sp, true, "a", "1")
	failing.Store(true)
	go func() {
		b := sp.NewBatch()
		b.Set([]byte("b"), []byte("2"))
		err := sp.Commit(b, true)
		t.Errorf("Commit returned %v after a failed sync", err)
	}()
	select {
	case err := <-fatal:
		if !errors.Is(err, syscall.EIO) && !strings.Contains(err.Error(), "input/output error") {
			t.Errorf("OnFatal got %v, want EIO", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("OnFatal was not called")
	}
}

// stall is a file system whose log syncs wait while it is held.
type stall struct {
	vfs.FS
	gate sync.RWMutex
}

func (f *stall) wrap(name string, file vfs.File, err error) (vfs.File, error) {
	if err != nil || !strings.HasSuffix(name, ".log") {
		return file, err
	}
	return &stallingFile{file, f}, nil
}

func (f *stall) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	return f.wrap(name, file, err)
}

type stallingFile struct {
	vfs.File
	f *stall
}

func (f *stallingFile) SyncData() error {
	f.f.gate.RLock()
	defer f.f.gate.RUnlock()
	return f.File.SyncData()
}

func (f *stallingFile) Sync() error {
	f.f.gate.RLock()
	defer f.f.gate.RUnlock()
	return f.File.Sync()
}

func TestSlowDiskIsTold(t *testing.T) {
	fs := &stall{FS: vfs.NewMem()}
	told := make(chan SlowDisk, 100)
	s, err := Open("db", Options{FS: fs, Small: true, SlowAfter: 100 * time.Millisecond, OnSlowDisk: func(d SlowDisk) {
		select {
		case told <- d:
		default:
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fs.gate.Lock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		commit(t, s.Span('r'), true, "a", "1")
	}()
	select {
	case d := <-told:
		if !strings.HasSuffix(d.File, ".log") || d.For < 100*time.Millisecond {
			t.Errorf("told of %+v", d)
		}
	case <-time.After(20 * time.Second):
		t.Error("nobody was told")
	}
	fs.gate.Unlock()
	<-done
}

func TestSyncsAreCounted(t *testing.T) {
	s := open(t, vfs.NewMem())
	before := s.Syncs()
	commit(t, s.Span('s'), false, "a", "1")
	if got := s.Syncs() - before; got != 0 {
		t.Errorf("%d syncs for an unsynced commit", got)
	}
	for range 3 {
		commit(t, s.Span('r'), true, "a", "1")
	}
	if got := s.Syncs() - before; got != 3 {
		t.Errorf("%d syncs, want 3", got)
	}
	if m := s.Metrics(); m.Syncs != s.Syncs() || m.WALBytes == 0 {
		t.Errorf("metrics %+v", m)
	}
}

func TestGetAllKeepsTheOrderOfKeys(t *testing.T) {
	sp := open(t, vfs.NewMem()).Span('s')
	var keys [][]byte
	var wanted []string
	for i := range 100 {
		keys = append(keys, []byte(fmt.Sprint(i)))
		wanted = append(wanted, "")
		if i%3 == 0 {
			commit(t, sp, false, fmt.Sprint(i), fmt.Sprint("v", i))
			wanted[i] = fmt.Sprint("v", i)
		}
	}
	values, err := sp.GetAll(keys, 4)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range values {
		got = append(got, string(v))
	}
	if !slices.Equal(got, wanted) {
		t.Errorf("got %q", got)
	}
}

// TestSecondProcessIsRefused starts this test program again on the same directory.
func TestSecondProcessIsRefused(t *testing.T) {
	if dir := os.Getenv("SELVAGE_TEST_LOCKED_DIR"); dir != "" {
		_, err := Open(dir, Options{Small: true})
		fmt.Println("second:", errors.Is(err, ErrLocked), err)
		return
	}
	dir := t.TempDir()
	s, err := Open(dir, Options{Small: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestSecondProcessIsRefused$", "-test.v")
	cmd.Env = append(os.Environ(), "SELVAGE_TEST_LOCKED_DIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "second: true data directory is in use") {
		t.Errorf("second process: %v\n%s", err, out)
	}
}

// TestReplaceOfManyTables replaces a span by more than one table file while
// the other span is written, and a reader of the other span goes on.
func TestReplaceOfManyTables(t *testing.T) {
	s := open(t, vfs.NewMem())
	r, st := s.Span('r'), s.Span('s')
	commit(t, st, false, "a-old", "1", "z-old", "2")
	value := make([]byte, 1<<20)
	err := st.Replace(func(put func(k, v []byte) error) error {
		for i := range 2 * tableBytes >> 20 {
			commit(t, r, true, fmt.Sprintf("%04d", i), "log")
			if err := put([]byte(fmt.Sprintf("%04d", i)), value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(contents(st)); got != 2*tableBytes>>20 {
		t.Errorf("%d rows", got)
	}
	if got := len(contents(r)); got != 2*tableBytes>>20 {
		t.Errorf("%d log entries", got)
	}
	unordered := st.Replace(func(put func(k, v []byte) error) error {
		return errors.Join(put([]byte("b"), nil), put([]byte("a"), nil))
	})
	if unordered == nil {
		t.Error("keys out of order were taken")
	}
}
