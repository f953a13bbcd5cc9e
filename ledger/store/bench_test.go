package store

import (
	"encoding/binary"
	"testing"
)

func BenchmarkCommit(b *testing.B) {
	for name, sync := range map[string]bool{"synced": true, "unsynced": false} {
		b.Run(name, func(b *testing.B) {
			s, err := Open(b.TempDir(), Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			sp, value, n := s.Span('r'), make([]byte, 256), uint64(0)
			for b.Loop() {
				n++
				batch := sp.NewBatch()
				batch.Set(binary.BigEndian.AppendUint64(nil, n), value)
				if err := sp.Commit(batch, sync); err != nil {
					b.Fatal(err)
				}
				batch.Close()
			}
		})
	}
}
