package discovery

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/selvage-mesh/selvage/identity"
)

// A news is what memberlist last said of a node.
type news struct {
	meta Meta
	addr netip.AddrPort
	gone bool // dead or left: memberlist does not tell which
}

// An inbox takes memberlist's callbacks, which come with its lock held, and
// keeps the last word on each node until Discovery.run takes it. Nothing waits
// and nothing is lost; its size is bounded by the roster, since nodes that are
// not in it never come this far.
type inbox struct {
	ring chan struct{} // of capacity 1: there is news

	mu        sync.Mutex // guards the following
	latest    map[identity.NodeID]news
	conflicts map[identity.NodeID]netip.AddrPort
}

func newInbox() *inbox {
	return &inbox{
		ring:      make(chan struct{}, 1),
		latest:    make(map[identity.NodeID]news),
		conflicts: make(map[identity.NodeID]netip.AddrPort),
	}
}

func (in *inbox) put(n *memberlist.Node, gone bool) {
	var m Meta
	if m.UnmarshalBinary(n.Meta) != nil {
		return // never accepted by NotifyAlive
	}
	in.mu.Lock()
	in.latest[m.Node] = news{m, nodeAddr(n), gone}
	in.mu.Unlock()
	in.signal()
}

func (in *inbox) signal() {
	select {
	case in.ring <- struct{}{}:
	default:
	}
}

func (in *inbox) take() (map[identity.NodeID]news, map[identity.NodeID]netip.AddrPort) {
	in.mu.Lock()
	defer in.mu.Unlock()
	latest, conflicts := in.latest, in.conflicts
	in.latest, in.conflicts = make(map[identity.NodeID]news), make(map[identity.NodeID]netip.AddrPort)
	return latest, conflicts
}

func nodeAddr(n *memberlist.Node) netip.AddrPort {
	ip, _ := netip.AddrFromSlice(n.Addr)
	return netip.AddrPortFrom(ip.Unmap(), n.Port)
}

// delegate is what memberlist calls, mostly with its lock held.
type delegate struct{ d *Discovery }

func (g delegate) NotifyJoin(n *memberlist.Node)   { g.d.inbox.put(n, false) }
func (g delegate) NotifyUpdate(n *memberlist.Node) { g.d.inbox.put(n, false) }
func (g delegate) NotifyLeave(n *memberlist.Node)  { g.d.inbox.put(n, true) }

// NotifyAlive ignores a node that is of another mesh or not in the roster.
func (g delegate) NotifyAlive(n *memberlist.Node) error {
	m, err := g.d.admit(n)
	if err != nil {
		return err
	}
	if m.Node != g.d.config.Meta.Node && !g.d.config.Member(m.Node) {
		g.d.count.strangers.Add(1)
		return fmt.Errorf("node %s is not in the roster", m.Node.Short())
	}
	return nil
}

// NotifyMerge refuses the whole table of a node that knows nodes of another mesh.
func (g delegate) NotifyMerge(ns []*memberlist.Node) error {
	for _, n := range ns {
		var m Meta
		if m.UnmarshalBinary(n.Meta) == nil && m.Mesh != g.d.config.Meta.Mesh {
			g.d.count.foreign.Add(1)
			return fmt.Errorf("node %s is of mesh %s", m.Node.Short(), m.Mesh.Short())
		}
	}
	return nil
}

// NotifyConflict hears that a live node claims another address, which is kept
// as a candidate: whoever dials it finds out by the handshake.
func (g delegate) NotifyConflict(_, other *memberlist.Node) {
	m, err := g.d.admit(other)
	if err != nil {
		return
	}
	in := g.d.inbox
	in.mu.Lock()
	in.conflicts[m.Node] = nodeAddr(other)
	in.mu.Unlock()
	in.signal()
}

// admit reads the metadata and checks that it is of this mesh and of this node.
func (d *Discovery) admit(n *memberlist.Node) (m Meta, err error) {
	if err := m.UnmarshalBinary(n.Meta); err != nil {
		d.count.badMeta.Add(1)
		return m, err
	}
	if string(m.Node) != n.Name {
		d.count.badMeta.Add(1)
		return m, fmt.Errorf("%w: of node %s", ErrMeta, m.Node.Short())
	}
	if m.Mesh != d.config.Meta.Mesh {
		d.count.foreign.Add(1)
		return m, fmt.Errorf("it is of mesh %s", m.Mesh.Short())
	}
	if !usable(nodeAddr(n)) {
		d.count.badMeta.Add(1)
		return m, fmt.Errorf("it can not be reached at %v", nodeAddr(n))
	}
	return m, nil
}

// NodeMeta implements memberlist.Delegate.
func (g delegate) NodeMeta(int) []byte {
	g.d.mu.Lock()
	defer g.d.mu.Unlock()
	return g.d.meta
}

// NotifyMsg implements memberlist.Delegate; we send no user messages.
func (g delegate) NotifyMsg([]byte) {}

// GetBroadcasts implements memberlist.Delegate.
func (g delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState implements memberlist.Delegate.
func (g delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState implements memberlist.Delegate.
func (g delegate) MergeRemoteState([]byte, bool) {}

func memberlistConfig(d *Discovery, w *wire) *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	g := delegate{d}
	c.Name = string(d.config.Meta.Node)
	c.Transport = w
	c.Label = "" // its first byte, 244, looks like QUIC
	c.Keyring = d.keys.ring
	c.GossipVerifyIncoming, c.GossipVerifyOutgoing = true, true
	c.EnableCompression = false // saves nothing on packets of this size
	c.UDPBufferSize = maxPacket
	c.ProbeInterval, c.ProbeTimeout = probeInterval, probeTimeout
	// The time to object is fixed, not shortened by confirmations: the last call
	// is what makes a short one safe.
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = suspicionMult, 1
	c.AwarenessMaxMultiplier = awarenessMax
	c.GossipInterval, c.GossipNodes = gossipInterval, gossipNodes
	c.PushPullInterval = pushPullInterval
	c.TCPTimeout = streamTimeout
	// A member that is dead may come back at another address at once. Only the
	// roster's members can claim its name, and only for gossip.
	c.DeadNodeReclaimTime = time.Nanosecond
	c.RequireNodeNames = false // seeds are addresses without names
	c.AdvertisePort, c.BindPort = int(w.addr.Port()), int(w.addr.Port())
	c.Delegate, c.Events, c.Merge, c.Alive, c.Conflict = g, g, g, g, g
	c.Logger = newLog(d.config.Logger)
	return c
}
