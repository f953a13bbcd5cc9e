package ledger

import (
	"bytes"
	"fmt"
	"iter"
	"reflect"
	"slices"
)

// A CompanyID is the UUID of a company, "" where something is of the mesh itself.
type CompanyID string

// A Table is a typed set of rows of one company, stored under
// c/<company>/<name>/<id>. Rows are values: change the copy and Put it.
// ID is the type of their IDs.
//
// Apply keeps rows in decoded form when T holds no references (pointers,
// slices, maps), or has a method Clone() T that copies what it refers to.
type Table[ID ~string, T any] struct {
	rows  rows
	sides []Side[ID, T]
}

// A Side keeps what is stored beside a row up to date: it is called after the row
// was written, with the row before, nil for a new one, and after, nil for a deleted one.
type Side[ID ~string, T any] func(tx *Tx, company CompanyID, id ID, old, next *T)

// NewTable returns the table called name. T must not be able to hold a float.
func NewTable[ID ~string, T any](name string) *Table[ID, T] {
	checkType[T]()
	return &Table[ID, T]{rows: newRows[T](name)}
}

// Name returns what the table is called in keys.
func (t *Table[ID, T]) Name() string { return t.rows.name }

// Beside returns t as a table whose Put and Delete call side.
func (t *Table[ID, T]) Beside(side Side[ID, T]) *Table[ID, T] {
	return &Table[ID, T]{t.rows, append(t.sides[:len(t.sides):len(t.sides)], side)}
}

// Hot returns t as a table whose rows are read again soon after they were
// written: apply keeps what is put in decoded form. A row that is put must then
// read back as it was: no empty slice where its encoding leaves it out, and only
// valid UTF-8. T must be of those kept in decoded form.
func (t *Table[ID, T]) Hot() *Table[ID, T] { return &Table[ID, T]{t.rows.heated(), t.sides} }

// Key returns the key of a row.
func (t *Table[ID, T]) Key(company CompanyID, id ID) []byte {
	return Key("c", string(company), t.rows.name, string(id))
}

// Get returns the row with the given ID.
func (t *Table[ID, T]) Get(tx *Tx, company CompanyID, id ID) (row T, ok bool) {
	if p := t.rows.get(tx, t.rows.keyOf(tx, company, string(id))); p != nil {
		return *p.(*T), true
	}
	return row, false
}

// Look returns the row with the given ID as it lies in the cache, nil when there
// is none. It is for what is asked with every command: nothing is copied, and the
// caller must not change what it is given.
func (t *Table[ID, T]) Look(tx *Tx, company CompanyID, id ID) *T {
	if p := t.rows.look(tx, t.rows.keyOf(tx, company, string(id))); p != nil {
		return p.(*T)
	}
	return nil
}

// Put writes a row, and what t keeps beside it, and returns the row's encoding.
func (t *Table[ID, T]) Put(tx *Tx, company CompanyID, id ID, row T) []byte {
	if len(t.sides) == 0 {
		return t.rows.put(tx, t.rows.keyOf(tx, company, string(id)), &row)
	}
	return t.Replace(tx, company, id, t.Look(tx, company, id), row)
}

// Replace is Put for who has read the row that is there: old, or nil for none.
func (t *Table[ID, T]) Replace(tx *Tx, company CompanyID, id ID, old *T, row T) []byte {
	b := t.rows.put(tx, t.rows.keyOf(tx, company, string(id)), &row)
	for _, side := range t.sides {
		side(tx, company, id, old, &row)
	}
	return b
}

// Delete removes a row, and what t keeps beside it.
func (t *Table[ID, T]) Delete(tx *Tx, company CompanyID, id ID) {
	var old *T
	if len(t.sides) > 0 {
		old = t.Look(tx, company, id)
	}
	tx.Delete(t.rows.keyOf(tx, company, string(id)))
	for _, side := range t.sides {
		if old != nil {
			side(tx, company, id, old, nil)
		}
	}
}

// All yields the rows of company by ID.
func (t *Table[ID, T]) All(tx *Tx, company CompanyID) iter.Seq2[ID, T] {
	return func(yield func(ID, T) bool) {
		t.rows.each(tx, Key("c", string(company), t.rows.name, ""), func(id string, p any) bool {
			return yield(ID(id), *p.(*T))
		})
	}
}

// Indexed is a side that keeps an index: a row's ID stands in x under the value that of
// returns, and nowhere when that is "".
func Indexed[V, ID ~string, T any](x Index[V, ID], of func(row *T) (value V)) Side[ID, T] {
	return IndexedAs(x, func(row *T, id ID) (V, ID) { return of(row), id })
}

// IndexedAs is [Indexed] for an index that holds something else than the ID, such as the
// ID behind what rows are sorted by.
func IndexedAs[V, E, ID ~string, T any](x Index[V, E], of func(row *T, id ID) (value V, entry E)) Side[ID, T] {
	return func(tx *Tx, company CompanyID, id ID, old, next *T) {
		var from, to V
		var was, is E
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
	}
}

// IndexedEach is [Indexed] for a row that stands under several values, or under none.
func IndexedEach[V, ID ~string, T any](x Index[V, ID], of func(row *T) (values []V)) Side[ID, T] {
	return func(tx *Tx, company CompanyID, id ID, old, next *T) {
		var from, to []V
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
	}
}

// A MeshTable is a typed set of rows that belong to no company, stored under
// m/<name>/<id>.
type MeshTable[ID ~string, T any] struct{ rows rows }

// NewMeshTable returns the table called name. T must not be able to hold a float.
func NewMeshTable[ID ~string, T any](name string) *MeshTable[ID, T] {
	checkType[T]()
	return &MeshTable[ID, T]{newRows[T](name)}
}

// Key returns the key of a row.
func (t *MeshTable[ID, T]) Key(id ID) []byte { return Key("m", t.rows.name, string(id)) }

// Get returns the row with the given ID.
func (t *MeshTable[ID, T]) Get(tx *Tx, id ID) (row T, ok bool) {
	if p := t.rows.get(tx, tx.key("m", t.rows.name, string(id))); p != nil {
		return *p.(*T), true
	}
	return row, false
}

// Look returns the row with the given ID as [Table.Look] does.
func (t *MeshTable[ID, T]) Look(tx *Tx, id ID) *T {
	if p := t.rows.look(tx, tx.key("m", t.rows.name, string(id))); p != nil {
		return p.(*T)
	}
	return nil
}

// Put writes a row and returns its encoding.
func (t *MeshTable[ID, T]) Put(tx *Tx, id ID, row T) []byte {
	return t.rows.put(tx, tx.key("m", t.rows.name, string(id)), &row)
}

// Delete removes a row.
func (t *MeshTable[ID, T]) Delete(tx *Tx, id ID) { tx.Delete(tx.key("m", t.rows.name, string(id))) }

// All yields the rows by ID.
func (t *MeshTable[ID, T]) All(tx *Tx) iter.Seq2[ID, T] {
	return func(yield func(ID, T) bool) {
		t.rows.each(tx, Key("m", t.rows.name, ""), func(id string, p any) bool { return yield(ID(id), *p.(*T)) })
	}
}

// rows reads and writes the rows of a table by key, as pointers to T, the type of its rows. It
// is not generic: the compiler makes the methods of a generic type anew for each table, in each
// package that imports one.
type rows struct {
	name  string
	share sharing
	hot   bool
	flat  int                // bytes of a T that is kept in decoded form, without what it refers to
	fresh func() any         // a new T
	clone func(row any) any  // a copy of a T that shares nothing with it; only where share is not shareNot
	holds func(row any) bool // whether a row is a T
}

func newRows[T any](name string) rows {
	r := rows{name: name, share: sharingOf[T](), fresh: func() any { return new(T) },
		holds: func(row any) bool { _, ok := row.(*T); return ok }}
	switch r.share {
	case shareNot:
		return r
	case shareCopy:
		r.clone = func(row any) any { c := *row.(*T); return &c }
	case shareClone:
		r.clone = func(row any) any { c := row.(cloner[T]).Clone(); return &c }
	}
	r.flat = int(reflect.TypeFor[T]().Size())
	return r
}

// heated is r for a hot table.
func (r *rows) heated() rows {
	if r.share == shareNot {
		panic("ledger: rows of " + r.name + " can not be kept")
	}
	hot := *r
	hot.hot = true
	return hot
}

func (r *rows) keyOf(tx *Tx, company CompanyID, id string) []byte {
	return tx.key("c", string(company), r.name, id)
}

// get returns a row of which the caller may change a copy, nil for none.
func (r *rows) get(tx *Tx, key []byte) any {
	row, kept := r.find(tx, key)
	if kept && r.share == shareClone {
		return r.clone(row)
	}
	return row
}

// look returns a row that the caller must not change, nil for none.
func (r *rows) look(tx *Tx, key []byte) any {
	row, _ := r.find(tx, key)
	return row
}

// find returns a row, nil for none, and whether others may be given the same one.
func (r *rows) find(tx *Tx, key []byte) (row any, kept bool) {
	if tx.view != nil {
		return r.view(tx.view.row(key, r.flat))
	}
	b, ok := tx.Get(key)
	if !ok {
		return nil, false
	}
	if tx.cache == nil || r.share == shareNot || len(b) == 0 {
		return r.decode(b), false
	}
	if row = tx.cache.get(b); row == nil {
		row = r.decode(b)
		tx.cache.put(b, row, r.flat)
	}
	return row, true
}

// view decodes a row of a view, once for all views when that may be shared.
func (r *rows) view(found *readRow) (row any, kept bool) {
	switch {
	case found.value == nil:
		return nil, false
	case r.share == shareNot:
		return r.decode(found.value), false
	}
	if v := found.decoded.Load(); v != nil && r.holds(*v) {
		return *v, true
	}
	if row = r.decode(found.value); found.decodes == 0 { // it is not counted
		return row, false
	}
	found.decoded.Store(&row)
	return row, true
}

// put does not keep row in decoded form but for a hot table: what a later get
// returns must follow from the stored bytes alone, or nodes with colder caches
// would read other values (an empty slice for a nil one).
func (r *rows) put(tx *Tx, key []byte, row any) []byte {
	b := Marshal(row)
	tx.Set(key, b)
	if r.hot && tx.cache != nil {
		kept := r.clone(row)
		if CheckHot && !reflect.DeepEqual(kept, r.decode(b)) {
			panic(fmt.Sprintf("ledger: row of %s does not read back as it was put: %+v", r.name, row))
		}
		tx.cache.put(b, kept, r.flat)
	}
	return b
}

// CheckHot makes the rows of hot tables be read back as they are put, and a
// difference a panic. Tests set it before anything is applied.
var CheckHot bool

// each yields the rows whose keys begin with prefix, by what follows it there. The caller may change a
// copy of each.
func (r *rows) each(tx *Tx, prefix []byte, yield func(id string, row any) bool) {
	if tx.view != nil {
		if ids, ok := tx.view.ids(prefix); ok {
			for _, id := range ids {
				row := r.get(tx, append(prefix[:len(prefix):len(prefix)], id...))
				if row != nil && !yield(id, row) {
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

func (r *rows) decode(b []byte) any {
	row := r.fresh()
	if err := Unmarshal(b, row); err != nil {
		panic("ledger: row of " + r.name + " does not decode: " + err.Error())
	}
	return row
}

// An Index is a set of row IDs of one company under a sortable value, stored
// as c/<company>/<name>/<value>/<id> with an empty value. V and ID say what the values
// and the IDs are: IDs of other rows, or texts.
type Index[V, ID ~string] struct{ name string }

// NewIndex returns the index called name, conventionally <table>-<field>.
func NewIndex[V, ID ~string](name string) Index[V, ID] { return Index[V, ID]{name} }

// Add enters id under value.
func (x Index[V, ID]) Add(tx *Tx, company CompanyID, value V, id ID) {
	tx.Set(tx.key("c", string(company), x.name, string(value), string(id)), nil)
}

// Remove takes id out from under value.
func (x Index[V, ID]) Remove(tx *Tx, company CompanyID, value V, id ID) {
	tx.Delete(tx.key("c", string(company), x.name, string(value), string(id)))
}

// IDs yields the IDs under value, in order, backwards when reverse is set.
func (x Index[V, ID]) IDs(tx *Tx, company CompanyID, value V, reverse bool) iter.Seq[ID] {
	prefix := Key("c", string(company), x.name, string(value), "")
	return func(yield func(ID) bool) {
		if tx.view != nil {
			if ids, ok := tx.view.ids(prefix); ok {
				yieldIDs(ids, reverse, yield)
				return
			}
		}
		for k := range tx.Scan(prefix, PrefixEnd(prefix), reverse) {
			if !yield(ID(bytes.TrimPrefix(k, prefix))) {
				return
			}
		}
	}
}
