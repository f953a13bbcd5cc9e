package company

import "github.com/selvage-mesh/selvage/ledger"

// Extras says which kinds of rows an issue may have beside its own, so that reading an
// issue without them scans nothing: c/<company>/issue-extra/<issue>, one byte. The first
// document, product or waiting issue sets its bit, which is never cleared.
type Extras byte

const (
	HasDocuments Extras = 1 << iota
	HasProducts
	HasWaiting  // other issues wait or waited for this one
	HasWatchdog // an agent watches or watched it
)

func extrasKey(company ledger.CompanyID, issue string) []byte {
	return ledger.Key("c", string(company), "issue-extra", issue)
}

// ExtrasOf returns what an issue may have.
func ExtrasOf(tx *ledger.Tx, company ledger.CompanyID, issue string) Extras {
	if v, ok := tx.Get(extrasKey(company, issue)); ok && len(v) == 1 {
		return Extras(v[0])
	}
	return 0
}

func AddExtra(tx *ledger.Tx, company ledger.CompanyID, issue string, x Extras) {
	if old := ExtrasOf(tx, company, issue); old&x != x {
		tx.Set(extrasKey(company, issue), []byte{byte(old | x)})
	}
}
