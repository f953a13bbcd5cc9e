package ledger

import (
	"errors"
	"fmt"

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
	var n Node
	err = l.View(func(tx *Tx) error {
		var ok bool
		if n, ok = FindNode(tx, b.Origin); !ok || !n.Member() {
			return fmt.Errorf("%w: node %s", ErrNotMember, b.Origin.Short())
		}
		return nil
	})
	if err != nil {
		return err
	}
	if identity.NodeIDOf(n.Key) != b.Origin {
		return fmt.Errorf("%w: roster key of %s", ErrNotMember, b.Origin.Short())
	}
	return b.Verify(n.Key)
}
