package memory

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"sync"
)

// A Doc is what a collection knows of a record. Names are strings that are compared as
// they are; "" is none.
type Doc struct {
	ID   ID
	Text string // taken apart, not kept
	Tags []string

	Agent   string // whose it is
	Private bool   // only that agent, and the board, read it
	Project string
	Issue   string
	Run     string
	Kind    string

	CreatedAt  int64 // milliseconds
	ExpiresAt  int64 // 0: never
	Importance int   // 0 to 1,000

	Model  string // of Vector; "" for none
	Vector Vector
}

// A doc is a Doc in a slot.
type doc struct {
	id                               ID
	agent, project, issue, run, kind uint32 // names
	tags                             []uint32
	private                          bool
	created, expires                 int64
	importance                       int32
	model                            uint32
	vector                           uint32 // its slot in the space of the model
	used, hasVector                  bool
}

// A Collection is what one company remembers. Its methods may be called by several
// goroutines at once.
type Collection struct {
	mu     sync.RWMutex // guards all below, but for what is inside the spaces
	docs   []doc
	slotOf map[ID]uint32
	free   []uint32
	lex    *lexicon
	names  names
	spaces map[uint32]*modelSpace // by model: vectors of two models never meet
}

// A modelSpace has the vectors of one model.
type modelSpace struct {
	*Space
	docOf []uint32 // by slot of the space
}

// NewCollection returns an empty collection.
func NewCollection() *Collection {
	return &Collection{slotOf: map[ID]uint32{}, lex: newLexicon(), names: names{of: map[string]uint32{}}, spaces: map[uint32]*modelSpace{}}
}

// names numbers strings while something has them; 0 is "".
type names struct {
	of   map[string]uint32
	all  []name // by number - 1
	free []uint32
}

type name struct {
	text string
	uses int
}

// number returns the number of s and counts one use of it.
func (n *names) number(s string) uint32 {
	if s == "" {
		return 0
	}
	k, ok := n.of[s]
	if !ok {
		k = reuse(&n.free, &n.all, name{text: s}) + 1
		n.of[s] = k
	}
	n.all[k-1].uses++
	return k
}

func (n *names) release(numbers ...uint32) {
	for _, k := range numbers {
		if k == 0 {
			continue
		}
		if u := &n.all[k-1]; u.uses > 1 {
			u.uses--
			continue
		}
		delete(n.of, n.all[k-1].text)
		n.all[k-1] = name{}
		n.free = append(n.free, k-1)
	}
}

func (n *names) text(k uint32) string { return n.all[k-1].text }

// Put enters a record, in the place of the one with its ID. A vector that does not fit the
// others of its model is refused; the record is found by its words even then.
func (c *Collection) Put(d Doc) error {
	if d.Model != "" {
		if err := d.Vector.Check(); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(d.ID)
	row := doc{id: d.ID, agent: c.names.number(d.Agent), project: c.names.number(d.Project), issue: c.names.number(d.Issue), run: c.names.number(d.Run),
		kind: c.names.number(d.Kind), private: d.Private, created: d.CreatedAt, expires: d.ExpiresAt, importance: int32(d.Importance), used: true}
	for _, t := range d.Tags {
		row.tags = append(row.tags, c.names.number(t))
	}
	slot := reuse(&c.free, &c.docs, row)
	c.slotOf[d.ID] = slot
	c.lex.add(slot, d.Text)
	if d.Model == "" {
		return nil
	}
	return c.putVector(slot, d)
}

func (c *Collection) putVector(slot uint32, d Doc) error {
	model := c.names.number(d.Model)
	in := c.spaces[model]
	if in == nil {
		s, err := NewSpace(d.Vector.Dims())
		if err != nil {
			c.names.release(model)
			return err
		}
		in = &modelSpace{Space: s}
		c.spaces[model] = in
	}
	at, err := in.enter(d.ID, d.Vector)
	if err != nil {
		c.names.release(model)
		return err
	}
	for int(at) >= len(in.docOf) {
		in.docOf = append(in.docOf, 0)
	}
	in.docOf[at] = slot
	row := &c.docs[slot]
	row.model, row.vector, row.hasVector = model, at, true
	return nil
}

// Remove takes a record out and reports whether it was there.
func (c *Collection) Remove(id ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.remove(id)
}

func (c *Collection) remove(id ID) bool {
	slot, ok := c.slotOf[id]
	if !ok {
		return false
	}
	d := c.docs[slot]
	if d.hasVector {
		in := c.spaces[d.model]
		in.Remove(id)
		if count, _ := in.Len(); count == 0 {
			delete(c.spaces, d.model)
		}
	}
	c.lex.remove(slot)
	c.names.release(d.agent, d.project, d.issue, d.run, d.kind, d.model)
	c.names.release(d.tags...)
	delete(c.slotOf, id)
	c.docs[slot] = doc{}
	c.free = append(c.free, slot)
	return true
}

// Len is the number of records.
func (c *Collection) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.slotOf)
}

// Each calls f with the ID of each record, in no order; f may change c.
func (c *Collection) Each(f func(ID)) {
	c.mu.RLock()
	all := slices.Collect(maps.Keys(c.slotOf))
	c.mu.RUnlock()
	for _, id := range all {
		f(id)
	}
}

// Link puts at most n vectors of each model into their graphs and returns how many wait.
func (c *Collection) Link(n int) (left int) {
	c.mu.RLock()
	var all []*Space
	for _, s := range c.spaces {
		all = append(all, s.Space)
	}
	c.mu.RUnlock()
	for _, s := range all {
		left += s.Link(n)
	}
	return left
}

// Save writes the graph over the vectors of a model, and Load takes a saved one over; both
// do nothing for a model without vectors.
func (c *Collection) Save(model string, w io.Writer) error {
	if s := c.space(model); s != nil {
		return s.Save(w)
	}
	return nil
}

func (c *Collection) Load(model string, r io.Reader) error {
	if s := c.space(model); s != nil {
		return s.Load(r)
	}
	return nil
}

func (c *Collection) space(model string) *Space {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if in := c.spaces[c.names.of[model]]; in != nil {
		return in.Space
	}
	return nil
}

// A Stat says how big a collection is.
type Stat struct {
	Records, Words, Forms int
	Models                []ModelStat // by name
}

// A ModelStat is that of the vectors of one model.
type ModelStat struct {
	Model                 string
	Dims, Vectors, Linked int
	VectorBytes, Beside   int
}

// Stat returns how big c is.
func (c *Collection) Stat() Stat {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := Stat{Records: len(c.slotOf), Words: c.lex.total, Forms: len(c.lex.formOf), Models: []ModelStat{}}
	for model, in := range c.spaces {
		m := ModelStat{Model: c.names.text(model), Dims: in.dims}
		m.Vectors, m.Linked = in.Len()
		m.VectorBytes, m.Beside = in.Bytes()
		out.Models = append(out.Models, m)
	}
	slices.SortFunc(out.Models, func(a, b ModelStat) int { return cmp.Compare(a.Model, b.Model) })
	return out
}
