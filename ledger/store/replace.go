package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Replace puts what fill gives in place of the whole content of the span, in
// one atomic step: after a crash at any moment the span holds all of the old
// or all of the new content, and other spans are untouched. fill calls put
// with keys in ascending order; they go to table files beside the database, so
// memory stays small. When fill returns an error nothing was changed. The new
// content is durable when Replace returns.
//
// No iteration or snapshot of the span may be open; the caller keeps readers
// out. Commits to other spans go on meanwhile.
func (sp *Span) Replace(fill func(put func(key, value []byte) error) error) error {
	s := sp.s
	if s.closed.Load() {
		return ErrClosed
	}
	if err := s.space.writable(); err != nil {
		return err
	}
	if err := s.clearStaging(); err != nil {
		return fmt.Errorf("clear staging: %w", err)
	}
	if err := s.fs.MkdirAll(s.staging(), 0o700); err != nil {
		return fmt.Errorf("make staging: %w", err)
	}
	w := tableWriter{s: s, prefix: sp.prefix}
	err := fill(w.put)
	if err = errors.Join(err, w.finish(), w.wait()); err != nil {
		return errors.Join(err, s.clearStaging())
	}
	span := pebble.KeyRange{Start: []byte{sp.prefix}, End: []byte{sp.prefix + 1}}
	if _, err := db(s).IngestAndExcise(context.Background(), w.paths, nil, nil, span); err != nil {
		return fmt.Errorf("replace span: %w", err)
	}
	// The step may so far be only in the write-ahead log, unsynced.
	if err := db(s).LogData(nil, pebble.Sync); err != nil {
		return fmt.Errorf("sync replaced span: %w", err)
	}
	return s.clearStaging()
}

func (s *Store) staging() string { return s.fs.PathJoin(s.dir, "staging") }

// clearStaging removes tables that an interrupted Replace left.
func (s *Store) clearStaging() error { return s.fs.RemoveAll(s.staging()) }

// tableWriter writes ascending keys to table files of at most about tableBytes.
type tableWriter struct {
	s      *Store
	prefix byte
	paths  []string
	w      *sstable.Writer
	key    []byte // the last key put, with its prefix
	next   []byte // memory for the one after
	size   int
	synced chan error // of the table before, which is made durable meanwhile
}

func (t *tableWriter) put(key, value []byte) error {
	k := append(append(t.next[:0], t.prefix), key...)
	if t.key != nil && bytes.Compare(k, t.key) <= 0 {
		return fmt.Errorf("replace span: key %q is not above the one before", key)
	}
	t.key, t.next = k, t.key
	if t.w != nil && t.size >= tableBytes {
		if err := t.finish(); err != nil {
			return err
		}
	}
	if t.w == nil {
		if err := t.begin(); err != nil {
			return err
		}
	}
	t.size += len(k) + len(value)
	return t.w.Set(k, value)
}

func (t *tableWriter) begin() error {
	if err := t.s.space.writable(); err != nil {
		return err
	}
	path := t.s.fs.PathJoin(t.s.staging(), fmt.Sprintf("%06d.sst", len(t.paths)))
	f, err := t.s.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("create table: %w", err)
	}
	o := pebbleOptions(t.s)
	o.EnsureDefaults()
	t.w = sstable.NewWriter(objstorageprovider.NewFileWritable(f), o.MakeWriterOptions(0, db(t.s).TableFormat()))
	t.paths = append(t.paths, path)
	t.size = 0
	return nil
}

// finish ends the present table. It is durable once wait has returned.
func (t *tableWriter) finish() error {
	if t.w == nil {
		return nil
	}
	w := t.w
	t.w = nil
	t.s.space.admit(t.size, false) //nolint:errcheck // unsynced is never refused
	if err := t.wait(); err != nil {
		return errors.Join(err, w.Close())
	}
	synced := make(chan error, 1)
	t.synced = synced
	go func() { synced <- w.Close() }()
	return nil
}

// wait returns when every table that was finished is durable.
func (t *tableWriter) wait() error {
	if t.synced == nil {
		return nil
	}
	err := <-t.synced
	t.synced = nil
	if err != nil {
		return fmt.Errorf("finish table: %w", err)
	}
	return nil
}
