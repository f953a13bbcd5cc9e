package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/selvage-mesh/selvage/identity"
)

// A GossipPort is what the gossip room needs of the transport: datagrams on the
// same socket that are not QUIC, and streams to whichever member is at an
// address. Packets are not authenticated here: gossip seals them itself.
type GossipPort struct {
	t       *Transport
	packets chan GossipPacket
	streams chan net.Conn
}

// A GossipPacket is one datagram.
type GossipPacket struct {
	Buf  []byte // owned by the receiver
	From net.Addr
	Time time.Time // of arrival
}

// ErrGossipPacket says that a packet can not be sent as gossip: it is empty,
// longer than [MaxGossipPacket], or its first byte would be taken for QUIC (the
// two highest bits must be 0; memberlist's are, without a label).
var ErrGossipPacket = errors.New("not a gossip packet")

func newGossipPort(t *Transport) *GossipPort {
	return &GossipPort{t, make(chan GossipPacket, gossipBacklog), make(chan net.Conn, gossipStreams)}
}

// Gossip returns the node's gossip port.
func (t *Transport) Gossip() *GossipPort { return t.gossip }

// WriteTo sends a datagram to addr, an IP address with a port, and returns when.
func (g *GossipPort) WriteTo(b []byte, addr string) (time.Time, error) {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return time.Time{}, fmt.Errorf("gossip packet: %w", err)
	}
	if len(b) == 0 || len(b) > MaxGossipPacket || b[0]&0xc0 != 0 {
		return time.Time{}, fmt.Errorf("%w: %d bytes", ErrGossipPacket, len(b))
	}
	if g.t.ctx.Err() != nil {
		return time.Time{}, ErrClosed
	}
	if _, err := g.t.quic.WriteTo(b, net.UDPAddrFromAddrPort(ap)); err != nil {
		return time.Time{}, fmt.Errorf("gossip packet: %w", err)
	}
	g.t.count.gossipSent.Add(1)
	return time.Now(), nil
}

// Packets delivers datagrams; it is never closed. What nobody takes in time is
// dropped and counted.
func (g *GossipPort) Packets() <-chan GossipPacket { return g.packets }

// Streams delivers the gossip streams that members open; it is never closed.
func (g *GossipPort) Streams() <-chan net.Conn { return g.streams }

// DialStream opens a gossip stream to the member at addr, an IP address with a
// port, whoever that is.
func (g *GossipPort) DialStream(addr string, timeout time.Duration) (net.Conn, error) {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, fmt.Errorf("gossip stream: %w", err)
	}
	ap = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	ctx, cancel := context.WithTimeout(g.t.ctx, timeout)
	defer cancel()
	s, err := g.t.openVia(ctx, KindGossip, func() (*peer, error) { return g.t.peerAt(ctx, ap) })
	if err != nil {
		return nil, fmt.Errorf("gossip stream: %w", err)
	}
	return s, nil
}

// peerAt returns a connection to whoever is at addr.
func (t *Transport) peerAt(ctx context.Context, addr netip.AddrPort) (*peer, error) {
	if old := t.connectedTo(addr); old != nil {
		return t.better(ctx, old, func(ctx context.Context) (*peer, error) { return t.newPeerAt(ctx, addr) })
	}
	return t.newPeerAt(ctx, addr)
}

// newPeerAt dials whoever is at addr.
func (t *Transport) newPeerAt(ctx context.Context, addr netip.AddrPort) (*peer, error) {
	t.mu.Lock()
	closed := t.closed
	t.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	p, err := t.dialAddr(ctx, addr, "")
	if err != nil {
		return nil, err
	}
	return p, t.welcomeBack(p)
}

func (t *Transport) connectedTo(addr netip.AddrPort) (found *peer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ps := range t.peers {
		for _, p := range ps {
			if !p.gone() && addrPort(p.conn.RemoteAddr()) == addr && (found == nil || p.serial > found.serial) {
				found = p
			}
		}
	}
	return found
}

// take is the handler of KindGossip.
func (g *GossipPort) take(from identity.NodeID, c net.Conn) {
	select {
	case g.streams <- c:
	default:
		g.t.refuseStream(c.(*stream), refuse(Busy, "gossip streams"))
	}
}

// read moves packets from quic-go's short queue to ours.
func (g *GossipPort) read() {
	buf := make([]byte, 2048)
	for {
		n, from, err := g.t.quic.ReadNonQUICPacket(g.t.ctx, buf)
		if err != nil {
			return
		}
		g.t.count.gossipReceived.Add(1)
		select {
		case g.packets <- GossipPacket{append([]byte(nil), buf[:n]...), from, time.Now()}:
		default:
			g.t.count.gossipDropped.Add(1)
		}
	}
}
