package node

import (
	"context"
	"time"

	"github.com/selvage-mesh/selvage/adapter/live"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/sandbox"
)

// stopped reports whether everything is stopped, as far as this node knows. A node
// that does not hear of it stops with its lease.
func (n *Node) stopped() (yes bool) {
	err := n.ledger.View(func(tx *ledger.Tx) error { _, yes = company.Halted(tx); return nil })
	return yes || err != nil
}

// authority is the reading of the clock until which this node may act for what is
// no run: services, commands of workspaces, tools. It is 0 while everything is stopped.
func (n *Node) authority() time.Duration {
	if n.stopped() {
		return 0
	}
	return n.work.worker.Authority()
}

// errStopped ends what is at work in the sandbox when everything is stopped.
var errStopped = &sandbox.Error{Code: sandbox.GovernanceDenied, Message: "everything was stopped"}

// whileMayAct returns a context that ends when this node may act no more, which may
// be now, with errStopped as its cause where that is why.
func (n *Node) whileMayAct(ctx context.Context) (_ context.Context, stop func()) {
	ctx, end := context.WithCancelCause(ctx)
	look := func() {
		halted := false
		err := n.ledger.View(func(tx *ledger.Tx) error { _, halted = company.Halted(tx); return nil })
		switch {
		case halted:
			end(errStopped)
		case err != nil || !n.work.worker.Holds():
			end(nil)
		}
	}
	look()
	go func() { every(ctx, live.AuthorityEvery, look) }()
	return ctx, func() { end(nil) }
}
