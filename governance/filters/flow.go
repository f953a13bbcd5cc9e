package filters

import (
	"fmt"
	"slices"

	"github.com/selvage-mesh/selvage/governance"
)

// Board is the vertex that authority comes from.
const Board = "board"

// MaxEdges bounds a graph. It has only what can carry authority to one agent: its managers, and who has delegated to
// them.
const MaxEdges = 128

// An Edge says how much authority somebody gives somebody else, and by what.
type Edge struct {
	From     string           `cbor:"1,keyasint"`
	To       string           `cbor:"2,keyasint"`
	Capacity governance.Level `cbor:"3,keyasint"`
	Why      string           `cbor:"4,keyasint,omitempty"` // such as "manages"
}

// CheckEdges refuses a graph that is out of bounds.
func CheckEdges(edges []Edge) error {
	if len(edges) > MaxEdges {
		return fmt.Errorf("edges: at most %d, has %d", MaxEdges, len(edges))
	}
	for _, e := range edges {
		if e.From == "" || e.To == "" || e.Capacity < 0 || e.Capacity > governance.Most {
			return fmt.Errorf("edges: each needs from, to, and a capacity from 0 to 1")
		}
	}
	return nil
}

// MinCut returns the least authority that has to be taken away so that none flows from the board to somebody: the sum
// of the capacities of a minimum cut. It is what flows at most, found along shortest paths that still have room
// (Edmonds and Karp). The order of the edges makes no difference to it.
func MinCut(edges []Edge, to string) governance.Level {
	names := []string{Board, to}
	for _, e := range edges {
		names = append(names, e.From, e.To)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	at := func(name string) int { i, _ := slices.BinarySearch(names, name); return i }
	n := len(names)
	room := make([]governance.Level, n*n) // by from and to
	for _, e := range edges {
		room[at(e.From)*n+at(e.To)] += e.Capacity
	}
	source, sink, flow := at(Board), at(to), governance.Level(0)
	if source == sink {
		return governance.Most
	}
	for {
		before := path(room, n, source, sink)
		if before == nil {
			return flow
		}
		least := governance.Level(MaxEdges) * governance.Most
		for v := sink; v != source; v = before[v] {
			least = min(least, room[before[v]*n+v])
		}
		for v := sink; v != source; v = before[v] {
			room[before[v]*n+v] -= least
			room[v*n+before[v]] += least
		}
		flow += least
	}
}

// path returns for each vertex on a shortest path with room the one before it, nil when there is no such path.
func path(room []governance.Level, n, source, sink int) []int {
	before := make([]int, n)
	for i := range before {
		before[i] = -1
	}
	before[source] = source
	for next := []int{source}; len(next) > 0; next = next[1:] {
		from := next[0]
		for v := range n {
			if before[v] < 0 && room[from*n+v] > 0 {
				if before[v] = from; v == sink {
					return before
				}
				next = append(next, v)
			}
		}
	}
	return nil
}
