package ledger

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// Views that run beside apply read through the shared cache what their snapshot
// has, rows as well as index scans, before and after the state is replaced.
func TestViewsReadTheirMomentThroughTheCache(t *testing.T) {
	const company = "11111111-1111-4111-8111-111111111111"
	l, w := newLedger(t), newWorld(t)
	k := w.found()
	wantOK(t, w.apply(l))
	s, seq := session(t, l, k), uint64(1)
	var wg sync.WaitGroup
	done := make(chan struct{})
	looks := make([]int, 4)
	for n := range looks {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			for {
				select {
				case <-done:
					return
				default:
				}
				err := l.View(func(tx *Tx) error {
					for range 20 {
						key := notes.Key(company, fmt.Sprint("n", r.IntN(8)))
						want, _ := found(tx.view.Snapshot.Get(key))
						if got, ok := tx.Get(key); ok != (want != nil) || !bytes.Equal(got, want) {
							t.Errorf("the row of %s is %q, want %q", key, got, want)
						}
						row, ok := notes.Get(tx, company, string(key[bytes.LastIndexByte(key, '/')+1:]))
						if ok != (want != nil) || ok && !bytes.Equal(Marshal(row), want) {
							t.Errorf("%s decodes to %v, want %x", key, row, want)
						}
						rows := map[string]note{}
						for id, row := range notes.All(tx, company) {
							rows[id] = row
						}
						n := 0
						for k, v := range tx.view.Snapshot.Scan(Key("c", company, "note", ""), Key("c", company, "note0"), false) {
							if row, ok := rows[string(k[bytes.LastIndexByte(k, '/')+1:])]; !ok || !bytes.Equal(Marshal(row), v) {
								t.Errorf("%s is listed as %v, want %x", k, row, v)
							}
							n++
						}
						if n != len(rows) {
							t.Errorf("%d notes are listed, want %d", len(rows), n)
						}
						value := Order(uint64(r.IntN(3)))
						prefix := Key("c", company, "note-len", value, "")
						var ids []string
						for k := range tx.view.Snapshot.Scan(prefix, PrefixEnd(prefix), false) {
							ids = append(ids, string(k[len(prefix):]))
						}
						if got := slices.Collect(notesByLen.IDs(tx, company, value, false)); !slices.Equal(got, ids) {
							t.Errorf("notes of length %s are %v, want %v", value, got, ids)
						}
						slices.Reverse(ids)
						if got := slices.Collect(notesByLen.IDs(tx, company, value, true)); !slices.Equal(got, ids) {
							t.Errorf("notes of length %s, backwards, are %v, want %v", value, got, ids)
						}
					}
					looks[n]++
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				l.Trim()
			}
		}
	})
	r := rand.New(rand.NewPCG(7, 7))
	var early bytes.Buffer
	for step := range 150 {
		w.log = w.log[:0]
		for range 1 + r.IntN(3) {
			cmds := make([]Command, 1+r.IntN(4))
			for i := range cmds {
				cmds[i] = w.note("note.put", fmt.Sprint("n", r.IntN(8)), "xx"[:r.IntN(3)])
			}
			w.add(k, s, seq, seq, cmds...)
			seq += uint64(len(cmds))
		}
		w.apply(l)
		if step == 60 {
			snap, err := l.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := snap.WriteTo(&early); err != nil {
				t.Fatal(err)
			}
			snap.Close()
		}
	}
	if err := l.Restore(&early); err != nil {
		t.Fatal(err)
	}
	if err := l.View(func(tx *Tx) error {
		for i := range 8 {
			key := notes.Key(company, fmt.Sprint("n", i))
			want, _ := found(tx.view.Snapshot.Get(key))
			if got, _ := tx.Get(key); !bytes.Equal(got, want) {
				t.Errorf("after the state was replaced the row of %s is %q, want %q", key, got, want)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	close(done)
	wg.Wait()
	for n, looked := range looks {
		if looked == 0 {
			t.Errorf("reader %d read nothing", n)
		}
	}
}
