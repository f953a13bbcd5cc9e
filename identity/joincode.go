package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha3"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// A join code is what a person compares when a node asks to join: both sides show it, and it
// is equal only if they talk to each other directly, without a man in the middle. It is made
// of
//
//	SHAKE-256("selvage/join-code/v1" ‖ handshake hash (32) ‖ newcomer's node key (32) ‖
//	member's node key (32) ‖ newcomer's nonce (32) ‖ member's nonce (32))
//
// whose first 30 bits are six digits of Crockford's base 32, shown as ABC-DEF. The member
// commits to its nonce before it sees the newcomer's. A man in the middle has to choose its
// messages before it can know the codes, so it can not search for two that are equal, and
// has one chance in 2^30 each time.
const (
	codeDigits = 6
	codeDomain = "selvage/join-code/v1"
	codeLetter = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
)

// JoinCode returns the code that both sides of a handshake show.
func JoinCode(handshake [32]byte, newcomer, member ed25519.PublicKey, newcomers, members [32]byte) string {
	h := sha3.NewSHAKE256()
	for _, b := range [][]byte{[]byte(codeDomain), handshake[:], newcomer, member, newcomers[:], members[:]} {
		h.Write(b)
	}
	var raw [codeDigits]byte // five bits of each: the low ones
	h.Read(raw[:])
	for i, b := range raw {
		raw[i] = codeLetter[b&31]
	}
	return string(raw[:codeDigits/2]) + "-" + string(raw[codeDigits/2:])
}

// ParseJoinCode reads a code as people type it: in upper or lower case, with or without the
// dash, with O for 0 and I or L for 1. ok is false if it is not a code.
func ParseJoinCode(s string) (code string, ok bool) {
	var b strings.Builder
	for _, r := range strings.ToUpper(strings.TrimSpace(s)) {
		switch r {
		case '-', ' ':
			continue
		case 'O':
			r = '0'
		case 'I', 'L':
			r = '1'
		}
		if b.Len() == codeDigits || !strings.ContainsRune(codeLetter, r) {
			return "", false
		}
		b.WriteRune(r)
	}
	if b.Len() != codeDigits {
		return "", false
	}
	return b.String()[:codeDigits/2] + "-" + b.String()[codeDigits/2:], true
}

// An OwnerKey is a secret of a person who owns several nodes. A mesh in which it is registered
// admits every node that holds it, until it is revoked there. A node that holds it joins no
// other mesh by itself. Each side proves to the other that it has the key (XXpsk3), as with
// a join token.
// Printing an OwnerKey shows its ID and nothing secret; [EncodeOwnerKey] makes the
// string that is placed on nodes: "selvage-owner-" ‖ base64url (no padding) of
//
//	version 0x01 | key (32) | first 4 bytes of SHAKE-256("selvage/owner-key-sum/v1" ‖ key)
type OwnerKey [32]byte

const (
	ownerPrefix  = "selvage-owner-"
	ownerVersion = 1
	ownerBytes   = 1 + 32 + joinSum
	// OwnerTokenPrefix is what the ID of an owner key begins with in the mesh's
	// table of join tokens.
	OwnerTokenPrefix = "owner-"
)

// ErrOwnerKey says that a string is no owner key.
var ErrOwnerKey = errors.New("not an owner key")

// NewOwnerKey draws an owner key.
func NewOwnerKey() (k OwnerKey) {
	rand.Read(k[:])
	return k
}

func (k OwnerKey) derive(domain string, n int) []byte {
	h := sha3.NewSHAKE256()
	h.Write([]byte(domain))
	h.Write(k[:])
	b := make([]byte, n)
	h.Read(b)
	return b
}

// TokenID names the key among the join tokens of a mesh: OwnerTokenPrefix and 16 hex digits.
func (k OwnerKey) TokenID() string {
	return OwnerTokenPrefix + hex.EncodeToString(k.derive("selvage/owner-key-id/v1", 8))
}

// EncodeOwnerKey returns the string that is placed on nodes, a secret.
func EncodeOwnerKey(k OwnerKey) string {
	b := append([]byte{ownerVersion}, k[:]...)
	return ownerPrefix + base64.RawURLEncoding.EncodeToString(append(b, k.derive("selvage/owner-key-sum/v1", joinSum)...))
}

// DecodeOwnerKey reads what EncodeOwnerKey wrote; white space around it is
// ignored. The error wraps [ErrOwnerKey] and never quotes the key.
func DecodeOwnerKey(s string) (k OwnerKey, err error) {
	s, ok := strings.CutPrefix(strings.TrimSpace(s), ownerPrefix)
	if !ok {
		return k, fmt.Errorf("%w: it does not begin with %q", ErrOwnerKey, ownerPrefix)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != ownerBytes || strings.ContainsAny(s, "\r\n") {
		return k, fmt.Errorf("%w: it is cut short or mistyped", ErrOwnerKey)
	}
	if b[0] != ownerVersion {
		return k, fmt.Errorf("%w: it was made by another version", ErrOwnerKey)
	}
	copy(k[:], b[1:])
	if string(k.derive("selvage/owner-key-sum/v1", joinSum)) != string(b[33:]) {
		return OwnerKey{}, fmt.Errorf("%w: it is cut short or mistyped", ErrOwnerKey)
	}
	if k == (OwnerKey{}) {
		return k, fmt.Errorf("%w: it is empty", ErrOwnerKey)
	}
	return k, nil
}
