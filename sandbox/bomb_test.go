package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

const wasi = wasi_snapshot_preview1.ModuleName

// resident is the memory of this process, in bytes, without what Go holds back.
func resident(t testing.TB) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc")
	}
	var size, rss int64
	fmt.Sscan(string(b), &size, &rss)
	return rss * int64(os.Getpagesize())
}

// A bomb is a program that wants more than it may have.
type bomb struct {
	name   string
	wasm   []byte
	limits Limits
	host   Host
	want   Code // "" when it may end by itself
}

func bombs() []bomb {
	spin := program(0x03, 0x40, 0x0c, 0, 0x0b) // loop br 0
	grow := program(0x03, 0x40, 0x41, 1, 0x40, 0, 0x1a, 0x0c, 0,
		0x0b) // loop memory.grow 1
	tables := program(0x03, 0x40, 0xd0, 0x70, 0x41, 0xff, 0, 0xfc, 15, 0, 0x1a, 0x0c, 0,
		0x0b) // loop table.grow 127
	manyPages := program(0x03, 0x40, 0x41, 0xff, 0xff, 3, 0x40, 0, 0x1a, 0x0c, 0,
		0x0b) // loop memory.grow 65535
	fill := program(0x41, 0xff, 1, 0x40, 0, 0x1a, 0x03, 0x40, 0x41, 0, 0x41, 7, 0x41, 0x80, 0x80, 0x80,
		8, // grow 255; loop fill 16 MiB
		0xfc, 11, 0, 0x0c, 0, 0x0b)
	turns := wat{funcs: []fn{{locals: []byte{1, 2, valI32}, code: dispatch([]byte{0, 1, 2}, turn(2, 2), nil, turn(0, 0)),
		export: "_start"}}}.bytes() // forward, and back
	deep := program(0x10, 0)
	mutual := wat{funcs: []fn{{code: []byte{0x41, 0, 0x11, 0, 0}, export: "_start"}}, table: []byte{0, 1},
		elems: []byte{0}}.bytes()
	fat := wat{funcs: []fn{{locals: []byte{1, 0xe0, 0x4d, valI64}, code: []byte{0x10, 0}, export: "_start"}}}.bytes()
	atStart := wat{funcs: []fn{{code: []byte{0x03, 0x40, 0x0c, 0, 0x0b}}, {export: "_start"}}, start: 1}.bytes()
	flood := wat{funcs: []fn{{code: []byte{0x03, 0x40, 0x41, 0, 0x41, 4, 0x41, 0, 0x41, 0, 0x10, 0, 0x1a, 0x0c, 0, 0x0b},
		export: "_start"}},
		memory: []byte{0, 1}, data: "echo"}.bytes(entryOf{hostModule, "call", 2})
	return []bomb{
		{name: "endless loop runs out of fuel", wasm: spin, want: FuelExhausted},
		{name: "endless loop runs out of time", wasm: spin, limits: Limits{Fuel: MaxFuel, Time: 50 * time.Millisecond},
			want: ExecutionTimeout},
		{name: "endless turns of a dispatcher", wasm: turns, want: FuelExhausted},
		{name: "memory grows", wasm: grow, want: FuelExhausted},
		{name: "memory grows much at once", wasm: manyPages, want: FuelExhausted},
		{name: "tables grow", wasm: tables, limits: Limits{Fuel: 100_000_000}, want: FuelExhausted},
		{name: "memory is filled again and again", wasm: fill, limits: Limits{Fuel: MaxFuel, Memory: 32 << 20,
			Time: 100 * time.Millisecond}, want: ExecutionTimeout},
		{name: "filling costs fuel", wasm: fill, limits: Limits{Memory: 32 << 20}, want: FuelExhausted},
		{name: "a function calls itself", wasm: deep, limits: Limits{Fuel: MaxFuel}, want: WasmTrap},
		{name: "a function calls itself through a table", wasm: mutual, limits: Limits{Fuel: MaxFuel}, want: WasmTrap},
		{name: "a function with many locals calls itself", wasm: fat, limits: Limits{Fuel: MaxFuel}, want: WasmTrap},
		{name: "the start function loops", wasm: atStart, want: FuelExhausted},
		{name: "the host is asked without end", wasm: flood, limits: Limits{Fuel: MaxFuel},
			host: Host{"echo": func(context.Context, json.RawMessage) (any, error) { return nil, nil }}, want: HostCallDenied},
		{name: "random numbers without end", wasm: wasiLoop("random_get", 3, []byte{0, 1}, "", 0, 65536),
			limits: Limits{Fuel: MaxFuel, Time: 100 * time.Millisecond}, want: ExecutionTimeout},
		{name: "a poll of many", wasm: wasiLoop("poll_oneoff", 2, []byte{0, 0xff, 1}, "", 0, 8<<20, 174_000, 15<<20),
			limits: Limits{Fuel: MaxFuel, Memory: 16 << 20, Time: 100 * time.Millisecond}, want: ExecutionTimeout},
		{name: "output without end", wasm: wasiLoop("fd_write", 2, []byte{0, 1}, "\x20\x00\x00\x00\x60\xea\x00\x00", 1, 0, 1,
			16), limits: Limits{Fuel: 10_000_000}, want: FuelExhausted},
	}
}

// wasiLoop calls a function of WASI without end.
func wasiLoop(name string, typ byte, memory []byte, data string, args ...int64) []byte {
	return loopOf(entryOf{wasi, name, typ}, memory, data, args...)
}

func loopOf(f entryOf, memory []byte, data string, args ...int64) []byte {
	code := []byte{0x03, 0x40}
	for _, a := range args {
		code = appendS64(append(code, 0x41), a)
	}
	code = append(code, 0x10, 0, 0x1a, 0x0c, 0, 0x0b)
	return wat{funcs: []fn{{code: code, export: "_start"}}, memory: memory, data: data}.bytes(f)
}

// TestBombs lets every bomb go off, several of each at once, while a quiet
// program is called again and again: it must not notice, and this process must
// not grow past what the limits add up to.
func TestBombs(t *testing.T) {
	e := engine(t)
	quiet := load(t, e, wat{funcs: []fn{{typ: 1, code: []byte{0x20, 0, 0x41, 1, 0x6a}, export: "next"}}}.bytes())
	q, err := quiet.Start(t.Context(), Call{})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	done := make(chan struct{})
	var calls atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		for k := uint64(0); ; k++ {
			select {
			case <-done:
				return
			default:
			}
			got, err := q.Call(context.Background(), "next", k%1000)
			if err != nil || got[0] != k%1000+1 {
				t.Errorf("the quiet program returned %v, %v", got, err)
				return
			}
			calls.Add(1)
			time.Sleep(time.Millisecond)
		}
	})
	before := resident(t)
	var peak atomic.Int64
	for _, b := range bombs() {
		t.Run(b.name, func(t *testing.T) {
			m := load(t, e, b.wasm)
			var at sync.WaitGroup
			for range 4 {
				at.Go(func() {
					r := m.Run(t.Context(), Call{Limits: b.limits, Host: b.host})
					if r.Error == nil || r.Error.Code != b.want {
						t.Errorf("it ended with %v, exit code %v; want %s", r.Error, r.ExitCode, b.want)
					}
					most := b.limits.Memory
					if most == 0 {
						most = DefaultMemory
					}
					if r.MemoryPeak > most || len(r.Stdout) > DefaultOutput || len(r.Stderr) > DefaultOutput {
						t.Errorf("it had %d bytes of memory, %d of output", r.MemoryPeak, len(r.Stdout))
					}
				})
			}
			at.Wait()
			peak.Store(max(peak.Load(), resident(t)))
		})
	}
	close(done)
	wg.Wait()
	if calls.Load() == 0 {
		t.Error("the quiet program was never called")
	}
	runtime.GC()
	t.Logf("%d quiet calls, resident %d MiB before, %d MiB at most, %d MiB after", calls.Load(), before>>20,
		peak.Load()>>20, resident(t)>>20)
	// Four at a time with 32 MiB of memory, 16 MiB of stack and as much garbage.
	if grown := peak.Load() - before; grown > 512<<20 {
		t.Errorf("the process grew by %d MiB", grown>>20)
	}
}

// Modules that would cost the compiler too much are refused before it sees them,
// or compiled in bounded time and memory.
func TestBombsForTheCompiler(t *testing.T) {
	many := func(n int, code ...byte) []byte { return bytes.Repeat(code, n) }
	nest := func(n int) []byte { return append(many(n, 0x02, 0x40), many(n, 0x0b)...) }
	tableOf := func(n int) []byte {
		code := append([]byte{0x02, 0x40, 0x41, 0, 0x0e}, appendU32(nil, uint32(n))...)
		return append(append(code, many(n+1, 0)...), 0x0b)
	}
	one := func(code []byte) []byte { return wat{funcs: []fn{{code: code, export: "_start"}}}.bytes() }
	section := func(id byte, body ...byte) []byte { return appendSection(bytes.Clone(header), id, body) }
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0x0f}
	for _, test := range []struct {
		name string
		wasm []byte
		want string // part of the refusal; "" when it is compiled
	}{
		{"a function of 2 MiB", one(many(2<<20, 0x01)), "larger than"},
		{"blocks 20,000 deep", one(nest(20_000)), "nested deeper"},
		{"a table of 20,000 targets", one(tableOf(20_000)), "more than"},
		{"20 tables of 9,999 targets", one(bytes.Repeat(tableOf(9_999), 20)), "targets in tables"},
		{"100,000 locals", wat{funcs: []fn{{locals: []byte{1, 0xa0, 0x8d, 6, valI32}}}}.bytes(), "locals"},
		{"locals in 1,000 groups of the most there can be",
			wat{funcs: []fn{{locals: append([]byte{0xe8, 7}, many(1000, 0xff, 0xff, 0xff, 0xff, 0x0f,
				valI32)...)}}}.bytes(), "locals"},
		{"four billion types", section(secType, huge...), "types"},
		{"four billion functions", section(secFunction, huge...), "functions"},
		{"four billion data segments", section(secData, huge...), "segments"},
		{"a table of four billion", wat{funcs: []fn{{export: "_start"}},
			table: append([]byte{0}, huge...)}.bytes(), "tables"},
		{"a memory of 4 GiB", wat{funcs: []fn{{export: "_start"}}, memory: []byte{0, 0x80, 0x80, 4}}.bytes(), "memory"},
		{"a section longer than the module", append(bytes.Clone(header), append([]byte{secCode}, huge...)...),
			"unexpected end"},
		{"a custom section that only claims its length", append(bytes.Clone(header), 0, 0x80, 0x80, 0x80, 0x80, 1),
			"unexpected end"},
		{"an unknown instruction", one([]byte{0xff}), "not supported"},
		{"a number that never ends", one(append([]byte{0x41}, many(20, 0x80)...)), "too long"},
		{"threads", one([]byte{0xfe, 3, 0}), "not supported"},
		{"blocks 9,000 deep", one(nest(9_000)), ""},
		{"a table of 9,999 targets", one(tableOf(9_999)), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := engine(t)
			before := resident(t)
			m, err := e.Load(t.Context(), test.wasm)
			if grown := resident(t) - before; grown > 512<<20 {
				t.Errorf("compilation took %d MiB", grown>>20)
			}
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("Load returned %v, want %q", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			m.Close()
		})
	}
}

func TestALargeModuleIsRefused(t *testing.T) {
	_, err := engine(t).Load(t.Context(), make([]byte, DefaultModule+1))
	if e, ok := err.(*Error); !ok || e.Code != ModuleTooLarge {
		t.Errorf("Load returned %v", err)
	}
}

func TestWhatIsNotOfferedIsDenied(t *testing.T) {
	e := engine(t)
	for _, name := range []string{"env.system", "selvage.shell", meterModule + "." + meterEnter,
		"wasi_snapshot_preview1.sock_open"} {
		module, fname, _ := strings.Cut(name, ".")
		_, err := e.Load(t.Context(), wat{funcs: []fn{{export: "_start"}}}.bytes(entryOf{module, fname, 0}))
		if bad, ok := err.(*Error); !ok || bad.Code != HostCallDenied {
			t.Errorf("%s: Load returned %v", name, err)
		}
	}
	if _, err := e.Load(t.Context(), wat{funcs: []fn{{export: meterFuel}}}.bytes()); err == nil {
		t.Error("a module may export the name of the fuel")
	}
}

// A compilation in a process of its own is killed when it takes too long, and
// what it leaves behind is found by the next engine.
func TestCompilationIsKilled(t *testing.T) {
	table := append(append([]byte{0x02, 0x40, 0x41, 0, 0x0e}, appendU32(nil, 9_999)...),
		bytes.Repeat([]byte{0}, 10_000)...)
	f := fn{code: bytes.Repeat(append(table, 0x0b), 10)}
	var w wat
	for range 60 {
		w.funcs = append(w.funcs, f)
	}
	dir := t.TempDir()
	child := []string{os.Args[0], "compile-child"}
	e, err := Open(Config{Dir: dir, Compiler: child, CompileTime: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Load(t.Context(), w.bytes()); err == nil || err.(*Error).Code != CompilationFailed ||
		!strings.Contains(err.Error(), "took longer than it may") {
		t.Errorf("Load returned %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := e.Load(ctx, w.bytes()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a load that was given up returned %v", err)
	}
	// Two functions of ours and one that is not valid: a drop of nothing.
	bad := wat{funcs: []fn{{code: append(bytes.Repeat([]byte{0x41, 0, 0x1a}, inProcess), 0x1a)}}}
	if _, err := e.Load(t.Context(), bad.bytes()); err == nil || err.(*Error).Code != InvalidModule {
		t.Errorf("Load returned %v", err)
	}
}

// What counts is what a compilation takes of a processor: on a busy machine it waits
// for one.
func TestCompilationMayWaitForAProcessor(t *testing.T) {
	e, err := Open(Config{Dir: t.TempDir(), Compiler: []string{os.Args[0], "compile-late"}, CompileTime: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	m, err := e.Load(t.Context(), wat{funcs: []fn{{code: bytes.Repeat([]byte{0x41, 0, 0x1a}, inProcess),
		export: "_start"}}}.bytes())
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
}

func TestACompiledModuleIsFoundAgain(t *testing.T) {
	good := wat{funcs: []fn{{code: bytes.Repeat([]byte{0x41, 0, 0x1a}, inProcess), export: "_start"}}}.bytes()
	dir := t.TempDir()
	for _, child := range [][]string{{os.Args[0], "compile-child"}, {"/nonexistent/compiler"}} {
		e, err := Open(Config{Dir: dir, Compiler: child})
		if err != nil {
			t.Fatal(err)
		}
		m, err := e.Load(t.Context(), good)
		if err != nil {
			t.Fatal(err)
		}
		if r := m.Run(t.Context(), Call{}); r.Error != nil || *r.ExitCode != 0 {
			t.Errorf("it ended with %+v", r)
		}
		m.Close()
		e.Close()
	}
}
