package link_test

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/testnet/link"
	"github.com/selvage-mesh/selvage/transport"
)

// The bad days of the transport, in virtual time.

const mesh = identity.MeshID("00112233445566778899aabbccddeeff")

// A party of nodes that know one another, on one network.
type party struct {
	net   *link.Network
	nodes []*node
}

type node struct {
	p    *party
	keys *identity.Keys
	addr netip.AddrPort
	end  *link.Endpoint
	tr   *transport.Transport

	mu  sync.Mutex
	got []uint32 // numbers of control frames, in the order of arrival
}

func bubble(t *testing.T, seed uint64, n int, f func(t *testing.T, p *party)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &party{net: link.New(seed)}
		for i := range n {
			p.nodes = append(p.nodes, &node{
				p:    p,
				keys: identity.Derive([32]byte{byte(i + 1)}),
				addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 9470),
			})
		}
		for _, n := range p.nodes {
			n.start(t)
			defer n.stop()
		}
		f(t, p)
	})
}

func (p *party) member(id identity.NodeID) (ed25519.PublicKey, bool, bool) {
	for _, n := range p.nodes {
		if n.keys.ID() == id {
			return n.keys.Public(), false, true
		}
	}
	return nil, false, false
}

func (n *node) id() identity.NodeID { return n.keys.ID() }
func (n *node) stop()               { n.tr.Close() }

// crash takes the socket away, so that nobody is told.
func (n *node) crash() {
	n.end.Close()
	n.tr.Close()
}

func (n *node) start(t *testing.T) {
	t.Helper()
	n.end = n.p.net.Endpoint(n.addr)
	tr, err := transport.Open(transport.Config{
		Conn:   n.end,
		Keys:   n.keys,
		Mesh:   func() identity.MeshID { return mesh },
		Member: n.p.member,
		Resolve: func(id identity.NodeID) []netip.AddrPort {
			i := slices.IndexFunc(n.p.nodes, func(o *node) bool { return o.id() == id })
			return []netip.AddrPort{n.p.nodes[i].addr}
		},
		OnControl: func(_ identity.NodeID, _ byte, b []byte) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.got = append(n.got, binary.BigEndian.Uint32(b))
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	tr.Handle(transport.KindRaft, func(_ identity.NodeID, c net.Conn) {
		defer c.Close()
		io.Copy(c, c)
	})
	if err := tr.Start(); err != nil {
		t.Fatal(err)
	}
	n.tr = tr
}

// dial opens a stream that echoes, within the time given.
func (n *node) dial(to *node, within time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	c, err := n.tr.Dial(ctx, to.id(), transport.KindRaft)
	if err != nil {
		return nil, err
	}
	return c, echo(c, 100, within)
}

// echo wants n bytes back in time.
func echo(c net.Conn, n int, within time.Duration) error {
	c.SetDeadline(time.Now().Add(within))
	defer c.SetDeadline(time.Time{})
	want := make([]byte, n)
	for i := range want {
		want[i] = byte(i * 7)
	}
	go c.Write(want)
	got := make([]byte, n)
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("other bytes came back")
	}
	return nil
}

// Over links that lose, duplicate and reorder, every byte and every control
// frame arrives once and in order.
func TestBadLinks(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			bubble(t, seed, 3, func(t *testing.T, p *party) {
				p.net.SetAll(link.Faults{Loss: 0.05, Duplicate: 0.05, Reorder: 0.1, Delay: 10 * time.Millisecond,
					Jitter: 5 * time.Millisecond})
				var wg sync.WaitGroup
				for _, from := range p.nodes {
					for _, to := range p.nodes {
						if from == to {
							continue
						}
						wg.Go(func() {
							c, err := from.dial(to, time.Minute)
							if err != nil {
								t.Error(err)
								return
							}
							defer c.Close()
							for range 5 {
								if err := echo(c, 50_000, time.Minute); err != nil {
									t.Error(err)
								}
							}
						})
					}
				}
				wg.Wait()
				a, b := p.nodes[0], p.nodes[1]
				for i := range uint32(500) {
					if err := a.tr.Send(t.Context(), b.id(), 1, binary.BigEndian.AppendUint32(nil, i)); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(10 * time.Second)
				b.mu.Lock()
				defer b.mu.Unlock()
				if len(b.got) != 500 || !slices.IsSorted(b.got) {
					t.Errorf("%d control frames of 500, sorted: %v", len(b.got), slices.IsSorted(b.got))
				}
				if c := p.net.Total(); c.Lost < 10 || c.Duplicated < 10 || c.Reordered < 10 {
					t.Errorf("the links were not bad: %+v", c)
				}
			})
		})
	}
}

// A peer that vanishes is noticed by the idle time-out, also when packets are
// lost in one direction only; it is reached again at once when it is back.
func TestPeerVanishes(t *testing.T) {
	for name, oneWay := range map[string]bool{"both ways": false, "one way": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, 2, func(t *testing.T, p *party) {
				a, b := p.nodes[0], p.nodes[1]
				c, err := a.dial(b, time.Second)
				if err != nil {
					t.Fatal(err)
				}
				p.net.Partition([]netip.AddrPort{a.addr}, []netip.AddrPort{b.addr})
				if oneWay {
					p.net.Set(b.addr, a.addr, link.Faults{})
				}
				start := time.Now()
				if err := echo(c, 10, time.Hour); err == nil {
					t.Error("an echo came through a cut")
				}
				if took := time.Since(start); took > 22*time.Second {
					t.Errorf("noticed after %v", took)
				}
				if _, err := a.dial(b, 3*time.Second); err == nil {
					t.Error("dialled through a cut")
				}
				time.Sleep(time.Minute)
				p.net.Heal()
				start = time.Now()
				if _, err := a.dial(b, 10*time.Second); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took > 100*time.Millisecond {
					t.Errorf("reached again after %v", took)
				}
			})
		})
	}
}

// After a cut that is shorter than the idle time-out, new streams do not wait
// for the old connection's retransmissions.
func TestShortCut(t *testing.T) {
	bubble(t, 1, 2, func(t *testing.T, p *party) {
		a, b := p.nodes[0], p.nodes[1]
		old, err := a.dial(b, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		p.net.Partition([]netip.AddrPort{a.addr}, []netip.AddrPort{b.addr})
		go old.Write([]byte("into the void"))
		time.Sleep(10 * time.Second)
		p.net.Heal()
		start := time.Now()
		c, err := a.dial(b, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("a new stream took %v", took)
		}
		time.Sleep(10 * time.Minute)
		if err := echo(c, 10, time.Second); err != nil {
			t.Errorf("the new stream did not last: %v", err)
		}
		if n := a.tr.Stats().Connections; n > 2 {
			t.Errorf("%d connections", n)
		}
	})
}

// A node that crashed and is back on its port answers packets of its former
// life with a reset: its peers notice at once, not by a time-out.
func TestCrashAndRestart(t *testing.T) {
	bubble(t, 1, 2, func(t *testing.T, p *party) {
		a, b := p.nodes[0], p.nodes[1]
		c, err := a.dial(b, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		b.crash()
		b.start(t)
		start := time.Now()
		c.SetDeadline(time.Now().Add(time.Hour))
		c.Write([]byte("are you there?"))
		if _, err := io.ReadFull(c, make([]byte, 1)); err == nil {
			t.Error("the stream of a former life answered")
		}
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("noticed after %v", took)
		}
		if _, err := a.dial(b, time.Second); err != nil {
			t.Error(err)
		}
	})
}

// All nodes crash, change ports, and find one another over lossy links.
func TestAllMove(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			bubble(t, seed, 3, func(t *testing.T, p *party) {
				p.net.SetAll(link.Faults{Loss: 0.1, Reorder: 0.1, Delay: 5 * time.Millisecond})
				for round := range uint16(3) {
					for _, from := range p.nodes {
						for _, to := range p.nodes {
							if from == to {
								continue
							}
							c, err := from.dial(to, 30*time.Second)
							if err != nil {
								t.Fatalf("round %d: %v to %v: %v", round, from.addr, to.addr, err)
							}
							c.Close()
						}
					}
					for _, n := range p.nodes {
						n.crash()
						n.addr = netip.AddrPortFrom(n.addr.Addr(), n.addr.Port()+1)
					}
					for _, n := range p.nodes {
						n.start(t)
					}
				}
			})
		})
	}
}
