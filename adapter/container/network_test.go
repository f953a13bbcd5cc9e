package container

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/entity"
)

// surroundings prints what the guest sees of its network and limits: whether it reaches an
// address, its interfaces, and the limits of its cgroup.
func surroundings(addr string) {
	ifs, _ := net.Interfaces()
	for _, i := range ifs {
		fmt.Println("interface", i.Name)
	}
	_, port, _ := net.SplitHostPort(addr)
	c, err := net.DialTimeout("tcp", addr, 3*time.Second)
	if err == nil {
		_ = c.Close()
	}
	fmt.Println("loopback", err == nil)
	// The default gateway of a bridge is the host.
	routes, _ := os.ReadFile("/proc/net/route")
	for line := range strings.Lines(string(routes)) {
		var name, to, via string
		if n, _ := fmt.Sscan(line, &name, &to, &via); n == 3 && to == "00000000" && len(via) == 8 {
			var b [4]byte
			_, _ = fmt.Sscanf(via, "%02x%02x%02x%02x", &b[3], &b[2], &b[1], &b[0])
			c, err := net.DialTimeout("tcp", net.JoinHostPort(net.IP(b[:]).String(), port), 3*time.Second)
			if err == nil {
				_ = c.Close()
			}
			fmt.Println("host", err == nil)
		}
	}
	for name, at := range map[string][]string{"memory": {"memory.max", "memory/memory.limit_in_bytes"},
		"processes": {"pids.max", "pids/pids.max"}, "cpu": {"cpu.max", "cpu/cpu.cfs_quota_us"}} {
		for _, path := range at {
			if b, err := os.ReadFile("/sys/fs/cgroup/" + path); err == nil {
				fmt.Println(name, strings.TrimSpace(string(b)))
				break
			}
		}
	}
	fmt.Println("looked")
}

// Each network as seen from inside: none has only the loopback, bridge has an interface with
// the host behind it, and host is the machine's network.
func TestNetworksOfAContainer(t *testing.T) {
	t.Parallel()
	needEngine(t)
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for network, want := range map[string]struct {
		loopback bool // the container has the machine's loopback
		own      bool // it has a further interface
	}{"none": {false, false}, "bridge": {false, true}, "host": {true, true}, "": {false, false}} {
		t.Run("network "+network, func(t *testing.T) {
			t.Parallel()
			c := guestDoes("surroundings", "127.0.0.1:"+port)
			if network != "" {
				c["network"] = network
			}
			b := newBed(t, t.TempDir(), c)
			o := b.Invoke(t.Context(), b.inv)
			out := b.wrote("stdout")
			if network == "bridge" && o.Status == entity.RunFailed && !strings.Contains(out, "looked") {
				t.Skipf("the engine of this machine makes no bridges: %s; %s", o.Error, b.wrote("stderr"))
			}
			if o.Status != entity.RunSucceeded || !strings.Contains(out, "looked") {
				t.Fatalf("%s %s; wrote %q, %q", o.Status, o.Error, out, b.wrote("stderr"))
			}
			if got := strings.Contains(out, "loopback true"); got != want.loopback {
				t.Errorf("the machine's loopback is reached: %t\n%s", got, out)
			}
			if got := strings.Count(out, "interface ") > 1; got != want.own {
				t.Errorf("it has an interface besides lo: %t\n%s", got, out)
			}
			if network == "bridge" && strings.Contains(out, "host false") {
				t.Errorf("nothing is reached over the bridge\n%s", out)
			}
		})
	}
}

// The limits of a container are those of its cgroup, seen from inside.
func TestLimitsSeenFromInside(t *testing.T) {
	t.Parallel()
	needEngine(t)
	c := guestDoes("surroundings", "127.0.0.1:1")
	c["limits"] = map[string]any{"memoryMb": 96, "processes": 33, "cpus": 0.5}
	b := newBed(t, t.TempDir(), c)
	o := b.Invoke(t.Context(), b.inv)
	out := b.wrote("stdout")
	if o.Status != entity.RunSucceeded {
		t.Fatalf("%s %s; wrote %q, %q", o.Status, o.Error, out, b.wrote("stderr"))
	}
	for _, want := range []string{"memory 100663296\n", "processes 33\n", "cpu 50000"} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
}
