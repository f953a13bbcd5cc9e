package ledger

import (
	"slices"
	"testing"
)

type shelved struct {
	Shelf string `cbor:"1,keyasint,omitempty"`
	Place uint64 `cbor:"2,keyasint,omitempty"`
}

// A table keeps its indexes: a row stands under what it says now, and nowhere once it
// says nothing or is deleted.
func TestATableKeepsItsIndexes(t *testing.T) {
	byShelf, byPlace := NewIndex[string, string]("book-shelf"), NewIndex[string, string]("book-place")
	sides := 0
	books := NewTable[string, shelved]("book").
		Beside(Indexed(byShelf, func(b *shelved) string { return b.Shelf })).
		Beside(IndexedAs(byPlace, func(b *shelved, id string) (value, entry string) {
			return b.Shelf, Order(b.Place) +
				"." + id
		})).
		Beside(func(*Tx, CompanyID, string, *shelved, *shelved) { sides++ })
	tx := NewTx(emptyState{})
	check := func(step, shelf string, ids, places []string) {
		t.Helper()
		if got := slices.Collect(byShelf.IDs(tx, "c", shelf, false)); !slices.Equal(got, ids) {
			t.Errorf("%s: %q holds %v, want %v", step, shelf, got, ids)
		}
		if got := slices.Collect(byPlace.IDs(tx, "c", shelf, false)); !slices.Equal(got, places) {
			t.Errorf("%s: in order %q holds %v, want %v", step, shelf, got, places)
		}
	}
	books.Put(tx, "c", "a", shelved{"top", 2})
	books.Put(tx, "c", "b", shelved{"top", 1})
	check("two", "top", []string{"a", "b"}, []string{Order(1) + ".b", Order(2) + ".a"})
	books.Put(tx, "c", "a", shelved{"top", 1}) // only its place changes
	check("moved along", "top", []string{"a", "b"}, []string{Order(1) + ".a", Order(1) + ".b"})
	books.Put(tx, "c", "a", shelved{"low", 1})
	check("moved", "top", []string{"b"}, []string{Order(1) + ".b"})
	check("moved", "low", []string{"a"}, []string{Order(1) + ".a"})
	books.Put(tx, "c", "b", shelved{})
	check("on no shelf", "top", nil, nil)
	check("on no shelf", "", nil, nil)
	books.Delete(tx, "c", "a")
	check("deleted", "low", nil, nil)
	was := sides
	books.Delete(tx, "c", "a")
	if sides != was || sides != 6 {
		t.Errorf("the side was called %d times, %d of them for a row that is not there", sides, sides-was)
	}
}
