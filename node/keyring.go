package node

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A keyring holds the mesh's keys that this node can open, unencrypted, in memory only.
type keyring struct {
	keys *identity.Keys

	mu     sync.Mutex // guards the fields below
	epoch  uint64
	data   identity.DataKey // of epoch
	gossip identity.DataKey // of epoch
	byID   map[identity.DataKeyID]identity.DataKey
	first  identity.DataKey // of the first epoch, once it was needed
}

func newKeyring(keys *identity.Keys) *keyring {
	return &keyring{keys: keys, byID: map[identity.DataKeyID]identity.DataKey{}}
}

// take opens keys that were wrapped for this node, if they are of a newer epoch.
func (r *keyring) take(w ledger.NodeKeys) (changed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.Epoch <= r.epoch {
		return false, nil
	}
	gossip, err := r.keys.Unwrap(w.Gossip)
	if err != nil {
		return false, fmt.Errorf("gossip key of epoch %d: %w", w.Epoch, err)
	}
	if len(w.Data) > 0 {
		if r.data, err = r.keys.Unwrap(w.Data); err != nil {
			return false, fmt.Errorf("data key of epoch %d: %w", w.Epoch, err)
		}
		if len(r.byID) >= maxKeys {
			clear(r.byID)
		}
		r.byID[r.data.ID()] = r.data
	}
	r.epoch, r.gossip = w.Epoch, gossip
	return true, nil
}

// current returns the newest keys.
func (r *keyring) current() (epoch uint64, data, gossip identity.DataKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.epoch, r.data, r.gossip
}

// gossipRing is the key ring of gossip: [discovery.Discovery].
type gossipRing interface {
	UseKey(epoch uint64) error
	RemoveKey(epoch uint64) error
	KeyEpochs() []uint64
}

// turnGossip makes a ring use the key of an epoch after a pause, when all other nodes
// have it too, and forget all earlier keys after another pause. It stops if the ring is
// turned to a newer epoch meanwhile.
func (r *keyring) turnGossip(ctx context.Context, ring gossipRing, epoch uint64, pause time.Duration) error {
	forget := func(epoch uint64) (err error) {
		for _, e := range ring.KeyEpochs() {
			if e < epoch {
				err = errors.Join(err, ring.RemoveKey(e))
			}
		}
		return err
	}
	for _, step := range []func(uint64) error{ring.UseKey, forget} {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		if newest, _, _ := r.current(); newest != epoch {
			return nil
		}
		if err := step(epoch); err != nil {
			return err
		}
	}
	return nil
}

// dataKeys returns the open data keys, the current one first.
func (r *keyring) dataKeys() []identity.DataKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []identity.DataKey{r.data}
	for id, k := range r.byID {
		if id != r.data.ID() {
			out = append(out, k)
		}
	}
	return out
}

// open decrypts sealed bytes. If they were sealed with an earlier key, it follows the
// chain of earlier keys in the state.
func (r *keyring) open(tx *ledger.Tx, aad, sealed []byte) ([]byte, error) {
	id, err := identity.SealedWith(sealed)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key, ok := r.byID[id]
	for epoch, newer := r.epoch, r.data; !ok && epoch > 1; {
		epoch--
		chained, found := ledger.PreviousKey(tx, epoch)
		if !found {
			break
		}
		b, err := identity.Open(newer, previousAAD(epoch), chained)
		if err != nil || len(b) != len(newer) {
			return nil, fmt.Errorf("data key of epoch %d: %w", epoch, identity.ErrSealed)
		}
		newer = identity.DataKey(b)
		r.byID[newer.ID()] = newer
		key, ok = r.byID[id]
	}
	if !ok {
		return nil, fmt.Errorf("sealed with key %s, which this node does not have: %w", id, identity.ErrSealed)
	}
	return identity.Open(key, aad, sealed)
}

// founding returns the data key of the first epoch, which every node with a data key
// reaches through the chain of earlier keys. It is the same on all nodes and after every
// rotation. False: this node can not reach it.
func (r *keyring) founding(tx *ledger.Tx) (identity.DataKey, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first != (identity.DataKey{}) {
		return r.first, true
	}
	key := r.data
	if key == (identity.DataKey{}) {
		return key, false
	}
	for epoch := r.epoch; epoch > 1; {
		epoch--
		chained, ok := ledger.PreviousKey(tx, epoch)
		if !ok {
			return identity.DataKey{}, false
		}
		b, err := identity.Open(key, previousAAD(epoch), chained)
		if err != nil || len(b) != len(key) {
			return identity.DataKey{}, false
		}
		key = identity.DataKey(b)
	}
	r.first = key
	return key, true
}

// digestKey returns the key for digests of requests. A digest stays in the state for a
// while, and without a key a reader of the state could guess short secrets in a request.
// It is derived from the founding data key and never changes.
func (n *Node) digestKey() (key [32]byte, ok bool) {
	err := n.ledger.View(func(tx *ledger.Tx) error {
		var first identity.DataKey
		if first, ok = n.keyring.founding(tx); ok {
			m := hmac.New(sha256.New, first[:])
			m.Write([]byte("selvage/request-digest/v1"))
			key = [32]byte(m.Sum(nil))
		}
		return nil
	})
	return key, ok && err == nil
}

// unseal decrypts bytes that were sealed on any node, at any time.
func (n *Node) unseal(_ context.Context, aad, sealed []byte) (plain []byte, err error) {
	err = n.ledger.View(func(tx *ledger.Tx) (err error) {
		plain, err = n.keyring.open(tx, aad, sealed)
		return err
	})
	return plain, err
}

// previousAAD binds the sealed data key of an epoch to that epoch.
func previousAAD(epoch uint64) []byte {
	return fmt.Appendf(nil, "selvage/previous-key/v1/%d", epoch)
}

// tokenAAD binds a sealed join key to its token.
func tokenAAD(id string) []byte { return []byte("selvage/join-token/v1/" + id) }

// wrapFor wraps the current keys for a node; an untrusted node gets the gossip key only.
func (r *keyring) wrapFor(n ledger.Node) (ledger.NodeKeys, error) {
	epoch, data, gossip := r.current()
	return wrapKeys(n, epoch, data, gossip)
}

func wrapKeys(n ledger.Node, epoch uint64, data, gossip identity.DataKey) (w ledger.NodeKeys, err error) {
	cert, err := identity.DecodeCertificate(n.SealCert)
	if err != nil {
		return w, fmt.Errorf("seal key of %s: %w", n.ID.Short(), err)
	}
	w = ledger.NodeKeys{Node: n.ID, Epoch: epoch}
	if w.Gossip, err = identity.Wrap(cert.Static, gossip); err != nil {
		return w, err
	}
	if !n.Has(ledger.LabelUntrusted) {
		w.Data, err = identity.Wrap(cert.Static, data)
	}
	return w, err
}
