package ledger

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/selvage-mesh/selvage/identity"
)

// KindEpoch founds a new epoch of a mesh. Persisted: do not rename.
const KindEpoch = "mesh.epoch"

// Why an epoch was founded. Persisted: do not rename.
const (
	EpochRecovered = "recover" // from one survivor, after the quorum was lost
	EpochRestored  = "restore" // from a backup
)

// An EpochFound is the payload of mesh.epoch. A mesh is in epoch 1 from its
// genesis. When its quorum is lost for good, or its state comes back from a
// backup, one node goes on alone: it founds the next epoch, and nodes of
// another epoch do not talk to each other. The chain goes on; the command is
// the first of the new epoch, alone in a batch without a session, and never
// passes a leader that has others ([Ledger.CheckBatch] refuses it).
type EpochFound struct {
	Epoch   uint64  `cbor:"1,keyasint"` // the present one + 1
	Founder NewNode `cbor:"2,keyasint"` // who signs the batch
	// Admissions lead from the founder to a member, as identity.EncodeAdmissions
	// has them; empty when the founder is a member itself.
	Admissions []byte   `cbor:"3,keyasint,omitempty"`
	Reason     string   `cbor:"4,keyasint"` // EpochRecovered or EpochRestored
	Height     uint64   `cbor:"5,keyasint"` // of the newest entry that the epoch stands on
	Head       Hash     `cbor:"6,keyasint"` // its hash
	Wrapped    NodeKeys `cbor:"7,keyasint"` // the keys of the present key epoch, for the founder
	// Alone strikes all other members off the roster: who was a member when a
	// backup was made may have been revoked since.
	Alone bool  `cbor:"8,keyasint,omitempty"`
	At    int64 `cbor:"9,keyasint"` // ms since 1970, by the founder's clock
}

// An Epoch is how a mesh came to its present epoch.
type Epoch struct {
	Number  uint64          `cbor:"1,keyasint"`
	Founder identity.NodeID `cbor:"2,keyasint"`
	Reason  string          `cbor:"3,keyasint"`
	Height  uint64          `cbor:"4,keyasint"` // of the entry that founded it
	At      int64           `cbor:"5,keyasint"` // ms since 1970
}

var epochTab = NewMeshTable[string, Epoch]("epoch")

// CurrentEpoch returns the present epoch; number 1 and nothing else before any
// other was founded.
func CurrentEpoch(tx *Tx) Epoch {
	if e, ok := epochTab.Get(tx, theRow); ok {
		return e
	}
	return Epoch{Number: 1}
}

func isEpoch(b *Batch) bool { return b.Session == 0 && b.Commands[0].Kind == KindEpoch }

// CheckEpoch is what [Ledger.CheckBatch] is for the batch that founds an epoch:
// the caller has made sure that it is its own, and that it leads nobody else.
func (l *Ledger) CheckEpoch(data []byte, founder identity.NodeID) error {
	b, err := DecodeBatch(data)
	if err != nil {
		return err
	}
	if !isEpoch(b) || b.Mesh != l.Position().Mesh {
		return fmt.Errorf("%w: not the founding of an epoch of this mesh", ErrBatch)
	}
	var p EpochFound
	if err := Unmarshal(b.Commands[0].Payload, &p); err != nil {
		return fmt.Errorf("%w: epoch: %w", ErrBatch, err)
	}
	if identity.NodeIDOf(p.Founder.Key) != b.Origin || b.Origin != founder {
		return fmt.Errorf("%w: epoch is signed by another node than its founder", ErrBatch)
	}
	return b.Verify(p.Founder.Key)
}

// check says why p may not be, or nil. It is asked before a batch that
// founds an epoch is recorded at all: one that is refused leaves no trace, since
// the key of its signer may be in no roster.
func (p *EpochFound) check(tx *Tx, mesh identity.MeshID, origin identity.NodeID, height uint64) error {
	now := CurrentEpoch(tx)
	switch {
	case p.Epoch != now.Number+1:
		return Refuse(Conflict, nil, "the mesh is in epoch %d", now.Number)
	case p.Height != height:
		return Refuse(Conflict, nil, "the epoch was made for height %d, the chain ends at %d", p.Height, height)
	case p.Reason != EpochRecovered && p.Reason != EpochRestored:
		return Refuse(Invalid, nil, "unknown reason for an epoch")
	case len(p.Founder.Key) != ed25519.PublicKeySize || identity.NodeIDOf(p.Founder.Key) != origin:
		return Refuse(Invalid, nil, "the epoch is signed by another node than its founder")
	}
	old, known := FindNode(tx, origin)
	switch {
	case known && !old.Member():
		return Refuse(Conflict, nil, "node %s was revoked; it needs a new identity", origin.Short())
	case known && old.Has(LabelUntrusted):
		return Refuse(Forbidden, nil, "an untrusted node founds no epoch")
	case known:
		return nil
	}
	chain, err := identity.DecodeAdmissions(p.Admissions)
	if err == nil {
		err = identity.VerifyAdmissions(chain, mesh, p.Founder.Key, func(id identity.NodeID) (key ed25519.PublicKey, revoked,
			known bool) {
			m, ok := FindNode(tx, id)
			return m.Key, !m.Member() || m.Has(LabelUntrusted), ok
		})
	}
	if err != nil {
		return Refuse(Forbidden, nil, "no member vouches for the founder of the epoch")
	}
	return nil
}

// refuseEpoch is check for a whole batch.
func (a *applier) refuseEpoch(b *Batch) *Refusal {
	var p EpochFound
	if b.Commands[0].Payload == nil || Unmarshal(b.Commands[0].Payload, &p) != nil {
		return &Refusal{Code: Invalid, Message: "malformed epoch"}
	}
	err := p.check(a.group, a.pos.Mesh, b.Origin, a.pos.Height)
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal
	}
	return nil
}

func applyEpoch(c *Context, p EpochFound) (any, error) {
	if c.Session != 0 {
		return nil, Refuse(Forbidden, nil, "an epoch is founded by one node alone")
	}
	if err := p.check(c.Tx, c.Mesh, c.Origin, c.Height-1); err != nil {
		return nil, err
	}
	if _, known := FindNode(c.Tx, c.Origin); !known {
		n, err := p.Founder.row(c)
		if err != nil {
			return nil, err
		}
		if chain, err := identity.DecodeAdmissions(p.Admissions); err == nil {
			n.AdmittedBy = identity.NodeIDOf(chain[len(chain)-1].Admitter)
		}
		nodes.Put(c.Tx, string(n.ID), n)
		moveRoster(c, +1)
	}
	epochTab.Put(c.Tx, theRow, Epoch{Number: p.Epoch, Founder: c.Origin, Reason: p.Reason, Height: c.Height, At: p.At})
	if p.Alone {
		endTokens(c)
		for _, other := range Roster(c.Tx) {
			if other.ID != c.Origin && other.Member() {
				strike(c, other)
			}
		}
	}
	if p.Wrapped.Node != "" {
		if err := putWrapped(c, c.Origin, CurrentKeys(c.Tx).Epoch, p.Wrapped); err != nil {
			return nil, err
		}
	}
	keys := CurrentKeys(c.Tx)
	keys.Wanted = true // what the old epoch's nodes hold opens nothing new
	keysRow.Put(c.Tx, theRow, keys)
	c.Record(Change{Action: "mesh.epoch_founded", EntityType: "mesh", EntityID: string(c.Mesh)})
	return CurrentEpoch(c.Tx), nil
}
