package lan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/kit"
)

var (
	selvage string // path of the binary under test, built once
	unfit   string // why these tests can not be run here
)

// privateEnv is set where the names of network namespaces are those of this run alone.
const privateEnv = "SELVAGE_LAN_PRIVATE"

// TestMain builds the program, or plays the box of somebody who means harm.
func TestMain(m *testing.M) {
	if os.Getenv(hostileEnv) != "" {
		if err := beHostile(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if unfit = canNot(); unfit == "" && os.Getenv(privateEnv) == "" {
		unfit = "no private mounts: " + rerunPrivate().Error()
	}
	dir, err := os.MkdirTemp("", "selvage-lan-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	selvage = filepath.Join(dir, "selvage")
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // they mostly wait
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if unfit == "" {
		build := exec.Command("go", "build", "-o", selvage, "../../cmd/node")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			os.Exit(1)
		}
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// canNot says why these tests can not be run here, "" when they can.
func canNot() string {
	if os.Geteuid() != 0 {
		return "network namespaces need root"
	}
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "there is no " + tool
		}
	}
	if err := exec.Command("unshare", "-m", "-n", "true").Run(); err != nil {
		return "namespaces are not allowed here: " + err.Error()
	}
	return ""
}

func needsNetwork(t *testing.T) {
	t.Helper()
	if unfit != "" {
		t.Skip(unfit)
	}
	if testing.Short() {
		t.Skip("boxes on a network take a minute")
	}
	t.Parallel()
}

var serial atomic.Int32

func unique() string { return fmt.Sprintf("slv%d-%d", os.Getpid()%100000, serial.Add(1)) }

func sh(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// A network is a switch, in a namespace of its own, that boxes are plugged into.
type network struct {
	t  *testing.T
	ns string
	no int // the third number of its addresses
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{t: t, ns: unique(), no: int(serial.Add(1))}
	sh(t, "ip", "netns", "add", n.ns)
	t.Cleanup(func() { exec.Command("ip", "netns", "del", n.ns).Run() })
	sh(t, "ip", "-n", n.ns, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
	sh(t, "ip", "-n", n.ns, "link", "set", "br0", "up")
	return n
}

// A box is a machine with a data directory.
type box struct {
	t    *testing.T
	name string
	ns   string
	dir  string
	port int // interfaces so far
	ip   string

	machineID string // file that is /etc/machine-id there

	mu     sync.Mutex
	cmd    *exec.Cmd
	log    bytes.Buffer // all that it ever said
	ended  chan struct{}
	status error
}

var boxes atomic.Int32

// box makes a machine, plugged into the network.
func (n *network) box(name string) *box {
	n.t.Helper()
	b := &box{t: n.t, name: name, ns: unique(), dir: filepath.Join(n.t.TempDir(), name)}
	sh(n.t, "ip", "netns", "add", b.ns)
	b.machineID = filepath.Join(n.t.TempDir(), "machine-id")
	if err := os.WriteFile(b.machineID, fmt.Appendf(nil, "%032x\n", time.Now().UnixNano()), 0o644); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		b.kill()
		exec.Command("ip", "netns", "del", b.ns).Run()
		if n.t.Failed() {
			said := b.said() // not to n.t.Logf: the reason why it failed is to come last
			fmt.Fprintf(os.Stderr, "%s, %s said:\n%s\n", n.t.Name(), b.name, said[max(0, len(said)-6000):])
		}
	})
	sh(n.t, "ip", "-n", b.ns, "link", "set", "lo", "up")
	b.plug(n)
	return b
}

// plug connects the box with a network, too; it returns the address that it has there.
func (b *box) plug(n *network) string {
	b.t.Helper()
	eth, port := "eth"+strconv.Itoa(b.port), fmt.Sprintf("p%d", boxes.Add(1))
	b.port++
	sh(b.t, "ip", "-n", n.ns, "link", "add", port, "type", "veth", "peer", "name", eth, "netns", b.ns)
	sh(b.t, "ip", "-n", n.ns, "link", "set", port, "master", "br0", "up")
	ip := fmt.Sprintf("10.77.%d.%d", n.no, boxes.Add(1))
	sh(b.t, "ip", "-n", b.ns, "addr", "add", ip+"/24", "dev", eth)
	sh(b.t, "ip", "-n", b.ns, "link", "set", eth, "up")
	if b.ip == "" {
		b.ip = ip
	}
	return ip
}

// in is a command on the box, which ends with this process. It has mounts of its own there.
func (b *box) in(ctx context.Context, args ...string) *exec.Cmd {
	const own = `mount --bind "$0" /etc/machine-id; exec "$@"`
	there := []string{"netns", "exec", b.ns, "sh", "-c", own, b.machineID}
	cmd := exec.CommandContext(ctx, "ip", append(there, args...)...)
	endsWithThis(cmd)
	return cmd
}

// up starts the node.
func (b *box) up(args ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	cmd := b.in(context.Background(), append([]string{selvage, "up", "--dir", b.dir, "--name", b.name}, args...)...)
	cmd.Stdout, cmd.Stderr = writer{b}, writer{b}
	cmd.WaitDelay = time.Second // whatever it has started may keep its output open
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan struct{})
	b.cmd, b.ended = cmd, ended
	go func() {
		err := cmd.Wait()
		b.mu.Lock()
		b.status = err
		b.mu.Unlock()
		close(ended)
	}()
}

type writer struct{ b *box }

func (w writer) Write(p []byte) (int, error) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	return w.b.log.Write(p)
}

func (b *box) said() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String()
}

func (b *box) signal(s syscall.Signal) {
	b.mu.Lock()
	cmd, ended := b.cmd, b.ended
	b.mu.Unlock()
	if cmd == nil {
		return
	}
	select {
	case <-ended:
	default:
		cmd.Process.Signal(s)
	}
}

func (b *box) kill() {
	b.signal(syscall.SIGKILL)
	b.wait(patience)
}

func (b *box) stop() {
	b.signal(syscall.SIGTERM)
	if !b.wait(patience) {
		b.t.Errorf("%s does not stop", b.name)
		b.kill()
	}
}

// wait waits for the process to end.
func (b *box) wait(most time.Duration) bool {
	b.mu.Lock()
	ended := b.ended
	b.mu.Unlock()
	if ended == nil {
		return true
	}
	select {
	case <-ended:
		return true
	case <-time.After(most):
		return false
	}
}

func (b *box) running() bool { return !b.wait(0) }

// says waits until the box says something new that matches, and returns the
// first group. What it said before mark does not count.
func (b *box) says(mark int, pattern string, most time.Duration) string {
	b.t.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(most); ; time.Sleep(10 * time.Millisecond) {
		if m := re.FindStringSubmatch(b.said()[mark:]); m != nil {
			return m[len(m)-1]
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s did not say %q within %v", b.name, pattern, most)
		}
	}
}

func (b *box) mark() int { return len(b.said()) }

// serves waits until the node serves.
func (b *box) serves(mark int, most time.Duration) {
	b.t.Helper()
	b.says(mark, `serves on (\S+)`, most)
}

// code waits for the code that the box shows.
func (b *box) code(mark int, most time.Duration) string {
	b.t.Helper()
	return b.says(mark, `its code is (\S+)`, most)
}

// try runs a verb on the box.
func (b *box) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out, talk bytes.Buffer
	cmd := b.in(ctx, append([]string{selvage}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &talk
	if err := cmd.Run(); err != nil {
		return "", errors.Join(err, errors.New(strings.TrimSpace(talk.String())))
	}
	return strings.TrimSpace(out.String()), nil
}

func (b *box) must(args ...string) string {
	b.t.Helper()
	out, err := b.try(args...)
	if err != nil {
		b.t.Fatalf("selvage %s on %s: %v", strings.Join(args, " "), b.name, err)
	}
	return out
}

// members returns the status of each member, by name, as the box sees it.
func (b *box) members() map[string]string {
	out, err := b.try("members", "-o", "json")
	var rows []struct{ Name, Status string }
	if err != nil || json.Unmarshal([]byte(out), &rows) != nil {
		return nil
	}
	m := map[string]string{}
	for _, r := range rows {
		m[r.Name] = r.Status
	}
	return m
}

// patient bounds what comes about by itself.
var patient = kit.Wait{Most: patience, Every: 50 * time.Millisecond}

// A moment is when something began, and how much the machine had rested by then.
type moment struct {
	at         time.Time
	idle, time int // of all processors, since the machine's start
}

func now() moment {
	m := moment{at: time.Now()}
	b, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(b), "\n")
	for i, f := range strings.Fields(line) {
		if n, err := strconv.Atoi(f); err == nil && i < 9 { // what guests took is counted as the user's too
			m.time += n
			if i == 4 {
				m.idle = n
			}
		}
	}
	return m
}

func (m moment) passed() time.Duration { return time.Since(m.at) }

// within says how long something took, and fails when it was too long on a machine
// that rested half of the time since the moment: a busy one shows nothing.
func (m moment) within(t *testing.T, what string, took, most time.Duration) {
	t.Helper()
	end := now()
	rested := float64(end.idle-m.idle) / float64(max(1, end.time-m.time))
	t.Logf("%s: %v (at most %v) on a machine that rested %.0f %% of the time", what, took.Round(10*time.Millisecond),
		most, 100*rested)
	if took > most && rested > 0.5 {
		t.Errorf("%s took %v, at most %v", what, took, most)
	}
}

// sent is how many packets the box has sent.
func (b *box) sent() int {
	b.t.Helper()
	var links []struct {
		Ifname  string
		Stats64 struct{ Tx struct{ Packets int } }
	}
	if err := json.Unmarshal([]byte(sh(b.t, "ip", "-n", b.ns, "-s", "-j", "link")), &links); err != nil {
		b.t.Fatal(err)
	}
	n := 0
	for _, l := range links {
		if l.Ifname != "lo" {
			n += l.Stats64.Tx.Packets
		}
	}
	return n
}

// crashed fails when a box has ended by itself or said something of a panic.
func (b *box) alive() {
	b.t.Helper()
	if !b.running() {
		b.t.Errorf("%s ended: %v", b.name, b.status)
	}
	if strings.Contains(b.said(), "panic") || strings.Contains(b.said(), "goroutine ") {
		b.t.Errorf("%s crashed", b.name)
	}
}
