package entity

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// MaxRunAttempts bounds how often work is started over because its node was
	// lost: the first run and two retries.
	MaxRunAttempts = 3
	// MaxFollowups bounds the runs that are queued because the one before ended
	// well but did not say what becomes of its issue. After that the issue is
	// blocked for the board to decide.
	MaxFollowups = 1
	// MaxTransientRetries and TransientDelay bound the retries of a run that
	// failed for a passing reason of its upstream; the delay doubles each time.
	MaxTransientRetries = 2
	TransientDelay      = core.Time(30_000)
	// MaxExcerpt bounds each excerpt of output that a run carries in its row.
	MaxExcerpt = 16 << 10
	// MaxLiveRuns bounds the queued and running runs of one agent: ending them is
	// one command.
	MaxLiveRuns = 100
)

// An OutputMark is how far a run's log has come.
type OutputMark struct {
	At     core.Time `cbor:"1,keyasint"`
	Seq    int64     `cbor:"2,keyasint"`
	Stream string    `cbor:"3,keyasint"`
	Bytes  int64     `cbor:"4,keyasint"`
}

// NodeLost ends a node's session because its lease passed; it is the payload of
// "node.lost", which the leader sends.
type NodeLost struct {
	Node    string `cbor:"1,keyasint"`
	Session uint64 `cbor:"2,keyasint"`
	// Why is what the leader knows of the reason, at most MaxLossReason bytes.
	Why string `cbor:"3,keyasint,omitempty"`
}

// PlacedRuns counts the live runs of an agent that have a node.
func PlacedRuns(tx *ledger.Tx, a WakeTarget) int {
	n := 0
	for _, r := range LiveRunsOfAgent(tx, a.Company, a.ID) {
		if r.Session != 0 {
			n++
		}
	}
	return n
}

// A RunCost is what a run cost besides the model gateway, as its adapter tells:
// of agents that call their vendors with keys of their own. It is booked once for
// a run, as a reported cost: nothing was set aside for it, and whoever told it may
// be wrong.
type RunCost struct {
	Provider    string     `cbor:"1,keyasint"`
	Model       string     `cbor:"2,keyasint"`           // "" for unknown
	BillingType string     `cbor:"3,keyasint,omitempty"` // "" for unknown
	Usage       Usage      `cbor:"4,keyasint"`
	Cost        core.Money `cbor:"5,keyasint,omitempty"`
	Priced      bool       `cbor:"6,keyasint,omitempty"` // Cost is known; else nobody knows the price
}
