package node

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/ledger"
)

// Submit submits a command and returns its final outcome. An error means that the
// outcome is unknown, or that the command was certainly not applied; see
// consensus.Proposer.
func (n *Node) Submit(ctx context.Context, cmd ledger.Command) (ledger.Receipt, error) {
	if err := n.mayWrite(); err != nil {
		return ledger.Receipt{}, err
	}
	return n.submit(ctx, cmd)
}

// submit is for commands that nobody waits for: without a quorum it waits for one until
// ctx ends.
func (n *Node) submit(ctx context.Context, cmd ledger.Command) (ledger.Receipt, error) {
	for {
		receipt, err := n.proposer.Submit(ctx, cmd)
		if !errors.Is(err, consensus.ErrNoQuorum) || errors.Is(err, consensus.ErrOutcomeUnknown) || ctx.Err() != nil {
			return receipt, err
		}
	}
}

// An asked node is the node as the API uses it: a waiting caller soon gets an error if
// there is no quorum.
type asked struct{ *Node }

func (n asked) Submit(ctx context.Context, cmd ledger.Command) (ledger.Receipt, error) {
	if err := n.mayWrite(); err != nil {
		return ledger.Receipt{}, err
	}
	ctx, stop := n.consensus.Patient(ctx)
	defer stop()
	return n.proposer.Submit(ctx, cmd)
}

// View runs f on the state in the given mode and returns the least index of that state.
// A default read waits until this node has AtLeast; a strong one until it has everything
// that was acknowledged before the call.
func (n *Node) View(ctx context.Context, at ledger.Read, f func(*ledger.Tx) error) (applied uint64, err error) {
	index := at.AtLeast
	if at.Mode == ledger.ReadStrong {
		now, err := n.consensus.ReadIndex(ctx)
		if err != nil {
			return 0, fmt.Errorf("strong read: %w", err)
		}
		index = max(index, now)
	}
	if at.Mode != ledger.ReadStale && index > 0 {
		if err := n.ledger.WaitApplied(ctx, index); err != nil {
			return 0, fmt.Errorf("wait for index %d: %w", index, err)
		}
	}
	applied = n.ledger.Applied()
	return applied, n.ledger.View(f)
}

// Entries yields the entries above a height and waits for new ones.
func (n *Node) Entries(ctx context.Context, after uint64) iter.Seq2[ledger.Entry, error] {
	return n.ledger.Entries(ctx, after)
}

// Answers returns nil if this node's state can be read, whatever the mesh does, and an
// error if that takes longer than ctx.
func (n *Node) Answers(ctx context.Context) error {
	done := make(chan error, 1)
	n.spawn(func(context.Context) { done <- n.ledger.View(func(*ledger.Tx) error { return nil }) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the state can not be read: %w", ctx.Err())
	case <-n.ctx.Done():
		return n.ctx.Err()
	}
}

// Ready returns nil if this node can serve: it writes its log, applies, and has, or just
// received, everything that the mesh has acknowledged.
func (n *Node) Ready(ctx context.Context) error {
	if err := n.mayWrite(); err != nil {
		return err
	}
	if err := n.consensus.Healthy(); err != nil {
		return err
	}
	if err := n.ledger.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	index, err := n.consensus.ReadIndex(ctx)
	if err != nil {
		return fmt.Errorf("%w: no leader answers: %w", ErrNotReady, err)
	}
	if err := n.ledger.WaitApplied(ctx, index); err != nil {
		return fmt.Errorf("%w: behind, at %d of %d", ErrNotReady, n.ledger.Applied(), index)
	}
	return nil
}
