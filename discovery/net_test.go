package discovery

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kit"
	"github.com/selvage-mesh/selvage/transport"
)

// A network carries packets and streams between ports of one bubble, 1 ms from
// one to another.
type network struct {
	mu    sync.Mutex // guards the following
	ports map[string]*port
	cut   func(from, to string) bool // nil: nothing is cut
	loss  float64
	rand  *rand.Rand
	deny  string               // address to which the socket refuses to send, as when there is no route
	held  map[string]time.Time // until when an address neither sends nor hears
	bad   int                  // packets that look like QUIC or are too long
}

type port struct {
	net     *network
	addr    netip.AddrPort
	packets chan transport.GossipPacket
	streams chan net.Conn
}

func newNetwork(chances *rand.Rand) *network {
	return &network{rand: chances, ports: map[string]*port{}, held: map[string]time.Time{}}
}

func (n *network) listen(addr netip.AddrPort) *port {
	p := &port{n, addr, make(chan transport.GossipPacket, 1024), make(chan net.Conn, 64)}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ports[addr.String()] = p
	return p
}

func (n *network) unplug(addr netip.AddrPort) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.ports, addr.String())
}

// hold makes a node look as if it were not scheduled for a while: what it sends
// and what it is sent arrives afterwards.
func (n *network) hold(addr netip.AddrPort, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held[addr.String()] = time.Now().Add(d)
}

// move gives whoever is at an address another.
func (n *network) move(from, to netip.AddrPort) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.ports[from.String()]
	delete(n.ports, from.String())
	p.addr = to
	n.ports[to.String()] = p
}

func (n *network) setCut(f func(from, to string) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = f
}

// path returns how long it takes, or false for never.
func (n *network) path(from, to string) (time.Duration, bool) {
	if n.ports[from] == nil || n.cut != nil && n.cut(from, to) {
		return 0, false
	}
	return time.Millisecond + max(0, time.Until(n.held[from]), time.Until(n.held[to])), true
}

func (p *port) WriteTo(b []byte, to string) (time.Time, error) {
	n := p.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(b) == 0 || len(b) > transport.MaxGossipPacket || b[0]&0xc0 != 0 {
		n.bad++
		return time.Time{}, transport.ErrGossipPacket
	}
	if to == n.deny {
		return time.Time{}, errors.New("no route to host")
	}
	delay, ok := n.path(p.addr.String(), to)
	if !ok || n.rand.Float64() < n.loss {
		return time.Now(), nil
	}
	b = slices.Clone(b)
	time.AfterFunc(delay, func() { n.inject(net.UDPAddrFromAddrPort(p.addr), to, b) })
	return time.Now(), nil
}

// inject delivers a packet that may come from anywhere.
func (n *network) inject(from net.Addr, to string, b []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if q := n.ports[to]; q != nil {
		select {
		case q.packets <- transport.GossipPacket{Buf: b, From: from, Time: time.Now()}:
		default:
		}
	}
}

func (p *port) Packets() <-chan transport.GossipPacket { return p.packets }
func (p *port) Streams() <-chan net.Conn               { return p.streams }

func (p *port) DialStream(to string, timeout time.Duration) (net.Conn, error) {
	p.net.mu.Lock()
	delay, ok := p.net.path(p.addr.String(), to)
	q := p.net.ports[to]
	p.net.mu.Unlock()
	if !ok || q == nil || delay > timeout {
		time.Sleep(timeout)
		return nil, errors.New("nobody answers")
	}
	time.Sleep(delay)
	here, there := net.Pipe()
	select {
	case q.streams <- there:
		return here, nil
	default:
		return nil, errors.New("busy")
	}
}

const testMesh = identity.MeshID("00112233445566778899aabbccddeeff")

func testID(i int) identity.NodeID { return identity.NodeID(fmt.Sprintf("%032x", i+1)) }

func testKey(epoch uint64) Key { return Key{Epoch: epoch, Key: [32]byte{byte(epoch), 7}} }

// A mesh is n nodes in one bubble with one roster.
type mesh struct {
	t     *testing.T
	rand  *rand.Rand
	net   *network
	nodes []*Discovery // nil: down

	mu       sync.Mutex // guards the following
	outsider map[identity.NodeID]bool
}

// newMesh is n nodes that are not started.
func newMesh(t *testing.T, n int) *mesh {
	chances := kit.Rand(t)
	return &mesh{t: t, rand: chances, net: newNetwork(chances), nodes: make([]*Discovery, n),
		outsider: map[identity.NodeID]bool{}}
}

// upTo returns a duration from 0 to below d.
func (m *mesh) upTo(d time.Duration) time.Duration { return time.Duration(m.rand.Int64N(int64(d))) }

// inMesh runs f in a bubble with n nodes, of which the first is the others'
// seed, closes all and lets time pass until memberlist's goroutines have ended:
// one that has not fails the test.
func inMesh(t *testing.T, n int, f func(m *mesh)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t, n)
		defer func() {
			for _, d := range m.nodes {
				if d != nil {
					d.Close()
				}
			}
			time.Sleep(time.Minute)
		}()
		for i := range m.nodes {
			m.start(i, func(*Config) {})
		}
		f(m)
		if m.net.bad != 0 {
			t.Errorf("%d packets would have been taken for QUIC or were too long", m.net.bad)
		}
	})
}

func testAddr(i, port int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), uint16(port))
}

func (m *mesh) isMember(id identity.NodeID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.outsider[id]
}

func (m *mesh) setOutsider(id identity.NodeID, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.outsider[id] = is
}

func (m *mesh) start(i int, edit func(*Config)) *Discovery {
	m.t.Helper()
	c := Config{
		Advertise: testAddr(i, 9470),
		Meta: Meta{Mesh: testMesh, Node: testID(i), Name: fmt.Sprintf("n%d", i), Incarnation: "a1",
			HTTP: "10.0.0.1:3100", Role: "voter"},
		Keys:   []Key{testKey(1)},
		Member: m.isMember,
	}
	if i > 0 {
		c.Seeds = []string{testAddr(0, 9470).String()}
	}
	edit(&c)
	c.Port = m.net.listen(c.Advertise)
	d, err := Open(c)
	if err != nil {
		m.t.Fatal(err)
	}
	m.nodes[i] = d
	return d
}

// crash takes a node off the network and stops it, which takes no time.
func (m *mesh) crash(i int) {
	m.t.Helper()
	start := time.Now()
	m.net.unplug(m.nodes[i].config.Advertise)
	m.nodes[i].Close()
	m.nodes[i] = nil
	if took := time.Since(start); took > probeTimeout {
		m.t.Errorf("Close took %v", took)
	}
}

// within waits until ok, or fails the test after d of virtual time; it returns
// the time it took.
func (m *mesh) within(d time.Duration, what string, ok func() bool) time.Duration {
	m.t.Helper()
	return kit.Wait{Most: d, Every: 5 * time.Millisecond, State: m.state}.Until(m.t, what, ok)
}

// state says what each node that is open sees of the mesh.
func (m *mesh) state() string {
	var b strings.Builder
	for i, n := range m.nodes {
		if n != nil {
			fmt.Fprintf(&b, "node %d sees %v %+v\n", i, n.Members(), n.Stats())
		}
	}
	return b.String()
}

// complete reports whether every node that is up sees every other as live, and
// nobody else.
func (m *mesh) complete() bool {
	up := 0
	for _, d := range m.nodes {
		if d != nil {
			up++
		}
	}
	for i, d := range m.nodes {
		if d == nil {
			continue
		}
		if len(d.Live()) != up-1 {
			return false
		}
		for j, e := range m.nodes {
			if e != nil && !d.Alive(testID(j)) || e == nil && i != j && d.Alive(testID(j)) {
				return false
			}
		}
	}
	return true
}

// nobodySees reports whether node i is live to no other.
func (m *mesh) nobodySees(i int) bool {
	for j, d := range m.nodes {
		if d != nil && j != i && d.Alive(testID(i)) {
			return false
		}
	}
	return true
}

func (m *mesh) failures() (n uint64) {
	for _, d := range m.nodes {
		if d != nil {
			n += d.Stats().Failures
		}
	}
	return n
}
