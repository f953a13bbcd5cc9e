package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/selvage-mesh/selvage/ledger/store"
)

// Keys of raft's span. Persisted: do not change.
//
//	'L' index (8 bytes, big endian)  an entry, see encodeEntry
//	'M'                              low mark: no entry lies below it (8 bytes, big endian)
//	'S' key                          a stable value of raft
const (
	keyLog    = 'L'
	keyMark   = 'M'
	keyStable = 'S'
)

// errNotFound has the text by which raft knows an absent stable value.
var errNotFound = errors.New("not found")

// A logStore is raft's log and stable store on a span. Appends and stable
// values are synced; truncation is not, since the next append makes it durable
// in order.
type logStore struct {
	span     *store.Span
	sync     bool
	watch    *diskWatch
	appended func([]*raft.Log) // nil but for Faults.AckBeforeCommit
	failed   func(error)       // hears of an append that failed for good
	written  atomic.Int64      // bytes appended since it was opened

	write sync.Mutex // held while the span is changed; guards low
	low   uint64     // where the next range deletion begins

	mu          sync.RWMutex // guards what follows
	first, last uint64       // 0 when the log is empty
	recent      recentLogs
}

// openLog reads where the log begins and ends. An entry in a span was synced,
// or follows others that were, so what a power loss leaves is a prefix.
func openLog(span *store.Span, sync bool, watch *diskWatch, failed func(error)) (s *logStore, err error) {
	defer func() {
		if f, ok := recover().(store.Failure); ok {
			err = fmt.Errorf("read raft log: %w", f)
		}
	}()
	s = &logStore{span: span, sync: sync, watch: watch, failed: failed, recent: recentLogs{limit: logCacheBytes}}
	switch b, err := span.Get([]byte{keyMark}); {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return nil, fmt.Errorf("read low mark: %w", err)
	case len(b) != 8:
		return nil, fmt.Errorf("low mark of raft log has %d bytes", len(b))
	default:
		s.low = binary.BigEndian.Uint64(b)
	}
	for k := range span.Scan(logKey(s.low), []byte{keyLog + 1}, false) {
		s.first = binary.BigEndian.Uint64(k[1:])
		break
	}
	for k := range span.Scan(logKey(s.low), []byte{keyLog + 1}, true) {
		s.last = binary.BigEndian.Uint64(k[1:])
		break
	}
	return s, nil
}

func logKey(index uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{keyLog}, index)
}

// IsMonotonic tells raft that the log has no gaps: after a snapshot was
// installed raft removes the entries before it.
func (s *logStore) IsMonotonic() bool { return true }

func (s *logStore) FirstIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.first, nil
}

func (s *logStore) LastIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.last, nil
}

func (s *logStore) GetLog(index uint64, out *raft.Log) error {
	s.mu.RLock()
	l := s.recent.at(index)
	s.mu.RUnlock()
	if l != nil {
		*out = *l
		return nil
	}
	b, err := s.span.Get(logKey(index))
	if errors.Is(err, store.ErrNotFound) {
		return raft.ErrLogNotFound
	}
	if err != nil {
		return fmt.Errorf("read raft entry %d: %w", index, err)
	}
	switch err := decodeEntry(b, out); {
	case errors.Is(err, errEntryVersion):
		return fmt.Errorf("raft entry %d: %w", index, err)
	case err != nil:
		return damagedEntry(index, err)
	}
	if out.Index != index {
		return damagedEntry(index, fmt.Errorf("holds entry %d", out.Index))
	}
	return nil
}

// damagedEntry says that the store gave other bytes than were appended.
func damagedEntry(index uint64, err error) error {
	return &store.Damage{File: "raft log", Kind: store.DamageContent, Err: fmt.Errorf("entry %d: %w", index, err)}
}

func (s *logStore) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs appends logs and returns when they are durable. A gap before them
// means that a snapshot was installed and the process ended before the entries
// below it were removed; they are removed now.
func (s *logStore) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	s.write.Lock()
	defer s.write.Unlock()
	first, last := s.bounds()
	from, to := logs[0].Index, logs[len(logs)-1].Index

	b := s.span.NewBatch()
	defer b.Close()
	low := s.low
	if first != 0 && from != last+1 {
		b.DeleteRange(logKey(first), logKey(last+1))
		first = 0
	}
	if first == 0 && (from < low || low == 0) {
		low = from
		b.Set([]byte{keyMark}, binary.BigEndian.AppendUint64(nil, low))
	}
	var buf []byte
	for _, l := range logs {
		buf = encodeEntry(buf[:0], l)
		b.Set(logKey(l.Index), buf)
		s.written.Add(int64(len(buf)))
	}
	if err := s.append(b, store.Head{Index: to, Term: logs[len(logs)-1].Term}); err != nil {
		return err
	}
	s.low = low
	s.mu.Lock()
	if first == 0 {
		s.first = from
		s.recent.reset()
	}
	s.last = to
	s.recent.append(logs)
	s.mu.Unlock()
	if s.appended != nil {
		s.appended(logs)
	}
	return nil
}

func (s *logStore) bounds() (first, last uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.first, s.last
}

// append commits b, after which the log ends at head.
func (s *logStore) append(b *store.Batch, head store.Head) error {
	if !s.sync {
		return s.commit(b, false)
	}
	return s.watched(func() error { return s.span.Append(b, head) })
}

func (s *logStore) commit(b *store.Batch, sync bool) error {
	return s.watched(func() error { return s.span.Commit(b, sync) })
}

// watched writes under the watchdog's eye. A full disk is the operator's
// business and passes; any other error means that this log is no longer to be
// trusted with a vote.
func (s *logStore) watched(write func() error) error {
	s.watch.begin()
	err := write()
	s.watch.end()
	if err != nil && !errors.Is(err, store.ErrDiskFull) && !errors.Is(err, store.ErrClosed) {
		s.failed(fmt.Errorf("write raft log: %w", err))
	}
	return err
}

// DeleteRange removes entries from either end of the log, both bounds included.
func (s *logStore) DeleteRange(from, to uint64) error {
	s.write.Lock()
	defer s.write.Unlock()
	first, last := s.bounds()
	if first == 0 || to < first || from > last {
		return nil
	}
	from, to = max(from, first), min(to, last)
	b := s.span.NewBatch()
	defer b.Close()
	low := s.low
	switch {
	case from == first:
		// From the entry that is first now, so that range deletions never overlap.
		low = to + 1
		b.DeleteRange(logKey(first), logKey(low))
		b.Set([]byte{keyMark}, binary.BigEndian.AppendUint64(nil, low))
	case to == last:
		b.DeleteRange(logKey(from), logKey(last+1))
	default:
		return fmt.Errorf("raft log %d..%d: can not remove %d..%d from its middle", first, last, from, to)
	}
	if err := s.commit(b, false); err != nil {
		return err
	}
	s.low = low
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case from == first && to == last:
		s.first, s.last = 0, 0
		s.recent.reset()
	case from == first:
		s.first = to + 1
	default:
		s.last = from - 1
		s.recent.reset()
	}
	return nil
}

func stableKey(key []byte) []byte { return append([]byte{keyStable}, key...) }

func (s *logStore) Set(key, value []byte) error {
	b := s.span.NewBatch()
	defer b.Close()
	b.Set(stableKey(key), value)
	return s.commit(b, s.sync)
}

func (s *logStore) Get(key []byte) ([]byte, error) {
	b, err := s.span.Get(stableKey(key))
	if errors.Is(err, store.ErrNotFound) {
		return nil, errNotFound
	}
	return b, err
}

func (s *logStore) SetUint64(key []byte, v uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, v))
}

func (s *logStore) GetUint64(key []byte) (uint64, error) {
	b, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	if len(b) != 8 {
		return 0, fmt.Errorf("stable value %q has %d bytes", key, len(b))
	}
	return binary.BigEndian.Uint64(b), nil
}

// entryVersion is the first byte of a stored entry.
const entryVersion = 1

// entryHeader is the length of what stands before the extensions.
const entryHeader = 1 + 1 + 8 + 8 + 8 + 4

var errEntryVersion = errors.New("written by another version of this program")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeEntry appends the stored form of l to b:
//
//	1 byte   version, 1
//	1 byte   type: 0 command, 1 no-op, 4 barrier, 5 configuration (raft's numbers; do not reorder)
//	8 bytes  index, big endian, as all numbers here
//	8 bytes  term
//	8 bytes  when the leader appended it, Unix nanoseconds; 0 when unknown
//	4 bytes  length of the extensions, then these
//	...      data, up to
//	4 bytes  CRC-32C of everything before
//
// A reader refuses another version and a wrong sum: the log is read only by
// the node that wrote it, and what does not match was not written by it.
func encodeEntry(b []byte, l *raft.Log) []byte {
	start := len(b)
	b = append(b, entryVersion, byte(l.Type))
	b = binary.BigEndian.AppendUint64(b, l.Index)
	b = binary.BigEndian.AppendUint64(b, l.Term)
	var at int64
	if !l.AppendedAt.IsZero() {
		at = l.AppendedAt.UnixNano()
	}
	b = binary.BigEndian.AppendUint64(b, uint64(at))
	b = binary.BigEndian.AppendUint32(b, uint32(len(l.Extensions)))
	b = append(b, l.Extensions...)
	b = append(b, l.Data...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// decodeEntry reads what encodeEntry wrote. l keeps no part of b.
func decodeEntry(b []byte, l *raft.Log) error {
	if len(b) < entryHeader+4 {
		return errors.New("entry is too short")
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return errors.New("checksum does not match")
	}
	if body[0] != entryVersion {
		return fmt.Errorf("%w: it has version %d, this program reads %d", errEntryVersion, body[0], entryVersion)
	}
	n := binary.BigEndian.Uint32(body[26:])
	rest := body[entryHeader:]
	if uint64(n) > uint64(len(rest)) {
		return errors.New("extensions are longer than the entry")
	}
	*l = raft.Log{
		Type:  raft.LogType(body[1]),
		Index: binary.BigEndian.Uint64(body[2:]),
		Term:  binary.BigEndian.Uint64(body[10:]),
	}
	if at := int64(binary.BigEndian.Uint64(body[18:])); at != 0 {
		l.AppendedAt = time.Unix(0, at)
	}
	if n > 0 {
		l.Extensions = append([]byte(nil), rest[:n]...)
	}
	if data := rest[n:]; len(data) > 0 {
		l.Data = append([]byte(nil), data...)
	}
	return nil
}

// recentLogs are the last entries, without a gap, bounded in bytes. Raft does
// not change an entry once it is stored.
type recentLogs struct {
	limit int // in bytes
	logs  []*raft.Log
	bytes int
}

// Trim drops the entries that are kept in memory to feed followers: a node that has
// little to do reads them from its log when one asks.
func (c *Consensus) Trim() {
	c.logs.mu.Lock()
	defer c.logs.mu.Unlock()
	c.logs.recent.reset()
}

func (r *recentLogs) reset() { r.logs, r.bytes = nil, 0 }

func (r *recentLogs) append(logs []*raft.Log) {
	for _, l := range logs {
		kept := *l // l may lie in what raft answers its proposer with, results and all
		r.logs = append(r.logs, &kept)
		r.bytes += len(l.Data) + logCacheOverhead
	}
	n := 0
	for n < len(r.logs)-1 && (r.bytes > r.limit || len(r.logs)-n > logCacheEntries) {
		r.bytes -= len(r.logs[n].Data) + logCacheOverhead
		r.logs[n] = nil
		n++
	}
	r.logs = r.logs[n:]
}

func (r *recentLogs) at(index uint64) *raft.Log {
	if len(r.logs) == 0 || index < r.logs[0].Index || index > r.logs[len(r.logs)-1].Index {
		return nil
	}
	return r.logs[index-r.logs[0].Index]
}
