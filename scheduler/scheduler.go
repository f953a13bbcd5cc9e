// Package scheduler decides who works next and on which node, and executes the runs
// that were placed on this node.
//
// The leader's part ([Leader]) fires timers, places queued runs and declares nodes
// lost. It runs only while this node leads, and all its decisions are commands. The
// node's part ([Worker]) starts the runs placed on its node through adapters, and
// renews the lease without which it must not act. Both follow the feed and look again
// at every tick, so a missed entry costs one tick.
package scheduler

import (
	"context"
	"crypto/rand"
	"iter"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Node is the part of a node that scheduling uses.
type Node interface {
	// Submit submits a command and returns its final outcome. An error means that the
	// outcome is unknown.
	Submit(context.Context, ledger.Command) (ledger.Receipt, error)
	// View reads this node's state and returns the raft index of that state.
	View(context.Context, ledger.Read, func(*ledger.Tx) error) (applied uint64, err error)
	// Entries yields entries above a height and waits for new ones.
	Entries(ctx context.Context, after uint64) iter.Seq2[ledger.Entry, error]
}

// An Adapter executes runs of one adapter type.
type Adapter interface {
	// Invoke returns when the run has ended and every process that it started is gone.
	// When ctx ends it stops the run at once, without grace.
	Invoke(ctx context.Context, run company.Invocation) company.Outcome
	// Status returns the phase of a run, "" when it does not run here.
	Status(run string) entity.Phase
	// Cancel asks a run to end within the grace of its agent. Invoke returns when it has.
	Cancel(run, reason string)
}

// A Readier is an [Adapter] that can prepare for a run. Ready is called when a run was
// placed on this node; it does not block.
type Readier interface{ Ready() }

// A Log stores the output of one run. It is safe for concurrent use.
type Log interface {
	Write(stream, text string)
	Digest() company.LogDigest
	Close() (company.LogDigest, error)
}

// A Clock reads the boot-time clock, which also runs while the machine is suspended.
// Tests use virtual time.
type Clock func() time.Duration

// A Beat is a node's keep-alive to the leader: its session and its capacity. Key 4 held
// labels, which the roster has now; readers ignore it.
type Beat struct {
	Node     identity.NodeID `cbor:"1,keyasint"`
	Session  uint64          `cbor:"2,keyasint"`
	Adapters []string        `cbor:"3,keyasint,omitempty"` // types, sorted
	Slots    int             `cbor:"5,keyasint"`           // runs that it executes at the same time
	Facts    Facts           `cbor:"6,keyasint,omitempty"`
	Want     int64           `cbor:"7,keyasint,omitempty"` // the lease that it asks for, in ms; 0: the usual length
	Late     int64           `cbor:"8,keyasint,omitempty"` // the node's delay at the moment, in ms
}

// Facts describe a node and its load, for placement. A zero value means unknown.
type Facts struct {
	OS       string   `cbor:"1,keyasint,omitempty"` // as in GOOS
	Arch     string   `cbor:"2,keyasint,omitempty"`
	CPUs     int64    `cbor:"3,keyasint,omitempty"`
	MemoryMB int64    `cbor:"4,keyasint,omitempty"` // total
	FreeMB   int64    `cbor:"5,keyasint,omitempty"` // available
	Load     int64    `cbor:"6,keyasint,omitempty"` // of the last minute, in thousandths of a processor
	GPUs     int64    `cbor:"7,keyasint,omitempty"`
	Programs []string `cbor:"8,keyasint,omitempty"` // installed programs that adapters start; sorted

	// Measured when the node started: to hash 64 KiB, to sync the disk, to search 500 vectors,
	// and a tick of the mind.
	HashMicros   int64 `cbor:"9,keyasint,omitempty"`
	SyncMicros   int64 `cbor:"10,keyasint,omitempty"`
	SearchMicros int64 `cbor:"11,keyasint,omitempty"`
	TickMicros   int64 `cbor:"12,keyasint,omitempty"`
}

// nodeCommand returns a command that the node itself gives.
func nodeCommand(self identity.NodeID, kind string, company ledger.CompanyID, payload any) ledger.Command {
	c := ledger.Command{
		Kind: kind, Company: company, Payload: ledger.Marshal(payload),
		Actor:      ledger.Actor{Type: "node", ID: string(self)},
		Credential: ledger.Credential{Kind: "node", ID: string(self)},
	}
	_, _ = rand.Read(c.Salt[:]) // never fails
	return c
}

// view reads this node's state. What is decided on it is checked again when the
// command is applied.
func view(ctx context.Context, n Node, f func(*ledger.Tx) error) error {
	_, err := n.View(ctx, ledger.Read{Mode: ledger.ReadStale}, f)
	return err
}
