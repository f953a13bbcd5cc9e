package discovery

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/transport"
)

// A Port is what discovery needs of the transport: datagrams that are not QUIC
// and streams to authenticated members. *transport.GossipPort is one. Its
// channels need not be closed when it ends.
type Port interface {
	WriteTo(b []byte, addr string) (time.Time, error)
	Packets() <-chan transport.GossipPacket
	DialStream(addr string, timeout time.Duration) (net.Conn, error)
	Streams() <-chan net.Conn
}

// Config says how a node takes part in gossip.
type Config struct {
	Port      Port           // required
	Advertise netip.AddrPort // where others reach this node's port; required, not a wildcard
	Meta      Meta           // Node and Mesh are required
	Keys      []Key          // 1 to MaxKeys epochs of the gossip key; the first is used

	// Member reports whether the roster has the node, not revoked. It is called
	// with memberlist's lock held: it must not wait or call discovery. Required.
	Member func(identity.NodeID) bool

	// Dir holds the peer cache, file "peers". "" keeps none.
	Dir string

	// Seeds are host:port of peers to ask first. Names are looked up at each try.
	Seeds []string

	// Hints are further addresses to try, asked for at each try, for example the
	// roster's. nil: none.
	Hints func() []netip.AddrPort

	// Sighted says where a node was heard beside gossip, such as on the local
	// network. nil: nowhere.
	Sighted func(identity.NodeID) []netip.AddrPort

	// Connected says where a working connection to a node leads, which may be
	// elsewhere than the node says it is: what is sent to it is sent there too. nil: nowhere.
	Connected func(identity.NodeID) (netip.AddrPort, bool)

	// Late is how late this node runs at the moment, for want of a processor: what it
	// believes of others waits for that. nil: it never does.
	Late func() time.Duration

	// Logger; nil discards.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Late == nil {
		c.Late = func() time.Duration { return 0 }
	}
	if c.Hints == nil {
		c.Hints = func() []netip.AddrPort { return nil }
	}
	if c.Sighted == nil {
		c.Sighted = func(identity.NodeID) []netip.AddrPort { return nil }
	}
	if c.Connected == nil {
		c.Connected = func(identity.NodeID) (netip.AddrPort, bool) { return netip.AddrPort{}, false }
	}
	c.Advertise = unmap(c.Advertise)
	return c
}

// Validate reports every problem at once.
func (c Config) Validate() error {
	var errs []error
	if c.Port == nil {
		errs = append(errs, errors.New("no port"))
	}
	if c.Member == nil {
		errs = append(errs, errors.New("no roster"))
	}
	if !usable(c.Advertise) {
		errs = append(errs, fmt.Errorf("%v can not be advertised to peers", c.Advertise))
	}
	if _, err := c.Meta.MarshalBinary(); err != nil {
		errs = append(errs, err)
	}
	for _, s := range c.Seeds {
		if _, _, err := net.SplitHostPort(s); err != nil {
			errs = append(errs, fmt.Errorf("seed %q: %w", s, err))
		}
	}
	return errors.Join(errs...)
}

func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// usable reports whether a packet can be sent to a.
func usable(a netip.AddrPort) bool {
	return a.IsValid() && a.Port() != 0 && !a.Addr().IsUnspecified() && !a.Addr().IsMulticast()
}
