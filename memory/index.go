package memory

import (
	"io"
	"math/bits"
)

// An Index finds the vectors nearest to a question. Its methods may be called by several
// goroutines at once.
type Index interface {
	// Add enters a vector, in the place of the one that id had.
	Add(id ID, v Vector) error
	// Remove takes a vector out and reports whether it was there.
	Remove(id ID) bool
	// Search returns the k nearest of the vectors that keep accepts, the nearest first;
	// a nil keep accepts all.
	Search(question []float32, k int, keep func(ID) bool) ([]Hit, error)
	// Save writes what is slow to build again. Load takes it over for the vectors that
	// were added before and are the same as they were.
	Save(w io.Writer) error
	Load(r io.Reader) error
}

// A Hit is a vector that a search found.
type Hit struct {
	ID     ID
	Cosine float32
}

// A bitset holds numbers of slots.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) has(n uint32) bool {
	return int(n>>6) < len(b) && b[n>>6]&(1<<(n&63)) != 0
}

// word is the n-th 64 bits.
func (b bitset) word(n int) uint64 {
	if n < len(b) {
		return b[n]
	}
	return 0
}

// each yields the numbers in b, in order.
func (b bitset) each(yield func(uint32) bool) {
	for n, word := range b {
		for ; word != 0; word &= word - 1 {
			if !yield(uint32(n*64 + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}

// both counts the numbers in a and b.
func (b bitset) both(a bitset) (n int) {
	for i := range min(len(a), len(b)) {
		n += bits.OnesCount64(a[i] & b[i])
	}
	return n
}

func (b *bitset) set(n uint32) {
	for int(n>>6) >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[n>>6] |= 1 << (n & 63)
}

func (b bitset) clear(n uint32) {
	if int(n>>6) < len(b) {
		b[n>>6] &^= 1 << (n & 63)
	}
}

// A found slot and its similarity. Of equal ones the lower slot is nearer, so that an
// order follows from the slots alone.
type found struct {
	slot uint32
	sim  float32
}

func (f found) nearer(than found) bool {
	return f.sim > than.sim || f.sim == than.sim && f.slot < than.slot
}

func nearestFirst(a, b found) int {
	switch {
	case a.nearer(b):
		return -1
	case b.nearer(a):
		return 1
	}
	return 0
}

// A heap; its root is the one that before puts first.
type heap[T any] struct {
	items  []T
	before func(a, b T) bool
}

func nearFirst(a, b found) bool { return a.nearer(b) }
func farFirst(a, b found) bool  { return b.nearer(a) }

func (h *heap[T]) push(f T) {
	h.items = append(h.items, f)
	s := h.items
	for i := len(s) - 1; i > 0; {
		p := (i - 1) / 2
		if !h.before(s[i], s[p]) {
			break
		}
		s[i], s[p] = s[p], s[i]
		i = p
	}
}

func (h *heap[T]) pop() T {
	s := h.items
	top := s[0]
	s[0] = s[len(s)-1]
	h.items = s[:len(s)-1]
	h.sink()
	return top
}

// replace puts f in the place of the root.
func (h *heap[T]) replace(f T) {
	h.items[0] = f
	h.sink()
}

func (h *heap[T]) sink() {
	s := h.items
	for i := 0; ; {
		c := 2*i + 1
		if c >= len(s) {
			return
		}
		if c+1 < len(s) && h.before(s[c+1], s[c]) {
			c++
		}
		if !h.before(s[c], s[i]) {
			return
		}
		s[i], s[c] = s[c], s[i]
		i = c
	}
}

// best keeps, of what it is given, the n that before puts last.
func (h *heap[T]) best(n int, f T) {
	if len(h.items) < n {
		h.push(f)
	} else if h.before(h.items[0], f) {
		h.replace(f)
	}
}
