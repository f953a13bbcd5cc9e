package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ample is what a program of Go needs.
var ample = Limits{Fuel: 2_000_000_000, Time: time.Minute}

func TestARealProgram(t *testing.T) {
	m := load(t, guestEngine(t), goGuest(t, "exe"))
	for _, test := range []struct {
		args  string
		stdin string
		out   string
		code  int
		want  Code
	}{
		{args: "hello a b", out: "hello a b\n"},
		{args: "cat", stdin: strings.Repeat("0123456789", 5000), out: strings.Repeat("0123456789", 5000)},
		{args: "work", stdin: "b a\na c", out: "bdda"},
		{args: "sort", out: "102 8495271\n"},
		{args: "exit", code: 5},
		{args: "panic", code: 2},
		{args: "flood", code: 7, out: strings.Repeat(strings.Repeat("x", 1023)+"\n", 64)},
		{args: "spin", want: FuelExhausted},
		{args: "grow", want: MemoryLimitExceeded},
		{args: "deep", want: MemoryLimitExceeded},
	} {
		t.Run(test.args, func(t *testing.T) {
			r := m.Run(t.Context(), Call{Args: append([]string{"guest"}, strings.Fields(test.args)...),
				Stdin: strings.NewReader(test.stdin), Limits: ample})
			switch {
			case test.want != "":
				if r.Error == nil || r.Error.Code != test.want {
					t.Errorf("it ended with %v, code %v: %s", r.Error, r.ExitCode, r.Stderr)
				}
			case r.Error != nil || *r.ExitCode != test.code:
				t.Errorf("it ended with %+v", r)
			case test.args == "work":
				if !strings.HasSuffix(r.Stdout, " 3 17711\n") {
					t.Errorf("it wrote %q", r.Stdout)
				}
			case r.Stdout != test.out:
				t.Errorf("it wrote %.100q", r.Stdout)
			}
			if r.FuelUsed <= 0 || r.MemoryPeak < 1<<20 || r.MemoryPeak > DefaultMemory {
				t.Errorf("fuel %d, memory %d", r.FuelUsed, r.MemoryPeak)
			}
		})
	}
}

func TestTheSmallestFuelThatIsEnough(t *testing.T) {
	// 10 turns: i32.const, local.set; then loop { local.get, const, sub, tee, br_if }.
	e := engine(t)
	m := load(t, e, wat{funcs: []fn{{locals: []byte{1, 1, valI32}, export: "_start",
		code: []byte{0x41, 10, 0x21, 0, 0x03, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b}}}}.bytes())
	r := m.Run(t.Context(), Call{})
	if r.Error != nil || r.FuelUsed != 52 {
		t.Fatalf("it used %d units (%v), want 2 + 10*5", r.FuelUsed, r.Error)
	}
	if r := m.Run(t.Context(), Call{Limits: Limits{Fuel: 52}}); r.Error != nil {
		t.Errorf("with 52 units it ended with %v", r.Error)
	}
	if r := m.Run(t.Context(), Call{Limits: Limits{Fuel: 51}}); r.Error == nil || r.Error.Code != FuelExhausted ||
		r.FuelUsed != 51 {
		t.Errorf("with 51 units it ended with %+v", r)
	}
}

func TestAFixedWorld(t *testing.T) {
	m := load(t, guestEngine(t), goGuest(t, "exe"))
	run := func(seed uint64) string {
		r := m.Run(t.Context(), Call{Args: []string{"guest", "env"}, Env: []string{"WHO=ada"}, Limits: ample,
			Fixed: &Fixed{Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Seed: seed}})
		if r.Error != nil {
			t.Fatal(r.Error)
		}
		return r.Stdout
	}
	got := run(1)
	if got != run(1) || !strings.HasPrefix(got, "ada\n2026-01-02T03:04:05") {
		t.Errorf("it wrote %q", got)
	}
}

// An end that somebody asks for, or that the time brings, comes also to a program
// that sleeps and to one that waits for input.
func TestAProgramThatWaitsIsEnded(t *testing.T) {
	m := load(t, guestEngine(t), goGuest(t, "exe"))
	r, w := io.Pipe()
	defer w.Close()
	for _, verb := range []string{"sleep", "cat", "spin"} {
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(50*time.Millisecond, cancel)
		res := m.Run(ctx, Call{Args: []string{"guest", verb}, Stdin: r, Limits: Limits{Fuel: MaxFuel}})
		timer.Stop()
		cancel()
		if res.Error == nil || res.Error.Code != Cancelled {
			t.Errorf("%s ended with %v", verb, res.Error)
		}
		// Whoever ends it may say why.
		why, stop := context.WithCancelCause(t.Context())
		timer = time.AfterFunc(20*time.Millisecond, func() { stop(&Error{GovernanceDenied, "everything was stopped"}) })
		res = m.Run(why, Call{Args: []string{"guest", verb}, Stdin: r, Limits: Limits{Fuel: MaxFuel}})
		timer.Stop()
		stop(nil)
		if res.Error == nil || *res.Error != (Error{GovernanceDenied, "everything was stopped"}) {
			t.Errorf("%s ended with %v", verb, res.Error)
		}
		res = m.Run(t.Context(), Call{Args: []string{"guest", verb}, Stdin: r,
			Limits: Limits{Fuel: MaxFuel, Time: 100 * time.Millisecond}})
		if res.Error == nil || res.Error.Code != ExecutionTimeout {
			t.Errorf("%s ended with %v", verb, res.Error)
		}
	}
}

func TestFilesStayInsideTheirDirectory(t *testing.T) {
	top := t.TempDir()
	work, ro := filepath.Join(top, "work"), filepath.Join(top, "ro")
	for path, text := range map[string]string{work + "/in.txt": "in", ro + "/r.txt": "read me",
		top + "/secret.txt": "canary"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(top+"/secret.txt", work+"/link"), syscall.Mkfifo(work+"/pipe", 0o600)); err != nil {
		t.Fatal(err)
	}
	var dirs []Dir
	for _, d := range []Dir{{Guest: "/work"}, {Guest: "/ro", ReadOnly: true}} {
		root, err := os.OpenRoot(top + d.Guest)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		d.Root = root
		dirs = append(dirs, d)
	}
	m := load(t, guestEngine(t), goGuest(t, "exe"))
	r := m.Run(t.Context(), Call{Args: []string{"guest", "files"}, Dirs: dirs, Limits: ample})
	want := `in <nil>
write <nil>
append <nil>
mkdir <nil>
rename <nil>
a,in.txt,link,pipe <nil>
dots  Bad file number
link  Operation not permitted
passwd  Bad file number
pipe  Permission denied
symlink  Operation not permitted
readonly  Read-only file system
read me <nil>
`
	if r.Error != nil || r.Stdout != want {
		t.Errorf("it ended with %v %q and wrote\n%s", r.Error, r.Stderr, r.Stdout)
	}
	if b, err := os.ReadFile(work + "/a/b/out.txt"); err != nil || string(b) != "out+more" {
		t.Errorf("the file holds %q, %v", b, err)
	}
}

func TestAnInstanceThatStays(t *testing.T) {
	m := load(t, guestEngine(t), goGuest(t, "c-shared"))
	i, err := m.Start(t.Context(), Call{Limits: ample})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	for n, want := range map[uint64]uint64{10: 55, 20: 6765, 15: 610} {
		if got, err := i.Call(t.Context(), "fib", n); err != nil || got[0] != want {
			t.Errorf("fib(%d) = %v, %v", n, got, err)
		}
	}
	if _, err := i.Call(t.Context(), "none"); err == nil {
		t.Error("a function that is not there was called")
	}
	if _, err := i.Call(t.Context(), "fib"); err == nil {
		t.Error("a function was called without its argument")
	}
}

// A reactor begins once, and its calls find it as it was then: what one leaves
// behind in memory, globals or by a bad end is gone for the next.
func TestNothingOfACallStays(t *testing.T) {
	m := load(t, guestEngine(t), goGuest(t, "c-shared"))
	for _, test := range []struct {
		args []string
		code int // -1: it traps
	}{{nil, 0}, {[]string{"guest"}, 0}, {[]string{"guest", "leave"}, 4}, {[]string{"guest", "fail"}, -1},
		{[]string{"guest", "twice"}, 0}} {
		var fuel int64
		for n := range 6 {
			r := m.Run(t.Context(), Call{Args: test.args, Limits: ample})
			if (r.Error != nil) != (test.code < 0) || r.Error == nil && *r.ExitCode != test.code ||
				r.Stdout != fmt.Sprintf("call 1 0 %d\n", len(test.args)) {
				t.Fatalf("%v, call %d: it ended with %v, %v and wrote %q, %q", test.args, n, r.Error, r.ExitCode,
					r.Stdout, r.Stderr)
			}
			if n > 0 && (r.FuelUsed > fuel+fuel/20 || r.FuelUsed < fuel-fuel/20) { // Go's random order of things costs a little
				t.Errorf("%v, call %d: it used %d units, the one before %d", test.args, n, r.FuelUsed, fuel)
			}
			fuel = r.FuelUsed
		}
		if r := m.Run(t.Context(), Call{Args: test.args, Limits: Limits{Fuel: 1000}}); r.Error == nil ||
			r.Error.Code != FuelExhausted {
			t.Errorf("%v: with 1,000 units it ended with %+v", test.args, r)
		}
	}
	p := &m.one.pool
	if r := m.Run(t.Context(), Call{Args: []string{"guest", "twice"}, Limits: ample}); r.Error != nil {
		t.Error(r.Error)
	}
	if p.birth == nil || len(p.free) == 0 {
		t.Error("no instance was kept for the next call")
	}
	born := p.birth
	r := m.Run(t.Context(), Call{Limits: ample, Fixed: &Fixed{Start: time.Unix(1e9, 0), Seed: 3}})
	if r.Error != nil || p.birth != born {
		t.Errorf("a call in a fixed world ended with %+v", r)
	}
}

// What a program may have changed beside its memory is the end of its instance.
func TestWhatCanNotBeMadeAgain(t *testing.T) {
	e := engine(t)
	closes := loopOf(entryOf{wasi, "fd_close", 1}, []byte{0, 1}, "", 1)
	closes = bytes.Replace(closes, []byte{0x1a, 0x0c, 0, 0x0b}, []byte{0x1a, 0x01, 0x01, 0x0b}, 1) // once: no branch back
	for _, test := range []struct {
		name string
		wasm []byte
		kept int
	}{
		{"a program that changes nothing", program(0x41, 1, 0x1a), 1},
		{"one that writes to its memory", program(0x41, 0, 0x41, 7, 0x36, 2, 0), 1},
		{"one that grows its memory", program(0x41, 1, 0x40, 0, 0x1a), 0},
		{"one that changes its table", program(0x41, 0, 0xd0, 0x70, 0x26, 0), 0},
		{"one that traps", program(0x00), 0},
		{"one that closes its output", closes, 0},
		{"one with a start function", wat{funcs: []fn{{}, {export: "_start"}}, start: 1, memory: []byte{0, 1}}.bytes(), 0},
	} {
		m := load(t, e, test.wasm)
		for range 5 {
			if r := m.Run(t.Context(), Call{}); r.Error != nil && r.Error.Code != WasmTrap {
				t.Fatalf("%s: %v", test.name, r.Error)
			}
		}
		if n := len(m.one.pool.free); n != test.kept {
			t.Errorf("%s: %d instances were kept, want %d", test.name, n, test.kept)
		}
	}
}

// Data of a module is where it says, however much there is of it, in each of its
// instances.
func TestDataOfAModule(t *testing.T) {
	e := engine(t)
	for _, size := range []int{1, 5000, 65_536, 300_000} {
		data := strings.Repeat("0123456789abcdef", size/16+1)[:size]
		w := wat{memory: []byte{0, 8}, data: data, funcs: []fn{
			{typ: 1, export: "at", code: []byte{0x20, 0, 0x2d, 0, 0}},           // i32.load8_u
			{export: "spoil", code: []byte{0x41, 0, 0x41, 0xff, 0, 0x3a, 0, 0}}, // i32.store8
		}}
		m := load(t, e, w.bytes())
		for range 3 {
			i, err := m.Start(t.Context(), Call{})
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range []int{0, size / 2, size - 1, size, 8<<16 - 1} {
				want := uint64(0)
				if at < size {
					want = uint64(data[at])
				}
				if got, err := i.Call(t.Context(), "at", uint64(at)); err != nil || got[0] != want {
					t.Errorf("%d bytes: at %d there is %v (%v), want %d", size, at, got, err, want)
				}
			}
			if _, err := i.Call(t.Context(), "spoil"); err != nil {
				t.Error(err)
			}
			i.Close()
		}
	}
}

func TestInstancesAreMadeAhead(t *testing.T) {
	m := load(t, guestEngine(t), goGuest(t, "c-shared"))
	if err := m.Warm(t.Context(), 3, ample); err != nil {
		t.Fatal(err)
	}
	seen := map[*Instance]bool{}
	for range 10 {
		i, err := m.Start(t.Context(), Call{Limits: ample})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := i.Call(t.Context(), "echo", 41); err != nil || got[0] != 42 {
			t.Errorf("echo returned %v, %v", got, err)
		}
		if seen[i] {
			t.Error("an instance was used twice")
		}
		seen[i] = true
		i.Close()
	}
}

// caller is a module that sends its request and writes what it takes.
func caller(method, request string) []byte {
	i32 := func(v int64) []byte { return appendS64([]byte{0x41}, v) }
	var code []byte
	for _, v := range []int64{0, int64(len(method)), int64(len(method)), int64(len(request))} {
		code = append(code, i32(v)...)
	}
	code = append(code, 0x10, 0, 0x1a) // call selvage.call
	// take(1024, 4096) → stored as the length of the vector at 512, whose base is 1024.
	code = append(append(code, i32(516)...), append(append(i32(1024), i32(4096)...), 0x10, 1)...)
	code = append(code, 0x36, 2, 0)
	code = append(append(append(code, i32(512)...), i32(1024)...), 0x36, 2, 0)
	for _, v := range []int64{1, 512, 1, 520} {
		code = append(code, i32(v)...)
	}
	code = append(code, 0x10, 2, 0x1a)
	return wat{funcs: []fn{{code: code, export: "_start"}}, memory: []byte{0, 1}, data: method + request}.bytes(
		entryOf{hostModule, "call", 2}, entryOf{hostModule, "take", 3}, entryOf{wasi, "fd_write", 2})
}

func TestAskingTheHost(t *testing.T) {
	e := engine(t)
	host := Host{
		"add": func(_ context.Context, request json.RawMessage) (any, error) {
			var in struct{ A, B int }
			if err := json.Unmarshal(request, &in); err != nil {
				return nil, err
			}
			return map[string]int{"sum": in.A + in.B}, nil
		},
		"refuse": func(context.Context, json.RawMessage) (any, error) {
			return nil, &HostError{Code: "Conflict", Message: "held by another"}
		},
		"fail": func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("no") },
		"bad":  func(context.Context, json.RawMessage) (any, error) { return func() {}, nil },
		"big":  func(context.Context, json.RawMessage) (any, error) { return strings.Repeat("x", maxAnswer), nil },
	}
	for _, test := range []struct{ method, request, want string }{
		{"add", `{"a":2,"b":3}`, `{"ok":{"sum":5}}`},
		{"add", `{`, `{"ok":null,"error":{"code":"BadRequest","message":"the request is not JSON"}}`},
		{"refuse", ``, `{"ok":null,"error":{"code":"Conflict","message":"held by another"}}`},
		{"fail", ``, `{"ok":null,"error":{"code":"Failed","message":"no"}}`},
		{"bad", ``, `{"ok":null,"error":{"code":"Failed","message":"the answer is not JSON"}}`},
		{"big", ``, `{"ok":null,"error":{"code":"TooLarge","message":"the answer is larger than a guest may get"}}`},
		{"shell", `{}`, `{"ok":null,"error":{"code":"HostCallDenied","message":"method shell is not granted"}}`},
		{"clock.now", ``, `{"ok":{"unixMs":1001}}`},
		{"random", `{"bytes":3}`, `{"ok":{"base64":"`},
		{"random", `{"bytes":-3}`, `{"ok":null,"error":{"code":"BadRequest"`},
	} {
		m := load(t, e, caller(test.method, test.request))
		r := m.Run(t.Context(), Call{Host: host, Fixed: &Fixed{Start: time.UnixMilli(1000)}})
		if r.Error != nil || !strings.HasPrefix(r.Stdout, test.want) {
			t.Errorf("%s %s: it got %q, %v", test.method, test.request, r.Stdout, r.Error)
		}
	}
	// What does not lie in the guest's memory ends it.
	m := load(t, e, loopOf(entryOf{hostModule, "call", 2}, []byte{0, 1}, "", 0, 4, 65_000, 60_000))
	if r := m.Run(t.Context(), Call{}); r.Error == nil || r.Error.Code != WasmTrap {
		t.Errorf("it ended with %v", r.Error)
	}
}

func TestWhatACallMayNotAskFor(t *testing.T) {
	e := engine(t)
	m := load(t, e, program())
	for _, c := range []Call{
		{Limits: Limits{Fuel: -1}}, {Args: []string{"a\x00b"}}, {Args: []string{strings.Repeat("x", maxStart)}},
		{Env: []string{"=x"}}, {Dirs: []Dir{{Guest: "work"}}},
	} {
		if r := m.Run(t.Context(), c); r.Error == nil || r.Error.Code != RuntimeUnavailable {
			t.Errorf("%.60v: it ended with %v", c, r.Error)
		}
	}
	big := load(t, e, wat{funcs: []fn{{export: "_start"}}, memory: []byte{0, 0x80, 4}}.bytes()) // 512 pages
	if r := big.Run(t.Context(), Call{}); r.Error == nil || r.Error.Code != MemoryLimitExceeded {
		t.Errorf("it ended with %v", r.Error)
	}
	if r := big.Run(t.Context(), Call{Limits: Limits{Memory: 64 << 20}}); r.Error != nil || r.MemoryPeak != 32<<20 {
		t.Errorf("it ended with %+v", r)
	}
	none := load(t, e, wat{funcs: []fn{{export: "other"}}}.bytes())
	if r := none.Run(t.Context(), Call{}); r.Error == nil || r.Error.Code != InvalidModule {
		t.Errorf("it ended with %v", r.Error)
	}
	many := load(t, e, wat{funcs: []fn{{export: "_start", typ: 1, code: []byte{0x20, 0}}}}.bytes())
	if r := many.Run(t.Context(), Call{}); r.Error == nil || r.Error.Code != InvalidModule {
		t.Errorf("it ended with %v", r.Error)
	}
}

func TestTheShapeOfAResult(t *testing.T) {
	b, err := json.Marshal(Result{Error: refuse(WasmTrap, "unreachable")})
	if want := `{"exitCode":null,"stdout":"","stderr":"","fuelUsed":0,"memoryPeak":0,"durationMs":0,` +
		`"error":{"code":"WasmTrap","message":"unreachable"}}`; err != nil || string(b) != want {
		t.Errorf("a result is %s", b)
	}
	if r := load(t, engine(t), program(0x00)).Run(t.Context(), Call{}); r.Error == nil ||
		*r.Error != (Error{WasmTrap, "unreachable"}) {
		t.Errorf("a trap is %v", r.Error)
	}
}

// Loading the same module twice gives one that stays good when the other is
// closed, and modules that nobody uses make room.
func TestLoadingAgain(t *testing.T) {
	e := engine(t)
	a, b := load(t, e, program()), load(t, e, program())
	if a.one != b.one {
		t.Error("a module was compiled twice")
	}
	a.Close()
	a.Close()
	if r := b.Run(t.Context(), Call{}); r.Error != nil {
		t.Error(r.Error)
	}
	for n := range maxLoaded + 5 {
		m, err := e.Load(t.Context(), program(0x41, byte(n), 0x1a))
		if err != nil {
			t.Fatal(err)
		}
		m.Close()
	}
	if len(e.modules) > maxLoaded+1 {
		t.Errorf("%d modules stay", len(e.modules))
	}
	if r := b.Run(t.Context(), Call{}); r.Error != nil {
		t.Error(r.Error)
	}
}
