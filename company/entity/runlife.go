package entity

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// MaxRunAttempts bounds how often work is started because its node was lost: the first run
	// and two retries.
	MaxRunAttempts = 3
	// MaxFollowups bounds the runs that are queued because the run before succeeded without a
	// decision about its issue. After that the issue is blocked for the board.
	MaxFollowups = 1
	// MaxTransientRetries and TransientDelay bound the retries of a run that failed for a passing
	// reason of its upstream; the delay doubles each time.
	MaxTransientRetries = 2
	TransientDelay      = core.Time(30_000)
	// MaxExcerpt bounds each excerpt of output in a run's row, in bytes.
	MaxExcerpt = 16 << 10
	// MaxLiveRuns bounds the queued and running runs of one agent: one command ends all of them.
	MaxLiveRuns = 100
)

// An OutputMark is the current size of a run's log.
type OutputMark struct {
	At     core.Time `cbor:"1,keyasint"`
	Seq    int64     `cbor:"2,keyasint"`
	Stream string    `cbor:"3,keyasint"`
	Bytes  int64     `cbor:"4,keyasint"`
}

// NodeLost is the payload of "node.lost", by which the leader ends a node's session because
// its lease has passed.
type NodeLost struct {
	Node    string `cbor:"1,keyasint"`
	Session uint64 `cbor:"2,keyasint"`
	// Why is the reason as far as the leader knows it, at most MaxLossReason bytes.
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

// A RunCost is the cost of a run outside the model gateway, as its adapter reports it: of
// agents that call vendors with keys of their own. It is booked once a run, as a reported
// cost: nothing was reserved for it, and the report may be wrong.
type RunCost struct {
	Provider    string     `cbor:"1,keyasint"`
	Model       string     `cbor:"2,keyasint"`           // "" for unknown
	BillingType string     `cbor:"3,keyasint,omitempty"` // "" for unknown
	Usage       Usage      `cbor:"4,keyasint"`
	Cost        core.Money `cbor:"5,keyasint,omitempty"`
	Priced      bool       `cbor:"6,keyasint,omitempty"` // Cost is known; false: the price is unknown
}
