package ledger

import (
	"bytes"
	"fmt"
	"iter"
	"reflect"
	"slices"
)

// A Table is a typed set of rows of one company, stored under
// c/<company>/<name>/<id>. Rows are values: change the copy and Put it.
//
// Apply keeps rows in decoded form when T holds no references (pointers,
// slices, maps), or has a method Clone() T that copies what it refers to.
type Table[T any] struct {
	name  string
	rows  rows[T]
	sides []Side[T]
}

// A Side keeps what is stored beside a row up to date: it is called after the row
// was written, with the row before, nil for a new one, and after, nil for a deleted one.
type Side[T any] func(tx *Tx, company, id string, old, next *T)

// NewTable returns the table called name. T must not be able to hold a float.
func NewTable[T any](name string) Table[T] {
	checkType[T]()
	return Table[T]{name: name, rows: newRows[T](name)}
}

// Name returns what the table is called in keys.
func (t Table[T]) Name() string { return t.name }

// Beside returns t as a table whose Put and Delete call side.
func (t Table[T]) Beside(side Side[T]) Table[T] {
	t.sides = append(t.sides[:len(t.sides):len(t.sides)], side)
	return t
}

// Indexed returns t as a table that keeps an index: a row's ID stands in x under the
// value that of returns, and nowhere when that is "".
func (t Table[T]) Indexed(x Index, of func(row *T) (value string)) Table[T] {
	return t.IndexedAs(x, func(row *T, id string) (string, string) { return of(row), id })
}

// IndexedAs is Indexed for an index that holds something else than the ID, such as the
// ID behind what rows are sorted by.
func (t Table[T]) IndexedAs(x Index, of func(row *T, id string) (value, entry string)) Table[T] {
	return t.Beside(func(tx *Tx, company, id string, old, next *T) {
		var from, to, was, is string
		if old != nil {
			from, was = of(old, id)
		}
		if next != nil {
			to, is = of(next, id)
		}
		if from == to && was == is {
			return
		}
		if from != "" {
			x.Remove(tx, company, from, was)
		}
		if to != "" {
			x.Add(tx, company, to, is)
		}
	})
}

// IndexedEach is Indexed for a row that stands under several values, or under none.
func (t Table[T]) IndexedEach(x Index, of func(row *T) (values []string)) Table[T] {
	return t.Beside(func(tx *Tx, company, id string, old, next *T) {
		var from, to []string
		if old != nil {
			from = of(old)
		}
		if next != nil {
			to = of(next)
		}
		for _, v := range from {
			if !slices.Contains(to, v) {
				x.Remove(tx, company, v, id)
			}
		}
		for _, v := range to {
			if !slices.Contains(from, v) {
				x.Add(tx, company, v, id)
			}
		}
	})
}

// Hot returns t as a table whose rows are read again soon after they were
// written: apply keeps what is put in decoded form. A row that is put must then
// read back as it was: no empty slice where its encoding leaves it out, and only
// valid UTF-8. T must be of those kept in decoded form.
func (t Table[T]) Hot() Table[T] {
	if t.rows.share == shareNot {
		panic("ledger: rows of " + t.name + " can not be kept")
	}
	t.rows.hot = true
	return t
}

// Key returns the key of a row.
func (t Table[T]) Key(company, id string) []byte { return Key("c", company, t.name, id) }

// Get returns the row with the given ID.
func (t Table[T]) Get(tx *Tx, company, id string) (row T, ok bool) {
	return t.rows.get(tx, tx.key("c", company, t.name, id))
}

// Look returns the row with the given ID as it lies in the cache, nil when there
// is none. It is for what is asked with every command: nothing is copied, and the
// caller must not change what it is given.
func (t Table[T]) Look(tx *Tx, company, id string) *T {
	return t.rows.look(tx, tx.key("c", company, t.name, id))
}

// Put writes a row, and what t keeps beside it, and returns the row's encoding.
func (t Table[T]) Put(tx *Tx, company, id string, row T) []byte {
	if len(t.sides) == 0 {
		return t.rows.put(tx, tx.key("c", company, t.name, id), row)
	}
	return t.Replace(tx, company, id, t.Look(tx, company, id), row)
}

// Replace is Put for who has read the row that is there: old, or nil for none.
func (t Table[T]) Replace(tx *Tx, company, id string, old *T, row T) []byte {
	b := t.rows.put(tx, tx.key("c", company, t.name, id), row)
	for _, side := range t.sides {
		side(tx, company, id, old, &row)
	}
	return b
}

// Delete removes a row, and what t keeps beside it.
func (t Table[T]) Delete(tx *Tx, company, id string) {
	var old *T
	if len(t.sides) > 0 {
		old = t.Look(tx, company, id)
	}
	tx.Delete(tx.key("c", company, t.name, id))
	if old == nil {
		return
	}
	for _, side := range t.sides {
		side(tx, company, id, old, nil)
	}
}

// All yields the rows of company by ID.
func (t Table[T]) All(tx *Tx, company string) iter.Seq2[string, T] {
	return t.rows.all(tx, Key("c", company, t.name, ""))
}

// A MeshTable is a typed set of rows that belong to no company, stored under
// m/<name>/<id>.
type MeshTable[T any] struct {
	name string
	rows rows[T]
}

// NewMeshTable returns the table called name. T must not be able to hold a float.
func NewMeshTable[T any](name string) MeshTable[T] {
	checkType[T]()
	return MeshTable[T]{name, newRows[T](name)}
}

// Key returns the key of a row.
func (t MeshTable[T]) Key(id string) []byte { return Key("m", t.name, id) }

// Get returns the row with the given ID.
func (t MeshTable[T]) Get(tx *Tx, id string) (row T, ok bool) {
	return t.rows.get(tx, tx.key("m", t.name, id))
}

// Put writes a row and returns its encoding.
func (t MeshTable[T]) Put(tx *Tx, id string, row T) []byte {
	return t.rows.put(tx, tx.key("m", t.name, id), row)
}

// Delete removes a row.
func (t MeshTable[T]) Delete(tx *Tx, id string) { tx.Delete(tx.key("m", t.name, id)) }

// All yields the rows by ID.
func (t MeshTable[T]) All(tx *Tx) iter.Seq2[string, T] {
	return t.rows.all(tx, Key("m", t.name, ""))
}

// rows reads and writes values of T by key.
type rows[T any] struct {
	name  string
	share sharing
	flat  int // bytes of a T that is kept in decoded form, without what it refers to
	hot   bool
}

func newRows[T any](name string) rows[T] {
	r := rows[T]{name: name, share: sharingOf[T]()}
	if r.share != shareNot {
		r.flat = int(reflect.TypeFor[T]().Size())
	}
	return r
}

func (r rows[T]) get(tx *Tx, key []byte) (row T, ok bool) {
	if tx.view != nil {
		return r.view(tx.view.row(key, r.flat))
	}
	b, ok := tx.Get(key)
	if !ok {
		return row, false
	}
	if tx.cache == nil || r.share == shareNot || len(b) == 0 {
		return r.decode(b), true
	}
	return r.handOut(*r.kept(tx, b)), true
}

func (r rows[T]) look(tx *Tx, key []byte) *T {
	if tx.view != nil {
		if row, ok := r.view(tx.view.row(key, r.flat)); ok {
			return &row
		}
		return nil
	}
	b, ok := tx.Get(key)
	if !ok {
		return nil
	}
	if tx.cache == nil || r.share == shareNot || len(b) == 0 {
		row := r.decode(b)
		return &row
	}
	return r.kept(tx, b)
}

// kept returns the row that b is the encoding of, decoded once.
func (r rows[T]) kept(tx *Tx, b []byte) *T {
	if v := tx.cache.get(b); v != nil {
		return v.(*T)
	}
	row := r.decode(b)
	tx.cache.put(b, &row, r.flat)
	return &row
}

// view decodes a row of a view, once for all views when that may be shared.
func (r rows[T]) view(found *readRow) (row T, ok bool) {
	switch {
	case found.value == nil:
		return row, false
	case r.share == shareNot:
		return r.decode(found.value), true
	}
	if v := found.decoded.Load(); v != nil {
		if row, ok := (*v).(T); ok {
			return r.handOut(row), true
		}
	}
	row = r.decode(found.value)
	if found.decodes > 0 { // it is counted
		kept := any(r.handOut(row))
		found.decoded.Store(&kept)
	}
	return row, true
}

// put does not keep row in decoded form but for a hot table: what a later get
// returns must follow from the stored bytes alone, or nodes with colder caches
// would read other values (an empty slice for a nil one).
func (r rows[T]) put(tx *Tx, key []byte, row T) []byte {
	b := Marshal(row)
	tx.Set(key, b)
	if r.hot && tx.cache != nil {
		kept := r.handOut(row)
		if CheckHot && !reflect.DeepEqual(kept, r.decode(b)) {
			panic(fmt.Sprintf("ledger: row of %s does not read back as it was put: %+v", r.name, row))
		}
		tx.cache.put(b, &kept, r.flat)
	}
	return b
}

// CheckHot makes the rows of hot tables be read back as they are put, and a
// difference a panic. Tests set it before anything is applied.
var CheckHot bool

func (r rows[T]) handOut(row T) T {
	if r.share == shareClone {
		return any(row).(cloner[T]).Clone()
	}
	return row
}

func (r rows[T]) all(tx *Tx, prefix []byte) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		if tx.view != nil {
			if ids, ok := tx.view.ids(prefix); ok {
				for _, id := range ids {
					row, ok := r.view(tx.view.row(append(prefix[:len(prefix):len(prefix)], id...), r.flat))
					if ok && !yield(id, row) {
						return
					}
				}
				return
			}
		}
		for k, v := range tx.Prefix(prefix) {
			if !yield(string(bytes.TrimPrefix(k, prefix)), r.decode(v)) {
				return
			}
		}
	}
}

func (r rows[T]) decode(b []byte) (row T) {
	if err := Unmarshal(b, &row); err != nil {
		panic("ledger: row of " + r.name + " does not decode: " + err.Error())
	}
	return row
}

// An Index is a set of row IDs of one company under a sortable value, stored
// as c/<company>/<name>/<value>/<id> with an empty value.
type Index struct{ name string }

// NewIndex returns the index called name, conventionally <table>-<field>.
func NewIndex(name string) Index { return Index{name} }

// Add enters id under value.
func (x Index) Add(tx *Tx, company, value, id string) {
	tx.Set(tx.key("c", company, x.name, value, id), nil)
}

// Remove takes id out from under value.
func (x Index) Remove(tx *Tx, company, value, id string) {
	tx.Delete(tx.key("c", company, x.name, value, id))
}

// Move takes id from one value to another; equal values are left alone.
func (x Index) Move(tx *Tx, company, from, to, id string) {
	if from != to {
		x.Remove(tx, company, from, id)
		x.Add(tx, company, to, id)
	}
}

// IDs yields the IDs under value, in order, backwards when reverse is set.
func (x Index) IDs(tx *Tx, company, value string, reverse bool) iter.Seq[string] {
	prefix := Key("c", company, x.name, value, "")
	if tx.view != nil {
		if ids, ok := tx.view.ids(prefix); ok {
			return yieldIDs(ids, reverse)
		}
	}
	return func(yield func(string) bool) {
		for k := range tx.Scan(prefix, PrefixEnd(prefix), reverse) {
			if !yield(string(bytes.TrimPrefix(k, prefix))) {
				return
			}
		}
	}
}
