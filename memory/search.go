package memory

import (
	"cmp"
	"errors"
	"slices"
	"sync"
)

// A Search is a question to a collection.
type Search struct {
	Query string
	// Vector is the question under Model. Without one, Query is embedded under [Lexical].
	Vector []float32
	Model  string
	By     By
	Limit  int
	Filter Filter
	Now    int64 // milliseconds; what expired before is not seen

	// HalfLife makes older records count less: half after so many milliseconds. 0: all alike.
	HalfLife int64
	// Importance, 0 to 1,000, says how much a record's own importance counts: at 1,000 the
	// most important one counts twice as much as one without any.
	Importance int
}

// By says what a search goes by.
type By int

const (
	ByBoth By = iota
	ByWords
	ByVectors
)

// A Filter says which records a search may see. Empty fields let everything pass.
type Filter struct {
	// Reader is the agent that asks: it sees what is private to it, and to nobody else.
	// With All, private records of all agents are seen.
	Reader string
	All    bool

	Agents, Projects, Issues, Runs, Kinds []string // one of them
	Tags                                  []string // all of them
	After, Before                         int64    // created at or after, and before
	Replaced                              bool     // also those whose place another took
}

// A Result is a record that a search found, and why.
type Result struct {
	ID    ID
	Score int64 // what came of all below, in billionths

	WordRank int         // 1 is the best by words; 0: not among them
	Words    []WordWorth // those of the question that stand in it
	WordsSum int64       // in units of 1/65,536

	VectorRank int // 1 is the nearest; 0: not among them
	Cosine     float32

	Recency    int // by what age multiplied the score, in thousandths
	Importance int // by what importance did
}

// A WordWorth is a word of the question and what it counted.
type WordWorth struct {
	Word  string
	Worth int64
}

// Found is the answer to a search.
type Found struct {
	Results []Result
	// Seen is how many records the filter let pass: only these were ranked or counted.
	Seen int
	// Model is that of the vectors, "" when none were compared.
	Model string
}

// Refusals of searches.
var (
	ErrNoQuestion = errors.New("query: needs at least one letter or digit, or a vector")
	ErrModel      = errors.New("model: there are no vectors of this model")
)

// fusion is the constant of reciprocal rank fusion: how little the first ranks differ.
const fusion = 60

// Search ranks what the filter lets pass by words, by vectors, or by both: each list gives
// a record 1/(60+rank), and the sum counts, times recency and importance.
func (c *Collection) Search(s Search) (Found, error) {
	q := parseQuery(s.Query)
	model, vector, err := s.question(q)
	if err != nil {
		return Found{}, err
	}
	if len(q.words) == 0 && vector == nil {
		return Found{}, ErrNoQuestion
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	among := c.pass(s)
	out := Found{Results: []Result{}, Seen: among.count}
	if len(q.phrases) > 0 {
		within := among // counts of words stay those of all that may be seen
		within.among, within.count = c.lex.having(among, q)
		return c.rank(s, q, model, vector, among, within, out)
	}
	return c.rank(s, q, model, vector, among, among, out)
}

// question returns the model and the vector to compare.
func (s Search) question(q query) (model string, vector []float32, err error) {
	if s.Vector != nil {
		_, err := largest(s.Vector)
		return cmp.Or(s.Model, Lexical), s.Vector, err
	}
	if s.By == ByWords || s.Model != "" && s.Model != Lexical {
		return "", nil, nil
	}
	if v, ok := Embed(q.plain); ok {
		return Lexical, v.Unpack(), nil
	}
	return "", nil, nil
}

// pass returns the slots that a filter lets pass. Without a choice of some records it looks
// only at those that not everybody may see.
func (c *Collection) pass(s Search) corpus {
	passes, chosen := c.filter(s)
	if chosen {
		out := corpus{among: newBitset(len(c.docs))}
		for slot := range c.docs {
			if passes(&c.docs[slot]) {
				out.add(uint32(slot), c.lex)
			}
		}
		return out
	}
	out := corpus{among: append(make(bitset, 0, len(c.docs)/64+1), c.plain...), count: c.plainCount, words: c.plainWords}
	for slot := range c.special.each {
		if passes(&c.docs[slot]) {
			out.add(slot, c.lex)
		}
	}
	return out
}

func (c *corpus) add(slot uint32, l *lexicon) {
	c.among.set(slot)
	c.count++
	c.words += l.length(slot)
}

// filter returns what decides whether a record passes, and whether it chooses among those
// that everybody may see.
func (c *Collection) filter(s Search) (passes func(*doc) bool, chosen bool) {
	f := s.Filter
	numbers := func(list []string) (out []uint32) {
		for _, name := range list {
			out = append(out, c.names.of[name]) // 0 for an unknown one
		}
		chosen = chosen || len(list) > 0
		return out
	}
	chosen = f.After != 0 || f.Before != 0
	reader := c.names.of[f.Reader]
	agents, projects, issues, runs, kinds, tags := numbers(f.Agents), numbers(f.Projects), numbers(f.Issues),
		numbers(f.Runs), numbers(f.Kinds), numbers(f.Tags)
	oneOf := func(list []uint32, n uint32) bool { return len(list) == 0 || n != 0 && slices.Contains(list, n) }
	return func(d *doc) bool {
		switch {
		case !d.used || d.expires != 0 && d.expires <= s.Now:
		case d.replaced && !f.Replaced:
		case d.private && !f.All && (reader == 0 || d.agent != reader):
		case d.created < f.After || f.Before != 0 && d.created >= f.Before:
		case !oneOf(agents, d.agent) || !oneOf(projects, d.project) || !oneOf(issues, d.issue) || !oneOf(runs, d.run) ||
			!oneOf(kinds, d.kind):
		case slices.ContainsFunc(tags, func(t uint32) bool { return t == 0 || !slices.Contains(d.tags, t) }):
		default:
			return true
		}
		return false
	}, chosen
}

// rank ranks the slots of within by the words of q, as they count among all that may be
// seen, and by vectors, and joins both lists.
func (c *Collection) rank(s Search, q query, model string, vector []float32, among, within corpus,
	out Found) (Found, error) {
	limit := max(1, min(s.Limit, MaxResults))
	most := max(candidates, 4*limit)
	results := map[uint32]*Result{}
	at := func(slot uint32) *Result {
		if results[slot] == nil {
			results[slot] = &Result{ID: c.docs[slot].id}
		}
		return results[slot]
	}
	// Vectors are compared while words are counted.
	var near []found
	var failed error
	var compared sync.WaitGroup
	if s.By != ByWords && vector != nil {
		compared.Go(func() { near, failed = c.byVectors(model, vector, within, most) })
	}
	worths := func(uint32) []int64 { return nil }
	if s.By != ByVectors {
		var best []wordFound
		best, worths = c.lex.ranked(among, q, most, within.among)
		for n, f := range best {
			r := at(f.slot)
			r.WordRank, r.WordsSum = n+1, f.score
		}
	}
	if compared.Wait(); failed != nil {
		return Found{}, failed
	}
	for n, f := range near {
		r := at(f.slot)
		r.VectorRank, r.Cosine, out.Model = n+1, f.sim, model
	}
	for slot, r := range results {
		c.weigh(s, &c.docs[slot], r)
		out.Results = append(out.Results, *r)
	}
	slices.SortFunc(out.Results, func(a, b Result) int {
		return cmp.Or(-cmp.Compare(a.Score, b.Score), slices.Compare(a.ID[:], b.ID[:]))
	})
	out.Results = out.Results[:min(limit, len(out.Results))]
	for n := range out.Results {
		r := &out.Results[n]
		for i, w := range worths(c.slotOf[r.ID]) {
			if w > 0 && r.WordRank > 0 {
				r.Words = append(r.Words, WordWorth{q.words[i].text, w})
			}
		}
	}
	return out, nil
}

// byVectors returns at most so many slots of within, those with the nearest vectors first.
func (c *Collection) byVectors(model string, vector []float32, within corpus, most int) ([]found, error) {
	number := c.names.of[model]
	in := c.spaces[number]
	if in == nil {
		if model == Lexical {
			return nil, nil
		}
		return nil, ErrModel
	}
	keep := func(at uint32) bool { return within.among.has(in.docOf[at]) }
	kept := in.docs.both(within.among)
	if count, _ := in.Len(); kept == count {
		keep = nil // all of them
	}
	list, err := in.among(vector, most, keep, kept)
	for n, f := range list {
		if f.sim <= 0 {
			list = list[:n]
			break
		}
		list[n].slot = in.docOf[f.slot]
	}
	return list, err
}

// weigh joins what a record got.
func (c *Collection) weigh(s Search, d *doc, r *Result) {
	score := int64(0)
	for _, rank := range []int{r.WordRank, r.VectorRank} {
		if rank > 0 {
			score += 1_000_000_000 / int64(fusion+rank)
		}
	}
	r.Recency = recency(s.Now-d.created, s.HalfLife)
	r.Importance = 1000 + s.Importance*int(d.importance)/1000
	r.Score = score * int64(r.Recency) / 1000 * int64(r.Importance) / 1000
}

// recency is 1,000 for what is new and half of it after each half-life, along a straight
// line between.
func recency(age, halfLife int64) int {
	if halfLife <= 0 || age <= 0 {
		return 1000
	}
	whole := age / halfLife
	if whole >= 10 {
		return 1
	}
	rest := (age % halfLife) * 500 / halfLife
	return max(1, int((1000-rest)>>whole))
}
