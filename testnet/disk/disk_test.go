package disk

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// What was synced is left by every crash, and what was not is there or not there
// by whole blocks and names; files that were written over and over hold what a
// slice written in the same way holds.
func TestACrashLeavesWhatWasSynced(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		d := New()
		if err := errors.Join(d.MkdirAll("/a/b", 0o755), syncDir(d, "/"), syncDir(d, "/a")); err != nil {
			t.Fatal(err)
		}
		f, err := d.OpenReadWrite("/a/b/x", vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		var now, synced []byte
		for range 40 {
			now, synced = step(t, rng, f, now, synced)
			if got := bytesOf(t, d); !bytes.Equal(got, now) {
				t.Fatalf("seed %d: the file has %d bytes, other than the %d that were written", seed, len(got), len(now))
			}
		}
		if d.Crash(0, nil).has("/a/b/x") {
			t.Fatalf("seed %d: a name that was not synced is left", seed)
		}
		if err := syncDir(d, "/a/b"); err != nil {
			t.Fatal(err)
		}
		if got := bytesOf(t, d.Crash(0, nil)); !bytes.Equal(got, synced) {
			t.Fatalf("seed %d: the crash left %d bytes, other than the %d that were synced", seed, len(got), len(synced))
		}
		if got := bytesOf(t, d.Crash(100, rng)); !bytes.Equal(got, now) {
			t.Fatalf("seed %d: a crash that loses nothing left other bytes", seed)
		}
		after := d.Crash(50, rng)
		left := bytesOf(t, after)
		mixed(t, seed, left, now, synced)
		// Neither of the two disks sees what is written to the other.
		if _, err := f.WriteAt([]byte("old"), 0); err != nil {
			t.Fatal(err)
		}
		g, err := after.OpenReadWrite("/a/b/x", vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.WriteAt([]byte("new"), int64(len(left))); err != nil {
			t.Fatal(err)
		}
		if got := bytesOf(t, after); !bytes.Equal(got, append(left, "new"...)) {
			t.Fatalf("seed %d: a disk sees what is written to the one that it was", seed)
		}
		if got, want := bytesOf(t, after.Crash(0, nil)), left; !bytes.Equal(got, want) {
			t.Fatalf("seed %d: a second crash left %d bytes, not the %d that the first one left", seed, len(got), len(want))
		}
	}
}

// step does one thing to the file, and to the slices that say what it holds.
func step(t *testing.T, rng *rand.Rand, f vfs.File, now, synced []byte) (now2, synced2 []byte) {
	t.Helper()
	p := make([]byte, rng.IntN(3*blockSize/2))
	for i := range p {
		p[i] = byte(1 + rng.IntN(255))
	}
	var err error
	switch n := rng.IntN(10); {
	case n < 3:
		err = f.Sync()
		synced = bytes.Clone(now)
	default:
		off := len(now)
		if n < 6 && len(now) > 0 {
			off = rng.IntN(len(now) + blockSize)
		}
		_, err = f.WriteAt(p, int64(off))
		if grow := off + len(p) - len(now); grow > 0 && len(p) > 0 {
			now = append(now, make([]byte, grow)...)
		}
		copy(now[min(off, len(now)):], p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return now, synced
}

// mixed checks that each block that a crash left is the synced one, the last one
// that was written, or, between such, zero.
func mixed(t *testing.T, seed uint64, left, now, synced []byte) {
	t.Helper()
	if len(left) < len(synced) {
		t.Fatalf("seed %d: the crash left %d bytes, and %d were synced", seed, len(left), len(synced))
	}
	part := func(b []byte, from int) []byte {
		if from >= len(b) {
			return nil
		}
		return bytes.TrimRight(b[from:min(from+blockSize, len(b))], "\x00")
	}
	for from := 0; from < len(left); from += blockSize {
		got := part(left, from)
		if !bytes.Equal(got, part(now, from)) && !bytes.Equal(got, part(synced, from)) {
			t.Fatalf("seed %d: block %d is neither the synced one nor the last one", seed, from/blockSize)
		}
	}
}

func bytesOf(t *testing.T, d *Disk) []byte {
	t.Helper()
	f, err := d.Open("/a/b/x")
	if err != nil {
		t.Fatal(err)
	}
	i, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, i.Size())
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

func (d *Disk) has(name string) bool {
	_, err := d.Stat(name)
	return err == nil
}

func syncDir(d *Disk, name string) error {
	f, err := d.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func TestNames(t *testing.T) {
	t.Parallel()
	d := New()
	if err := d.MkdirAll("/a/b", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Create("/c/x", vfs.WriteCategoryUnspecified); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("made a file in a directory that is not there:", err)
	}
	f, err := d.Create("/a/x", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("text")); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove("/a"); err == nil {
		t.Fatal("removed a directory that has files")
	}
	if err := errors.Join(d.Link("/a/x", "/a/y"), d.Rename("/a/b", "/b"), d.Rename("/a/x", "/b/z")); err != nil {
		t.Fatal(err)
	}
	if err := d.Link("/a/y", "/b/z"); !errors.Is(err, fs.ErrExist) {
		t.Fatal("linked over a file:", err)
	}
	for name, want := range map[string]bool{"/a/x": false, "/a/y": true, "/b/z": true, "/a/b": false} {
		if d.has(name) != want {
			t.Errorf("%s is there: %t, want %t", name, !want, want)
		}
	}
	lock, err := d.Lock("/lock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Lock("/lock"); err == nil {
		t.Fatal("two hold one lock")
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Lock("/lock"); err != nil {
		t.Fatal("a lock that was given back is held:", err)
	}
	names, err := d.List("/")
	if err != nil || len(names) != 3 {
		t.Fatal("the root has", names, err)
	}
	if err := d.RemoveAll("/a"); err != nil || d.has("/a") {
		t.Fatal("a removed directory is there:", err)
	}
}
