package memory

import (
	"slices"
	"strings"
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
		if have := l.countsIn(c, terms, make([]uint8, len(l.texts))); n == 0 || len(have) < len(slots) {
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

// ranked returns the n best of the slots in within by the words of q, and the worth of
// each word in them. How rare a word is, is counted in the whole corpus.
func (l *lexicon) ranked(c corpus, q query, n int, within bitset) (best []wordFound, worth map[uint32][]int64) {
	score := make([]int64, len(l.texts))
	var any []uint32
	each := make([][]uint32, len(q.words))
	counts, rare := make([][]uint8, len(q.words)), make([]int64, len(q.words))
	for i, w := range q.words {
		counts[i] = make([]uint8, len(l.texts))
		each[i] = l.countsIn(c, l.termsOf(w), counts[i])
		rare[i] = c.rarity(len(each[i]))
		for _, slot := range each[i] {
			if score[slot] == 0 {
				any = append(any, slot)
			}
			score[slot] += c.worth(int(counts[i][slot]), l.length(slot), rare[i])
		}
	}
	// What is no better than the n-th so far is passed over; now and then the list is cut.
	best = make([]wordFound, 0, 4*n)
	least := int64(0)
	for _, slot := range any {
		if score[slot] < least || !within.has(slot) {
			continue
		}
		if best = append(best, wordFound{slot, score[slot]}); len(best) == 4*n {
			slices.SortFunc(best, bestScore)
			best, least = best[:n], best[n-1].score
		}
	}
	slices.SortFunc(best, bestScore)
	best = best[:min(n, len(best))]
	worth = map[uint32][]int64{}
	for _, f := range best {
		worth[f.slot] = make([]int64, len(q.words))
		for i := range q.words {
			if k := int(counts[i][f.slot]); k > 0 {
				worth[f.slot][i] = c.worth(k, l.length(f.slot), rare[i])
			}
		}
	}
	return best, worth
}
