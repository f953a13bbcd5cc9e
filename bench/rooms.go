package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// A line of the table that a benchmark of a room of the program gives.
type fromRoom struct {
	benchmark string // its name, without "Benchmark"
	unit      string // the metric, as the benchmark reports it
	what      string
	scale     float64
	format    string
	want      string
}

// alone are parts that do not need the mesh of the others: benchmarks of one room,
// and what starts meshes of its own.
var alone = []string{"resident", "memory", "compare", "sandbox", "gateway", "board", "kernel"}

var sandboxLines = []fromRoom{
	{"Call/small", "p50-ns", "sandbox: call of a small compiled module, p50", 1e-6, "%.3f ms", "≤ 0.1 ms"},
	{"Call/go/warm", "p50-ns", "sandbox: call of a Go-built module, warm pool, p50", 1e-6, "%.3f ms", "≤ 1 ms"},
	{"Call/go/cold", "p50-ns", "sandbox: the same, no instance waits, p50", 1e-6, "%.2f ms", "≤ 8 ms"},
	{"Call/go/first", "p50-ns", "sandbox: the same, first call of a module, p50", 1e-6, "%.2f ms", "≤ 8 ms"},
	{"Call/go/resident", "p50-ns", "sandbox: call of an instance that stays, p50", 1e-6, "%.3f ms", ""},
	{"Fuel/fib", "%more", "sandbox: fuel, calls without end (fib)", 1, "%.0f %%", "≤ 20 %"},
	{"Fuel/sorting", "%more", "sandbox: fuel, sorting", 1, "%.0f %%", "≤ 20 %"},
	{"Fuel/hashing", "%more", "sandbox: fuel, hashing", 1, "%.0f %%", "≤ 20 %"},
	{"Fuel/text", "%more", "sandbox: fuel, maps and strings", 1, "%.0f %%", "≤ 20 %"},
	{"Resident/go", "MiB", "sandbox: 300 Go-built instances that stay", 1, "%.0f MiB", "≤ 1024 MiB"},
	{"Resident/small", "MiB", "sandbox: 10,000 small instances that stay", 1, "%.0f MiB", "≤ 1024 MiB"},
}

var gatewayLines = []fromRoom{
	{"Overhead", "direct-p50-µs", "model call, upstream alone, p50", 1e-3, "%.2f ms", ""},
	{"Overhead", "overhead-p50-µs", "the gateway's part of a model call, p50", 1e-3, "%.2f ms", "≤ 1 ms"},
}

func sandboxPart(ctx context.Context, _ *bench) error {
	return ofRoom(ctx, "./sandbox", "^Benchmark(Call|Fuel|Resident)$", sandboxLines)
}

func gatewayPart(ctx context.Context, _ *bench) error {
	return ofRoom(ctx, "./llm", "^BenchmarkOverhead$", gatewayLines)
}

// ofRoom runs benchmarks of a package of the program, which lies above this folder.
func ofRoom(ctx context.Context, room, pattern string, lines []fromRoom) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", pattern, "-benchtime", "2s", room)
	cmd.Dir, cmd.Env, cmd.Stderr = "..", append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	got := measured(out)
	for _, l := range lines {
		v, ok := got[l.benchmark+" "+l.unit]
		if !ok {
			return fmt.Errorf("%s has no line %s with %s", room, l.benchmark, l.unit)
		}
		row(l.what, fmt.Sprintf(l.format, v*l.scale), l.want)
	}
	return nil
}

// measured reads what go test prints: "BenchmarkName-2  N  value unit  value unit".
func measured(out []byte) map[string]float64 {
	got := map[string]float64{}
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		f := strings.Fields(s.Text())
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(f[0], "Benchmark")
		if n := strings.LastIndex(name, "-"); n > 0 {
			name = name[:n]
		}
		for n := 2; n+1 < len(f); n += 2 {
			if v, err := strconv.ParseFloat(f[n], 64); err == nil {
				got[name+" "+f[n+1]] = v
			}
		}
	}
	return got
}
