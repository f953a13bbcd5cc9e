package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// SessionCookie is the cookie with the token of a session.
const SessionCookie = "paperclip-default.session_token"

var (
	ErrNobody = Unauthorized("Board authentication required")
	errOrigin = Forbidden("Board mutation requires trusted browser origin")
)

// refuseNobody returns the refusal for a caller without a credential.
func (rc *Request) refuseNobody() error {
	switch {
	case rc.Route.NobodyAsAgent:
		return errBoardOnly
	case rc.Route.Who == Agent:
		return errAgentOnly
	}
	return ErrNobody
}

// Mode returns how people sign in on this mesh, "" while this node does not know it: then
// nobody is trusted.
func (s *Server) Mode() string {
	mode, _ := s.mode.Load().(string)
	return mode
}

// LearnMode reads the mode from this node's state once it has a raft index, 0 for any. One
// read at a time: an older value never replaces a newer one.
func (s *Server) LearnMode(ctx context.Context, least uint64) {
	if least > 0 { // a node that can not catch up learns it from the feed
		s.Cfg.Node.View(ctx, ledger.Read{AtLeast: least}, func(*ledger.Tx) error { return nil })
	}
	s.learning.Lock()
	defer s.learning.Unlock()
	mode := ""
	_, err := s.Cfg.Node.View(s.Ctx, ledger.Read{Mode: ledger.ReadStale}, func(tx *ledger.Tx) error {
		if _, _, founded := ledger.Founding(tx); founded {
			mode = people.AuthMode(tx)
		}
		return nil
	})
	if err == nil {
		s.mode.Store(mode)
	}
}

// TrustsAll reports whether everybody who reaches this node is the board: in local_trusted
// mode, on loopback, unless a proxy lets others in.
func (s *Server) TrustsAll() bool { return s.Mode() == people.LocalTrusted && !s.Cfg.Proxied }

// checkDoor refuses requests from the network while the mesh requires no credentials: the mode
// may have changed after the address was bound.
func (s *Server) checkDoor(r *http.Request) error {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(interface{ String() string })
	if !ok {
		return nil
	}
	addr, err := netip.ParseAddrPort(at.String())
	if err != nil || addr.Addr().Unmap().IsLoopback() {
		return nil
	}
	if s.Mode() == people.Authenticated {
		return nil
	}
	return Forbidden("This mesh does not ask for credentials; its API is for each node's own machine only")
}

// CookieToken returns the token of the session cookie. Two such cookies count as none.
func CookieToken(r *http.Request) (token string, given bool) {
	for _, c := range r.CookiesNamed(SessionCookie) {
		if given || c.Value == "" || len(c.Value) > maxBearer {
			return "", false
		}
		token, given = c.Value, true
	}
	return token, given
}

// BySession authenticates a signed-in user. A request that changes something must come from a
// page of this node, because browsers send the cookie with requests of other pages too.
func (rc *Request) BySession(token string) error {
	who, err := rc.byKey(token, "session", sessionOpens)
	if err == ErrBearer {
		return ErrNobody
	}
	if err != nil {
		return err
	}
	if r := rc.HTTP; r.Method != "GET" && r.Method != "HEAD" && !OwnPage(r) {
		return errOrigin
	}
	who.enter(rc)
	return nil
}

func sessionOpens(tx *ledger.Tx, hash string, now core.Time) (Holder, bool) {
	s, ok := people.SessionByHash(tx, hash)
	return Holder{Actor: ledger.Actor{Type: "user", ID: s.User}, Cred: ledger.Credential{Kind: "session", ID: s.ID},
			Until: s.ExpiresAt},
		ok && people.SignsIn(tx) && s.Valid(now)
}

// OwnPage reports whether a request comes from a page of this host.
func OwnPage(r *http.Request) bool {
	from := r.Header.Get("Origin")
	if from == "" {
		from = r.Header.Get("Referer")
	}
	u, err := url.Parse(from)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// secure reports whether the caller's connection is encrypted.
func (s *Server) secure(r *http.Request) bool {
	return r.TLS != nil || s.Cfg.Proxied && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// KeepCookie sets the cookie of a session, or deletes it for "".
func (rc *Request) KeepCookie(token string) {
	c := &http.Cookie{Name: SessionCookie, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: rc.Server.secure(rc.HTTP), MaxAge: int(people.SessionAge / time.Second)}
	if token == "" {
		c.MaxAge = -1
	}
	rc.SetHeader("Set-Cookie", c.String())
	rc.SetHeader("Cache-Control", "no-store")
}

// Limited refuses a request when its source, or one of the accounts, has made too many.
func (rc *Request) Limited(what string, r Rate, accounts ...string) error {
	names := []string{what + " from " + rc.Server.Source(rc.HTTP)}
	for _, a := range accounts {
		sum := sha256.Sum256([]byte(a))
		names = append(names, what+" of "+hex.EncodeToString(sum[:16]))
	}
	for _, name := range names {
		if ok, after := rc.Server.Limits.Allow(name, r, rc.Server.Cfg.Wall()); !ok {
			rc.SetHeader("Retry-After", seconds(after))
			return ErrTooOften
		}
	}
	return nil
}

// ErrTooOften is the 429.
var ErrTooOften = &ledger.Refusal{Code: ledger.TooMany, Message: "Too many requests. Please try again later."}
