package ledger

import "reflect"

// rowCache keeps rows of the state, by key, for the apply path: reading cold
// rows one after the other was a third of its time. It is used by the applying
// goroutine only and holds what is committed: the group's own writes lie over
// it in a Tx and come in when the group is committed.
//
// It is two maps: when the young one is full it becomes the old one, and what
// was in the old one and was not asked for since is gone. A nil value says that
// the key is absent.
type rowCache struct {
	limit       int // bytes in each map
	size        int // bytes in young
	young, old  map[string][]byte
	hits, total uint64
	missed      int // rows of the present group that the store was asked for
}

// rowOverhead is about what a map entry takes beside key and value.
const rowOverhead = 80

func newRowCache(limit int) *rowCache {
	return &rowCache{limit: limit / 2, young: map[string][]byte{}}
}

// bound sets how much it may hold; what is too much goes as rows are put.
func (c *rowCache) bound(limit int) { c.limit = limit / 2 }

func (c *rowCache) get(key []byte) (v []byte, ok bool) {
	c.total++
	if v, ok = c.young[string(key)]; ok {
		c.hits++
		return v, true
	}
	if v, ok = c.old[string(key)]; ok {
		c.hits++
		c.put(string(key), v)
	}
	return v, ok
}

func (c *rowCache) has(key string) bool {
	_, young := c.young[key]
	if !young {
		_, old := c.old[key]
		return old
	}
	return true
}

func (c *rowCache) put(key string, v []byte) {
	n := len(key) + len(v) + rowOverhead
	if c.size += n; c.size > c.limit {
		c.young, c.old = make(map[string][]byte, len(c.young)), c.young
		c.size = n
	}
	c.young[key] = v
}

// forget drops all rows.
func (c *rowCache) forget() { c.young, c.old, c.size = map[string][]byte{}, nil, 0 }

// decoded keeps rows in decoded form, by the identity of their bytes: the bytes
// of a row never change, and a written row has new bytes. So it needs no
// invalidation, and holds rows of the overlay as well as of the state. Only
// rows without references are kept, or rows that have a Clone method: a handler
// may change the copy it was given, and all replicas must read the same.
//
// It is bounded as [rowCache] is: each version of a row that is written again and
// again is a row of its own here, so a count of rows would not bound it.
type decoded struct {
	limit      int // bytes in each map
	size       int // bytes in young
	young, old map[*byte]decodedRow
}

type decodedRow struct {
	value any
	size  int
}

func newDecoded(limit int) *decoded {
	return &decoded{limit: limit / 2, young: map[*byte]decodedRow{}}
}

// bound sets how much it may hold; what is too much goes as rows are put.
func (d *decoded) bound(limit int) { d.limit = limit / 2 }

func (d *decoded) get(b []byte) any {
	r, ok := d.young[&b[0]]
	if !ok {
		if r, ok = d.old[&b[0]]; ok {
			d.add(&b[0], r)
		}
	}
	return r.value
}

// put keeps v, which b decodes to; flat is the size of v without what it refers to.
func (d *decoded) put(b []byte, v any, flat int) {
	d.add(&b[0], decodedRow{v, decodedSize(len(b), flat)})
}

func (d *decoded) add(at *byte, r decodedRow) {
	if d.size += r.size; d.size > d.limit {
		d.young, d.old = make(map[*byte]decodedRow, len(d.young)), d.young
		d.size = r.size
	}
	d.young[at] = r
}

// forget drops all rows.
func (d *decoded) forget() { d.young, d.old, d.size = map[*byte]decodedRow{}, nil, 0 }

// decodedSize is about what a decoded row takes, with its encoded bytes, which it
// keeps alive: what it refers to is about as long as these.
func decodedSize(encoded, flat int) int { return 2*encoded + flat + rowOverhead }

// sharing says how a decoded row may be handed out again.
type sharing byte

const (
	shareNot   sharing = iota // it holds references: decode it each time
	shareCopy                 // a copy of the value shares nothing
	shareClone                // its Clone method copies what it refers to
)

type cloner[T any] interface{ Clone() T }

func sharingOf[T any]() sharing {
	var zero T
	if _, ok := any(zero).(cloner[T]); ok {
		return shareClone
	}
	if isFlat(reflect.TypeFor[T]()) {
		return shareCopy
	}
	return shareNot
}

func isFlat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		for f := range t.Fields() {
			if !isFlat(f.Type) {
				return false
			}
		}
		return true
	case reflect.Array:
		return isFlat(t.Elem())
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Chan, reflect.Func, reflect.Interface, reflect.UnsafePointer:
		return false
	default:
		return true
	}
}
