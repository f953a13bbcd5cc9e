package node

import (
	"context"
	"time"

	"github.com/selvage-mesh/selvage/adapter/live"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/sandbox"
)

// stopped reports whether everything is stopped, as far as this node knows. A node
// that does not hear of it stops with its lease.
func (n *Node) stopped() (yes bool) {
	err := n.ledger.View(func(tx *ledger.Tx) error { _, yes = entity.Halted(tx); return nil })
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

// denied is what ends something at work in the sandbox that may not go on.
func denied(why company.Denial) *sandbox.Error {
	if why == company.DeniedMeshStopped {
		return &sandbox.Error{Code: sandbox.GovernanceDenied, Message: "everything was stopped"}
	}
	return &sandbox.Error{Code: sandbox.GovernanceDenied, Message: "it may not go on: " + string(why)}
}

// whileMayAct returns a context that ends when this node may act no more, which may
// be now, or when over says why what is done may not go on; that is then its cause.
func (n *Node) whileMayAct(ctx context.Context, over func(*ledger.Tx) company.Denial) (_ context.Context, stop func()) {
	ctx, end := context.WithCancelCause(ctx)
	look := func() {
		why := company.Denial("")
		err := n.ledger.View(func(tx *ledger.Tx) error { why = over(tx); return nil })
		switch {
		case err == nil && why != "":
			end(denied(why))
		case err != nil || !n.work.worker.Holds():
			end(nil)
		}
	}
	look()
	go func() { every(ctx, live.AuthorityEvery, look) }()
	return ctx, func() { end(nil) }
}

// authorityWhile is authority for something at work, and 0 from when over says why
// that may not go on.
func (n *Node) authorityWhile(over func(*ledger.Tx) company.Denial) func() time.Duration {
	return func() time.Duration {
		why := company.Denial("")
		if err := n.ledger.View(func(tx *ledger.Tx) error { why = over(tx); return nil }); err != nil || why != "" {
			return 0
		}
		return n.work.worker.Authority()
	}
}
