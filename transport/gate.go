package transport

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"github.com/quic-go/quic-go"
)

// A gate bounds the incoming connections that have not shown yet who they are,
// in all and by source (an IPv4 address or an IPv6 /64).
type gate struct {
	mu    sync.Mutex
	total int
	from  map[netip.Prefix]int // only sources with a count above 0
}

func sourceOf(a net.Addr) netip.Prefix {
	ap := addrPort(a)
	bits := 32
	if ap.Addr().Is6() {
		bits = 64
	}
	p, err := ap.Addr().Prefix(bits)
	if err != nil {
		return netip.Prefix{} // an address of no known kind; all such count as one source
	}
	return p
}

// suspicious reports whether a must first prove its address.
func (g *gate) suspicious(a net.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.total >= retryAbove || g.from[sourceOf(a)] >= retryAbove/4
}

// enter counts one connection in; false means that a bound was reached.
func (g *gate) enter(a net.Addr) (leave func(), ok bool) {
	src := sourceOf(a)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.total >= handshakesTotal || g.from[src] >= handshakesPerAddr {
		return nil, false
	}
	g.total++
	g.from[src]++
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.total--
		if g.from[src]--; g.from[src] == 0 {
			delete(g.from, src)
		}
	}), true
}

func (g *gate) pending() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.total
}

// passKey is where a connection's context keeps its pass.
type passKey struct{}

// A pass belongs to one incoming connection. leave is called when its
// handshakes are over; whether TLS got so far is for counting.
type pass struct {
	leave func()
	mu    sync.Mutex
	tls   bool
}

// admit is quic-go's ConnContext: it is asked before any work is done for a
// connection, and its context ends with the connection.
func (t *Transport) admit(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
	leave, ok := t.gate.enter(info.RemoteAddr)
	if !ok {
		e := refuse(Busy, "too many handshakes")
		t.count.refusing(e)
		return nil, e
	}
	p := &pass{leave: leave}
	context.AfterFunc(ctx, func() {
		leave()
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.tls {
			t.count.refusing(refuse(NoTLS, ""))
		}
	})
	return context.WithValue(ctx, passKey{}, p), nil
}

func addrPort(a net.Addr) netip.AddrPort {
	u, ok := a.(*net.UDPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := u.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
