package memory

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "",
		" --- !!! ":                "",
		"Don't panic, it’s ACM-7":  "don't panic it's acm 7",
		"ＦＵＬＬ ﬁle":                 "full file",
		"Stra\u00dfe Ko\u0308ln":   "straße köln",
		"東京 tower":                 "東 京 tower",
		"a_b/c.d":                  "a b c d",
		"'quoted' words'":          "quoted words",
		"\x00\x01bin\xffary\u200b": "bin ary",
		"Ελλάδα Москва":            "ελλάδα москва",
		strings.Repeat("x", 1000):  strings.Repeat("x", maxWord),
	} {
		if got := strings.Join(slices.Collect(splitWords(text)), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Words of one stem are one word, in both languages.
func TestStems(t *testing.T) {
	t.Parallel()
	for _, same := range []string{"connect connected connecting connection connections connects",
		"relate related relating relates", "hop hopping hopped",
		"hope hoping hoped", "city cities", "generate generated generator", "possible possibly", "run running runs",
		"agree agreed", "happy happiness",
		"nation nations nation's", "argue argued argues arguing", "deploy deployed deploys deploying"} {
		first, _, _ := strings.Cut(same, " ")
		for w := range strings.FieldsSeq(same) {
			if stemEnglish(w) != stemEnglish(first) {
				t.Errorf("%s → %s, %s → %s", w, stemEnglish(w), first, stemEnglish(first))
			}
		}
	}
	for _, same := range []string{"haus hauses häuser häusern", "aufeinander aufeinanders", "kategorie kategorien",
		"schnell schnelle schnellen schnelles",
		"rechnung rechnungen", "kunde kunden", "freundlich freundliche freundlichkeit", "straße strasse straßen",
		"lehrerin lehrerinnen"} {
		first, _, _ := strings.Cut(same, " ")
		for w := range strings.FieldsSeq(same) {
			if stemGerman(w) != stemGerman(first) {
				t.Errorf("%s → %s, %s → %s", w, stemGerman(w), first, stemGerman(first))
			}
		}
	}
	for word, want := range map[string]string{"news": "news", "skies": "sky", "generalizations": "general", "sky": "sky",
		"ties": "tie", "cries": "cri",
		"gas": "gas", "this": "this", "gaps": "gap", "be": "be", "proceed": "proceed", "consistency": "consist",
		"knightly": "knight", "communication": "communic", "rate": "rate"} {
		if got := stemEnglish(word); got != want {
			t.Errorf("%s → %s, want %s", word, got, want)
		}
	}
}

// Any text is taken apart, embedded and found without failing, and the same way twice.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "Häuser's running", "\"a phrase\" pre* \"", "東京 \xff\xfe", "''''",
		"yyyy yay", "a'b'c",
		"ssss iesied"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = s[:min(len(s), MaxText)]
		words := 0
		for w := range splitWords(s) {
			words++
			if w == "" || utf8.RuneCountInString(w) > maxWord {
				t.Fatalf("word %q", w)
			}
			english, german := stems(w)
			if english == "" || german == "" {
				t.Errorf("%q has no stem", w)
			}
		}
		v, ok := Embed(s)
		if ok != (words > 0) || ok && v.Check() != nil {
			t.Errorf("%d words, %v, %v", words, ok, v)
		}
		c := NewCollection()
		if !ok {
			return
		}
		if err := c.Put(Doc{ID: idOf(1), Text: s, Model: Lexical, Vector: v}); err != nil {
			t.Fatal(err)
		}
		got, err := c.Search(Search{Query: s[:min(len(s), MaxQuery)], Limit: 10})
		if err == nil && len(got.Results) > 1 {
			t.Errorf("found %+v", got)
		}
		c.Remove(idOf(1))
		if len(c.lex.formOf) != 0 || len(c.lex.termOf) != 0 || c.lex.total != 0 || len(c.spaces) != 0 ||
			len(c.names.of) != 0 {
			t.Error("something is left of what was removed")
		}
	})
}
