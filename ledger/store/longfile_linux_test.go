package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// wary is a file of a system that takes no direct writes, and says so only when
// it gets one.
type wary struct {
	*os.File
	refused int
}

func (f *wary) Write(b []byte) (int, error) {
	if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0); err != nil || flags&unix.O_DIRECT != 0 {
		f.refused++
		return 0, &os.PathError{Op: "write", Path: f.Name(), Err: unix.EINVAL}
	}
	return f.File.Write(b)
}

func TestLongFileGoesThroughTheCacheWhereItMust(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "long"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := &wary{File: f}
	l := NewLongFile(w)
	want := bytes.Repeat([]byte("0123456789"), longPiece/4)
	if _, err := l.Write(want); err != nil {
		t.Fatal(err)
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	l.Close()
	if got, err := os.ReadFile(f.Name()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
	if w.refused > 1 {
		t.Errorf("refused %d times", w.refused)
	}
}
