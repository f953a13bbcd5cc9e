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
	"os/exec"
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
	Rounds  int           // alternating rounds of the claim race
	Seconds time.Duration // length of a round
	Clients int           // concurrent clients of the claim race
	Issues  int           // issues loaded before the race
	Kills   int           // leaders killed
	Deaths  int           // followers killed, to see how long the others take to say so
	Quiet   time.Duration // how long to look for false deaths under CPU hogs; 0 leaves it out
	Etcd    bool
}

func main() {
	var c Config
	flag.StringVar(&c.Bin, "bin", "../bin/selvage", "the selvage binary")
	flag.StringVar(&c.Dir, "dir", "", "work folder (default: a temporary one, removed at the end)")
	flag.IntVar(&c.Rounds, "rounds", 5, "alternating rounds")
	flag.DurationVar(&c.Seconds, "round", 5*time.Second, "length of a round")
	flag.IntVar(&c.Clients, "clients", 64, "concurrent clients")
	flag.IntVar(&c.Issues, "issues", 100_000, "issues loaded first")
	flag.IntVar(&c.Kills, "kills", 20, "leader kills")
	flag.IntVar(&c.Deaths, "deaths", 20, "follower kills")
	flag.DurationVar(&c.Quiet, "quiet", 10*time.Minute, "watch for false deaths under two CPU hogs a core")
	flag.BoolVar(&c.Etcd, "etcd", true, "measure etcd beside it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c Config) (err error) {
	if c.Dir == "" {
		if c.Dir, err = os.MkdirTemp("", "selvage-bench-"); err != nil {
			return err
		}
		defer os.RemoveAll(c.Dir)
	}
	if c.Bin, err = filepath.Abs(c.Bin); err != nil {
		return err
	}
	fmt.Printf("machine: %s, %d cores, %s, %s\n", cpuModel(), runtime.NumCPU(), memTotal(), kernel())
	m, err := startMesh(ctx, c.Bin, filepath.Join(c.Dir, "mesh"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.down()) }()
	idle, err := m.idleMemory(10 * time.Second)
	if err != nil {
		return err
	}
	row("binary", fmt.Sprintf("%.1f MB", float64(fileSize(c.Bin))/1e6), "≤ 60 MB")
	row("idle memory of a node (RSS)", idle, "≤ 80 MB")

	load, err := m.prepare(ctx, c.Clients, c.Issues)
	if err != nil {
		return err
	}
	var rival *etcd
	if c.Etcd {
		if rival, err = startEtcd(ctx, filepath.Join(c.Dir, "etcd")); err != nil {
			return err
		}
		defer rival.stop()
	}
	if err := race(ctx, c, m, load, rival); err != nil {
		return err
	}
	if rival != nil {
		rival.stop()
	}
	if err := latencies(ctx, c, m, load); err != nil {
		return err
	}
	if err := m.failover(ctx, c.Kills, load); err != nil {
		return err
	}
	if err := m.deaths(ctx, c.Deaths); err != nil {
		return err
	}
	if c.Quiet > 0 {
		return m.falseDeaths(ctx, c.Quiet)
	}
	return nil
}

// race alternates rounds of claims on both systems and prints the ratio of the medians.
func race(ctx context.Context, c Config, m *mesh, l *workload, rival *etcd) error {
	var ours, theirs, ratio []float64
	for r := range c.Rounds {
		before := m.counters()
		ops := measure(ctx, c.Clients, c.Seconds, l.checkout)
		after := m.counters()
		o := ops.rate()
		ours = append(ours, o)
		line := fmt.Sprintf("round %d: checkout %.0f/s (p50 %s, p99 %s, %d conflicts, %d errors, %.2f fsyncs an operation and node, %.0f µs CPU of all nodes an operation)",
			r+1, o, ops.quantile(.5), ops.quantile(.99), ops.conflicts, ops.errors, per(after.syncs-before.syncs, ops.n())/3, per(after.cpuMicros-before.cpuMicros, ops.n()))
		if rival != nil {
			e := measure(ctx, c.Clients, c.Seconds, rival.claim(r))
			theirs = append(theirs, e.rate())
			ratio = append(ratio, o/e.rate())
			line += fmt.Sprintf("; etcd claim %.0f/s (p50 %s, p99 %s)", e.rate(), e.quantile(.5), e.quantile(.99))
		}
		fmt.Println(line)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	row(fmt.Sprintf("checkout, %d clients", c.Clients), spread(ours, "/s"), "")
	if rival != nil {
		row(fmt.Sprintf("etcd claim, %d clients", c.Clients), spread(theirs, "/s"), "")
		row("ratio to etcd", spread(ratio, "x"), "≥ 1x, aim 2x")
	}
	return nil
}

func latencies(ctx context.Context, c Config, m *mesh, l *workload) error {
	leader, err := m.leader(ctx)
	if err != nil {
		return err
	}
	follower := (leader + 1) % len(m.nodes)
	one := func(name, want string, f op) {
		ops := measure(ctx, 1, c.Seconds, f)
		row(name, fmt.Sprintf("p50 %s, p99 %s, %.0f/s", ops.quantile(.5), ops.quantile(.99), ops.rate()), want)
	}
	one("one client, checkout at the leader", "p50 ≤ 2 ms", l.checkoutAt(leader))
	one("one client, checkout through a follower", "p50 ≤ 3 ms", l.checkoutAt(follower))
	one("one client, default read at a follower", "p50 ≤ 3 ms", l.readAt(follower, "default"))
	one("one client, strong read at a follower", "", l.readAt(follower, "strong"))
	many := measure(ctx, c.Clients, c.Seconds, l.readSpread("strong"))
	row(fmt.Sprintf("strong read, %d clients", c.Clients), fmt.Sprintf("%.0f/s, p50 %s", many.rate(), many.quantile(.5)), "")
	many = measure(ctx, c.Clients, c.Seconds, l.readSpread("default"))
	row(fmt.Sprintf("default read, %d clients", c.Clients), fmt.Sprintf("%.0f/s, p50 %s", many.rate(), many.quantile(.5)), "")
	return ctx.Err()
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
	if unit == "x" {
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

func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for l := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
}

func memTotal() string {
	b, _ := os.ReadFile("/proc/meminfo")
	first, _, _ := strings.Cut(string(b), "\n")
	return strings.Join(strings.Fields(first), " ")
}

func kernel() string {
	b, _ := exec.Command("uname", "-sr").Output()
	return strings.TrimSpace(string(b))
}
