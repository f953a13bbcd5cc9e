package apitest

import (
	"strings"

	"github.com/selvage-mesh/selvage/ledger"
)

// Family returns the keys of a family of a company, without what all have in common.
func (h *Harness) Family(of ledger.CompanyID, name string) (keys []string) {
	h.T.Helper()
	err := h.Node.Ledger.View(func(tx *ledger.Tx) error {
		prefix := ledger.Key("c", string(of), name, "")
		for k := range tx.Prefix(prefix) {
			keys = append(keys, strings.TrimPrefix(string(k), string(prefix)))
		}
		return nil
	})
	if err != nil {
		h.T.Fatal(err)
	}
	return keys
}
