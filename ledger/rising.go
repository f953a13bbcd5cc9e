package ledger

// rising knows, of tables whose IDs rise with time (UUIDs of version 7), a key
// that no key of the table lies above. A rule that asks whether a new ID is taken
// is answered from here: the state would have to be searched, level by level, for
// what is not there. It holds what follows from the committed state, as the rows
// of [rowCache] do, and decides nothing.
type rising struct{ tops map[string]string } // by what all keys of the table begin with

// risingTable returns what all keys of key's table begin with, when key ends in
// the table's name and a UUID of version 7.
func risingTable[T ~string | ~[]byte](key T) (table T, ok bool) {
	at := len(key) - 36
	if at < 1 || key[at+14] != '7' || key[at-1] != '/' || key[at+8] != '-' || key[at+13] != '-' || key[at+18] != '-' ||
		key[at+23] != '-' {
		return table, false
	}
	table = tableOf(key)
	return table, len(table) == at
}

// absent reports whether key certainly lies above all keys of its table; last
// finds a table's last key, once.
func (r *rising) absent(key []byte, last func(table []byte) []byte) bool {
	table, ok := risingTable(key)
	if !ok {
		return false
	}
	top, known := r.tops[string(table)]
	if !known {
		if len(r.tops) >= risingTables {
			clear(r.tops)
		}
		top = string(last(table))
		r.tops[string(table)] = top
	}
	return string(key) > top
}

// wrote notes a key that was committed.
func (r *rising) wrote(key string) {
	table, ok := risingTable(key)
	if !ok {
		return
	}
	if top, known := r.tops[table]; known && key > top {
		r.tops[table] = key
	}
}
