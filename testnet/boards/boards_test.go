package boards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/testnet"
)

// The race: racers agents, each with its own key and live run, want one issue,
// rounds times.
const (
	racers = 50
	rounds = 4
	// atOnce is how many agents are made at a time: it is the race that is tried.
	atOnce = 9
	// patience is what an emulated node may take for one answer.
	patience = 90 * time.Second
	// startWithin is what all runs together may take to begin, on a busy machine.
	startWithin = 4 * time.Minute
	// invokedAgain is how many runs in all may end before the race and be invoked
	// again: an emulated node on a busy machine may lose its lease, and all its runs.
	invokedAgain = 2 * racers
)

// armMemory is the memory, in MB, that an idle 32-bit node may take. It was 60 before the
// language of the rules of governance (CEL) came.
const armMemory = 64

// A board is a kind of machine that is emulated.
type board struct {
	name string
	env  []string // for the compiler
	qemu []string // names of the emulator
}

var boards = []board{
	{"arm64", []string{"GOARCH=arm64"}, []string{"qemu-aarch64-static", "qemu-aarch64"}},
	{"armv7", []string{"GOARCH=arm", "GOARM=7"}, []string{"qemu-arm-static", "qemu-arm"}},
}

// build makes the program for a machine.
func build(t *testing.T, to string, env ...string) {
	t.Helper()
	began := time.Now()
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", to, "../../cmd/node")
	// The compiler collects its garbage less often, which saves a fifth of its time.
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOGC=400"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build with %v: %v\n%s", env, err, out)
	}
	t.Logf("built with %v in %s", env, time.Since(began).Round(time.Second))
}

// emulated writes a script that runs the build of a board as if this machine were
// one, or skips the test where there is no emulator.
func (b board) emulated(t *testing.T, dir string) (script, program string) {
	t.Helper()
	qemu := ""
	for _, name := range b.qemu {
		if path, err := exec.LookPath(name); err == nil && qemu == "" {
			qemu = path
		}
	}
	if qemu == "" {
		t.Skipf("there is no %s here: install qemu-user-static", b.qemu[0])
	}
	program, script = filepath.Join(dir, "selvage-"+b.name), filepath.Join(dir, b.name)
	build(t, program, b.env...)
	if err := os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\nexec %s %s \"$@\"\n", qemu, program), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(script, "--version").CombinedOutput(); err != nil {
		t.Fatalf("the build for %s does not start: %v\n%s", b.name, err, out)
	}
	return script, program
}

// TestBoards makes a mesh of three nodes of each kind of board and lets agents race
// for issues on it. A node of it then goes on as a build for this machine, on the
// same data: what all of them have applied has one digest, whatever the processor.
func TestBoards(t *testing.T) {
	if testing.Short() {
		t.Skip("emulated boards take a minute")
	}
	dir := t.TempDir()
	native := filepath.Join(dir, "selvage")
	scripts, programs := map[string]string{}, map[string]string{}
	for _, b := range boards { // one after the other: they share the machine's memory
		t.Run("build "+b.name, func(t *testing.T) { scripts[b.name], programs[b.name] = b.emulated(t, dir) })
	}
	if len(scripts) == 0 {
		return
	}
	build(t, native)
	// Agents that are called and answer at the end: their runs are live until then,
	// and need no program that this machine can not start.
	over := make(chan struct{})
	agents := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(agents.Close)
	t.Cleanup(func() { close(over) })
	var racing sync.Mutex
	t.Run("meshes", func(t *testing.T) {
		for _, b := range boards {
			if scripts[b.name] != "" {
				t.Run(b.name, func(t *testing.T) {
					t.Parallel() // they mostly wait for each other
					m := start(t, scripts[b.name])
					m.memory(programs[b.name], b.name)
					racing.Lock() // one race has both cores, while the other mesh rests
					defer racing.Unlock()
					m.race(agents.URL)
					m.moveTo(native)
				})
			}
		}
	})
}

// A mesh is three emulated nodes.
type mesh struct {
	t *testing.T
	*testnet.Processes
	dir string
}

func start(t *testing.T, script string) *mesh {
	t.Helper()
	began, dir := time.Now(), t.TempDir()
	port, err := testnet.FreePorts(6)
	if err != nil {
		t.Fatal(err)
	}
	p, err := testnet.Up(t.Context(), testnet.Options{Dir: dir, Bin: script, N: 3, HTTPPort: port, MeshPort: port + 3,
		Log:  io.Discard,
		Args: []string{"--mdns", "off", "--size", "small", "--slots", strconv.Itoa(racers), "--http-agents", "127.0.0.0/8"}})
	t.Cleanup(func() { p.End(t) })
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("three nodes vote after %s", time.Since(began).Round(time.Millisecond))
	return &mesh{t, p, dir}
}

// ask makes a call; an answer that says no is its status, and an error with its text.
func (m *mesh) ask(on int, method, path string, in, out any, header ...string) (int, error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	return m.Nodes[on].Call(ctx, method, path, in, out, header...)
}

// call makes a call; an answer that says no is its status.
func (m *mesh) call(on int, method, path string, in, out any, header ...string) (int, error) {
	status, err := m.ask(on, method, path, in, out, header...)
	if status != 0 && status/100 != 2 {
		err = nil
	}
	return status, err
}

// again makes a call until a node takes it: an emulated mesh may be without a
// leader for a moment.
func (m *mesh) again(on int, method, path string, in, out any, header ...string) error {
	key := fmt.Sprint(method, path, on, time.Now().UnixNano())
	var status int
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if status, err = m.ask(on, method, path, in, out, append(header, "Idempotency-Key", key)...); err == nil &&
			status/100 == 2 {
			return nil
		}
		if status/100 == 4 && status != http.StatusTooManyRequests {
			break
		}
	}
	return fmt.Errorf("%s %s of n%d: %w", method, path, on+1, err)
}

func (m *mesh) must(on int, method, path string, in, out any) {
	m.t.Helper()
	if err := m.again(on, method, path, in, out); err != nil {
		m.t.Fatal(err)
	}
}

type racer struct{ id, token, run string }

// race lets agents check out one issue at once, again and again: one gets it.
func (m *mesh) race(url string) {
	t := m.t
	var row struct {
		ID            ledger.CompanyID
		Token, Status string
	}
	m.must(0, "POST", "/api/companies", map[string]any{"name": "Acme"}, &row)
	company := row.ID
	began := time.Now()
	agents, errs := make([]racer, racers), make([]error, racers)
	var wg sync.WaitGroup
	turn := make(chan struct{}, atOnce)
	for i := range agents {
		wg.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			var row struct{ ID, Token, Status string }
			on, a := i%3, &agents[i]
			errs[i] = m.again(on, "POST", "/api/companies/"+string(company)+"/agents",
				map[string]any{"name": fmt.Sprint("Agent ", i+1), "role": "engineer",
					"adapterType": "http", "adapterConfig": map[string]any{"url": url, "timeoutMs": 600_000}}, &row)
			a.id = row.ID
			if errs[i] == nil {
				errs[i] = m.again(on, "POST", "/api/agents/"+a.id+"/keys", map[string]any{"name": "race"}, &row)
				a.token = row.Token
			}
			if errs[i] == nil {
				errs[i] = m.again(on, "POST", "/api/agents/"+a.id+"/heartbeat/invoke", map[string]any{}, &row)
				a.run = row.ID
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	m.live(company, agents)
	t.Logf("%d agents have live runs after %s", racers, time.Since(began).Round(time.Millisecond))
	began = time.Now()
	for round := range rounds {
		m.must(round%3, "POST", "/api/companies/"+string(company)+"/issues",
			map[string]any{"title": fmt.Sprint("Race ", round), "status": "todo"}, &row)
		issue, gate := row.ID, make(chan struct{})
		status := make([]int, racers)
		for i, a := range agents {
			wg.Go(func() {
				<-gate
				status[i], errs[i] = m.call((i+round)%3, "POST", "/api/issues/"+string(issue)+"/checkout",
					map[string]any{"agentId": a.id, "expectedStatuses": []string{"todo", "backlog", "blocked"}}, nil,
					"Authorization", "Bearer "+a.token, "X-Paperclip-Run-Id", a.run)
			})
		}
		close(gate)
		wg.Wait()
		winner := ""
		for i, s := range status {
			switch {
			case errs[i] != nil:
				t.Fatalf("round %d: agent %d: %v", round, i+1, errs[i])
			case s == http.StatusOK && winner != "":
				t.Fatalf("round %d: two agents got the issue", round)
			case s == http.StatusOK:
				winner = agents[i].id
			case s != http.StatusConflict:
				t.Fatalf("round %d: agent %d got HTTP %d, want 200 or 409", round, i+1, s)
			}
		}
		for on := range m.Nodes {
			var seen struct{ AssigneeAgentID, Status string }
			if err := m.again(on, "GET", "/api/issues/"+string(issue), nil, &seen, "X-Selvage-Read", "strong"); err != nil ||
				seen.AssigneeAgentID != winner || winner == "" {
				t.Fatalf("round %d: %q won, n%d says %+v %v", round, winner, on+1, seen, err)
			}
		}
	}
	t.Logf("%d rounds of %d in %s", rounds, racers, time.Since(began).Round(time.Millisecond))
	t.Log("all nodes have", m.heads())
}

// A run is what a node tells of one.
type run struct {
	ID, AgentID, Status, Error, ErrorCode, NodeID string
	Waiting                                       *struct{ Text string }
}

// live waits until the runs of all agents are at work, as one node tells: fifty who
// ask for their own run again and again keep an emulated mesh from all else. A run that
// ended is invoked again, a few times in all, and told.
func (m *mesh) live(company ledger.CompanyID, agents []racer) {
	m.t.Helper()
	var rows, not []run
	again := 0
	for end := time.Now().Add(startWithin); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		if status, err := m.call(0, "GET", "/api/companies/"+string(company)+"/heartbeat-runs?limit=200", nil,
			&rows); err != nil || status/100 != 2 {
			continue
		}
		at := 0
		not = not[:0]
		for i := range agents {
			a := &agents[i]
			n := slices.IndexFunc(rows, func(r run) bool { return r.ID == a.run })
			switch {
			case n < 0:
				not = append(not, run{ID: a.run, AgentID: a.id, Status: "not told"})
			case rows[n].Status == "running":
				at++
			case rows[n].Status == "queued":
				not = append(not, rows[n])
			case again == invokedAgain:
				m.t.Fatalf("run %+v ended, and %d others before", rows[n], again)
			default:
				again++
				m.t.Logf("run %+v ended and is invoked again", rows[n])
				var next struct{ ID string }
				m.must(i%3, "POST", "/api/agents/"+a.id+"/heartbeat/invoke", map[string]any{}, &next)
				a.run = next.ID
			}
		}
		if at == len(agents) {
			return
		}
	}
	m.t.Fatalf("%d runs are not at work after %s: %+v", len(not), startWithin, not)
}

// heads waits until all nodes have applied the same, and returns what it is.
func (m *mesh) heads() string {
	m.t.Helper()
	var seen [3]string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		for on := range m.Nodes {
			var at json.RawMessage
			if _, err := m.call(on, "GET", "/api/v1/mesh/ledger", nil, &at); err != nil {
				at = json.RawMessage(err.Error())
			}
			seen[on] = string(at)
		}
		if seen[0] == seen[1] && seen[1] == seen[2] && strings.Contains(seen[0], "hash") {
			return seen[0]
		}
	}
	m.t.Fatalf("the nodes stay different: %q", seen)
	return ""
}

// memory tells what the nodes take. The emulator's own memory is not theirs: what
// counts is what Go has from the system and has not given back, and the pages of
// the program that lie in memory.
func (m *mesh) memory(program, arch string) {
	for _, n := range m.Nodes {
		res, err := http.Get(n.HTTP + "/metrics")
		if err != nil {
			m.t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			m.t.Fatal(err)
		}
		figure := map[string]float64{}
		for line := range strings.Lines(string(b)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				figure[name] = v
			}
		}
		own := figure["go_memstats_sys_bytes"] - figure["go_memstats_heap_released_bytes"]
		text := residentPages(m.t, n.PID, program)
		all := (own + text) / 1e6
		m.t.Logf("%s idle: %.1f MB, of which Go's heap in use %.0f MB, Go's rest %.0f MB, pages of the program %.0f MB",
			n.Name, all,
			figure["go_memstats_heap_inuse_bytes"]/1e6, (own-figure["go_memstats_heap_inuse_bytes"])/1e6, text/1e6)
		if own == 0 || text == 0 {
			m.t.Errorf("%s: its memory can not be told", n.Name)
		}
		if arch == "armv7" && all > armMemory {
			m.t.Errorf("%s takes %.0f MB, at most %d", n.Name, all, armMemory)
		}
	}
}

// residentPages is how much of a file a process has in memory, in bytes.
func residentPages(t *testing.T, pid int, file string) (sum float64) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		t.Fatal(err)
	}
	ours := false
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 5 && strings.Contains(f[0], "-"):
			ours = f[len(f)-1] == file
		case ours && len(f) == 3 && f[0] == "Rss:":
			kb, _ := strconv.ParseFloat(f[1], 64)
			sum += kb * 1024
		}
	}
	return sum
}

// moveTo puts the disk of a node into a machine like this one.
func (m *mesh) moveTo(program string) {
	t := m.t
	if err := m.Kill("n3"); err != nil {
		t.Fatal(err)
	}
	m.Bin = program
	if err := m.Start(t.Context(), "n3", "--mdns", "off"); err != nil {
		t.Fatal(err)
	}
	m.must(2, "POST", "/api/companies", map[string]any{"name": "Umbra"}, nil)
	t.Log("of two kinds of processors:", m.heads())
}
