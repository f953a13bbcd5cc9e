package govern

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// What a node says of a decision, signed with its key, so that whoever has the mesh's roster can check it. It is text:
//
//	<prefix>.<statement>.<signature>
//
// where prefix is "permit1" or "attest1", and the others are base64 (URL alphabet, no padding). The statement is JSON;
// the signature is Ed25519 by the key of the statement's node over the domain and the statement's bytes as they stand.
// Readers ignore members that they do not know, and refuse prefixes that they do not know.
//
//	permit1.eyJtZXNoIjoiNmY…In0.kqO3…Q

// The forms of signed statements: a permit token and the attestation of a decision.
const (
	permitPrefix, attestPrefix = "permit1", "attest1"
	permitDomain, attestDomain = "selvage/permit/v1", "selvage/attestation/v1"
	// MaxToken bounds a token, in bytes.
	MaxToken = 8 << 10
)

// A Statement is what a node signs: a permit, or what the gate said to a question.
type Statement struct {
	Mesh      string           `json:"mesh"`
	Node      string           `json:"node"` // that signed
	Company   ledger.CompanyID `json:"company,omitempty"`
	Agent     string           `json:"agent"`
	Action    string           `json:"action"`
	Arguments string           `json:"arguments,omitempty"` // SHA-256, in hex
	Permit    string           `json:"permit,omitempty"`    // its ID; "": an attestation
	Once      bool             `json:"once,omitempty"`
	Decision  string           `json:"decision"` // permit, escalate or deny
	Rules     []string         `json:"rules,omitempty"`
	Effect    []int32          `json:"effect,omitempty"` // in thousandths
	Rank      string           `json:"rank,omitempty"`
	Laws      string           `json:"constitution"` // hash of the rules that decided
	Height    uint64           `json:"height"`       // of the entry that granted it, or of the newest when it was asked
	Chain     string           `json:"chain_hash,omitempty"`
	At        int64            `json:"at"`              // milliseconds since 1970
	Until     int64            `json:"until,omitempty"` // the same
}

// Signed returns the token of a statement. The signer says which node it is.
func (s Statement) Signed(node string, sign func(domain string, msg []byte) []byte) string {
	s.Node = node
	prefix, domain := attestPrefix, attestDomain
	if s.Permit != "" {
		prefix, domain = permitPrefix, permitDomain
	}
	b, _ := json.Marshal(s) // never fails
	text := base64.RawURLEncoding.EncodeToString
	return prefix + "." + text(b) + "." + text(sign(domain, b))
}

// errToken is what is said of a token that is not right; which part of it is not, is nobody's business.
func errToken(why string) error {
	return ledger.Refuse(ledger.Forbidden, core.Object{}.Str("code", "bad_token").Close(), "token: %s", why)
}

// OpenToken returns the statement of a token that a member of this mesh has signed, and whether it is a permit. The
// error is a refusal. Whether the permit holds is another question, see [KindPermitUse].
func OpenToken(tx *ledger.Tx, mesh, token string) (s Statement, err error) {
	parts := strings.Split(token, ".")
	if len(token) > MaxToken || len(parts) != 3 || parts[0] != permitPrefix && parts[0] != attestPrefix {
		return s, errToken("want a permit token or an attestation: permit1.… or attest1.…")
	}
	domain := attestDomain
	if parts[0] == permitPrefix {
		domain = permitDomain
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	signature, err2 := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || err2 != nil || json.Unmarshal(b, &s) != nil {
		return Statement{}, errToken("it does not decode")
	}
	if s.Mesh != mesh || (s.Permit != "") != (domain == permitDomain) {
		return Statement{}, errToken("it is not of this mesh")
	}
	n, ok := ledger.FindNode(tx, identity.NodeID(s.Node))
	if !ok || n.RevokedAt != 0 || !identity.Verify(n.Key, domain, b, signature) {
		return Statement{}, errToken("no member of the mesh has signed it")
	}
	return s, nil
}

// Statement is what a token says of a permit. The hash is that of the rules that granted it.
func (p Permit) Statement(mesh, laws string) Statement {
	return Statement{Mesh: mesh, Company: p.Company, Agent: p.Act.Agent, Action: p.Act.Action, Arguments: p.Arguments,
		Permit: p.ID, Once: p.Once, Decision: "permit", Rules: p.Rules, Laws: laws, Height: p.Height, At: int64(p.At),
		Until: int64(p.Until)}
}
