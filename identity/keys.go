package identity

import (
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha3"
	"encoding/hex"
)

// Keys is the private half of a node's identity. The node key is the identity;
// the other two are certified by it and may be replaced without changing it.
// Printing Keys shows the node's ID and nothing secret.
type Keys struct {
	Node  ed25519.PrivateKey // signs; its public half makes the NodeID
	Noise *ecdh.PrivateKey   // X25519, the static key of Noise handshakes
	Seal  *ecdh.PrivateKey   // X25519, to which data keys are wrapped

	// Incarnation, 16 hex digits, distinguishes this incarnation of the node from earlier ones
	// whose raft log or vote was lost. See [Keys.ServerID].
	Incarnation string

	secret [32]byte // local secrets are derived from it, see Local
}

// New returns newly drawn keys that are not stored.
func New() *Keys {
	var seed [32]byte
	rand.Read(seed[:])
	return Derive(seed)
}

// Derive returns the keys that follow from seed, always the same. Simulations
// that must repeat use it; a real node draws its seed in [Create].
func Derive(seed [32]byte) *Keys {
	h := sha3.NewSHAKE256()
	h.Write([]byte("selvage/keys/v1"))
	h.Write(seed[:])
	draw := func() (b [32]byte) { h.Read(b[:]); return b }
	node, noise, seal := draw(), draw(), draw()
	k := &Keys{
		Node:   ed25519.NewKeyFromSeed(node[:]),
		Noise:  mustX25519(noise[:]),
		Seal:   mustX25519(seal[:]),
		secret: draw(),
	}
	inc := draw()
	k.Incarnation = hex.EncodeToString(inc[:incarnationBytes])
	return k
}

func mustX25519(b []byte) *ecdh.PrivateKey {
	k, err := ecdh.X25519().NewPrivateKey(b)
	if err != nil {
		panic("identity: " + err.Error()) // X25519 accepts any 32 bytes
	}
	return k
}

// ID returns the node's ID.
func (k *Keys) ID() NodeID { return NodeIDOf(k.Public()) }

// Public returns the node's public key.
func (k *Keys) Public() ed25519.PublicKey { return k.Node.Public().(ed25519.PublicKey) }

// ServerID is the name of this incarnation of the node in raft's configuration:
// NodeID/incarnation. A node that lost its log or its vote returns under another name, so
// that it can not vote twice in a term.
func (k *Keys) ServerID() string { return string(k.ID()) + "/" + k.Incarnation }

// Local returns a secret for this node's own use under label, the same after
// each restart: for example the key of QUIC's stateless resets.
func (k *Keys) Local(label string) (out [32]byte) {
	h := sha3.NewSHAKE256()
	h.Write([]byte("selvage/local/v1"))
	h.Write(k.secret[:])
	h.Write([]byte(label))
	h.Read(out[:])
	return out
}

// Sign signs domain ‖ msg with the node key. A domain says what is signed, so
// that a signature for one purpose never serves another: "selvage/<what>/v<digit>",
// none a prefix of another.
func (k *Keys) Sign(domain string, msg []byte) []byte {
	return ed25519.Sign(k.Node, signed(domain, msg))
}

// Verify reports whether sig is the signature by key over domain ‖ msg. A key
// of the wrong length verifies nothing.
func Verify(key ed25519.PublicKey, domain string, msg, sig []byte) bool {
	return len(key) == ed25519.PublicKeySize && ed25519.Verify(key, signed(domain, msg), sig)
}

func signed(domain string, msg []byte) []byte {
	return append(append(make([]byte, 0, len(domain)+len(msg)), domain...), msg...)
}
