package cause

import "github.com/selvage-mesh/selvage/ledger"

// A Walk asks for the causes of a node, or for its effects.
type Walk struct {
	Company ledger.CompanyID
	Reader  string // the agent that asks, "": the board
	Effects bool   // towards effects; towards causes otherwise
	Depth   int    // 0: DefaultDepth
	Nodes   int    // 0: DefaultNodes
}

// A Found is what a walk found: nodes by their distance from the root, which is the first,
// and edges in the order in which they were met.
type Found struct {
	Points []Reached
	Edges  []Edge
	More   bool // the walk stopped at a bound, and there is more
}

// A Reached is a node of a walk.
type Reached struct {
	Point
	Depth int  // steps from the root
	More  bool // it has edges that the walk did not follow
}

func (w Walk) bounds() (depth, nodes int) {
	depth, nodes = w.Depth, w.Nodes
	if depth <= 0 {
		depth = DefaultDepth
	}
	if nodes <= 0 {
		nodes = DefaultNodes
	}
	return min(depth, MaxDepth), min(nodes, MaxNodes)
}

// Walk walks from a node, the nearest nodes first. What the reader may not read is neither
// shown nor counted, and nothing is reached through it.
func (g Graph) Walk(tx *ledger.Tx, root Point, w Walk) Found {
	depth, nodes := w.bounds()
	out := Found{Points: []Reached{{Point: root}}}
	seen := map[Ref]bool{root.Ref: true}
	for at := 0; at < len(out.Points); at++ {
		p := &out.Points[at]
		edges, more := g.edges(tx, w.Company, p.Point, !w.Effects, MaxEdges)
		p.More = more
		for _, e := range edges {
			other := e.other(!w.Effects)
			if seen[other] {
				out.Edges = append(out.Edges, e)
				continue
			}
			q, ok := g.Look(tx, w.Company, other)
			if !ok || !q.readable(w.Reader) {
				continue
			}
			if p.Depth == depth || len(out.Points) == nodes {
				p.More = true
				break
			}
			seen[other] = true
			out.Points = append(out.Points, Reached{Point: q, Depth: p.Depth + 1})
			p = &out.Points[at]
			out.Edges = append(out.Edges, e)
		}
		out.More = out.More || p.More
	}
	return out
}

// other is the end of e to which a walk goes.
func (e Edge) other(back bool) Ref {
	if back {
		return e.From
	}
	return e.To
}
