package store

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// folders are on the file systems of this machine that differ: a disk, and one
// of memory.
func folders(t *testing.T) []string {
	dirs := []string{t.TempDir()}
	if dir, err := os.MkdirTemp("/dev/shm", "selvage-long-"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		dirs = append(dirs, dir)
	}
	return dirs
}

// TestLongFileHasWhatWasWritten writes files that end before, at and after
// where pieces and blocks do, in writes of any size.
func TestLongFileHasWhatWasWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	want := make([]byte, 3*longPiece+1)
	for i := range want {
		want[i] = byte(r.Uint32())
	}
	for _, dir := range folders(t) {
		for _, size := range []int{0, 1, blockBytes, blockBytes + 1, longPiece - 1, longPiece, longPiece + 1, longPiece +
			blockBytes, 2 * longPiece, 3*longPiece - blockBytes, 3*longPiece + 1} {
			f, err := os.Create(filepath.Join(dir, "long"))
			if err != nil {
				t.Fatal(err)
			}
			l := NewLongFile(f)
			for rest := want[:size]; len(rest) > 0; {
				n := min(len(rest), 1+r.IntN(longPiece*3/2))
				if _, err := l.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			err = l.Sync()
			l.Close()
			if err = errors.Join(err, f.Close()); err != nil {
				t.Fatalf("%d bytes in %s: %v", size, dir, err)
			}
			if got, err := os.ReadFile(f.Name()); err != nil || !bytes.Equal(got, want[:size]) {
				t.Errorf("%d bytes in %s: %d bytes, %v", size, dir, len(got), err)
			}
		}
	}
}

// flaky is a file that takes n bytes and then fails.
type flaky struct {
	*os.File
	n int
}

var errFlaky = errors.New("the disk is gone")

func (f *flaky) Write(b []byte) (int, error) {
	if f.n -= len(b); f.n < 0 {
		return 0, errFlaky
	}
	return f.File.Write(b)
}

// TestLongFileTellsOfEveryFailure: what failed in the background is told by a
// later write, or by the sync.
func TestLongFileTellsOfEveryFailure(t *testing.T) {
	for n := range 4 {
		f, err := os.Create(filepath.Join(t.TempDir(), "long"))
		if err != nil {
			t.Fatal(err)
		}
		l := NewLongFile(&flaky{f, n * longPiece})
		_, err = l.Write(make([]byte, 3*longPiece+5))
		if err == nil {
			err = l.Sync()
		}
		if !errors.Is(err, errFlaky) {
			t.Errorf("after %d pieces: %v", n, err)
		}
		l.Close()
		f.Close()
	}
}
