package memory

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
)

// A saved graph has no vectors: those are rows of the state, and what is forgotten there
// must not live on in a file. It is
//
//	"SELVGRF1"
//	components (4), degree (1), vectors (4), number of the entry (4)
//	for each vector: ID (16), CRC-32C of the packed vector (4), level (1),
//	  for each level from the lowest: count (1), and so many numbers (4)
//	SHA-256 of all bytes before (32)
//
// Numbers are big-endian; a vector's number is its place in the file, from 0. A reader
// that does not know the first eight bytes, or finds another sum, builds the graph anew.
const graphMagic = "SELVGRF1"

// ErrDamaged says that a saved graph is cut, altered or of another format.
var ErrDamaged = errors.New("saved graph: is damaged or of another format")

const graphHead = len(graphMagic) + 4 + 1 + 4 + 4

// Save writes the graph. Additions wait meanwhile, searches do not.
func (s *Space) Save(w io.Writer) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	sum := sha256.New()
	out := io.MultiWriter(w, sum)
	number := make([]uint32, len(s.ids))
	slots := make([]uint32, 0, s.linked)
	for n := range uint32(len(s.ids)) {
		if s.isLinked(n) {
			number[n] = uint32(len(slots))
			slots = append(slots, n)
		}
	}
	b := make([]byte, 0, 64<<10)
	b = append(b, graphMagic...)
	b = binary.BigEndian.AppendUint32(b, uint32(s.dims))
	b = append(b, degree)
	b = binary.BigEndian.AppendUint32(b, uint32(len(slots)))
	entry := uint32(0)
	if s.top >= 0 {
		entry = number[s.entry]
	}
	b = binary.BigEndian.AppendUint32(b, entry)
	for _, slot := range slots {
		b = s.appendNode(b, slot, number)
		if len(b) > 60<<10 {
			if _, err := out.Write(b); err != nil {
				return fmt.Errorf("save graph: %w", err)
			}
			b = b[:0]
		}
	}
	if _, err := out.Write(b); err != nil {
		return fmt.Errorf("save graph: %w", err)
	}
	if _, err := w.Write(sum.Sum(nil)); err != nil {
		return fmt.Errorf("save graph: %w", err)
	}
	return nil
}

func (s *Space) appendNode(b []byte, slot uint32, number []uint32) []byte {
	c, i := s.at(slot)
	b = append(b, s.ids[slot][:]...)
	b = binary.BigEndian.AppendUint32(b, c.sums[i])
	b = append(b, c.level[i])
	for level := range int(c.level[i]) + 1 {
		to := s.links(slot, level)
		b = append(b, byte(len(to)))
		for _, n := range to {
			b = binary.BigEndian.AppendUint32(b, number[n])
		}
	}
	return b
}

// Load takes a saved graph over, for the vectors that are here and are the same. The
// others stay, or become, such as wait for [Space.Link]. When it returns an error, nothing
// was taken over.
func (s *Space) Load(r io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(r, maxGraphFile+1))
	if err != nil {
		return fmt.Errorf("load graph: %w", err)
	}
	return s.LoadBytes(b)
}

// LoadBytes is Load of a file that is in memory already, or mapped into it. It takes 8
// bytes a vector while it reads, and keeps nothing of b.
func (s *Space) LoadBytes(b []byte) error {
	g, err := s.readGraph(b)
	if err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.linked > 0 {
		return errors.New("load graph: there is one already")
	}
	slots, known := s.knownNodes(g)
	if known == 0 || known < len(g.at)*3/4 {
		return nil // too much of it is gone: a new one is better
	}
	s.mu.Lock()
	s.adopt(g, slots)
	if s.top >= 0 && slots[g.entry] != gone && g.level(g.entry) == s.top {
		s.entry = slots[g.entry]
	}
	s.mu.Unlock()
	s.mend()
	return nil
}

// gone stands for the slot of a saved vector that is not here as it was.
const gone = ^uint32(0)

// knownNodes returns the slots of saved vectors.
func (s *Space) knownNodes(g savedGraph) (slots []uint32, known int) {
	slots = make([]uint32, len(g.at))
	for n := range g.at {
		slots[n] = gone
		id := g.id(n)
		slot, ok := s.slotOf[id]
		if !ok || g.level(n) != id.level() {
			continue
		}
		if c, i := s.at(slot); c.sums[i] == g.sum(n) {
			slots[n] = slot
			known++
		}
	}
	return slots, known
}

func (s *Space) adopt(g savedGraph, slots []uint32) {
	here := make([]uint32, 0, 2*degree)
	for n, slot := range slots {
		if slot == gone {
			continue
		}
		c, i := s.at(slot)
		if c.level[i] != unlinked {
			continue // the file has it twice
		}
		if c.links == nil {
			c.links = make([]uint32, chunkSize*linkRoom)
		}
		level := g.level(n)
		c.level[i] = uint8(level)
		if level > 0 {
			s.upper[slot] = make([]uint32, level*(1+degree))
		}
		for l, to := range g.links(n) {
			here = here[:0]
			for ; len(to) > 0; to = to[4:] {
				x := binary.BigEndian.Uint32(to)
				if slots[x] != gone && slots[x] != slot && g.level(int(x)) >= l {
					here = append(here, slots[x])
				}
			}
			s.setLinks(slot, l, here)
		}
		s.waiting.clear(slot)
		s.linked++
		if level > s.top {
			s.top, s.entry = level, slot
		}
	}
}

// A savedGraph is a saved graph that was checked: where each vector begins in it.
type savedGraph struct {
	b     []byte
	at    []uint32
	entry int
}

const _ = uint(1<<32 - 1 - maxGraphFile)

func (g savedGraph) id(n int) ID      { return ID(g.b[g.at[n]:]) }
func (g savedGraph) sum(n int) uint32 { return binary.BigEndian.Uint32(g.b[g.at[n]+16:]) }
func (g savedGraph) level(n int) int  { return int(g.b[g.at[n]+20]) }

// links yields the levels of a vector with the numbers that it is linked to, 4 bytes each.
func (g savedGraph) links(n int) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		b := g.b[g.at[n]+21:]
		for level := range g.level(n) + 1 {
			size := 4 * int(b[0])
			if !yield(level, b[1:1+size]) {
				return
			}
			b = b[1+size:]
		}
	}
}

// readGraph checks a saved graph, and finds where its vectors begin.
func (s *Space) readGraph(b []byte) (g savedGraph, err error) {
	if len(b) < graphHead+sha256.Size || len(b) > maxGraphFile || string(b[:len(graphMagic)]) != graphMagic {
		return g, ErrDamaged
	}
	body, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if got := sha256.Sum256(body); !bytes.Equal(got[:], sum) {
		return g, ErrDamaged
	}
	p := graphReader{b: body, at: len(graphMagic)}
	dims, deg, count, first := p.uint32(), p.byte(), int(p.uint32()), int(p.uint32())
	if int(dims) != s.dims || deg != degree || count > len(body)/22 || count > 0 && first >= count {
		return g, ErrDamaged
	}
	g = savedGraph{b: body, at: make([]uint32, count), entry: first}
	for n := range g.at {
		g.at[n] = uint32(p.at)
		if !p.node(uint32(count)) {
			return g, ErrDamaged
		}
	}
	if p.at != len(p.b) || p.bad {
		return g, ErrDamaged
	}
	return g, nil
}

// A graphReader checks a saved graph from its beginning to its end.
type graphReader struct {
	b   []byte
	at  int
	bad bool
}

func (p *graphReader) take(n int) []byte {
	if n > len(p.b)-p.at {
		p.bad = true
		return make([]byte, n)
	}
	p.at += n
	return p.b[p.at-n : p.at]
}

func (p *graphReader) byte() byte     { return p.take(1)[0] }
func (p *graphReader) uint32() uint32 { return binary.BigEndian.Uint32(p.take(4)) }

// node reads one vector of count, and reports whether it can be one.
func (p *graphReader) node(count uint32) bool {
	p.take(16 + 4)
	level := int(p.byte())
	if level > maxLevel {
		return false
	}
	for l := range level + 1 {
		links := int(p.byte())
		if links > mostLinks(l) {
			return false
		}
		for to := p.take(4 * links); len(to) > 0; to = to[4:] {
			if binary.BigEndian.Uint32(to) >= count {
				return false
			}
		}
		if p.bad {
			return false
		}
	}
	return true
}
