package work

import (
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
		api.Show(api.Route{Path: "/api/issues/{id}/feedback-traces", Tag: tag,
			Summary: "List the votes on an issue that may be handed on", Who: api.Board}, api.FindIssue, inbox.TracesOfIssue),
		api.List(api.Route{Path: "/api/companies/{companyId}/feedback-traces", Tag: "companies",
			Summary: "List the votes of a company that may be handed on", Who: api.Board}, inbox.TracesOf),
		api.Show(api.Route{Path: "/api/feedback-traces/{traceId}", Tag: tag, Summary: "Read a vote that may be handed on",
			Who: api.Board}, traceIn, func(_ *ledger.Tx, b feedbackBundle) inbox.FeedbackTrace { return b.Trace }),
		api.Read(api.Route{Path: "/api/feedback-traces/{traceId}/bundle", Tag: tag,
			Summary: "Read a vote that may be handed on, with what it is about", Who: api.Board}, traceIn),
	}
}

// traceIn finds the trace of the path in the companies that the caller may see.
func traceIn(tx *ledger.Tx, rc *api.Request) (b feedbackBundle, err error) {
	id := api.PathID(rc, "traceId")
	for _, row := range entity.Companies(tx) {
		if !row.Feedback.Sharing || !api.Seen(tx, rc, row.ID) {
			continue
		}
		for _, t := range inbox.TracesOf(tx, row.ID) {
			if t.TraceID == id {
				i, _ := entity.IssueOf(tx, row.ID, t.Issue)
				return feedbackBundle{t, bundleIssue{i.ID, i.Identifier, i.Title}, t.TargetText(tx, i)}, nil
			}
		}
	}
	return b, api.NotFound("Feedback trace not found")
}
