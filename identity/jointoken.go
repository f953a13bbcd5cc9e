package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// A JoinToken lets its holder join a mesh. What the holder proves with it is
// the PSK; the rest tells the holder what it joins and where.
// Printing a JoinToken shows its ID and nothing secret; [EncodeJoinToken]
// makes the string that is handed over.
//
// The string is "selvage-join-" ‖ base64url (no padding) of
//
//	version 0x01 | mesh ID (16) | issuer's NodeID (16) | PSK (32) |
//	token ID length (1) | token ID | number of seeds (1) | per seed: length (1), "host:port" |
//	first 4 bytes of SHA-256 over all before
//
// The sum is there to tell a bad paste from a bad token. Other versions are refused.
type JoinToken struct {
	Mesh   MeshID
	ID     string   // names the token in the mesh's state, 1 to 64 bytes of [0-9A-Za-z_-]
	PSK    [32]byte // mixed into the Noise handshake (XXpsk3)
	Issuer NodeID   // fingerprint of the node that issued it
	Seeds  []string // "host:port" of the peer port of members, at most 8
}

const (
	joinPrefix  = "selvage-join-"
	joinVersion = 1
	joinSum     = 4
	maxTokenID  = 64
	maxSeeds    = 8   // any one that answers is enough
	maxSeedLen  = 253 // of a DNS name, and little more than "host:port" of one in use

	// MaxJoinToken bounds the string: beyond it nothing is decoded.
	MaxJoinToken = 4096
)

// ErrJoinToken says that a string is not a join token; the error that wraps it says why.
var ErrJoinToken = errors.New("not a join token")

// NewJoinToken draws a token for mesh, issued by issuer.
func NewJoinToken(mesh MeshID, issuer NodeID, seeds []string) JoinToken {
	var id [8]byte
	rand.Read(id[:])
	t := JoinToken{Mesh: mesh, ID: hex.EncodeToString(id[:]), Issuer: issuer, Seeds: seeds}
	rand.Read(t.PSK[:])
	return t
}

// Validate reports every field that can not be written as a token.
func (t JoinToken) Validate() error {
	var problems []error
	if !t.Mesh.Valid() {
		problems = append(problems, errors.New("malformed mesh ID"))
	}
	if !t.Issuer.Valid() {
		problems = append(problems, errors.New("malformed issuer"))
	}
	if len(t.ID) == 0 || len(t.ID) > maxTokenID || strings.IndexFunc(t.ID, notTokenID) >= 0 {
		problems = append(problems, errors.New("malformed token ID"))
	}
	if t.PSK == [32]byte{} {
		problems = append(problems, errors.New("no key"))
	}
	if len(t.Seeds) > maxSeeds {
		problems = append(problems, fmt.Errorf("more than %d seeds", maxSeeds))
	}
	for _, s := range t.Seeds {
		if !validSeed(s) {
			problems = append(problems, errors.New("a seed is not host:port"))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("%w: %w", ErrJoinToken, errors.Join(problems...))
	}
	return nil
}

func notTokenID(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_'
}

func validSeed(s string) bool {
	host, port, err := net.SplitHostPort(s)
	n, perr := strconv.ParseUint(port, 10, 16)
	return err == nil && perr == nil && n > 0 && host != "" && len(s) <= maxSeedLen
}

// EncodeJoinToken writes t as the string that is handed to whoever joins. It
// is a secret. An error names the malformed fields.
func EncodeJoinToken(t JoinToken) (string, error) {
	if err := t.Validate(); err != nil {
		return "", err
	}
	mesh, _ := parseID(string(t.Mesh)) // Validate has parsed both
	issuer, _ := parseID(string(t.Issuer))
	b := append([]byte{joinVersion}, mesh[:]...)
	b = append(b, issuer[:]...)
	b = append(b, t.PSK[:]...)
	b = append(append(b, byte(len(t.ID))), t.ID...)
	b = append(b, byte(len(t.Seeds)))
	for _, s := range t.Seeds {
		b = append(append(b, byte(len(s))), s...)
	}
	sum := sha256.Sum256(b)
	return joinPrefix + base64.RawURLEncoding.EncodeToString(append(b, sum[:joinSum]...)), nil
}

// DecodeJoinToken reads a token; white space around it is ignored. The error
// wraps [ErrJoinToken], says what is wrong, and never quotes the token.
func DecodeJoinToken(s string) (t JoinToken, err error) {
	s = strings.TrimSpace(s)
	if len(s) > MaxJoinToken {
		return t, fmt.Errorf("%w: longer than %d characters", ErrJoinToken, MaxJoinToken)
	}
	s, ok := strings.CutPrefix(s, joinPrefix)
	if !ok {
		return t, fmt.Errorf("%w: it does not begin with %q", ErrJoinToken, joinPrefix)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) < joinSum || strings.ContainsAny(s, "\r\n") { // which base64 passes over
		return t, fmt.Errorf("%w: it is cut short or mistyped", ErrJoinToken)
	}
	body := b[:len(b)-joinSum]
	if sum := sha256.Sum256(body); string(sum[:joinSum]) != string(b[len(body):]) {
		return t, fmt.Errorf("%w: it is cut short or mistyped", ErrJoinToken)
	}
	r := reader{b: body}
	if v := r.take(1); r.short || v[0] != joinVersion {
		return t, fmt.Errorf("%w: it was made by another version", ErrJoinToken)
	}
	t.Mesh = MeshID(hex.EncodeToString(r.take(idBytes)))
	t.Issuer = NodeID(hex.EncodeToString(r.take(idBytes)))
	copy(t.PSK[:], r.take(len(t.PSK)))
	t.ID = r.text()
	for range r.count() {
		t.Seeds = append(t.Seeds, r.text())
	}
	if r.short || len(r.b) > 0 {
		return JoinToken{}, fmt.Errorf("%w: its fields do not add up", ErrJoinToken)
	}
	if err := t.Validate(); err != nil {
		return JoinToken{}, err
	}
	return t, nil
}

// A reader takes fields off a byte string; once it was short it yields nothing.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if r.short || len(r.b) < n {
		r.short = true
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) count() int {
	if v := r.take(1); v != nil {
		return int(v[0])
	}
	return 0
}

func (r *reader) text() string { return string(r.take(r.count())) }
