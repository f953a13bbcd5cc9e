package main

import (
	"slices"
	"testing"
)

// A node whose collector scans much gets more room, up to a bound, and loses it when the
// load falls. With little load it stays at the least limit.
func TestMemoryLimitFollowsWhatTheCollectorScans(t *testing.T) {
	for _, b := range []heapBounds{normalHeap, smallHeap} {
		limit := b.least
		for range 1000 {
			if limit = b.nextLimit(limit, scanMuch, false); limit != b.least {
				t.Fatalf("the limit is %d with little to do, want %d", limit, b.least)
			}
		}
		for range 20 {
			if next := b.nextLimit(limit, scanMuch+1, false); next < limit || next > b.most {
				t.Fatalf("after %d the limit is %d", limit, next)
			} else {
				limit = next
			}
		}
		if limit != b.most {
			t.Errorf("the limit of a busy node is %d, want %d", limit, b.most)
		}
		if b.nextLimit(limit, scanLittle, false) != limit {
			t.Error("the limit moves although neither much nor little is scanned")
		}
		for range 60 {
			limit = b.nextLimit(limit, 0, false)
		}
		if limit != b.least {
			t.Errorf("the limit is %d a minute after the load, want %d", limit, b.least)
		}
	}
}

// A node with many writes becomes wide soon, stays wide for a while afterwards, and then
// becomes narrow. The load of runs alone never makes it wide.
func TestMuchAllocatedMakesWide(t *testing.T) {
	var changes []bool
	k := &memoryKeeper{heapBounds: normalHeap, widen: func(wide bool) { changes = append(changes, wide) }}
	for range 100 {
		k.getWide(wideAllocs / 4)
		k.getWide(2 * wideAllocs)
		k.getWide(wideAllocs / 4)
	}
	if changes != nil {
		t.Fatalf("runs made the node wide: %v", changes)
	}
	for range wideAfter {
		k.getWide(wideAllocs)
	}
	if !slices.Equal(changes, []bool{true}) || k.nextLimit(k.least, 0, k.wide > 0) <= k.least {
		t.Fatalf("much was allocated: %v, limit %d", changes, k.nextLimit(k.least, 0, k.wide > 0))
	}
	k.getWide(0)
	k.getWide(wideAllocs)
	for range int(wideFor/limitEvery) - 1 {
		k.getWide(0)
	}
	if !slices.Equal(changes, []bool{true}) {
		t.Fatalf("it did not stay wide for %s: %v", wideFor, changes)
	}
	k.getWide(0)
	k.getWide(0)
	if !slices.Equal(changes, []bool{true, false}) {
		t.Fatalf("after %s without much: %v", wideFor, changes)
	}
}
