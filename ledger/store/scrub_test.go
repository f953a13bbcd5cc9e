package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A scrub of an open store finds a flipped bit, a zeroed page, a cut and a deleted
// file of each kind, names it, and finds nothing in a store that is whole.
func TestScrubFindsDamageOfAnOpenStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(dir, Options{Small: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	span := s.Span('x')
	for i := range 300 {
		b := span.NewBatch()
		b.Set(fmt.Appendf(nil, "key %d", i), []byte(strings.Repeat(fmt.Sprint("value ", i), 100)))
		if err := span.Commit(b, true); err != nil {
			t.Fatal(err)
		}
		if i == 200 {
			if err := db(s).Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	scrub := func() (found []*Damage, read int64) {
		t.Helper()
		if err := s.Scrub(t.Context(), func(n,
			of int64) error {
			read += n
			return nil
		}, func(d *Damage) { found = append(found, d) }); err != nil {
			t.Fatal(err)
		}
		return found, read
	}
	total, err := s.ScrubBytes()
	if err != nil {
		t.Fatal(err)
	}
	if found, read := scrub(); len(found) > 0 || read == 0 || read > 2*total+1<<20 {
		t.Fatalf("of a store that is whole: %v, %d of %d bytes read", found, read, total)
	}
	files, _, err := s.scrubList()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, name := range files {
		if name == "marker.manifest" {
			continue // its name is what it says
		}
		kinds[filepath.Ext(name)+strings.TrimRight(name, "0123456789")] = true
		path := filepath.Join(dir, name)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for what, damage := range map[string]func() error{
			"flip":   func() error { return write(path, good, len(good)/3, 1) },
			"zero":   func() error { return write(path, good, 0, 4096) },
			"cut":    func() error { return os.Truncate(path, int64(len(good)/3)) },
			"delete": func() error { return os.Remove(path) },
		} {
			if name == markFile && (what == "flip" || what == "zero" || what == "cut") {
				continue // it has two slots, and is written again all the time
			}
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			found, _ := scrub()
			if len(found) != 1 || found[0].File != name {
				t.Errorf("%s of %s (%d bytes): found %v", what, name, len(good), found)
			}
			if err := os.WriteFile(path, good, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(kinds) < 4 {
		t.Errorf("only these kinds of files are there: %v", kinds)
	}
	stop := errors.New("stop")
	if err := s.Scrub(t.Context(), func(int64, int64) error { return stop }, nil); !errors.Is(err, stop) {
		t.Errorf("stopped by its pace: %v", err)
	}
}

// write puts a file back with n bytes from at on changed: one flipped, more zeroed.
func write(path string, good []byte, at, n int) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	bad := make([]byte, min(n, len(good)-at))
	if n == 1 {
		bad[0] = good[at] ^ 1
	}
	_, err = f.WriteAt(bad, int64(at))
	return errors.Join(err, f.Close())
}
