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
	Replaced   bool  // another record took its place

	// Model is that of Vector, "" for none. Given: they came with the record. Words is the
	// vector under [Lexical] that it has besides, nil for none.
	Model  string
	Vector Vector
	Given  bool
	Words  Vector
}

// A doc is a Doc in a slot.
type doc struct {
	id                               ID
	agent, project, issue, run, kind uint32 // names
	tags                             []uint32
	private                          bool
	created, expires                 int64
	importance                       int32
	vectors                          [2]place // one of a model, and one of its words
	used, given, replaced            bool
}

// A place is where a vector is: in the space of a model, 0 for none.
type place struct{ model, slot uint32 }

// under returns the slot of d's vector of a model.
func (d *doc) under(model uint32) (slot uint32, ok bool) {
	for _, at := range d.vectors {
		if at.model == model && model != 0 {
			return at.slot, true
		}
	}
	return 0, false
}

// A Collection is what one company remembers. Its methods may be called by several
// goroutines at once.
type Collection struct {
	mu     sync.RWMutex // guards all below, but for what is inside the spaces
	docs   []doc
	slotOf map[ID]uint32
	free   []uint32
	lex    *lexicon
	// plain are the records that everybody reads who reads of the company, at any time; special
	// are private, expire, or were replaced.
	plain, special bitset
	plainCount     int
	plainWords     int
	names          names
	spaces         map[uint32]*modelSpace // by model: vectors of two models never meet
	exact          int                    // see GraphFrom
}

// A modelSpace has the vectors of one model.
type modelSpace struct {
	*Space
	docOf []uint32 // by slot of the space
	docs  bitset   // slots of the records that have a vector in it
}

// NewCollection returns an empty collection.
func NewCollection() *Collection {
	return &Collection{slotOf: map[ID]uint32{}, lex: newLexicon(), names: names{of: map[string]uint32{}},
		spaces: map[uint32]*modelSpace{}, exact: Exact}
}

// GraphFrom sets from how many vectors of a model on a graph is kept, in the place of
// [Exact]. It is called before the first Put.
func (c *Collection) GraphFrom(vectors int) { c.exact = vectors }

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
	if d.Model == Lexical { // it has one place
		d.Words, d.Model, d.Vector = d.Vector, "", nil
	}
	for n, v := range []Vector{d.Vector, d.Words} {
		if n == 0 && d.Model == "" || n == 1 && d.Words == nil {
			continue
		}
		if err := v.Check(); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(d.ID)
	row := doc{id: d.ID, agent: c.names.number(d.Agent), project: c.names.number(d.Project),
		issue: c.names.number(d.Issue), run: c.names.number(d.Run),
		kind: c.names.number(d.Kind), private: d.Private, created: d.CreatedAt, expires: d.ExpiresAt,
		importance: int32(d.Importance), used: true, given: d.Given, replaced: d.Replaced}
	for _, t := range d.Tags {
		row.tags = append(row.tags, c.names.number(t))
	}
	slot := reuse(&c.free, &c.docs, row)
	c.slotOf[d.ID] = slot
	c.lex.add(slot, d.Text)
	c.count(slot, 1)
	var err error
	if d.Model != "" {
		err = c.putVector(slot, 0, d.ID, d.Model, d.Vector)
	}
	if d.Words != nil {
		err = cmp.Or(err, c.putVector(slot, 1, d.ID, Lexical, d.Words))
	}
	return err
}

func (c *Collection) putVector(slot uint32, nth int, id ID, name string, v Vector) error {
	model := c.names.number(name)
	in := c.spaces[model]
	if in == nil {
		s, err := NewSpace(v.Dims())
		if err != nil {
			c.names.release(model)
			return err
		}
		s.exact = c.exact
		in = &modelSpace{Space: s}
		c.spaces[model] = in
	}
	at, err := in.enter(id, v)
	if err != nil {
		c.names.release(model)
		return err
	}
	for int(at) >= len(in.docOf) {
		in.docOf = append(in.docOf, 0)
	}
	in.docOf[at] = slot
	in.docs.set(slot)
	c.docs[slot].vectors[nth] = place{model, at}
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
	for _, at := range d.vectors {
		if at.model == 0 {
			continue
		}
		in := c.spaces[at.model]
		in.Remove(id)
		in.docs.clear(slot)
		if count, _ := in.Len(); count == 0 {
			delete(c.spaces, at.model)
		}
		c.names.release(at.model)
	}
	c.count(slot, -1)
	c.lex.remove(slot)
	c.names.release(d.agent, d.project, d.issue, d.run, d.kind)
	c.names.release(d.tags...)
	delete(c.slotOf, id)
	c.docs[slot] = doc{}
	c.free = append(c.free, slot)
	return true
}

// count enters a record into plain or special, or with -1 takes it out.
func (c *Collection) count(slot uint32, by int) {
	d := &c.docs[slot]
	set := &c.plain
	if d.private || d.expires != 0 || d.replaced {
		set = &c.special
	} else {
		c.plainCount += by
		c.plainWords += by * c.lex.length(slot)
	}
	if by > 0 {
		set.set(slot)
	} else {
		set.clear(slot)
	}
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

// Unembedded returns at most limit records that lack a vector of a model and that were not
// given one, or with "" those that have one of another model than [Lexical]; how many there
// are, and how many records could have one.
func (c *Collection) Unembedded(model string, limit int) (some []ID, left, of int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	number := c.names.of[model]
	for n := range c.docs {
		d := &c.docs[n]
		if !d.used || d.given {
			continue
		}
		of++
		if _, has := d.under(number); has || model == "" && d.vectors[0].model == 0 {
			continue
		}
		if left++; len(some) < limit {
			some = append(some, d.id)
		}
	}
	return some, left, of
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

// Save writes the graph over the vectors of a model, and Load takes a saved one over, which
// is in memory or mapped into it; both do nothing for a model without vectors.
func (c *Collection) Save(model string, w io.Writer) error {
	if s := c.space(model); s != nil {
		return s.Save(w)
	}
	return nil
}

func (c *Collection) Load(model string, file []byte) error {
	if s := c.space(model); s != nil {
		return s.LoadBytes(file)
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
