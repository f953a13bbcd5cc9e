package sandbox

import "slices"

// callers finds the functions whose stack must be counted: those that can come
// back to themselves, those that lead to one, and all of them when the others
// alone could pile up too high. An indirect call may reach every function of its
// type whose address is taken.
func (m *parsed) callers() []bool {
	n := m.functions()
	g := &graph{edges: make([][]int32, n+len(m.types)), weight: make([]int64, n+len(m.types))}
	for i := range m.bodies {
		m.calls(i, g, int32(n))
	}
	for f := range m.taken {
		t := n + int(m.typeOf(f))
		g.edges[t] = append(g.edges[t], int32(f))
	}
	g.search()
	tracked := make([]bool, n)
	all := g.highest > maxStack/8
	for f := len(m.imports); f < n; f++ {
		tracked[f] = all || g.cyclic[f]
	}
	return tracked
}

// movers are instructions behind 0xfc that change a table, or drop a segment:
// elem.drop, data.drop, and table.init, copy, grow and fill.
var movers = []byte{9, 12, 13, 14, 15, 17}

// calls notes whom a function calls, and takes note of addresses.
func (m *parsed) calls(i int, g *graph, types int32) {
	self := len(m.imports) + i
	r := &reader{b: m.bodies[i], base: m.bodyAt[i]}
	_, locals := r.localTypes(len(m.types[m.funcs[i]].params))
	g.weight[self] = int64(frameBytes + 8*locals)
	seen := map[int32]bool{}
	add := func(to int32) {
		if !seen[to] {
			seen[to] = true
			g.edges[self] = append(g.edges[self], to)
		}
	}
	for r.more() {
		switch op := r.u8(); op {
		case 0x00, 0x01, 0x05, 0x0b, 0x0f, 0x1a:
		case 0x02, 0x03, 0x04:
			r.blockType(m)
		case 0x0c, 0x0d:
			r.leb(5)
		case 0x0e:
			for range r.count(maxTargets, "targets") + 1 {
				r.leb(5)
			}
		case 0x10:
			add(int32(m.funcIndex(r.u32(), r)))
		case 0x11:
			add(types + int32(m.typeIndex(r)))
			r.leb(5)
		case 0xd2:
			m.taken[m.funcIndex(r.u32(), r)] = true
		default:
			at := r.p
			r.immediates(op)
			if op == 0xfc && (r.b[at] == 8 || r.b[at] == 9) {
				m.segments = true
			}
			if op == 0x26 || op == 0xfc && slices.Contains(movers, r.b[at]) {
				m.moving = true
			}
		}
	}
}

// A graph of calls. search fills in cyclic, which says of a vertex that it is on
// a cycle or leads to one, and highest, the heaviest path among the others.
type graph struct {
	edges   [][]int32
	weight  []int64
	cyclic  []bool
	highest int64
}

// search finds strongly connected components after Tarjan, without recursion:
// graphs come from strangers.
func (g *graph) search() {
	n := len(g.edges)
	g.cyclic = make([]bool, n)
	index, low, height := make([]int32, n), make([]int32, n), make([]int64, n)
	onStack := make([]bool, n)
	next := make([]int32, n) // the edge to look at
	var stack, path []int32
	count := int32(0)
	for root := range n {
		if index[root] != 0 {
			continue
		}
		path = append(path, int32(root))
		for len(path) > 0 {
			v := path[len(path)-1]
			if index[v] == 0 {
				count++
				index[v], low[v], onStack[v] = count, count, true
				stack = append(stack, v)
			}
			descended := false
			for next[v] < int32(len(g.edges[v])) {
				u := g.edges[v][next[v]]
				if index[u] == 0 {
					path, descended = append(path, u), true
					break
				}
				next[v]++
				if onStack[u] {
					low[v] = min(low[v], low[u])
					g.cyclic[v] = g.cyclic[v] || u == v
				} else {
					g.cyclic[v] = g.cyclic[v] || g.cyclic[u]
					height[v] = max(height[v], height[u])
				}
			}
			if descended {
				continue
			}
			path = path[:len(path)-1]
			if low[v] != index[v] {
				continue
			}
			g.component(v, &stack, onStack, height)
		}
	}
}

// component takes the component of v, all of which is searched, off the stack.
func (g *graph) component(v int32, stack *[]int32, onStack []bool, height []int64) {
	from := len(*stack) - 1
	for (*stack)[from] != v {
		from--
	}
	members := (*stack)[from:]
	cyclic := len(members) > 1
	for _, u := range members {
		cyclic = cyclic || g.cyclic[u]
	}
	for _, u := range members {
		onStack[u], g.cyclic[u] = false, cyclic
		height[u] += g.weight[u]
		if !cyclic {
			g.highest = max(g.highest, height[u])
		}
	}
	*stack = (*stack)[:from]
}
