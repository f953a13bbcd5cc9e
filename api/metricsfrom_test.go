package api_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// Where people sign in, the figures are for administrators, and for the networks
// that the operator lists: no other address is let in, loopback least of all, and no
// run by the address of its machine.
func TestWhoReadsTheFigures(t *testing.T) {
	t.Parallel()
	run := false
	change := func(c *api.Config) {
		c.MetricsFrom = []netip.Prefix{netip.MustParsePrefix("10.1.2.0/24"), netip.MustParsePrefix("fd00::/64")}
		c.FromRun = func(netip.AddrPort, netip.AddrPort) (bool, error) { return run, nil }
	}
	h := apitest.Peopled(t, change)
	admin := h.Admin()
	of := ledger.CompanyID(h.Call("POST", "/api/companies", `{"name":"Acme"}`, admin, apitest.OwnOrigin).Want(t, 201, "").
		Field(t, "id"))
	operator, _ := h.Join(of, admin, "Olga", people.RoleOperator)
	h.Call("GET", "/metrics", "").Want(t, 401, "Board authentication required")
	h.Call("GET", "/metrics", "", admin).Want(t, 200, "selvage_http_requests_total")
	h.Call("GET", "/metrics", "", operator).Want(t, 403, "Instance admin required")

	ask := func(s *api.Server, remote, local, forwarded string) int {
		client, server := &net.TCPAddr{}, &net.TCPAddr{}
		for a, text := range map[*net.TCPAddr]string{client: remote, server: local} {
			*a = *net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text))
		}
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.RemoteAddr, r.Host = remote, "127.0.0.1:3100"
		ctx := s.ConnContext(r.Context(), ends{client: client, server: server})
		r = r.WithContext(withLocal(ctx, server))
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code
	}
	for _, c := range []struct {
		name, remote, local, forwarded string
		run                            bool
		want                           int
	}{
		{"a network of the list", "10.1.2.7:5", "10.1.2.1:3100", "", false, 200},
		{"the same by IPv6", "[fd00::7]:5", "[fd00::1]:3100", "", false, 200},
		{"another", "10.1.3.7:5", "10.1.2.1:3100", "", false, 401},
		{"another that says it is forwarded", "10.1.3.7:5", "10.1.2.1:3100", "10.1.2.7", false, 401},
		{"loopback", "127.0.0.1:5", "127.0.0.1:3100", "", false, 401},
		{"a run at an address of its machine", "10.1.2.1:5", "10.1.2.1:3100", "", true, 401},
	} {
		run = c.run
		if got := ask(h.Server, c.remote, c.local, c.forwarded); got != c.want {
			t.Errorf("%s was answered %d, want %d", c.name, got, c.want)
		}
	}
	proxied := apitest.Peopled(t, change, func(c *api.Config) { c.Proxied = true })
	run = true // the proxy is whoever it is
	for forwarded, want := range map[string]int{"10.1.2.7": 200, "10.1.3.7": 401, "10.1.2.7, 10.1.3.7": 401, "": 401} {
		if got := ask(proxied.Server, "10.1.2.9:5", "10.1.2.1:3100", forwarded); got != want {
			t.Errorf("behind a proxy, for %q, it was answered %d, want %d", forwarded, got, want)
		}
	}
	// Where nobody signs in it is the machine's own, but for its runs.
	local := apitest.NewHarness(t, change)
	for _, run = range []bool{false, true} {
		if got := ask(local.Server, "127.0.0.1:5", "127.0.0.1:3100", ""); got != map[bool]int{false: 200, true: 401}[run] {
			t.Errorf("on the machine, run %t, it was answered %d", run, got)
		}
	}
}

// ends are the addresses of a connection.
type ends struct {
	net.Conn
	client, server net.Addr
}

func (e ends) RemoteAddr() net.Addr { return e.client }
func (e ends) LocalAddr() net.Addr  { return e.server }

func withLocal(ctx context.Context, at net.Addr) context.Context {
	return context.WithValue(ctx, http.LocalAddrContextKey, at)
}

// A look after a caller that does not come to its end keeps others from theirs only as
// long as they wait, and they are told what they waited for.
func TestACallerIsToldThatNobodyLookedInTime(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t, func(c *api.Config) {
		c.FromRun = func(netip.AddrPort, netip.AddrPort) (bool, error) { return false, nil }
	})
	end := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5}
	ctx, cancel := context.WithCancel(h.Server.ConnContext(t.Context(), ends{client: end, server: end}))
	for range api.MaxLooks {
		h.Server.Looks <- struct{}{}
	}
	cancel()
	status, body, _ := api.AnswerOf(h.Server.NotARun(ctx))
	if status != http.StatusServiceUnavailable || body.Code != "caller_look_busy" {
		t.Errorf("got %d %+v", status, body)
	}
	<-h.Server.Looks
	if err := h.Server.NotARun(h.Server.ConnContext(t.Context(), ends{client: end, server: end})); err != nil {
		t.Errorf("with room again: %v", err)
	}
}
