package transport

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go/testutils/simnet"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kit"
)

// A roster is the replicated state that the tests need: who is admitted and who
// was revoked. All nodes of a test share one unless it is about differing ones.
type roster struct {
	mu      sync.Mutex
	keys    map[identity.NodeID]ed25519.PublicKey
	revoked map[identity.NodeID]bool
}

func newRoster(members ...*identity.Keys) *roster {
	r := &roster{keys: map[identity.NodeID]ed25519.PublicKey{}, revoked: map[identity.NodeID]bool{}}
	for _, k := range members {
		r.admit(k)
	}
	return r
}

func (r *roster) admit(k *identity.Keys) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys[k.ID()] = k.Public()
}

func (r *roster) revoke(k *identity.Keys) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revoked[k.ID()] = true
}

func (r *roster) forget(k *identity.Keys) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.keys, k.ID())
}

func (r *roster) member(id identity.NodeID) (ed25519.PublicKey, bool, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, known := r.keys[id]
	return key, r.revoked[id], known
}

const testMesh = identity.MeshID("00112233445566778899aabbccddeeff")

// testKeys are the keys of node n of a test, always the same.
func testKeys(n byte) *identity.Keys { return identity.Derive([32]byte{n}) }

// quiet is a logger that says nothing.
var quiet = slog.New(slog.DiscardHandler)

// testConfig is what most tests start from.
func testConfig(conn net.PacketConn, k *identity.Keys, r *roster) Config {
	return Config{
		Conn:   conn,
		Keys:   k,
		Mesh:   func() identity.MeshID { return testMesh },
		Member: r.member,
		Logger: quiet,
	}
}

// echo is a handler that sends back what it gets.
func echo(_ identity.NodeID, c net.Conn) {
	defer c.Close()
	io.Copy(c, c)
	c.(Stream).CloseWrite()
}

// open starts a transport that echoes on KindRaft and KindSync, and closes it
// with the test.
func open(t *testing.T, cfg Config) *Transport {
	t.Helper()
	tr, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	tr.Handle(KindRaft, echo)
	tr.Handle(KindSync, echo)
	if err := tr.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// A world is where a test's sockets are: on loopback, or in a bubble on
// quic-go's simulated network with 5 ms from node to node.
type world struct {
	socket func() net.PacketConn
	bubble bool
}

// everywhere runs a test in both worlds.
func everywhere(t *testing.T, f func(t *testing.T, w world)) {
	t.Parallel()
	t.Run("loopback", func(t *testing.T) {
		t.Parallel()
		f(t, world{socket: func() net.PacketConn { return loopback(t) }})
	})
	t.Run("bubble", func(t *testing.T) {
		t.Parallel()
		inBubble(t, f)
	})
}

func inBubble(t *testing.T, f func(t *testing.T, w world)) {
	t.Helper()
	bubbleWith(t, 5*time.Millisecond, f)
}

// bubbleWith is inBubble with another latency from node to node.
func bubbleWith(t *testing.T, latency time.Duration, f func(t *testing.T, w world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim := &simnet.Simnet{Router: &simnet.PerfectRouter{}}
		port := 1000
		f(t, world{bubble: true, socket: func() net.PacketConn {
			port++
			one := &simnet.Simnet{Router: sim.Router}
			c := one.NewEndpoint(&net.UDPAddr{IP: net.IP{10, 0, 0, 1}, Port: port},
				simnet.NodeBiDiLinkSettings{Latency: latency})
			one.Start()
			t.Cleanup(func() { c.Close(); one.Close() })
			return c
		}})
	})
}

// loopback is a UDP socket on 127.0.0.1.
func loopback(t testing.TB) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantRefused checks that err is a refusal for a reason.
func wantRefused(t *testing.T, err error, why Reason) {
	t.Helper()
	if e, ok := errors.AsType[*RefusedError](err); !ok || e.Reason != why {
		t.Errorf("got %v, want a refusal: %v", err, why)
	}
}

// soon bounds what comes about by itself.
var soon = kit.Wait{Most: time.Minute, Every: 5 * time.Millisecond}

// introduce tells every node where the others are.
func introduce(nodes ...*Transport) {
	for _, a := range nodes {
		for _, b := range nodes {
			a.Learn(b.cfg.Keys.ID(), addrOf(b))
		}
	}
}

func addrOf(tr *Transport) netip.AddrPort { return addrPort(tr.Addr()) }

// wantEcho sends some bytes to a node and wants them back.
func wantEcho(t *testing.T, from *Transport, to identity.NodeID) {
	t.Helper()
	if err := tryEcho(t.Context(), from, to, KindRaft); err != nil {
		t.Fatal(err)
	}
}

func tryEcho(ctx context.Context, from *Transport, to identity.NodeID, kind Kind) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c, err := from.Dial(ctx, to, kind)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return echoOn(c, []byte("the quick brown fox"))
}

func echoOn(c net.Conn, msg []byte) error {
	if _, err := c.Write(msg); err != nil {
		return err
	}
	got := make([]byte, len(msg))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if string(got) != string(msg) {
		return io.ErrNoProgress
	}
	return nil
}
