package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	httpPort = 23100
	meshPort = 29470
	// sleeperSeconds is how long the runs of the measured agents stay alive.
	sleeperSeconds = 7200
)

// errExhausted says that every loaded issue was claimed: it ends the run, for a
// round that goes on without issues measures nothing.
var errExhausted = errors.New("every loaded issue was claimed: run it again with more of them (-issues)")

type nodeInfo struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	HTTP string `json:"http"`
	PID  int    `json:"pid"`
	Role string `json:"role"`
	Dir  string `json:"dir"`
}

// mesh is three nodes as real processes.
type mesh struct {
	bin, dir string
	nodes    []nodeInfo
	http     *http.Client
	clients  sync.Map  // *client by host
	small    *workload // the company of 1,000 issues, when there is one
}

func startMesh(ctx context.Context, c Config) (*mesh, error) {
	return startMeshAs(ctx, c, "mesh", httpPort, meshPort)
}

// startMeshAs starts a mesh in a folder of its own; its nodes get args besides.
func startMeshAs(ctx context.Context, c Config, folder string, http1, mesh1 int, more ...string) (*mesh, error) {
	m := &mesh{bin: c.Bin, dir: filepath.Join(c.Dir, folder), http: &http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: 256, MaxConnsPerHost: 0},
	}}
	args := []string{"up", "-n", "3", "--http-port", strconv.Itoa(http1), "--mesh-port", strconv.Itoa(mesh1),
		"--node-arg=--slots=64", "--node-arg=--log-level=warn"}
	for _, arg := range more {
		args = append(args, "--node-arg="+arg)
	}
	if c.Profile != "" {
		if err := os.MkdirAll(c.Profile, 0o755); err != nil {
			return nil, err
		}
		args = append(args, "--node-arg=--pprof=127.0.0.1:0")
	}
	if _, err := m.testnet(ctx, args...); err != nil {
		return nil, err
	}
	return m, m.status(ctx)
}

func (m *mesh) testnet(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, m.bin, append(append([]string{"testnet"}, args...), "--dir", m.dir, "-o", "json")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("selvage testnet %s: %w: %s", args[0], err, stderr.String())
	}
	return out, nil
}

func (m *mesh) status(ctx context.Context) error {
	out, err := m.testnet(ctx, "status")
	if err != nil {
		return err
	}
	var s struct{ Nodes []nodeInfo }
	if err := json.Unmarshal(out, &s); err != nil {
		return err
	}
	m.nodes = s.Nodes
	return nil
}

func (m *mesh) down() error {
	_, err := m.testnet(context.Background(), "down")
	return err
}

// profileLength is how much of a part a profile shows.
const profileLength = 10 * time.Second

// profile writes a CPU profile of each node to dir, taken while a part runs.
// It returns a function that waits for them.
func (m *mesh) profile(ctx context.Context, dir, part string) (wait func()) {
	var wg sync.WaitGroup
	if dir == "" {
		return wg.Wait
	}
	for i, n := range m.nodes {
		wg.Go(func() {
			if err := m.profileNode(ctx, i, filepath.Join(dir, part+"-"+n.Name+".pprof")); err != nil {
				fmt.Println("# no profile:", err)
			}
		})
	}
	return wg.Wait
}

// leader returns the number of the node that leads.
func (m *mesh) leader(ctx context.Context) (int, error) {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if err := m.status(ctx); err != nil {
			return 0, err
		}
		for i, n := range m.nodes {
			if n.Role == "leader" {
				return i, nil
			}
		}
	}
	return 0, errors.New("no leader for 30 s")
}

// workload is what the measured clients work on.
type workload struct {
	m       *mesh
	company string
	agents  []worker
	issues  []string
	next    atomic.Int64
	fail    context.CancelCauseFunc // see bench
}

type worker struct{ id, token, run string }

// prepare makes a company with one agent a client, each with a live run.
func (m *mesh) prepare(ctx context.Context, clients int) (*workload, error) {
	l := &workload{m: m}
	var row struct{ ID, Token, Status string }
	if err := m.call(ctx, 0, "POST", "/api/companies", "", "", map[string]any{"name": "Bench"}, &row); err != nil {
		return nil, err
	}
	l.company = row.ID
	for i := range clients {
		w := worker{}
		if err := m.call(ctx, i%3, "POST", "/api/companies/"+l.company+"/agents", "", "", map[string]any{
			"name": fmt.Sprint("Claimer ", i), "role": "engineer", "adapterType": "process",
			"adapterConfig": map[string]any{"command": "sleep", "args": []string{strconv.Itoa(sleeperSeconds)},
				"timeoutSec": sleeperSeconds},
		}, &row); err != nil {
			return nil, err
		}
		w.id = row.ID
		if err := m.call(ctx, i%3, "POST", "/api/agents/"+w.id+"/keys", "", "", map[string]any{"name": "bench"},
			&row); err != nil {
			return nil, err
		}
		w.token = row.Token
		if err := m.call(ctx, i%3, "POST", "/api/agents/"+w.id+"/heartbeat/invoke", "", "", map[string]any{},
			&row); err != nil {
			return nil, err
		}
		w.run = row.ID
		l.agents = append(l.agents, w)
	}
	for _, w := range l.agents {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			if err := m.call(ctx, 0, "GET", "/api/heartbeat-runs/"+w.run, "", "", nil, &row); err != nil {
				return nil, err
			}
			if row.Status == "running" {
				break
			}
			if time.Now().After(deadline) {
				return nil, fmt.Errorf("run %s is %s after a minute", w.run, row.Status)
			}
		}
	}
	return l, nil
}

// fill loads issues until there are n.
func (l *workload) fill(ctx context.Context, n, clients int) error {
	have := len(l.issues)
	if have >= n {
		return nil
	}
	l.issues = append(l.issues, make([]string, n-have)...)
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	var next atomic.Int64
	next.Store(int64(have))
	start := time.Now()
	for w := range clients {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && failed.Load() == nil; i = int(next.Add(1)) - 1 {
				var row struct{ ID string }
				err := l.m.call(ctx, w%3, "POST", "/api/companies/"+l.company+"/issues", "", "", map[string]any{
					"title":       fmt.Sprintf("Fix the flaky upload test number %d", i),
					"description": strings.Repeat("It fails once in forty runs; find out why and mend it. ", 10),
					"status":      "todo", "priority": "medium",
				}, &row)
				if err != nil {
					failed.Store(&err)
				}
				l.issues[i] = row.ID
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	took := time.Since(start)
	fmt.Printf("# loaded %d issues over HTTP in %s (%.0f/s from %d clients)\n", n-have, took.Round(time.Second),
		float64(n-have)/took.Seconds(), clients)
	return nil
}

func (l *workload) claim(ctx context.Context, node, w int) error {
	k := l.next.Add(1) - 1
	if k >= int64(len(l.issues)) {
		l.fail(errExhausted)
		return errExhausted
	}
	a := l.agents[w%len(l.agents)]
	return l.m.call(ctx, node, "POST", "/api/issues/"+l.issues[k]+"/checkout", a.token, a.run,
		map[string]any{"agentId": a.id, "expectedStatuses": []string{"todo", "backlog", "blocked", "in_review"}}, nil)
}

// checkout claims the next issue; clients are spread over the nodes.
func (l *workload) checkout(ctx context.Context, w, _ int) error { return l.claim(ctx, w%3, w) }

func (l *workload) checkoutAt(node int) op {
	return func(ctx context.Context, w, _ int) error { return l.claim(ctx, node, w) }
}

func (l *workload) readAt(node int, mode string) op {
	return func(ctx context.Context, w, i int) error {
		return l.m.call(ctx, node, "GET", "/api/issues/"+l.issues[(w*7919+i)%len(l.issues)]+"?read="+mode, "", "", nil, nil)
	}
}

// get reads a path at the first node.
func (l *workload) get(path string) op {
	return func(ctx context.Context, _, _ int) error {
		if strings.Contains(path, "?") {
			return l.m.call(ctx, 0, "GET", path, "", "", nil, nil)
		}
		return l.m.call(ctx, 0, "GET", path+"?read=default", "", "", nil, nil)
	}
}

func (l *workload) readSpread(mode string) op {
	return func(ctx context.Context, w, i int) error { return l.readAt(w%3, mode)(ctx, w, i) }
}

// counts are what the nodes have used since they started.
type counts struct{ syncs, cpuMicros float64 }

func (m *mesh) counters() (c counts) {
	for i, n := range m.nodes {
		c.cpuMicros += cpuMicros(n.PID)
		c.syncs += m.metric(i, "selvage_store_syncs_total")
	}
	return c
}

func (m *mesh) metric(node int, name string) float64 {
	res, err := m.http.Get(m.nodes[node].HTTP + "/metrics")
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			f, _ := strconv.ParseFloat(strings.TrimSpace(v), 64)
			return f
		}
	}
	return 0
}

// cpuMicros is the user and system time of a process, in microseconds.
func cpuMicros(pid int) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	const hz = 100 // USER_HZ on every Linux architecture that Go supports
	return (user + system) / hz * 1e6
}

// idleMemory is the resident size of each node after a while of nothing.
func (m *mesh) idleMemory(after time.Duration) (string, error) {
	time.Sleep(after)
	return m.memory()
}

// memory is the resident size of each node.
func (m *mesh) memory() (string, error) {
	var out []string
	for _, n := range m.nodes {
		b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(n.PID), "status"))
		if err != nil {
			return "", err
		}
		for l := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(l, "VmRSS:"); ok {
				kb, _ := strconv.ParseFloat(strings.Fields(v)[0], 64)
				out = append(out, fmt.Sprintf("%.0f MB", kb/1000))
			}
		}
	}
	return strings.Join(out, ", "), nil
}

// failover kills the leader again and again and measures how long no write is accepted.
func (m *mesh) failover(ctx context.Context, kills int, l *workload) error {
	var gaps []time.Duration
	for range kills {
		leader, err := m.leader(ctx)
		if err != nil {
			return err
		}
		name := m.nodes[leader].Name
		ask := []int{(leader + 1) % 3, (leader + 2) % 3}
		if _, err := m.testnet(ctx, "kill", name); err != nil {
			return err
		}
		killed := time.Now()
		for i := 0; ; i++ {
			try, cancel := context.WithTimeout(ctx, 5*time.Second)
			err := m.call(try, ask[i%2], "POST", "/api/companies/"+l.company+"/goals", "", "",
				map[string]any{"title": fmt.Sprint("still alive ", i)}, nil)
			cancel()
			if err == nil {
				break
			}
			if time.Since(killed) > time.Minute {
				return fmt.Errorf("no write accepted a minute after %s was killed: %w", name, err)
			}
			time.Sleep(5 * time.Millisecond)
		}
		gaps = append(gaps, time.Since(killed))
		if _, err := m.testnet(ctx, "start", name); err != nil {
			return err
		}
		time.Sleep(3 * time.Second)
	}
	rowDurations("leader killed: writes accepted again", gaps, "≤ 3 s worst")
	return m.status(ctx)
}

func rowDurations(name string, d []time.Duration, want string) {
	if len(d) == 0 {
		return
	}
	slices.Sort(d)
	row(name, fmt.Sprintf("median %s, worst of %d %s", d[len(d)/2].Round(time.Millisecond), len(d),
		d[len(d)-1].Round(time.Millisecond)), want)
}

// states is how each member looks from a node: alive, suspect, dead, left.
func (m *mesh) states(ctx context.Context, node int) (map[string]string, error) {
	var s []struct{ Name, Status string }
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := m.call(ctx, node, "GET", "/api/v1/mesh/members?read=stale", "", "", nil, &s); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, r := range s {
		out[r.Name] = r.Status
	}
	return out, nil
}

// deaths kills followers and measures until both others say that it is dead.
func (m *mesh) deaths(ctx context.Context, kills int) error {
	var took []time.Duration
	for range kills {
		leader, err := m.leader(ctx)
		if err != nil {
			return err
		}
		victim := (leader + 1) % 3
		name := m.nodes[victim].Name
		if _, err := m.testnet(ctx, "kill", name); err != nil {
			return err
		}
		killed := time.Now()
		for _, watcher := range []int{leader, (leader + 2) % 3} {
			for {
				s, err := m.states(ctx, watcher)
				if err == nil && s[name] != "alive" && s[name] != "suspect" {
					break
				}
				if time.Since(killed) > time.Minute {
					return fmt.Errorf("%s does not say that %s is dead: %v %v", m.nodes[watcher].Name, name, s, err)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		took = append(took, time.Since(killed))
		if _, err := m.testnet(ctx, "start", name); err != nil {
			return err
		}
		time.Sleep(3 * time.Second)
	}
	rowDurations("dead node declared by both others", took, "≤ 4 s worst")
	return m.status(ctx)
}

// falseDeaths watches that nobody is declared dead while two hogs a core eat the CPU.
func (m *mesh) falseDeaths(ctx context.Context, watch time.Duration) error {
	before := 0.0
	for i := range m.nodes {
		before += m.metric(i, "selvage_discovery_failed_total")
	}
	stop := hogs(2)
	defer stop()
	time.Sleep(watch)
	after := 0.0
	for i := range m.nodes {
		after += m.metric(i, "selvage_discovery_failed_total")
	}
	row(fmt.Sprintf("live nodes declared dead in %s, 2 hogs a core", watch), fmt.Sprintf("%.0f", after-before), "0")
	return nil
}

// profileNode takes a profile of a node's CPU.
func (m *mesh) profileNode(ctx context.Context, node int, to string) error {
	return m.fetchProfile(ctx, node, fmt.Sprintf("profile?seconds=%d", int(profileLength.Seconds())), to)
}

// fetchProfile takes one profile; the node's log says where.
func (m *mesh) fetchProfile(ctx context.Context, node int, what, to string) error {
	log, err := os.ReadFile(filepath.Join(m.dir, m.nodes[node].Name+".log"))
	if err != nil {
		return err
	}
	at := bytes.LastIndex(log, []byte(`"url":"http://`))
	if at < 0 {
		return errors.New("the node serves no profiles")
	}
	url, _, _ := strings.Cut(string(log[at+len(`"url":"`):]), `"`)
	req, err := http.NewRequestWithContext(ctx, "GET", url+what, nil)
	if err != nil {
		return err
	}
	res, err := m.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}
