// Command sizing measures what docs/sizing.md says: memory and disk of the nodes of a
// mesh on this machine, before and after agents, issues and runs were made.
//
//	make build && go run ./scripts/sizing [-agents 200] [-issues 5000] [-runs 500]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/testnet"
)

const (
	// clients send requests at once.
	clients = 16
	// rest is how long the mesh is left alone before a line is measured: a quiet node
	// gives memory back within 30 s.
	rest = 40 * time.Second
	// patience bounds each request, and the wait for all runs to end.
	patience = 30 * time.Second
	runsEnd  = 30 * time.Minute
)

func main() {
	agents := flag.Int("agents", 200, "agents to hire")
	issues := flag.Int("issues", 5000, "issues to create")
	runs := flag.Int("runs", 500, "runs to carry out, each with 4 KiB of output")
	bin := flag.String("bin", "bin/selvage", "the program")
	flag.Parse()
	if err := measure(context.Background(), *bin, *agents, *issues, *runs); err != nil {
		fmt.Fprintln(os.Stderr, "sizing:", err)
		os.Exit(1)
	}
}

// A mesh is what is measured.
type mesh struct {
	*testnet.Processes
	company string
	agents  []string
}

func measure(ctx context.Context, bin string, agents, issues, runs int) (err error) {
	dir, err := os.MkdirTemp("", "sizing-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if bin, err = filepath.Abs(bin); err != nil {
		return err
	}
	port, err := testnet.FreePorts(6)
	if err != nil {
		return err
	}
	p, err := testnet.Up(ctx, testnet.Options{Dir: dir, Bin: bin, N: 3, HTTPPort: port, MeshPort: port + 3, Log: os.Stderr,
		Args: []string{"--log-level=warn"}})
	if p != nil {
		defer func() {
			if down := p.Down(); err == nil {
				err = down
			}
		}()
	}
	if err != nil {
		return err
	}
	m := &mesh{Processes: p}
	fmt.Println("| after | memory of a node | store of a node | of it write-ahead log | files of a node | more for each |")
	fmt.Println("|---|---|---|---|---|---|")
	before, err := m.line("the start of three nodes", size{}, 0)
	if err != nil {
		return err
	}
	var row struct{ ID string }
	if _, err := p.Nodes[0].Call(ctx, "POST", "/api/companies", map[string]any{"name": "Acme"}, &row); err != nil {
		return err
	}
	m.company = row.ID
	for _, step := range []struct {
		what string
		n    int
		do   func(context.Context, int) error
	}{{"agents", agents, m.hire}, {"issues", issues, m.issue}, {"runs", runs, m.run}} {
		began := time.Now()
		if err := each(step.n, func(i int) error { return step.do(ctx, i) }); err != nil {
			return err
		}
		if step.what == "runs" {
			if err := m.ended(runs); err != nil {
				return err
			}
		}
		fmt.Fprintf(os.Stderr, "%d %s took %s\n", step.n, step.what, time.Since(began).Round(time.Second))
		if before, err = m.line(fmt.Sprintf("%d %s", step.n, step.what), before, step.n); err != nil {
			return err
		}
	}
	return nil
}

func (m *mesh) hire(ctx context.Context, i int) error {
	var row struct{ ID string }
	_, err := m.Nodes[i%3].Call(ctx, "POST", "/api/companies/"+m.company+"/agents",
		map[string]any{"name": fmt.Sprint("Agent ", i), "role": "engineer", "adapterType": "process",
			"adapterConfig": map[string]any{"command": "/bin/sh",
				"args": []string{"-c", "head -c 3072 /dev/urandom | base64"}}}, &row)
	turn.Lock()
	defer turn.Unlock()
	m.agents = append(m.agents, row.ID)
	return err
}

func (m *mesh) issue(ctx context.Context, i int) error {
	_, err := m.Nodes[i%3].Call(ctx, "POST", "/api/companies/"+m.company+"/issues",
		map[string]any{"title": fmt.Sprint("Issue ", i),
			"description": strings.Repeat("What is to be done, in a few words. ", 8), "allowDuplicate": true}, nil)
	return err
}

func (m *mesh) run(ctx context.Context, i int) error {
	_, err := m.Nodes[i%3].Call(ctx, "POST", "/api/agents/"+m.agents[i%len(m.agents)]+"/heartbeat/invoke",
		map[string]any{}, nil)
	return err
}

// ended waits until so many runs are over.
func (m *mesh) ended(n int) error {
	for deadline := time.Now().Add(runsEnd); ; time.Sleep(time.Second) {
		all, err := figures(m.Nodes[0])
		if err != nil {
			return err
		}
		over := 0.0
		for name, v := range all {
			if strings.HasPrefix(name, "selvage_runs_ended_total") {
				over += v
			}
		}
		if int(over) >= n {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%v of %d runs are over after %s", over, n, runsEnd)
		}
	}
}

var turn sync.Mutex // guards mesh.agents

// each does n things, clients at a time, and returns the first error.
func each(n int, do func(int) error) error {
	var wg sync.WaitGroup
	todo, failed := make(chan int), make(chan error, clients)
	for range clients {
		wg.Go(func() {
			for i := range todo {
				if err := do(i); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for i := range n {
		todo <- i
	}
	close(todo)
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// A size is what the largest of the nodes takes, in bytes.
type size struct{ memory, store, log, files float64 }

// line lets the mesh rest, measures it, and prints a line of the table.
func (m *mesh) line(after string, before size, n int) (now size, err error) {
	time.Sleep(rest)
	for _, node := range m.Nodes {
		all, err := figures(node)
		if err != nil {
			return now, err
		}
		now.memory = max(now.memory, all["process_resident_memory_bytes"])
		now.store = max(now.store, all["selvage_store_bytes"])
		now.log = max(now.log, all["selvage_store_wal_bytes"])
		now.files = max(now.files, all["selvage_blob_bytes"])
	}
	more := ""
	if n > 0 {
		more = fmt.Sprintf("%.1f KiB of store, %.1f KiB of files", (now.store-before.store)/float64(n)/1024,
			(now.files-before.files)/float64(n)/1024)
	}
	fmt.Printf("| %s | %.0f MiB | %.1f MiB | %.1f MiB | %.1f MiB | %s |\n", after, now.memory/(1<<20), now.store/(1<<20),
		now.log/(1<<20), now.files/(1<<20), more)
	return now, nil
}

// figures reads what a node says at /metrics, by name with labels.
func figures(n testnet.Node) (map[string]float64, error) {
	client := http.Client{Timeout: patience}
	res, err := client.Get(n.HTTP + "/metrics")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(b)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil {
			out[name] = v
		}
	}
	return out, nil
}
