package lan

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"

	"github.com/grandcat/zeroconf"
)

// hostileEnv makes the test program play a box of somebody who means harm, for some
// seconds: "mesh=<mesh ID>,node=<ID of a member>".
const hostileEnv = "SELVAGE_LAN_HOSTILE"

const hostileFor = 5 * time.Second

// beHostile announces a mesh that is not there, pretends to be a member of one that
// is, repeats what others say, and sends garbage and questions without end.
func beHostile() error {
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
	port, err := net.ListenPacket("udp", ":9470") // takes everything and answers with garbage
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
			rand.Shuffle(n, func(i, j int) { b[i], b[j] = b[j], b[i] })
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
	for _, e := range []error{announce(node, mesh), announce(strings.Repeat("a", 32), mesh), announce(strings.Repeat("b", 32), other)} {
		if e != nil {
			return e
		}
	}

	group := &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: 5353}
	out, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(own)}, group)
	if err != nil {
		return err
	}
	defer out.Close()
	in, err := net.ListenMulticastUDP("udp4", &eth[0], group)
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

	name := func(labels ...string) (b []byte) {
		for _, l := range labels {
			b = append(append(b, byte(len(l))), l...)
		}
		return append(b, 0)
	}
	service := name("_selvage", "_udp", "local")
	// A PTR without data as a known answer, and as an answer.
	header := func(flags uint16, counts ...uint16) []byte {
		b := []byte{0, 0, byte(flags >> 8), byte(flags)}
		for _, c := range counts {
			b = append(b, byte(c>>8), byte(c))
		}
		return b
	}
	question := append(append([]byte{}, service...), 0, 12, 0, 1)
	empty := append(append([]byte{}, service...), 0, 12, 0, 1, 0, 0, 14, 0, 0, 0)
	var packets [][]byte
	packets = append(packets, append(append(header(0, 1, 1, 0, 0), question...), empty...), append(header(0x8400, 0, 1, 0, 0), empty...))
	many := header(0, 250, 0, 0, 0) // many questions in one packet, each of which is answered
	many = append(many, question...)
	for range 249 {
		many = append(many, 0xc0, 12, 0, 12, 0, 1)
	}
	packets = append(packets, many)
	loop, _ := hex.DecodeString("000084000000000100000000c00c000c0001000000780002c00c") // a name that points at itself
	packets = append(packets, loop, []byte{0}, nil)
	for end := time.Now().Add(hostileFor); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		p := packets[rand.N(len(packets))]
		if rand.N(4) == 0 { // an instance nobody has heard of
			id := fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())
			inst := append(name(id)[:33], service...)
			p = append(header(0x8400, 0, 1, 0, 0), service...)
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
