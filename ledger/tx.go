package ledger

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/ledger/store"
)

// A Reader is the state below a [Tx]: a Pebble snapshot, or another Tx.
// Storage errors are panics of type [StorageError]; see there.
type Reader interface {
	// Get returns the value of key, which the caller must not change.
	Get(key []byte) (value []byte, ok bool)
	// Scan yields keys in [from, to) in order, backwards when reverse is set.
	// Yielded slices are valid until the next step.
	Scan(from, to []byte, reverse bool) iter.Seq2[[]byte, []byte]
}

// A StorageError is what reads panic with when the disk fails, so that rules
// need not carry an error that no rule can handle. [Ledger.View] turns it back
// into an error; in apply it ends the process.
type StorageError = store.Failure

// A Tx is a view of the state with writes laid over it. Reads see the writes.
// A Tx is used by one goroutine.
type Tx struct {
	base   Reader
	parent *Tx // nil unless made by Child
	writes map[string][]byte
	// A nil value in writes is a deletion; a present but empty value is not nil.
	cache *decoded    // nil caches nothing
	view  *viewReader // of a view; it has no writes
	ro    bool
	entry uint64 // see Applying
	buf   []byte // of the key that is asked for or written, see key

	// order holds the keys of writes by tableOf, so that a scan of one table
	// does not walk the writes of a whole group. It is made by the first scan of
	// an overlay with many writes and kept up from then on.
	order map[string]*tableOrder
}

// indexFrom is the number of writes from which an overlay orders its keys.
const indexFrom = 64

// tableOrder holds the written keys of one table: sorted, and those since the
// last scan as they came.
type tableOrder struct{ sorted, fresh []string }

// tableOf returns what all keys of a table begin with: c/<company>/<table>/,
// or all of a shorter key.
func tableOf[T ~string | ~[]byte](key T) T {
	slashes := 0
	for i := range len(key) {
		if key[i] == '/' {
			if slashes++; slashes == 3 {
				return key[:i+1]
			}
		}
	}
	return key
}

// written returns the written keys in [from, to), sorted; a nil to is the end.
func (t *Tx) written(from, to []byte) (out []string) {
	table := tableOf(string(from))
	if len(t.writes) < indexFrom || strings.Count(table, "/") < 3 || to == nil ||
		string(to) > string(PrefixEnd([]byte(table))) {
		for k := range t.writes {
			if k >= string(from) && (to == nil || k < string(to)) {
				out = append(out, k)
			}
		}
		slices.Sort(out)
		return out
	}
	if t.order == nil {
		t.order = map[string]*tableOrder{}
		for k := range t.writes {
			t.note(k)
		}
	}
	o := t.order[table]
	if o == nil {
		return nil
	}
	o.tidy()
	i, _ := slices.BinarySearch(o.sorted, string(from))
	j, _ := slices.BinarySearch(o.sorted, string(to))
	return slices.Clone(o.sorted[i:max(i, j)])
}

// note enters a key that was not written before.
func (t *Tx) note(key string) {
	table := tableOf(key)
	o := t.order[table]
	if o == nil {
		o = &tableOrder{}
		t.order[table] = o
	}
	o.fresh = append(o.fresh, key)
}

func (o *tableOrder) tidy() {
	const few = 8 // inserting them one by one is cheaper than sorting
	if len(o.fresh) > few {
		o.sorted = append(o.sorted, o.fresh...)
		slices.Sort(o.sorted)
	} else {
		for _, k := range o.fresh {
			i, _ := slices.BinarySearch(o.sorted, k)
			o.sorted = slices.Insert(o.sorted, i, k)
		}
	}
	o.fresh = o.fresh[:0]
}

// put is the one way into writes.
func (t *Tx) put(key string, value []byte) {
	if t.order != nil {
		if _, ok := t.writes[key]; !ok {
			t.note(key)
		}
	}
	t.writes[key] = value
}

// NewTx returns a Tx over base that accepts writes.
func NewTx(base Reader) *Tx { return &Tx{base: base, writes: map[string][]byte{}} }

// Child returns a Tx over t whose writes can be dropped, or kept with Merge.
func (t *Tx) Child() *Tx {
	return &Tx{base: t, parent: t, writes: map[string][]byte{}, cache: t.cache, ro: t.ro}
}

// Applying returns the height of the entry that the command which is being applied will
// have, 0 outside of apply.
func (t *Tx) Applying() uint64 {
	for ; t != nil; t = t.parent {
		if t.entry != 0 {
			return t.entry
		}
	}
	return 0
}

// Merge moves the writes of a child into its parent.
func (t *Tx) Merge() {
	for k, v := range t.writes {
		t.parent.put(k, v)
	}
	t.reset()
}

// reset drops all writes.
func (t *Tx) reset() {
	t.order = nil
	if len(t.writes) > resetWrites {
		t.writes = make(map[string][]byte) // a large map is slow to walk, also when empty
		return
	}
	clear(t.writes)
}

// Touched returns how many keys were written.
func (t *Tx) Touched() int { return len(t.writes) }

// Writes yields the written keys in order, with nil for a deletion.
func (t *Tx) Writes() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		keys := make([]string, 0, len(t.writes))
		for k := range t.writes {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			if !yield(k, t.writes[k]) {
				return
			}
		}
	}
}

// Get returns the value of key. The caller must not change it.
func (t *Tx) Get(key []byte) ([]byte, bool) {
	if v, ok := t.writes[string(key)]; ok {
		return v, v != nil
	}
	return t.base.Get(key)
}

// Has reports whether key is present.
func (t *Tx) Has(key []byte) bool { _, ok := t.Get(key); return ok }

// Set writes a value; the Tx keeps the slice.
func (t *Tx) Set(key, value []byte) {
	t.mayWrite(key)
	if value == nil {
		value = []byte{}
	}
	t.put(string(key), value)
}

// Delete removes key; an absent key is no error.
func (t *Tx) Delete(key []byte) {
	t.mayWrite(key)
	t.put(string(key), nil)
}

func (t *Tx) mayWrite(key []byte) {
	if t.ro {
		panic(fmt.Sprintf("ledger: write of %q through a read-only view", key))
	}
}

// Scan yields keys in [from, to) in order with the writes laid over the state; a
// nil to is the end.
// Writing while scanning is allowed and not seen by the scan.
func (t *Tx) Scan(from, to []byte, reverse bool) iter.Seq2[[]byte, []byte] {
	over := t.written(from, to)
	if len(over) == 0 {
		return t.base.Scan(from, to, reverse)
	}
	if reverse {
		slices.Reverse(over)
	}
	writes := make([][]byte, len(over))
	for i, k := range over {
		writes[i] = t.writes[k]
	}
	return func(yield func([]byte, []byte) bool) {
		i := 0
		before := func(a string, b []byte) bool { return (strings.Compare(a, string(b)) < 0) != reverse }
		for k, v := range t.base.Scan(from, to, reverse) {
			for i < len(over) && over[i] != string(k) && before(over[i], k) {
				if writes[i] != nil && !yield([]byte(over[i]), writes[i]) {
					return
				}
				i++
			}
			if i < len(over) && over[i] == string(k) {
				v = writes[i]
				i++
				if v == nil {
					continue
				}
			}
			if !yield(k, v) {
				return
			}
		}
		for ; i < len(over); i++ {
			if writes[i] != nil && !yield([]byte(over[i]), writes[i]) {
				return
			}
		}
	}
}

// Prefix yields all keys that begin with prefix, in order.
func (t *Tx) Prefix(prefix []byte) iter.Seq2[[]byte, []byte] {
	return t.Scan(prefix, PrefixEnd(prefix), false)
}

// PrefixEnd returns the first key after all keys that begin with prefix.
func PrefixEnd(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// key is Key in a buffer that the next call takes: for keys that are looked up or
// written at once, which nobody keeps.
func (t *Tx) key(parts ...string) []byte {
	t.buf = appendKey(t.buf[:0], parts)
	return t.buf
}

func appendKey(b []byte, parts []string) []byte {
	for i, p := range parts {
		if i > 0 {
			b = append(b, '/')
		}
		b = append(b, p...)
	}
	return b
}

// Key joins parts with '/'. Parts must not hold a '/' (IDs and enum values do
// not; free text is hashed or escaped before it becomes part of a key).
func Key(parts ...string) []byte {
	n := len(parts)
	for _, p := range parts {
		n += len(p)
	}
	return appendKey(make([]byte, 0, n), parts)
}

// Order formats n so that keys sort as numbers do: 16 hex digits.
func Order(n uint64) string {
	const digits = "0123456789abcdef"
	var b [16]byte
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = digits[n&0xf]
		n >>= 4
	}
	return string(b[:])
}
