package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// RunClaims is what a run token says: which agent of which company acts under
// which run. The token is a JWT (RFC 7519) of exactly this form, as Paperclip
// gives it to the processes that it runs:
//
//	base64url({"alg":"HS256","typ":"JWT"}) "." base64url(claims) "." base64url(HMAC-SHA256)
//
// Readers refuse any other algorithm and ignore claims that they do not know.
type RunClaims struct {
	Agent       string `json:"sub"`
	Company     string `json:"company_id"`
	Adapter     string `json:"adapter_type"`
	Run         string `json:"run_id"`
	Responsible string `json:"responsible_user_id,omitempty"`
	IssuedAt    int64  `json:"iat"` // seconds since 1970
	ExpiresAt   int64  `json:"exp"`
	Issuer      string `json:"iss"`
	Audience    string `json:"aud"`
	Instance    string `json:"instance_id"` // the mesh's ID
}

const (
	// RunTokenLife is how long a run token lasts: longer than any run.
	RunTokenLife = 48 * time.Hour
	// MaxRunToken bounds a token's length.
	MaxRunToken = 4096

	runTokenIssuer   = "paperclip"
	runTokenAudience = "paperclip-api"
	// runTokenSkew is how far the clocks of two nodes may differ: a node that is
	// more than 2 s off never leads, and the token lasts for days.
	runTokenSkew = time.Minute
)

// ErrRunToken says that a run token does not verify. It gives no details, because the content
// of a token must not be logged.
var ErrRunToken = errors.New("run token does not verify")

var (
	// Strict, so that a token has one form only.
	runTokenText   = base64.RawURLEncoding.Strict()
	runTokenHeader = runTokenText.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`))
)

// runTokenKey derives the key that signs the run tokens of one company from the
// mesh's data key: HMAC-SHA256(data key, "jwt:<mesh>:<company>").
func runTokenKey(master DataKey, mesh MeshID, company string) []byte {
	m := hmac.New(sha256.New, master[:])
	m.Write([]byte("jwt:" + string(mesh) + ":" + company))
	return m.Sum(nil)
}

// MintRunToken returns a token for c, valid from now for RunTokenLife, signed
// with the key that follows from the mesh's data key. Agent, Company and Run are
// required; the times, Issuer, Audience and Instance are filled in.
func MintRunToken(master DataKey, mesh MeshID, c RunClaims, now time.Time) (string, error) {
	if c.Agent == "" || c.Company == "" || c.Run == "" {
		return "", errors.New("run token: incomplete claims")
	}
	c.IssuedAt, c.ExpiresAt = now.Unix(), now.Add(RunTokenLife).Unix()
	c.Issuer, c.Audience, c.Instance = runTokenIssuer, runTokenAudience, string(mesh)
	b, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("run token: %w", err)
	}
	signed := runTokenHeader + "." + runTokenText.EncodeToString(b)
	return signed + "." + runTokenText.EncodeToString(runTokenMAC(runTokenKey(master, mesh, c.Company), signed)), nil
}

// LooksLikeRunToken tells a run token from the other bearers.
func LooksLikeRunToken(token string) bool { return strings.Count(token, ".") == 2 }

// VerifyRunToken returns the claims of a token if it was made for the mesh, has not expired,
// and was signed with one of the data keys: the current one, or those of earlier epochs whose
// tokens may still be valid. The error is [ErrRunToken].
func VerifyRunToken(token string, masters []DataKey, mesh MeshID, now time.Time) (RunClaims, error) {
	var c RunClaims
	var header struct {
		Alg string `json:"alg"`
	}
	signed, mac, ok := cutLast(token)
	head, body, ok2 := strings.Cut(signed, ".")
	sum, err := runTokenText.DecodeString(mac)
	if len(token) > MaxRunToken || !ok || !ok2 || err != nil || !decodePart(head, &header) || header.Alg != "HS256" ||
		!decodePart(body, &c) {
		return RunClaims{}, ErrRunToken
	}
	valid := false
	for _, master := range masters {
		valid = valid || hmac.Equal(sum, runTokenMAC(runTokenKey(master, mesh, c.Company), signed))
	}
	if !valid || c.Issuer != runTokenIssuer || c.Audience != runTokenAudience || c.Instance != string(mesh) ||
		c.Agent == "" || c.Company == "" || c.Run == "" ||
		!now.Before(time.Unix(c.ExpiresAt, 0)) || now.Add(runTokenSkew).Before(time.Unix(c.IssuedAt, 0)) {
		return RunClaims{}, ErrRunToken
	}
	return c, nil
}

func runTokenMAC(key []byte, signed string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(signed))
	return m.Sum(nil)
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}

func decodePart(part string, v any) bool {
	b, err := runTokenText.DecodeString(part)
	return err == nil && json.Unmarshal(b, v) == nil
}
