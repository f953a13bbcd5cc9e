package cause

import (
	"slices"

	"github.com/selvage-mesh/selvage/ledger"
)

// A Direction says how the ends of a path hang together.
type Direction string

// The directions of paths.
const (
	Forward Direction = "forward" // every edge leads from the first end towards the second
	Back    Direction = "back"    // every edge leads from the second end towards the first
	Mixed   Direction = "mixed"   // they hang together, but neither led to the other
)

// A Path is the way between two nodes. Edges[n] is between Points[n] and Points[n+1], in
// either direction.
type Path struct {
	Points    []Point
	Edges     []Edge
	Direction Direction
	More      bool // no path was found, and the search stopped at a bound
}

// Path searches the shortest way between two nodes: first one on which the first led to
// the second, then the other way round, then one that runs both ways.
func (g Graph) Path(tx *ledger.Tx, company ledger.CompanyID, reader string, from, to Point) Path {
	s := search{g: g, tx: tx, company: company, reader: reader}
	if from.Ref == to.Ref {
		return Path{Points: []Point{from}, Direction: Forward}
	}
	var more bool
	for _, try := range []struct {
		start, goal Point
		ways        []bool
		direction   Direction
	}{
		{to, from, []bool{true}, Forward},
		{from, to, []bool{false}, Forward},
		{from, to, []bool{true}, Back},
		{to, from, []bool{false}, Back},
		{from, to, []bool{true, false}, Mixed},
	} {
		p, cut, ok := s.run(try.start, try.goal.Ref, try.ways)
		if ok {
			if p.Direction = try.direction; p.Points[0].Ref != from.Ref {
				slices.Reverse(p.Points)
				slices.Reverse(p.Edges)
			}
			return p
		}
		more = more || cut
	}
	return Path{More: more}
}

// A search is one search for a path.
type search struct {
	g       Graph
	tx      *ledger.Tx
	company ledger.CompanyID
	reader  string
}

// A hop is how a search came to a node.
type hop struct {
	point Point
	by    Edge
	from  int // index of the hop before, -1 at the start
}

// run searches from start, along causes, effects or both, until it meets goal. cut reports
// that it stopped at a bound.
func (s search) run(start Point, goal Ref, ways []bool) (p Path, cut, ok bool) {
	hops := []hop{{point: start, from: -1}}
	seen := map[Ref]bool{start.Ref: true}
	for at := 0; at < len(hops); at++ {
		for _, back := range ways {
			edges, more := s.g.edges(s.tx, s.company, hops[at].point, back, MaxEdges)
			cut = cut || more
			for _, e := range edges {
				to := e.other(back)
				if seen[to] {
					continue
				}
				q, there := s.g.Look(s.tx, s.company, to)
				if !there || !q.readable(s.reader) {
					continue
				}
				if len(hops) == maxSearch {
					return p, true, false
				}
				seen[to] = true
				hops = append(hops, hop{q, e, at})
				if to == goal {
					return trace(hops), false, true
				}
			}
		}
	}
	return p, cut, false
}

// trace returns the way from the first hop to the last.
func trace(hops []hop) (p Path) {
	for at := len(hops) - 1; at >= 0; at = hops[at].from {
		p.Points = append(p.Points, hops[at].point)
		if hops[at].from >= 0 {
			p.Edges = append(p.Edges, hops[at].by)
		}
	}
	slices.Reverse(p.Points)
	slices.Reverse(p.Edges)
	return p
}
