package work

import (
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/ledger"
)

// A feedbackBundle is a trace with the text that was voted on.
type feedbackBundle struct {
	Trace inbox.FeedbackTrace `json:"trace"`
	Issue bundleIssue         `json:"issue"`
	Text  string              `json:"targetText"`
}

type bundleIssue struct {
	ID         string `json:"id"`
	Identifier string `json:"identifier"`
	Title      string `json:"title"`
}

func FeedbackRoutes() []api.Route {
	const tag = "issues"
	return []api.Route{
		{Method: "GET", Path: "/api/issues/{id}/feedback-traces", Tag: tag,
			Summary: "List the votes on an issue that may be handed on", Who: api.Board, Out: []inbox.FeedbackTrace{},
			Handle: func(rc *api.Request) (api.Response, error) {
				return api.Viewed(rc, func(tx *ledger.Tx) ([]inbox.FeedbackTrace, error) {
					i, err := api.FindIssue(tx, rc)
					return inbox.TracesOfIssue(tx, i), err
				})
			}},
		{Method: "GET", Path: "/api/companies/{companyId}/feedback-traces", Tag: "companies",
			Summary: "List the votes of a company that may be handed on", Who: api.Board, Out: []inbox.FeedbackTrace{},
			Handle: func(rc *api.Request) (r api.Response, err error) {
				err = api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
					r = api.OK(inbox.TracesOf(tx, row.ID))
					return nil
				})
				return r, err
			}},
		{Method: "GET", Path: "/api/feedback-traces/{traceId}", Tag: tag, Summary: "Read a vote that may be handed on",
			Who: api.Board, Out: inbox.FeedbackTrace{},
			Handle: func(rc *api.Request) (api.Response, error) {
				b, err := findTrace(rc)
				return api.OK(b.Trace), err
			}},
		{Method: "GET", Path: "/api/feedback-traces/{traceId}/bundle", Tag: tag,
			Summary: "Read a vote that may be handed on, with what it is about", Who: api.Board, Out: feedbackBundle{},
			Handle: func(rc *api.Request) (api.Response, error) {
				b, err := findTrace(rc)
				return api.OK(b), err
			}},
	}
}

// findTrace finds a trace in the companies that the caller may see.
func findTrace(rc *api.Request) (b feedbackBundle, err error) {
	id := strings.ToLower(rc.Path("traceId"))
	err = rc.View(func(tx *ledger.Tx) error {
		for _, row := range entity.Companies(tx) {
			if !row.Feedback.Sharing || !api.Seen(tx, rc, row.ID) {
				continue
			}
			for _, t := range inbox.TracesOf(tx, row.ID) {
				if t.TraceID != id {
					continue
				}
				i, _ := entity.IssueOf(tx, row.ID, t.Issue)
				b = feedbackBundle{t, bundleIssue{i.ID, i.Identifier, i.Title}, t.TargetText(tx, i)}
				return nil
			}
		}
		return api.NotFound("Feedback trace not found")
	})
	return b, err
}
