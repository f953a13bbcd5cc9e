// Package link is a packet network in memory whose links lose, delay,
// duplicate, reorder and cut on demand: the bad days of a mesh, in one process
// and, inside testing/synctest, in virtual time.
//
// A [Network] has no goroutines: a packet waits in the inbox of the endpoint it
// goes to until it is due. Chance is seeded for each direction of each pair of
// addresses, so that traffic elsewhere does not change what happens here.
package link

import (
	"cmp"
	"container/heap"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	// MaxPacket is the largest UDP payload that Ethernet carries; larger ones are lost.
	MaxPacket = 1472

	// maxInbox bounds what waits at one endpoint, as a socket's buffer does:
	// 4,096 packets are 6 MB. What comes on top is lost.
	maxInbox = 4096

	// overtake is the least by which a reordered packet is late.
	overtake = 2 * time.Millisecond
)

// Faults is what one direction of a link does to packets. The zero value is a
// perfect link. Probabilities are 0 to 1, drawn for each packet.
type Faults struct {
	Loss      float64       // the packet never arrives
	Duplicate float64       // it arrives a second time, a little later
	Reorder   float64       // it is held back so that later ones overtake it
	Delay     time.Duration // each packet takes so long
	Jitter    time.Duration // and up to this much more; packets keep their order
	Rate      int           // bytes a second; 0 is no limit
	Cut       bool          // nothing arrives
}

// Count is what happened to the packets of one direction.
type Count struct {
	Sent       int // all that were written
	Delivered  int // put into the inbox, duplicates included
	Lost       int // by chance, size or a full inbox
	Duplicated int
	Reordered  int
	Cut        int // while the link was cut
	Nowhere    int // nobody was at the address
}

// A Network connects endpoints. All methods may be called at any time.
type Network struct {
	seed uint64

	mu        sync.Mutex
	base      Faults
	links     map[direction]*link
	endpoints map[netip.AddrPort]*Endpoint
	nextPort  uint16
	seq       uint64 // orders packets that are due at the same time
}

type direction struct{ from, to netip.AddrPort }

// A link is one direction between two addresses. Guarded by the network's mutex.
type link struct {
	faults *Faults // nil: the network's
	random *rand.Rand
	last   time.Time // when the latest packet in order is due
	free   time.Time // when the link has sent what it was given, with a Rate
	count  Count
}

// New returns a network of perfect links whose chances follow from seed.
func New(seed uint64) *Network {
	return &Network{
		seed:      seed,
		links:     map[direction]*link{},
		endpoints: map[netip.AddrPort]*Endpoint{},
		nextPort:  40_000,
	}
}

// Endpoint opens a socket at addr; port 0 picks a free one. Closing it frees
// the address. Two open endpoints at one address are a mistake and panic.
func (n *Network) Endpoint(addr netip.AddrPort) *Endpoint {
	n.mu.Lock()
	defer n.mu.Unlock()
	addr = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	if addr.Port() == 0 {
		for free := false; !free; free = n.endpoints[addr] == nil {
			n.nextPort++
			addr = netip.AddrPortFrom(addr.Addr(), n.nextPort)
		}
	}
	if n.endpoints[addr] != nil {
		panic(fmt.Sprintf("link: %v is in use", addr))
	}
	e := &Endpoint{net: n, addr: addr, done: make(chan struct{}), changed: make(chan struct{}, 1)}
	n.endpoints[addr] = e
	return e
}

// Set gives the direction from → to its own faults, from the next packet on.
func (n *Network) Set(from, to netip.AddrPort, f Faults) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.link(direction{from, to}).faults = &f
}

// SetAll gives every direction without faults of its own these.
func (n *Network) SetAll(f Faults) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.base = f
}

// Partition cuts every direction between addresses of different groups, and
// nothing else. Addresses in no group are untouched.
func (n *Network) Partition(groups ...[]netip.AddrPort) {
	for i, a := range groups {
		for j, b := range groups {
			if i == j {
				continue
			}
			for _, from := range a {
				for _, to := range b {
					f := n.Faults(from, to)
					f.Cut = true
					n.Set(from, to, f)
				}
			}
		}
	}
}

// Heal takes away all faults, those of SetAll too.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.base = Faults{}
	for _, l := range n.links {
		l.faults = nil
	}
}

// Faults returns what from → to does now.
func (n *Network) Faults(from, to netip.AddrPort) Faults {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.links[direction{from, to}]; l != nil && l.faults != nil {
		return *l.faults
	}
	return n.base
}

// Count returns what happened from → to so far.
func (n *Network) Count(from, to netip.AddrPort) Count {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.link(direction{from, to}).count
}

// Total returns what happened on all links so far.
func (n *Network) Total() (sum Count) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.links {
		sum.Sent += l.count.Sent
		sum.Delivered += l.count.Delivered
		sum.Lost += l.count.Lost
		sum.Duplicated += l.count.Duplicated
		sum.Reordered += l.count.Reordered
		sum.Cut += l.count.Cut
		sum.Nowhere += l.count.Nowhere
	}
	return sum
}

// link returns the state of a direction; n.mu is held.
func (n *Network) link(d direction) *link {
	l := n.links[d]
	if l == nil {
		h := fnv.New64a()
		fmt.Fprint(h, d.from, d.to)
		l = &link{random: rand.New(rand.NewPCG(n.seed, h.Sum64()))}
		n.links[d] = l
	}
	return l
}

// send decides the fate of one packet.
func (n *Network) send(from, to netip.AddrPort, b []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.link(direction{from, to})
	f := n.base
	if l.faults != nil {
		f = *l.faults
	}
	l.count.Sent++
	dest := n.endpoints[to]
	// Every packet takes the same draws, so that its fate does not depend on
	// which faults are set.
	loss, dup, reorder, jitter, late := l.random.Float64(), l.random.Float64(), l.random.Float64(), l.random.Float64(),
		l.random.Float64()
	switch {
	case f.Cut:
		l.count.Cut++
		return
	case dest == nil:
		l.count.Nowhere++
		return
	case loss < f.Loss || len(b) > MaxPacket:
		l.count.Lost++
		return
	}
	now := time.Now()
	due := now
	if f.Rate > 0 {
		if l.free.Before(now) {
			l.free = now
		}
		l.free = l.free.Add(time.Duration(len(b)) * time.Second / time.Duration(f.Rate))
		due = l.free
	}
	due = due.Add(f.Delay + time.Duration(jitter*float64(f.Jitter)))
	if reorder < f.Reorder {
		l.count.Reordered++
		due = due.Add(overtake + time.Duration(late*float64(f.Delay+8*overtake)))
	} else {
		if due.Before(l.last) {
			due = l.last
		}
		l.last = due
	}
	n.put(l, dest, packet{due: due, from: from, b: slices.Clone(b)})
	if dup < f.Duplicate {
		l.count.Duplicated++
		n.put(l, dest, packet{due: due.Add(time.Duration(late * float64(f.Delay+overtake))), from: from, b: slices.Clone(b)})
	}
}

func (n *Network) put(l *link, dest *Endpoint, p packet) {
	n.seq++
	p.seq = n.seq
	if dest.put(p) {
		l.count.Delivered++
	} else {
		l.count.Lost++
	}
}

func (n *Network) remove(e *Endpoint) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.endpoints[e.addr] == e {
		delete(n.endpoints, e.addr)
	}
}

type packet struct {
	due  time.Time
	seq  uint64
	from netip.AddrPort
	b    []byte
}

// inbox is a heap by due time.
type inbox []packet

func (q inbox) Len() int { return len(q) }
func (q inbox) Less(i, j int) bool {
	return cmp.Or(q[i].due.Compare(q[j].due), cmp.Compare(q[i].seq, q[j].seq)) < 0
}
func (q inbox) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *inbox) Push(x any)   { *q = append(*q, x.(packet)) }
func (q *inbox) Pop() any {
	last := len(*q) - 1
	p := (*q)[last]
	(*q)[last] = packet{}
	*q = (*q)[:last]
	return p
}

// An Endpoint is a socket of the network; it implements net.PacketConn.
type Endpoint struct {
	net  *Network
	addr netip.AddrPort
	done chan struct{} // closed by Close

	// changed holds a token when the inbox or the deadline changed, for a
	// reader that waits.
	changed chan struct{}

	mu       sync.Mutex
	closed   bool
	in       inbox
	deadline time.Time
}

var _ net.PacketConn = (*Endpoint)(nil)

func (e *Endpoint) put(p packet) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || len(e.in) >= maxInbox {
		return false
	}
	heap.Push(&e.in, p)
	e.signal()
	return true
}

func (e *Endpoint) signal() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// take returns the first packet that is due, or until when to wait (zero: until
// something changes).
func (e *Endpoint) take() (p packet, ok bool, until time.Time, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	switch {
	case e.closed:
		return p, false, until, net.ErrClosed
	case !e.deadline.IsZero() && !now.Before(e.deadline):
		e.signal() // another reader may wait
		return p, false, until, os.ErrDeadlineExceeded
	case len(e.in) > 0 && !now.Before(e.in[0].due):
		p = heap.Pop(&e.in).(packet)
		if len(e.in) > 0 {
			e.signal() // another reader may wait
		}
		return p, true, until, nil
	}
	until = e.deadline
	if len(e.in) > 0 && (until.IsZero() || e.in[0].due.Before(until)) {
		until = e.in[0].due
	}
	return p, false, until, nil
}

// ReadFrom returns the next packet that is due, cut to the length of b.
func (e *Endpoint) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		p, ok, until, err := e.take()
		if err != nil {
			return 0, nil, &net.OpError{Op: "read", Net: "link", Source: e.LocalAddr(), Err: err}
		}
		if ok {
			return copy(b, p.b), net.UDPAddrFromAddrPort(p.from), nil
		}
		e.wait(until)
	}
}

func (e *Endpoint) wait(until time.Time) {
	var due <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-e.changed:
	case <-due:
	case <-e.done:
	}
}

// WriteTo sends a packet. Like UDP it never says whether the packet arrives.
func (e *Endpoint) WriteTo(b []byte, addr net.Addr) (int, error) {
	u, ok := addr.(*net.UDPAddr)
	e.mu.Lock()
	closed := e.closed
	e.mu.Unlock()
	switch {
	case closed:
		return 0, &net.OpError{Op: "write", Net: "link", Source: e.LocalAddr(), Err: net.ErrClosed}
	case !ok:
		return 0, &net.OpError{Op: "write", Net: "link", Source: e.LocalAddr(),
			Err: fmt.Errorf("%T is not a UDP address", addr)}
	}
	to := u.AddrPort()
	e.net.send(e.addr, netip.AddrPortFrom(to.Addr().Unmap(), to.Port()), b)
	return len(b), nil
}

// Close frees the address; what waits in the inbox is lost.
func (e *Endpoint) Close() error {
	e.net.remove(e)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.closed = true
		e.in = nil
		close(e.done)
	}
	return nil
}

// LocalAddr is the address that the endpoint was opened at.
func (e *Endpoint) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(e.addr) }

// AddrPort is LocalAddr as the methods of [Network] take it.
func (e *Endpoint) AddrPort() netip.AddrPort { return e.addr }

// SetDeadline sets the deadline of reads; writes never wait.
func (e *Endpoint) SetDeadline(t time.Time) error { return e.SetReadDeadline(t) }

// SetReadDeadline sets until when a read may wait; the zero time is for ever.
func (e *Endpoint) SetReadDeadline(t time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deadline = t
	e.signal()
	return nil
}

// SetWriteDeadline does nothing: writes never wait.
func (e *Endpoint) SetWriteDeadline(time.Time) error { return nil }

// SetReadBuffer and SetWriteBuffer do nothing; quic-go asks for them.
func (e *Endpoint) SetReadBuffer(int) error { return nil }

// SetWriteBuffer does nothing, see SetReadBuffer.
func (e *Endpoint) SetWriteBuffer(int) error { return nil }
