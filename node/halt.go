package node

import (
	"context"
	"time"

	"github.com/selvage-mesh/selvage/adapter/live"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/ledger"
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

// whileMayAct returns a context that ends when this node may act no more; ok is
// false when it may not now.
func (n *Node) whileMayAct(ctx context.Context) (_ context.Context, stop context.CancelFunc, ok bool) {
	ctx, stop = context.WithCancel(ctx)
	if n.stopped() || !n.work.worker.Holds() {
		stop()
		return ctx, stop, false
	}
	go func() {
		every(ctx, live.AuthorityEvery, func() {
			if n.stopped() || !n.work.worker.Holds() {
				stop()
			}
		})
	}()
	return ctx, stop, true
}
