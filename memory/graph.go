package memory

import (
	"slices"
)

// visited marks slots with the number of a search, so that nothing is cleared between
// two searches.
type visited struct {
	mark []uint32
	now  uint32
}

func (s *Space) visit() *visited {
	v := s.visits.Get().(*visited)
	if v.now++; len(v.mark) < len(s.ids) || v.now == 0 {
		v.mark, v.now = make([]uint32, len(s.ids)+len(s.ids)/4+chunkSize), 1
	}
	return v
}

// first reports whether slot was not seen in this search before.
func (v *visited) first(slot uint32) bool {
	if v.mark[slot] == v.now {
		return false
	}
	v.mark[slot] = v.now
	return true
}

// fresh appends those of slots to out that were not seen in this search before.
func (v *visited) fresh(slots []uint32, out []found) []found {
	for _, slot := range slots {
		if v.first(slot) {
			out = append(out, found{slot: slot})
		}
	}
	return out
}

// links are the neighbours of a slot on a level. The caller does not change them.
func (s *Space) links(slot uint32, level int) []uint32 {
	if level == 0 {
		c, i := s.at(slot)
		room := c.links[i*linkRoom : (i+1)*linkRoom]
		return room[1 : 1+room[0]]
	}
	room := s.upper[slot]
	at := (level - 1) * (1 + degree)
	if at >= len(room) {
		return nil
	}
	return room[at+1 : at+1+int(room[at])]
}

func (s *Space) setLinks(slot uint32, level int, to []uint32) {
	var room []uint32
	if level == 0 {
		c, i := s.at(slot)
		room = c.links[i*linkRoom : (i+1)*linkRoom]
	} else {
		at := (level - 1) * (1 + degree)
		room = s.upper[slot][at : at+1+degree]
	}
	room[0] = uint32(len(to))
	copy(room[1:], to)
}

func mostLinks(level int) int {
	if level == 0 {
		return 2 * degree
	}
	return degree
}

// beam follows the nearest candidates on one level, from where it is told, and returns
// the n nearest slots that it met and among accepts; a nil among accepts all.
func (s *Space) beam(q question, from []found, n, level int, among func(uint32) bool) []found {
	v := s.visit()
	defer s.visits.Put(v)
	next := heap[found]{before: nearFirst, items: make([]found, 0, 2*n)}
	met := heap[found]{before: farFirst, items: make([]found, 0, n+1)}
	kept := &met
	if among != nil {
		kept = &heap[found]{before: farFirst, items: make([]found, 0, n+1)}
	}
	meet := func(f found) {
		next.push(f)
		met.best(n, f)
		if among != nil && among(f.slot) {
			kept.best(n, f)
		}
	}
	for _, f := range from {
		if v.first(f.slot) {
			meet(f)
		}
	}
	for len(next.items) > 0 {
		at := next.pop()
		if len(met.items) >= n && met.items[0].nearer(at) {
			break
		}
		var fresh [2 * degree]found
		for _, f := range s.measure(q, v.fresh(s.links(at.slot, level), fresh[:0])) {
			if len(met.items) < n || f.nearer(met.items[0]) {
				meet(f)
			}
		}
	}
	slices.SortFunc(kept.items, nearestFirst)
	return kept.items
}

// descend goes down to the lowest level and returns the n nearest there.
func (s *Space) descend(q question, n int, among func(uint32) bool) []found {
	if s.top < 0 {
		return nil
	}
	at := []found{{s.entry, s.near(q, s.entry)}}
	for level := s.top; level > 0; level-- {
		at = s.beam(q, at, 1, level, nil)
	}
	return s.beam(q, at, n, 0, among)
}

// twins is the cosine from which two vectors count as one when links are chosen: a text
// that is there a thousand times must not take all links and shut itself off.
const twins = 0.9995

// choose returns at most n of the candidates, nearest first: those that are nearer to
// the one who chooses than to another chosen one, so that links lead into all directions;
// then the nearest of the rest.
func (s *Space) choose(from []found, n int) []uint32 {
	out := make([]uint32, 0, n)
	var rest []uint32
	for _, f := range from {
		if len(out) == n {
			return out
		}
		if s.apart(f, out) {
			out = append(out, f.slot)
		} else {
			rest = append(rest, f.slot)
		}
	}
	return append(out, rest[:min(len(rest), n-len(out))]...)
}

func (s *Space) apart(f found, chosen []uint32) bool {
	for _, c := range chosen {
		if b := s.between(f.slot, c); b > f.sim || b > twins {
			return false
		}
	}
	return true
}

// rank orders slots by their nearness to one of them.
func (s *Space) rank(to uint32, slots []uint32) []found {
	out := make([]found, 0, len(slots))
	for _, x := range slots {
		out = append(out, found{x, s.between(to, x)})
	}
	slices.SortFunc(out, nearestFirst)
	return out
}

// A relink is the new links of a slot on a level.
type relink struct {
	slot  uint32
	level int
	to    []uint32
}

// Link puts at most n waiting vectors into the graph, when there are so many that a graph
// helps, and returns how many still wait. Somebody calls it again and again; searches and
// additions go on between and during the calls.
func (s *Space) Link(n int) (left int) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.count <= s.exact && s.linked == 0 {
		return 0
	}
	for w := 0; w < len(s.waiting) && n > 0; w++ {
		for i := uint32(0); s.waiting[w] != 0 && i < 64 && n > 0; i++ {
			if slot := uint32(w)*64 + i; s.waiting.has(slot) {
				s.insert(slot)
				n--
			}
		}
	}
	if left = s.count - s.linked; left == 0 && s.removed >= mendAfter {
		s.mend()
		left = s.count - s.linked
	}
	return left
}

// insert puts a slot into the graph. It reads links without mu: only who holds writing
// changes them.
func (s *Space) insert(slot uint32) {
	level := s.ids[slot].level()
	changes := s.plan(slot, level)
	s.mu.Lock()
	defer s.mu.Unlock()
	c, i := s.at(slot)
	if c.links == nil {
		c.links = make([]uint32, chunkSize*linkRoom)
	}
	c.level[i] = uint8(level)
	if level > 0 {
		s.upper[slot] = make([]uint32, level*(1+degree))
	}
	for _, r := range changes {
		s.setLinks(r.slot, r.level, r.to)
	}
	if level > s.top {
		s.top, s.entry = level, slot
	}
	s.waiting.clear(slot)
	s.linked++
}

// plan finds the links of a new slot, and those of its neighbours to it.
func (s *Space) plan(slot uint32, level int) (changes []relink) {
	if s.top < 0 {
		return nil
	}
	q := s.askSlot(slot)
	at := []found{{s.entry, s.near(q, s.entry)}}
	for l := s.top; l > level; l-- {
		at = s.beam(q, at, 1, l, nil)
	}
	for l := min(level, s.top); l >= 0; l-- {
		at = s.beam(q, at, beamBuild, l, nil)
		own := s.choose(at, degree)
		changes = append(changes, relink{slot, l, own})
		back := make([]relink, 0, len(own))
		reached := false
		for _, n := range own {
			to := s.linkBack(n, slot, l)
			reached = reached || slices.Contains(to, slot)
			back = append(back, relink{n, l, to})
		}
		if !reached && len(back) > 0 { // nothing would lead to it
			to := back[0].to
			to[len(to)-1] = slot
		}
		changes = append(changes, back...)
	}
	return changes
}

// linkBack returns the links of n with a new one among them, where it is worth it.
func (s *Space) linkBack(n, slot uint32, level int) []uint32 {
	to := append(slices.Clone(s.links(n, level)), slot)
	if most := mostLinks(level); len(to) > most {
		return s.choose(s.rank(n, to), most)
	}
	return to
}

// bypass finds who is linked to a slot that goes, and links them to its neighbours.
func (s *Space) bypass(slot uint32) (changes []relink) {
	c, i := s.at(slot)
	for level := int(c.level[i]); level >= 0; level-- {
		out := s.links(slot, level)
		for n := range s.linkedTo(slot, level) {
			to := slices.Clone(s.links(n, level))
			to = slices.DeleteFunc(to, func(x uint32) bool { return x == slot })
			for _, x := range out {
				if x != n && !slices.Contains(to, x) {
					to = append(to, x)
				}
			}
			changes = append(changes, relink{n, level, s.choose(s.rank(n, to), mostLinks(level))})
		}
	}
	return changes
}

// linkedTo yields the slots that have a link to slot.
func (s *Space) linkedTo(slot uint32, level int) func(yield func(uint32) bool) {
	return func(yield func(uint32) bool) {
		if level > 0 {
			for _, n := range s.uppers() {
				if slices.Contains(s.links(n, level), slot) && !yield(n) {
					return
				}
			}
			return
		}
		for n := range uint32(len(s.ids)) {
			if s.isLinked(n) && slices.Contains(s.links(n, 0), slot) && !yield(n) {
				return
			}
		}
	}
}

// uppers are the slots above the lowest level, in order.
func (s *Space) uppers() []uint32 {
	out := make([]uint32, 0, len(s.upper))
	for n := range s.upper {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// unlink takes a slot out of the graph and carries out what bypass found.
func (s *Space) unlink(slot uint32, changes []relink) {
	if !s.isLinked(slot) {
		return
	}
	for _, r := range changes {
		s.setLinks(r.slot, r.level, r.to)
	}
	c, i := s.at(slot)
	clear(c.links[i*linkRoom : (i+1)*linkRoom])
	c.level[i] = unlinked
	delete(s.upper, slot)
	s.linked--
	s.removed++
	if s.entry == slot {
		s.enterElsewhere()
	}
}

// enterElsewhere makes the lowest slot of the highest level the entry.
func (s *Space) enterElsewhere() {
	s.top = -1
	for n := range uint32(len(s.ids)) {
		if c, i := s.at(n); c.level[i] != unlinked && int(c.level[i]) > s.top {
			s.top, s.entry = int(c.level[i]), n
		}
	}
}

// mend looks through the lowest level and puts in again what no link leads to. What
// stays alone even then waits outside the graph, where every search looks.
func (s *Space) mend() {
	s.removed = 0
	for try := range 2 {
		lost := s.unreached()
		for _, slot := range lost {
			changes := s.bypass(slot)
			s.mu.Lock()
			s.unlink(slot, changes)
			s.waiting.set(slot)
			s.mu.Unlock()
			if try == 0 {
				s.insert(slot)
			}
		}
		if len(lost) == 0 {
			break
		}
	}
	s.removed = 0
}

// unreached returns the slots of the graph to which no way leads from the entry.
func (s *Space) unreached() (lost []uint32) {
	if s.top < 0 {
		return nil
	}
	seen := newBitset(len(s.ids))
	seen.set(s.entry)
	for next := []uint32{s.entry}; len(next) > 0; {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		for _, n := range s.links(at, 0) {
			if !seen.has(n) {
				seen.set(n)
				next = append(next, n)
			}
		}
	}
	for n := range uint32(len(s.ids)) {
		if s.isLinked(n) && !seen.has(n) {
			lost = append(lost, n)
		}
	}
	return lost
}
