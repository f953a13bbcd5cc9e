package ledger

import (
	"errors"
	"fmt"
	"slices"

	"github.com/selvage-mesh/selvage/identity"
)

var (
	// ErrNotMember is returned by CheckBatch for a batch of a node that is not,
	// or no longer, in the roster.
	ErrNotMember = errors.New("not a member of this mesh")
	// ErrFounded is returned by CheckBatch for genesis in a mesh that has one.
	ErrFounded = errors.New("the mesh is founded already")
)

// CheckBatch is what the leader asks before it proposes a batch, so that
// nothing enters the log that would stop or burden every node: form, mesh,
// membership, known kinds, and the origin's signature (once, here). Errors wrap
// [ErrBatch], [ErrNotMember], [ErrFounded] or [ErrUpgrade].
func (l *Ledger) CheckBatch(data []byte) error {
	if len(data) > MaxBatchBytes+MaxBatchBytes/4 {
		return fmt.Errorf("%w: %d bytes", ErrBatch, len(data))
	}
	b, err := DecodeBatch(data)
	if err != nil {
		return err
	}
	if err := l.known(b); err != nil {
		return err
	}
	for i, body := range b.Bodies {
		if body == nil {
			return fmt.Errorf("%w: command %d has no payload", ErrBatch, i)
		}
	}
	if slices.ContainsFunc(b.Commands, func(c Command) bool { return c.Kind == KindEpoch }) {
		return fmt.Errorf("%w: an epoch is founded by one node alone", ErrFounded)
	}
	mesh := l.Position().Mesh
	founding := b.Session == 0 && b.Commands[0].Kind == KindGenesis
	switch {
	case mesh == "" && !founding:
		return fmt.Errorf("%w: no mesh has been founded here", ErrNotMember)
	case mesh != "" && founding:
		return ErrFounded
	case mesh != "" && b.Mesh != mesh:
		return fmt.Errorf("%w: batch of mesh %s", ErrNotMember, b.Mesh.Short())
	case founding:
		var g Genesis
		if err := Unmarshal(b.Commands[0].Payload, &g); err != nil {
			return fmt.Errorf("%w: genesis: %w", ErrBatch, err)
		}
		return b.Verify(g.Founder.Key)
	}
	n, err := l.member(b.Origin)
	if err != nil {
		return err
	}
	if identity.NodeIDOf(n.Key) != b.Origin {
		return fmt.Errorf("%w: roster key of %s", ErrNotMember, b.Origin.Short())
	}
	return b.Verify(n.Key)
}

// members remembers roster rows between two changes of the roster, since the
// leader asks for one with every batch.
type members struct {
	rows   map[identity.NodeID]Node
	change uint64 // counts the changes, so that a row read before one is not kept after it
}

func (m *members) forget() {
	m.rows = nil
	m.change++
}

// member returns the roster row of a node that is a member now.
func (l *Ledger) member(id identity.NodeID) (n Node, err error) {
	l.mu.Lock()
	n, known := l.members.rows[id]
	change := l.members.change
	l.mu.Unlock()
	if known {
		return n, nil
	}
	err = l.View(func(tx *Tx) error {
		var ok bool
		if n, ok = FindNode(tx, id); !ok || !n.Member() {
			return fmt.Errorf("%w: node %s", ErrNotMember, id.Short())
		}
		return nil
	})
	if err != nil {
		return n, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.members.change == change {
		if l.members.rows == nil {
			l.members.rows = map[identity.NodeID]Node{}
		}
		l.members.rows[id] = n
	}
	return n, nil
}
