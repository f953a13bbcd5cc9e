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

// stopped reports whether everything is stopped, as far as this node knows. A node that
// can not learn of it stops when its lease ends.
func (n *Node) stopped() (yes bool) {
	err := n.ledger.View(func(tx *ledger.Tx) error { _, yes = entity.Halted(tx); return nil })
	return yes || err != nil
}

// authority returns the clock reading until which this node may act for work that is not
// a run: services, commands of workspaces, tools. It is 0 while everything is stopped.
func (n *Node) authority() time.Duration {
	if n.stopped() {
		return 0
	}
	return n.work.worker.Authority()
}

// denied is the error that ends work in the sandbox that is no longer allowed.
func denied(why company.Denial) *sandbox.Error {
	if why == company.DeniedMeshStopped {
		return &sandbox.Error{Code: sandbox.GovernanceDenied, Message: "everything was stopped"}
	}
	return &sandbox.Error{Code: sandbox.GovernanceDenied, Message: "it may not go on: " + string(why)}
}

// whileMayAct returns a context that ends when this node may no longer act, possibly at
// once, or when over returns a denial. The denial is then the context's cause.
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

// authorityWhile returns a function like authority for work in progress, which returns 0
// as soon as over returns a denial.
func (n *Node) authorityWhile(over func(*ledger.Tx) company.Denial) func() time.Duration {
	return func() time.Duration {
		why := company.Denial("")
		if err := n.ledger.View(func(tx *ledger.Tx) error { why = over(tx); return nil }); err != nil || why != "" {
			return 0
		}
		return n.work.worker.Authority()
	}
}
