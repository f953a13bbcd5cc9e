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
	mark := func(method, path, kind, summary string, out any, answer func(rc *api.Request, kind string,
		of ledger.CompanyID, issue string) (api.Response, error)) api.Route {
		return api.Route{Method: method, Path: path, Tag: "issues", Summary: summary, Out: out,
			Handle: func(rc *api.Request) (api.Response, error) {
				of, issue, err := api.LocateIssue(rc)
				if err != nil {
					return api.Response{}, err
				}
				return answer(rc, kind, of, issue)
			}}
	}
	return []api.Route{{
		Method: "GET", Path: "/api/issues/{id}/comments", Tag: "issues", Summary: "List the comments of an issue",
		Out: []entity.Comment{}, Handle: listComments,
		Query: []api.Param{{Name: "order", Doc: "desc (newest first) or asc"},
			{Name: "after", Doc: "a comment's ID; those after it in this order"}, {Name: "limit", Type: "integer"}},
	}, {
		Method: "POST", Path: "/api/issues/{id}/comments", Tag: "issues", Summary: "Comment on an issue", In: createComment{},
		Out: entity.Comment{}, Status: 201, Handle: newComment,
	}, {
		Method: "GET", Path: "/api/issues/{id}/comments/{commentId}", Tag: "issues", Summary: "Read a comment",
		Out: entity.Comment{}, Handle: readComment,
	}, {
		Method: "DELETE", Path: "/api/issues/{id}/comments/{commentId}", Tag: "issues", Summary: "Delete a comment",
		Out: entity.Comment{},
		Handle: func(rc *api.Request) (api.Response, error) {
			of, issue, err := api.LocateIssue(rc)
			if err != nil {
				return api.Response{}, err
			}
			cm, err := api.Do[entity.Comment](rc, company.KindCommentDelete, of, company.DeleteComment{Issue: issue,
				ID: strings.ToLower(rc.Path("commentId"))})
			return api.OK(cm), err
		},
	},
		mark("POST", "/api/issues/{id}/read", inbox.KindIssueRead, "Mark an issue as read", inbox.ReadState{},
			marked[inbox.ReadState]),
		mark("DELETE", "/api/issues/{id}/read", inbox.KindIssueUnread, "Mark an issue as unread", inbox.Removed{},
			marked[inbox.Removed]),
		mark("POST", "/api/issues/{id}/inbox-archive", inbox.KindIssueArchive, "Put an issue away until it changes",
			inbox.InboxArchive{}, marked[inbox.InboxArchive]),
		mark("DELETE", "/api/issues/{id}/inbox-archive", inbox.KindIssueUnarchive, "Take an issue back into the inbox",
			inbox.Removed{}, marked[inbox.Removed]),
	}
}

func marked[T any](rc *api.Request, kind string, of ledger.CompanyID, issue string) (api.Response, error) {
	row, err := api.Do[T](rc, kind, of, inbox.MarkIssue{Issue: issue})
	return api.OK(row), err
}

func listComments(rc *api.Request) (r api.Response, err error) {
	q := entity.CommentQuery{After: strings.ToLower(rc.Query("after"))}
	switch order := rc.Query("order"); order {
	case "", "desc":
	case "asc":
		q.Ascending = true
	default:
		return r, api.Invalid("Invalid order: %s", order)
	}
	if q.Limit, err = rc.QueryInt("limit", entity.DefaultCommentLimit, 1, entity.MaxCommentLimit); err != nil {
		return r, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		i, err := api.FindIssue(tx, rc)
		if err != nil {
			return err
		}
		list, err := entity.CommentsOf(tx, i, q)
		r = api.OK(list)
		return err
	})
	return r, err
}

func newComment(rc *api.Request) (api.Response, error) {
	in, err := api.Body[createComment](rc)
	if err != nil {
		return api.Response{}, err
	}
	if err := api.RawBounds(in.Presentation.Value, in.Metadata.Value); err != nil {
		return api.Response{}, err
	}
	of, issue, err := api.LocateIssue(rc)
	if err != nil {
		return api.Response{}, err
	}
	cm, err := api.Do[entity.Comment](rc, company.KindCommentCreate, of, entity.CreateComment{ID: api.NewID(),
		Issue: issue, Body: in.Body, OnBehalfOf: in.OnBehalfOf.Or(""),
		ClientRequest: strings.ToLower(in.ClientID), Presentation: in.Presentation.Or(nil), Metadata: in.Metadata.Or(nil),
		Reopen: in.Reopen,
		Resume: in.Resume, Interrupt: in.Interrupt, Attachments: api.BodyIDs(in.Attachments)})
	return api.OK(cm), err
}

func readComment(rc *api.Request) (r api.Response, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		i, err := api.FindIssue(tx, rc)
		if err != nil {
			return err
		}
		cm, ok := entity.CommentOf(tx, i.Company, i.ID, strings.ToLower(rc.Path("commentId")))
		if !ok {
			return api.NotFound("Comment not found")
		}
		r = api.OK(cm)
		return nil
	})
	return r, err
}
