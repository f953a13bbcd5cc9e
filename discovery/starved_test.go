package discovery

import (
	"bufio"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/transport"
)

// Real processes of this test program: "SELVAGE_CHILD=node N ADDR..." is node N
// of those at the addresses, "SELVAGE_CHILD=hog" uses a core.
func TestMain(m *testing.M) {
	switch f := strings.Fields(os.Getenv("SELVAGE_CHILD")); {
	case len(f) == 0:
		os.Exit(m.Run())
	case f[0] == "hog":
		for x := 1; ; {
			x = x*31 + 1
		}
	default:
		n, _ := strconv.Atoi(f[1])
		childNode(n, f[2:])
	}
}

// A realNode is discovery on a transport on a socket of this machine.
type realNode struct {
	*Discovery
	transport *transport.Transport
}

func realKeys(n int) *identity.Keys { return identity.Derive([32]byte{'d', byte(n)}) }

func openReal(n int, conn net.PacketConn, peers []string, keys ...Key) (realNode, error) {
	roster := map[identity.NodeID]ed25519.PublicKey{}
	for i := range len(peers) {
		roster[realKeys(i).ID()] = realKeys(i).Public()
	}
	k := realKeys(n)
	tr, err := transport.Open(transport.Config{
		Conn: conn, Keys: k, Logger: slog.New(slog.DiscardHandler),
		Mesh: func() identity.MeshID { return testMesh },
		Member: func(id identity.NodeID) (ed25519.PublicKey, bool, bool) {
			key, ok := roster[id]
			return key, false, ok
		},
	})
	if err != nil {
		return realNode{}, err
	}
	if err := tr.Start(); err != nil {
		return realNode{}, err
	}
	d, err := Open(Config{
		Port: tr.Gossip(), Advertise: netip.MustParseAddrPort(peers[n]), Keys: keys,
		Meta:   Meta{Mesh: testMesh, Node: k.ID(), Name: fmt.Sprint(n), HTTP: "127.0.0.1:3100"},
		Member: func(id identity.NodeID) bool { return roster[id] != nil },
		Seeds:  peers,
	})
	return realNode{d, tr}, err
}

func (n realNode) close(t *testing.T) {
	t.Helper()
	if err := n.Discovery.Close(); err != nil {
		t.Error(err)
	}
	if err := n.transport.Close(); err != nil {
		t.Error(err)
	}
}

func sockets(t *testing.T, n int) (conns []net.PacketConn, addrs []string) {
	t.Helper()
	for range n {
		c, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		conns, addrs = append(conns, c), append(addrs, c.LocalAddr().String())
	}
	return conns, addrs
}

// Three nodes on real transports: join, metadata, rotation, garbage, leave.
func TestOverRealTransport(t *testing.T) {
	t.Parallel()
	conns, addrs := sockets(t, 3)
	var nodes []realNode
	for i, c := range conns {
		n, err := openReal(i, c, addrs, testKey(1))
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	soon := func(what string, ok func() bool) {
		t.Helper()
		for start := time.Now(); !ok(); time.Sleep(5 * time.Millisecond) {
			if time.Since(start) > 2*time.Minute {
				t.Fatalf("not soon: %s: %+v", what, nodes[0].Stats())
			}
		}
	}
	soon("all see all", func() bool {
		return len(nodes[0].Live()) == 2 && len(nodes[1].Live()) == 2 && len(nodes[2].Live()) == 2
	})
	m := nodes[1].Self().Meta
	m.Zone = "attic"
	if err := nodes[1].SetMeta(m); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if err := n.AddKey(testKey(2)); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range nodes {
		if err := n.UseKey(2); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range nodes {
		if err := n.RemoveKey(1); err != nil {
			t.Fatal(err)
		}
	}
	stranger, err := net.Dial("udp4", addrs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	before := nodes[0].Stats().Garbage
	soon("garbage counted", func() bool {
		stranger.Write([]byte("\x01this is sealed with no key of the mesh"))
		return nodes[0].Stats().Garbage > before
	})
	soon("new metadata", func() bool {
		got, _ := nodes[2].Member(realKeys(1).ID())
		return got.Meta.Zone == "attic"
	})
	if err := nodes[2].Leave(); err != nil {
		t.Fatal(err)
	}
	nodes[2].close(t)
	soon("left", func() bool {
		a, _ := nodes[0].Member(realKeys(2).ID())
		b, _ := nodes[1].Member(realKeys(2).ID())
		return a.State == Left && b.State == Left
	})
	for _, n := range nodes[:2] {
		if s := n.Stats(); s.Failures != 0 {
			t.Errorf("failures: %+v", s)
		}
		n.close(t)
	}
}

func childNode(n int, addrs []string) {
	conn, err := net.ListenPacket("udp4", addrs[n])
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	d, err := openReal(n, conn, addrs, testKey(1))
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	go func() { // the parent closes our standard input when it ends
		bufio.NewReader(os.Stdin).ReadByte()
		s := d.Stats()
		fmt.Println("stats", s.Doubts, s.Spared, s.Failures, s.Health)
		os.Exit(0)
	}()
	for e := range d.Events(d.ctx) {
		fmt.Println(e.Kind, e.Member.Meta.Name)
	}
}
