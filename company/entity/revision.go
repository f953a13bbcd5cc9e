package entity

import (
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Revision is one change of an agent's configuration. The row has both configurations
// with their values sealed, for rollbacks. The API shows them redacted.
type Revision struct {
	ID         string           `cbor:"1,keyasint" json:"id"`
	Company    ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Agent      string           `cbor:"3,keyasint" json:"agentId"`
	ByAgent    core.NullText    `cbor:"4,keyasint,omitempty" json:"createdByAgentId"`
	ByUser     core.NullText    `cbor:"5,keyasint,omitempty" json:"createdByUserId"`
	Source     string           `cbor:"6,keyasint" json:"source"`
	RolledBack core.NullText    `cbor:"7,keyasint,omitempty" json:"rolledBackFromRevisionId"`
	Changed    []string         `cbor:"8,keyasint" json:"changedKeys"`
	Before     json.RawMessage  `cbor:"9,keyasint" json:"beforeConfig"`
	After      json.RawMessage  `cbor:"10,keyasint" json:"afterConfig"`
	CreatedAt  core.Time        `cbor:"11,keyasint" json:"createdAt"`
}

// Revisions are keyed by <agent>.<height>, oldest first.
var Revisions = ledger.NewTable[string, Revision]("agent-revision")

// RevisionsOf returns the changes of an agent's configuration, redacted, newest first.
func RevisionsOf(tx *ledger.Tx, company ledger.CompanyID, agent string) []Revision {
	out := []Revision{}
	for _, v := range tx.Prefix(Revisions.Key(company, agent+".")) {
		r := core.DecodeRow[Revision](v)
		r.Before, r.After = conceal.RedactConfig(r.Before), conceal.RedactConfig(r.After)
		out = append(out, r)
	}
	slices.Reverse(out)
	return out
}
