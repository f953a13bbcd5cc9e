package sandbox

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// What a call costs: of a small compiled module and of a Go-built reactor, whose
// instance is new, was made ahead, or stays.
func BenchmarkCall(b *testing.B) {
	run := func(b *testing.B, m *Module) {
		if r := m.Run(b.Context(), Call{Limits: ample}); r.Error != nil {
			b.Fatal(r.Error)
		}
	}
	b.Run("small", func(b *testing.B) {
		m := load(b, engine(b), program(0x41, 1, 0x1a))
		for b.Loop() {
			run(b, m)
		}
	})
	b.Run("go/first", func(b *testing.B) {
		e := guestEngine(b)
		for b.Loop() { // each begins as if there had been none before
			b.StopTimer()
			m := load(b, e, goGuest(b, "c-shared"))
			m.one.pool.close(nil)
			m.one.pool = pool{}
			b.StartTimer()
			run(b, m)
		}
	})
	b.Run("go/cold", func(b *testing.B) { // no instance waits, but one was there before
		m := load(b, guestEngine(b), goGuest(b, "c-shared"))
		run(b, m)
		run(b, m)
		for b.Loop() {
			i, err := m.Start(b.Context(), Call{Limits: ample})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := i.Call(b.Context(), "echo", 1); err != nil {
				b.Fatal(err)
			}
			i.Close()
		}
	})
	b.Run("go/warm", func(b *testing.B) {
		m := load(b, guestEngine(b), goGuest(b, "c-shared"))
		if err := m.Warm(b.Context(), 2, ample); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			run(b, m)
		}
	})
	b.Run("go/resident", func(b *testing.B) {
		m := load(b, guestEngine(b), goGuest(b, "c-shared"))
		i, err := m.Start(b.Context(), Call{Limits: ample})
		if err != nil {
			b.Fatal(err)
		}
		defer i.Close()
		for b.Loop() {
			if _, err := i.Call(b.Context(), "echo", 1); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// What metering costs real work: the same exported function with and without.
func BenchmarkFuel(b *testing.B) {
	ctx := context.Background()
	for _, f := range []struct {
		name string
		arg  uint64
	}{{"fib", 24}, {"sorting", 20_000}, {"hashing", 64}, {"text", 2_000}} {
		b.Run(f.name+"/plain", func(b *testing.B) {
			cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(shared(b), "plain"))
			if err != nil {
				b.Fatal(err)
			}
			rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(cache))
			defer rt.Close(ctx)
			wasi_snapshot_preview1.MustInstantiate(ctx, rt)
			mod, err := rt.InstantiateWithConfig(ctx, goGuest(b, "c-shared"), wazero.NewModuleConfig().WithStartFunctions("_initialize"))
			if err != nil {
				b.Fatal(err)
			}
			fn := mod.ExportedFunction(f.name)
			for b.Loop() {
				if _, err := fn.Call(ctx, f.arg); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(f.name+"/metered", func(b *testing.B) {
			m := load(b, guestEngine(b), goGuest(b, "c-shared"))
			i, err := m.Start(ctx, Call{Limits: Limits{Fuel: MaxFuel, Time: MaxTime}})
			if err != nil {
				b.Fatal(err)
			}
			defer i.Close()
			for b.Loop() {
				if _, err := i.Call(ctx, f.name, f.arg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestResidentAgents counts what instances that stay take up.
func TestResidentAgents(t *testing.T) {
	if testing.Short() {
		t.Skip("takes memory")
	}
	for _, test := range []struct {
		name string
		wasm []byte
		n    int
		most int64 // bytes of each
	}{
		{"built by Go", goGuest(t, "c-shared"), 60, 1 << 30 / 300},
		{"small", wat{funcs: []fn{{export: "run"}}, memory: []byte{0, 1}}.bytes(), 2000, 1 << 30 / 10_000},
	} {
		m := load(t, guestEngine(t), test.wasm)
		first, err := m.Start(t.Context(), Call{Limits: ample})
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		before := resident(t)
		for range test.n {
			i, err := m.Start(t.Context(), Call{Limits: ample})
			if err != nil {
				t.Fatal(err)
			}
			defer i.Close()
		}
		each := (resident(t) - before) / int64(test.n)
		t.Logf("%s: %d bytes each", test.name, each)
		if each > test.most {
			t.Errorf("%s: an instance takes %d bytes, want %d at most", test.name, each, test.most)
		}
	}
}
