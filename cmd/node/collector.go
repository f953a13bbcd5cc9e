package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// heapBounds say how much memory a node may use to save work of the garbage collector.
// The caches bound the live memory (docs/operations.md has the list). On top of it the
// heap grows by busy or quiet percent, up to the limit, which includes all of the
// program's own memory. $GOGC and $GOMEMLIMIT take precedence.
type heapBounds struct {
	busy, quiet int   // $GOGC of a busy node and of a quiet one
	least, most int64 // first and highest limit, in bytes
	worth       int64 // memory that is not live, in bytes, from which a quiet node releases it
	widens      bool  // allows the limit most, and wider caches, during many writes
}

// A normal node has at most some 160 MB of live memory: 100 of the store's cache and
// memtables, 48 of rows, 12 of the newest entries. With the limit at 216 MiB, of which
// the 96 of two memtables that are never filled use no memory, it stays below 250 MB
// with the pages of its program. That is enough for any number of runs, but not for the
// most writes that the machine can do: it would then read the same rows from the disk
// and collect them again and again. So the node becomes wide, see wideAllocs, and the
// limit also rises in between, see nextLimit.
var normalHeap = heapBounds{busy: 400, quiet: 20, least: 216 << 20, most: 768 << 20, worth: 8 << 20, widens: true}

// A small node uses little memory: its agents' processes need the rest.
var smallHeap = heapBounds{busy: 100, quiet: 20, least: 64 << 20, most: 72 << 20, worth: 8 << 20}

const (
	// limitEvery is how often the collector's work is measured.
	limitEvery = time.Second
	// scanMuch is the number of bytes scanned in a second above which the collector gets
	// half as much room again; below scanLittle it gets an eighth less. One core scans some
	// 500 MB a second.
	scanMuch   = 40 << 20
	scanLittle = 10 << 20
	// A node becomes wide when it allocates wideAllocs bytes in each of wideAfter seconds,
	// and stays wide until it has not done so for wideFor. Twelve runs a second allocate a
	// quarter of that on each node, with single seconds of more; as many writes as two cores
	// can do allocate three times as much.
	wideAllocs = 32 << 20
	wideAfter  = 2
	wideFor    = 15 * time.Second

	// Memory used by the start or by a burst of work is released as soon as the node is
	// quiet: the collector alone would keep it for minutes. This is checked giveBackAfter
	// the start and every giveBackEvery; releasing costs a collection.
	giveBackAfter = 5 * time.Second
	giveBackEvery = 15 * time.Second
	// quietAllocs is the most that a quiet node allocates in a second, in bytes.
	quietAllocs = 4 << 20
	// trimFrom is the live memory, in bytes, from which a quiet node's caches are emptied;
	// less is not worth reading the rows again.
	trimFrom = 40 << 20
)

func boundsOf(small bool) heapBounds {
	if small {
		return smallHeap
	}
	return normalHeap
}

// tuneCollector configures the collector for the size of the node.
func tuneCollector(b heapBounds) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(b.busy)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(b.least)
	}
}

// nextLimit calculates the memory limit of the next second from the current one and the
// bytes scanned in the last second. It uses bytes and not time, because on an overloaded
// machine collections take longer.
func (b heapBounds) nextLimit(now int64, scanned uint64, wide bool) int64 {
	switch {
	case wide, scanned > scanMuch:
		now += now / 2
	case scanned < scanLittle:
		now -= now / 8
	}
	return min(max(now, b.least), b.most)
}

// The metrics that a memoryKeeper reads, in the order of its samples.
const (
	sampleCycles = iota
	sampleScan
	sampleAllocs
	sampleLive
	sampleObjects
	sampleFree
	sampleUnused
)

var sampleNames = [...]string{
	sampleCycles: "/gc/cycles/automatic:gc-cycles", sampleScan: "/gc/scan/total:bytes",
	sampleAllocs: "/gc/heap/allocs:bytes", sampleLive: "/gc/heap/live:bytes",
	sampleObjects: "/memory/classes/heap/objects:bytes", sampleFree: "/memory/classes/heap/free:bytes",
	sampleUnused: "/memory/classes/heap/unused:bytes",
}

// A memoryKeeper adjusts the collector to its load, and releases memory when the node is
// quiet. Only one goroutine uses it.
type memoryKeeper struct {
	heapBounds
	trim    func()     // empties the read caches
	widen   func(bool) // enlarges the read caches, or ends that
	samples []metrics.Sample

	much    int           // seconds in a row with many allocations
	wide    time.Duration // how long the node stays wide; 0 is narrow
	limit   int64
	percent int
	cycles  uint64 // a second ago
	second  uint64 // allocated until a second ago
	looked  uint64 // allocated until the last check
	rest    uint64 // live after the last trim
	begun   bool   // there was a check
}

// keepMemory runs a memoryKeeper until ctx ends.
func keepMemory(ctx context.Context, b heapBounds, trim func(), widen func(bool)) {
	k := &memoryKeeper{heapBounds: b, trim: trim, widen: widen, samples: make([]metrics.Sample, len(sampleNames)),
		limit: b.least, percent: b.busy}
	for i, name := range sampleNames {
		k.samples[i].Name = name
	}
	tick := time.NewTicker(limitEvery)
	defer tick.Stop()
	for due := time.Now().Add(giveBackAfter); ; {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			k.follow()
			if !now.Before(due) {
				due = now.Add(giveBackEvery)
				k.look()
			}
		}
	}
}

func (k *memoryKeeper) at(sample int) uint64 { return k.samples[sample].Value.Uint64() }

// follow adjusts the limit to what the collector scanned in the last second. After many
// allocations it sets percent and caches to those of a busy node.
func (k *memoryKeeper) follow() {
	metrics.Read(k.samples)
	if k.widens {
		k.getWide(k.at(sampleAllocs) - k.second)
	}
	next := k.nextLimit(k.limit, (k.at(sampleCycles)-k.cycles)*k.at(sampleScan), k.wide > 0)
	k.cycles = k.at(sampleCycles)
	if next != k.limit && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(next)
	}
	k.limit = next
	if k.at(sampleAllocs)-k.second > quietAllocs {
		k.pace(k.busy)
	}
	k.second = k.at(sampleAllocs)
}

// getWide makes the node wide or narrow by its allocations in a second.
func (k *memoryKeeper) getWide(allocs uint64) {
	was := k.wide > 0
	if k.wide = max(k.wide-limitEvery, 0); allocs < wideAllocs {
		k.much = 0
	} else if k.much++; k.much >= wideAfter || was {
		k.wide = wideFor
	}
	if is := k.wide > 0; is != was {
		k.widen(is)
	}
}

func (k *memoryKeeper) pace(percent int) {
	if percent != k.percent && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
	k.percent = percent
}

// look releases memory when little was allocated since the last check, and the first
// time what the start used.
func (k *memoryKeeper) look() {
	quiet := k.second-k.looked < quietAllocs*uint64(giveBackEvery/time.Second)
	k.looked = k.second
	if k.begun && !quiet {
		return
	}
	if quiet {
		k.pace(k.quiet)
	}
	live := k.at(sampleLive)
	held := k.at(sampleObjects) + k.at(sampleFree) + k.at(sampleUnused)
	trims := k.begun && live > max(trimFrom, k.rest+uint64(k.worth))
	if trims {
		k.trim()
	}
	if !k.begun || trims || held > live+uint64(k.worth) {
		debug.FreeOSMemory()
	}
	if trims {
		metrics.Read(k.samples)
		k.rest = k.at(sampleLive)
	}
	k.begun = true
}
