package discovery

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/memberlist"
)

// A Key is one epoch of the mesh's gossip key.
type Key struct {
	Epoch uint64
	Key   [32]byte // AES-256
}

// ErrKeys says that a change of the gossip keys is not possible.
var ErrKeys = errors.New("gossip keys")

// A keyring holds the epochs of the gossip key. Rotation without a gap is: add
// the new key on every node, then use it on every node, then remove the old one.
type keyring struct {
	ring *memberlist.Keyring

	mu    sync.Mutex // guards the following
	keys  []Key      // the first is used
	aeads []cipher.AEAD
}

func newKeyring(keys []Key) (*keyring, error) {
	if len(keys) == 0 || len(keys) > MaxKeys {
		return nil, fmt.Errorf("%w: %d given, need 1 to %d", ErrKeys, len(keys), MaxKeys)
	}
	ring, err := memberlist.NewKeyring(nil, keys[0].Key[:])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeys, err)
	}
	k := &keyring{ring: ring}
	for _, key := range keys {
		if err := k.add(key); err != nil {
			return nil, err
		}
	}
	return k, nil
}

func (k *keyring) epochs() []uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	var es []uint64
	for _, key := range k.keys {
		es = append(es, key.Epoch)
	}
	return es
}

func (k *keyring) find(epoch uint64) int {
	return slices.IndexFunc(k.keys, func(key Key) bool { return key.Epoch == epoch })
}

func (k *keyring) add(key Key) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if i := k.find(key.Epoch); i >= 0 {
		if k.keys[i] != key {
			return fmt.Errorf("%w: epoch %d has another key already", ErrKeys, key.Epoch)
		}
		return nil
	}
	if slices.ContainsFunc(k.keys, func(o Key) bool { return o.Key == key.Key }) {
		return fmt.Errorf("%w: epoch %d repeats another epoch's key", ErrKeys, key.Epoch)
	}
	if len(k.keys) == MaxKeys {
		return fmt.Errorf("%w: %d epochs are held already: remove one before adding epoch %d", ErrKeys, MaxKeys, key.Epoch)
	}
	block, err := aes.NewCipher(key.Key[:])
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKeys, err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKeys, err)
	}
	if err := k.ring.AddKey(key.Key[:]); err != nil {
		return fmt.Errorf("%w: %w", ErrKeys, err)
	}
	k.keys, k.aeads = append(k.keys, key), append(k.aeads, aead)
	return nil
}

func (k *keyring) use(epoch uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := k.find(epoch)
	if i < 0 {
		return fmt.Errorf("%w: no epoch %d", ErrKeys, epoch)
	}
	key, aead := k.keys[i], k.aeads[i]
	k.keys = slices.Insert(slices.Delete(k.keys, i, i+1), 0, key)
	k.aeads = slices.Insert(slices.Delete(k.aeads, i, i+1), 0, aead)
	return k.ring.UseKey(key.Key[:])
}

// remove forgets an epoch; one that is not held is no error. memberlist's
// RemoveKey closes the gap in a list that its readers still hold, so the key is
// first moved to the end, where there is no gap: UseKey moves to the front.
func (k *keyring) remove(epoch uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := k.find(epoch)
	if i < 0 {
		return nil
	}
	if i == 0 {
		return fmt.Errorf("%w: epoch %d is in use", ErrKeys, epoch)
	}
	gone := k.keys[i].Key
	k.keys, k.aeads = slices.Delete(k.keys, i, i+1), slices.Delete(k.aeads, i, i+1)
	for _, key := range slices.Backward(k.keys) {
		if err := k.ring.UseKey(key.Key[:]); err != nil {
			return fmt.Errorf("%w: %w", ErrKeys, err)
		}
	}
	return k.ring.RemoveKey(gone[:])
}

// opens reports whether a packet is sealed with one of the keys. memberlist
// would log each that is not, so that a flood from outside would fill the log;
// we count them and drop them before. The layout is memberlist's encryption
// version 1: version, 12 bytes nonce, ciphertext, 16 bytes tag.
func (k *keyring) opens(b []byte) bool {
	const nonce = 12
	if len(b) < 1+nonce+16 || b[0] != 1 {
		return false
	}
	k.mu.Lock()
	aeads := slices.Clone(k.aeads)
	k.mu.Unlock()
	buf := make([]byte, 0, maxPacket)
	return slices.ContainsFunc(aeads, func(a cipher.AEAD) bool {
		_, err := a.Open(buf, b[1:1+nonce], b[1+nonce:], nil)
		return err == nil
	})
}
