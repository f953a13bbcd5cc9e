package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero"
)

// dispatch is a dispatcher by local 1 as Go writes it: targets for its values, the
// last for all others, and after each block's end the code of its part.
func dispatch(targets []byte, parts ...[]byte) []byte {
	o := append([]byte{0x03, 0x40}, bytes.Repeat([]byte{0x02, 0x40}, len(parts))...)
	o = append(append(o, 0x20, 1, 0x0e, byte(len(targets)-1)), targets...)
	for _, p := range parts {
		o = append(append(o, 0x0b), p...)
	}
	return append(o, 0x0b)
}

// turn sets local 1 and branches.
func turn(to, depth byte) []byte { return []byte{0x41, to, 0x21, 1, 0x0c, depth} }

// add adds to local 2, which is what these functions return.
func add(n byte) []byte { return []byte{0x20, 2, 0x41, n, 0x6a, 0x21, 2} }

// down takes one from local 0 and does what is given when it is not used up.
func down(then []byte) []byte {
	return append(append([]byte{0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x41, 0, 0x4a, 0x04, 0x40}, then...), 0x0b)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// A turn of a dispatcher becomes a branch out of a block where it leads forward,
// and only there.
func TestTurnsOfDispatchers(t *testing.T) {
	for _, test := range []struct {
		name string
		code []byte
		want int // branches that are replaced
	}{
		{"forward", dispatch([]byte{0, 1, 2, 0}, join(add(1), turn(1, 2)), join(add(2), down(turn(2, 2))), add(4)), 2},
		{"forward out of an if", dispatch([]byte{0, 1, 2}, join(add(1), down(turn(2, 3))), add(2), add(4)), 1},
		{"to what all other values lead to", dispatch([]byte{0, 1, 2}, join(add(1), turn(2, 2)), add(2), add(4)), 1},
		{"to a value that has no target of its own", dispatch([]byte{0, 1, 2}, join(add(1), turn(9, 2)), add(2), add(4)), 0},
		{"to a value below zero", dispatch([]byte{0, 1, 2}, join(add(1), turn(0x7f, 2)), add(2), add(4)), 0},
		{"back", dispatch([]byte{0, 1, 2}, add(1), add(2), join(add(4), down(turn(1, 1)))), 0},
		{"back to itself", dispatch([]byte{0, 1}, add(1), join(add(2), down(turn(1, 1)))), 0},
		{"to a block that is closed, from one like it", dispatch([]byte{0, 1}, join(add(1), []byte{0x02, 0x40}, add(2),
			down(turn(0, 3)), []byte{0x0b}), add(4)), 0},
		{"past the blocks", join([]byte{0x02, 0x40}, dispatch([]byte{0, 1, 2, 4}, join(add(1), down(turn(3, 3))), add(2),
			add(4)), []byte{0x0b}), 0},
		{"with another local", dispatch([]byte{0, 1, 2}, join(add(1), down([]byte{0x41, 2, 0x21, 3, 0x0c, 3})), add(2),
			add(4)), 0},
		{"with a block behind the jump", join([]byte{0x03, 0x40, 0x02, 0x40, 0x20, 1, 0x0e, 1, 0, 0, 0x02, 0x40, 0x0b, 0x0b},
			add(1), []byte{0x0b}), 0},
		{"with a local that is not set", dispatch([]byte{0, 1, 2}, join(add(1), down([]byte{0x41, 2, 0x20, 1, 0x0c, 3})),
			add(2), add(4)), 0},
		{"with a value that is not a number", dispatch([]byte{0, 1, 2}, join(add(1), down([]byte{0x20, 2, 0x21, 1, 0x0c, 3})),
			add(2), add(4)), 0},
		{"to another loop", append([]byte{0x03, 0x40}, append(dispatch([]byte{0, 1, 2}, join(add(1), down(turn(2, 4))),
			add(2), add(4)), 0x0b)...), 0},
		{"by a condition", dispatch([]byte{0, 1, 2}, join(add(1), []byte{0x41, 2, 0x21, 1, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0,
			0x41, 0, 0x4a, 0x0d, 2}), add(2), add(4)), 0},
		{"of a loop that takes a value", join(
			[]byte{0x20, 0, 0x03, 1, 0x02, 0x40, 0x02, 0x40, 0x20, 1, 0x0e, 1, 0, 1, 0x0b}, add(1), []byte{0x41, 40}, turn(1, 1),
			[]byte{0x0b}, []byte{0x21, 3}, add(4), []byte{0x20, 3, 0x0b, 0x20, 2, 0x6a, 0x21, 2}), 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			wasm := wat{funcs: []fn{{typ: 1, locals: []byte{1, 3, valI32}, code: append(test.code, 0x20, 2),
				export: "f"}}}.bytes()
			rt := wazero.NewRuntime(t.Context())
			defer rt.Close(context.Background())
			bare, err := rt.Instantiate(t.Context(), wasm)
			if err != nil {
				t.Fatalf("the test makes what is not valid: %v", err)
			}
			i, err := load(t, engine(t), wasm).Start(t.Context(), Call{})
			if err != nil {
				t.Fatal(err)
			}
			defer i.Close()
			for arg := range uint64(5) {
				want, err := bare.ExportedFunction("f").Call(t.Context(), arg)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := i.Call(t.Context(), "f", arg); err != nil || got[0] != want[0] {
					t.Errorf("f(%d) = %v, %v, unmetered %v", arg, got, err, want)
				}
			}
			m, err := parse(wasm)
			if err != nil {
				t.Fatal(err)
			}
			w := &metering{m: m, tracked: m.callers()}
			w.function(0, nil)
			got := 0
			for _, e := range w.edits {
				if e.kind == editBranch {
					got++
				}
			}
			if got != test.want {
				t.Errorf("%d branches were replaced, want %d", got, test.want)
			}
		})
	}
}

// What a function of turns that only lead forward costs is known when it begins.
func TestWhatTurnsCost(t *testing.T) {
	long := bytes.Repeat([]byte{0x41, 0, 0x1a}, 100)
	for _, test := range []struct {
		name       string
		code       []byte
		want, most int64
	}{
		{"forward, past short parts", dispatch([]byte{0, 1, 2}, join(add(1), turn(2, 2)), add(2), add(4)), 13, 18},
		{"forward, past a long part", dispatch([]byte{0, 1, 2}, join(add(1), turn(2, 2)), long, add(4)), 13, 14},
		{"forward, to a long part", dispatch([]byte{0, 1, 2}, join(add(1), turn(2, 2)), add(2), long), 109, 114},
		{"back, three times", join([]byte{0x41, 3, 0x21, 0}, dispatch([]byte{0, 1}, nil, join(long, down(turn(1, 1))))),
			2 + 3*(2+100+7) + 2*3, 2 + 3*(2+100+7+3)},
		{"back, past what is before", dispatch([]byte{0, 1, 2}, add(1), bytes.Repeat(add(1), 8), down(turn(2, 0))),
			2 + 4 + 32 + 7, 2 + 4 + 32 + 10},
		{"back, from behind a block like the one that ended", join([]byte{0x41, 3, 0x21, 0}, dispatch([]byte{0, 1, 2}, add(1),
			bytes.Repeat(add(1), 8), join([]byte{0x02, 0x40, 0x02, 0x40, 0x0b, 0x0b}, down(turn(1, 1))))), 2 + 2 + 4 + 3*(32+7) +
			2*(2+3), 2 + 2 + 4 + 3*(32+7+3) + 2*2},
		{"back over what is before, three times", join([]byte{0x41, 3, 0x21, 0}, dispatch([]byte{0, 1, 2}, add(1),
			bytes.Repeat(add(1), 8), down(turn(1, 1)))), 2 + 2 + 4 + 3*(32+7) + 2*(2+3), 2 + 2 + 4 + 3*(32+7+3) + 2*2},
	} {
		r := load(t, engine(t), wat{funcs: []fn{{locals: []byte{1, 3, valI32}, code: test.code, export: "_start"}}}.bytes()).
			Run(t.Context(), Call{})
		if r.Error != nil || r.FuelUsed < test.want || r.FuelUsed > test.most {
			t.Errorf("%s: %d units (%v), want %d to %d", test.name, r.FuelUsed, r.Error, test.want, test.most)
		}
	}
}

// Calls are charged and looked at however they go round: nothing here has a loop,
// and none goes deep.
func TestCallsThatNeverEnd(t *testing.T) {
	// f(n) calls twice with n-1 when n is above 0: from 50, 2^51 calls.
	twice := func(call ...byte) []byte {
		arm := join([]byte{0x20, 0, 0x41, 1, 0x6b}, call, []byte{0x1a, 0x20, 0, 0x41, 1, 0x6b}, call, []byte{0x1a})
		return join([]byte{0x20, 0, 0x04, 0x40}, arm, []byte{0x0b, 0x41, 0})
	}
	begin := fn{code: []byte{0x41, 50, 0x10, 1, 0x1a}, export: "_start"}
	chain := wat{funcs: []fn{begin}}
	for k := range 50 { // each calls the next twice, and none comes back to itself
		chain.funcs = append(chain.funcs, fn{typ: 1, code: twice(0x10, byte(k+2))})
	}
	chain.funcs = append(chain.funcs, fn{typ: 1, code: []byte{0x20, 0}})
	for _, test := range []struct {
		name string
		wasm []byte
	}{
		{"itself", wat{funcs: []fn{begin, {typ: 1, code: twice(0x10, 1)}}}.bytes()},
		{"one another", wat{funcs: []fn{begin, {typ: 1, code: twice(0x10, 2)}, {typ: 1, code: twice(0x10, 1)}}}.bytes()},
		{"one another, exported", wat{funcs: []fn{begin, {typ: 1, code: twice(0x10, 2), export: "f"},
			{typ: 1, code: twice(0x10, 1), export: "g"}}}.bytes()},
		{"itself through a table", wat{funcs: []fn{begin, {typ: 1, code: twice(0x41, 0, 0x11, 1, 0)}}, table: []byte{0, 1},
			elems: []byte{1}}.bytes()},
		{"one another, one through a table", wat{funcs: []fn{begin, {typ: 1, code: twice(0x41, 0, 0x11, 1, 0)},
			{typ: 1, code: twice(0x10, 1), export: "g"}}, table: []byte{0, 1}, elems: []byte{2}}.bytes()},
		{"a chain of others", chain.bytes()},
		{"itself, out of a dispatcher",
			wat{funcs: []fn{begin, {typ: 1, locals: []byte{1, 2, valI32},
				code: append(dispatch([]byte{0, 1, 2}, turn(2, 2), add(1), twice(0x10, 1)[:len(twice(0x10, 1))-2]), 0x41,
					0)}}}.bytes()},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := load(t, engine(t), test.wasm)
			for range 3 {
				r := m.Run(t.Context(), Call{Limits: Limits{Fuel: 3_000_000}})
				if r.Error == nil || r.Error.Code != FuelExhausted || r.FuelUsed != 3_000_000 {
					t.Errorf("it ended with %v after %d units", r.Error, r.FuelUsed)
				}
			}
		})
	}
}

// A call costs the same whether its instance is new, was copied or was used before.
func TestFuelOfInstancesThatAreUsedAgain(t *testing.T) {
	fib := join([]byte{0x20, 0, 0x41, 2, 0x48, 0x04, 0x40, 0x20, 0, 0x0f, 0x0b}, // below 2: itself
		dispatch([]byte{0, 1, 2}, turn(2, 2), add(1), join([]byte{0x20, 0, 0x41, 1, 0x6b, 0x10, 1, 0x20, 0, 0x41, 2, 0x6b,
			0x10, 1, 0x6a, 0x21, 2})), []byte{0x20, 2})
	m := load(t, engine(t), wat{funcs: []fn{{code: []byte{0x41, 18, 0x10, 1, 0x1a}, export: "_start"},
		{typ: 1, locals: []byte{1, 2, valI32}, code: fib, export: "fib"}}, memory: []byte{0, 1}}.bytes())
	var first int64
	for n := range 5 {
		r := m.Run(t.Context(), Call{})
		if r.Error != nil || n > 0 && r.FuelUsed != first {
			t.Errorf("call %d: %d units (%v), the first took %d", n, r.FuelUsed, r.Error, first)
		}
		first = r.FuelUsed
	}
	if len(m.one.pool.free) == 0 {
		t.Error("no instance was kept for the next call")
	}
	i, err := m.Start(t.Context(), Call{})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	used := map[string]bool{}
	for range 3 {
		if got, err := i.Call(t.Context(), "fib", 18); err != nil || got[0] != 2584 {
			t.Errorf("fib returned %v, %v", got, err)
		}
		used[fmt.Sprint(i.result(nil).FuelUsed)] = true
	}
	if len(used) != 1 {
		t.Errorf("the same call took %v units", used)
	}
}
