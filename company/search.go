package company

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// DefaultSearchLimit and MaxSearchLimit bound the hits of one search.
	DefaultSearchLimit = 20
	MaxSearchLimit     = 100
	// MaxQuery bounds the words that are searched for, in bytes.
	MaxQuery = 500
	// searchSnippet is how much of a text a hit shows, in bytes.
	searchSnippet = 160
)

// A Hit is an issue that a search found.
type Hit struct {
	Issue    Issue
	Score    int      // what a better match has more of
	Fields   []string // where the words stand: identifier, title, description
	Snippets []Snippet
}

// A Snippet is the part of a field where the words stand.
type Snippet struct {
	Field string // title or description
	Text  string
	Start int // of the first match in Text, in bytes
	End   int
}

// Search returns the visible issues of company in which every word of the query
// stands, the best match first, and how many there are in all.
func Search(tx *ledger.Tx, company, query string, limit, offset int) (hits []Hit, total int) {
	words := strings.Fields(strings.ToLower(query))
	if len(words) == 0 {
		return nil, 0
	}
	for _, i := range issues.All(tx, company) {
		if i.HiddenAt != 0 {
			continue
		}
		if h, ok := i.search(words); ok {
			hits = append(hits, h)
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Issue.UpdatedAt, a.Issue.UpdatedAt), cmp.Compare(b.Issue.Number, a.Issue.Number))
	})
	total = len(hits)
	hits = hits[min(max(offset, 0), total):]
	return hits[:min(cmp.Or(limit, DefaultSearchLimit), MaxSearchLimit, len(hits))], total
}

// searched is one field of an issue and what a match in it is worth.
type searched struct {
	name, text, lower string
	score             int
}

// search matches i against words in lower case.
func (i Issue) search(words []string) (Hit, bool) {
	h := Hit{Issue: i}
	fields := []searched{
		{"identifier", i.Identifier, strings.ToLower(i.Identifier), 10_000},
		{"title", i.Title, strings.ToLower(i.Title), 5_000},
		{"description", i.Description, strings.ToLower(i.Description), 20},
	}
	for _, w := range words {
		if !slices.ContainsFunc(fields, func(f searched) bool { return strings.Contains(f.lower, w) }) {
			return h, false
		}
	}
	for _, f := range fields {
		for _, w := range words {
			at := strings.Index(f.lower, w)
			if at < 0 {
				continue
			}
			h.Score += f.score
			h.Fields = append(h.Fields, f.name)
			if f.name != "identifier" {
				h.Snippets = append(h.Snippets, cutSnippet(f.name, f.text, f.lower, at, len(w)))
			}
			break
		}
	}
	return h, true
}

// cutSnippet shows the surroundings of a match of n bytes at at. Lower case may
// have other lengths than the text; then the beginning is shown.
func cutSnippet(field, text, lower string, at, n int) Snippet {
	if len(lower) != len(text) {
		return Snippet{Field: field, Text: snippet(text, searchSnippet)}
	}
	from := max(0, at-searchSnippet/2)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	part := snippet(text[from:], searchSnippet)
	return Snippet{field, part, min(at-from, len(part)), min(at-from+n, len(part))}
}
