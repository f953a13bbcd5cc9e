package main

import "testing"

// A node whose collector scans much gets more room, up to a bound, and gives it up
// when there is little to do; one with little to do never leaves the least.
func TestMemoryLimitFollowsWhatTheCollectorScans(t *testing.T) {
	for _, b := range []heapBounds{normalHeap, smallHeap} {
		limit := b.least
		for range 1000 {
			if limit = b.nextLimit(limit, scanMuch); limit != b.least {
				t.Fatalf("the limit is %d with little to do, want %d", limit, b.least)
			}
		}
		for range 20 {
			if next := b.nextLimit(limit, scanMuch+1); next < limit || next > b.most {
				t.Fatalf("after %d the limit is %d", limit, next)
			} else {
				limit = next
			}
		}
		if limit != b.most {
			t.Errorf("the limit of a busy node is %d, want %d", limit, b.most)
		}
		if b.nextLimit(limit, scanLittle) != limit {
			t.Error("the limit moves although neither much nor little is scanned")
		}
		for range 60 {
			limit = b.nextLimit(limit, 0)
		}
		if limit != b.least {
			t.Errorf("the limit is %d a minute after the load, want %d", limit, b.least)
		}
	}
}
