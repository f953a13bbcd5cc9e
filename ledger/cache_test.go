package ledger

import (
	"fmt"
	"strings"
	"testing"
)

// A row that is written again and again has as many versions as writes: what is
// kept of them is bounded in bytes, however long the rows are.
func TestDecodedRowsAreBoundedInBytes(t *testing.T) {
	const limit, long, flat = 1 << 20, 4 << 10, 512
	d := newDecoded(limit)
	var last []byte
	for i := range 4096 {
		last = []byte(strings.Repeat("x", long))
		d.put(last, fmt.Sprint(i), flat)
	}
	kept := 0
	for _, m := range []map[*byte]decodedRow{d.young, d.old} {
		for _, r := range m {
			if r.size < 2*long+flat {
				t.Fatalf("a row of %d bytes that decodes to as many counts as %d", long, r.size)
			}
			kept += r.size
		}
	}
	if kept > limit {
		t.Errorf("%d bytes are kept, want at most %d", kept, limit)
	}
	if kept < limit/4 {
		t.Errorf("%d bytes are kept: that is no cache of %d", kept, limit)
	}
	if d.get(last) != "4095" {
		t.Error("the newest row is not kept")
	}
	if d.forget(); d.get(last) != nil || d.size != 0 {
		t.Error("rows are kept after all were dropped")
	}
}

// What views decode rows to is counted, or the cache would hold several times its limit.
func TestDecodedRowsOfViewsAreCounted(t *testing.T) {
	const limit, rows, long = 1 << 20, 4096, 1 << 10
	c := newReadCache(limit)
	for i := range rows {
		r := &readRow{value: make([]byte, long), decodes: decodedSize(long, 600) - long}
		c.add([]byte(fmt.Sprint("c/x/note/", i)), r, 1)
	}
	held := 0
	for i := range c.shards {
		for _, m := range []map[string]*readRow{c.shards[i].young, c.shards[i].old} {
			for _, r := range m {
				held += len(r.value) + r.decodes
			}
		}
	}
	if held > limit || held < limit/4 {
		t.Errorf("rows of %d bytes with what they decode to are held, want at most %d and some", held, limit)
	}
	// A row that was found by its key alone is not kept in decoded form: nobody counted that.
	table := NewTable[string, note]("note")
	found := &readRow{value: Marshal(note{Text: "x"})}
	if row, kept := table.rows.view(found); kept || row.(*note).Text != "x" || found.decoded.Load() != nil {
		t.Errorf("view = %v, %v; decoded is kept: %v", row, kept, found.decoded.Load() != nil)
	}
	found.decodes = decodedSize(len(found.value), table.rows.flat)
	if _, kept := table.rows.view(found); !kept || found.decoded.Load() == nil {
		t.Error("a counted row is not kept in decoded form")
	}
	if c.clear(); c.find([]byte("c/x/note/4095"), 1) != nil {
		t.Error("a row is kept after all were dropped")
	}
}

// The newest entries are bounded in bytes as well as in number, and the feed reads
// on below them.
func TestRecentEntriesAreBoundedInBytes(t *testing.T) {
	l := &Ledger{}
	details := make([]byte, MaxChangeBytes)
	for i := range uint64(3 * recentEntries) {
		l.pos.Height = i + 1
		l.remember([]Entry{{Height: i + 1, Changes: []Change{{Details: details}}}})
		total := 0
		for k := range l.recent {
			total += l.recent[k].size()
		}
		if total != l.recentSize {
			t.Fatalf("entries of %d bytes are counted as %d", total, l.recentSize)
		}
		if total > 2*recentBytes+2*MaxChangeBytes {
			t.Fatalf("entries of %d bytes are kept, want at most %d", total, 2*recentBytes)
		}
	}
	if n := len(l.recent); n == 0 || l.recent[n-1].Height != l.pos.Height {
		t.Error("the newest entry is not kept")
	}
	if out, ok := l.recentAfter(l.pos.Height - 1); !ok || len(out) != 1 {
		t.Errorf("recentAfter = %d entries, %v", len(out), ok)
	}
	if _, ok := l.recentAfter(0); ok {
		t.Error("entries that are not kept were found")
	}
}
