//go:build measure

package discovery

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/kit"
)

// TestMeasureDeaths measures with real processes: how long
// until a killed node is declared, and whether live ones are, with two hogs a
// core for SELVAGE_STARVE (default 60s) and with nodes that are stopped for a second.
func TestMeasureDeaths(t *testing.T) {
	long, err := time.ParseDuration(cmp.Or(os.Getenv("SELVAGE_STARVE"), "60s"))
	if err != nil {
		t.Fatal(err)
	}
	conns, addrs := sockets(t, 3)
	for _, c := range conns {
		c.Close()
	}
	nodes := make([]*child, 3)
	start := func(i int) { nodes[i] = startChild(t, fmt.Sprintf("node %d %s", i, strings.Join(addrs, " "))) }
	for i := range nodes {
		start(i)
	}
	for i, c := range nodes {
		for range 2 {
			select {
			case l := <-c.lines:
				if !strings.HasPrefix(l, "join ") {
					t.Fatalf("node %d: %q", i, l)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("node %d sees not all", i)
			}
		}
	}

	chances := kit.Rand(t)
	upToASecond := func() time.Duration { return time.Duration(chances.Int64N(int64(time.Second))) }
	var took []time.Duration
	for range 20 {
		time.Sleep(2*time.Second + upToASecond())
		nodes[2].Process.Kill()
		killed := time.Now()
		nodes[0].expect(t, "failure 2")
		nodes[1].expect(t, "failure 2")
		took = append(took, time.Since(killed))
		start(2)
		nodes[0].expect(t, "join 2")
		nodes[1].expect(t, "join 2")
	}
	slices.Sort(took)
	t.Logf("killed: declared by both others after median %v, worst of %d %v", took[10].Round(time.Millisecond), len(took),
		took[19].Round(time.Millisecond))
	if took[19] > 4*time.Second {
		t.Errorf("too late: %v", took)
	}
	for i := range nodes {
		nodes[i].collect()
	}

	count := func(what string) {
		t.Helper()
		for i, c := range nodes {
			bad := slices.DeleteFunc(c.collect(), func(l string) bool { return !strings.HasPrefix(l, "failure") })
			if len(bad) > 0 {
				t.Errorf("%s: node %d declared live nodes dead %d times", what, i, len(bad))
			}
		}
	}
	for range 20 {
		p := nodes[chances.IntN(3)].Process
		p.Signal(syscall.SIGSTOP)
		time.Sleep(time.Second)
		p.Signal(syscall.SIGCONT)
		time.Sleep(time.Second + upToASecond())
	}
	count("stopped for 1 s, 20 times")

	for range 2 * runtime.NumCPU() {
		startChild(t, "hog")
	}
	time.Sleep(long)
	count(fmt.Sprintf("%v with 2 hogs a core", long))
	for i, c := range nodes {
		c.stdin.Close()
		time.Sleep(500 * time.Millisecond)
		t.Logf("node %d: doubts, spared, failures, health: %v", i, c.collect())
	}
}

type child struct {
	*exec.Cmd
	lines chan string
	stdin interface{ Close() error }
}

func startChild(t *testing.T, what string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SELVAGE_CHILD="+what)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd, make(chan string, 1000), in}
	go func() {
		defer close(c.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return c
}

// expect waits for a line and fails on another, unless it is to be skipped.
func (c *child) expect(t *testing.T, want string, skip ...string) {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		select {
		case got := <-c.lines:
			if got == want {
				return
			}
			if !slices.Contains(skip, got) {
				t.Fatalf("got %q, want %q", got, want)
			}
		case <-late:
			t.Fatalf("no %q", want)
		}
	}
}

func (c *child) collect() (lines []string) {
	for {
		select {
		case l, open := <-c.lines:
			if !open {
				return lines
			}
			lines = append(lines, l)
		default:
			return lines
		}
	}
}
