package memory

import "strings"

// stemEnglish follows the published English algorithm of Snowball ("Porter2").
func stemEnglish(word string) string {
	if len(word) <= 2 || !lowerASCII(word) {
		return word
	}
	if to, ok := englishWhole[word]; ok {
		return to
	}
	e := english{w: markY([]byte(strings.TrimPrefix(word, "'")))}
	e.r1, e.r2 = e.regions()
	e.possessive()
	e.plural()
	switch string(e.w) {
	case "inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed":
		return string(e.w)
	}
	e.past()
	e.finalY()
	e.derived()
	e.adjective()
	e.rest()
	e.silent()
	return strings.ToLower(string(e.w))
}

func lowerASCII(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && c != '\'' {
			return false
		}
	}
	return true
}

// englishWhole are words that no rule fits.
var englishWhole = map[string]string{
	"skis": "ski", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "idly": "idl", "gently": "gentl",
	"ugly":  "ugli",
	"early": "earli", "only": "onli", "singly": "singl", "sky": "sky", "news": "news", "howe": "howe", "atlas": "atlas",
	"cosmos": "cosmos",
	"bias":   "bias", "andes": "andes",
}

type english struct {
	w      []byte // with Y for a consonant y
	r1, r2 int
}

func vowel(c byte) bool {
	return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u' || c == 'y'
}

func markY(w []byte) []byte {
	for i, c := range w {
		if c == 'y' && (i == 0 || vowel(w[i-1])) {
			w[i] = 'Y'
		}
	}
	return w
}

// regions are where suffixes may begin: after the first consonant that follows a vowel,
// and after the next such.
func (e *english) regions() (r1, r2 int) {
	after := func(from int) int {
		for i := from + 1; i < len(e.w); i++ {
			if vowel(e.w[i-1]) && !vowel(e.w[i]) {
				return i + 1
			}
		}
		return len(e.w)
	}
	r1 = after(0)
	for _, p := range []string{"gener", "commun", "arsen"} {
		if strings.HasPrefix(string(e.w), p) {
			r1 = len(p)
		}
	}
	return r1, after(r1)
}

func (e *english) ends(s string) bool { return strings.HasSuffix(string(e.w), s) }

// longest returns the longest of the suffixes that the word ends with.
func (e *english) longest(suffixes ...string) (best string) {
	for _, s := range suffixes {
		if len(s) > len(best) && e.ends(s) {
			best = s
		}
	}
	return best
}

func (e *english) cut(n int)             { e.w = e.w[:len(e.w)-n] }
func (e *english) in(r, suffix int) bool { return len(e.w)-suffix >= r }

func (e *english) swap(suffix, to string) {
	e.cut(len(suffix))
	e.w = append(e.w, to...)
}

// hasVowel reports whether the word has a vowel before its last n letters.
func (e *english) hasVowel(n int) bool {
	for _, c := range e.w[:max(0, len(e.w)-n)] {
		if vowel(c) {
			return true
		}
	}
	return false
}

// shortEnd reports whether w ends in a short syllable.
func shortEnd(w []byte) bool {
	n := len(w)
	if n == 2 {
		return vowel(w[0]) && !vowel(w[1])
	}
	if n < 3 {
		return false
	}
	c := w[n-1]
	return !vowel(w[n-3]) && vowel(w[n-2]) && !vowel(c) && c != 'w' && c != 'x' && c != 'Y'
}

func (e *english) short() bool { return e.r1 >= len(e.w) && shortEnd(e.w) }

func (e *english) possessive() {
	e.cut(len(e.longest("'", "'s", "'s'")))
}

func (e *english) plural() {
	switch s := e.longest("sses", "ied", "ies", "us", "ss", "s"); s {
	case "sses":
		e.cut(2)
	case "ied", "ies":
		if len(e.w) > 4 {
			e.cut(2)
		} else {
			e.cut(1)
		}
	case "s":
		if e.hasVowel(2) {
			e.cut(1)
		}
	}
}

func (e *english) past() {
	switch s := e.longest("eed", "eedly", "ed", "edly", "ing", "ingly"); s {
	case "":
	case "eed", "eedly":
		if e.in(e.r1, len(s)) {
			e.swap(s, "ee")
		}
	default:
		if !e.hasVowel(len(s)) {
			return
		}
		e.cut(len(s))
		e.repair()
	}
}

// repair puts right what taking off -ed or -ing left.
func (e *english) repair() {
	n := len(e.w)
	switch {
	case e.ends("at") || e.ends("bl") || e.ends("iz"):
		e.w = append(e.w, 'e')
	case n >= 2 && e.w[n-1] == e.w[n-2] && strings.IndexByte("bdfgmnprt", e.w[n-1]) >= 0:
		e.cut(1)
	case e.short():
		e.w = append(e.w, 'e')
	}
}

func (e *english) finalY() {
	n := len(e.w)
	if n > 2 && (e.w[n-1] == 'y' || e.w[n-1] == 'Y') && !vowel(e.w[n-2]) {
		e.w[n-1] = 'i'
	}
}

var englishDerived = map[string]string{
	"tional": "tion", "enci": "ence", "anci": "ance", "abli": "able", "entli": "ent", "izer": "ize", "ization": "ize",
	"ational": "ate",
	"ation":   "ate", "ator": "ate", "alism": "al", "aliti": "al", "alli": "al", "fulness": "ful", "ousli": "ous",
	"ousness": "ous",
	"iveness": "ive", "iviti": "ive", "biliti": "ble", "bli": "ble", "ogi": "og", "fulli": "ful",
	"lessli": "less", "li": "",
}

func (e *english) derived() {
	s := ""
	for suffix := range englishDerived {
		if len(suffix) > len(s) && e.ends(suffix) {
			s = suffix
		}
	}
	if s == "" || !e.in(e.r1, len(s)) {
		return
	}
	before := byte(0)
	if n := len(e.w) - len(s); n > 0 {
		before = e.w[n-1]
	}
	switch {
	case s == "ogi" && before != 'l':
	case s == "li" && strings.IndexByte("cdeghkmnrt", before) < 0:
	default:
		e.swap(s, englishDerived[s])
	}
}

func (e *english) adjective() {
	s := e.longest("tional", "ational", "alize", "icate", "iciti", "ical", "ful", "ness", "ative")
	if s == "" || !e.in(e.r1, len(s)) {
		return
	}
	switch s {
	case "tional":
		e.swap(s, "tion")
	case "ational":
		e.swap(s, "ate")
	case "alize":
		e.swap(s, "al")
	case "icate", "iciti", "ical":
		e.swap(s, "ic")
	case "ful", "ness":
		e.cut(len(s))
	case "ative":
		if e.in(e.r2, len(s)) {
			e.cut(len(s))
		}
	}
}

func (e *english) rest() {
	s := e.longest("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ism", "ate", "iti",
		"ous", "ive", "ize", "ion")
	if s == "" || !e.in(e.r2, len(s)) {
		return
	}
	if s == "ion" {
		if n := len(e.w) - 3; n == 0 || e.w[n-1] != 's' && e.w[n-1] != 't' {
			return
		}
	}
	e.cut(len(s))
}

// silent takes a last e, and the second l of two, off.
func (e *english) silent() {
	n := len(e.w)
	switch {
	case e.ends("e") && (e.in(e.r2, 1) || e.in(e.r1, 1) && !shortEnd(e.w[:n-1])):
		e.cut(1)
	case e.ends("ll") && e.in(e.r2, 1):
		e.cut(1)
	}
}
