package memory

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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

// A savedNode is a vector of a saved graph.
type savedNode struct {
	id    ID
	sum   uint32
	links [][]uint32 // by level
}

// Load takes a saved graph over, for the vectors that are here and are the same. The
// others stay, or become, such as wait for [Space.Link]. When it returns an error, nothing
// was taken over.
func (s *Space) Load(r io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(r, maxGraphFile+1))
	if err != nil {
		return fmt.Errorf("load graph: %w", err)
	}
	nodes, entry, err := s.readGraph(b)
	if err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.linked > 0 {
		return errors.New("load graph: there is one already")
	}
	slots, known := s.knownNodes(nodes)
	if known == 0 || known < len(nodes)*3/4 {
		return nil // too much of it is gone: a new one is better
	}
	s.mu.Lock()
	s.adopt(nodes, slots)
	if s.top >= 0 && slots[entry] >= 0 && len(nodes[entry].links)-1 == s.top {
		s.entry = uint32(slots[entry])
	}
	s.mu.Unlock()
	s.mend()
	return nil
}

// knownNodes returns the slots of saved vectors, -1 for those that are not here as they were.
func (s *Space) knownNodes(nodes []savedNode) (slots []int, known int) {
	slots = make([]int, len(nodes))
	for n, node := range nodes {
		slots[n] = -1
		slot, ok := s.slotOf[node.id]
		if !ok || len(node.links)-1 != node.id.level() {
			continue
		}
		if c, i := s.at(slot); c.sums[i] == node.sum {
			slots[n] = int(slot)
			known++
		}
	}
	return slots, known
}

func (s *Space) adopt(nodes []savedNode, slots []int) {
	for n, node := range nodes {
		if slots[n] < 0 {
			continue
		}
		slot := uint32(slots[n])
		c, i := s.at(slot)
		if c.level[i] != unlinked {
			continue // the file has it twice
		}
		if c.links == nil {
			c.links = make([]uint32, chunkSize*linkRoom)
		}
		level := len(node.links) - 1
		c.level[i] = uint8(level)
		if level > 0 {
			s.upper[slot] = make([]uint32, level*(1+degree))
		}
		for l, to := range node.links {
			var here []uint32
			for _, x := range to {
				if slots[x] >= 0 && slots[x] != slots[n] && len(nodes[x].links) > l {
					here = append(here, uint32(slots[x]))
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

// readGraph checks a saved graph and takes it apart.
func (s *Space) readGraph(b []byte) (nodes []savedNode, entry int, err error) {
	if len(b) < graphHead+sha256.Size || len(b) > maxGraphFile || string(b[:len(graphMagic)]) != graphMagic {
		return nil, 0, ErrDamaged
	}
	body, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if got := sha256.Sum256(body); !bytes.Equal(got[:], sum) {
		return nil, 0, ErrDamaged
	}
	p := graphReader{b: body[len(graphMagic):]}
	dims, deg, count, first := p.uint32(), p.byte(), int(p.uint32()), int(p.uint32())
	if int(dims) != s.dims || deg != degree || count > len(body)/22 || count > 0 && first >= count {
		return nil, 0, ErrDamaged
	}
	nodes = make([]savedNode, count)
	for n := range nodes {
		if nodes[n], err = p.node(uint32(count)); err != nil {
			return nil, 0, err
		}
	}
	if len(p.b) != 0 || p.bad {
		return nil, 0, ErrDamaged
	}
	return nodes, first, nil
}

type graphReader struct {
	b   []byte
	bad bool
}

func (p *graphReader) take(n int) []byte {
	if n > len(p.b) {
		p.bad = true
		return make([]byte, n)
	}
	out := p.b[:n]
	p.b = p.b[n:]
	return out
}

func (p *graphReader) byte() byte     { return p.take(1)[0] }
func (p *graphReader) uint32() uint32 { return binary.BigEndian.Uint32(p.take(4)) }

func (p *graphReader) node(count uint32) (n savedNode, err error) {
	copy(n.id[:], p.take(16))
	n.sum = p.uint32()
	level := int(p.byte())
	if level > maxLevel {
		return n, ErrDamaged
	}
	n.links = make([][]uint32, level+1)
	for l := range n.links {
		links := int(p.byte())
		if links > mostLinks(l) {
			return n, ErrDamaged
		}
		n.links[l] = make([]uint32, links)
		for i := range n.links[l] {
			n.links[l][i] = p.uint32()
		}
		for _, x := range n.links[l] {
			if x >= count {
				return n, ErrDamaged
			}
		}
		if p.bad {
			return n, ErrDamaged
		}
	}
	return n, nil
}
