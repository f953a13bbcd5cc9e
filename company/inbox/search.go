package inbox

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// DefaultSearchLimit and MaxSearchLimit bound the hits of one search.
	DefaultSearchLimit = 20
	MaxSearchLimit     = 100
	// MaxQuery bounds a search query, in bytes.
	MaxQuery = 500
	// searchSnippet is the length of a snippet, in bytes.
	searchSnippet = 160
	// maxSearchWords bounds the words of a query. maxSearched bounds the bytes of comments
	// that one search reads, and half of it those of documents: some tens of milliseconds.
	maxSearchWords = 32
	maxSearched    = 64 << 20
	// maxHitSnippets bounds the snippets of one hit.
	maxHitSnippets = 2
)

// A Hit is an issue that a search found.
type Hit struct {
	Issue     entity.Issue
	Score     int      // higher for a better match
	Fields    []string // fields with matches: identifier, title, description, comment, document
	Snippets  []Snippet
	Comments  int // number of comments with matches
	Documents int // number of documents with matches

	words uint64 // bit set of the words that were found
}

// A Snippet is the part of a field around a match.
type Snippet struct {
	Field string // title, description, comment or document
	Text  string
	Start int // offset of the first match in Text, in bytes
	End   int
}

// Found is the result of a search: the requested page of issues, best match first, and the
// number of all; and the agents and projects, which are few.
type Found struct {
	Hits     []Hit
	Total    int
	Comments int // number of comments with matches, of all hits
	Docs     int // number of documents with matches, of all hits
	Agents   []entity.Agent
	Projects []entity.Project
	Partial  bool // there was more text than one search reads
}

// Search finds the visible issues of a company that contain every word of the query: in the
// issue itself, its comments or its documents.
func Search(tx *ledger.Tx, of ledger.CompanyID, query string, limit, offset int) (f Found) {
	words := searchWords(query)
	if len(words) == 0 {
		return f
	}
	all := uint64(1)<<len(words) - 1
	hits := map[string]*Hit{}
	for id, i := range entity.IssueTable.All(tx, of) {
		if i.HiddenAt != 0 {
			continue
		}
		if h := search(i, words); h.words != 0 {
			hits[id] = &h
		}
	}
	f.Partial = eachText(tx, of, func(field, issue, text string) {
		lower := strings.ToLower(text)
		found, at, length := uint64(0), 0, 0
		for n, w := range words {
			if k := strings.Index(lower, w); k >= 0 {
				if found == 0 {
					at, length = k, len(w)
				}
				found |= 1 << n
			}
		}
		if found == 0 {
			return
		}
		h := hits[issue]
		if h == nil {
			i, ok := entity.IssueTable.Get(tx, of, issue)
			if !ok || i.HiddenAt != 0 {
				return
			}
			h = &Hit{Issue: i}
			hits[issue] = h
		}
		h.words |= found
		if !slices.Contains(h.Fields, field) {
			h.Fields = append(h.Fields, field)
			h.Score += fieldScores[field]
			if len(h.Snippets) < maxHitSnippets {
				h.Snippets = append(h.Snippets, cutSnippet(field, text, lower, at, length))
			}
		}
		if field == "comment" {
			h.Comments++
		} else {
			h.Documents++
		}
	})
	for _, h := range hits {
		if h.words == all {
			f.Hits = append(f.Hits, *h)
			f.Comments += h.Comments
			f.Docs += h.Documents
		}
	}
	slices.SortFunc(f.Hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Issue.UpdatedAt, a.Issue.UpdatedAt),
			cmp.Compare(b.Issue.Number, a.Issue.Number))
	})
	f.Total = len(f.Hits)
	f.Hits = f.Hits[min(max(offset, 0), f.Total):]
	f.Hits = f.Hits[:min(cmp.Or(limit, DefaultSearchLimit), MaxSearchLimit, len(f.Hits))]
	for _, a := range entity.AgentTable.All(tx, of) {
		if a.Status != entity.AgentTerminated && containsWords(words, a.Name, string(a.Title), string(a.Capabilities)) &&
			len(f.Agents) < MaxSearchLimit {
			f.Agents = append(f.Agents, a)
		}
	}
	for _, p := range entity.ProjectTable.All(tx, of) {
		if p.ArchivedAt == 0 && containsWords(words, p.Name, string(p.Description)) && len(f.Projects) < MaxSearchLimit {
			f.Projects = append(f.Projects, p)
		}
	}
	return f
}

// searchWords returns the words of a query in lower case, at most one for each bit of a set.
func searchWords(query string) []string {
	words := strings.Fields(strings.ToLower(query))
	return words[:min(len(words), maxSearchWords)]
}

func containsWords(words []string, texts ...string) bool {
	whole := strings.ToLower(strings.Join(texts, "\n"))
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(whole, w) })
}

// eachText passes the texts of comments and the latest texts of documents to found, also those
// of hidden or deleted issues. It stops at the number of bytes that one search reads, and
// reports whether it left out any.
func eachText(tx *ledger.Tx, company ledger.CompanyID, found func(field, issue, text string)) (partial bool) {
	return eachTextOf(tx, company, func(t foundText) { found(t.field, t.issue, t.text) })
}

// A foundText is one text that a search reads.
type foundText struct {
	field, issue, text string
	comment            string // ID, of a comment
	key                string // of a document
}

func eachTextOf(tx *ledger.Tx, of ledger.CompanyID, found func(foundText)) (partial bool) {
	size := 0
	company.Ask.Each(tx, of, func(issue, key, text string) bool {
		if size += len(text); size > maxSearched/2 {
			partial = true
			return false
		}
		found(foundText{field: "document", issue: issue, text: text, key: key})
		return true
	})
	size = 0
	for _, v := range tx.Prefix(entity.Comments.Key(of, "")) {
		if size += len(v); size > maxSearched {
			return true
		}
		if cm := core.DecodeRow[entity.Comment](v); cm.DeletedAt == 0 {
			found(foundText{field: "comment", issue: cm.Issue, text: cm.Body, comment: cm.ID})
		}
	}
	return partial
}

// mentions returns the issues whose comments or documents contain a text, ignoring case.
func mentions(tx *ledger.Tx, company ledger.CompanyID, text string) map[string]bool {
	out, part := map[string]bool{}, strings.ToLower(text)
	eachText(tx, company, func(_, issue, text string) {
		if !out[issue] && strings.Contains(strings.ToLower(text), part) {
			out[issue] = true
		}
	})
	return out
}

// fieldScores is the score of a match in each field.
var fieldScores = map[string]int{"identifier": 10_000, "title": 5_000, "description": 20, "comment": 10, "document": 5}

// search matches i against words, which are in lower case.
func search(i entity.Issue, words []string) Hit {
	h := Hit{Issue: i}
	for _, f := range []struct{ name, text string }{{"identifier", i.Identifier}, {"title", i.Title},
		{"description", i.Description}} {
		lower, first := strings.ToLower(f.text), true
		for n, w := range words {
			at := strings.Index(lower, w)
			if at < 0 {
				continue
			}
			h.words |= 1 << n
			if !first {
				continue
			}
			first = false
			h.Score += fieldScores[f.name]
			h.Fields = append(h.Fields, f.name)
			if f.name != "identifier" {
				h.Snippets = append(h.Snippets, cutSnippet(f.name, f.text, lower, at, len(w)))
			}
		}
	}
	return h
}

// cutSnippet returns the text around a match of n bytes at offset at. If the text in lower
// case has another length, it returns the beginning of the text.
func cutSnippet(field, text, lower string, at, n int) Snippet {
	if len(lower) != len(text) {
		return Snippet{Field: field, Text: core.Snippet(text, searchSnippet)}
	}
	from := max(0, at-searchSnippet/2)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	part := core.Snippet(text[from:], searchSnippet)
	return Snippet{field, part, min(at-from, len(part)), min(at-from+n, len(part))}
}
