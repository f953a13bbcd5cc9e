package core

import "github.com/selvage-mesh/selvage/ledger"

// DecodeRow decodes a row. A row that does not decode is a broken invariant.
func DecodeRow[T any](b []byte) (v T) {
	if err := ledger.Unmarshal(b, &v); err != nil {
		panic("company: row does not decode: " + err.Error())
	}
	return v
}

// Reindex moves id from one value of x to another; "" is not indexed.
func Reindex[V, ID ~string](tx *ledger.Tx, x ledger.Index[V, ID], company ledger.CompanyID, from, to V, id ID) {
	if from == to {
		return
	}
	if from != "" {
		x.Remove(tx, company, from, id)
	}
	if to != "" {
		x.Add(tx, company, to, id)
	}
}
