package testnet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/kit"
	"github.com/selvage-mesh/selvage/ledger"
)

var selvage string // path of the binary under test, built once

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "selvage-testnet-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	selvage = filepath.Join(dir, "selvage")
	if out, err := exec.Command("go", "build", "-o", selvage, "../cmd/node").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func freePorts(t *testing.T, n int) int {
	t.Helper()
	base, err := FreePorts(n)
	if err != nil {
		t.Fatal(err)
	}
	return base
}

// processes starts a mesh of three real processes and ends it with the test, beside
// others: they wait for elections and leases more than they compute.
func processes(t *testing.T, nodeArgs ...string) *Processes {
	t.Helper()
	if testing.Short() {
		t.Skip("real processes are left out of -short")
	}
	t.Parallel()
	return started(t, nodeArgs...)
}

// started starts them where t has the machine for itself.
func started(t *testing.T, nodeArgs ...string) *Processes {
	t.Helper()
	port := freePorts(t, 6)
	dir := t.TempDir()
	p, err := Up(t.Context(), Options{Dir: dir, Bin: selvage, N: 3, HTTPPort: port, MeshPort: port + 3, Args: nodeArgs,
		Log: io.Discard})
	t.Cleanup(func() { p.End(t) })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

type answer struct {
	ID, Token, Status, Identifier string
}

// must makes a call through any node that answers, for at most a minute.
func must(t *testing.T, p *Processes, method, path string, in, out any, header ...string) {
	t.Helper()
	key := fmt.Sprint(t.Name(), time.Now().UnixNano())
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		for _, n := range p.Nodes {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			var status int
			status, err = n.Call(ctx, method, path, in, out, append(header, "Idempotency-Key", key)...)
			cancel()
			if err == nil {
				return
			}
			if status >= 400 && status < 500 {
				t.Fatalf("%s %s: %v", method, path, err)
			}
		}
	}
	t.Fatalf("%s %s: %v", method, path, err)
}

func leaderOf(t *testing.T, p *Processes) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		for _, n := range p.Status(t.Context()) {
			if n.Role == "leader" && n.Alive {
				return n.Name
			}
		}
	}
	t.Fatal("no leader for a minute")
	return ""
}

// heads waits until all nodes have applied the same and returns their common head.
func heads(t *testing.T, p *Processes) string {
	t.Helper()
	var seen []string
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		seen = nil
		for _, n := range p.Nodes {
			var r struct {
				Height uint64
				Hash   string
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			_, err := n.Call(ctx, "GET", "/api/v1/mesh/ledger", nil, &r)
			cancel()
			if err != nil {
				seen = append(seen, err.Error())
				continue
			}
			seen = append(seen, fmt.Sprint(r.Height, " ", r.Hash))
		}
		if seen[0] == seen[1] && seen[1] == seen[2] && !strings.Contains(seen[0], "HTTP") {
			return seen[0]
		}
	}
	t.Fatalf("heads stay different: %v", seen)
	return ""
}

// load writes comments through all nodes until stop, and remembers which were
// acknowledged. Each carries its own number, and a retry its Idempotency-Key.
// A client pauses between comments, or they would take all of a quiet machine.
type load struct {
	mu    sync.Mutex
	acked map[string]bool
	wg    sync.WaitGroup
	stop  atomic.Bool
}

func startLoad(t *testing.T, p *Processes, issue string, clients int) *load {
	l := &load{acked: map[string]bool{}}
	for c := range clients {
		l.wg.Go(func() {
			for i := 0; !l.stop.Load(); i++ {
				body := fmt.Sprintf("comment %d of client %d", i, c)
				for try := c; !l.stop.Load(); try++ {
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					_, err := p.Nodes[try%len(p.Nodes)].Call(ctx, "POST", "/api/issues/"+issue+"/comments",
						map[string]any{"body": body}, nil, "Idempotency-Key", body)
					cancel()
					if err == nil {
						l.mu.Lock()
						l.acked[body] = true
						l.mu.Unlock()
						break
					}
					time.Sleep(20 * time.Millisecond)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	return l
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// end stops the clients and checks that every acknowledged comment is there
// exactly once, on every node.
func (l *load) end(t *testing.T, p *Processes, issue string) {
	t.Helper()
	l.stop.Store(true)
	l.wg.Wait()
	heads(t, p)
	for _, n := range p.Nodes {
		times := map[string]int{}
		for after := ""; ; {
			var page []struct{ ID, Body string }
			path := "/api/issues/" + issue + "/comments?order=asc&limit=500"
			if after != "" {
				path += "&after=" + after
			}
			if _, err := n.Call(t.Context(), "GET", path, nil, &page); err != nil {
				t.Fatalf("comments on %s: %v", n.Name, err)
			}
			for _, c := range page {
				times[c.Body]++
				after = c.ID
			}
			if len(page) == 0 {
				break
			}
		}
		for body := range l.acked {
			if times[body] != 1 {
				t.Errorf("%s has %q %d times, want once", n.Name, body, times[body])
			}
		}
	}
	t.Logf("%d acknowledged comments are on every node once", len(l.acked))
}

func newIssue(t *testing.T, p *Processes) (company ledger.CompanyID, issue string) {
	t.Helper()
	var a answer
	must(t, p, "POST", "/api/companies", map[string]any{"name": "Acme"}, &a)
	company = ledger.CompanyID(a.ID)
	must(t, p, "POST", "/api/companies/"+string(company)+"/issues", map[string]any{"title": "Talk here",
		"status": "todo"}, &a)
	return company, a.ID
}

// within bounds a wait for what real processes do.
func within(most time.Duration) kit.Wait { return kit.Wait{Most: most, Every: 50 * time.Millisecond} }

// The leader, then a follower, is killed without warning while clients write
// through every node; both come back and nothing acknowledged is lost or doubled.
func TestKilledNodesLoseNothing(t *testing.T) {
	p := processes(t)
	_, issue := newIssue(t, p)
	l := startLoad(t, p, issue, 6)
	within(time.Minute).Until(t, "there are 100 comments", func() bool { return l.count() > 100 })
	for range 2 {
		leader := leaderOf(t, p)
		before := l.count()
		if err := p.Kill(leader); err != nil {
			t.Fatal(err)
		}
		within(2*time.Minute).Until(t, "clients write after the leader's death",
			func() bool { return l.count() > before+100 })
		if err := p.Start(t.Context(), leader); err != nil {
			t.Fatal(err)
		}
		var follower string
		now := leaderOf(t, p)
		for _, n := range p.Nodes {
			if n.Name != now {
				follower = n.Name
			}
		}
		before = l.count()
		if err := p.Kill(follower); err != nil {
			t.Fatal(err)
		}
		within(2*time.Minute).Until(t, "clients write after a follower's death",
			func() bool { return l.count() > before+100 })
		if err := p.Start(t.Context(), follower); err != nil {
			t.Fatal(err)
		}
	}
	l.end(t, p, issue)
}

// A daemon that is stopped (SIGSTOP) while it runs a child loses its authority:
// the child is dead before its issue's lock is given to anybody else.
func TestStoppedDaemonsChildDiesBeforeItsLockIsFree(t *testing.T) {
	p := processes(t)
	company, _ := newIssue(t, p)
	beats := t.TempDir() // a file for each run: a retry on another node beats too
	var agent, issue, run answer
	must(t, p, "POST", "/api/companies/"+string(company)+"/agents", map[string]any{
		"name": "Beater", "role": "engineer", "adapterType": "process",
		"adapterConfig": map[string]any{"command": "/bin/sh",
			"args": []string{"-c",
				`f=$BEATS/$PAPERCLIP_RUN_ID; while :; do date +%s%N > $f.new; mv $f.new $f; sleep 0.05; done`},
			"env": map[string]any{"BEATS": beats}},
	}, &agent)
	must(t, p, "POST", "/api/agents/"+agent.ID+"/heartbeat/invoke", map[string]any{}, &run)
	lastBeat := func() time.Time {
		b, err := os.ReadFile(filepath.Join(beats, run.ID))
		if err != nil {
			return time.Time{}
		}
		ns, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		return time.Unix(0, ns)
	}
	within(time.Minute).Until(t, "the child has beaten", func() bool { return !lastBeat().IsZero() })

	must(t, p, "POST", "/api/companies/"+string(company)+"/issues", map[string]any{"title": "Held",
		"status": "todo"}, &issue)
	var key answer
	must(t, p, "POST", "/api/agents/"+agent.ID+"/keys", map[string]any{"name": "test"}, &key)
	must(t, p, "POST", "/api/issues/"+issue.ID+"/checkout", map[string]any{"agentId": agent.ID,
		"expectedStatuses": []string{"todo"}}, nil,
		"Authorization", "Bearer "+key.Token, "X-Paperclip-Run-Id", run.ID)

	var row struct{ NodeID, Status, ErrorCode string }
	must(t, p, "GET", "/api/heartbeat-runs/"+run.ID, nil, &row)
	var victim string
	for _, n := range p.Status(t.Context()) {
		if n.ID == row.NodeID {
			victim = n.Name
		}
	}
	if victim == "" {
		t.Fatalf("no node has ID %q of run %+v", row.NodeID, row)
	}
	if err := p.Pause(victim); err != nil {
		t.Fatal(err)
	}
	defer p.Resume(victim)
	alive := *p
	alive.Nodes = nil
	for _, n := range p.Nodes {
		if n.Name != victim {
			alive.Nodes = append(alive.Nodes, n)
		}
	}
	var freed time.Time
	within(60*time.Second).Until(t, "the run is lost", func() bool {
		var held struct{ CheckoutRunID *string }
		must(t, &alive, "GET", "/api/issues/"+issue.ID, nil, &held)
		freed = time.Now()
		return held.CheckoutRunID == nil
	})
	died := lastBeat()
	if died.After(freed) {
		t.Errorf("the child beat at %s, after its lock was seen free at %s", died, freed)
	}
	time.Sleep(time.Second)
	if late := lastBeat(); late.After(died) {
		t.Errorf("the child still beats at %s; its lock was free at %s", late, freed)
	}
	must(t, &alive, "GET", "/api/heartbeat-runs/"+run.ID, nil, &row)
	if row.Status != "interrupted" || row.ErrorCode != "node_lost" {
		t.Errorf("run is %s (%s), want interrupted (node_lost)", row.Status, row.ErrorCode)
	}
	t.Logf("last beat %s before the lock was seen free", freed.Sub(died).Round(time.Millisecond))

	// It says why, when it is back.
	if err := p.Resume(victim); err != nil {
		t.Fatal(err)
	}
	var lost struct{ Error string }
	within(time.Minute).Until(t, "the node says why", func() bool {
		must(t, p, "GET", "/api/heartbeat-runs/"+run.ID, nil, &lost)
		return strings.Contains(lost.Error, "was lost: this node could not run for ")
	})
	t.Log(lost.Error)
}

// A leader whose disk does not finish a sync falls silent, and another node
// accepts writes: within ten seconds, as a test of consensus shows in virtual time,
// where the machine has time.
func TestStalledDiskLosesLeadership(t *testing.T) {
	p := processes(t)
	company, _ := newIssue(t, p)
	leader := leaderOf(t, p)
	if err := p.Stall(leader); err != nil {
		t.Fatal(err)
	}
	stalled := time.Now()
	defer p.Unstall()
	for i := 0; ; i++ {
		n := p.Nodes[i%3]
		if n.Name == leader {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := n.Call(ctx, "POST", "/api/companies/"+string(company)+"/goals",
			map[string]any{"title": fmt.Sprint("goal ", i)}, nil)
		cancel()
		if err == nil {
			break
		}
		if time.Since(stalled) > 2*time.Minute {
			t.Fatalf("no write accepted two minutes after the leader's disk stalled: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("writes were accepted again %s after the leader's disk stalled", time.Since(stalled).Round(time.Millisecond))
}

// A second process on the same data directory is refused with a clear message.
func TestSecondProcessIsRefused(t *testing.T) {
	p := processes(t)
	out, err := exec.Command(selvage, "up", "--dir", p.Nodes[0].Dir, "--http", "127.0.0.1:0", "--mesh", "127.0.0.1:0").
		CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("a second process ended with %v, want exit status 1\n%s", err, out)
	}
	if !bytes.Contains(out, []byte("in use")) {
		t.Errorf("the message does not say that the directory is in use:\n%s", out)
	}
}

// All nodes change their peer ports while they are down, and find each other again.
func TestAllNodesMoveWhileDown(t *testing.T) {
	p := processes(t)
	company, _ := newIssue(t, p)
	if err := p.Down(); err != nil {
		t.Fatal(err)
	}
	port := freePorts(t, 3)
	for i := range p.Nodes {
		p.Nodes[i].Mesh = net.JoinHostPort("127.0.0.1", strconv.Itoa(port+i))
	}
	if err := p.save(); err != nil {
		t.Fatal(err)
	}
	// They know only the ports of before; the operator tells one seed.
	if _, err := Up(t.Context(), Options{Dir: p.dir, Bin: selvage, N: 3, Args: []string{"--seed", p.Nodes[0].Mesh},
		Log: io.Discard}); err != nil {
		t.Fatal(err)
	}
	q, err := Load(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	*p = *q
	must(t, p, "POST", "/api/companies/"+string(company)+"/goals", map[string]any{"title": "after the move"}, nil)
	heads(t, p)
}

// A minority of a partition refuses to write, the majority goes on, and after
// healing all agree.
func TestPartitionedMinorityAcceptsNothing(t *testing.T) {
	p := processes(t)
	company, _ := newIssue(t, p)
	leader := leaderOf(t, p)
	if err := p.Partition([][]string{{leader}}); err != nil {
		t.Fatal(err)
	}
	var minority Node
	majority := *p
	majority.Nodes = nil
	for _, n := range p.Nodes {
		if n.Name == leader {
			minority = n
		} else {
			majority.Nodes = append(majority.Nodes, n)
		}
	}
	must(t, &majority, "POST", "/api/companies/"+string(company)+"/goals", map[string]any{"title": "majority"}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	status, err := minority.Call(ctx, "POST", "/api/companies/"+string(company)+"/goals",
		map[string]any{"title": "minority"}, nil)
	cancel()
	if err == nil {
		t.Error("the cut-off leader acknowledged a write")
	} else if status/100 == 4 {
		t.Errorf("the cut-off leader answered %d, want 503 or silence", status)
	}
	if err := p.Heal(); err != nil {
		t.Fatal(err)
	}
	heads(t, p)
}

// A node whose disk is full refuses writes with a clear error, keeps reads, and
// recovers when there is space again.
func TestFullDiskRefusesWritesAndRecovers(t *testing.T) {
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small file system of its own")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted here: %v %s", err, out)
	}
	port := freePorts(t, 2)
	p, err := Up(t.Context(), Options{Dir: dir, Bin: selvage, N: 1, HTTPPort: port, MeshPort: port + 1, Log: io.Discard})
	t.Cleanup(func() {
		if p != nil {
			if err := p.Down(); err != nil {
				t.Error("down:", err)
			}
		}
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	company, issue := newIssue(t, p)
	fill := filepath.Join(dir, "fill")
	f, err := os.Create(fill)
	if err != nil {
		t.Fatal(err)
	}
	chunk := make([]byte, 1<<20)
	for err == nil {
		_, err = f.Write(chunk)
	}
	f.Close()
	write := func() (int, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		return p.Nodes[0].Call(ctx, "POST", "/api/companies/"+string(company)+"/goals",
			map[string]any{"title": fmt.Sprint("goal ", time.Now())}, nil)
	}
	var status int
	within(time.Minute).Until(t, "a refusal names the disk", func() bool {
		status, err = write()
		return status == http.StatusServiceUnavailable && strings.Contains(err.Error(), "isk")
	})
	var row answer
	if _, err := p.Nodes[0].Call(t.Context(), "GET", "/api/issues/"+issue, nil, &row, "X-Selvage-Read",
		"default"); err != nil || row.ID != issue {
		t.Errorf("a read on a full disk gives %+v, %v", row, err)
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	within(60*time.Second).Until(t, "writes work after space was made", func() bool {
		_, err := write()
		return err == nil
	})
}
