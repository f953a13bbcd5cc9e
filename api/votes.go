package api

import (
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/ledger"
)

type voteBody struct {
	TargetType string      `json:"targetType" enum:"issue_comment,issue_document_revision"`
	Target     string      `json:"targetId" format:"uuid"`
	Vote       string      `json:"vote" enum:"up,down"`
	Reason     Opt[string] `json:"reason" maxLength:"1000" maxBytes:"1000"`
	Sharing    Opt[bool]   `json:"allowSharing"`
}

func voteRoutes() []Route {
	return []Route{
		{Method: "GET", Path: "/api/issues/{id}/feedback-votes", Tag: "issues", Summary: "List what people think of what agents wrote", Out: []inbox.Vote{}, Handle: listVotes},
		{Method: "POST", Path: "/api/issues/{id}/feedback-votes", Tag: "issues", Summary: "Say what one thinks of a comment or a revision", Who: Board,
			In: voteBody{}, Out: inbox.Vote{}, Status: 201, Handle: castVote},
	}
}

func listVotes(rc *Request) (Response, error) {
	return viewed(rc, func(tx *ledger.Tx) ([]inbox.Vote, error) {
		i, err := findIssue(tx, rc)
		return inbox.VotesOf(tx, i), err
	})
}

func castVote(rc *Request) (Response, error) {
	in, err := Body[voteBody](rc)
	if err != nil {
		return Response{}, err
	}
	var i company.Issue
	err = rc.View(func(tx *ledger.Tx) (err error) {
		i, err = findIssue(tx, rc)
		return err
	})
	if err != nil {
		return Response{}, err
	}
	v, err := Do[inbox.Vote](rc, inbox.KindIssueVote, i.Company, inbox.CastVote{Issue: i.ID, TargetType: in.TargetType, Target: in.Target, Vote: in.Vote,
		Reason: in.Reason.Or(""), AllowSharing: in.Sharing.Or(false)})
	return OK(v), err
}
