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
// of it the heap grows to percent more, but not beyond the limit, which all of the
// program's own memory counts against. $GOGC and $GOMEMLIMIT go before.
type heapBounds struct {
	percent     int
	quiet       int   // the percent of a quiet node
	least, most int64 // the limit begins at least, and a busy node gets up to most; bytes
	worth       int64 // what a quiet node must hold that is not live before it is given back
}

// A normal node has at most some 140 MB that are live: 80 of the store's cache and
// memtables, 48 of rows, 16 of the newest entries. With the limit at 176 MiB it
// stays below 250 MB with the pages of its program. That is enough for any number
// of runs, but not for as many writes as the machine can do: there the collector
// would scan the same rows again and again, so the limit rises, see nextLimit.
var normalHeap = heapBounds{percent: 300, quiet: 20, least: 176 << 20, most: 768 << 20, worth: 16 << 20}

// A small node's memory is held down: its agents' processes need the rest.
var smallHeap = heapBounds{percent: 100, quiet: 20, least: 64 << 20, most: 72 << 20, worth: 8 << 20}

const (
	// limitEvery is how often it is looked at what the collector does.
	limitEvery = time.Second
	// scanMuch is from how much that it scans in a second, in bytes, it gets half as
	// much room again; scanLittle from when it has to do with an eighth less. One
	// core scans some 500 MB a second.
	scanMuch   = 40 << 20
	scanLittle = 10 << 20

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
		debug.SetGCPercent(b.percent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(b.least)
	}
}

// nextLimit is the memory limit of the next second, from the present one and from
// how many bytes the collector scanned in the last. It counts bytes and not time:
// a machine that has too much to do would look like one that collects too much.
func (b heapBounds) nextLimit(now int64, scanned uint64) int64 {
	switch {
	case scanned > scanMuch:
		now += now / 2
	case scanned < scanLittle:
		now -= now / 8
	}
	return min(max(now, b.least), b.most)
}

// The metrics that keepMemory reads, in the order of its samples.
const (
	sampleCycles = iota
	sampleScan
	sampleAllocs
	sampleLive
	sampleObjects
	sampleFree
	sampleUnused
)

// keepMemory sets the limit by what the collector has to do, and gives memory back
// when the node is quiet, until ctx ends. trim drops what is kept in memory only to
// be read sooner.
func keepMemory(ctx context.Context, small bool, trim func()) {
	b, adapt, paced := boundsOf(small), os.Getenv("GOMEMLIMIT") == "", os.Getenv("GOGC") == ""
	limit, percent := b.least, b.percent
	pace := func(p int) {
		if paced && p != percent {
			percent = p
			debug.SetGCPercent(p)
		}
	}
	of := make([]metrics.Sample, sampleUnused+1)
	for i, name := range []string{"/gc/cycles/automatic:gc-cycles", "/gc/scan/total:bytes", "/gc/heap/allocs:bytes", "/gc/heap/live:bytes",
		"/memory/classes/heap/objects:bytes", "/memory/classes/heap/free:bytes", "/memory/classes/heap/unused:bytes"} {
		of[i].Name = name
	}
	var cycles, second, allocs, rest uint64 // rest is what was live after the last trim
	tick := time.NewTicker(limitEvery)
	defer tick.Stop()
	began, due := false, time.Now().Add(giveBackAfter)
	for {
		var now time.Time
		select {
		case <-ctx.Done():
			return
		case now = <-tick.C:
		}
		metrics.Read(of)
		at := func(i int) uint64 { return of[i].Value.Uint64() }
		next := b.nextLimit(limit, (at(sampleCycles)-cycles)*at(sampleScan))
		if cycles = at(sampleCycles); adapt && next != limit {
			limit = next
			debug.SetMemoryLimit(limit)
		}
		if at(sampleAllocs)-second > quietAllocs {
			pace(b.percent)
		}
		second = at(sampleAllocs)
		if now.Before(due) {
			continue
		}
		due = now.Add(giveBackEvery)
		quiet := second-allocs < quietAllocs*uint64(giveBackEvery/time.Second)
		allocs = second
		if began && !quiet {
			continue
		}
		if quiet {
			pace(b.quiet)
		}
		trims := began && at(sampleLive) > max(trimFrom, rest+uint64(b.worth))
		if trims {
			trim()
		}
		if held := at(sampleObjects) + at(sampleFree) + at(sampleUnused); !began || trims || held > at(sampleLive)+uint64(b.worth) {
			debug.FreeOSMemory()
		}
		if trims {
			metrics.Read(of)
			rest = at(sampleLive)
		}
		began = true
	}
}
