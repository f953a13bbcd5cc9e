package lan

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grandcat/zeroconf"

	"github.com/selvage-mesh/selvage/kit"
)

// hostileEnv makes the test program play a box of somebody who means harm, for some
// seconds: "mesh=<mesh ID>,node=<ID of a member>", or "replay" (see replay).
const hostileEnv = "SELVAGE_LAN_HOSTILE"

// hostileSeedEnv is the seed of what it sends.
const hostileSeedEnv = "SELVAGE_LAN_HOSTILE_SEED"

// hostileFor is longer than a node falls silent when it is flooded.
const hostileFor = 20 * time.Second

// hostile is the test program on the box, as somebody who means harm.
func (b *box) hostile(t *testing.T, what string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := b.in(t.Context(), exe)
	cmd.Env = append(os.Environ(), hostileEnv+"="+what, fmt.Sprintf("%s=%d", hostileSeedEnv, kit.Seed(t)))
	return cmd
}

// mDNS is what its packets go to.
var mDNS = &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: 5353}

// replay writes down what is announced on the network for two seconds, or until
// something is, says "recorded", and from the next line of its input on says it again and again,
// until the input ends.
func replay() error {
	nic, err := net.InterfaceByName("eth0")
	if err != nil {
		return err
	}
	as, err := nic.Addrs()
	if err != nil || len(as) == 0 {
		return fmt.Errorf("no address: %w", err)
	}
	own, _, err := net.ParseCIDR(as[0].String())
	if err != nil {
		return err
	}
	in, err := net.ListenMulticastUDP("udp4", nic, mDNS)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := net.DialUDP("udp4", &net.UDPAddr{IP: own}, mDNS)
	if err != nil {
		return err
	}
	defer out.Close()
	var packets [][]byte
	question := append(dnsHeader(0, 1, 0, 0, 0), append(dnsName("_selvage", "_udp", "local"), 0, 12, 0, 1)...)
	b := make([]byte, 9000)
	for began := time.Now(); time.Since(began) < 2*time.Second || len(packets) == 0 && time.Since(began) < patience; {
		if _, err := out.Write(question); err != nil {
			return err
		}
		if err := in.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			return err
		}
		for {
			n, from, err := in.ReadFromUDP(b)
			if err != nil {
				break
			}
			if strings.Contains(string(b[:n]), "mesh=") && !from.IP.Equal(own) {
				packets = append(packets, bytes.Clone(b[:n]))
			}
		}
	}
	fmt.Println("recorded", len(packets))
	lines := bufio.NewReader(os.Stdin)
	if _, err := lines.ReadString('\n'); err != nil || len(packets) == 0 {
		return err
	}
	over := make(chan struct{})
	go func() { lines.ReadString('\n'); close(over) }()
	for i := 0; ; i++ {
		select {
		case <-over:
			fmt.Println("replayed", i)
			return nil
		case <-time.After(20 * time.Millisecond):
		}
		if _, err := out.Write(packets[i%len(packets)]); err != nil {
			return err
		}
	}
}

func dnsName(labels ...string) (b []byte) {
	for _, l := range labels {
		b = append(append(b, byte(len(l))), l...)
	}
	return append(b, 0)
}

func dnsHeader(flags uint16, counts ...uint16) []byte {
	b := []byte{0, 0, byte(flags >> 8), byte(flags)}
	for _, c := range counts {
		b = append(b, byte(c>>8), byte(c))
	}
	return b
}

// beHostile announces a mesh that is not there, pretends to be a member of one that
// is, repeats what others say, and sends garbage and questions without end.
func beHostile() error {
	if os.Getenv(hostileEnv) == "replay" {
		return replay()
	}
	var mesh, node string
	for part := range strings.SplitSeq(os.Getenv(hostileEnv), ",") {
		k, v, _ := strings.Cut(part, "=")
		switch k {
		case "mesh":
			mesh = v
		case "node":
			node = v
		}
	}
	nics, err := net.Interfaces()
	if err != nil {
		return err
	}
	var eth []net.Interface
	var own string
	for _, n := range nics {
		as, _ := n.Addrs()
		for _, a := range as {
			if p, ok := a.(*net.IPNet); ok && n.Name == "eth0" && p.IP.To4() != nil {
				eth, own = []net.Interface{n}, p.IP.String()
			}
		}
	}
	seed, err := strconv.ParseUint(os.Getenv(hostileSeedEnv), 10, 64)
	if err != nil {
		return err
	}
	garbage, choice := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1)) // of a goroutine each
	port, err := net.ListenPacket("udp",
		":9470") // takes everything and answers with garbage
	if err != nil {
		return err
	}
	defer port.Close()
	go func() {
		b := make([]byte, 2048)
		for {
			n, from, err := port.ReadFrom(b)
			if err != nil {
				return
			}
			garbage.Shuffle(n, func(i, j int) { b[i], b[j] = b[j], b[i] })
			port.WriteTo(b[:n], from)
		}
	}()
	announce := func(id, of string) error {
		s, err := zeroconf.RegisterProxy(id, "_selvage._udp", "local.", 9470, id, []string{own},
			[]string{"v=1", "node=" + id, "mesh=" + of, "name=\x1b[2Jevil", "meshname=evil"}, eth)
		_ = s // lives as long as this process
		return err
	}
	other := strings.Repeat("e", 32)
	for _, e := range []error{announce(node, mesh), announce(strings.Repeat("a", 32), mesh),
		announce(strings.Repeat("b", 32), other)} {
		if e != nil {
			return e
		}
	}

	out, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(own)}, mDNS)
	if err != nil {
		return err
	}
	defer out.Close()
	in, err := net.ListenMulticastUDP("udp4", &eth[0], mDNS)
	if err != nil {
		return err
	}
	defer in.Close()
	go func() { // what was said is said again, much later and by another
		b := make([]byte, 9000)
		for {
			n, from, err := in.ReadFromUDP(b)
			if err != nil {
				return
			}
			if strings.Contains(string(b[:n]), "_selvage") && from.IP.String() != own {
				out.Write(b[:n])
			}
		}
	}()

	service := dnsName("_selvage", "_udp", "local")
	// A PTR without data as a known answer, and as an answer.
	question := append(append([]byte{}, service...), 0, 12, 0, 1)
	empty := append(append([]byte{}, service...), 0, 12, 0, 1, 0, 0, 14, 0, 0, 0)
	var packets [][]byte
	packets = append(packets, append(append(dnsHeader(0, 1, 1, 0, 0), question...), empty...),
		append(dnsHeader(0x8400, 0, 1, 0, 0), empty...))
	many := dnsHeader(0, 250, 0, 0, 0) // many questions in one packet, each of which is answered
	many = append(many, question...)
	for range 249 {
		many = append(many, 0xc0, 12, 0, 12, 0, 1)
	}
	packets = append(packets, many)
	loop, _ := hex.DecodeString("000084000000000100000000c00c000c0001000000780002c00c") // a name that points at itself
	packets = append(packets, loop, []byte{0}, nil)
	for end := time.Now().Add(hostileFor); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		p := packets[choice.IntN(len(packets))]
		if choice.IntN(4) == 0 { // an instance nobody has heard of
			id := fmt.Sprintf("%016x%016x", choice.Uint64(), choice.Uint64())
			inst := append(dnsName(id)[:33], service...)
			p = append(dnsHeader(0x8400, 0, 1, 0, 0), service...)
			p = append(p, 0, 12, 0, 1, 0, 0, 14, 0, byte(len(inst)>>8), byte(len(inst)))
			p = append(p, inst...)
		}
		if len(p) > 0 {
			out.Write(p)
		}
	}
	fmt.Println("done")
	return nil
}
