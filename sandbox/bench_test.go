package sandbox

import (
	"context"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"golang.org/x/sys/unix"
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
		p50(b, func() { run(b, m) })
	})
	reactor := func(b *testing.B) *Module { return load(b, guestEngine(b), goGuest(b, "c-shared")) }
	b.Run("go/first", func(b *testing.B) { // each begins as if there had been none before
		m := reactor(b)
		p50(b, func() {
			b.StopTimer()
			m.one.pool.close(nil)
			m.one.pool = pool{}
			b.StartTimer()
			run(b, m)
		})
	})
	echo := func(b *testing.B, i *Instance) {
		if _, err := i.Call(b.Context(), "echo", 1); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("go/cold", func(b *testing.B) { // no instance waits, but one was there before
		m := reactor(b)
		run(b, m)
		run(b, m)
		p50(b, func() {
			i, err := m.Start(b.Context(), Call{Limits: ample})
			if err != nil {
				b.Fatal(err)
			}
			echo(b, i)
			i.Close()
		})
	})
	b.Run("go/warm", func(b *testing.B) {
		m := reactor(b)
		if err := m.Warm(b.Context(), 2, ample); err != nil {
			b.Fatal(err)
		}
		p50(b, func() { run(b, m) })
	})
	b.Run("go/resident", func(b *testing.B) {
		m := reactor(b)
		i, err := m.Start(b.Context(), Call{Limits: ample})
		if err != nil {
			b.Fatal(err)
		}
		defer i.Close()
		p50(b, func() { echo(b, i) })
	})
}

// p50 reports the middle of how long f takes, beside the mean.
func p50(b *testing.B, f func()) {
	var took []time.Duration
	for b.Loop() {
		before := b.Elapsed()
		f()
		took = append(took, b.Elapsed()-before)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
}

// BenchmarkResident keeps as many instances as the product promises for 1 GiB.
func BenchmarkResident(b *testing.B) {
	for _, test := range []struct {
		name string
		wasm func() []byte
		n    int
	}{
		{"go", func() []byte { return goGuest(b, "c-shared") }, 300},
		{"small", func() []byte { return wat{funcs: []fn{{export: "run"}}, memory: []byte{0, 1}}.bytes() }, 10_000},
	} {
		b.Run(test.name, func(b *testing.B) {
			m := load(b, guestEngine(b), test.wasm())
			for b.Loop() {
				debug.FreeOSMemory()
				before := resident(b)
				all := make([]*Instance, test.n)
				for k := range all {
					i, err := m.Start(b.Context(), Call{Limits: ample})
					if err != nil {
						b.Fatal(err)
					}
					if _, err := i.Call(b.Context(), "run"); err != nil { // it has done something
						b.Fatal(err)
					}
					all[k] = i
				}
				b.ReportMetric(float64(resident(b)-before)/(1<<20), "MiB")
				for _, i := range all {
					i.Close()
				}
			}
		})
	}
}

// What metering costs real work: the same exported function with and without, in
// turns. The time is that of the thread alone and the least of all, because other
// work on the machine only adds to it.
func BenchmarkFuel(b *testing.B) {
	ctx := context.Background()
	cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(shared(b), "plain"))
	if err != nil {
		b.Fatal(err)
	}
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(cache))
	defer rt.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	mod, err := rt.InstantiateWithConfig(ctx, goGuest(b, "c-shared"), wazero.NewModuleConfig().
		WithStartFunctions("_initialize"))
	if err != nil {
		b.Fatal(err)
	}
	m := load(b, guestEngine(b), goGuest(b, "c-shared"))
	i, err := m.Start(ctx, Call{Limits: Limits{Fuel: MaxFuel, Time: MaxTime}})
	if err != nil {
		b.Fatal(err)
	}
	defer i.Close()
	for _, f := range []struct {
		name string
		arg  uint64
	}{{"fib", 20}, {"sorting", 5_000}, {"hashing", 64}, {"text", 500}} {
		b.Run(f.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			fn := mod.ExportedFunction(f.name)
			plain, metered := time.Hour, time.Hour
			for b.Loop() {
				plain = min(plain, threadTime(func() { _, err = fn.Call(ctx, f.arg) }))
				if err != nil {
					b.Fatal(err)
				}
				metered = min(metered, threadTime(func() { _, err = i.Call(ctx, f.name, f.arg) }))
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(plain.Nanoseconds()), "plain-ns")
			b.ReportMetric(float64(metered.Nanoseconds()), "metered-ns")
			b.ReportMetric(100*(float64(metered)/float64(plain)-1), "%more")
		})
	}
}

// threadTime is the processor's time of this thread that f takes.
func threadTime(f func()) time.Duration {
	now := func() time.Duration {
		var t unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
		return time.Duration(t.Nano())
	}
	began := now()
	f()
	return now() - began
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
