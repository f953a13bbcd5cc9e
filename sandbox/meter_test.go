package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// plain runs a program as it is, without metering.
func plain(t testing.TB, wasm []byte, args []string, stdin string) (stdout string, code string) {
	t.Helper()
	ctx := context.Background()
	cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(shared(t), "plain"))
	if err != nil {
		t.Fatal(err)
	}
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(cache))
	defer rt.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	var out bytes.Buffer
	_, err = rt.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithArgs(args...).
		WithStdin(strings.NewReader(stdin)).WithStdout(&out))
	return out.String(), fmt.Sprint(err)
}

// Real programs do the same metered as they do unmetered.
func TestMeteringChangesNothing(t *testing.T) {
	guest := goGuest(t, "exe")
	m := load(t, guestEngine(t), guest)
	for _, verb := range []string{"hello", "work", "sort", "cat", "exit"} {
		args := []string{"guest", verb, "x"}
		stdin := strings.Repeat("the quick brown fox\njumps over the lazy dog ", 50)
		want, _ := plain(t, guest, args, stdin)
		r := m.Run(t.Context(), Call{Args: args, Stdin: strings.NewReader(stdin), Limits: ample})
		if r.Error != nil || r.Stdout != want {
			t.Errorf("%s: it wrote %.200q (%v), unmetered %.200q", verb, r.Stdout, r.Error, want)
		}
	}
}

// A maker writes random functions that are valid: structured control over a few
// i32 locals, which always ends. Local 3 is what dispatchers jump by.
type maker struct {
	r     *rand.Rand
	left  int
	funcs int
	self  int
}

// body appends statements; depth is how many blocks are open, loops says which
// of them are loops, from the outside.
func (m *maker) body(o []byte, loops []bool) []byte {
	for n := m.r.IntN(5); n >= 0 && m.left > 0; n-- {
		m.left--
		switch k := m.r.IntN(11); {
		case k < 4: // local = local op const
			v := byte(m.r.IntN(3))
			o = append(o, 0x20, byte(m.r.IntN(3)), 0x41, byte(m.r.IntN(60)), []byte{0x6a, 0x6b, 0x6c, 0x73,
				0x71}[m.r.IntN(5)], 0x21, v)
		case k == 4: // block
			o = append(m.body(append(o, 0x02, 0x40), append(loops, false)), 0x0b)
		case k == 5: // if, with else or without
			o = append(o, 0x20, byte(m.r.IntN(3)), 0x41, byte(m.r.IntN(8)), 0x4a, 0x04, 0x40)
			o = m.body(o, append(loops, false))
			if m.r.IntN(2) == 0 {
				o = m.body(append(o, 0x05), append(loops, false))
			}
			o = append(o, 0x0b)
		case k == 6: // a loop that counts a memory cell down, however it is left
			if len(loops) > 12 {
				continue
			}
			cell := byte(len(loops) * 4)
			at := appendU32([]byte{2}, uint32(128+64*m.self)) // memory of no other function's
			o = append(append(append(o, 0x41, cell, 0x41, byte(m.r.IntN(4)), 0x36), at...), 0x03, 0x40)
			o = m.body(o, append(loops, true))
			o = append(append(append(o, 0x41, cell, 0x41, cell, 0x28), at...), 0x41, 1, 0x6b, 0x36)
			o = append(append(o, at...), 0x41, cell, 0x28)             // the cell is one less
			o = append(append(o, at...), 0x41, 0, 0x4a, 0x0d, 0, 0x0b) // br_if above 0
		case k == 7: // leave a block: never back to a loop
			var to []byte
			for d := range loops {
				if !loops[len(loops)-1-d] {
					to = append(to, byte(d))
				}
			}
			if len(to) == 0 {
				continue
			}
			switch d := to[m.r.IntN(len(to))]; m.r.IntN(4) {
			case 0:
				return append(o, 0x0c, d)
			case 1:
				o = append(o, 0x20, byte(m.r.IntN(3)), 0x0e, 2, to[0], d, d)
				return o
			default:
				o = append(o, 0x20, byte(m.r.IntN(3)), 0x41, byte(m.r.IntN(8)), 0x46, 0x0d, d)
			}
		case k == 10:
			if len(loops) < 8 {
				o = m.dispatcher(o, loops)
			}
		case k == 8: // call a function further on
			if m.self+1 < m.funcs && len(loops) < 3 {
				o = append(o, 0x20, 0, 0x10, byte(m.self+1+m.r.IntN(m.funcs-m.self-1)), 0x21, byte(m.r.IntN(3)))
			}
		default:
			if m.r.IntN(6) == 0 {
				return append(o, 0x20, 1, 0x0f) // return
			}
			o = append(o, 0x41, 0, 0x41, 7, 0x41, byte(m.r.IntN(60)), 0xfc, 11, 0) // memory.fill
		}
	}
	return o
}

// dispatcher appends a loop of up to five parts whose turns go to random ones. Of
// those that may lead back, a memory cell counts how many are left.
func (m *maker) dispatcher(o []byte, loops []bool) []byte {
	parts := 1 + m.r.IntN(5)
	targets := make([]int, 1+m.r.IntN(7))
	cell := byte(len(loops) * 4)
	at := appendU32([]byte{2}, uint32(128+64*m.self))
	o = append(append(append(o, 0x41, cell, 0x41, byte(m.r.IntN(5)), 0x36), at...), 0x41, byte(m.r.IntN(8)), 0x21,
		3, 0x03, 0x40)
	o = append(o, bytes.Repeat([]byte{0x02, 0x40}, parts)...)
	o = append(o, 0x20, 3, 0x0e, byte(len(targets)-1))
	for n := range targets {
		targets[n] = m.r.IntN(parts)
		o = append(o, byte(targets[n]))
	}
	for p := range parts {
		depth := parts - 1 - p
		inner := append(append(slices.Clone(loops), true), make([]bool, depth)...)
		o = m.body(append(o, 0x0b), inner)
		to := m.r.IntN(9) - 1 // -1 is all other values, and so are some that have no target
		set := []byte{0x41, byte(to) & 0x7f, 0x21, 3, 0x0c}
		led := targets[len(targets)-1]
		if to >= 0 && to < len(targets) {
			led = targets[to]
		}
		switch {
		case m.r.IntN(3) == 0:
		case led > p && m.r.IntN(2) == 0: // forward, if it is reached
			o = append(append(o, 0x20, byte(m.r.IntN(3)), 0x41, byte(m.r.IntN(8)), 0x4a, 0x04, 0x40),
				append(set, byte(depth+1), 0x0b)...)
		case led > p:
			o = append(append(o, set...), byte(depth))
		default:
			o = append(append(append(o, 0x41, cell, 0x41, cell, 0x28), at...), 0x41, 1, 0x6b, 0x36)
			o = append(append(o, at...), 0x41, cell, 0x28)
			o = append(append(append(o, at...), 0x41, 0, 0x4a, 0x04, 0x40), append(set, byte(depth+1), 0x0b)...)
		}
	}
	return append(o, 0x0b)
}

func randomModule(seed uint64) []byte {
	m := &maker{r: rand.New(rand.NewPCG(seed, 1)), funcs: 5}
	w := wat{memory: []byte{0, 1}}
	for i := range m.funcs {
		m.self, m.left = i, 40
		w.funcs = append(w.funcs, fn{typ: 1, locals: []byte{1, 3, valI32}, code: append(m.body(nil, nil), 0x20, 2),
			export: fmt.Sprint("f", i)})
	}
	return w.bytes()
}

// TestMeteringOfRandomPrograms compares results with the unmetered program's, and
// the fuel with what the interpreter of these tests would count: never less than
// every instruction that was executed at least costs.
func TestMeteringOfRandomPrograms(t *testing.T) {
	ctx := context.Background()
	e := engine(t)
	rt := wazero.NewRuntime(ctx)
	defer rt.Close(ctx)
	n := 300
	if testing.Short() {
		n = 50
	}
	for seed := range uint64(n) {
		wasm := randomModule(seed)
		bare, err := rt.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithName(""))
		if err != nil {
			t.Fatalf("seed %d: the test makes what is not valid: %v", seed, err)
		}
		m, err := e.Load(ctx, wasm)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		i, err := m.Start(ctx, Call{Limits: ample})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		parsed, err := parse(wasm)
		if err != nil {
			t.Fatal(err)
		}
		memory := make([]byte, 1<<16)
		for arg := range uint64(6) {
			for f := range 5 {
				name := fmt.Sprint("f", f)
				want, err := bare.ExportedFunction(name).Call(ctx, arg)
				if err != nil {
					t.Fatalf("seed %d: unmetered: %v", seed, err)
				}
				got, err := i.Call(ctx, name, arg)
				if err != nil || got[0] != want[0] {
					t.Fatalf("seed %d: %s(%d) = %v, %v, unmetered %v", seed, name, arg, got, err, want)
				}
				counting := &counter{m: parsed, mem: memory}
				if res := counting.call(f, int32(arg)); uint32(res) != uint32(want[0]) {
					t.Fatalf("seed %d: the test counts what is not done: %s(%d) = %d, want %d", seed, name, arg, res, want[0])
				}
				if used := i.result(nil).FuelUsed; used < counting.cost {
					t.Fatalf("seed %d: %s(%d) was charged %d units, it executed %d", seed, name, arg, used, counting.cost)
				}
				// The same again with exactly what it used, and with one unit less.
				used := i.result(nil).FuelUsed
				i.limits.Fuel = used
				if _, err := i.Call(ctx, name, arg); err != nil {
					t.Fatalf("seed %d: %s(%d) with the %d units it used: %v", seed, name, arg, used, err)
				}
				i.limits.Fuel = ample.Fuel
			}
		}
		sameMemory(t, bare, i.mod)
		i.Close()
		m.Close()
		bare.Close(ctx)
	}
}

// A counter executes a module of randomModule as it is and counts what that costs,
// but for the two instructions by which dispatchers jump: turns that lead forward
// do without.
type counter struct {
	m    *parsed
	mem  []byte
	cost int64
}

func (c *counter) call(f int, arg int32) int32 {
	b := c.m.bodies[f]
	r := &reader{b: b}
	r.localTypes(1)
	begin := r.p
	// Where the end of each block is, and its else.
	ends, elses := map[int]int{}, map[int]int{}
	open := []int{0}
	for r.more() {
		at := r.p
		switch op := r.u8(); op {
		case 0x02, 0x03, 0x04:
			r.u8()
			open = append(open, at)
		case 0x05:
			elses[open[len(open)-1]] = r.p
		case 0x0b:
			ends[open[len(open)-1]] = at
			open = open[:len(open)-1]
		case 0x0c, 0x0d, 0x10:
			r.u32()
		case 0x0e:
			for range r.u32() + 1 {
				r.u32()
			}
		case 0x0f, 0x1a:
		default:
			r.immediates(op)
		}
	}
	locals := [4]int32{arg}
	var stack []int32
	pop := func() int32 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		return v
	}
	blocks := []int{0} // where they begin
	branch := func(depth int) {
		n := len(blocks) - 1 - depth
		at := blocks[n]
		blocks = blocks[:n+1]
		if at > 0 && b[at] == 0x03 {
			r.p = at + 2
			return
		}
		r.p = ends[at]
	}
	for r.p = begin; ; {
		at := r.p
		op := r.u8()
		c.cost++
		switch op {
		case 0x02, 0x03:
			c.cost--
			r.u8()
			blocks = append(blocks, at)
		case 0x04:
			r.u8()
			blocks = append(blocks, at)
			if pop() == 0 {
				r.p = ends[at]
				if at, ok := elses[at]; ok {
					r.p = at
				}
			}
		case 0x05:
			c.cost--
			r.p = ends[blocks[len(blocks)-1]]
		case 0x0b, 0x0f:
			c.cost--
			if len(blocks) == 1 || op == 0x0f {
				return pop()
			}
			blocks = blocks[:len(blocks)-1]
		case 0x0c:
			branch(int(r.u32()))
		case 0x0d:
			if d := int(r.u32()); pop() != 0 {
				branch(d)
			}
		case 0x0e:
			var targets []int
			for range r.u32() + 1 {
				targets = append(targets, int(r.u32()))
			}
			if b[at-2] == 0x20 && b[at-1] == 3 {
				c.cost -= 2
			}
			branch(targets[min(int(uint32(pop())), len(targets)-1)])
		case 0x10:
			stack = append(stack, c.call(int(r.u32()), pop()))
		case 0x20:
			stack = append(stack, locals[r.u8()])
		case 0x21:
			locals[r.u8()] = pop()
		case 0x41:
			v, end := signed(b, r.p)
			stack, r.p = append(stack, int32(v)), end
		case 0x28:
			r.u8()
			stack = append(stack, int32(binary.LittleEndian.Uint32(c.mem[uint32(pop())+r.u32():])))
		case 0x36:
			r.u8()
			v := pop()
			binary.LittleEndian.PutUint32(c.mem[uint32(pop())+r.u32():], uint32(v))
		case 0xfc: // memory.fill
			r.p += 2
			n, v, to := pop(), pop(), pop()
			for k := range n {
				c.mem[to+k] = byte(v)
			}
			c.cost += costRange + int64(n)>>perRange
		default:
			y, x := pop(), pop()
			is := map[bool]int32{true: 1}
			stack = append(stack, map[byte]int32{0x6a: x + y, 0x6b: x - y, 0x6c: x * y, 0x71: x & y, 0x73: x ^ y,
				0x4a: is[x > y], 0x46: is[x == y]}[op])
		}
	}
}

func sameMemory(t *testing.T, a, b api.Module) {
	t.Helper()
	x, _ := a.Memory().Read(0, a.Memory().Size())
	y, _ := b.Memory().Read(0, b.Memory().Size())
	if !bytes.Equal(x, y) {
		t.Fatal("the memories differ")
	}
}

// Fuel is never less than the instructions that are executed cost: charged code
// is straight, so the test can count it.
func TestWhatIsCharged(t *testing.T) {
	e := engine(t)
	for _, test := range []struct {
		name string
		code []byte
		want int64 // at least this
		most int64
	}{
		{"straight", bytes.Repeat([]byte{0x41, 0, 0x1a}, 100), 100, 100},
		{"blocks", []byte{0x02, 0x40, 0x02, 0x40, 0x41, 0, 0x1a, 0x0b, 0x0b}, 1, 1},
		{"an arm that is not taken", append(append([]byte{0x41, 0, 0x04, 0x40}, bytes.Repeat([]byte{0x41, 0, 0x1a}, 100)...),
			0x0b), 2, 2},
		{"a short arm that is not taken", []byte{0x41, 0, 0x04, 0x40, 0x41, 0, 0x1a, 0x0b}, 2, 3},
		{"an arm that is taken", append(append([]byte{0x41, 1, 0x04, 0x40}, bytes.Repeat([]byte{0x41, 0, 0x1a}, 100)...),
			0x0b), 102, 102},
		{"code behind a branch that is taken", append([]byte{0x02, 0x40, 0x0c, 0},
			append(bytes.Repeat([]byte{0x41, 0, 0x1a}, 100), 0x0b)...), 1, 1},
		{"growing", []byte{0x41, 1, 0x40, 0, 0x1a}, 2 + costGrow, 2 + costGrow},
		{"filling", []byte{0x41, 0, 0x41, 0, 0x41, 0x80, 0x80, 4, 0xfc, 11, 0}, 4 + costRange + 1024, 4 + costRange + 1024},
	} {
		r := load(t, e, program(test.code...)).Run(t.Context(), Call{})
		if r.Error != nil || r.FuelUsed < test.want || r.FuelUsed > test.most {
			t.Errorf("%s: %d units (%v), want %d to %d", test.name, r.FuelUsed, r.Error, test.want, test.most)
		}
	}
}

// FuzzMeter feeds modules that may be anything. What parse and meter accept must
// not panic, and what the compiler accepts unmetered it must accept metered.
func FuzzMeter(f *testing.F) {
	for _, b := range bombs() {
		f.Add(b.wasm)
	}
	for seed := range uint64(20) {
		f.Add(randomModule(seed))
	}
	f.Add(caller("a", "{}"))
	ctx := context.Background()
	e := engine(f)
	bare := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2).
		WithMemoryLimitPages(MaxMemory>>16))
	f.Cleanup(func() { bare.Close(ctx) })
	f.Fuzz(func(t *testing.T, wasm []byte) {
		if len(wasm) > 64<<10 {
			return
		}
		c, plainErr := bare.CompileModule(ctx, wasm)
		if plainErr == nil {
			defer c.Close(ctx)
		}
		_, metered, err := prepare(wasm, e.offers)
		if err != nil {
			return
		}
		d, meteredErr := bare.CompileModule(ctx, metered)
		if meteredErr == nil {
			defer d.Close(ctx)
		}
		if plainErr == nil && meteredErr != nil {
			t.Fatalf("valid as it is, but metered: %v", meteredErr)
		}
		m, loadErr := e.Load(ctx, wasm)
		if loadErr != nil {
			return
		}
		defer m.Close()
		r := m.Run(ctx, Call{Limits: Limits{Fuel: 20_000, Time: time.Second}})
		if r.FuelUsed > 20_000 || r.Error == nil && r.ExitCode == nil {
			t.Fatalf("it ended with %+v", r)
		}
	})
}
