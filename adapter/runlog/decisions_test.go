package runlog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A decision log grows over restarts, is closed once, and has a bound.
func TestDecisionLog(t *testing.T) {
	t.Parallel()
	dir, ref := t.TempDir(), DecisionsRef("c", "a", "r")
	open := func() *Store {
		s, err := Open(dir, Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	s := open()
	if d, err := s.SealDecisions(ref); err != nil || d.Permits != 0 || d.SHA256 != hexSum(nil) {
		t.Fatalf("without any: %+v, %v", d, err)
	}
	if err := s.Decided(ref, []byte(`{"n":1}`)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open()
	if err := s.Decided(ref, []byte(`{"n":2}`)); err != nil {
		t.Fatal(err)
	}
	want := "{\"n\":1}\n{\"n\":2}\n"
	if c, err := s.Read(ref, 0, 0); err != nil || string(c.Content) != want || !c.Growing {
		t.Fatalf("while it grows: %+v, %v", c, err)
	}
	d, err := s.SealDecisions(ref)
	if err != nil || d.Permits != 2 || d.Bytes != int64(len(want)) || d.SHA256 != hexSum([]byte(want)) {
		t.Fatalf("closed: %+v, %v", d, err)
	}
	if again, err := s.SealDecisions(ref); err != nil || again != d {
		t.Errorf("closed again: %+v, %v", again, err)
	}
	if err := s.Decided(ref, []byte("late")); !errors.Is(err, ErrSealed) {
		t.Errorf("after the end: %v", err)
	}
	if c, err := s.Read(ref, 0, 0); err != nil || string(c.Content) != want || c.Growing {
		t.Errorf("after the end: %+v, %v", c, err)
	}
	full := DecisionsRef("c", "a", "full")
	if err := s.Decided(full, []byte(strings.Repeat("x", MaxDecisions-1))); err != nil {
		t.Fatal(err)
	}
	if err := s.Decided(full, nil); !errors.Is(err, ErrFull) {
		t.Errorf("one more: %v", err)
	}
	if st, err := os.Stat(filepath.Join(dir, growingRef(full))); err != nil || st.Size() != MaxDecisions {
		t.Errorf("the full one: %v, %v", st, err)
	}
	for _, bad := range []string{"../x" + gateEnd, "c/a/r.ndjson", "c" + gateEnd} {
		if err := s.Decided(bad, nil); err == nil {
			t.Errorf("took %s", bad)
		}
	}
}
