package memory

import (
	"iter"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// splitWords yields the words of a text in order: runs of letters, marks and digits in
// lower case, after NFKC. An apostrophe between letters belongs to the word. Scripts that
// put no spaces between words yield one word a character.
func splitWords(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		text = norm.NFKC.String(text)
		word := make([]rune, 0, maxWord)
		flush := func() bool {
			if len(word) == 0 {
				return true
			}
			w := string(word)
			word = word[:0]
			return yield(w)
		}
		for at, r := range text {
			switch {
			case unspaced(r):
				if !flush() || !yield(string(r)) {
					return
				}
			case unicode.IsLetter(r) || unicode.IsDigit(r) || len(word) > 0 && unicode.IsMark(r):
				if len(word) < maxWord {
					word = append(word, unicode.ToLower(r))
				}
			case apostrophe(r) && len(word) > 0 && letterAfter(text[at:]):
				if len(word) < maxWord {
					word = append(word, '\'')
				}
			default:
				if !flush() {
					return
				}
			}
		}
		flush()
	}
}

func apostrophe(r rune) bool { return r == '\'' || r == '’' }

// letterAfter reports whether a letter follows the first rune of s.
func letterAfter(s string) bool {
	_, n := utf8.DecodeRuneInString(s)
	r, _ := utf8.DecodeRuneInString(s[n:])
	return unicode.IsLetter(r)
}

func unspaced(r rune) bool {
	return r >= 0xe00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
		unicode.Khmer)
}

// stems returns the stems of a word: the English one and, where it differs, the German
// one. Nobody asks which language a text is in, so both stand for the word.
func stems(word string) (english, german string) {
	return stemEnglish(word), stemGerman(word)
}
