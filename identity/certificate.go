package identity

import (
	"crypto/ecdh"
	"crypto/ed25519"
	"errors"
)

// A Purpose says what a certified key is for. It selects the signing domain.
// Persisted and sent: do not renumber.
type Purpose byte

const (
	ForNoise Purpose = 1 // domain "selvage/noise-static/v1"
	ForSeal  Purpose = 2 // domain "selvage/seal-static/v1"
)

func (p Purpose) domain() string {
	switch p {
	case ForNoise:
		return "selvage/noise-static/v1"
	case ForSeal:
		return "selvage/seal-static/v1"
	default:
		return ""
	}
}

// A Certificate says that a static X25519 key belongs to a node, by the node
// key's signature over domain ‖ static key. It is sent in Noise handshakes and
// kept in the roster as
//
//	version 0x01 | purpose (1) | node key (32) | static key (32) | signature (64)
//
// 130 bytes. Other versions, purposes and lengths are refused.
type Certificate struct {
	Purpose   Purpose
	Node      ed25519.PublicKey
	Static    *ecdh.PublicKey
	Signature []byte
}

const (
	certificateVersion = 1
	certificateBytes   = 2 + ed25519.PublicKeySize + 32 + ed25519.SignatureSize
)

// ErrCertificate says that bytes are not a certificate, or that its signature
// is not the node's.
var ErrCertificate = errors.New("not a valid certificate of a static key")

// Certificate certifies one of the node's own static keys.
func (k *Keys) Certificate(p Purpose) Certificate {
	static := k.Noise.PublicKey()
	if p == ForSeal {
		static = k.Seal.PublicKey()
	}
	return Certificate{p, k.Public(), static, k.Sign(p.domain(), static.Bytes())}
}

// Verify checks the node's signature and that the certificate is for p.
func (c Certificate) Verify(p Purpose) error {
	if c.Purpose != p || p.domain() == "" || c.Static == nil ||
		!Verify(c.Node, p.domain(), c.Static.Bytes(), c.Signature) {
		return ErrCertificate
	}
	return nil
}

// Encode returns the bytes to store or send.
func (c Certificate) Encode() []byte {
	b := append(make([]byte, 0, certificateBytes), certificateVersion, byte(c.Purpose))
	b = append(b, c.Node...)
	b = append(b, c.Static.Bytes()...)
	return append(b, c.Signature...)
}

// DecodeCertificate reads what Encode wrote and verifies the signature, so that
// nobody holds a certificate that was never checked. The caller still checks
// that the purpose and the node are the ones it wants.
func DecodeCertificate(b []byte) (Certificate, error) {
	if len(b) != certificateBytes || b[0] != certificateVersion {
		return Certificate{}, ErrCertificate
	}
	static, err := ecdh.X25519().NewPublicKey(b[34:66])
	if err != nil {
		return Certificate{}, ErrCertificate
	}
	c := Certificate{
		Purpose:   Purpose(b[1]),
		Node:      append(ed25519.PublicKey(nil), b[2:34]...),
		Static:    static,
		Signature: append([]byte(nil), b[66:]...),
	}
	return c, c.Verify(c.Purpose)
}
