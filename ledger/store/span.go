package store

import (
	"errors"
	"iter"

	"github.com/cockroachdb/pebble/v2"
)

// A Span is the part of a store under one prefix byte. Keys given and yielded
// are relative to it; at most a few hundred bytes, never empty by convention.
type Span struct {
	s      *Store
	prefix byte
}

// Span returns the span under prefix, which must be below 0xff.
func (s *Store) Span(prefix byte) *Span {
	if prefix == 0xff {
		panic("store: no span after 0xff")
	}
	return &Span{s: s, prefix: prefix}
}

// Store returns the store of the span.
func (sp *Span) Store() *Store { return sp.s }

// Get returns a copy of the value of key, or [ErrNotFound].
func (sp *Span) Get(key []byte) ([]byte, error) {
	if sp.s.closed.Load() {
		return nil, ErrClosed
	}
	v, err := get(db(sp.s), sp.prefix, key)
	return v, sp.s.damaged(err)
}

// Scan yields keys in [from, to) in order, backwards when reverse is set; a nil
// to is the end of the span. Yielded slices are valid until the next step. It
// sees the span as it is when the iteration begins. It panics with [Failure]
// when the disk fails.
func (sp *Span) Scan(from, to []byte, reverse bool) iter.Seq2[[]byte, []byte] {
	if sp.s.closed.Load() {
		panic(Failure{ErrClosed})
	}
	return scan(sp.s, db(sp.s), sp.prefix, from, to, reverse)
}

// Snapshot returns the span as it is now, in microseconds. It must be closed.
func (sp *Span) Snapshot() *Snapshot {
	if sp.s.closed.Load() {
		panic(Failure{ErrClosed})
	}
	return &Snapshot{s: sp.s, snap: db(sp.s).NewSnapshot(), prefix: sp.prefix}
}

// DiskBytes estimates the space that the span's tables take.
func (sp *Span) DiskBytes() (uint64, error) {
	if sp.s.closed.Load() {
		return 0, ErrClosed
	}
	return db(sp.s).EstimateDiskUsage([]byte{sp.prefix}, []byte{sp.prefix + 1})
}

// RangeBytes estimates the space that the tables of [from, to) take.
func (sp *Span) RangeBytes(from, to []byte) (uint64, error) {
	if sp.s.closed.Load() {
		return 0, ErrClosed
	}
	return db(sp.s).EstimateDiskUsage(append([]byte{sp.prefix}, from...), append([]byte{sp.prefix}, to...))
}

// A Snapshot is a span at one moment. Reads may go on while the span changes,
// but not while [Span.Replace] runs: it takes away what lies below.
type Snapshot struct {
	s      *Store
	snap   any // *pebble.Snapshot; nil once closed
	prefix byte
}

// Get returns a copy of the value of key, or [ErrNotFound].
func (sn *Snapshot) Get(key []byte) ([]byte, error) {
	v, err := get(sn.snap.(*pebble.Snapshot), sn.prefix, key)
	return v, sn.s.damaged(err)
}

// Scan is [Span.Scan] at the moment of the snapshot.
func (sn *Snapshot) Scan(from, to []byte, reverse bool) iter.Seq2[[]byte, []byte] {
	return scan(sn.s, sn.snap.(*pebble.Snapshot), sn.prefix, from, to, reverse)
}

// Close releases the snapshot. A second call does nothing.
func (sn *Snapshot) Close() error {
	if sn.snap == nil {
		return nil
	}
	err := sn.snap.(*pebble.Snapshot).Close()
	sn.snap = nil
	return err
}

func get(r pebble.Reader, prefix byte, key []byte) ([]byte, error) {
	k := make([]byte, 0, 96)
	k = append(append(k, prefix), key...)
	v, closer, err := r.Get(k)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	out := make([]byte, len(v))
	copy(out, v)
	return out, closer.Close()
}

func scan(s *Store, r pebble.Reader, prefix byte, from, to []byte, reverse bool) iter.Seq2[[]byte, []byte] {
	lower := append([]byte{prefix}, from...)
	upper := []byte{prefix + 1}
	if to != nil {
		upper = append([]byte{prefix}, to...)
	}
	return func(yield func([]byte, []byte) bool) {
		it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
		if err != nil {
			panic(Failure{s.damaged(err)})
		}
		defer it.Close()
		first, next := it.First, it.Next
		if reverse {
			first, next = it.Last, it.Prev
		}
		for ok := first(); ok; ok = next() {
			v, err := it.ValueAndErr()
			if err != nil {
				panic(Failure{s.damaged(err)})
			}
			if !yield(it.Key()[1:], v) {
				return
			}
		}
		if err := it.Error(); err != nil {
			panic(Failure{s.damaged(err)})
		}
	}
}

// A Batch is a set of writes to one span that are committed together. It is
// used by one goroutine and must be closed, also after Commit.
type Batch struct {
	b      any // *pebble.Batch; nil once closed
	prefix byte
}

func batch(b *Batch) *pebble.Batch { return b.b.(*pebble.Batch) }

// NewBatch returns an empty batch.
func (sp *Span) NewBatch() *Batch { return &Batch{b: db(sp.s).NewBatch(), prefix: sp.prefix} }

// Set writes a value; key and value are copied.
func (b *Batch) Set(key, value []byte) {
	op := batch(b).SetDeferred(len(key)+1, len(value))
	op.Key[0] = b.prefix
	copy(op.Key[1:], key)
	copy(op.Value, value)
	finish(op)
}

// SetString is Set for a key that is a string.
func (b *Batch) SetString(key string, value []byte) {
	op := batch(b).SetDeferred(len(key)+1, len(value))
	op.Key[0] = b.prefix
	copy(op.Key[1:], key)
	copy(op.Value, value)
	finish(op)
}

// Delete removes key; an absent key is no error.
func (b *Batch) Delete(key []byte) {
	op := batch(b).DeleteDeferred(len(key) + 1)
	op.Key[0] = b.prefix
	copy(op.Key[1:], key)
	finish(op)
}

// DeleteString is Delete for a key that is a string.
func (b *Batch) DeleteString(key string) {
	op := batch(b).DeleteDeferred(len(key) + 1)
	op.Key[0] = b.prefix
	copy(op.Key[1:], key)
	finish(op)
}

// DeleteRange removes the keys in [from, to). Go on from the last low mark
// instead of from the beginning: overlapping range deletions cost memory.
func (b *Batch) DeleteRange(from, to []byte) {
	op := batch(b).DeleteRangeDeferred(len(from)+1, len(to)+1)
	op.Key[0], op.Value[0] = b.prefix, b.prefix
	copy(op.Key[1:], from)
	copy(op.Value[1:], to)
	finish(op)
}

func finish(op *pebble.DeferredBatchOp) {
	if err := op.Finish(); err != nil { // only an indexed batch can fail here
		panic(err)
	}
}

// Len returns the size of the batch in bytes.
func (b *Batch) Len() int { return batch(b).Len() }

// Count returns how many writes the batch holds.
func (b *Batch) Count() int { return int(batch(b).Count()) }

// Close releases the batch. A second call does nothing.
func (b *Batch) Close() {
	if b.b != nil {
		_ = batch(b).Close() // gives memory back; it has nothing to report
		b.b = nil
	}
}

// Commit writes the batch as one step. With sync it returns when the batch and
// everything committed before it, in any span, is on the disk. An unsynced
// commit is never refused for lack of space, since it can not wait; a synced
// one returns an error that wraps [ErrDiskFull] when the reserve is used up and
// then has written nothing. An error of the disk itself does not return: see
// [Options.OnFatal].
func (sp *Span) Commit(b *Batch, sync bool) error { return sp.commit(b, sync, Head{}) }

// Append is a synced Commit after which the raft log ends at head.
func (sp *Span) Append(b *Batch, head Head) error { return sp.commit(b, true, head) }

func (sp *Span) commit(b *Batch, sync bool, head Head) error {
	if sp.s.closed.Load() {
		return ErrClosed
	}
	if err := sp.s.space.admit(b.Len(), sync); err != nil {
		return err
	}
	bytes := b.Len()
	if !sync {
		if err := batch(b).Commit(pebble.NoSync); err != nil {
			return err
		}
		return sp.s.fill(bytes)
	}
	if err := batch(b).Commit(pebble.Sync); err != nil {
		return err
	}
	sp.s.mark.put(head)
	return sp.s.fill(bytes)
}
