package companytest

import "github.com/selvage-mesh/selvage/ledger"

// Count returns how many rows a table has.
func (d *Desk) Count(table string) (n int) {
	for range d.Tx.Prefix(ledger.Key("c", string(d.Company), table, "")) {
		n++
	}
	return n
}
