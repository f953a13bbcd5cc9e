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
	return []api.Route{
		{Method: "GET", Path: "/api/issues/{id}/feedback-votes", Tag: "issues",
			Summary: "List what people think of what agents wrote", Out: []inbox.Vote{}, Handle: listVotes},
		{Method: "POST", Path: "/api/issues/{id}/feedback-votes", Tag: "issues",
			Summary: "Say what one thinks of a comment or a revision", Who: api.Board,
			In: voteBody{}, Out: inbox.Vote{}, Status: 201, Handle: castVote},
	}
}

func listVotes(rc *api.Request) (api.Response, error) {
	return api.Viewed(rc, func(tx *ledger.Tx) ([]inbox.Vote, error) {
		i, err := api.FindIssue(tx, rc)
		return inbox.VotesOf(tx, i), err
	})
}

func castVote(rc *api.Request) (api.Response, error) {
	in, err := api.Body[voteBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	var i entity.Issue
	err = rc.View(func(tx *ledger.Tx) (err error) {
		i, err = api.FindIssue(tx, rc)
		return err
	})
	if err != nil {
		return api.Response{}, err
	}
	v, err := api.Do[inbox.Vote](rc, inbox.KindIssueVote, i.Company, inbox.CastVote{Issue: i.ID, TargetType: in.TargetType,
		Target: in.Target, Vote: in.Vote,
		Reason: in.Reason.Or(""), AllowSharing: in.Sharing.Or(false)})
	return api.OK(v), err
}
