package work

import (
	"slices"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/ledger"
)

type extractAnswer struct {
	Contains  string         `json:"contains"`
	Kind      string         `json:"kind"`
	Scope     string         `json:"scope"`
	Limit     int            `json:"limit"`
	Offset    int            `json:"offset"`
	PerIssue  int            `json:"matchesPerIssue"`
	Results   []extractIssue `json:"results"`
	More      bool           `json:"hasMore"`
	Truncated bool           `json:"truncated"`
	Partial   bool           `json:"partial"` // there is more text than one search reads
}

type extractIssue struct {
	ID         string             `json:"issueId"`
	Identifier string             `json:"identifier"`
	Title      string             `json:"title"`
	Status     entity.IssueStatus `json:"status"`
	Assignee   core.NullText      `json:"assigneeAgentId"`
	UpdatedAt  core.Time          `json:"updatedAt"`
	Matches    []extractMatch     `json:"matches"`
	Cut        bool               `json:"matchesTruncated"`
}

type extractMatch struct {
	Value   string        `json:"value"`
	Field   string        `json:"field"`
	Label   string        `json:"label"`
	Excerpt string        `json:"excerpt"`
	Cut     bool          `json:"excerptTruncated"`
	Source  extractSource `json:"source"`
}

type extractSource struct {
	Type    string        `json:"type"`
	Comment core.NullText `json:"commentId"`
	Key     core.NullText `json:"documentKey"`
}

var extractLabels = map[string]string{"title": "Title", "description": "Description", "comment": "Comment",
	"document": "Document"}

func ExtractRoutes() []api.Route {
	return []api.Route{{Method: "GET", Path: "/api/companies/{companyId}/search/extract", Tag: "search",
		Summary: "List where a text, or addresses that hold it, stands in issues, comments and documents",
		Out:     extractAnswer{}, Handle: extract, Query: []api.Param{{Name: "contains", Doc: "2 characters or more"},
			{Name: "kind", Doc: "literal or url"}, {Name: "scope", Doc: "all, issues, comments or documents"},
			{Name: "status", Doc: "statuses, separated by commas"}, {Name: "updatedWithin", Doc: "such as 24h, 7d, 4w or 3m"},
			{Name: "updatedAfter", Doc: "ISO date"},
			{Name: "matchesPerIssue", Type: "integer"}, {Name: "limit", Type: "integer"}, {Name: "offset", Type: "integer"}}}}
}

func extract(rc *api.Request) (r api.Response, err error) {
	out := extractAnswer{Contains: rc.Query("contains"), Kind: api.OrElse(rc.Query("kind"), "literal"),
		Scope: api.OrElse(rc.Query("scope"), "all"), Results: []extractIssue{}}
	switch {
	case utf8.RuneCountInString(out.Contains) < 2:
		return r, api.Invalid("contains must be at least 2 characters")
	case len(out.Contains) > inbox.MaxQuery:
		return r, api.Invalid("contains must be at most %d bytes", inbox.MaxQuery)
	case out.Kind != "literal" && out.Kind != "url":
		return r, api.Invalid("kind must be literal or url")
	case !slices.Contains([]string{"all", "issues", "comments", "documents"}, out.Scope):
		return r, api.Invalid("scope must be all, issues, comments, or documents")
	}
	if out.Limit, err = rc.QueryInt("limit", 100, 1, inbox.MaxExtracted); err != nil {
		return r, err
	}
	if out.Offset, err = rc.QueryInt("offset", 0, 0, inbox.MaxExtractOffset); err != nil {
		return r, err
	}
	if out.PerIssue, err = rc.QueryInt("matchesPerIssue", 20, 1, inbox.MaxExtractMatches); err != nil {
		return r, err
	}
	x := inbox.Extraction{Contains: out.Contains, URLs: out.Kind == "url", Scope: out.Scope, Limit: out.Limit,
		Offset: out.Offset, PerIssue: out.PerIssue}
	for _, s := range rc.QueryList("status") {
		if !entity.IssueStatus(s).Valid() {
			return r, api.Invalid("Invalid status: %s", api.Cut(s, 40))
		}
		x.Statuses = append(x.Statuses, entity.IssueStatus(s))
	}
	after, err := rc.QueryTime("updatedAfter")
	if err != nil {
		return r, err
	}
	if w := rc.Query("updatedWithin"); w != "" {
		d, ok := inbox.UpdatedWithin(w)
		switch {
		case !ok:
			return r, api.Invalid("Invalid updatedWithin: expected such as 24h, 7d, 4w or 3m")
		case !after.IsZero():
			return r, api.Invalid("updatedWithin and updatedAfter cannot be used together")
		}
		after = rc.Now().Add(-d)
	}
	if !after.IsZero() {
		x.Since = core.TimeOf(after)
	}
	err = api.InCompany(rc, func(tx *ledger.Tx, of entity.Company) error {
		found, more, partial := inbox.Extracts(tx, of.ID, x)
		out.More, out.Partial, out.Truncated = more, partial, more || partial
		for _, e := range found {
			i := e.Issue
			row := extractIssue{ID: i.ID, Identifier: i.Identifier, Title: i.Title, Status: i.Status,
				Assignee: core.NullText(i.Assignee), UpdatedAt: i.UpdatedAt, Matches: []extractMatch{}, Cut: e.Cut}
			for _, m := range e.Matches {
				source := extractSource{Type: "issue", Comment: core.NullText(m.Comment), Key: core.NullText(m.Key)}
				if m.Comment != "" || m.Key != "" {
					source.Type = m.Field
				}
				row.Matches = append(row.Matches, extractMatch{m.Value, m.Field, extractLabels[m.Field], m.Excerpt, m.Cut, source})
			}
			out.Truncated = out.Truncated || e.Cut
			out.Results = append(out.Results, row)
		}
		return nil
	})
	return api.OK(out), err
}
