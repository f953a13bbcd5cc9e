package container

import (
	"archive/tar"
	"context"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/kit"
)

const (
	image = "selvage-test:container"
	token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.run-token"
)

// playDocker runs a docker daemon beside the test binary; set only on systems that can.
var playDocker func(dir, short string) int

// The test binary also plays the shim, a node that can be killed, and the program in the
// container.
func TestMain(m *testing.M) {
	shimtest.MaybeShim()
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "play-node":
			os.Exit(playNode(os.Args[2:]))
		case "play-docker":
			os.Exit(playDocker(os.Args[2], os.Args[3]))
		case "guest":
			guest(os.Args[2:])
			os.Exit(0)
		}
	}
	code := m.Run()
	if imported {
		_ = exec.Command(engineOf()[0], append(engineOf()[1:], "rmi", "-f", image)...).Run()
	}
	os.Exit(code)
}

// guest plays the agent.
func guest(do []string) {
	switch do[0] {
	case "look":
		for _, kv := range os.Environ() {
			fmt.Println("env", kv)
		}
		ifs, _ := net.Interfaces()
		for _, i := range ifs {
			fmt.Println("interface", i.Name)
		}
		b, _ := os.ReadFile("/proc/self/status")
		for l := range strings.Lines(string(b)) {
			if strings.HasPrefix(l, "NoNewPrivs") || strings.HasPrefix(l, "CapEff") {
				fmt.Print(strings.Join(strings.Fields(l), " "), "\n")
			}
		}
		fmt.Println("root", os.WriteFile("/new", nil, 0o600) == nil, "tmp", os.WriteFile("/tmp/new", nil, 0o600) == nil,
			"work", os.WriteFile("/work/made", []byte("by the guest"), 0o600) == nil)
		c := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", os.Getenv("SELVAGE_API_SOCKET"))
		}}}
		req, _ := http.NewRequest("GET", os.Getenv("PAPERCLIP_API_URL")+"/api/agents/me", nil)
		req.Header.Set("Authorization", "Bearer somebody-else")
		req.Header.Set("Cookie", "session=board")
		res, err := c.Do(req)
		if err != nil {
			fmt.Println("api", err)
			return
		}
		said, _ := io.ReadAll(res.Body)
		fmt.Println("api", res.StatusCode, string(said))
	case "eat":
		var kept [][]byte
		for range 300 {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = 1
			}
			kept = append(kept, b)
		}
		fmt.Println("ate", len(kept))
	case "fork":
		for i := range 60 {
			if err := exec.Command("/agent", "guest", "sleep").Start(); err != nil {
				fmt.Println("stopped at", i)
				return
			}
		}
		fmt.Println("all")
	case "surroundings":
		surroundings(do[1])
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(time.Minute)
	case "sleep":
		fmt.Println("ready")
		time.Sleep(time.Minute)
	}
}

// engineOf returns the engine of this machine. Podman uses runc if it is installed: crun fails
// on machines that have both versions of cgroups.
func engineOf() []string {
	e := Find()
	if e != nil && filepath.Base(e[0]) == "podman" {
		if _, err := exec.LookPath("runc"); err == nil {
			e = append(e, "--runtime", "runc")
		}
	}
	return e
}

var (
	once     sync.Once
	imported bool
	why      string
)

// linked returns why this program can not be made into an image, "" if it can.
func linked() string {
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return "this test needs to be a static program: CGO_ENABLED=0"
	}
	return ""
}

// needEngine imports this binary as an image and runs it once, or skips the test.
func needEngine(t *testing.T) {
	t.Helper()
	if testing.Short() && os.Getuid() != 0 {
		t.Skip("containers are slow where they need user namespaces")
	}
	once.Do(func() {
		e := engineOf()
		if e == nil {
			why = "neither podman nor docker is installed"
			return
		}
		if why = linked(); why != "" {
			return
		}
		self, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			why = err.Error()
			return
		}
		cmd := exec.Command(e[0], append(slices.Clone(e[1:]), "import", "-", image)...)
		in, _ := cmd.StdinPipe()
		go func() {
			w := tar.NewWriter(in)
			_ = w.WriteHeader(&tar.Header{Name: "agent", Mode: 0o755, Size: int64(len(self))})
			_, _ = w.Write(self)
			_ = w.Close()
			_ = in.Close()
		}()
		if out, err := cmd.CombinedOutput(); err != nil {
			why = fmt.Sprintf("no image can be made: %v: %s", err, end(string(out), 300))
			return
		}
		imported = true
		args := append(slices.Clone(e[1:]), "run", "--rm", "--ulimit", "nofile=512", "--ulimit", "nproc=512", "--network",
			"none", "--memory", "64m", "--pids-limit", "50", image, "/agent", "guest", "look")
		if out, err := exec.Command(e[0], args...).CombinedOutput(); err != nil {
			why = fmt.Sprintf("no container can be run: %v: %s", err, end(string(out), 300))
		}
	})
	if why != "" {
		t.Skip(why)
	}
}

// A bed is an adapter with one run.
type bed struct {
	*Adapter
	t    testing.TB
	data string
	inv  company.Invocation

	mu    sync.Mutex
	log   map[string]string
	told  []company.Report
	lease time.Duration
}

func newBed(t testing.TB, data string, config map[string]any) *bed {
	t.Helper()
	b := &bed{t: t, data: data, log: map[string]string{}, lease: shim.BootTime() + time.Minute}
	b.Adapter = adapterIn(t, data, strings.ReplaceAll(data, "/", "-"))
	if config["image"] == nil {
		config["image"], config["pull"] = image, "never"
	}
	cfg, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	b.inv = company.Invocation{Config: cfg, Wake: []byte(`{"wakeReason":"on_demand"}`), Secrets: []string{"canary-secret"},
		Run: entity.Run{ID: "r" + strconv.FormatInt(time.Now().UnixNano(), 36), Company: "company-1", Agent: "agent-1",
			AdapterType: "container"},
		Log: func(stream, text string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.log[stream] += text
		},
		Report:    func(r company.Report) { b.mu.Lock(); defer b.mu.Unlock(); b.told = append(b.told, r) },
		Authority: func() time.Duration { b.mu.Lock(); defer b.mu.Unlock(); return b.lease }}
	return b
}

func adapterIn(t testing.TB, data, node string) *Adapter {
	fail := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(data, "runs")
	of := func(entity.Run) (string, error) { return token, nil }
	p, err := process.New(process.Config{Shim: shimtest.Command, Dir: dir, APIURL: "http://127.0.0.1:1",
		ListenHost: "127.0.0.1", ListenPort: "1", Token: of})
	fail(err)
	engine := engineOf()
	if engine == nil {
		engine = []string{"/bin/false"}
	}
	a, err := New(Config{Engine: engine, Node: node, Shim: shimtest.Command, Dir: dir,
		Private: shim.Floor{Hide: []string{data}}.Hidden, Process: p, Token: of, Environ: os.Environ(),
		API: func() http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintf(w, "asked by %t, cookie %q, run %q", r.Header.Get("Authorization") == "Bearer "+token,
					r.Header.Get("Cookie"), r.Header.Get("X-Paperclip-Run-Id"))
			})
		}})
	fail(err)
	return a
}

func (b *bed) wrote(stream string) string { b.mu.Lock(); defer b.mu.Unlock(); return b.log[stream] }

func (b *bed) left() string {
	out, err := b.engine(context.Background(), "ps", "-a", "--filter", "label="+LabelNode+"="+b.cfg.Node, "--format",
		"{{.Names}}")
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func (b *bed) eventually(what string, ok func() bool) {
	b.t.Helper()
	kit.Wait{Most: 2 * time.Minute, Every: 50 * time.Millisecond,
		State: func() string { return fmt.Sprintf("log %q", b.log) }}.Until(b.t, what, ok)
}

func guestDoes(do ...string) map[string]any {
	return map[string]any{"command": "/agent", "args": append([]string{"guest"}, do...), "graceSec": 1}
}

// What is visible in a container: its folders, its variables, the API as its agent, and
// nothing else of the machine.
func TestAContainerSeesWhatItIsGiven(t *testing.T) {
	t.Parallel()
	needEngine(t)
	c := guestDoes("look")
	c["env"] = map[string]any{"PLAIN": "a b=c", "API_KEY": map[string]any{"type": "plain", "value": "canary-secret"},
		"PAPERCLIP_RUN_ID": "forged"}
	b := newBed(t, t.TempDir(), c)
	o := b.Invoke(t.Context(), b.inv)
	out := b.wrote("stdout")
	if o.Status != entity.RunSucceeded || *o.ExitCode != 0 {
		t.Fatalf("%s %s; wrote %q, %q", o.Status, o.Error, out, b.wrote("stderr"))
	}
	for _, want := range []string{"env PLAIN=a b=c\n", "env PAPERCLIP_RUN_ID=" + b.inv.Run.ID + "\n",
		"env AGENT_HOME=/home/agent\n", "env PAPERCLIP_SCRATCH_DIR=/scratch\n",
		"NoNewPrivs: 1\n", "CapEff: 0000000000000000\n", "root false tmp true work true\n",
		`api 200 asked by true, cookie "", run "` + b.inv.Run.ID + `"`} {
		if !strings.Contains(out, want) {
			t.Errorf("the guest wrote %q, want %q in it", out, want)
		}
	}
	if strings.Count(out, "interface ") != 1 || !strings.Contains(out, "interface lo\n") {
		t.Errorf("the guest has a network: %q", out)
	}
	if got, err := os.ReadFile(filepath.Join(b.data, "runs", "workspaces", "agent-1",
		"made")); string(got) != "by the guest" {
		t.Errorf("in the agent's folder: %q, %v", got, err)
	}
	all, _ := json.Marshal([]any{o, b.log, b.told})
	for _, secret := range []string{"canary-secret", token} {
		if strings.Contains(string(all), secret) {
			t.Errorf("%q shows in what the run left: %s", secret, all)
		}
	}
	if left := b.left(); left != "" {
		t.Errorf("left over: %s", left)
	}
}

func TestLimitsOfAContainer(t *testing.T) {
	t.Parallel()
	needEngine(t)
	c := guestDoes("eat")
	c["limits"] = map[string]any{"memoryMb": 64}
	b := newBed(t, t.TempDir(), c)
	if o := b.Invoke(t.Context(), b.inv); o.Status != entity.RunFailed || strings.Contains(b.wrote("stdout"), "ate") ||
		!strings.Contains(o.Error, "memory") {
		t.Errorf("%s %q, wrote %q", o.Status, o.Error, b.wrote("stdout"))
	}
	c = guestDoes("fork")
	c["limits"] = map[string]any{"processes": 20}
	b = newBed(t, t.TempDir(), c)
	if o := b.Invoke(t.Context(), b.inv); strings.Contains(b.wrote("stdout"), "all") {
		t.Errorf("%s %q, wrote %q, %q", o.Status, o.Error, b.wrote("stdout"), b.wrote("stderr"))
	}
	c = guestDoes("stubborn")
	c["timeoutSec"] = 2
	b = newBed(t, t.TempDir(), c)
	if o := b.Invoke(t.Context(), b.inv); o.Status != entity.RunTimedOut || b.left() != "" {
		t.Errorf("%s %q, left %q", o.Status, o.Error, b.left())
	}
}

func TestACancelledContainerIsGone(t *testing.T) {
	t.Parallel()
	needEngine(t)
	b := newBed(t, t.TempDir(), guestDoes("stubborn"))
	done := make(chan company.Outcome, 1)
	go func() { done <- b.Invoke(t.Context(), b.inv) }()
	b.eventually("the guest", func() bool { return strings.Contains(b.wrote("stdout"), "ready") })
	b.Cancel(b.inv.Run.ID, "")
	if o := <-done; o.Status != entity.RunCancelled {
		t.Errorf("%s %q", o.Status, o.Error)
	}
	if left := b.left(); left != "" {
		t.Errorf("left over: %s", left)
	}
}

// When the lease ends, the container has already been removed.
func TestAContainerEndsWithItsLease(t *testing.T) {
	t.Parallel()
	needEngine(t)
	b := newBed(t, t.TempDir(), guestDoes("sleep"))
	done := make(chan company.Outcome, 1)
	go func() { done <- b.Invoke(t.Context(), b.inv) }()
	b.eventually("the guest", func() bool { return strings.Contains(b.wrote("stdout"), "ready") })
	b.mu.Lock()
	b.lease = shim.BootTime()
	b.mu.Unlock()
	if o := <-done; o.Status != entity.RunInterrupted {
		t.Errorf("%s %q", o.Status, o.Error)
	}
	if left := b.left(); left != "" {
		t.Errorf("left over: %s", left)
	}
}

func playNode(args []string) int {
	t := &bare{}
	b := newBed(t, args[0], guestDoes("sleep"))
	b.inv.Log = func(stream, text string) { fmt.Print(text) }
	b.Invoke(context.Background(), b.inv)
	return 0
}

// bare is a testing.TB for a process that is not a test.
type bare struct{ testing.TB }

func (*bare) Helper()           {}
func (*bare) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// A killed node leaves no container: its shim removes it, or the next start of the node does.
func TestAKilledNodeLeavesNoContainer(t *testing.T) {
	t.Parallel()
	needEngine(t)
	data := t.TempDir()
	b := newBed(t, data, guestDoes("sleep"))
	node := exec.Command("/proc/self/exe", "play-node", data)
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	node.Stderr = os.Stderr
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64)
	if n, err := out.Read(buf); err != nil || !strings.Contains(string(buf[:n]), "ready") {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	if b.left() == "" {
		t.Error("there is no container")
	}
	_ = node.Process.Kill()
	_ = node.Wait()
	b.eventually("the container's end", func() bool { return b.left() == "" })

	if _, err := b.engine(t.Context(), "create", "--name", nameOf(fmt.Sprint("of-before-", os.Getpid())), "--label",
		LabelNode+"="+b.cfg.Node, image, "/agent"); err != nil {
		t.Fatal(err)
	}
	if err := b.Sweep(t.Context()); err != nil || b.left() != "" {
		t.Errorf("after the sweep: %q, %v", b.left(), err)
	}
}

// A missing engine, or one that does not answer, is reported as such.
func TestWithoutAnEngine(t *testing.T) {
	t.Parallel()
	b := newBed(t, t.TempDir(), guestDoes("look"))
	b.cfg.Engine = []string{"/bin/false"}
	if o := b.Invoke(t.Context(), b.inv); o.Status != entity.RunFailed || o.ErrorCode != "container_unavailable" {
		t.Errorf("%+v", o)
	}
	if _, err := New(Config{}); err == nil {
		t.Error("an adapter without an engine was made")
	}
}

func TestWhatAContainerIsNotGiven(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, floor := filepath.Join(dir, "own"), shim.Floor{Nodes: filepath.Join(dir, "nodes")}
	floor.Hide = []string{data}
	beside, far := filepath.Join(dir, "beside"), filepath.Join(t.TempDir(), "far")
	for _, d := range []string{data, beside, far} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "identity.key"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := shim.Register(floor.Nodes, far); err != nil {
		t.Fatal(err)
	}
	within := filepath.Join(far, "runs")
	if err := os.Mkdir(within, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(within, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	mounted := func(source string) map[string]any {
		return map[string]any{"mounts": []any{map[string]any{"source": source, "target": "/x", "readOnly": true}}}
	}
	for _, c := range []struct {
		config map[string]any
		want   string
	}{
		{mounted(beside), "files of this node, or of another"},
		{mounted(far), "files of this node, or of another"},
		{mounted(within), "files of this node, or of another"},
		{mounted(filepath.Dir(far)), "files of this node, or of another"},
		{mounted(filepath.Join(dir, "link")), "files of this node, or of another"},
		{mounted(floor.Nodes), "files of this node, or of another"},
		{map[string]any{"cwd": far}, "files of this node, or of another"},
		{map[string]any{"image": "--privileged"}, "no name of an image"},
		{map[string]any{"network": "container:other"}, "network is none, host or bridge"},
		{map[string]any{"cwd": "relative"}, "not absolute"},
		{map[string]any{"user": "root"}, "uid or uid:gid"},
		{map[string]any{"limits": map[string]any{"memoryMb": -1}}, "must not be negative"},
		{map[string]any{"mounts": []any{map[string]any{"source": "/etc", "target": "/x,readonly"}}}, "without commas"},
		{map[string]any{"mounts": []any{map[string]any{"source": "/etc", "target": "/work"}}}, "which the run has"},
		{map[string]any{"cwd": data}, "files of this node"},
		{map[string]any{"cwd": "/"}, "files of this node"},
		{map[string]any{"mounts": []any{map[string]any{"source": data + "/runs", "target": "/x"}}}, "files of this node"},
		{map[string]any{"mounts": []any{map[string]any{"source": "/not/there", "target": "/x"}}}, "not on this node"},
		{map[string]any{"env": map[string]any{"TWO": "lines\nof text"}}, "more than one line"},
	} {
		b := newBed(t, data, c.config)
		b.cfg.Engine, b.cfg.Private = []string{"/bin/true"}, floor.Hidden
		if o := b.Invoke(t.Context(), b.inv); o.Status != entity.RunFailed || !strings.Contains(o.Error, c.want) {
			t.Errorf("%v: %s %q, want %q", c.config, o.Status, o.Error, c.want)
		}
	}
}
