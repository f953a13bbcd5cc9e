package identity

import (
	"crypto/ed25519"
	"crypto/sha3"
	"encoding/hex"
	"fmt"
)

// idBytes is the length of a NodeID or MeshID before it is written as hex: 128
// bits, so that two different keys never share one by chance or by search.
const idBytes = 16

// A NodeID names a node: the lower-case hex of SHAKE-256(node public key)[:16].
type NodeID string

// A MeshID names a mesh: the lower-case hex of SHAKE-256(genesis)[:16].
type MeshID string

// NodeIDOf returns the ID of the node that holds the private half of key.
func NodeIDOf(key ed25519.PublicKey) NodeID { return NodeID(shakeID(key)) }

// MeshIDOf returns the ID of the mesh that was born with these genesis bytes,
// which are hashed as they were stored.
func MeshIDOf(genesis []byte) MeshID { return MeshID(shakeID(genesis)) }

// Short is how people are shown a node: the first 8 digits. It is not unique.
func (id NodeID) Short() string { return string(id[:min(8, len(id))]) }

// Short is how people are shown a mesh: the first 8 digits. It is not unique.
func (id MeshID) Short() string { return string(id[:min(8, len(id))]) }

// Valid reports whether id has the form of a node ID.
func (id NodeID) Valid() bool { _, err := parseID(string(id)); return err == nil }

// Valid reports whether id has the form of a mesh ID.
func (id MeshID) Valid() bool { _, err := parseID(string(id)); return err == nil }

func shakeID(b []byte) string { return hex.EncodeToString(sha3.SumSHAKE256(b, idBytes)) }

// parseID returns the bytes of an ID; upper-case digits are refused, because
// IDs are compared as strings.
func parseID(s string) (b [idBytes]byte, err error) {
	if len(s) != 2*idBytes {
		return b, fmt.Errorf("an ID has %d hex digits, not %d", 2*idBytes, len(s))
	}
	if _, err := hex.Decode(b[:], []byte(s)); err != nil {
		return b, err
	}
	if hex.EncodeToString(b[:]) != s {
		return b, fmt.Errorf("an ID is written in lower case")
	}
	return b, nil
}
