package memory

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// A query is a question taken apart. Words in double quotes form a phrase, which a text
// must have as it stands, stems aside. A word that ends in an asterisk is a prefix.
type query struct {
	words   []queryWord
	phrases [][]queryWord
	plain   string // without marks, for the vector
}

type queryWord struct {
	text   string
	prefix bool
}

func parseQuery(text string) (q query) {
	for n, part := range strings.Split(text, `"`) {
		words := splitQuery(part)
		if n%2 == 1 && len(words) > 0 {
			q.phrases = append(q.phrases, words[:min(len(words), MaxQueryWords)])
		}
		for _, w := range words {
			if len(q.words) < MaxQueryWords && !slices.Contains(q.words, w) {
				q.words = append(q.words, w)
			}
		}
	}
	q.phrases = q.phrases[:min(len(q.phrases), MaxQueryWords)]
	q.plain = strings.NewReplacer(`"`, " ", "*", " ").Replace(text)
	return q
}

func splitQuery(text string) (out []queryWord) {
	for field := range strings.FieldsSeq(text) {
		prefix := strings.HasSuffix(field, "*")
		for w := range splitWords(field) {
			out = append(out, queryWord{text: w})
		}
		if prefix && len(out) > 0 {
			out[len(out)-1].prefix = true
		}
	}
	return out
}

// terms are what a word of a question stands for, in l.
func (l *lexicon) termsOf(w queryWord) []uint32 {
	if w.prefix {
		terms := l.beginning(w.text)
		slices.Sort(terms)
		return slices.Compact(terms)
	}
	return l.stemmed(w.text)
}

// having returns those slots of the corpus that have all phrases of q.
func (l *lexicon) having(c corpus, q query) (out bitset, count int) {
	phrases := make([][][]uint32, len(q.phrases))
	for n, p := range q.phrases {
		for _, w := range p {
			phrases[n] = append(phrases[n], l.termsOf(w))
		}
	}
	out = newBitset(len(l.texts))
	for _, slot := range l.rarest(c, phrases[0]) {
		if !slices.ContainsFunc(phrases, func(p [][]uint32) bool { return !l.hasPhrase(slot, p) }) {
			out.set(slot)
			count++
		}
	}
	return out, count
}

// rarest returns the slots that have that word of a phrase which the fewest have.
func (l *lexicon) rarest(c corpus, phrase [][]uint32) (slots []uint32) {
	for n, terms := range phrase {
		if have := l.countsIn(c, terms, make([]uint8, len(l.texts)), nil); n == 0 || len(have) < len(slots) {
			slots = have
		}
	}
	return slots
}

func (l *lexicon) hasPhrase(slot uint32, phrase [][]uint32) bool {
	seq := l.texts[slot]
	for at := 0; at+len(phrase) <= len(seq); at++ {
		n := 0
		for n < len(phrase) && l.isOf(seq[at+n], phrase[n]) {
			n++
		}
		if n == len(phrase) {
			return true
		}
	}
	return false
}

// isOf reports whether a form has one of the terms.
func (l *lexicon) isOf(f uint32, terms []uint32) bool {
	for _, t := range l.forms[f].terms {
		if slices.Contains(terms, t) {
			return true
		}
	}
	return false
}

// A wanted is a word of a question, and what it can count in a corpus.
type wanted struct {
	number int // in the question
	terms  []uint32
	rare   int64
	most   int64 // no text gets more for it

	postings int // to look at
}

// ranked returns the n best of the slots in within by the words of q, and what tells the
// worth of each word in one of them. How rare a word is, is counted in the whole corpus.
//
// Words that can count most come first. Once what the others can add does not bring a new
// text among the n best, only texts that were met and still can be among them are looked at:
// most questions have words that stand in half of all texts and decide nothing.
func (l *lexicon) ranked(c corpus, q query, n int, within bitset) (best []wordFound, worths func(slot uint32) []int64) {
	words := make([]wanted, len(q.words))
	rest := int64(0) // what the words to come can add
	for i, w := range q.words {
		words[i] = l.wanted(c, i, l.termsOf(w))
		rest += words[i].most
	}
	slices.SortStableFunc(words, func(a, b wanted) int { return cmp.Compare(b.most, a.most) })
	t := tally{lexicon: l, corpus: c, n: n, within: within, scratch: takeScratch(len(l.texts))}
	defer t.giveBack()
	counted := 0
	for ; counted < len(words); counted++ {
		w := words[counted]
		closed := t.narrow(rest)
		if closed && len(t.met)*perText < w.postings {
			break
		}
		t.add(w, closed)
		rest -= w.most
	}
	t.narrow(rest)
	for _, slot := range t.met {
		best = append(best, wordFound{slot, t.score[slot] + t.exactly(slot, words[counted:], nil)})
	}
	slices.SortFunc(best, bestScore)
	return best[:min(n, len(best))], func(slot uint32) []int64 {
		each := make([]int64, len(words))
		t.exactly(slot, words, each)
		return each
	}
}

// perText is how many postings are looked at in the time that one text takes.
const perText = 16

// A tally counts what the texts of a corpus are worth for a question.
type tally struct {
	*lexicon
	corpus corpus
	n      int // texts are wanted
	within bitset
	*scratch
}

// A scratch has room for what a search counts. It is used again and again: room that is
// new costs more than the counting, where the system has to find the pages.
type scratch struct {
	score []int64 // by slot; all zero between two searches, but for met
	met   []uint32
	often []uint8  // all zero between two words
	slots []uint32 // that have a word
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func takeScratch(slots int) *scratch {
	s := scratches.Get().(*scratch)
	if len(s.score) < slots {
		s.score, s.often = make([]int64, slots+slots/8), make([]uint8, slots+slots/8)
	}
	return s
}

// giveBack ends the use of the scores; what the words are worth can still be told.
func (t *tally) giveBack() {
	for _, slot := range t.met {
		t.score[slot] = 0
	}
	t.met = t.met[:0]
	scratches.Put(t.scratch)
	t.scratch = nil
}

// narrow leaves of the texts that were met those that can be among the n best when at most
// rest is added, and reports whether these are all that can.
func (t *tally) narrow(rest int64) (closed bool) {
	if len(t.met) < t.n {
		return false
	}
	least := nthBest(t.met, t.score, t.n)
	if rest >= least {
		return false
	}
	t.met = slices.DeleteFunc(t.met, func(slot uint32) bool {
		if t.score[slot]+rest >= least {
			return false
		}
		t.score[slot] = 0
		return true
	})
	return true
}

// add counts a word in all texts, or in those that were met.
func (t *tally) add(w wanted, met bool) {
	t.slots = t.countsIn(t.corpus, w.terms, t.often, t.slots[:0])
	for _, slot := range t.slots {
		k := int(t.often[slot])
		t.often[slot] = 0
		if t.score[slot] == 0 {
			if met || !t.within.has(slot) {
				continue
			}
			t.met = append(t.met, slot)
		}
		t.score[slot] += t.corpus.worth(k, t.length(slot), w.rare)
	}
}

// exactly looks into a text itself: what it is worth for words of the question. Where each
// is not nil, it takes the worth of each word.
func (t *tally) exactly(slot uint32, words []wanted, each []int64) (sum int64) {
	for _, w := range words {
		k := t.countIn(slot, w.terms)
		if k == 0 {
			continue
		}
		worth := t.corpus.worth(k, t.length(slot), w.rare)
		if sum += worth; each != nil {
			each[w.number] = worth
		}
	}
	return sum
}

// wanted counts in how many texts of the corpus a word stands, and how often at most.
func (l *lexicon) wanted(c corpus, number int, terms []uint32) wanted {
	within, most, postings := 0, uint8(0), 0
	var seen bitset
	if len(terms) > 1 {
		seen = newBitset(len(l.texts))
	}
	for _, t := range terms {
		postings += len(l.terms[t].postings)
		for _, p := range l.terms[t].postings {
			if slot := p >> 8; c.among.has(slot) && (seen == nil || !seen.has(slot)) {
				within++
				if seen != nil {
					seen.set(slot)
				}
			}
			most = max(most, uint8(p))
		}
	}
	w := wanted{number: number, terms: terms, rare: c.rarity(within), postings: postings}
	if within > 0 {
		// The shortest text that has it so often; one more for what was rounded.
		w.most = c.worth(int(most), int(most), w.rare) + w.rare>>10 + 1
	}
	return w
}

// countIn is how often a text has that one of the terms which it has most often, as a
// posting counts it.
func (l *lexicon) countIn(slot uint32, terms []uint32) (most int) {
	for _, t := range terms {
		n := 0
		for _, f := range l.texts[slot] {
			if slices.Contains(l.forms[f].terms, t) {
				n++
			}
		}
		most = max(most, min(255, n))
	}
	return most
}

// nthBest is the n-th highest score of slots, of which there are n at least.
func nthBest(slots []uint32, score []int64, n int) int64 {
	high := heap[int64]{before: func(a, b int64) bool { return a < b }, items: make([]int64, 0, n)}
	for _, slot := range slots {
		high.best(n, score[slot])
	}
	return high.items[0]
}
