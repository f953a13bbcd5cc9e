package rules

import "github.com/selvage-mesh/selvage/ledger"

// Rows of hot tables are checked in every test of this package.
func init() { ledger.CheckHot = true }
