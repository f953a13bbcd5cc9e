package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// CapScheme is the scheme of the Authorization header for capability tokens.
const CapScheme = "WeftOS-Cap"

// Capabilities are what a capability token can grant: the values of [Route.Capability].
var Capabilities = []string{"execute", "govern"}

var errCap = Unauthorized("The capability token did not verify, or the credential that it was made with ended; make " +
	"a new one with POST /api/v1/capabilities")

type withinKey struct{}

// Within returns the context of a request that this request makes of the same server, as the same caller.
func (rc *Request) Within() context.Context {
	return context.WithValue(rc.Context(), withinKey{}, rc)
}

// byWithin takes over who asks from the request that makes this one.
func (rc *Request) byWithin() bool {
	outer, ok := rc.HTTP.Context().Value(withinKey{}).(*Request)
	if ok {
		rc.Actor, rc.Credential, rc.Company, rc.Run, rc.KeyID = outer.Actor, outer.Credential, outer.Company,
			outer.Run, outer.KeyID
	}
	return ok
}

// capTokenOf returns the capability token of a request.
func capTokenOf(r *http.Request) (token string, given bool) {
	header := r.Header["Authorization"]
	if len(header) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(strings.TrimSpace(header[0]), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, CapScheme)
}

// byCapToken lets a caller act with the credential that the token was made with, on routes that the token grants.
func (rc *Request) byCapToken(token, run string) error {
	s := rc.Server
	if s.Cfg.DataKeys == nil {
		return errCap
	}
	c, err := identity.VerifyCapToken(token, s.Cfg.DataKeys(), s.Cfg.Mesh, rc.Now())
	if err != nil {
		return errCap
	}
	alive, err := rc.StillTrue(func(tx *ledger.Tx) bool { return rc.capSpeaks(tx, c) })
	if err != nil {
		return err
	}
	if !alive {
		return errCap
	}
	if of := rc.Route.Capability; of == "" || !c.Has(of) {
		return Forbidden("The capability token does not grant this: it grants " + strings.Join(c.Capabilities, ", "))
	}
	rc.Actor, rc.Credential = ledger.Actor{Type: c.ActorType, ID: c.Actor}, ledger.Credential{Kind: c.CredKind,
		ID: c.CredID}
	if rc.IsAgent() {
		rc.Company, rc.Run = ledger.CompanyID(c.Company), run
	}
	switch c.CredKind {
	case "run":
		rc.Run = c.CredID
	case "agent_key":
		rc.KeyID = c.CredID
	}
	rc.granted = &c
	return nil
}

// capSpeaks reports whether the credential that a token was made with is still valid.
func (rc *Request) capSpeaks(tx *ledger.Tx, c identity.CapClaims) bool {
	of := ledger.CompanyID(c.Company)
	switch c.CredKind {
	case "local":
		return rc.Server.TrustsAll()
	case "session":
		s, ok := people.SessionByID(tx, c.CredID)
		return ok && people.SignsIn(tx) && s.User == c.Actor && s.Valid(core.TimeOf(rc.Now()))
	case "board_key":
		k, ok := people.BoardKeyByID(tx, c.CredID)
		return ok && k.User == c.Actor && k.Valid(core.TimeOf(rc.Now())) && people.Speaks(tx, k.User)
	case "agent_key":
		k, ok := people.AgentKeys.Get(tx, of, c.CredID)
		return ok && k.RevokedAt == 0 && k.Agent == c.Actor && agentSpeaks(tx, c.Actor)
	case "run":
		return runSpeaks(tx, identity.RunClaims{Agent: c.Actor, Company: c.Company, Run: c.CredID})
	}
	return false
}

// Granted refuses what the capability token of the caller is not for: another company, or another agent than the one
// that has one of the names. Without a token everything is granted.
func (rc *Request) Granted(of ledger.CompanyID, agent ...string) error {
	c := rc.granted
	if c == nil {
		return nil
	}
	if c.Company != "" && of != "" && of != ledger.CompanyID(c.Company) {
		return Forbidden("The capability token is for another company")
	}
	for _, name := range agent {
		if c.Agent == "" || strings.EqualFold(c.Agent, name) {
			return nil
		}
	}
	return Forbidden("agent_id: the capability token is for another agent")
}
