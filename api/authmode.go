package api

import (
	"net/http"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/ledger"
)

// authMode says how people prove who they are.
type authMode struct {
	Mode string `json:"mode" enum:"local_trusted,authenticated"`
}

// accessRoutes tell and change how people prove who they are, on all nodes.
func (s *Server) accessRoutes() []Route {
	const path = "/api/v1/mesh/auth"
	return []Route{
		{Method: "GET", Path: path, Tag: "mesh", Summary: "Tell how people prove who they are", Who: Admin, Out: authMode{}, Handle: readAuth},
		{Method: "PUT", Path: path, Tag: "mesh", Summary: "Change how people prove who they are, on all nodes", Who: Admin, In: authMode{}, Out: authMode{}, NoTool: true, Handle: setAuth},
	}
}

func readAuth(rc *Request) (Response, error) {
	var out authMode
	err := rc.View(func(tx *ledger.Tx) error { out.Mode = company.AuthMode(tx); return nil })
	return OK(out), err
}

func setAuth(rc *Request) (Response, error) {
	in, err := Body[authMode](rc)
	if err != nil {
		return Response{}, err
	}
	_, err = rc.Submit("instance.auth", "", company.SetAuth{Mode: in.Mode})
	return OK(in), err
}

// serveMetrics gives figures to the node's own machine; where everybody shows a
// credential, others show one of an administrator.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if near, _ := Loopback(r.RemoteAddr); !s.trustsAll() && (!near || s.cfg.Proxied) {
		rc := &Request{HTTP: r, ID: idOf(r), server: s, route: &Route{Method: "GET", Path: "/metrics", Who: Admin}, w: w}
		if err := rc.open(); err != nil {
			s.refuse(w, r, err)
			return
		}
	}
	s.metrics.handler.ServeHTTP(w, r)
}
