package identity

import (
	"crypto/ecdh"
	"crypto/hpke"
	"crypto/rand"
	"crypto/sha3"
	"encoding/hex"
	"errors"
	"fmt"

	"golang.org/x/crypto/chacha20poly1305"
)

// A DataKey seals the secrets of a mesh. It is one of a series: a rotation
// draws the next one, and sealed bytes name the key that opens them.
// Printing a DataKey shows its ID only.
type DataKey [chacha20poly1305.KeySize]byte

// A DataKeyID names a data key without telling it: SHAKE-256("selvage/data-key-id/v1" ‖ key)[:4] in hex.
type DataKeyID string

// NewDataKey draws a data key.
func NewDataKey() (k DataKey) {
	rand.Read(k[:])
	return k
}

// ID names the key.
func (k DataKey) ID() DataKeyID {
	h := sha3.NewSHAKE256()
	h.Write([]byte("selvage/data-key-id/v1"))
	h.Write(k[:])
	var id [dataKeyIDBytes]byte
	h.Read(id[:])
	return DataKeyID(hex.EncodeToString(id[:]))
}

// Sealed bytes are
//
//	version 0x01 | data key ID (4) | nonce (24) | XChaCha20-Poly1305 ciphertext and tag
//
// with the first five bytes ‖ aad as associated data. Wrapped keys are
//
//	version 0x01 | HPKE encapsulated key (32) | ciphertext and tag (48)
//
// by HPKE base mode, DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20Poly1305,
// info "selvage/data-key/v1". Other versions are refused.
const (
	sealVersion    = 1
	dataKeyIDBytes = 4
	sealHeader     = 1 + dataKeyIDBytes
	sealOverhead   = sealHeader + chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead

	wrapVersion  = 1
	wrapInfo     = "selvage/data-key/v1"
	wrappedBytes = 1 + 32 + chacha20poly1305.KeySize + chacha20poly1305.Overhead
)

var (
	// ErrSealed says that sealed bytes are damaged, or sealed for another
	// place (other associated data) or with another key.
	ErrSealed = errors.New("sealed bytes do not open")
	// ErrWrapped says that a wrapped key is damaged or was wrapped to another node.
	ErrWrapped = errors.New("wrapped key does not open")
)

// Seal encrypts plaintext under key. aad binds it to its place, for example the
// key of its row: it opens only with the same aad.
func Seal(key DataKey, aad, plaintext []byte) []byte {
	out := make([]byte, sealHeader+chacha20poly1305.NonceSizeX, sealOverhead+len(plaintext))
	out[0] = sealVersion
	hex.Decode(out[1:], []byte(key.ID()))
	rand.Read(out[sealHeader:])
	return sealWith(key, aad, plaintext, out)
}

// sealWith encrypts under the header and nonce that out holds.
func sealWith(key DataKey, aad, plaintext, out []byte) []byte {
	nonce := out[sealHeader : sealHeader+chacha20poly1305.NonceSizeX]
	return newAEAD(key).Seal(out, nonce, plaintext, sealedAAD(out, aad))
}

// Open decrypts what [Seal] made with the same key and aad.
func Open(key DataKey, aad, sealed []byte) ([]byte, error) {
	id, err := SealedWith(sealed)
	if err != nil || id != key.ID() {
		return nil, ErrSealed
	}
	nonce, ct := sealed[sealHeader:sealHeader+chacha20poly1305.NonceSizeX], sealed[sealHeader+chacha20poly1305.NonceSizeX:]
	out, err := newAEAD(key).Open(nil, nonce, ct, sealedAAD(sealed, aad))
	if err != nil {
		return nil, ErrSealed
	}
	return out, nil
}

// SealedWith names the key that opens sealed.
func SealedWith(sealed []byte) (DataKeyID, error) {
	if len(sealed) < sealOverhead || sealed[0] != sealVersion {
		return "", ErrSealed
	}
	return DataKeyID(hex.EncodeToString(sealed[1:sealHeader])), nil
}

func sealedAAD(sealed, aad []byte) []byte {
	return append(append(make([]byte, 0, sealHeader+len(aad)), sealed[:sealHeader]...), aad...)
}

func newAEAD(key DataKey) interface {
	Seal(dst, nonce, plaintext, aad []byte) []byte
	Open(dst, nonce, ciphertext, aad []byte) ([]byte, error)
} {
	a, err := chacha20poly1305.NewX(key[:])
	if err != nil {
		panic("identity: " + err.Error()) // only a key of the wrong length is refused
	}
	return a
}

// Wrap encrypts key to the holder of a seal key.
func Wrap(to *ecdh.PublicKey, key DataKey) ([]byte, error) {
	pub, err := hpke.NewDHKEMPublicKey(to)
	if err != nil {
		return nil, fmt.Errorf("wrap data key: %w", err)
	}
	ct, err := hpke.Seal(pub, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), []byte(wrapInfo), key[:])
	if err != nil {
		return nil, fmt.Errorf("wrap data key: %w", err)
	}
	return append([]byte{wrapVersion}, ct...), nil
}

// Unwrap decrypts a key that was wrapped to this node's seal key.
func (k *Keys) Unwrap(wrapped []byte) (key DataKey, err error) {
	if len(wrapped) != wrappedBytes || wrapped[0] != wrapVersion {
		return key, ErrWrapped
	}
	priv, err := hpke.NewDHKEMPrivateKey(k.Seal)
	if err != nil {
		return key, fmt.Errorf("unwrap data key: %w", err)
	}
	b, err := hpke.Open(priv, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), []byte(wrapInfo), wrapped[1:])
	if err != nil || len(b) != len(key) {
		return key, ErrWrapped
	}
	copy(key[:], b)
	return key, nil
}
