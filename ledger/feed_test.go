package ledger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestFeedWaitsForNewEntriesAndResumesByHeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, vfs.NewMem())
		defer s.Close()
		l, w := openLedger(t, s), newWorld(t)
		defer l.Close()
		k := w.found()
		w.apply(l)
		ctx, cancel := context.WithCancel(t.Context())
		heights := make(chan uint64, 100)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for e, err := range l.Entries(ctx, 1) {
				if err != nil {
					t.Error(err)
				}
				heights <- e.Height
			}
		}()
		synctest.Wait()
		id := session(t, l, k)
		for i := range uint64(3) {
			time.Sleep(time.Hour)
			w.add(k, id, 1+2*i, 1+2*i, w.note("note.put", "a", ""), w.note("note.put", "a", ""))
			w.apply(l)
			synctest.Wait()
		}
		cancel()
		<-done
		close(heights)
		want := uint64(2)
		for h := range heights {
			if h != want {
				t.Errorf("height %d, want %d", h, want)
			}
			want++
		}
		if want != 9 {
			t.Errorf("feed ended before height %d", want)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := l.WaitApplied(ctx, l.Applied()+1); err != context.DeadlineExceeded {
			t.Errorf("WaitApplied = %v", err)
		}
	})
}

// TestBatchesRebuildTheLedger pulls the committed batches of one ledger into
// another, as an observer does.
func TestBatchesRebuildTheLedger(t *testing.T) {
	from, to := newLedger(t), newLedger(t)
	r := rand.New(rand.NewPCG(8, 8))
	var log []LogEntry
	for _, e := range randomLog(t, r, 60) {
		if b, err := DecodeBatch(e.Data); e.Data == nil || err == nil && !erases(b) {
			log = append(log, LogEntry{Index: uint64(len(log) + 1), Term: 1, Data: e.Data})
		}
	}
	from.ApplyBatch(log)
	next := uint64(1)
	for b, err := range from.Batches(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		for ; next < b.Index; next++ {
			to.ApplyBatch([]LogEntry{{Index: next, Term: 1}})
		}
		to.ApplyBatch([]LogEntry{{Index: b.Index, Term: b.Term, Data: b.Data}})
		next++
		if b.Index == from.Position().BatchIndex {
			break
		}
	}
	if got, want := to.Position().Head, from.Position().Head; got != want {
		t.Errorf("head %x, want %x", got, want)
	}
	if got, want := to.Position().Batch, from.Position().Batch; got != want {
		t.Errorf("last batch %x, want %x", got, want)
	}
}

func erases(b *Batch) bool {
	for i := range b.Commands {
		if k := b.Commands[i].Kind; k == "note.erase" || k == "note.wipe" {
			return true
		}
	}
	return false
}

func TestActivitiesAreFoundByEntityActorAndAction(t *testing.T) {
	l, w := newLedger(t, func(c *Config) {
		c.Mux["note.two"] = func(c *Context) ([]byte, error) {
			c.Record(Change{Action: "note.opened", EntityType: "note", EntityID: "x", Details: []byte(`{"n":1}`)})
			c.Record(Change{Action: "note.closed", EntityType: "note", EntityID: "y"})
			return nil, nil
		}
	}), newWorld(t)
	k := w.found()
	w.apply(l)
	const company = "11111111-1111-4111-8111-111111111111"
	cmds := []Command{w.note("note.put", "a", ""), w.note("note.two", "", ""), w.note("note.put", "b", ""),
		w.note("note.put", "a", "")}
	cmds[2].Actor = Actor{"agent", "bob"}
	cmds[3].Run = "run-1"
	other := w.note("note.put", "a", "")
	other.Company = "22222222-2222-4222-8222-222222222222"
	w.add(k, session(t, l, k), 1, 1, append(cmds, other)...)
	wantOK(t, w.apply(l))
	view(t, l, func(tx *Tx) {
		for _, tt := range []struct {
			name string
			f    ActivityFilter
			want string
		}{
			{"all", ActivityFilter{}, "6.0 5.0 4.1 4.0 3.0"},
			{"newest two", ActivityFilter{Limit: 2}, "6.0 5.0"},
			{"before", ActivityFilter{BeforeHeight: 4, BeforeNumber: 1}, "4.0 3.0"},
			{"entity", ActivityFilter{EntityType: "note", EntityID: "a"}, "6.0 3.0"},
			{"entity before", ActivityFilter{EntityType: "note", EntityID: "a", BeforeHeight: 6}, "3.0"},
			{"entity of two", ActivityFilter{EntityType: "note", EntityID: "y"}, "4.1"},
			{"actor", ActivityFilter{Actor: Actor{"agent", "bob"}}, "5.0"},
			{"actor ID", ActivityFilter{Actor: Actor{"", "bob"}}, "5.0"},
			{"action", ActivityFilter{Action: "note.closed"}, "4.1"},
			{"type", ActivityFilter{EntityType: "note", Limit: 1}, "6.0"},
			{"run", ActivityFilter{Run: "run-1"}, "6.0"},
			{"nothing", ActivityFilter{Action: "note.put", Actor: Actor{"user", "x"}}, ""},
		} {
			got := ""
			for i, a := range Activities(tx, company, tt.f) {
				if i > 0 {
					got += " "
				}
				got += string(rune('0'+a.Height)) + "." + string(rune('0'+a.Number))
			}
			if got != tt.want {
				t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
			}
		}
		all := Activities(tx, company, ActivityFilter{})
		e, _ := EntryAt(tx, 4)
		if got := ActivityOf(e); got[0].ID != all[3].ID || got[1].ID != all[2].ID || got[0].ID == got[1].ID ||
			string(got[0].Details) != `{"n":1}` {
			t.Errorf("activities of entry 4: %+v", got)
		}
		if id := all[0].ID; len(id) != 36 || id[14] != '8' {
			t.Errorf("ID %q is not a UUID of version 8", id)
		}
	})
}

func TestNextStamp(t *testing.T) {
	last := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name          string
		elapsed, wall time.Duration // wall is relative to last
		want          time.Duration
	}{
		{"follows the wall", time.Second, 1100 * time.Millisecond, 1100 * time.Millisecond},
		{"drops what is finer than a millisecond", time.Second, 1100*time.Millisecond + 9, 1100 * time.Millisecond},
		{"never goes back", 0, -time.Hour, 0},
		{"goes on slowly after a clock that was set back", time.Second, -time.Hour, 500 * time.Millisecond},
		{"goes on slowly until the wall has caught up", time.Second, 400 * time.Millisecond, 500 * time.Millisecond},
		{"follows a wall that is a little behind", time.Second, 900 * time.Millisecond, 900 * time.Millisecond},
		{"a clock that jumps ahead", time.Second, time.Hour, 1500 * time.Millisecond},
		{"elapsed time that runs backwards", -time.Second, time.Hour, MaxStep},
	} {
		if got := NextStamp(last, tt.elapsed, last.Add(tt.wall)).Sub(last); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if got := NextStamp(time.Time{}, 0, last); got != last {
		t.Errorf("first stamp = %v, want the wall", got)
	}
}

func TestDigestsAreKeptAtFixedIndexes(t *testing.T) {
	a, b := newLedger(t), newLedger(t)
	log := make([]LogEntry, DigestEvery*(digestsKept+2))
	for i := range log {
		log[i] = LogEntry{Index: uint64(i + 1)}
	}
	w := newWorld(t)
	w.found()
	copy(log, w.log)
	a.ApplyBatch(log)
	for i := range log {
		b.ApplyBatch(log[i : i+1])
	}
	for _, tt := range []struct {
		index uint64
		want  bool
	}{{DigestEvery, false}, {2 * DigestEvery, false}, {3 * DigestEvery, true}, {DigestEvery * (digestsKept + 2), true},
		{DigestEvery * 1000, false}} {
		da, ok, err := a.DigestAt(tt.index)
		db, ok2, err2 := b.DigestAt(tt.index)
		if err != nil || err2 != nil || ok != tt.want || ok2 != tt.want || da != db {
			t.Errorf("digest at %d: %x %v %v, %x %v %v", tt.index, da, ok, err, db, ok2, err2)
		}
	}
}

// What is shown of one entity is what the whole entry says of it, with the same IDs:
// also where the entry is long, and where it is the newest.
func TestActivitiesOfLongEntriesAreWhatTheEntriesSay(t *testing.T) {
	l, w := newLedger(t, func(c *Config) {
		c.Mux["note.many"] = func(c *Context) ([]byte, error) {
			for n := range 50 {
				c.Record(Change{Action: "note.opened", EntityType: "note", EntityID: fmt.Sprint("e", n%10),
					Details: fmt.Appendf(nil, `{"n":%d,"text":%q}`, n, strings.Repeat("x", 40))})
			}
			return nil, nil
		}
	}), newWorld(t)
	k := w.found()
	w.apply(l)
	const company = "11111111-1111-4111-8111-111111111111"
	w.add(k, session(t, l, k), 1, 1, w.note("note.many", "", ""), w.note("note.many", "", ""),
		w.note("note.put", "e3", ""), w.note("note.many", "", ""))
	wantOK(t, w.apply(l))
	view(t, l, func(tx *Tx) {
		var want []Activity
		for height := tx.Position().Height; height > 0; height-- {
			e, _ := EntryAt(tx, height)
			for _, a := range slices.Backward(ActivityOf(e)) {
				if a.Company == company && a.EntityType == "note" && a.EntityID == "e3" {
					want = append(want, a)
				}
			}
		}
		got := Activities(tx, company, ActivityFilter{EntityType: "note", EntityID: "e3"})
		if len(want) != 16 || !reflect.DeepEqual(got, want) {
			t.Errorf("%d activities, want these %d: %+v", len(got), len(want), want)
		}
	})
}
