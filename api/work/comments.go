package work

import (
	"encoding/json"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/ledger"
)

// createComment is the body of a comment.
type createComment struct {
	Body         string                   `json:"body" minLength:"1" maxLength:"200000" maxBytes:"200000"`
	ClientID     string                   `json:"clientRequestId,omitempty" format:"uuid"`
	OnBehalfOf   api.Opt[string]          `json:"onBehalfOfUserId" maxLength:"200"`
	Presentation api.Opt[json.RawMessage] `json:"presentation" maxBytes:"16000"`
	Metadata     api.Opt[json.RawMessage] `json:"metadata" maxBytes:"16000"`
	Reopen       bool                     `json:"reopen,omitempty" doc:"a done or cancelled issue is to do again; the board only"`
	Resume       bool                     `json:"resume,omitempty" doc:"the work goes on: a done, cancelled or blocked issue is to do again and its assignee is woken; an agent may for what is blocked"`
	Interrupt    bool                     `json:"interrupt,omitempty" doc:"the run at work on the issue ends and its assignee is woken with the comment; the board only"`
	Attachments  []string                 `json:"attachmentIds,omitempty" format:"uuid" maxItems:"50" doc:"of the issue's attachments, those that belong to the comment"`
}

func CommentRoutes() []api.Route {
	const tag, issue = "issues", "/api/issues/{id}"
	const all = issue + "/comments"
	const one = all + "/{commentId}"
	mark := func(_ *api.Request, issue string) inbox.MarkIssue { return inbox.MarkIssue{Issue: issue} }
	return []api.Route{
		api.Read(api.Route{Path: all, Tag: tag, Summary: "List the comments of an issue",
			Query: []api.Param{{Name: "order", Doc: "desc (newest first) or asc"},
				{Name: "after", Doc: "a comment's ID; those after it in this order"}, {Name: "limit", Type: "integer"}}},
			listComments),
		api.Change[entity.Comment](api.Route{Method: "POST", Path: all, Tag: tag, Status: 201,
			Summary: "Comment on an issue"}, company.KindCommentCreate, api.LocateIssue, newComment),
		api.Read(api.Route{Path: one, Tag: tag, Summary: "Read a comment"}, readComment),
		api.Remove[entity.Comment](api.Route{Path: one, Tag: tag, Summary: "Delete a comment"},
			company.KindCommentDelete, api.LocateIssue, func(rc *api.Request, issue string) company.DeleteComment {
				return company.DeleteComment{Issue: issue, ID: api.PathID(rc, "commentId")}
			}),
		api.Remove[inbox.ReadState](api.Route{Method: "POST", Path: issue + "/read", Tag: tag,
			Summary: "Mark an issue as read"}, inbox.KindIssueRead, api.LocateIssue, mark),
		api.Remove[inbox.Removed](api.Route{Path: issue + "/read", Tag: tag, Summary: "Mark an issue as unread"},
			inbox.KindIssueUnread, api.LocateIssue, mark),
		api.Remove[inbox.InboxArchive](api.Route{Method: "POST", Path: issue + "/inbox-archive", Tag: tag,
			Summary: "Put an issue away until it changes"}, inbox.KindIssueArchive, api.LocateIssue, mark),
		api.Remove[inbox.Removed](api.Route{Path: issue + "/inbox-archive", Tag: tag,
			Summary: "Take an issue back into the inbox"}, inbox.KindIssueUnarchive, api.LocateIssue, mark),
	}
}

func listComments(tx *ledger.Tx, rc *api.Request) (list []entity.Comment, err error) {
	q := entity.CommentQuery{After: strings.ToLower(rc.Query("after"))}
	switch order := rc.Query("order"); order {
	case "", "desc":
	case "asc":
		q.Ascending = true
	default:
		return nil, api.Invalid("Invalid order: %s", order)
	}
	if q.Limit, err = rc.QueryInt("limit", entity.DefaultCommentLimit, 1, entity.MaxCommentLimit); err != nil {
		return nil, err
	}
	i, err := api.FindIssue(tx, rc)
	if err != nil {
		return nil, err
	}
	return entity.CommentsOf(tx, i, q)
}

func newComment(_ *api.Request, issue string, in createComment) (entity.CreateComment, error) {
	return entity.CreateComment{ID: api.NewID(), Issue: issue, Body: in.Body, OnBehalfOf: in.OnBehalfOf.Or(""),
		ClientRequest: strings.ToLower(in.ClientID), Presentation: in.Presentation.Or(nil), Metadata: in.Metadata.Or(nil),
		Reopen: in.Reopen, Resume: in.Resume, Interrupt: in.Interrupt, Attachments: api.BodyIDs(in.Attachments),
	}, api.RawBounds(in.Presentation.Value, in.Metadata.Value)
}

func readComment(tx *ledger.Tx, rc *api.Request) (cm entity.Comment, err error) {
	i, err := api.FindIssue(tx, rc)
	if err != nil {
		return cm, err
	}
	cm, ok := entity.CommentOf(tx, i.Company, i.ID, api.PathID(rc, "commentId"))
	if !ok {
		return cm, api.NotFound("Comment not found")
	}
	return cm, nil
}
