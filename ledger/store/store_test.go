package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func open(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	s, err := Open("db", Options{FS: fs, Small: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func commit(t *testing.T, sp *Span, sync bool, pairs ...string) {
	t.Helper()
	b := sp.NewBatch()
	defer b.Close()
	for i := 0; i < len(pairs); i += 2 {
		b.Set([]byte(pairs[i]), []byte(pairs[i+1]))
	}
	if err := sp.Commit(b, sync); err != nil {
		t.Fatal(err)
	}
}

func contents(sp *Span) []string {
	var out []string
	for k, v := range sp.Scan(nil, nil, false) {
		out = append(out, fmt.Sprintf("%s=%s", k, v))
	}
	return out
}

func want(t *testing.T, sp *Span, pairs ...string) {
	t.Helper()
	if got := contents(sp); !slices.Equal(got, pairs) {
		t.Errorf("span holds %v, want %v", got, pairs)
	}
}

func TestSpansDoNotSeeEachOther(t *testing.T) {
	s := open(t, vfs.NewMem())
	r, st := s.Span('r'), s.Span('s')
	commit(t, r, true, "a", "1", "b", "2")
	commit(t, st, false, "a", "3", "c", "")
	want(t, r, "a=1", "b=2")
	want(t, st, "a=3", "c=")
	if _, err := r.Get([]byte("c")); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get of the other span's key: %v, want ErrNotFound", err)
	}
	b := st.NewBatch()
	defer b.Close()
	b.DeleteRange([]byte("a"), []byte("b"))
	b.Delete([]byte("absent"))
	if err := st.Commit(b, false); err != nil {
		t.Fatal(err)
	}
	want(t, st, "c=")
	want(t, r, "a=1", "b=2")
}

func TestScanIsBoundedAndReversible(t *testing.T) {
	sp := open(t, vfs.NewMem()).Span('s')
	commit(t, sp, false, "a", "", "b", "", "c", "", "d", "")
	for _, tt := range []struct {
		from, to string
		reverse  bool
		want     string
	}{
		{"", "", false, "abcd"}, {"b", "", false, "bcd"}, {"b", "d", false, "bc"},
		{"b", "d", true, "cb"}, {"", "", true, "dcba"}, {"x", "", false, ""},
	} {
		var to []byte
		if tt.to != "" {
			to = []byte(tt.to)
		}
		got := ""
		for k := range sp.Scan([]byte(tt.from), to, tt.reverse) {
			got += string(k)
		}
		if got != tt.want {
			t.Errorf("Scan(%q, %q, %v) = %q, want %q", tt.from, tt.to, tt.reverse, got, tt.want)
		}
	}
}

func TestReplaceSwapsOneSpanAndLeavesTheOther(t *testing.T) {
	fs := vfs.NewMem()
	s := open(t, fs)
	commit(t, s.Span('r'), true, "log", "1")
	commit(t, s.Span('s'), false, "old", "1", "both", "old")
	fill := func(put func(k, v []byte) error) error {
		return errors.Join(put([]byte("both"), []byte("new")), put([]byte("fresh"), []byte("2")))
	}
	if err := s.Span('s').Replace(fill); err != nil {
		t.Fatal(err)
	}
	want(t, s.Span('s'), "both=new", "fresh=2")
	want(t, s.Span('r'), "log=1")

	broken := errors.New("stream broke")
	err := s.Span('s').Replace(func(put func(k, v []byte) error) error {
		return errors.Join(put([]byte("x"), nil), broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("Replace = %v, want the error of fill", err)
	}
	want(t, s.Span('s'), "both=new", "fresh=2")
	if err := s.Span('s').Replace(func(func(k, v []byte) error) error { return nil }); err != nil {
		t.Fatal(err)
	}
	want(t, s.Span('s'))
	want(t, s.Span('r'), "log=1")
}

func TestSecondOpenIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Small: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{Small: true}); !errors.Is(err, ErrLocked) {
		t.Errorf("second Open = %v, want ErrLocked", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, Options{Small: true}); err != nil {
		t.Fatalf("Open after Close: %v", err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Errorf("Close twice: %v", err)
	}
	if err := s.Writable(); !errors.Is(err, ErrClosed) {
		t.Errorf("Writable after Close = %v, want ErrClosed", err)
	}
}

func TestTrimEmptiesTheBlockCache(t *testing.T) {
	s := open(t, vfs.NewMem())
	sp := s.Span('s')
	for i := range 200 {
		commit(t, sp, false, fmt.Sprintf("key-%03d", i), strings.Repeat("v", 1<<10))
	}
	if err := db(s).Flush(); err != nil {
		t.Fatal(err)
	}
	if n := len(contents(sp)); n != 200 {
		t.Fatalf("%d rows", n)
	}
	before := s.Metrics().CacheBytes
	s.Trim()
	if after := s.Metrics().CacheBytes; before < 100<<10 || after > before/10 {
		t.Errorf("the cache held %d bytes before and %d after", before, after)
	}
	if n := len(contents(sp)); n != 200 {
		t.Errorf("%d rows after it", n)
	}
	if again := s.Metrics().CacheBytes; again < before/2 {
		t.Errorf("the cache fills to %d bytes after it was emptied, before to %d", again, before)
	}
}

// A store that is not wide flushes a large memtable long before it is full, one that is
// wide fills it, and it narrows again.
func TestNarrowStoreFlushesEarly(t *testing.T) {
	s, err := Open("db", Options{FS: vfs.NewMem(), MemTableBytes: 4 * earlyFlushBytes, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	write := func() {
		t.Helper()
		for i := range 6 {
			commit(t, s.Span('r'), false, fmt.Sprint("key ", i), strings.Repeat("x", earlyFlushBytes/5))
		}
	}
	waitFor := func(n int64) {
		t.Helper()
		for range 1000 {
			if db(s).Metrics().Flush.Count >= n {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("%d flushes, want %d", db(s).Metrics().Flush.Count, n)
	}
	s.Widen(true)
	write() // the first memtables are small, and double
	write()
	if err := db(s).Flush(); err != nil {
		t.Fatal(err)
	}
	before := db(s).Metrics().Flush.Count
	write()
	if n := db(s).Metrics().Flush.Count; n != before {
		t.Errorf("a wide store flushed %d times before its memtable was full", n-before)
	}
	s.Widen(false)
	commit(t, s.Span('r'), false, "key", "x")
	waitFor(before + 1) // what it has from then
	write()
	waitFor(before + 2)
}
