package identity

import (
	"crypto/ed25519"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// An Admission certifies that a node was admitted to a mesh: the admitter, a
// member itself, signs it when the node.admit command is applied. It is sent,
// with the admissions that lead back towards the founder, to peers that may
// not have heard of the node yet. Its bytes are
//
//	version 0x01 | mesh ID (16) | node key (32) | height (8, big endian) | admitter's key (32) | signature (64)
//
// 153 bytes; the signature, in domain "selvage/admission/v1", is over all bytes
// before it. Other versions and lengths are refused.
type Admission struct {
	Mesh      MeshID
	Node      ed25519.PublicKey
	Height    uint64 // of the node.admit entry; the founder's is that of genesis
	Admitter  ed25519.PublicKey
	Signature []byte
}

const (
	admissionVersion = 1
	admissionDomain  = "selvage/admission/v1"
	admissionSigned  = 1 + idBytes + 2*ed25519.PublicKeySize + 8
	admissionBytes   = admissionSigned + ed25519.SignatureSize

	// MaxAdmissions bounds a chain: who admitted whom, back to the founder or
	// to anyone the reader knows. A chain of 64 is 9.8 KB and fits a handshake.
	MaxAdmissions = 64
)

var (
	// ErrAdmission says that bytes are not an admission chain, or that it does
	// not lead from the node to a member of the mesh.
	ErrAdmission = errors.New("not a valid admission to this mesh")
	// ErrRevoked says that a chain rests on a node that was revoked.
	ErrRevoked = errors.New("admitted by a node that was revoked")
)

// A Roster returns what the caller knows about a node: its key and whether it was revoked;
// known is false if the caller does not know the node.
type Roster func(NodeID) (key ed25519.PublicKey, revoked, known bool)

// Admit certifies that node was admitted to mesh at height.
func (k *Keys) Admit(mesh MeshID, node ed25519.PublicKey, height uint64) (Admission, error) {
	a := Admission{Mesh: mesh, Node: node, Height: height, Admitter: k.Public()}
	b, err := a.signedBytes()
	if err != nil {
		return Admission{}, fmt.Errorf("admit: %w", err)
	}
	a.Signature = k.Sign(admissionDomain, b)
	return a, nil
}

func (a Admission) signedBytes() ([]byte, error) {
	mesh, err := parseID(string(a.Mesh))
	if err != nil {
		return nil, err
	}
	if len(a.Node) != ed25519.PublicKeySize || len(a.Admitter) != ed25519.PublicKeySize {
		return nil, errors.New("a node key has 32 bytes")
	}
	b := append(make([]byte, 0, admissionBytes), admissionVersion)
	b = append(b, mesh[:]...)
	b = append(b, a.Node...)
	b = binary.BigEndian.AppendUint64(b, a.Height)
	return append(b, a.Admitter...), nil
}

// Encode returns the bytes to store or send, or nil when a field is malformed.
func (a Admission) Encode() []byte {
	b, err := a.signedBytes()
	if err != nil || len(a.Signature) != ed25519.SignatureSize {
		return nil
	}
	return append(b, a.Signature...)
}

// DecodeAdmission reads what Encode wrote. It does not verify: see [Admission.Verify].
func DecodeAdmission(b []byte) (Admission, error) {
	if len(b) != admissionBytes || b[0] != admissionVersion {
		return Admission{}, ErrAdmission
	}
	key := func(from int) ed25519.PublicKey {
		return append(ed25519.PublicKey(nil), b[from:from+ed25519.PublicKeySize]...)
	}
	return Admission{
		Mesh:      MeshID(hex.EncodeToString(b[1:17])),
		Node:      key(17),
		Height:    binary.BigEndian.Uint64(b[49:57]),
		Admitter:  key(57),
		Signature: append([]byte(nil), b[admissionSigned:]...),
	}, nil
}

// Verify checks the admitter's signature; whether the admitter could admit
// anyone is for [VerifyAdmissions].
func (a Admission) Verify() error {
	b, err := a.signedBytes()
	if err != nil || !Verify(a.Admitter, admissionDomain, b, a.Signature) {
		return ErrAdmission
	}
	return nil
}

// EncodeAdmissions writes a chain, the node's own admission first, then its
// admitter's and so on: count (1) | that many admissions. An empty chain has
// no bytes. It returns nil when the chain is longer than [MaxAdmissions].
func EncodeAdmissions(chain []Admission) []byte {
	if len(chain) == 0 || len(chain) > MaxAdmissions {
		return nil
	}
	b := append(make([]byte, 0, 1+len(chain)*admissionBytes), byte(len(chain)))
	for _, a := range chain {
		b = append(b, a.Encode()...)
	}
	return b
}

// DecodeAdmissions reads what EncodeAdmissions wrote; no bytes are an empty
// chain. It does not verify: see [VerifyAdmissions].
func DecodeAdmissions(b []byte) ([]Admission, error) {
	if len(b) == 0 {
		return nil, nil
	}
	n := int(b[0])
	if n == 0 || n > MaxAdmissions || len(b) != 1+n*admissionBytes {
		return nil, ErrAdmission
	}
	chain := make([]Admission, n)
	for i := range chain {
		var err error
		if chain[i], err = DecodeAdmission(b[1+i*admissionBytes : 1+(i+1)*admissionBytes]); err != nil {
			return nil, err
		}
	}
	return chain, nil
}

// VerifyAdmissions checks that chain proves that node was admitted to mesh: the node of each
// link signed the link before, up to an admitter that the roster knows. A reader that knows
// only genesis passes a roster with the founder. It returns [ErrAdmission], or [ErrRevoked]
// if a node of the chain was revoked.
func VerifyAdmissions(chain []Admission, mesh MeshID, node ed25519.PublicKey, roster Roster) error {
	if len(chain) > MaxAdmissions {
		return ErrAdmission
	}
	want := node
	for _, a := range chain {
		if a.Mesh != mesh || !a.Node.Equal(want) {
			return ErrAdmission
		}
		if err := a.Verify(); err != nil {
			return err
		}
		key, revoked, known := roster(NodeIDOf(a.Admitter))
		switch {
		case known && !key.Equal(a.Admitter):
			return ErrAdmission
		case revoked:
			return ErrRevoked
		case known:
			return nil
		}
		want = a.Admitter
	}
	return ErrAdmission
}
