package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// A fn is a function of a module that is put together by hand.
type fn struct {
	typ    int
	locals []byte // groups as they are encoded; default none
	code   []byte // without the final end
	export string
}

// A wat is such a module. Type 0 is () → (), 1 is (i32) → i32, 2 is (i32 i32 i32
// i32) → i32, 3 is (i32 i32) → i32.
type wat struct {
	funcs  []fn
	table  []byte // limits of a table of functions
	memory []byte // limits
	elems  []byte // functions that stand in the table
	data   string // at address 0
	start  int    // a function, from 1
}

func vec(n int, body []byte) []byte { return append(appendU32(nil, uint32(n)), body...) }

type entryOf struct {
	module, name string
	typ          byte
}

func (w wat) bytes(imports ...entryOf) []byte {
	b := slices.Clone(header)
	types := []byte{0x60, 0, 0, 0x60, 1, valI32, 1, valI32, 0x60, 4, valI32, valI32, valI32, valI32, 1, valI32, 0x60, 2,
		valI32, valI32, 1, valI32}
	b = appendSection(b, secType, vec(4, types))
	if len(imports) > 0 {
		var o []byte
		for _, i := range imports {
			o = append(appendName(appendName(o, i.module), i.name), kindFunc, i.typ)
		}
		b = appendSection(b, secImport, vec(len(imports), o))
	}
	var types2, exports, code []byte
	n := 0
	for i, f := range w.funcs {
		types2 = append(types2, byte(f.typ))
		if f.export != "" {
			exports = appendU32(append(appendName(exports, f.export), kindFunc), uint32(i+len(imports)))
			n++
		}
		locals := f.locals
		if locals == nil {
			locals = []byte{0}
		}
		body := append(slices.Clone(locals), f.code...)
		body = append(body, 0x0b)
		code = append(appendU32(code, uint32(len(body))), body...)
	}
	if w.memory != nil {
		exports = append(append(appendName(exports, "memory"), kindMemory), 0)
		n++
	}
	b = appendSection(b, secFunction, vec(len(w.funcs), types2))
	if w.table != nil {
		b = appendSection(b, secTable, vec(1, append([]byte{valFunc}, w.table...)))
	}
	if w.memory != nil {
		b = appendSection(b, secMemory, vec(1, w.memory))
	}
	b = appendSection(b, secExport, vec(n, exports))
	if w.start > 0 {
		b = appendSection(b, secStart, appendU32(nil, uint32(w.start-1)))
	}
	if w.elems != nil {
		e := append([]byte{0, 0x41, 0, 0x0b}, vec(len(w.elems), w.elems)...)
		b = appendSection(b, secElement, vec(1, e))
	}
	b = appendSection(b, secCode, vec(len(w.funcs), code))
	if w.data != "" {
		d := append([]byte{0, 0x41, 0, 0x0b}, vec(len(w.data), []byte(w.data))...)
		b = appendSection(b, secData, vec(1, d))
	}
	return b
}

// program is a module whose _start is code.
func program(code ...byte) []byte {
	return wat{funcs: []fn{{code: code, export: "_start"}}, memory: []byte{0, 1}, table: []byte{0, 1},
		elems: []byte{0}}.bytes()
}

func engine(t testing.TB) *Engine {
	t.Helper()
	e, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func load(t testing.TB, e *Engine, wasm []byte) *Module {
	t.Helper()
	m, err := e.Load(t.Context(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// The guests of testdata are built once for all tests, and compiled into one
// directory.
var guests struct {
	sync.Mutex
	dir   string
	built map[string][]byte
}

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "compile-late" { // the machine is busy with something else
		time.Sleep(1500 * time.Millisecond)
		os.Args[1] = "compile-child"
	}
	if len(os.Args) == 3 && os.Args[1] == "compile-child" {
		os.Exit(Compile(os.Args[2], os.Stdin, os.Stderr))
	}
	code := m.Run()
	if guests.dir != "" {
		os.RemoveAll(guests.dir)
	}
	os.Exit(code)
}

// shared is a directory that lives as long as the tests.
func shared(t testing.TB) string {
	guests.Lock()
	defer guests.Unlock()
	if guests.dir == "" {
		dir, err := os.MkdirTemp("", "sandbox-test-")
		if err != nil {
			t.Fatal(err)
		}
		guests.dir, guests.built = dir, map[string][]byte{}
	}
	return guests.dir
}

// goGuest builds testdata/guest, as a program or as a reactor.
func goGuest(t testing.TB, mode string) []byte {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a guest")
	}
	dir := shared(t)
	guests.Lock()
	defer guests.Unlock()
	if b := guests.built[mode]; b != nil {
		return b
	}
	out := filepath.Join(dir, mode+".wasm")
	cmd := exec.Command("go", "build", "-buildmode="+mode, "-ldflags=-s -w", "-o", out, "./testdata/guest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the guest: %v\n%s", err, said)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	guests.built[mode] = b
	return b
}

// guestEngine is an engine that finds what another test compiled.
func guestEngine(t testing.TB) *Engine {
	t.Helper()
	e, err := Open(Config{Dir: filepath.Join(shared(t), "compiled")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}
