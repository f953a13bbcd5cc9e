package ledger

import (
	"slices"
	"time"

	"github.com/selvage-mesh/selvage/identity"
)

// Keys says which epoch of the mesh's data and gossip keys is current.
type Keys struct {
	Epoch     uint64 `cbor:"1,keyasint"`
	RotatedAt uint64 `cbor:"2,keyasint"`           // height
	Wanted    bool   `cbor:"3,keyasint,omitempty"` // a node was revoked since: someone shall rotate
}

// KeysRotate is the payload of keys.rotate. It names the roster that the keys
// were wrapped for and is refused when that has moved.
type KeysRotate struct {
	Epoch   uint64     `cbor:"1,keyasint"` // the new one: current + 1
	Roster  uint64     `cbor:"2,keyasint"` // RosterVersion that it was made for
	Wrapped []NodeKeys `cbor:"3,keyasint"` // for each node that shall have them
	// Previous is the data key of the epoch before, sealed with the new one:
	// secrets are re-sealed lazily, so older keys must stay within reach.
	Previous []byte `cbor:"4,keyasint,omitempty"`
}

type sealedKey struct {
	Sealed []byte `cbor:"1,keyasint"`
}

var (
	keysRow  = NewMeshTable[string, Keys]("keys")
	wrapped  = NewMeshTable[string, NodeKeys]("wrapped")     // by node, of the current epoch
	previous = NewMeshTable[string, sealedKey]("keys-chain") // by epoch: that epoch's data key under the next one
)

// CurrentKeys returns the current epoch.
func CurrentKeys(tx *Tx) Keys {
	k, _ := keysRow.Get(tx, theRow)
	return k
}

// KeysSince returns when the current keys were drawn, zero before there are any.
func KeysSince(tx *Tx) time.Time {
	e, _ := EntryAt(tx, CurrentKeys(tx).RotatedAt)
	return e.Time
}

// WrappedFor returns the mesh's keys as wrapped to a node.
func WrappedFor(tx *Tx, node identity.NodeID) (NodeKeys, bool) {
	return wrapped.Get(tx, string(node))
}

// PreviousKey returns the data key of an epoch, sealed with that of the next one.
func PreviousKey(tx *Tx, epoch uint64) (sealed []byte, ok bool) {
	row, ok := previous.Get(tx, Order(epoch))
	return row.Sealed, ok
}

func putWrapped(c *Context, node identity.NodeID, epoch uint64, k NodeKeys) error {
	switch {
	case k.Node != node:
		return Refuse(Invalid, nil, "keys wrapped for another node")
	case k.Epoch != epoch:
		return Refuse(Conflict, nil, "the mesh's keys are of epoch %d", epoch)
	case len(k.Data) > maxWrapped || len(k.Gossip) > maxWrapped:
		return Refuse(Invalid, nil, "a wrapped key has at most %d bytes", maxWrapped)
	}
	if n, ok := FindNode(c.Tx, node); ok && n.Has(LabelUntrusted) && len(k.Data) > 0 {
		return Refuse(Forbidden, nil, "an untrusted node never holds the data key")
	}
	wrapped.Put(c.Tx, string(node), k)
	return nil
}

func applyKeysRotate(c *Context, p KeysRotate) (any, error) {
	if err := trusted(c); err != nil {
		return nil, err
	}
	if err := operator(c); err != nil && !speaksForItself(c, c.Origin) {
		return nil, err
	}
	keys := CurrentKeys(c.Tx)
	if p.Epoch != keys.Epoch+1 {
		return nil, Refuse(Conflict, nil, "the mesh's keys are of epoch %d", keys.Epoch)
	}
	if now := RosterVersion(c.Tx); p.Roster != now {
		return nil, Refuse(Conflict, nil, "the roster has changed, wrap the keys again")
	}
	if len(p.Previous) > maxSealedBytes {
		return nil, Refuse(Invalid, nil, "a sealed key has at most %d bytes", maxSealedBytes)
	}
	ids := make([]identity.NodeID, 0, len(p.Wrapped))
	for _, k := range p.Wrapped {
		if n, ok := FindNode(c.Tx, k.Node); !ok || !n.Member() {
			return nil, Refuse(Invalid, nil, "keys wrapped for %s, which is no member", k.Node.Short())
		}
		if slices.Contains(ids, k.Node) {
			return nil, Refuse(Invalid, nil, "keys wrapped twice for %s", k.Node.Short())
		}
		ids = append(ids, k.Node)
	}
	for id := range wrapped.All(c.Tx) {
		if !slices.Contains(ids, identity.NodeID(id)) {
			wrapped.Delete(c.Tx, id)
		}
	}
	for _, k := range p.Wrapped {
		if err := putWrapped(c, k.Node, p.Epoch, k); err != nil {
			return nil, err
		}
	}
	if len(p.Previous) > 0 {
		previous.Put(c.Tx, Order(keys.Epoch), sealedKey{p.Previous})
	}
	keysRow.Put(c.Tx, theRow, Keys{Epoch: p.Epoch, RotatedAt: c.Height})
	c.Record(Change{Action: "keys.rotated", EntityType: "mesh", EntityID: string(c.Mesh)})
	return nil, nil
}
