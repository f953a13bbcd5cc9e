package ledger

import (
	"bytes"
	"iter"
)

// A Table is a typed set of rows of one company, stored under
// c/<company>/<name>/<id>. Rows are values: change the copy and Put it.
type Table[T any] struct{ name string }

// NewTable returns the table called name. T must not be able to hold a float.
func NewTable[T any](name string) Table[T] {
	checkType[T]()
	return Table[T]{name}
}

// Key returns the key of a row.
func (t Table[T]) Key(company, id string) []byte { return Key("c", company, t.name, id) }

// Get returns the row with the given ID.
func (t Table[T]) Get(tx *Tx, company, id string) (row T, ok bool) {
	b, ok := tx.Get(t.Key(company, id))
	if !ok {
		return row, false
	}
	return t.decode(b), true
}

// Put writes a row and returns its encoding.
func (t Table[T]) Put(tx *Tx, company, id string, row T) []byte {
	b := Marshal(row)
	tx.Set(t.Key(company, id), b)
	return b
}

// Delete removes a row.
func (t Table[T]) Delete(tx *Tx, company, id string) { tx.Delete(t.Key(company, id)) }

// All yields the rows of company by ID.
func (t Table[T]) All(tx *Tx, company string) iter.Seq2[string, T] {
	prefix := Key("c", company, t.name, "")
	return func(yield func(string, T) bool) {
		for k, v := range tx.Prefix(prefix) {
			if !yield(string(bytes.TrimPrefix(k, prefix)), t.decode(v)) {
				return
			}
		}
	}
}

func (t Table[T]) decode(b []byte) (row T) {
	if err := Unmarshal(b, &row); err != nil {
		panic("ledger: row of " + t.name + " does not decode: " + err.Error())
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
	tx.Set(Key("c", company, x.name, value, id), nil)
}

// Remove takes id out from under value.
func (x Index) Remove(tx *Tx, company, value, id string) {
	tx.Delete(Key("c", company, x.name, value, id))
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
	return func(yield func(string) bool) {
		for k := range tx.Scan(prefix, PrefixEnd(prefix), reverse) {
			if !yield(string(bytes.TrimPrefix(k, prefix))) {
				return
			}
		}
	}
}
