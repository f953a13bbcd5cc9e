package transport

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/selvage-mesh/selvage/identity"
)

// Config is what a transport needs. Functions are called from several
// goroutines, often, and must not block unless they say so.
type Config struct {
	// Conn is the socket, which the transport owns from then on. A *net.UDPConn
	// gets all of quic-go's optimisations; tests pass a simulated one. Required.
	Conn net.PacketConn

	// Keys is the node's identity. Required.
	Keys *identity.Keys

	// Mesh is the mesh that the node belongs to now, "" for none: then nobody
	// is let in, and only Join works. Required.
	Mesh func() identity.MeshID

	// Epoch is the epoch of the mesh that the node belongs to; default 1. Nodes of
	// another one are turned away, whoever they are.
	Epoch func() uint64

	// OnEpoch hears of a node that showed to be in a later epoch, once for each
	// attempt: known is the member on the roster whose word that is, the node
	// itself or who admitted it.
	OnEpoch func(from, known identity.NodeID, epoch uint64)

	// Member looks a node up in the roster. Revoked nodes are known and revoked.
	// Required.
	Member func(identity.NodeID) (key ed25519.PublicKey, revoked, known bool)

	// Admission returns this node's admission chain, as identity.EncodeAdmissions
	// makes it, or nil. Peers that have not heard of this node need it.
	Admission func() []byte

	// Resolve returns where a node may be, for nodes whose learned addresses are
	// missing or stale: roster hints, seeds, peer cache. It may take a second.
	Resolve func(identity.NodeID) []netip.AddrPort

	// PSK returns the key of a join token that is valid now. Without it nobody joins here.
	PSK func(tokenID string) (key []byte, ok bool)

	// OnJoin answers the request of a token holder, who has shown to hold the
	// token's key and the certified node key. It may block until ctx ends. The
	// text of an error is sent to the joining node.
	OnJoin func(ctx context.Context, from identity.Certificate, tokenID string, request []byte) (reply []byte, err error)

	// Genesis returns the bytes that the mesh's ID is the hash of. Nodes that ask
	// to be let in see by it, and by Admission, that this node is a member.
	Genesis func() []byte

	// OnAsk takes the request of a node that holds nothing but its own key, and
	// was seen from an address. It decides at once whether the request may wait: an
	// error says why it may not. await blocks until somebody has decided, or ctx
	// ends; the text of its error is sent to the node. Without OnAsk nobody asks here.
	OnAsk func(a Asked) (await func(ctx context.Context) (reply []byte, err error), err error)

	// OnRevoked is told when a member ended its connection because it holds this
	// node to be revoked.
	OnRevoked func(by identity.NodeID)

	// OnControl takes a control frame of a member, in the order of sending. It
	// is called by the reader of the connection: while it runs nothing else of
	// that control channel is read, pings included, so it must only hand over.
	// It owns the payload.
	OnControl func(from identity.NodeID, typ byte, payload []byte)

	// Logger takes what the transport has to say. Required.
	Logger *slog.Logger

	// StatelessResetKey makes peers notice at once that this node was restarted.
	// Default: keys.Local("quic-stateless-reset"), which outlives restarts.
	StatelessResetKey [32]byte

	// MaxStreams bounds the streams that one connection of a peer may have open
	// here at a time. Default 256: raft needs a dozen, run logs one a reader.
	MaxStreams int

	// IdleTimeout closes a connection after this much silence. Default 15 s:
	// long enough for a paused virtual machine, short enough to notice a
	// vanished peer when gossip does not. At least 1 s.
	IdleTimeout time.Duration

	// KeepAlive is how often a peer in use (with an open stream) is pinged.
	// Default a third of IdleTimeout, so that two may be lost.
	KeepAlive time.Duration

	// HandshakeTimeout bounds each of the QUIC and the Noise handshake. Default
	// 5 s: three round trips on the worst path, with losses.
	HandshakeTimeout time.Duration

	// NoAES makes the node behave as if its CPU had no AES instructions.
	NoAES bool
}

func (c Config) withDefaults() Config {
	if c.StatelessResetKey == [32]byte{} && c.Keys != nil {
		c.StatelessResetKey = c.Keys.Local("quic-stateless-reset")
	}
	if c.Admission == nil {
		c.Admission = func() []byte { return nil }
	}
	if c.Epoch == nil {
		c.Epoch = func() uint64 { return 1 }
	}
	if c.OnEpoch == nil {
		c.OnEpoch = func(identity.NodeID, identity.NodeID, uint64) {}
	}
	if c.Resolve == nil {
		c.Resolve = func(identity.NodeID) []netip.AddrPort { return nil }
	}
	if c.PSK == nil {
		c.PSK = func(string) ([]byte, bool) { return nil, false }
	}
	if c.Genesis == nil {
		c.Genesis = func() []byte { return nil }
	}
	if c.OnRevoked == nil {
		c.OnRevoked = func(identity.NodeID) {}
	}
	if c.OnControl == nil {
		c.OnControl = func(identity.NodeID, byte, []byte) {}
	}
	c.MaxStreams = cmp.Or(c.MaxStreams, 256)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, 15*time.Second)
	c.KeepAlive = cmp.Or(c.KeepAlive, c.IdleTimeout/3)
	c.HandshakeTimeout = cmp.Or(c.HandshakeTimeout, 5*time.Second)
	return c
}

// Validate reports every problem of c.
func (c Config) Validate() error {
	var problems []error
	need := func(ok bool, what string) {
		if !ok {
			problems = append(problems, errors.New("transport: "+what))
		}
	}
	c = c.withDefaults()
	need(c.Conn != nil, "Conn is required")
	need(c.Keys != nil, "Keys is required")
	need(c.Mesh != nil, "Mesh is required")
	need(c.Member != nil, "Member is required")
	need(c.Logger != nil, "Logger is required")
	need(c.MaxStreams >= 8 && c.MaxStreams <= 65_536, "MaxStreams must be 8 to 65536")
	need(c.IdleTimeout >= time.Second, "IdleTimeout must be at least 1 s")
	need(c.KeepAlive > 0 && c.KeepAlive <= c.IdleTimeout/2, "KeepAlive must be at most half of IdleTimeout")
	need(c.HandshakeTimeout > 0, "HandshakeTimeout must be positive")
	return errors.Join(problems...)
}
