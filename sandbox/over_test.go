package sandbox

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

func TestOver(t *testing.T) {
	ctx := context.Background()
	for _, f := range []struct {
		file, fn string
		arg      uint64
	}{{"/tmp/fib.wasm", "fib", 27}, {"/tmp/fib.wasm", "looped", 3e6}, {"/tmp/fib.wasm", "sieve", 300000}, {"/tmp/fib.wasm", "hash", 20000}, {"/tmp/reactor.wasm", "fib", 25}} {
		raw, err := os.ReadFile(f.file)
		if err != nil {
			t.Skip(err)
		}
		rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(plainCache))
		wasi_snapshot_preview1.MustInstantiate(ctx, rt)
		pm, err := rt.InstantiateWithConfig(ctx, raw, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
		if err != nil {
			t.Fatal(err)
		}
		e, _ := Open(Config{Dir: "/tmp/mcache"})
		m, err := e.Load(ctx, raw)
		if err != nil {
			t.Fatal(err)
		}
		i, err := m.Start(ctx, Call{Limits: Limits{Fuel: 1e12, Time: time.Hour, Memory: 64 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		best := [2]time.Duration{time.Hour, time.Hour}
		var res [2]uint64
		for range 15 {
			t0 := time.Now()
			r, err := pm.ExportedFunction(f.fn).Call(ctx, f.arg)
			if err != nil {
				t.Fatal(err)
			}
			best[0] = min(best[0], time.Since(t0))
			res[0] = r[0]
			t0 = time.Now()
			r, err = i.Call(ctx, f.fn, f.arg)
			if err != nil {
				t.Fatal(err)
			}
			best[1] = min(best[1], time.Since(t0))
			res[1] = r[0]
		}
		fmt.Println(f.file, f.fn, best, float64(best[1])/float64(best[0])-1, res, i.result(nil).FuelUsed)
		i.Close()
		m.Close()
		e.Close()
		rt.Close(ctx)
	}
}

var plainCache, _ = wazero.NewCompilationCacheWithDir("/tmp/pcache")
