// Command bench measures a mesh of three nodes beside three etcd members on the
// same machine, in one run and alternating, and prints the table of
// docs/benchmarks.md. It is a module of its own, so that the rival's client
// library is no dependency of the product.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Config says what is measured and how long.
type Config struct {
	Bin     string        // the selvage binary
	Dir     string        // work folder, made fresh
	Parts   string        // names of parts; empty: all of them
	Rounds  int           // alternating rounds
	Seconds time.Duration // length of a round
	Clients int           // concurrent clients
	Issues  int           // issues loaded before the parts that need many
	Entries int           // activity entries that the company has in part scale
	State   int64         // bytes of state in part backup
	Kills   int           // leaders killed
	Deaths  int           // followers killed, to see how long the others take to say so
	Quiet   time.Duration // how long to look for false deaths under CPU hogs
	// Starved is how long part starved goes on, with so many Hogs a core and
	// StarvedRuns runs at work.
	Starved           time.Duration
	Hogs, StarvedRuns int
	Runs              int    // runs of part resident, for each size of a node
	Sizes             string // of the nodes in part resident
	Memory            string // steps of part memory; empty: all of them
	Sets              string // of vectors in part memory
	Sentences         int    // that part memory has embedded by a model
	Embed             time.Duration
	Fill              bool          // step mesh of part memory ends when it is filled
	Other             string        // binary that part compare compares with
	Board             time.Duration // how long part board has 50 events a second
	Etcd              bool
	Profile           string // folder for a CPU profile of each node during part checkout; empty: none
}

// A part is some lines of the table.
type part struct {
	name string
	many bool // it needs all of the issues
	etcd bool // it is measured beside etcd
	does string
	run  func(context.Context, *bench) error
}

// parts in their order: what kills nodes comes last.
var parts = []part{
	{"idle", false, false, "size of the program, memory of a node at rest", idle},
	{"agents", false, false, "what 10,000 idle agents cost", agents},
	{"runs", false, false, "how soon a child starts, and whether a node keeps up with 1,000 runs a minute", runs},
	{"resident", false, false, "memory of a node, normal and small, under 12 runs a second and a minute after",
		residentPart},
	{"memory", false, false,
		"what agents remember: the index beside hnswlib, quality, 100,000 memories on three nodes, why", memoryPart},
	{"compare", false, false, "writes of this binary beside those of another, in turns; needs -other", comparePart},
	{"create", true, false, "POST issue", create},
	{"checkout", true, true, "checkout beside etcd's claim", race},
	{"one", true, true, "latencies of one client beside etcd's", one},
	{"reads", true, true, "GET issue, strong and default, beside etcd's get", reads},
	{"lists", false, false, "lists and dashboard", lists},
	{"writes", false, false, "PATCH issue, comments", writes},
	{"costs", false, true, "cost events beside etcd's claim", costs},
	{"mcp", false, false, "an MCP call beside the HTTP call", mcpCalls},
	{"crud", false, false, "1,000 tasks: create, read, update, delete, invoke", crud},
	{"scale", true, false, "reads of a company with 100,000 issues and 1 million activities beside one of 1,000", scale},
	{"backup", false, false, "saving and restoring 1 GB of state beside copying it", backup},
	{"start", false, false, "how soon a node that was killed serves again", starts},
	{"sandbox", false, false, "calls, fuel and memory of sandboxed programs", sandboxPart},
	{"gateway", false, false, "what the model gateway adds to its upstream", gatewayPart},
	{"kernel", false, false, "processes and messages between them, beside nats-server; failover of a process", kernelPart},
	{"board", false, false,
		"the pages in a browser: first load, scrolling, events, memory; what they add to the program", boardPart},
	{"starved", false, false, "runs, leaders and writes of a mesh on an overloaded machine", starved},
	{"failover", false, false, "leaders killed", failover},
	{"deaths", false, false, "followers killed", deaths},
	{"quiet", false, false, "false deaths under CPU hogs", quiet},
}

// bench is a run.
type bench struct {
	Config
	m     *mesh
	load  *workload
	rival *etcd
	fail  context.CancelCauseFunc // ends the run with an error: what is measured from here on would be wrong
}

func main() {
	var c Config
	flag.StringVar(&c.Bin, "bin", "../bin/selvage", "the selvage binary")
	flag.StringVar(&c.Dir, "dir", "", "work folder (default: a temporary one, removed at the end)")
	flag.StringVar(&c.Parts, "parts", "", "the parts to run, separated by spaces (default: all)")
	flag.IntVar(&c.Rounds, "rounds", 5, "alternating rounds")
	flag.DurationVar(&c.Seconds, "round", 5*time.Second, "length of a round")
	flag.IntVar(&c.Clients, "clients", 64, "concurrent clients")
	flag.IntVar(&c.Issues, "issues", 100_000, "issues loaded first")
	flag.IntVar(&c.Entries, "entries", 1_000_000, "activity entries in part scale")
	flag.Int64Var(&c.State, "state", 1e9, "bytes of state in part backup")
	flag.IntVar(&c.Kills, "kills", 20, "leader kills")
	flag.IntVar(&c.Deaths, "deaths", 20, "follower kills")
	flag.DurationVar(&c.Quiet, "quiet", 10*time.Minute, "watch for false deaths under two CPU hogs a core")
	flag.DurationVar(&c.Starved, "starved", 10*time.Minute, "how long part starved goes on")
	flag.IntVar(&c.Hogs, "hogs", 4, "CPU hogs a core in part starved")
	flag.IntVar(&c.StarvedRuns, "starved-runs", 20, "runs at work in part starved")
	flag.IntVar(&c.Runs, "runs", 2600, "runs in part resident, for each size of a node")
	flag.StringVar(&c.Sizes, "sizes", "normal small", "sizes of the nodes in part resident")
	flag.StringVar(&c.Memory, "memory", "",
		"steps of part memory: vectors library quality hybrid mesh idle why (default: all)")
	flag.StringVar(&c.Sets, "sets", "model lexical",
		"vectors in part memory: of a sentence model, and of the program's own")
	flag.IntVar(&c.Sentences, "sentences", 100_000, "sentences that part memory measures with")
	flag.DurationVar(&c.Embed, "embed", 0,
		"how long part memory has sentences embedded by a model; with fewer vectors than sentences it measures "+
			"with those (default: until all are)")
	flag.BoolVar(&c.Fill, "fill", false,
		"step mesh of part memory ends when it is filled; with the same -dir, the next run measures")
	flag.StringVar(&c.Other, "other", "", "another selvage binary, an older one, for part compare")
	flag.DurationVar(&c.Board, "board", 2*time.Minute, "how long part board has 50 events a second")
	flag.BoolVar(&c.Etcd, "etcd", true, "measure etcd beside it")
	flag.StringVar(&c.Profile, "profile", "", "folder for a CPU profile of each node, one for each part")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "Measure three nodes beside three etcd members. Parts:")
		for _, p := range parts {
			fmt.Fprintf(os.Stderr, "  %-10s %s\n", p.name, p.does)
		}
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// chosen returns the parts that names asks for, in their order.
func chosen(names string) ([]part, error) {
	want := strings.FieldsFunc(names, func(r rune) bool { return r == ' ' || r == ',' })
	if len(want) == 0 {
		return parts, nil
	}
	var out []part
	for _, p := range parts {
		if slices.Contains(want, p.name) {
			out = append(out, p)
		}
	}
	for _, name := range want {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return nil, fmt.Errorf("no part is called %q", name)
		}
	}
	return out, nil
}

func run(ctx context.Context, c Config) (err error) {
	todo, err := chosen(c.Parts)
	if err != nil {
		return err
	}
	if c.Dir == "" {
		if c.Dir, err = os.MkdirTemp("", "selvage-bench-"); err != nil {
			return err
		}
		defer os.RemoveAll(c.Dir)
	} else if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	if c.Bin, err = filepath.Abs(c.Bin); err != nil {
		return err
	}
	if c.Other != "" {
		if c.Other, err = filepath.Abs(c.Other); err != nil {
			return err
		}
	}
	now, err := speed(c.Dir)
	if err != nil {
		return err
	}
	fmt.Printf("machine: %s, %d cores, %s, %s\nat the beginning %s\n", cpuModel(), runtime.NumCPU(), memTotal(),
		kernel(), now)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	b := &bench{Config: c, fail: fail}
	if slices.ContainsFunc(todo, func(p part) bool { return !slices.Contains(alone, p.name) }) {
		if b.m, err = startMesh(ctx, c); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.m.down()) }()
	}
	for _, p := range todo {
		began := time.Now()
		if err := b.ready(ctx, p); err != nil {
			return fmt.Errorf("part %s: %w", p.name, err)
		}
		stop := func() {}
		if b.m != nil {
			stop = b.m.profile(ctx, c.Profile, p.name)
		}
		err := p.run(ctx, b)
		stop()
		if err := errors.Join(err, context.Cause(ctx)); err != nil {
			return fmt.Errorf("part %s: %w", p.name, err)
		}
		fmt.Printf("# part %s took %s\n", p.name, time.Since(began).Round(time.Second))
	}
	if now, err = speed(c.Dir); err == nil {
		fmt.Println("at the end " + now)
	}
	return err
}

// fewIssues are enough for the parts that do not need many.
const fewIssues = 2_000

// ready prepares what a part needs: the company with its agents and issues, and
// the rival. Part create loads the issues itself.
func (b *bench) ready(ctx context.Context, p part) (err error) {
	if slices.Contains(alone, p.name) || p.name == "idle" || p.name == "agents" || p.name == "runs" ||
		p.name == "starved" {
		return nil
	}
	if b.load == nil {
		if b.load, err = b.m.prepare(ctx, b.Clients); err != nil {
			return err
		}
		b.load.fail = b.fail
	}
	if p.name == "create" {
		return nil
	}
	want := min(b.Issues, fewIssues)
	if p.many {
		want = b.Issues
	}
	if err := b.load.fill(ctx, want, b.Clients); err != nil {
		return err
	}
	if b.Etcd && p.etcd && b.rival == nil {
		if b.rival, err = startEtcd(ctx, filepath.Join(b.Dir, "etcd")); err != nil {
			return err
		}
	} else if !p.etcd && b.rival != nil {
		b.rival.stop()
		b.rival = nil
	}
	return nil
}

func idle(_ context.Context, b *bench) error {
	row("binary", fmt.Sprintf("%.1f MB", float64(fileSize(b.Bin))/1e6), "≤ 60 MB")
	mem, err := b.m.idleMemory(10 * time.Second)
	row("idle memory of a node (RSS)", mem, "≤ 80 MB")
	return err
}

func row(what, got, want string) {
	fmt.Printf("| %-44s | %-60s | %-14s |\n", what, got, want)
}

func spread(x []float64, unit string) string {
	x = slices.Sorted(slices.Values(x))
	if len(x) == 0 {
		return "-"
	}
	digits := "%.0f%s (%.0f–%.0f)"
	if unit == "x" || unit == " ms" || unit == " s" {
		digits = "%.2f%s (%.2f–%.2f)"
	}
	return fmt.Sprintf(digits, x[len(x)/2], unit, x[0], x[len(x)-1])
}

func per(total float64, n int) float64 { return total / float64(max(n, 1)) }

func fileSize(path string) int64 {
	i, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return i.Size()
}
