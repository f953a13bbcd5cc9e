package memory

import (
	"hash/crc32"
	"slices"
	"sync"
	"unsafe"
)

const (
	chunkBits = 10
	chunkSize = 1 << chunkBits
	// linkRoom is a count and the links of the lowest level.
	linkRoom = 1 + 2*degree
	unlinked = 0xff
)

// A chunk has the vectors of 1,024 slots, and their links of the lowest level once there
// is a graph. Chunks stay where they are: growing copies nothing.
type chunk struct {
	vec   []int8
	norm  [chunkSize]float32 // 1 / length; 0 where there is no vector
	level [chunkSize]uint8   // in the graph, or unlinked
	links []uint32
	sums  [chunkSize]uint32 // CRC-32C of the vector as it was packed
}

// A Space is the [Index] of a collection. Up to [Exact] vectors it compares a question
// with each of them. Above it keeps a graph (HNSW: a hierarchy of navigable small
// worlds). New vectors are found at once: those that are not in the graph yet are
// compared one by one, until [Space.Link] has put them in.
//
// Removing a vector takes its bytes out of memory and links its neighbours to each other.
type Space struct {
	dims, stride int
	exact        int // [Exact], but in tests

	// writing is held by whoever changes anything, mu for writing only while links and
	// vectors change. So a search waits for a few copies, not for an insertion's search.
	writing sync.Mutex
	mu      sync.RWMutex

	ids    []ID // by slot
	slotOf map[ID]uint32
	free   []uint32
	chunks []*chunk
	count  int // vectors

	linked  int // of them in the graph
	waiting bitset
	entry   uint32
	top     int                 // level of entry, -1 without a graph
	upper   map[uint32][]uint32 // links above the lowest level: for each a count and degree links
	removed int                 // since the graph was looked through

	visits sync.Pool
}

// NewSpace returns an empty index of vectors with so many components.
func NewSpace(dims int) (*Space, error) {
	if dims < MinDims || dims > MaxDims {
		return nil, ErrDims
	}
	return &Space{dims: dims, stride: strideOf(dims), exact: Exact, slotOf: map[ID]uint32{}, top: -1,
		upper:  map[uint32][]uint32{},
		visits: sync.Pool{New: func() any { return &visited{} }}}, nil
}

// Dims is the number of components of its vectors.
func (s *Space) Dims() int { return s.dims }

// Len is the number of vectors, Linked that of those in the graph.
func (s *Space) Len() (count, linked int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.count, s.linked
}

// Bytes is about the memory that s takes: for vectors, and beside them.
func (s *Space) Bytes() (vectors, beside int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, c := range s.chunks {
		vectors += len(c.vec)
		beside += 4*len(c.links) + int(unsafe.Sizeof(*c))
	}
	for _, u := range s.upper {
		beside += 4*len(u) + 48
	}
	return vectors, beside + 16*cap(s.ids) + 32*len(s.slotOf) + 8*len(s.waiting)
}

func (s *Space) at(slot uint32) (*chunk, int) {
	return s.chunks[slot>>chunkBits], int(slot & (chunkSize - 1))
}

func (s *Space) vec(slot uint32) []int8 {
	c, i := s.at(slot)
	return c.vec[i*s.stride : (i+1)*s.stride : (i+1)*s.stride]
}

func (s *Space) norm(slot uint32) float32 {
	c, i := s.at(slot)
	return c.norm[i]
}

func (s *Space) isLinked(slot uint32) bool {
	c, i := s.at(slot)
	return c.level[i] != unlinked
}

// near is the cosine of a question and a slot, between the cosine of two slots.
func (s *Space) near(q question, slot uint32) float32 {
	c, i := s.at(slot)
	return float32(dot(q.v, c.vec[i*s.stride:(i+1)*s.stride])) * c.norm[i] * q.norm
}

// measure fills in the cosine of each slot of all. Vectors are mostly not in a cache: they are
// all asked for first, and compared four at a time.
func (s *Space) measure(q question, all []found) []found {
	for _, f := range all {
		prefetch(s.vec(f.slot))
	}
	rest := all
	for ; len(rest) >= 4; rest = rest[4:] {
		var products [4]int32
		dot4(q.v, &[4][]int8{s.vec(rest[0].slot), s.vec(rest[1].slot), s.vec(rest[2].slot), s.vec(rest[3].slot)}, &products)
		for i, p := range products {
			rest[i].sim = float32(p) * s.norm(rest[i].slot) * q.norm
		}
	}
	for i := range rest {
		rest[i].sim = s.near(q, rest[i].slot)
	}
	return all
}

func (s *Space) between(a, b uint32) float32 {
	return float32(dotSelf(s.vec(a), s.vec(b))) * s.norm(a) * s.norm(b)
}

// askSlot makes a question of a stored vector.
func (s *Space) askSlot(slot uint32) question {
	q := question{v: make([]int16, s.stride), norm: s.norm(slot) / 8}
	for i, n := range s.vec(slot) {
		q.v[i] = int16(n) * 8
	}
	return q
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Add enters a vector, in the place of the one that id had.
func (s *Space) Add(id ID, v Vector) error {
	_, err := s.enter(id, v)
	return err
}

// enter is Add; it returns the slot.
func (s *Space) enter(id ID, v Vector) (uint32, error) {
	if err := v.Check(); err != nil {
		return 0, err
	}
	if v.Dims() != s.dims {
		return 0, ErrOtherDims
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	sum := crc32.Checksum(v, castagnoli)
	if slot, ok := s.slotOf[id]; ok {
		if c, i := s.at(slot); c.sums[i] == sum && s.same(slot, v) {
			return slot, nil
		}
		s.remove(slot)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.take(id)
	s.store(slot, v, sum)
	return slot, nil
}

func (s *Space) same(slot uint32, v Vector) bool {
	for i, n := range s.vec(slot)[:s.dims] {
		if byte(n) != v[vectorHead+i] {
			return false
		}
	}
	return true
}

// take gives id a slot.
func (s *Space) take(id ID) (slot uint32) {
	if n := len(s.free); n > 0 {
		slot, s.free = s.free[n-1], s.free[:n-1]
		s.ids[slot] = id
	} else {
		slot = uint32(len(s.ids))
		s.ids = append(s.ids, id)
		if int(slot>>chunkBits) == len(s.chunks) {
			c := &chunk{vec: make([]int8, chunkSize*s.stride)}
			for i := range c.level {
				c.level[i] = unlinked
			}
			s.chunks = append(s.chunks, c)
		}
	}
	s.slotOf[id] = slot
	return slot
}

func (s *Space) store(slot uint32, v Vector, sum uint32) {
	c, i := s.at(slot)
	squares := int64(0)
	for k, b := range v[vectorHead:] {
		n := int8(b)
		c.vec[i*s.stride+k] = n
		squares += int64(n) * int64(n)
	}
	c.norm[i], c.sums[i] = inverseRoot(squares), sum
	s.waiting.set(slot)
	s.count++
}

// Remove takes a vector out and reports whether it was there.
func (s *Space) Remove(id ID) bool {
	s.writing.Lock()
	defer s.writing.Unlock()
	slot, ok := s.slotOf[id]
	if ok {
		s.remove(slot)
	}
	return ok
}

// remove takes a slot out of the graph, and its vector out of memory.
func (s *Space) remove(slot uint32) {
	var changes []relink
	if s.isLinked(slot) {
		changes = s.bypass(slot)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlink(slot, changes)
	c, i := s.at(slot)
	clear(s.vec(slot))
	c.norm[i], c.sums[i] = 0, 0
	s.waiting.clear(slot)
	delete(s.slotOf, s.ids[slot])
	s.ids[slot] = ID{}
	s.free = append(s.free, slot)
	s.count--
}

// Search returns the k nearest of the vectors that keep accepts.
func (s *Space) Search(x []float32, k int, keep func(ID) bool) ([]Hit, error) {
	if len(x) != s.dims {
		return nil, ErrOtherDims
	}
	q, err := ask(x, s.stride)
	if err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var among func(uint32) bool
	kept := s.count
	if keep != nil {
		set := newBitset(len(s.ids))
		kept = 0
		for id, slot := range s.slotOf {
			if keep(id) {
				set.set(slot)
				kept++
			}
		}
		among = set.has
	}
	var out []Hit
	for _, f := range s.search(q, k, among, kept) {
		out = append(out, Hit{s.ids[f.slot], f.sim})
	}
	return out, nil
}

// among returns the k nearest of the slots that among accepts, which are kept many; a nil
// among accepts all.
func (s *Space) among(x []float32, k int, among func(uint32) bool, kept int) ([]found, error) {
	if len(x) != s.dims {
		return nil, ErrOtherDims
	}
	q, err := ask(x, s.stride)
	if err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.search(q, k, among, kept), nil
}

func (s *Space) search(q question, k int, among func(uint32) bool, kept int) []found {
	if k <= 0 || kept == 0 {
		return nil
	}
	best := heap[found]{before: farFirst}
	if s.linked == 0 || kept <= s.exact {
		s.scan(q, k, among, nil, &best)
	} else {
		// Where few are kept, a longer beam finds as many of them.
		beam := max(beamSearch, k+k/2) * max(1, min(10, s.count/kept))
		for _, f := range s.descend(q, beam, among) {
			best.best(k, f)
		}
		s.scan(q, k, among, s.waiting, &best)
	}
	slices.SortFunc(best.items, nearestFirst)
	return best.items
}

// scan compares q with each slot that among accepts and, unless it is nil, that is in only.
func (s *Space) scan(q question, k int, among func(uint32) bool, only bitset, best *heap[found]) {
	some := make([]found, 0, 64)
	for n, c := range s.chunks {
		for w := range chunkSize / 64 {
			word := ^uint64(0)
			if at := n*(chunkSize/64) + w; only != nil {
				word = only.word(at)
			}
			some = some[:0]
			for i := w * 64; word != 0; i, word = i+1, word>>1 {
				if slot := uint32(n<<chunkBits + i); word&1 != 0 && c.norm[i] != 0 && (among == nil || among(slot)) {
					some = append(some, found{slot: slot})
				}
			}
			for _, f := range s.measure(q, some) {
				best.best(k, f)
			}
		}
	}
}
