package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// ErrEpoch ends a node whose mesh went on without it, in a later epoch.
var ErrEpoch = errors.New("the mesh has gone on in another epoch")

// A founding is an epoch that this node must found when it starts.
type founding struct {
	Reason string `cbor:"1,keyasint"` // ledger.EpochRecovered or EpochRestored
	Alone  bool   `cbor:"2,keyasint,omitempty"`
}

// A metEpoch is a later epoch that this node has met.
type metEpoch struct {
	Epoch uint64          `cbor:"1,keyasint"`
	Node  identity.NodeID `cbor:"2,keyasint"` // a node of that epoch
	At    int64           `cbor:"3,keyasint"` // ms since 1970
}

func (m metEpoch) err() error {
	return fmt.Errorf("%w: node %s is in epoch %d (met %s). This node's state is of an earlier one and may have "+
		"changes that the mesh does not: "+
		"keep its data directory until you know that nothing is missed. To follow the mesh, run selvage recover --follow "+
		"on this node, which sets the state aside; "+
		"if the mesh was restored from a backup, move the data directory away and join with a new token",
		ErrEpoch, m.Node.Short(), m.Epoch, time.UnixMilli(m.At).UTC().Format(time.RFC3339))
}

// epoch returns this node's epoch; 0 in the file means 1.
func (n *Node) epoch() uint64 { return max(1, n.member.Epoch) }

// onEpoch is called when the mesh is in a later epoch than this node, which is then no
// longer part of the mesh. It ignores reports of untrusted nodes.
func (n *Node) onEpoch(from, known identity.NodeID, epoch uint64) {
	if m, ok := n.roster.node(known); !ok || !m.Member() || m.Has(ledger.LabelUntrusted) {
		return
	}
	n.saving.Lock()
	defer n.saving.Unlock()
	if n.member.Met == nil {
		n.member.Met = &metEpoch{Epoch: epoch, Node: from, At: n.conf.Wall().UnixMilli()}
		if err := n.saveMember(); err != nil {
			n.log.Error("note that the mesh is in another epoch", "error", err)
		}
	}
	err := n.member.Met.err()
	n.halted.CompareAndSwap(nil, &err)
	n.stopWith(err)
}

// Follow prepares a stopped node that met a later epoch of its mesh: it sets the node's
// state aside, so that the node returns as a member without a state. kept is where the
// state was moved.
func Follow(dir, machine string) (kept string, err error) {
	m, err := loadMembership(dir)
	if err != nil {
		return "", err
	}
	if m.Met == nil {
		return "", errors.New("this node has met no later epoch of its mesh: there is nothing to follow")
	}
	keys, err := identity.Load(dir, machine)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, "store")); err == nil {
		if err := withStore(dir, false, m.remember(keys.ID())); err != nil {
			return "", err
		}
		if err := m.save(dir); err != nil {
			return "", err
		}
	}
	if _, err := identity.Reincarnate(dir, machine); err != nil {
		return "", err
	}
	kept = filepath.Join(dir, fmt.Sprintf("store.epoch-%d", max(1, m.Epoch)))
	if err := os.Rename(filepath.Join(dir, "store"), kept); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if err := os.RemoveAll(filepath.Join(dir, "snapshots")); err != nil {
		return "", err
	}
	m.Epoch, m.Met, m.Founding = m.Met.Epoch, nil, nil
	return kept, m.save(dir)
}

// remember copies the members and keys of the state into the membership file: without
// its state a node knows no other node.
func (m *membership) remember(self identity.NodeID) func(*store.Store, *ledger.Ledger) error {
	return func(_ *store.Store, l *ledger.Ledger) (err error) {
		if m.Wrapped, err = newestKeys(l, self, m.Wrapped); err != nil {
			return err
		}
		return l.View(func(tx *ledger.Tx) error {
			if all := ledger.Roster(tx); len(all) > 0 {
				m.Roster = all
			}
			return nil
		})
	}
}

// foundEpoch makes this node's epoch the mesh's. It continues an attempt that was
// interrupted anywhere.
func (n *Node) foundEpoch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, foundTimeout)
	defer cancel()
	for _, s := range n.consensus.Servers() {
		if s.Node != n.ID() {
			return fmt.Errorf("found epoch %d: node %s has a say too", n.epoch(), s.Node.Short())
		}
	}
	if err := n.untilLeads(ctx); err != nil {
		return fmt.Errorf("found epoch %d: %w", n.epoch(), err)
	}
	n.founds.Store(true)
	defer n.founds.Store(false)
	for now := uint64(0); now != n.epoch(); {
		var head ledger.Position
		if err := n.ledger.View(func(tx *ledger.Tx) error {
			now, head = ledger.CurrentEpoch(tx).Number, tx.Position()
			return nil
		}); err != nil {
			return err
		}
		if now == n.epoch() {
			break
		}
		cmd := n.command(ledger.KindEpoch, "", ledger.EpochFound{
			Epoch: n.epoch(), Founder: n.self(), Admissions: n.admission(), Reason: n.member.Founding.Reason,
			Alone:  n.member.Founding.Alone,
			Height: head.Height, Head: head.Head, Wrapped: n.member.Wrapped, At: n.conf.Wall().UnixMilli(),
		})
		batch := ledger.EncodeBatch(n.Mesh(), n.keys.ID(), 0, 0, 0, []ledger.Command{cmd}, n.keys.Sign)
		result, _, err := n.consensus.Propose(ctx, batch)
		if (errors.Is(err, consensus.ErrOutcomeUnknown) || errors.Is(err, consensus.ErrBusy)) && ctx.Err() == nil {
			continue // on a slow machine it may be committed by now; it is founded only once
		} else if err != nil {
			return fmt.Errorf("found epoch %d: %w", n.epoch(), err)
		}
		receipts, err := ledger.DecodeReceipts(result)
		if err != nil {
			return err
		}
		if err := receipts[0].Err(); err != nil {
			if ctx.Err() == nil && n.ledger.Position().Height != head.Height {
				continue // this node has written an entry in between: the epoch begins after that
			}
			return fmt.Errorf("found epoch %d: %w", n.epoch(), err)
		}
	}
	n.alone.Store(false)
	n.refreshRoster()
	n.log.Warn("this node has founded a new epoch of the mesh", "epoch", n.epoch(), "reason", n.member.Founding.Reason)
	n.saving.Lock()
	defer n.saving.Unlock()
	n.member.Founding = nil
	return n.saveMember()
}

// checkBatch is called by consensus before it proposes a batch as leader. Only a node
// that founds an epoch may propose a batch that founds one.
func (n *Node) checkBatch(data []byte) error {
	if n.founds.Load() && n.ledger.CheckEpoch(data, n.ID()) == nil {
		return nil
	}
	return n.ledger.CheckBatch(data)
}
