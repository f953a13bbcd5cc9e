package spawn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/kernel"
)

// returns is a module that returns at once, sleeps one that sleeps for ten hours.
var (
	returns = []byte("\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" +
		"\x07\x0a\x01\x06_start\x00\x00" + "\x0a\x04\x01\x02\x00\x0b")
	sleeps = []byte("\x00\x61\x73\x6d\x01\x00\x00\x00\x01\x0c\x02\x60\x04\x7f\x7f\x7f\x7f\x01\x7f\x60\x00\x00\x02" +
		"\x26\x01\x16\x77\x61\x73\x69\x5f\x73\x6e\x61\x70\x73\x68\x6f\x74\x5f\x70\x72\x65\x76\x69\x65\x77\x31\x0b" +
		"\x70\x6f\x6c\x6c\x5f\x6f\x6e\x65\x6f\x66\x66\x00\x00\x03\x02\x01\x01\x05\x03\x01\x00\x01\x07\x13\x02\x06" +
		"\x6d\x65\x6d\x6f\x72\x79\x02\x00\x06\x5f\x73\x74\x61\x72\x74\x00\x01\x0a\x1e\x01\x1c\x00\x41\x00\x42\x80" +
		"\x80\xd9\xb9\xde\x97\x08\x37\x03\x18\x41\x00\x41\xc0\x00\x41\x01\x41\x80\x01\x10\x00\x1a\x0b")
)

func benchBed(b *testing.B, module []byte) (*bed, kernel.Spec) {
	sum := sha256.Sum256(module)
	bed := newBed(b, b.TempDir(), func(c *Config) {
		c.Max = kernel.MostProcesses
		c.Module = func(context.Context, string, int64) ([]byte, error) { return module, nil }
	})
	return bed, kernel.Spec{Name: "module", Module: hex.EncodeToString(sum[:]), ModuleBytes: int64(len(module))}
}

// BenchmarkSpawnModule measures one life of a module as a process: entered in the table,
// executed, ended.
func BenchmarkSpawnModule(b *testing.B) {
	bed, spec := benchBed(b, returns)
	for b.Loop() {
		bed.mu.Lock()
		clear(bed.log)
		bed.mu.Unlock()
		e, err := bed.Spawn(b.Context(), spec)
		if err != nil {
			b.Fatal(err)
		}
		for e.State != kernel.Exited {
			runtime.Gosched()
			e, _ = bed.Table().Find(e.PID)
		}
	}
}

// BenchmarkProcessesAtRest measures what 10,000 sleeping modules take of memory and, within
// five seconds, of a processor.
func BenchmarkProcessesAtRest(b *testing.B) {
	const many = 10_000
	bed, spec := benchBed(b, sleeps)
	before := resident(b)
	for range many {
		if _, err := bed.Spawn(b.Context(), spec); err != nil {
			b.Fatal(err)
		}
	}
	time.Sleep(3 * time.Second) // until they sleep, and the collector has run
	runtime.GC()
	grown := resident(b) - before
	const span = 5 * time.Second
	used := time.Duration(0)
	for b.Loop() {
		was := processor(b)
		time.Sleep(span)
		used = processor(b) - was
	}
	b.ReportMetric(float64(grown)/(1<<20), "MiB") // after Loop, which forgets what was reported before
	b.ReportMetric(100*float64(used)/float64(span), "%core")
	live := 0
	for _, e := range bed.Table().List(false) {
		if e.State == kernel.Running && e.Kind == kernel.KindWasm {
			live++
		}
	}
	if live != many {
		b.Errorf("%d of %d sleep", live, many)
	}
}

// resident returns the bytes of this process in memory.
func resident(b *testing.B) int64 {
	b.Helper()
	return shim.OwnUse().Memory
}

// processor returns the processor time of this process.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkCloseOfMany measures how long a node needs to end 10,000 modules that wait in a call.
func BenchmarkCloseOfMany(b *testing.B) {
	const many = 10_000
	for range b.N {
		b.StopTimer()
		bed, spec := benchBed(b, sleeps)
		for range many {
			if _, err := bed.Spawn(b.Context(), spec); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		if err := bed.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
