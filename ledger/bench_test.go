package ledger

import (
	"fmt"
	"testing"

	"github.com/selvage-mesh/selvage/ledger/store"
)

// BenchmarkApply measures one simple command (read a row, write it and an
// index, record a change), in batches as a busy proposer fills them.
func BenchmarkApply(b *testing.B) {
	for _, size := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			s, err := store.Open(b.TempDir(), store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			l, w := openLedger(b, s), newWorld(b)
			k := w.found()
			w.apply(l)
			id, seq, n := session(b, l, k), uint64(1), 0
			write := func() { // batches of 8,192 commands or so, ahead of the clock
				w.log = w.log[:0]
				for range max(1, 8192/size) {
					cmds := make([]Command, size)
					for i := range cmds {
						n++
						cmds[i] = w.note("note.put", fmt.Sprintf("note-%05d", n%20000), fmt.Sprintf("some text of note %d", n))
					}
					w.add(k, id, seq, seq, cmds...)
					seq += uint64(size)
				}
			}
			write()
			at, left := 0, 0
			b.ReportAllocs()
			for b.Loop() {
				if left > 0 {
					left--
					continue
				}
				if at == len(w.log) {
					b.StopTimer()
					write()
					at = 0
					b.StartTimer()
				}
				l.ApplyBatch(w.log[at : at+1])
				at, left = at+1, size-1
			}
		})
	}
}
