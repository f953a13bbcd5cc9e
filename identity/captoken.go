package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// CapClaims is what a capability token says: what its bearer may do, for which
// agent, until when, and whose authority it carries. The token has the form
//
//	"cap1." base64url(claims as JSON) "." base64url(HMAC-SHA256)
//
// with a key that follows from the mesh's data key. Readers ignore claims that
// they do not know; a claim that narrows a token therefore needs a new prefix.
type CapClaims struct {
	ID           string   `json:"jti"`
	Capabilities []string `json:"cap"`                  // sorted, such as execute and govern
	Agent        string   `json:"agent_id,omitempty"`   // the only agent that it is for; "": any
	Company      string   `json:"company_id,omitempty"` // the only company that it is for; "": any
	ActorType    string   `json:"act"`                  // who made it: user or agent
	Actor        string   `json:"sub"`
	CredKind     string   `json:"cred"` // the credential that it was made with: it ends with it
	CredID       string   `json:"cred_id,omitempty"`
	IssuedAt     int64    `json:"iat"` // seconds since 1970
	ExpiresAt    int64    `json:"exp"`
	Instance     string   `json:"instance_id"` // the mesh's ID
}

// Has reports whether the token grants a capability.
func (c CapClaims) Has(capability string) bool { return slices.Contains(c.Capabilities, capability) }

const (
	// DefaultCapLife is how long a capability token lasts unless another time is asked for, MaxCapLife its bound:
	// it is meant for one piece of work, and a key is there for what lasts.
	DefaultCapLife = time.Hour
	MaxCapLife     = 24 * time.Hour
	// MaxCapToken bounds a token's length.
	MaxCapToken = 4096

	capTokenPrefix = "cap1."
)

// ErrCapToken says that a capability token does not verify, without details.
var ErrCapToken = errors.New("capability token does not verify")

// capTokenKey is HMAC-SHA256(data key, "cap:<mesh>").
func capTokenKey(master DataKey, mesh MeshID) []byte {
	m := hmac.New(sha256.New, master[:])
	m.Write([]byte("cap:" + string(mesh)))
	return m.Sum(nil)
}

// MintCapToken returns a token for c, valid from now for life. ID, Capabilities,
// Actor and CredKind are required; the times and Instance are filled in.
func MintCapToken(master DataKey, mesh MeshID, c CapClaims, now time.Time, life time.Duration) (string,
	CapClaims, error) {
	if c.ID == "" || len(c.Capabilities) == 0 || c.ActorType == "" || c.Actor == "" || c.CredKind == "" || life <= 0 ||
		life > MaxCapLife {
		return "", c, errors.New("capability token: incomplete claims")
	}
	c.IssuedAt, c.ExpiresAt, c.Instance = now.Unix(), now.Add(life).Unix(), string(mesh)
	b, err := json.Marshal(c)
	if err != nil {
		return "", c, fmt.Errorf("capability token: %w", err)
	}
	signed := capTokenPrefix + runTokenText.EncodeToString(b)
	token := signed + "." + runTokenText.EncodeToString(runTokenMAC(capTokenKey(master, mesh), signed))
	if len(token) > MaxCapToken {
		return "", c, errors.New("capability token: claims are too long")
	}
	return token, c, nil
}

// LooksLikeCapToken tells a capability token from bearers.
func LooksLikeCapToken(token string) bool { return strings.HasPrefix(token, capTokenPrefix) }

// VerifyCapToken returns the claims of a token if it was made for the mesh, has not expired, and was signed with one
// of the data keys. The error is [ErrCapToken].
func VerifyCapToken(token string, masters []DataKey, mesh MeshID, now time.Time) (CapClaims, error) {
	var c CapClaims
	signed, mac, ok := cutLast(token)
	body, ok2 := strings.CutPrefix(signed, capTokenPrefix)
	sum, err := runTokenText.DecodeString(mac)
	if len(token) > MaxCapToken || !ok || !ok2 || err != nil {
		return CapClaims{}, ErrCapToken
	}
	valid := false
	for _, master := range masters {
		valid = valid || hmac.Equal(sum, runTokenMAC(capTokenKey(master, mesh), signed))
	}
	if !valid || !decodePart(body, &c) || c.Instance != string(mesh) || len(c.Capabilities) == 0 || c.Actor == "" ||
		!now.Before(time.Unix(c.ExpiresAt, 0)) || now.Add(runTokenSkew).Before(time.Unix(c.IssuedAt, 0)) {
		return CapClaims{}, ErrCapToken
	}
	return c, nil
}
