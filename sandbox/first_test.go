package sandbox

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestFirst(t *testing.T) {
	e, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	b, err := os.ReadFile("/tmp/guest.wasm")
	if err != nil {
		t.Skip(err)
	}
	t0 := time.Now()
	p, err := parse(b)
	if err != nil {
		t.Fatal(err)
	}
	t1 := time.Now()
	w, err := p.meter()
	if err != nil {
		t.Fatal(err)
	}
	n, tr := 0, 0
	for i, x := range p.callers() {
		if i >= len(p.imports) {
			n++
			if x {
				tr++
			}
		}
	}
	fmt.Println("parse", t1.Sub(t0), "meter", time.Since(t1), len(b), len(w), "tracked", tr, "of", n)
	os.WriteFile("/tmp/metered.wasm", w, 0o644)
	t0 = time.Now()
	m, err := e.Load(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	fmt.Println("load", time.Since(t0))
	for _, verb := range []string{"hello", "work", "sort", "exit", "panic", "spin", "grow", "deep", "flood", "sleep", "cat", "env"} {
		t0 = time.Now()
		r := m.Run(t.Context(), Call{Args: []string{"guest", verb}, Stdin: strings.NewReader("a b c\nd e f"), Limits: Limits{Fuel: 2e9, Time: 3 * time.Second}})
		code := -1
		if r.ExitCode != nil {
			code = *r.ExitCode
		}
		fmt.Printf("%s code %d out %d %.60q err %.60q fuel %d mem %d ms %d %v took %v\n", verb, code, len(r.Stdout), r.Stdout, r.Stderr, r.FuelUsed, r.MemoryPeak, r.DurationMs, r.Error, time.Since(t0))
	}
}
