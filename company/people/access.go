package people

import (
	"cmp"
	"encoding/hex"
	"net/url"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// How people authenticate. All nodes use the same mode.
const (
	// LocalTrusted treats every caller on loopback as the board.
	LocalTrusted = "local_trusted"
	// Authenticated requires a credential from every caller.
	Authenticated = "authenticated"
)

// AuthMode returns how people authenticate: the mode that was set last, first by the
// founder; LocalTrusted by default.
func AuthMode(tx *ledger.Tx) string { return cmp.Or(ledger.AuthMode(tx), LocalTrusted) }

// SignsIn reports whether the board must present a credential. A mode that this version
// does not know counts as one that requires credentials.
func SignsIn(tx *ledger.Tx) bool { return AuthMode(tx) != LocalTrusted }

// Speaks reports whether a user may act at all. The local board may only in mode
// LocalTrusted; a suspended user may not.
func Speaks(tx *ledger.Tx, user string) bool {
	if user == LocalBoard {
		return !SignsIn(tx)
	}
	u, _ := UserByID(tx, user)
	return !u.Suspended()
}

// SetAuth is the payload of instance.auth.
type SetAuth struct {
	Mode string `cbor:"1,keyasint"`
}

// An Endpoint is where a node serves the API over TLS. URL is the address it listens on;
// Fingerprint is the SHA-256 of the certificate, in hex, or "" without a certificate.
type Endpoint struct {
	URL         string    `cbor:"1,keyasint" json:"url"`
	Fingerprint string    `cbor:"2,keyasint,omitempty" json:"fingerprint"`
	UpdatedAt   core.Time `cbor:"3,keyasint" json:"updatedAt"`
}

// SetEndpoint is the payload of instance.endpoint, by which a node states its own endpoint.
type SetEndpoint struct {
	URL         string `cbor:"1,keyasint"`
	Fingerprint string `cbor:"2,keyasint,omitempty"`
}

var endpoints = ledger.NewMeshTable[string, Endpoint]("endpoint")

const maxEndpoint = 300 // bytes of a URL

// EndpointOf returns the endpoint that a node has stated.
func EndpointOf(tx *ledger.Tx, node string) (Endpoint, bool) { return endpoints.Get(tx, node) }

const (
	KindInstanceAuth     = "instance.auth"
	KindInstanceEndpoint = "instance.endpoint"
)

var accessKinds = []company.Kind{
	{Name: KindInstanceAuth, From: company.FromBoard, Traits: company.EndsKeys, Weight: company.Weights.MeshSettings,
		Do: ledger.Typed(setAuth)},
	{Name: KindInstanceEndpoint, From: company.FromNode, Traits: company.EndsKeys, Weight: company.Weights.ByNodes,
		Do: ledger.Typed(setEndpoint)},
}

func setAuth(c *ledger.Context, p SetAuth) (any, error) {
	if p.Mode != LocalTrusted && p.Mode != Authenticated {
		return nil, ledger.Refuse(ledger.Invalid, nil, "mode is %s or %s", LocalTrusted, Authenticated)
	}
	before := AuthMode(c.Tx)
	if before == p.Mode {
		return nil, nil
	}
	ledger.SetAuthMode(c.Tx, p.Mode)
	c.Record(ledger.Change{Action: "instance.auth_mode_changed", EntityType: "instance_settings", EntityID: "auth",
		Details: core.Object{}.Str("from", before).Str("to", p.Mode).Close()})
	return nil, nil
}

func setEndpoint(c *ledger.Context, p SetEndpoint) (any, error) {
	u, err := url.Parse(p.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || len(p.URL) > maxEndpoint {
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed URL")
	}
	if raw, err := hex.DecodeString(p.Fingerprint); err != nil || len(raw) != 32 && len(raw) != 0 {
		return nil, ledger.Refuse(ledger.Invalid, nil, "a fingerprint is a SHA-256 in hex")
	}
	node := c.Cmd.Credential.ID
	endpoints.Put(c.Tx, node, Endpoint{p.URL, p.Fingerprint, core.TimeOf(c.Now)})
	c.Record(ledger.Change{Action: "node.endpoint_changed", EntityType: "node", EntityID: node,
		Details: core.Object{}.Str("url", p.URL).Str("fingerprint", p.Fingerprint).Close()})
	return nil, nil
}
