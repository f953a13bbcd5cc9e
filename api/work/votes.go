package work

import (
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/ledger"
)

type voteBody struct {
	TargetType string          `json:"targetType" enum:"issue_comment,issue_document_revision"`
	Target     string          `json:"targetId" format:"uuid"`
	Vote       string          `json:"vote" enum:"up,down"`
	Reason     api.Opt[string] `json:"reason" maxLength:"1000" maxBytes:"1000"`
	Sharing    api.Opt[bool]   `json:"allowSharing"`
}

func VoteRoutes() []api.Route {
	const path = "/api/issues/{id}/feedback-votes"
	return []api.Route{
		api.Show(api.Route{Path: path, Tag: "issues", Summary: "List what people think of what agents wrote"},
			api.FindIssue, inbox.VotesOf),
		api.Change[inbox.Vote](api.Route{Method: "POST", Path: path, Tag: "issues", Status: 201,
			Summary: "Say what one thinks of a comment or a revision", Who: api.Board}, inbox.KindIssueVote, issueAt,
			func(_ *api.Request, issue string, in voteBody) (inbox.CastVote, error) {
				return inbox.CastVote{Issue: issue, TargetType: in.TargetType, Target: in.Target, Vote: in.Vote,
					Reason: in.Reason.Or(""), AllowSharing: in.Sharing.Or(false)}, nil
			}),
	}
}

// issueAt is the place of the path's issue as this node has it: what the caller decides on is
// what it has seen.
var issueAt = api.Located(api.FindIssue, func(i entity.Issue) (ledger.CompanyID, string) { return i.Company, i.ID })
