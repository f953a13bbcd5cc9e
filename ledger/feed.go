package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/selvage-mesh/selvage/ledger/store"
)

// Entries yields the entries above height after, in order, and waits for new
// ones. It ends without an error when ctx ends, and with one when the ledger is
// closed or an entry can not be read. It is a pull feed: a slow reader holds
// nobody up, and resumes anywhere by height.
func (l *Ledger) Entries(ctx context.Context, after uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		page := func() (out []Entry, err error) {
			if out, ok := l.recentAfter(after); ok {
				return out, nil
			}
			for k, v := range l.span.Scan(entryKey(after+1), []byte("!f"), false) {
				e, err := DecodeEntry(v)
				if err != nil {
					return out, fmt.Errorf("entry %x: %w", k, err)
				}
				if out = append(out, e); len(out) == feedPage {
					break
				}
			}
			return out, nil
		}
		pages(ctx, l, page, func(e Entry, err error) bool {
			after = e.Height
			return yield(e, err)
		})
	}
}

// recentAfter returns the entries above a height, at most a page of them, when
// all of them are in memory. The caller must not change what they refer to.
func (l *Ledger) recentAfter(after uint64) ([]Entry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if after >= l.pos.Height {
		return nil, true
	}
	missing := l.pos.Height - after
	if missing > uint64(len(l.recent)) {
		return nil, false
	}
	out := l.recent[uint64(len(l.recent))-missing:]
	return slices.Clone(out[:min(len(out), feedPage)]), true
}

// A CommittedBatch is a batch with its place in the raft log. Data are the
// bytes that were committed; payloads that were erased are empty.
type CommittedBatch struct {
	Index, Term uint64
	Data        []byte
}

// Batches yields the committed batches from raft index from on, and waits for
// new ones, as [Ledger.Entries] does.
func (l *Ledger) Batches(ctx context.Context, from uint64) iter.Seq2[CommittedBatch, error] {
	return func(yield func(CommittedBatch, error) bool) {
		page := func() (out []CommittedBatch, err error) {
			for _, v := range l.span.Scan(batchKey(from), []byte("!c"), false) {
				r, err := decodeRecord(v)
				if err == nil {
					err = fillBodies(spanReader{l.span}, &r)
				}
				if err != nil {
					return out, fmt.Errorf("batch from %d: %w", from, err)
				}
				if out = append(out, CommittedBatch{r.index, r.term, r.batch.Encode()}); len(out) == feedPage/8 {
					break
				}
			}
			return out, nil
		}
		pages(ctx, l, page, func(b CommittedBatch, err error) bool {
			from = b.Index + 1
			return yield(b, err)
		})
	}
}

// fillBodies reads the bodies of a record's batch, as far as they were not erased.
func fillBodies(r Reader, rec *record) error {
	seen := map[CompanyID]bool{}
	for i := range rec.batch.Commands {
		company := rec.batch.Commands[i].Company
		if seen[company] {
			continue
		}
		seen[company] = true
		if v, ok := r.Get(payloadKey(company, rec.index)); ok {
			if err := readBodies(v, rec.batch, company); err != nil {
				return err
			}
		}
	}
	return nil
}

type spanReader struct{ span *store.Span }

func (r spanReader) Get(key []byte) ([]byte, bool) { return found(r.span.Get(key)) }
func (r spanReader) Scan(from, to []byte, reverse bool) iter.Seq2[[]byte, []byte] {
	return r.span.Scan(from, to, reverse)
}

// pages yields page after page, and waits when there is nothing new.
func pages[T any](ctx context.Context, l *Ledger, page func() ([]T, error), yield func(T, error) bool) {
	var none T
	for ctx.Err() == nil {
		l.mu.Lock()
		changed, closed := l.changed, l.closed
		l.mu.Unlock()
		if closed {
			yield(none, ErrClosed)
			return
		}
		out, err := guardedPage(l, page)
		for _, item := range out {
			if !yield(item, nil) {
				return
			}
		}
		if err != nil {
			yield(none, err)
			return
		}
		if len(out) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// guardedPage reads one page while Restore is kept out.
func guardedPage[T any](l *Ledger, page func() ([]T, error)) (out []T, err error) {
	l.readers.RLock()
	defer l.readers.RUnlock()
	if _, err := l.appliedOrClosed(); err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			failure, ok := r.(StorageError)
			if !ok {
				panic(r)
			}
			out, err = nil, failure
		}
	}()
	return page()
}

// EntryAt returns the entry at a height. tx is a view.
func EntryAt(tx *Tx, height uint64) (Entry, bool) {
	b, ok := tx.Get(entryKey(height))
	if !ok {
		return Entry{}, false
	}
	e, err := DecodeEntry(b)
	if err != nil {
		panic(StorageError{Err: err})
	}
	return e, true
}

// Entry returns the entry at a height, or [store.ErrNotFound].
func (l *Ledger) Entry(height uint64) (e Entry, err error) {
	err = l.View(func(tx *Tx) error {
		var ok bool
		if e, ok = EntryAt(tx, height); !ok {
			return store.ErrNotFound
		}
		return nil
	})
	if errors.Is(err, store.ErrNotFound) {
		return Entry{}, fmt.Errorf("entry %d: %w", height, err)
	}
	return e, err
}
