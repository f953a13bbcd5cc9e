package memory

import (
	"hash/fnv"
	"strings"
)

const (
	// Lexical is the model that is always there: [Embed].
	Lexical = "selvage-lexical-1"
	// LexicalDims is the number of components of its vectors.
	LexicalDims = 384
)

// Weights of what a text is made of, before a word's own weight.
const (
	weighStem   = 64 // a stem, half of it for each where the languages differ
	weighPair   = 24 // two stems in a row
	weighGrams  = 96 // all pieces of one word together
	leastGram   = 3
	mostGram    = 5
	commonShare = 8 // common words count for an eighth
)

// Embed returns the vector of a text under the model [Lexical], and false for a text
// without a letter or digit. It needs no weights of a trained network: stems, pairs of
// stems and pieces of words are hashed to components, so texts that share words, or parts
// of words, are near each other. It knows no meanings. It computes with integers, so the
// same text has the same bytes on every machine.
//
// Words that are common in any English or German text count for little (commonWords). The
// weights are the same everywhere and for ever: weights learned from a company's records
// would tell those who may not read them.
func Embed(text string) (Vector, bool) {
	counts := map[uint64]int64{} // by feature: 64 bits of hash
	weights := map[uint64]int64{}
	note := func(kind byte, s string, weight int64) {
		h := featureHash(kind, s)
		counts[h]++
		weights[h] = max(weights[h], weight)
	}
	before := ""
	for w := range splitWords(text) {
		share := int64(commonShare)
		if commonWords[w] {
			share = 1
		}
		english, german := stems(w)
		if english == german {
			note('s', english, weighStem*share)
		} else {
			note('s', english, weighStem*share/2)
			note('s', german, weighStem*share/2)
		}
		if before != "" {
			note('p', before+" "+english, weighPair*share)
		}
		before = english
		noteGrams(w, share, note)
	}
	sum := make([]int64, LexicalDims)
	for h, n := range counts { // sums of integers are the same in any order
		add := weights[h] * root(n)
		if h>>63 == 1 {
			add = -add
		}
		sum[h%LexicalDims] += add
	}
	for _, n := range sum {
		if n != 0 {
			return packInts(sum), true
		}
	}
	return nil, false
}

// noteGrams notes the pieces of a word, with its ends marked.
func noteGrams(w string, share int64, note func(byte, string, int64)) {
	runes := []rune("<" + w + ">")
	if len(runes) < leastGram+2 {
		return
	}
	pieces := int64(0)
	for n := leastGram; n <= mostGram; n++ {
		pieces += int64(max(0, len(runes)-n+1))
	}
	each := max(1, weighGrams*share/pieces)
	for n := leastGram; n <= mostGram; n++ {
		for at := 0; at+n <= len(runes); at++ {
			note('g', string(runes[at:at+n]), each)
		}
	}
}

// root is 16 times the square root of n: what is said often counts more, but not as often.
func root(n int64) int64 {
	x := n * 256
	r := x
	for next := (r + 1) / 2; next < r; next = (r + x/r) / 2 {
		r = next
	}
	return r
}

func featureHash(kind byte, s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte{kind})
	h.Write([]byte(s))
	return mix(h.Sum64())
}

var commonWords = func() map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(commonEnglish + commonGerman) {
		out[w] = true
	}
	return out
}()

const commonEnglish = `
a about above after again against all also am an and any are aren't as at be because been before being below between
both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each few for from further
get gets got had hadn't has hasn't have haven't having he her here hers him his how however i if in into is isn't it
it's its itself just let like made make many may me might more most much must my no nor not now of off on once one only
or other our ours out over own same shall she should shouldn't since so some such than that the their theirs them then
there these they this those through to too two under until up upon us use used very was wasn't we well were weren't what
when where which while who whom whose why will with within without won't would wouldn't yet you your yours
`

const commonGerman = `
aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei beim bin bis bist da dabei
dadurch dafür daher damit dann daran darauf daraus darf darin darum das dass davon dazu dein deine dem den denn der
deren des deshalb dessen die dies diese diesem diesen dieser dieses doch dort du durch ein eine einem einen einer
eines er es etwas euch euer für gegen gewesen hab habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr
ihre ihrem ihren im in indem ins ist jede jedem jeden jeder jedes jetzt kann kein keine keinem keinen können könnte
man manche mehr mein meine mit muss musste nach nachdem nicht nichts noch nun nur ob oder ohne sehr sein seine seinem
seinen seit selbst sich sie sind so solche soll sollte sondern sonst über um und uns unser unter viel vom von vor war
waren was weil weiter welche wenn wer werde werden wie wieder will wir wird wo wurde wurden während zu zum zur zwar
zwischen
`
