package inbox

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// MaxExtracted bounds the issues of one answer, MaxExtractOffset the issues that may be
	// skipped, MaxExtractMatches the matches shown of one issue.
	MaxExtracted      = 200
	MaxExtractOffset  = 5_000
	MaxExtractMatches = 200
	// extractExcerpt is the length of the text shown around a match, in bytes.
	extractExcerpt = 180
	// maxExtractHeld bounds the matches that are read, over all issues. Beyond it, the answer
	// says that it is incomplete.
	maxExtractHeld = 100_000
)

// An Extraction says what to extract from the texts of a company's issues: each place that
// contains Contains, ignoring case, or each URL that contains it.
type Extraction struct {
	Contains string
	URLs     bool
	Scope    string // all, issues, comments or documents
	Statuses []entity.IssueStatus
	Since    core.Time // only issues that changed at or after it
	Limit    int
	Offset   int
	PerIssue int
}

// An Extract holds the matches in one issue's texts, without duplicates.
type Extract struct {
	Issue   entity.Issue
	Matches []Match
	Cut     bool // there were more matches than were asked for
	seen    map[string]bool
}

// A Match is one place in a text.
type Match struct {
	Value   string
	Field   string // title, description, comment or document
	Excerpt string
	Cut     bool   // the excerpt is not the whole text
	Comment string // ID of the comment
	Key     string // of the document
}

// Extracts returns the issues with matches, last changed first. more says that there are
// further issues; partial, that there was more text than one search reads.
func Extracts(tx *ledger.Tx, companyID ledger.CompanyID, x Extraction) (out []Extract, more, partial bool) {
	of, held := map[string]*Extract{}, 0
	take := func(i entity.Issue, m Match, text string) {
		for _, at := range x.places(text) {
			e := of[i.ID]
			if e == nil {
				e = &Extract{Issue: i, seen: map[string]bool{}}
				of[i.ID] = e
			}
			value := text[at[0]:at[1]]
			if lower := strings.ToLower(value); e.seen[lower] {
				continue
			} else if len(e.Matches) == x.PerIssue {
				e.Cut = true
				return
			} else {
				e.seen[lower] = true
			}
			if held++; held > maxExtractHeld {
				partial = true
				return
			}
			m.Value = value
			m.Excerpt, m.Cut = excerptOf(text, at[0], at[1])
			e.Matches = append(e.Matches, m)
		}
	}
	wanted := func(i entity.Issue) bool {
		return i.HiddenAt == 0 && i.UpdatedAt >= x.Since && (len(x.Statuses) == 0 || slices.Contains(x.Statuses, i.Status))
	}
	if x.Scope == "all" || x.Scope == "issues" {
		for _, i := range entity.IssueTable.All(tx, companyID) {
			if wanted(i) {
				take(i, Match{Field: "title"}, i.Title)
				take(i, Match{Field: "description"}, i.Description)
			}
		}
	}
	if x.Scope == "all" || x.Scope == "comments" || x.Scope == "documents" {
		cut := eachTextOf(tx, companyID, func(t foundText) {
			if x.Scope != "all" && x.Scope != t.field+"s" || len(x.places(t.text)) == 0 {
				return
			}
			if i, ok := entity.IssueTable.Get(tx, companyID, t.issue); ok && wanted(i) {
				take(i, Match{Field: t.field, Comment: t.comment, Key: t.key}, t.text)
			}
		})
		partial = partial || cut
	}
	for _, e := range of {
		out = append(out, *e)
	}
	slices.SortFunc(out, func(a, b Extract) int {
		if a.Issue.UpdatedAt != b.Issue.UpdatedAt {
			return cmp.Compare(b.Issue.UpdatedAt, a.Issue.UpdatedAt)
		}
		return strings.Compare(a.Issue.ID, b.Issue.ID)
	})
	out = out[min(max(x.Offset, 0), len(out)):]
	if len(out) > x.Limit {
		out, more = out[:x.Limit], true
	}
	return out, more, partial
}

// urls matches the URLs in a text: with a scheme or www, or a host with a path.
var urls = regexp.MustCompile(
	"(?i)(?:https?://|www\\.)[^\\s<>\"'`]+|(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\\.)+[a-z]{2,}/[^\\s<>\"'`]+")

// places returns the positions of the matches in a text.
func (x Extraction) places(text string) (out [][]int) {
	lower, want := strings.ToLower(text), strings.ToLower(x.Contains)
	if !strings.Contains(lower, want) {
		return nil
	}
	if x.URLs {
		for _, at := range urls.FindAllStringIndex(text, MaxExtractMatches*2) {
			at[1] = at[0] + len(bareURL(text[at[0]:at[1]]))
			if strings.Contains(strings.ToLower(text[at[0]:at[1]]), want) {
				out = append(out, at)
			}
		}
		return out
	}
	if len(lower) != len(text) { // lower case has another length, so positions refer to the text in lower case
		lower, want = text, x.Contains
	}
	for from := 0; len(out) < MaxExtractMatches*2; {
		at := strings.Index(lower[from:], want)
		if at < 0 {
			break
		}
		out = append(out, []int{from + at, from + at + len(want)})
		from += at + len(want)
	}
	return out
}

// bareURL removes the punctuation of the surrounding sentence from the end of a URL.
func bareURL(s string) string {
	s = strings.TrimRight(s, ".,;:!?")
	for _, pair := range []string{"()", "[]", "{}"} {
		for strings.HasSuffix(s, pair[1:]) && strings.Count(s, pair[1:]) > strings.Count(s, pair[:1]) {
			s = s[:len(s)-1]
		}
	}
	return s
}

// excerptOf returns the text around a match.
func excerptOf(text string, from, to int) (string, bool) {
	if len(text) <= extractExcerpt {
		return text, false
	}
	around := max(0, (extractExcerpt-(to-from))/2)
	a, b := max(0, from-around), min(len(text), to+around)
	b = min(b, a+max(extractExcerpt, 0))
	for a > 0 && !utf8.RuneStart(text[a]) {
		a--
	}
	for b < len(text) && !utf8.RuneStart(text[b]) {
		b--
	}
	s := strings.Join(strings.Fields(text[a:max(a, b)]), " ")
	if a > 0 {
		s = "…" + s
	}
	if b < len(text) {
		s += "…"
	}
	return s, true
}

// UpdatedWithin parses the maximum age of a change: a number followed by h, d, w or m for
// hours, days, weeks and months of 30 days.
func UpdatedWithin(s string) (time.Duration, bool) {
	units := map[byte]time.Duration{'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour, 'm': 30 * 24 * time.Hour}
	if len(s) < 2 || len(s) > 5 {
		return 0, false
	}
	n := time.Duration(0)
	for _, c := range s[:len(s)-1] {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + time.Duration(c-'0')
	}
	unit, ok := units[s[len(s)-1]]
	return n * unit, ok && n > 0
}
