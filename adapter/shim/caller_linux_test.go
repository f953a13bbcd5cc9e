package shim

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// call connects to a port of 127.0.0.1, says hello, and then stays alive: with the connection
// ("holds", or "mapped" by an IPv6 socket), with it after an exec ("execs"), or without it
// being visible ("hides" keeps it in transit to itself, "closes").
func call(how, port string) int {
	die := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
	}
	to := netip.MustParseAddrPort("127.0.0.1:" + port)
	domain, addr := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	if how == "mapped" {
		domain, addr = unix.AF_INET6, &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	}
	fd, err := unix.Socket(domain, unix.SOCK_STREAM, 0)
	die(err)
	die(unix.Connect(fd, addr))
	_, err = unix.Write(fd, []byte("hello"))
	die(err)
	switch how {
	case "closes":
		die(unix.Close(fd))
	case "execs":
		die(syscall.Exec("/bin/sleep", []string{"sleep", "100"}, nil))
	case "hides":
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		die(err)
		die(unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(fd), nil, 0))
		die(unix.Close(fd))
	}
	fmt.Println("ready")
	time.Sleep(100 * time.Second)
	return 0
}

// answer accepts one connection that says hello.
func answer(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	return c
}

func fromRun(c net.Conn) (bool, error) {
	return FromRun(c.RemoteAddr().(*net.TCPAddr).AddrPort(), c.LocalAddr().(*net.TCPAddr).AddrPort())
}

func listenLocal(t *testing.T) (net.Listener, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return l, port
}

// Whatever a run does with its connection, it is not taken for a process outside runs; and no
// other process is taken for a run while one is running.
func TestARunIsKnownByItsConnection(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, how, before, after string
		unknown                  bool // not taken for a person's, though it can not be shown to be a run's
	}{
		{name: "plainly", how: "holds"},
		{name: "by an IPv6 socket", how: "mapped"},
		{name: "under another program", how: "execs"},
		{name: "in a session of its own", before: "setsid ", how: "holds", after: " & wait"},
		{name: "from an orphan", before: "(setsid setsid sh -c '", how: "holds", after: " & exit 0' &); sleep 100"},
		{name: "hidden in flight", how: "hides", unknown: true},
		{name: "closed", how: "closes", unknown: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, port := listenLocal(t)
			spec, _ := script(t, c.before+strings.Join([]string{exe, "call", c.how, port}, " ")+c.after)
			p, out := start(t, spec)
			defer func() { p.Kill(); wait(t, p) }()
			conn := answer(t, l)
			if c.how != "execs" && c.how != "holds" && c.how != "mapped" {
				wantReady(t, out)
			}
			if run, err := fromRun(conn); run == c.unknown || (err != nil) != c.unknown {
				t.Errorf("it is a run: %t, %v", run, err)
			}
			mine, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer mine.Close()
			fmt.Fprint(mine, "hello")
			if run, err := fromRun(answer(t, l)); run || err != nil {
				t.Errorf("the test itself is a run: %t, %v", run, err)
			}
			for _, line := range []string{exe + " call holds " + port, "(setsid setsid " + exe + " call mapped " + port +
				" & exit 0)"} {
				person := exec.Command("sh", "-c", "echo $$; exec "+line)
				if strings.HasPrefix(line, "(") {
					person = exec.Command("sh", "-c", line)
				}
				person.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				if err := person.Start(); err != nil {
					t.Fatal(err)
				}
				conn := answer(t, l)
				run, err := fromRun(conn)
				if run || err != nil {
					t.Errorf("%s is a run: %t, %v", line, run, err)
				}
				end, _ := endOf(conn.RemoteAddr().(*net.TCPAddr).AddrPort(), conn.LocalAddr().(*net.TCPAddr).AddrPort())
				for _, pid := range holders(t, end) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
				_ = person.Wait()
			}
		})
	}
}

// holders are the processes that have an end of a connection.
func holders(t *testing.T, e end) (pids []int) {
	t.Helper()
	procs, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range procs.pids {
		if held, _ := holds(pid, fmt.Sprintf("socket:[%d]", e.inode)); held {
			pids = append(pids, pid)
		}
	}
	return pids
}

// sock_diag and /proc/net find the same end.
func TestBothWaysFindTheSameEnd(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Skip(err)
		}
		defer l.Close()
		mine, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer mine.Close()
		client, server := mine.LocalAddr().(*net.TCPAddr).AddrPort(), mine.RemoteAddr().(*net.TCPAddr).AddrPort()
		file := map[bool]string{true: "/proc/net/tcp", false: "/proc/net/tcp6"}[client.Addr().Is4()]
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		listed, ok := listedEnd(text, client, server)
		if !ok || listed.inode == 0 || listed.uid != uint32(os.Geteuid()) {
			t.Errorf("%s lists %+v, %t", file, listed, ok)
		}
		asked, err := diagEnd(client, server)
		if err != nil {
			t.Logf("this kernel has no sock_diag for it: %v", err)
		} else if asked != listed {
			t.Errorf("sock_diag tells %+v, %s lists %+v", asked, file, listed)
		}
		if _, ok := listedEnd(text, server, netip.AddrPortFrom(client.Addr(), 1)); ok {
			t.Error("a connection that is not there is listed")
		}
	}
}

// The cost of a lookup with a running run, and without one.
func BenchmarkFromRun(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	mine, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer mine.Close()
	client, server := mine.LocalAddr().(*net.TCPAddr).AddrPort(), mine.RemoteAddr().(*net.TCPAddr).AddrPort()
	look := func(b *testing.B) {
		for b.Loop() {
			if run, err := FromRun(client, server); run || err != nil {
				b.Fatal(run, err)
			}
		}
	}
	b.Run("no run", look)
	p, err := Start(self, Spec{Path: "/bin/sleep", Args: []string{"sleep", "100"}, Dir: "/"}, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("one run", look)
	p.Kill()
	_, _ = p.Wait()
}
