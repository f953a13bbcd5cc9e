package api

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// authMode says how people sign in.
type authMode struct {
	Mode string `json:"mode" enum:"local_trusted,authenticated"`
}

// AccessRoutes read and change how people sign in, on all nodes.
func AccessRoutes() []Route {
	const path = "/api/v1/mesh/auth"
	return []Route{
		{Method: "GET", Path: path, Tag: "mesh", Summary: "Tell how people prove who they are", Who: Admin, Out: authMode{},
			Handle: readAuth},
		{Method: "PUT", Path: path, Tag: "mesh", Summary: "Change how people prove who they are, on all nodes", Who: Admin,
			In: authMode{}, Out: authMode{}, NoTool: true, Handle: setAuth},
	}
}

func readAuth(rc *Request) (Response, error) {
	var out authMode
	err := rc.View(func(tx *ledger.Tx) error { out.Mode = people.AuthMode(tx); return nil })
	return OK(out), err
}

func setAuth(rc *Request) (Response, error) {
	in, err := Body[authMode](rc)
	if err != nil {
		return Response{}, err
	}
	_, err = rc.Submit(people.KindInstanceAuth, "", people.SetAuth{Mode: in.Mode})
	return OK(in), err
}

// serveMetrics serves metrics to an administrator, which in local_trusted mode is everybody
// on the machine, and without a credential to the networks that the operator lists, but
// never to runs.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if !s.mayScrape(r) {
		rc := &Request{HTTP: r, ID: IdOf(r), Server: s, Route: &Route{Method: "GET", Path: "/metrics", Who: Admin}, W: w}
		if err := rc.Open(); err != nil {
			s.refuse(w, r, err)
			return
		}
	}
	s.metrics.handler.ServeHTTP(w, r)
}

// mayScrape reports whether a request needs no credential for metrics. A proxy that does not
// name its client is in none of the networks.
func (s *Server) mayScrape(r *http.Request) bool {
	from, _ := s.address(r)
	if !slices.ContainsFunc(s.Cfg.MetricsFrom, func(p netip.Prefix) bool { return p.Contains(from) }) {
		return false
	}
	if s.Cfg.Proxied {
		return r.Header.Get("X-Forwarded-For") != ""
	}
	if near, _ := Loopback(r.RemoteAddr); near || sameHost(r) {
		return s.NotARun(r.Context()) == nil
	}
	return true
}

// sameHost reports whether a request went from an address of this machine to itself: then
// both ends have the same address.
func sameHost(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(interface{ String() string })
	if !ok {
		return false
	}
	local, err := netip.ParseAddrPort(at.String())
	remote, err2 := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && err2 == nil && local.Addr().Unmap() == remote.Addr().Unmap()
}

func ErrNoChallenge() error { return NotFound("CLI auth challenge not found") }

// AuthRefusal is a refusal in the form that sign-in pages read, with our own key added.
type AuthRefusal struct {
	Message string `json:"message"`
	Code    string `json:"code,omitempty"`
	Error   string `json:"error"`
}
