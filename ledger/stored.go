package ledger

import (
	"encoding/binary"
	"sort"

	"github.com/selvage-mesh/selvage/identity"
)

// A StoredRecord is a link of the chain as it is stored, for who checks it without
// trust in this node: the record of a batch, see [Ledger.Verify], without what its
// commands said, and the entries of its commands.
type StoredRecord struct {
	Index   uint64
	Origin  identity.NodeID // whose signature the batch has
	Record  []byte
	Entries [][]byte
}

// RecordsAfter returns the records of the batches after a raft index, in order: at
// most limit, and none after maxBytes are reached.
func RecordsAfter(tx *Tx, after uint64, limit, maxBytes int) (out []StoredRecord) {
	height, size := firstHeightAfter(tx, after), 0
	for _, raw := range tx.Scan(batchKey(after+1), []byte("!c"), false) {
		if len(out) == limit || size >= maxBytes {
			return out
		}
		rec, err := decodeRecord(raw)
		if err != nil {
			panic(StorageError{Err: err})
		}
		r := StoredRecord{Index: rec.index, Origin: rec.batch.Origin, Record: append([]byte(nil), raw...)}
		for {
			entry, ok := tx.Get(entryKey(height))
			if !ok || entryIndex(entry) > rec.index {
				break
			}
			r.Entries = append(r.Entries, append([]byte(nil), entry...))
			size += len(entry)
			height++
		}
		size += len(raw)
		out = append(out, r)
	}
	return out
}

// firstHeightAfter returns the lowest height of an entry of a batch after a raft index,
// one above the head when there is none.
func firstHeightAfter(tx *Tx, after uint64) uint64 {
	head := tx.Position().Height
	return 1 + uint64(sort.Search(int(head), func(i int) bool {
		b, ok := tx.Get(entryKey(uint64(i) + 1))
		return !ok || entryIndex(b) > after
	}))
}

// entryIndex returns the raft index that an entry's bytes name.
func entryIndex(b []byte) uint64 {
	const at = 1 + 8 + 8 + 32 // version, height, time, hash of the entry before
	if len(b) < at+8 {
		return 0
	}
	return binary.BigEndian.Uint64(b[at:])
}
