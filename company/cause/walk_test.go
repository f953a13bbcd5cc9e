package cause

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// net is a graph of issues named by numbers, with edges from causes to effects; secret ones
// have a reader.
type net struct {
	n      int
	edges  map[[2]int]bool
	secret map[int]string
}

func (w net) graph() Graph {
	name := func(n int) string { return fmt.Sprint(n) }
	each := func(b *Bag, p Point, towards bool) {
		var at int
		fmt.Sscan(p.ID, &at)
		for n := range w.n {
			pair := [2]int{at, n}
			if towards {
				pair = [2]int{n, at}
			}
			if w.edges[pair] && (!b.Read() || !b.Add(Edge{Kind: Causes}, Ref{Issue, name(n)})) {
				return
			}
		}
	}
	return Graph{{
		Nodes: map[Type]Look{Issue: func(_ *ledger.Tx, company ledger.CompanyID, id string) (Point, bool) {
			var at int
			fmt.Sscan(id, &at)
			return Point{Label: id, Reader: w.secret[at]}, company == "acme" && at < w.n
		}},
		Causes:  map[Type]Step{Issue: func(b *Bag, p Point) { each(b, p, true) }},
		Effects: map[Type]Step{Issue: func(b *Bag, p Point) { each(b, p, false) }},
	}}
}

func random(rng *rand.Rand, n, degree int) net {
	w := net{n: n, edges: map[[2]int]bool{}, secret: map[int]string{}}
	for range n * degree {
		w.edges[[2]int{rng.IntN(n), rng.IntN(n)}] = true
	}
	for range n / 4 {
		w.secret[rng.IntN(n)] = []string{"ada", "bob"}[rng.IntN(2)]
	}
	return w
}

// Walks stay within their bounds, show nothing that the reader may not read, and tell when
// something was left out: otherwise they have all that a plain search finds.
func TestWalksAreBoundedAndWhole(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		net := random(rng, 2+rng.IntN(60), 1+rng.IntN(4))
		reader := []string{"", "ada", "bob"}[rng.IntN(3)]
		w := Walk{Company: "acme", Reader: reader, Effects: rng.IntN(2) == 0, Depth: 1 + rng.IntN(8), Nodes: 1 + rng.IntN(60)}
		start := rng.IntN(net.n)
		delete(net.secret, start)
		g := net.graph()
		root, ok := g.Look(nil, "acme", Ref{Issue, fmt.Sprint(start)})
		if !ok {
			t.Fatalf("seed %d: no root", seed)
		}
		got := g.Walk(nil, root, w)
		if len(got.Points) > w.Nodes {
			t.Fatalf("seed %d: %d nodes, at most %d", seed, len(got.Points), w.Nodes)
		}
		depth := net.distances(start, reader, w.Effects)
		for _, p := range got.Points {
			var at int
			fmt.Sscan(p.ID, &at)
			if p.Depth > w.Depth || p.Depth != depth[at] || net.secret[at] != "" && reader != "" && net.secret[at] != reader {
				t.Fatalf("seed %d: %s at %d, want %d; secret of %q, read by %q", seed, p.ID, p.Depth, depth[at],
					net.secret[at], reader)
			}
		}
		whole := 0
		for _, d := range depth {
			if d <= w.Depth {
				whole++
			}
		}
		if cut := len(got.Points) < len(depth); cut != got.More {
			t.Fatalf("seed %d: %d of %d nodes, and more is %v", seed, len(got.Points), len(depth), got.More)
		}
		if len(got.Points) < min(whole, w.Nodes) {
			t.Fatalf("seed %d: %d nodes of %d within %d steps, limit %d", seed, len(got.Points), whole, w.Depth, w.Nodes)
		}
		for _, e := range got.Edges {
			for _, end := range []Ref{e.From, e.To} {
				if !slices.ContainsFunc(got.Points, func(p Reached) bool { return p.Ref == end }) {
					t.Fatalf("seed %d: an edge names %s, which is no node", seed, end)
				}
			}
		}
	}
}

// distances are the steps from start to what reader can reach.
func (w net) distances(start int, reader string, effects bool) map[int]int {
	out, queue := map[int]int{start: 0}, []int{start}
	for ; len(queue) > 0; queue = queue[1:] {
		for n := range w.n {
			pair := [2]int{n, queue[0]}
			if effects {
				pair = [2]int{queue[0], n}
			}
			hidden := reader != "" && w.secret[n] != "" && w.secret[n] != reader
			if _, seen := out[n]; w.edges[pair] && !seen && !hidden {
				out[n] = out[queue[0]] + 1
				queue = append(queue, n)
			}
		}
	}
	return out
}

// A path is found wherever there is one, runs along edges, and is directed where it can be.
func TestPathsRunAlongEdges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		net := random(rng, 2+rng.IntN(40), 1+rng.IntN(2))
		clear(net.secret)
		from, to := rng.IntN(net.n), rng.IntN(net.n)
		g := net.graph()
		a, _ := g.Look(nil, "acme", Ref{Issue, fmt.Sprint(from)})
		b, _ := g.Look(nil, "acme", Ref{Issue, fmt.Sprint(to)})
		p := g.Path(nil, "acme", "", a, b)
		steps, forward := net.distances(from, "", true)[to]
		_, back := net.distances(from, "", false)[to]
		switch {
		case forward && (p.Direction != Forward || len(p.Edges) != steps):
			t.Fatalf("seed %d: %s with %d edges, want forward with %d", seed, p.Direction, len(p.Edges), steps)
		case !forward && back && p.Direction != Back:
			t.Fatalf("seed %d: %s, want back", seed, p.Direction)
		case !forward && !back && p.Direction != Mixed && p.Direction != "":
			t.Fatalf("seed %d: %s, want mixed or nothing", seed, p.Direction)
		}
		if len(p.Points) == 0 {
			continue
		}
		if p.Points[0].Ref != a.Ref || p.Points[len(p.Points)-1].Ref != b.Ref || len(p.Edges) != len(p.Points)-1 {
			t.Fatalf("seed %d: from %v to %v", seed, p.Points[0], p.Points[len(p.Points)-1])
		}
		for n, e := range p.Edges {
			x, y := p.Points[n].Ref, p.Points[n+1].Ref
			if p.Direction == Back || p.Direction == Mixed && e.From != x {
				x, y = y, x
			}
			if e.From != x || e.To != y {
				t.Fatalf("seed %d: edge %d is %s to %s, between %s and %s", seed, n, e.From, e.To, x, y)
			}
		}
	}
}

// A node with more edges than one may tell, or than may be read for it, says so.
func TestABusyNodeIsCutOff(t *testing.T) {
	t.Parallel()
	w := net{n: MaxEdges + 10, edges: map[[2]int]bool{}, secret: map[int]string{}}
	for n := 1; n < w.n; n++ {
		w.edges[[2]int{0, n}] = true
	}
	root, _ := w.graph().Look(nil, "acme", Ref{Issue, "0"})
	got := w.graph().Walk(nil, root, Walk{Company: "acme", Effects: true, Nodes: MaxNodes})
	if len(got.Points) != MaxEdges+1 || !got.More || !got.Points[0].More {
		t.Errorf("%d nodes, more %v", len(got.Points), got.More)
	}
	b := Bag{most: MaxEdges}
	for range maxReads {
		if !b.Read() {
			t.Fatal("cut off too early")
		}
	}
	if b.Read() || !b.more {
		t.Error("reads have no bound")
	}
}

// Names that are no IDs are no references, whatever they hold.
func TestReferences(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{"issue:1": true, "ISSUE:1": true, "entry:12": true, "user:ann@example.com": true,
		"issue:": false, ":1": false, "lunch:1": false,
		"issue:a/b": false, "issue:a\x00": false, "issue:a b": false, "issue:../x": false, "issue:" +
			string(make([]byte, 200)): false, "issue": false, "": false} {
		if _, got := ParseRef(name); got != ok {
			t.Errorf("%q: %v, want %v", name, got, ok)
		}
	}
	if got := (Point{}.Named("a\nb\x1b[31m", "c")); got.Label != "a b[31m c" {
		t.Errorf("label %q", got.Label)
	}
}
