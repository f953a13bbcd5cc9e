package memory

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"sync"
)

// A lexicon knows which words stand in which slot, in which order. It keeps a number for
// each word of a text, and for each stem a list of slots with counts.
type lexicon struct {
	forms    []form // words as they are written
	formOf   map[string]uint32
	freeForm []uint32
	terms    []term // their stems
	termOf   map[string]uint32
	freeTerm []uint32

	texts [][]uint32 // by slot: the forms of a text in order
	total int        // words in all

	sorting sync.Mutex // guards sorted between searches
	sorted  []string   // forms in order, for prefixes; nil when they changed
}

type form struct {
	text  string
	terms []uint32 // one, or two where the languages differ
	uses  int
}

// A term's postings are slot<<8 | count; a count stops at 255.
type term struct {
	text     string
	postings []uint32
	uses     int // forms that have it
}

func newLexicon() *lexicon {
	return &lexicon{formOf: map[string]uint32{}, termOf: map[string]uint32{}}
}

// add enters a text; the slot has none.
func (l *lexicon) add(slot uint32, text string) {
	for int(slot) >= len(l.texts) {
		l.texts = append(l.texts, nil)
	}
	var seq []uint32
	for w := range splitWords(text) {
		f := l.form(w)
		l.forms[f].uses++
		seq = append(seq, f)
	}
	l.texts[slot] = slices.Clip(seq)
	l.total += len(seq)
	for _, c := range l.counts(seq) {
		t := &l.terms[c.term]
		t.postings = append(t.postings, slot<<8|c.count)
	}
}

// remove takes the text of a slot out, and the words that no other text has.
func (l *lexicon) remove(slot uint32) {
	if int(slot) >= len(l.texts) {
		return
	}
	seq := l.texts[slot]
	for _, c := range l.counts(seq) {
		t := &l.terms[c.term]
		if i := slices.IndexFunc(t.postings, func(p uint32) bool { return p>>8 == slot }); i >= 0 {
			last := len(t.postings) - 1
			t.postings[i] = t.postings[last]
			t.postings = t.postings[:last]
		}
	}
	l.texts[slot] = nil
	l.total -= len(seq)
	for _, f := range seq {
		if l.forms[f].uses--; l.forms[f].uses == 0 {
			l.dropForm(f)
		}
	}
}

type termCount struct{ term, count uint32 }

// counts are the terms of a text, by number.
func (l *lexicon) counts(seq []uint32) (out []termCount) {
	all := make([]uint32, 0, 2*len(seq))
	for _, f := range seq {
		all = append(all, l.forms[f].terms...)
	}
	slices.Sort(all)
	for _, t := range all {
		if n := len(out) - 1; n >= 0 && out[n].term == t {
			out[n].count = min(255, out[n].count+1)
		} else {
			out = append(out, termCount{t, 1})
		}
	}
	return out
}

func (l *lexicon) form(w string) uint32 {
	if f, ok := l.formOf[w]; ok {
		return f
	}
	w = strings.Clone(w)
	english, german := stems(w)
	f := form{text: w, terms: []uint32{l.term(english)}}
	if german != english {
		f.terms = append(f.terms, l.term(german))
	}
	n := reuse(&l.freeForm, &l.forms, f)
	l.formOf[w] = n
	l.sorted = nil
	return n
}

func (l *lexicon) term(stem string) uint32 {
	n, ok := l.termOf[stem]
	if !ok {
		stem = strings.Clone(stem)
		n = reuse(&l.freeTerm, &l.terms, term{text: stem})
		l.termOf[stem] = n
	}
	l.terms[n].uses++
	return n
}

// reuse puts v where something went, or at the end.
func reuse[T any](free *[]uint32, all *[]T, v T) (at uint32) {
	if n := len(*free); n > 0 {
		at, *free = (*free)[n-1], (*free)[:n-1]
		(*all)[at] = v
		return at
	}
	*all = append(*all, v)
	return uint32(len(*all) - 1)
}

func (l *lexicon) dropForm(f uint32) {
	for _, t := range l.forms[f].terms {
		if l.terms[t].uses--; l.terms[t].uses == 0 {
			delete(l.termOf, l.terms[t].text)
			l.terms[t] = term{}
			l.freeTerm = append(l.freeTerm, t)
		}
	}
	delete(l.formOf, l.forms[f].text)
	l.forms[f] = form{}
	l.freeForm = append(l.freeForm, f)
	l.sorted = nil
}

func (l *lexicon) length(slot uint32) int {
	if int(slot) >= len(l.texts) {
		return 0
	}
	return len(l.texts[slot])
}

// inOrder returns the forms in order.
func (l *lexicon) inOrder() []string {
	l.sorting.Lock()
	defer l.sorting.Unlock()
	if l.sorted != nil {
		return l.sorted
	}
	l.sorted = make([]string, 0, len(l.formOf))
	for w := range l.formOf {
		l.sorted = append(l.sorted, w)
	}
	slices.Sort(l.sorted)
	return l.sorted
}

// beginning returns the terms of at most maxExpansions forms that begin with prefix.
func (l *lexicon) beginning(prefix string) (terms []uint32) {
	all := l.inOrder()
	at, _ := slices.BinarySearch(all, prefix)
	for n := at; n < len(all) && n < at+maxExpansions && strings.HasPrefix(all[n], prefix); n++ {
		terms = append(terms, l.forms[l.formOf[all[n]]].terms...)
	}
	return terms
}

// stemmed returns the terms that a word stands for.
func (l *lexicon) stemmed(w string) (terms []uint32) {
	english, german := stems(w)
	for _, stem := range []string{english, german} {
		if t, ok := l.termOf[stem]; ok && !slices.Contains(terms, t) {
			terms = append(terms, t)
		}
	}
	return terms
}

// A corpus is what a search ranks in: the slots that may be seen, and what is true of
// them alone. What else is there has no influence on a score.
type corpus struct {
	among bitset
	count int // slots
	words int // in all of them
}

// countsIn adds up how often each slot of the corpus has one of the terms, and appends those
// that have one to slots.
func (l *lexicon) countsIn(c corpus, terms []uint32, into []uint8, slots []uint32) []uint32 {
	for _, t := range terms {
		for _, p := range l.terms[t].postings {
			slot := p >> 8
			if !c.among.has(slot) {
				continue
			}
			if into[slot] == 0 {
				slots = append(slots, slot)
			}
			into[slot] = max(into[slot], uint8(p))
		}
	}
	return slots
}

// The constants of BM25, times 1,000: how soon more of the same word stops to count, and
// how much the length of a text does.
const (
	bmK = 1200
	bmB = 750
)

// rarity is what a word counts for that stands in so many texts of the corpus.
func (c corpus) rarity(within int) int64 { return log2(uint64(2*c.count+2)) - log2(uint64(2*within+1)) }

// worth is the score of a word of some rarity that stands count times in a text of so many
// words: BM25, in units of 1/65,536, and 1 at least.
func (c corpus) worth(count, length int, rare int64) int64 {
	long := int64(1000-bmB)*bmK/1000 + int64(bmB)*bmK/1000*int64(length)*int64(c.count)/int64(max(c.words, 1))
	return max(1, rare*(int64(count)*(bmK+1000)*1024/(int64(count)*1000+long))>>10)
}

// log2 is the binary logarithm times 65,536, in integers alone. x is not zero.
func log2(x uint64) int64 {
	whole := bits.Len64(x) - 1
	m := x << (63 - whole) // 1.63 fixed point, 1 to 2
	out := int64(whole)
	for range 16 {
		hi, _ := bits.Mul64(m, m) // 2.62
		out <<= 1
		if hi >= 1<<63 {
			out |= 1
			m = hi
		} else {
			m = hi << 1
		}
	}
	return out
}

// A wordFound is a word of a question, and what it was worth in a text.
type wordFound struct {
	slot  uint32
	score int64
}

func bestScore(a, b wordFound) int {
	return cmp.Or(-cmp.Compare(a.score, b.score), cmp.Compare(a.slot, b.slot))
}
