package ledger

import (
	"bytes"
	"fmt"
	"testing"
)

func TestANewIDIsKnownToBeNew(t *testing.T) {
	const company = "c/11111111-1111-4111-8111-111111111111/"
	id := func(n int) string { return fmt.Sprintf("%08x-0000-7000-8000-000000000000", n) }
	asked := 0
	r := rising{map[string]string{}}
	absent := func(key string) bool {
		return r.absent([]byte(key), func(table []byte) []byte {
			asked++
			return append(bytes.Clone(table), id(5)...)
		})
	}
	for _, c := range []struct {
		key    string
		absent bool
	}{
		{company + "cost-id/" + id(6), true},
		{company + "cost-id/" + id(5), false}, // there
		{company + "cost-id/" + id(4), false}, // perhaps
		{company + "issue/" + id(9), true},
		{company + "issue-status/todo/" + id(9), false}, // not a table
		{company + "issue/77777777-7777-4777-8777-777777777777", false},
		{"m/node/" + id(9), false},
		{id(9), false},
	} {
		if got := absent(c.key); got != c.absent {
			t.Errorf("absent(%s) = %v", c.key, got)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times for the last key of two tables", asked)
	}
	r.wrote(company + "cost-id/" + id(8))
	r.wrote(company + "cost-id/" + id(7))
	if absent(company+"cost-id/"+id(8)) || absent(company+"cost-id/"+id(7)) || !absent(company+"cost-id/"+id(9)) {
		t.Error("what was written is not followed")
	}
}

func TestRowsOfAHotTableReadBackAsPut(t *testing.T) {
	CheckHot = true
	defer func() { CheckHot = false }()
	type row struct {
		Text string `cbor:"1,keyasint,omitempty"`
		N    int64  `cbor:"2,keyasint"`
	}
	hot := NewTable[string, row]("hot").Hot()
	l := newLedger(t)
	tx := l.apply.group
	hot.Put(tx, "co", "a", row{"x", 1})
	if got := hot.Look(tx, "co", "a"); got == nil || *got != (row{"x", 1}) {
		t.Errorf("Look = %+v", got)
	}
	hot.Put(tx, "co", "a", row{"y", 2})
	if got, ok := hot.Get(tx, "co", "a"); !ok || got != (row{"y", 2}) {
		t.Errorf("Get = %+v", got)
	}
	if hot.Look(tx, "co", "b") != nil {
		t.Error("a row that is not there")
	}
	defer func() {
		if recover() == nil {
			t.Error("a row that does not read back was put")
		}
	}()
	hot.Put(tx, "co", "a", row{"\xff", 3})
}
