package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// heapBounds say how much memory a node takes so that the collector has less to do.
// What is live is bounded by the caches (docs/operations.md has the list); on top
// of it the heap grows by busy or quiet percent, but not beyond the limit, which all of the
// program's own memory counts against. $GOGC and $GOMEMLIMIT go before.
type heapBounds struct {
	busy, quiet int   // $GOGC of a busy node and of a quiet one
	least, most int64 // the limit begins at least, and rises up to most; bytes
	worth       int64 // what a quiet node must hold that is not live before it is given back, in bytes
	widens      bool  // it takes up to most, and wider caches, while much is written
}

// A normal node has at most some 160 MB that are live: 100 of the store's cache and
// memtables, 48 of rows, 12 of the newest entries. With the limit at 216 MiB, of which
// the 96 of two memtables that are never filled are no memory, it stays below 250 MB
// with the pages of its program. That is enough for any number
// of runs, but not for as many writes as the machine can do: there it would read the
// same rows from the disk and collect them again and again. So it gets wide, see
// wideAllocs, and the limit rises in between as well, see nextLimit.
var normalHeap = heapBounds{busy: 400, quiet: 20, least: 216 << 20, most: 768 << 20, worth: 8 << 20, widens: true}

// A small node's memory is held down: its agents' processes need the rest.
var smallHeap = heapBounds{busy: 100, quiet: 20, least: 64 << 20, most: 72 << 20, worth: 8 << 20}

const (
	// limitEvery is how often it is looked at what the collector does.
	limitEvery = time.Second
	// scanMuch is from how much that it scans in a second, in bytes, it gets half as
	// much room again; scanLittle from when it has to do with an eighth less. One
	// core scans some 500 MB a second.
	scanMuch   = 40 << 20
	scanLittle = 10 << 20
	// A node gets wide when it allocates wideAllocs, in bytes, in each of wideAfter
	// seconds, and stays so until it did not for wideFor. Twelve runs a second take a
	// quarter of it on each node, with single seconds of more; as many writes as two
	// cores can do take three times as much.
	wideAllocs = 32 << 20
	wideAfter  = 2
	wideFor    = 15 * time.Second

	// What starting took, or a burst of work, goes back to the system as soon as it
	// is quiet: the collector alone keeps what it once had for minutes. It is looked
	// at giveBackAfter the start and each giveBackEvery; it costs a collection.
	giveBackAfter = 5 * time.Second
	giveBackEvery = 15 * time.Second
	// quietAllocs is what a node at rest allocates at most in a second, in bytes.
	quietAllocs = 4 << 20
	// trimFrom is how much must be live, in bytes, before a quiet node's caches are
	// emptied: less is not worth reading the rows again.
	trimFrom = 40 << 20
)

func boundsOf(small bool) heapBounds {
	if small {
		return smallHeap
	}
	return normalHeap
}

// tuneCollector sets the collector to the size of the node.
func tuneCollector(b heapBounds) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(b.busy)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(b.least)
	}
}

// nextLimit is the memory limit of the next second, from the present one and from
// how many bytes the collector scanned in the last. It counts bytes and not time:
// a machine that has too much to do would look like one that collects too much.
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
	sampleCycles: "/gc/cycles/automatic:gc-cycles", sampleScan: "/gc/scan/total:bytes", sampleAllocs: "/gc/heap/allocs:bytes", sampleLive: "/gc/heap/live:bytes",
	sampleObjects: "/memory/classes/heap/objects:bytes", sampleFree: "/memory/classes/heap/free:bytes", sampleUnused: "/memory/classes/heap/unused:bytes",
}

// A memoryKeeper sets the collector by what it has to do, and gives memory back
// when the node is quiet. One goroutine uses it.
type memoryKeeper struct {
	heapBounds
	trim    func()     // drops what is kept in memory only to be read sooner
	widen   func(bool) // lets that take more, or takes it back
	samples []metrics.Sample

	much    int           // seconds in a row in which much was allocated
	wide    time.Duration // for how long it stays so; 0 is narrow
	limit   int64
	percent int
	cycles  uint64 // as they were a second ago
	second  uint64 // allocated until then
	looked  uint64 // allocated until the last look
	rest    uint64 // live after the last trim
	begun   bool   // it has looked
}

// keepMemory does that until ctx ends.
func keepMemory(ctx context.Context, b heapBounds, trim func(), widen func(bool)) {
	k := &memoryKeeper{heapBounds: b, trim: trim, widen: widen, samples: make([]metrics.Sample, len(sampleNames)), limit: b.least, percent: b.busy}
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

// follow sets the limit to what the collector scanned in the last second, and
// percent and caches to those of a busy node when much was allocated in it.
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

// getWide makes the node wide or narrow by what it allocated in a second.
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

// look gives memory back when little was allocated since the last look, and the
// first time what starting took.
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
