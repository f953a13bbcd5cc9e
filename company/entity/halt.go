package entity

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Halt is the emergency stop of the whole mesh. While it exists no run starts, no wake is
// acted on and no money is reserved. Queued runs stay queued.
type Halt struct {
	By     string    `cbor:"1,keyasint" json:"by"` // the person's ID
	Reason string    `cbor:"2,keyasint,omitempty" json:"reason"`
	At     core.Time `cbor:"3,keyasint" json:"at"`
}

var Halts = ledger.NewMeshTable[string, Halt]("halt")

// AllHalted is the ID of the only halt.
const AllHalted = "all"

// Halted returns the emergency stop, if the mesh is under one.
func Halted(tx *ledger.Tx) (Halt, bool) { return Halts.Get(tx, AllHalted) }
