package ledger

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/selvage-mesh/selvage/ledger/store"
)

// readCache keeps rows for views, with what they decode to, and short index
// scans. Views of different moments share it, so each row says since when it
// stands:
//
//   - Before a group becomes visible, apply removes what the group writes and
//     notes the group's last raft index with the slot of each key (forget).
//   - A view at index P takes a row that stands since P or before: nothing was
//     written to it since, or it would not be there.
//   - A view adds what it read from its snapshot only when the key's slot was
//     last written at P or before: then the row is of its moment and still stands.
//
// A view's P is asked for before its snapshot is made, so the snapshot is of P
// or later, and both conditions err on the side of reading the snapshot.
//
// Scans are kept for the tables and indexes that views scan; apply asks which
// these are after it has said which index it is at, and what a view scans when
// its table is new to the list must be of that index at least.
type readCache struct {
	seed      maphash.Seed
	shards    [readShards]readShard
	scanned   sync.Map // of table name: the raft index from which its scans are kept
	forgotten atomic.Uint64
}

type readShard struct {
	mu         sync.Mutex
	limit      int // bytes in each map
	size       int // bytes in young
	young, old map[string]*readRow
	written    [readSlots]uint64 // raft index of the last write to a key of the slot
}

// readRow is a row, or the IDs of an index scan.
type readRow struct {
	since   uint64
	value   []byte // nil: the key is absent
	ids     []string
	decodes int // about what decoded takes, once it is there
	decoded atomic.Pointer[any]
}

func newReadCache(limit int) *readCache {
	c := &readCache{seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].young = map[string]*readRow{}
	}
	c.bound(limit)
	return c
}

// bound sets how much it may hold; what is too much goes as rows are put.
func (c *readCache) bound(limit int) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.limit = limit / (2 * readShards)
		s.mu.Unlock()
	}
}

func (c *readCache) at(key []byte) (*readShard, *uint64) {
	h := maphash.Bytes(c.seed, key)
	s := &c.shards[h%readShards]
	return s, &s.written[h/readShards%readSlots]
}

// find returns the row of key that a view at index p may take, or nil.
func (c *readCache) find(key []byte, p uint64) *readRow {
	s, _ := c.at(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.young[string(key)]
	if !ok {
		if r, ok = s.old[string(key)]; !ok {
			return nil
		}
		s.put(string(key), r)
	}
	if r.since > p {
		return nil
	}
	return r
}

// add keeps what a view at index p read under key.
func (c *readCache) add(key []byte, r *readRow, p uint64) {
	s, written := c.at(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if *written > p {
		return
	}
	r.since = *written
	s.put(string(key), r)
}

func (s *readShard) put(key string, r *readRow) {
	n := len(key) + len(r.value) + rowOverhead + r.decodes
	for _, id := range r.ids {
		n += len(id) + 16
	}
	if s.size += n; s.size > s.limit {
		s.young, s.old = make(map[string]*readRow, len(s.young)), s.young
		s.size = n
	}
	s.young[key] = r
}

// forget removes what the keys of a group hide; index is its last raft index. It
// is called before the group can be seen.
func (c *readCache) forget(writes map[string][]byte, index uint64) {
	c.forgotten.Store(index)
	for key := range writes {
		if !readCached(key) {
			continue
		}
		c.drop(key, index)
		table := tableOf(key)
		if _, ok := c.scanned.Load(tableName(table)); !ok || len(table) == len(key) {
			continue
		}
		for i := len(table) - 1; i < len(key); i++ {
			if key[i] == '/' {
				c.drop(key[:i+1], index)
			}
		}
	}
}

// tableName returns the name in c/<company>/<name>/.
func tableName(table string) string {
	if len(table) < 2 || table[0] != 'c' || table[1] != '/' {
		return ""
	}
	_, name, _ := strings.Cut(table[2:], "/")
	return name
}

// keeps tells whether a scan of a prefix by a view at index p may be kept, and
// remembers that its table is scanned.
func (c *readCache) keeps(prefix []byte, p uint64) bool {
	name := tableName(tableOf(string(prefix)))
	if name == "" {
		return false
	}
	from, ok := c.scanned.Load(name)
	if !ok {
		c.scanned.Store(name, ^uint64(0)) // nothing may be kept until the index is known
		from = c.forgotten.Load()
		c.scanned.Store(name, from)
	}
	return p >= from.(uint64)
}

func (c *readCache) drop(key string, index uint64) {
	h := maphash.String(c.seed, key)
	s := &c.shards[h%readShards]
	s.mu.Lock()
	s.written[h/readShards%readSlots] = index
	delete(s.young, key)
	delete(s.old, key)
	s.mu.Unlock()
}

// clear drops all rows. When keys were written stays known.
func (c *readCache) clear() {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.young, s.old, s.size = map[string]*readRow{}, nil, 0
		s.mu.Unlock()
	}
}

// readCached tells which keys the cache may hold: not what is about the position
// of the ledger, and not its own rows, which views read once.
func readCached[T ~string | ~[]byte](key T) bool {
	if len(key) == 0 || key[0] == internalPrefix {
		return false
	}
	// c/<company>/~…: IDs hold no slash and no ~.
	for i := range len(key) - 1 {
		if key[i] == '/' && key[i+1] == '~' {
			return false
		}
	}
	return true
}

// viewReader reads the state of one moment, through the cache.
type viewReader struct {
	*store.Snapshot
	cache *readCache
	at    uint64 // raft index that the snapshot has at least
}

// row returns the row of key; flat is the size of what it decodes to, without what
// that refers to, and 0 when that is not to be kept.
func (r *viewReader) row(key []byte, flat int) *readRow {
	if !readCached(key) {
		v, _ := found(r.Snapshot.Get(key))
		return &readRow{value: v}
	}
	if row := r.cache.find(key, r.at); row != nil {
		return row
	}
	v, _ := found(r.Snapshot.Get(key))
	row := &readRow{value: v}
	if v != nil && flat > 0 {
		row.decodes = decodedSize(len(v), flat) - len(v)
	}
	r.cache.add(key, row, r.at)
	return row
}

// Get is [Reader.Get].
func (r *viewReader) Get(key []byte) ([]byte, bool) {
	v := r.row(key, 0).value
	return v, v != nil
}

// ids returns what follows a prefix, which ends in '/', in the keys that begin
// with it. Long scans are not kept: false.
func (r *viewReader) ids(prefix []byte) ([]string, bool) {
	if row := r.cache.find(prefix, r.at); row != nil {
		return row.ids, row.ids != nil
	}
	keeps := r.cache.keeps(prefix, r.at)
	row := &readRow{ids: []string{}}
	for k := range r.Snapshot.Scan(prefix, PrefixEnd(prefix), false) {
		if len(row.ids) == readIDs {
			row.ids = nil // remembered as long
			break
		}
		row.ids = append(row.ids, string(k[len(prefix):]))
	}
	if keeps {
		r.cache.add(prefix, row, r.at)
	}
	return row.ids, row.ids != nil
}

// yieldIDs yields ids in order, backwards when reverse is set.
func yieldIDs[ID ~string](ids []string, reverse bool, yield func(ID) bool) {
	for n := range ids {
		id := ids[n]
		if reverse {
			id = ids[len(ids)-1-n]
		}
		if !yield(ID(id)) {
			return
		}
	}
}
