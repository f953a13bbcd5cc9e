package shim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// send tries all ways to reach others that a program has, and says which of them the system let it.
func send(udp, tcp string) {
	said := map[string]string{}
	tried := func(what string, err error) {
		said[what] = "ok"
		if err != nil {
			said[what] = err.Error()
		}
	}
	socket := func(what string, family, kind, proto int) {
		fd, err := unix.Socket(family, kind, proto)
		if err == nil {
			unix.Close(fd)
		}
		tried(what, err)
	}
	c, err := net.Dial("udp", udp)
	if err == nil {
		_, err = c.Write([]byte("hello"))
	}
	tried("udp", err)
	dns := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", udp)
	}}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err = dns.LookupHost(ctx, "secret.example.com")
	if errors.Is(err, context.DeadlineExceeded) || strings.Contains(fmt.Sprint(err), "timeout") {
		err = nil // it was asked, and the test does not answer
	}
	tried("dns", err)
	socket("udp6", unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	socket("ping", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP)
	socket("raw", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
	socket("packet", unix.AF_PACKET, unix.SOCK_DGRAM, 0)
	socket("mptcp", unix.AF_INET, unix.SOCK_STREAM, 262)
	socket("sctp", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP)
	socket("vsock", unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	socket("uevents", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT)
	var params [120]byte
	ring, _, errno := unix.Syscall(ioUringSetup, 1, uintptr(unsafe.Pointer(&params)), 0)
	if errno == 0 {
		unix.Close(int(ring))
		tried("io_uring", nil)
	} else {
		tried("io_uring", errno)
	}
	at := netip.MustParseAddrPort(tcp)
	to := &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		tried("fast", unix.Sendto(fd, []byte("hello"), unix.MSG_FASTOPEN, to))
		_, err = unix.SendmsgN(fd, []byte("hello"), nil, to, unix.MSG_FASTOPEN)
		tried("fastmsg", err)
		unix.Close(fd)
	}
	if c, err = net.Dial("tcp", tcp); err == nil {
		c.Close()
	}
	tried("tcp", err)
	_, err = net.InterfaceAddrs()
	tried("addresses", err)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err == nil {
		_, err = unix.Write(pair[0], []byte("hello"))
	}
	tried("unix", err)
	b, _ := json.Marshal(said)
	fmt.Println(string(b))
}

// A tree without a network sends nothing: no datagram, no question for a name, no raw packet, nothing by protocols
// that are not TCP or by calls in the background. TCP to its node, sockets in files and the list of the machine's
// own addresses are left to it.
func TestNothingIsSentWithoutANetwork(t *testing.T) {
	t.Parallel()
	if !filtered[runtime.GOARCH] {
		t.Skip("no filter for " + runtime.GOARCH)
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	// arrived reads what was sent, until the last datagram of this test itself.
	arrived := func() (all []string) {
		mine, err := net.Dial("udp", udp.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer mine.Close()
		if _, err := mine.Write([]byte("last")); err != nil {
			t.Fatal(err)
		}
		for b := make([]byte, 2048); ; {
			_ = udp.SetReadDeadline(time.Now().Add(time.Minute))
			n, _, err := udp.ReadFrom(b)
			if err != nil {
				t.Fatal(err)
			}
			if string(b[:n]) == "last" {
				return all
			}
			all = append(all, string(b[:n]))
		}
	}
	port := uint16(tcp.Addr().(*net.TCPAddr).Port)
	said := func(g *Guard) (out map[string]string, notes []string) {
		spec := Spec{Path: "/proc/self/exe", Args: []string{"self", "send", udp.LocalAddr().String(), tcp.Addr().String()},
			Dir: "/", Guard: g}
		all, _, p := runs(t, Floor{}, spec)
		if err := json.Unmarshal([]byte(all), &out); err != nil {
			t.Fatalf("it said %q, %v", all, p.Notes)
		}
		return out, p.Notes
	}
	free, _ := said(&Guard{})
	if got := strings.Join(arrived(), " "); free["udp"] != "ok" || free["dns"] != "ok" || free["tcp"] != "ok" ||
		!strings.Contains(got, "hello") || !strings.Contains(got, "secret") {
		t.Errorf("with a network it did %v, and %q arrived", free, got)
	}
	held, notes := said(&Guard{HoldNet: true, Port: port})
	if strings.Contains(strings.Join(notes, " "), NoDatagramHold) {
		t.Skip(notes)
	}
	if got := arrived(); len(got) > 0 {
		t.Errorf("%q arrived", got)
	}
	for what, said := range held {
		left := what == "tcp" || what == "addresses" || what == "unix"
		if left != (said == "ok") {
			t.Errorf("%s: %s", what, said)
		}
	}
	if len(held) != len(free) || held["udp"] == "" {
		t.Errorf("it tried %v", held)
	}
	f := connections(false) // as on a kernel that can not tell ports apart
	if len(f) > unix.BPF_MAXINSNS || len(f)/len(abis) > 250 {
		t.Errorf("the filter has %d instructions: jumps are of 8 bits", len(f))
	}
	none, _ := said(&Guard{HoldNet: true})
	if landlockABI() >= netABI && none["tcp"] == "ok" {
		t.Error("a tree reached TCP without a port")
	}
}

// Where Landlock can not hold TCP, a tree that has a socket to its node has no other.
func TestNoTCPWithoutLandlock(t *testing.T) {
	t.Parallel()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the filter stays with the thread, which ends
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			done <- err
			return
		}
		notes, err := filterCalls(connections(false))
		if err != nil || len(notes) > 0 {
			done <- fmt.Errorf("%v %w", notes, err)
			return
		}
		for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
			if _, err := unix.Socket(family, unix.SOCK_STREAM, 0); err != unix.EACCES {
				done <- fmt.Errorf("a socket of family %d: %v", family, err)
				return
			}
		}
		_, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		done <- err
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
