package ledger

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/identity"
)

// randomLog writes a log as a busy and unlucky mesh would: two nodes, repeated
// and reordered batches, refusals of every sort, sessions that end.
func randomLog(t testing.TB, r *rand.Rand, batches int) []LogEntry {
	t.Helper()
	w := newWorld(t)
	ks := []*identity.Keys{w.found(), keysOf(2)}
	// heights follow from what the log does, so sessions are looked up in a
	// ledger of its own that keeps up
	l := newLedger(t)
	var log []LogEntry
	flush := func() {
		log = append(log, w.log...)
		l.ApplyBatch(w.log)
		w.log = nil
	}
	flush()
	ids := make([]uint64, len(ks))
	seqs, marks := []uint64{1, 1}, []uint64{1, 1}
	ids[0] = session(t, l, ks[0])
	w.add(ks[0], ids[0], 1, 1, w.user(KindNodeAdmit, NodeAdmit{Node: newNode(ks[1], "two")}))
	seqs[0]++
	w.open(ks[1], "first")
	flush()
	ids[1] = session(t, l, ks[1])

	kinds := []string{"note.put", "note.put", "note.put", "note.put", "note.refuse", "note.deny", "note.panic",
		"note.fail",
		"note.count", "note.delete", "note.erase", "note.defer", "note.wipe"}
	var sent [][]byte
	for i := range batches {
		switch n := i % len(ks); r.IntN(14) {
		case 0:
			w.addNoop()
		case 1:
			w.addRaw([]byte("garbage"))
		case 2, 3:
			if len(sent) > 0 {
				w.addRaw(bytes.Clone(sent[len(sent)-1-r.IntN(min(6, len(sent)))]))
			}
		case 4:
			if r.IntN(4) == 0 {
				w.open(ks[n], fmt.Sprintf("again-%d", i))
				flush()
				ids[n], seqs[n], marks[n] = session(t, l, ks[n]), 1, 1
				break
			}
			w.add(ks[n], ids[n], seqs[n], marks[n],
				w.user(KindTimeStep, TimeStep{To: w.now.Add(time.Duration(r.IntN(1000)) * time.Millisecond).UnixMilli()}))
			seqs[n]++
		default:
			cmds := make([]Command, 1+r.IntN(6))
			for j := range cmds {
				kind, of := kinds[r.IntN(len(kinds))], r.IntN(9)
				id := fmt.Sprint("n", of)
				if (i+j)%3 == 0 { // an ID that rises with time, more or less
					id = fmt.Sprintf("%08x-0000-7000-8000-000000000000", i/8+of)
				}
				c := w.note(kind, id, "text"[:r.IntN(5)])
				if r.IntN(5) == 0 {
					c.Company = "22222222-2222-4222-8222-222222222222"
				}
				if r.IntN(3) == 0 {
					c.IdempotencyKey = fmt.Sprint("key-", r.IntN(6))
					c.RequestDigest = sha256.Sum256([]byte{byte(r.IntN(2))})
				}
				cmds[j] = c
			}
			if r.IntN(20) == 0 {
				w.now = w.now.Add(20 * time.Hour)
			}
			first := seqs[n]
			if first > marks[n] && r.IntN(6) == 0 {
				first -= 1 // a sequence that was sent before
			}
			sent = append(sent, w.add(ks[n], ids[n], first, marks[n], cmds...))
			seqs[n] = max(seqs[n], first+uint64(len(cmds)))
			if r.IntN(2) == 0 {
				marks[n] += uint64(r.IntN(int(seqs[n]-marks[n]) + 1))
			}
		}
	}
	flush()
	if err := l.Err(); err != nil {
		t.Fatal(err)
	}
	return log
}

// applyIn applies log in groups whose sizes next gives.
func applyIn(l *Ledger, log []LogEntry, next func() int) (results [][]byte) {
	for len(log) > 0 {
		n := min(next(), len(log))
		results = append(results, l.ApplyBatch(log[:n])...)
		log = log[n:]
	}
	return results
}

func TestAnyGroupingGivesTheSameBytes(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() { // under the race detector a group costs ten times the work
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 0))
			log := randomLog(t, r, 150)
			one := newLedger(t)
			results := applyIn(one, log, func() int { return 1 })
			want, entries := dump(one), one.Stats().Entries
			if entries < 50 {
				t.Fatalf("a poor log: %d entries", entries)
			}
			if v, err := one.Verify(t.Context(), nil); err != nil || v.Entries != entries {
				t.Errorf("Verify = %+v, %v", v, err)
			}
			ledgers := map[string]*Ledger{
				"one group":   newLedger(t),
				"tiny cache":  newLedger(t, func(c *Config) { c.RowCacheBytes, c.DecodedBytes = 1, 1 }),
				"trimmed":     newLedger(t),
				"random":      newLedger(t),
				"reading far": newLedger(t, func(c *Config) { c.Prefetch = prefetchNotes }),
			}
			trimmed := ledgers["trimmed"]
			sizes := map[string]func() int{
				"one group":   func() int { return len(log) },
				"tiny cache":  func() int { return 1 + r.IntN(20) },
				"random":      func() int { return 1 + r.IntN(20) },
				"trimmed":     func() int { trimmed.Trim(); return 1 + r.IntN(5) },
				"reading far": func() int { return 40 },
			}
			for _, name := range slices.Sorted(maps.Keys(ledgers)) {
				l := ledgers[name]
				got := applyIn(l, log, sizes[name])
				for i := range results {
					if !bytes.Equal(got[i], results[i]) {
						t.Fatalf("%s: result %d differs", name, i)
					}
				}
				if l.Position() != one.Position() {
					t.Errorf("%s: position %+v, want %+v", name, l.Position(), one.Position())
				}
				wantSameState(t, dump(l), want)
			}
			trimmed.Trim()
			n := uint64(0)
			for e, err := range trimmed.Entries(t.Context(), 0) {
				if n++; err != nil || e.Height != n {
					t.Fatalf("entry %d of the feed after a trim is %d, %v", n, e.Height, err)
				}
				if n == entries {
					break
				}
			}
		})
	}
}

// prefetchNotes names the row of a note, and more than one command needs.
func prefetchNotes(c *Command, want func([]byte)) {
	var p notePut
	if Unmarshal(c.Payload, &p) == nil {
		for i := range 9 {
			want(notes.Key(c.Company, fmt.Sprint("n", i)))
		}
		want(notes.Key(c.Company, p.ID))
	}
}

func TestReplayFromAnyPointConverges(t *testing.T) {
	if testing.Short() { // nothing happens at once here
		t.Skip("one entry after another races with nothing")
	}
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 7))
		log := randomLog(t, r, 200)
		want := newLedger(t)
		applyIn(want, log, func() int { return 1 })
		l := newLedger(t)
		for at := 0; at < len(log); {
			end := min(len(log), at+1+r.IntN(10))
			l.ApplyBatch(log[max(0, at-r.IntN(15)):end]) // some of it again
			at = end
			l.apply.init(l, l.Position()) // as if reopened
		}
		if wantSameState(t, dump(l), dump(want)); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestScanMergesLikeASortedMap lays writes over writes over a base and
// compares every scan with a plain sorted map.
func TestScanMergesLikeASortedMap(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		l := newLedger(t)
		model := map[string]string{}
		key := func() string { return fmt.Sprintf("c/x/%c/%c", 'a'+rune(r.IntN(3)), 'a'+rune(r.IntN(6))) }
		b := l.span.NewBatch()
		for range r.IntN(12) {
			k := key()
			model[k] = "base"
			b.Set([]byte(k), []byte("base"))
		}
		if err := l.span.Commit(b, false); err != nil {
			t.Fatal(err)
		}
		b.Close()
		tx := NewTx(spanReader{l.span})
		txs := []*Tx{tx, tx.Child()}
		txs = append(txs, txs[1].Child())
		for level, tx := range txs {
			n := r.IntN(8)
			if level == 0 && seed%3 == 0 {
				n = 3 * indexFrom // so many that the overlay keeps them in order
			}
			for i := range n {
				k := key()
				if r.IntN(3) == 0 {
					tx.Delete([]byte(k))
					delete(model, k)
				} else {
					v := fmt.Sprint(level, i)
					tx.Set([]byte(k), []byte(v))
					model[k] = v
				}
				if i%5 == 0 {
					wantScan(t, r, tx, model)
				}
			}
		}
		top := txs[2]
		for range 10 {
			wantScan(t, r, top, model)
		}
		top.Merge()
		wantScan(t, r, txs[1], model)
		txs[1].Merge()
		wantScan(t, r, txs[0], model)
	}
}

func wantScan(t *testing.T, r *rand.Rand, tx *Tx, model map[string]string) {
	t.Helper()
	bound := func() string { return fmt.Sprintf("c/x/%c/%c", 'a'+rune(r.IntN(3)), 'a'+rune(r.IntN(7))) }
	from, to, reverse := bound(), bound(), r.IntN(2) == 0
	switch r.IntN(5) {
	case 0:
		from, to = "c/x/a/", "c/x/a0"
	case 1:
		from, to = "c/", "c0"
	case 2:
		to = "" // the end
	}
	var want, got []string
	for _, k := range slices.Sorted(maps.Keys(model)) {
		if k >= from && (to == "" || k < to) {
			want = append(want, k+"="+model[k])
		}
	}
	if reverse {
		slices.Reverse(want)
	}
	end := []byte(to)
	if to == "" {
		end = nil
	}
	for k, v := range tx.Scan([]byte(from), end, reverse) {
		got = append(got, fmt.Sprintf("%s=%s", k, v))
		tx.Set([]byte("z/"+string(k)), nil) // writing while scanning is not seen
	}
	for k := range tx.writes {
		if k[0] == 'z' {
			tx.Delete([]byte(k))
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("Scan(%q, %q, %v) = %v, want %v", from, to, reverse, got, want)
	}
}

// TestPlantedBugsAreSeen: what the other tests compare does change when
// deduplication is off, or the state runs ahead of the log.
func TestPlantedBugsAreSeen(t *testing.T) {
	log := randomLog(t, rand.New(rand.NewPCG(2, 2)), 150)
	want := newLedger(t)
	want.ApplyBatch(log)
	twice := newLedger(t, func(c *Config) { c.Faults.NoDeduplication = true })
	twice.ApplyBatch(log)
	if _, err := twice.Verify(t.Context(), nil); err == nil || twice.Position().Head == want.Position().Head {
		t.Errorf("without deduplication: Verify = %v", err)
	}
	noticed := 0
	for at := 50; at < 60; at++ {
		ahead := newLedger(t, func(c *Config) { c.Faults.StateAheadOfLog = true })
		ahead.ApplyBatch(log[:at])
		again := openLedger(t, ahead.span.Store())
		again.ApplyBatch(log)
		if again.Position().Head != want.Position().Head {
			noticed++
		}
	}
	if noticed < 3 { // not every entry changes the chain
		t.Errorf("a skipped entry was noticed %d times of 10", noticed)
	}
}
