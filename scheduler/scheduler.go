// Package scheduler decides who works next and on which node, and does the work
// that was placed on this one.
//
// The leader's part ([Leader]) fires timers, places queued runs and declares
// nodes lost; it runs only while this node leads, and all it decides are
// commands. The node's part ([Worker]) starts what was placed on it through
// adapters, and holds the lease without which it may not act. Both follow the
// feed and look again at every tick, so a missed entry costs a moment only.
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

// Node is what scheduling needs of the node it runs on.
type Node interface {
	// Submit carries a command out and returns its one final outcome. An error
	// means that the outcome is not known.
	Submit(context.Context, ledger.Command) (ledger.Receipt, error)
	// View reads this node's state and returns the raft index that it is of.
	View(context.Context, ledger.Read, func(*ledger.Tx) error) (applied uint64, err error)
	// Entries yields entries above a height and waits for new ones.
	Entries(ctx context.Context, after uint64) iter.Seq2[ledger.Entry, error]
}

// An Adapter carries runs of one adapter type out.
type Adapter interface {
	// Invoke works until the run is over and everything that it started is gone.
	// When ctx ends it stops at once, without grace.
	Invoke(ctx context.Context, run company.Invocation) company.Outcome
	// Status tells how far a run has come; "" when it is not at work here.
	Status(run string) entity.Phase
	// Cancel asks a run to end, with the grace that its agent is given; Invoke
	// returns when it did.
	Cancel(run, reason string)
}

// A Readier is an [Adapter] that has something to make ready for a run: Ready is
// called when one was placed here, and does not wait.
type Readier interface{ Ready() }

// A Log takes what one run writes. It is safe for concurrent use.
type Log interface {
	Write(stream, text string)
	Digest() company.LogDigest
	Close() (company.LogDigest, error)
}

// A Clock reads the boot-time clock, which also runs while the machine is
// suspended. In tests it is the bubble's.
type Clock func() time.Duration

// A Beat is a node's keep-alive to the leader: under which session it works,
// and what it could take on. Key 4 held labels, which are the roster's; a reader
// leaves it alone.
type Beat struct {
	Node     identity.NodeID `cbor:"1,keyasint"`
	Session  uint64          `cbor:"2,keyasint"`
	Adapters []string        `cbor:"3,keyasint,omitempty"` // types, sorted
	Slots    int             `cbor:"5,keyasint"`           // runs that it carries out at once
	Facts    Facts           `cbor:"6,keyasint,omitempty"`
	Want     int64           `cbor:"7,keyasint,omitempty"` // how long a lease it asks for, in ms; 0: the usual one
	Late     int64           `cbor:"8,keyasint,omitempty"` // how late it runs at the moment, in ms
}

// Facts are what a node is and how it does, for placement. The zero value of
// each means that it is not known.
type Facts struct {
	OS       string   `cbor:"1,keyasint,omitempty"` // as Go names it
	Arch     string   `cbor:"2,keyasint,omitempty"`
	CPUs     int64    `cbor:"3,keyasint,omitempty"`
	MemoryMB int64    `cbor:"4,keyasint,omitempty"` // in all
	FreeMB   int64    `cbor:"5,keyasint,omitempty"` // that could be had
	Load     int64    `cbor:"6,keyasint,omitempty"` // of the last minute, in thousandths of a processor
	GPUs     int64    `cbor:"7,keyasint,omitempty"`
	Programs []string `cbor:"8,keyasint,omitempty"` // of those that adapters start, which are there; sorted
}

// nodeCommand is a command of this node itself.
func nodeCommand(self identity.NodeID, kind, company string, payload any) ledger.Command {
	c := ledger.Command{
		Kind: kind, Company: company, Payload: ledger.Marshal(payload),
		Actor:      ledger.Actor{Type: "node", ID: string(self)},
		Credential: ledger.Credential{Kind: "node", ID: string(self)},
	}
	_, _ = rand.Read(c.Salt[:]) // never fails
	return c
}

// view reads what this node has. What is decided on it is checked again where
// the command is applied.
func view(ctx context.Context, n Node, f func(*ledger.Tx) error) error {
	_, err := n.View(ctx, ledger.Read{Mode: ledger.ReadStale}, f)
	return err
}
