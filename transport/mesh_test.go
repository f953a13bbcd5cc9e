package transport

import (
	"context"
	"crypto/ed25519"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/identity"
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

// loopback is a UDP socket on 127.0.0.1.
func loopback(t testing.TB) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	return c
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
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
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
