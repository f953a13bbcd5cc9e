package memory

import (
	"strings"
	"unicode/utf8"
)

// stemGerman follows the published German algorithm of Snowball.
func stemGerman(word string) string {
	if utf8.RuneCountInString(word) <= 2 || !germanLetters(word) {
		return word
	}
	g := german{w: []rune(strings.ReplaceAll(word, "ß", "ss"))}
	g.mark()
	g.r1 = g.region(0)
	g.r2 = g.region(g.r1)
	g.r1 = max(g.r1, 3)
	g.inflected()
	g.compared()
	g.derived()
	return germanPlain.Replace(string(g.w))
}

var germanPlain = strings.NewReplacer("U", "u", "Y", "y", "ä", "a", "ö", "o", "ü", "u")

func germanLetters(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && r != 'ä' && r != 'ö' && r != 'ü' && r != 'ß' {
			return false
		}
	}
	return true
}

type german struct {
	w      []rune // with U and Y for those between vowels
	r1, r2 int
}

func germanVowel(r rune) bool { return strings.ContainsRune("aeiouyäöü", r) }

func (g *german) mark() {
	for i := 1; i+1 < len(g.w); i++ {
		if r := g.w[i]; (r == 'u' || r == 'y') && germanVowel(g.w[i-1]) && germanVowel(g.w[i+1]) {
			g.w[i] = r - 'a' + 'A'
		}
	}
}

func (g *german) region(from int) int {
	for i := from + 1; i < len(g.w); i++ {
		if germanVowel(g.w[i-1]) && !germanVowel(g.w[i]) {
			return i + 1
		}
	}
	return len(g.w)
}

// longest returns the longest of the suffixes that the word ends with.
func (g *german) longest(suffixes ...string) (best string) {
	w := string(g.w)
	for _, s := range suffixes {
		if len(s) > len(best) && strings.HasSuffix(w, s) {
			best = s
		}
	}
	return best
}

func (g *german) cut(s string)            { g.w = g.w[:len(g.w)-len(s)] }
func (g *german) in(r int, s string) bool { return s != "" && len(g.w)-len(s) >= r }
func (g *german) before(s string) (r rune) {
	if n := len(g.w) - len(s); n > 0 {
		return g.w[n-1]
	}
	return 0
}

func (g *german) inflected() {
	s := g.longest("em", "ern", "er", "e", "en", "es", "s", "erin", "erinnen", "ln", "lns")
	if !g.in(g.r1, s) {
		return
	}
	if s == "ln" || s == "lns" {
		g.cut(s[1:])
		return
	}
	if s == "s" {
		if strings.ContainsRune("bdfghklmnrt", g.before(s)) {
			g.cut(s)
		}
		return
	}
	g.cut(s)
	if s == "e" || s == "en" || s == "es" {
		if strings.HasSuffix(string(g.w), "niss") {
			g.cut("s")
		}
	}
}

func (g *german) compared() {
	s := g.longest("en", "er", "est", "st")
	if !g.in(g.r1, s) {
		return
	}
	if s == "st" && (!strings.ContainsRune("bdfghklmnt", g.before(s)) || len(g.w) < 6) {
		return
	}
	g.cut(s)
}

func (g *german) derived() {
	s := g.longest("end", "ung", "ig", "ik", "isch", "lich", "heit", "keit")
	if !g.in(g.r2, s) {
		return
	}
	switch s {
	case "end", "ung":
		g.cut(s)
		if g.in(g.r2, g.longest("ig")) && g.before("ig") != 'e' {
			g.cut("ig")
		}
	case "ig", "ik", "isch":
		if g.before(s) != 'e' {
			g.cut(s)
		}
	case "lich", "heit":
		g.cut(s)
		if more := g.longest("er", "en"); g.in(g.r1, more) {
			g.cut(more)
		}
	case "keit":
		g.cut(s)
		if more := g.longest("lich", "ig"); g.in(g.r2, more) {
			g.cut(more)
		}
	}
}
