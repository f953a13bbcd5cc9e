package company

import (
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// DeleteComment is the payload of comment.delete.
type DeleteComment struct {
	Issue string `cbor:"1,keyasint"`
	ID    string `cbor:"2,keyasint"`
}

const (
	KindCommentCreate = "comment.create"
	KindCommentDelete = "comment.delete"
)

var commentKinds = []Kind{
	{Name: KindCommentCreate, From: FromBoard | FromAgent, Traits: Importable | FencesItself | SeldomWork,
		Weight: Weights.Talk, Do: ledger.Typed(createComment)},
	{Name: KindCommentDelete, From: FromBoard | FromAgent, Traits: SeldomWork, Weight: Weights.Erase,
		Do: ledger.Typed(deleteComment)},
}

func createComment(c *ledger.Context, p entity.CreateComment) (any, error) {
	i, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, ErrNoIssue()
	}
	if err := MayComment(c, i); err != nil {
		return nil, err
	}
	if cm, ok := alreadySaid(c.Tx, &p, i); ok {
		return cm, nil
	}
	resume, interrupt, err := ordersOf(c, &p, i)
	if err != nil {
		return nil, err
	}
	next, err := takeUp(c, i, p)
	if err != nil {
		return nil, err
	}
	next, cm, err := AddComment(c, next, p)
	if err != nil {
		return nil, err
	}
	StoreIssue(c.Tx, i, next)
	if interrupt {
		stopWork(c, i, interrupted, "issue.comment", cm.ID)
		next, _ = entity.IssueTable.Get(c.Tx, i.Company, i.ID)
	}
	if err := wakeForComment(c, next, cm, resume && MayUpdate(c, i) == nil); err != nil {
		return nil, err
	}
	return cm, nil
}

// MayComment lets every actor of the company comment, an agent only under its own
// running run. Parts of another command were checked with that command.
func MayComment(c *ledger.Context, i entity.Issue) error {
	a := c.Cmd.Actor
	if a.Type != "agent" || c.Quiet || c.Cmd.Run != "" && entity.RunAlive(c.Tx, i.Company, c.Cmd.Run, a.ID) {
		return nil
	}
	if c.Cmd.Run != "" && i.Held() && i.CheckoutRun != c.Cmd.Run && i.Assignee == a.ID {
		return i.StaleRun(a.ID, c.Cmd.Run)
	}
	return entity.RefuseRunContext()
}

// AddComment stores a comment on i and returns the changed issue, which the caller
// stores. A repeated clientRequestId returns the comment that exists.
func AddComment(c *ledger.Context, i entity.Issue, p entity.CreateComment) (entity.Issue, entity.Comment, error) {
	company, now := i.Company, core.TimeOf(c.Now)
	if cm, ok := alreadySaid(c.Tx, &p, i); ok {
		return i, cm, nil
	}
	if i.Comments >= entity.MaxComments {
		return i, entity.Comment{}, ledger.Refuse(ledger.Unprocessable, nil, "An issue can have at most %d comments",
			entity.MaxComments)
	}
	if c.Has(entity.CommentAtKey(company, p.ID)) {
		return i, entity.Comment{}, ledger.Refuse(ledger.Conflict, nil, "Comment ID is taken")
	}
	cm := entity.Comment{ID: p.ID, Company: company, Issue: i.ID, Body: p.Body, OnBehalfOf: core.NullText(p.OnBehalfOf),
		ClientRequest: core.NullText(p.ClientRequest),
		Presentation:  p.Presentation, Metadata: p.Metadata, Run: core.NullText(c.Cmd.Run), CreatedAt: now, UpdatedAt: now,
		Height: c.Height}
	reason := "allow_board_actor"
	switch c.Cmd.Actor.Type {
	case "agent":
		cm.AuthorType, cm.AuthorAgent, reason = "agent", core.NullText(c.Cmd.Actor.ID), "allow_agent_run"
	case "user":
		cm.AuthorType, cm.AuthorUser = "user", core.NullText(c.Cmd.Actor.ID)
	default:
		cm.AuthorType, reason = "system", "allow_system"
	}
	entity.Comments.Put(c.Tx, company, cm.RowKey(), cm)
	c.Set(entity.CommentAtKey(company, cm.ID), []byte(cm.RowKey()))
	if p.ClientRequest != "" {
		c.Set(entity.CommentRequestKey(company, i.ID, p.ClientRequest), []byte(cm.RowKey()))
	}
	c.Record(ledger.Change{Action: "issue.comment_added", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("commentId", cm.ID).Str("identifier", i.Identifier).Str("issueTitle", i.Title).
			Str("bodySnippet", core.Snippet(cm.Body, 120)).Str("authorizationReason", reason).
			Bool("updated", p.WithUpdate).Close()})
	if err := commentAdded(c, i, cm, p.Attachments); err != nil {
		return i, entity.Comment{}, err
	}
	i.Comments++
	i.UpdatedAt = now
	return i, cm, nil
}

// deleteComment clears a comment's text and keeps its place in the thread. Its author
// and the board may do so.
func deleteComment(c *ledger.Context, p DeleteComment) (any, error) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	at, ok := c.Get(entity.CommentAtKey(company, p.ID))
	if !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Comment not found")
	}
	cm, ok := entity.Comments.Get(c.Tx, company, string(at))
	if !ok || cm.Issue != p.Issue {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Comment not found")
	}
	if !core.IsBoard(c) && string(cm.AuthorAgent) != c.Cmd.Actor.ID {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "Only the author or the board can delete a comment")
	}
	if cm.DeletedAt == 0 {
		cm.Body, cm.Presentation, cm.Metadata = "", nil, nil
		cm.DeletedAt, cm.UpdatedAt, cm.DeletedByType = now, now, core.NullText(c.Cmd.Actor.Type)
		if core.IsBoard(c) {
			cm.DeletedByUser = core.NullText(c.Cmd.Actor.ID)
		} else {
			cm.DeletedByAgent, cm.DeletedByRun = core.NullText(c.Cmd.Actor.ID), core.NullText(c.Cmd.Run)
		}
		entity.Comments.Put(c.Tx, company, string(at), cm)
		commentEmptied(c.Tx, cm)
		c.Record(ledger.Change{Action: "issue.comment_deleted", EntityType: "issue", EntityID: cm.Issue,
			Details: core.Object{}.Str("commentId", cm.ID).Close()})
	}
	return cm, nil
}

// dropComments deletes the comments of i with their indexes.
func dropComments(tx *ledger.Tx, i entity.Issue) {
	commentsGone(tx, i)
	prefix := entity.Comments.Key(i.Company, i.ID+".")
	for k, v := range tx.Prefix(prefix) {
		var cm entity.Comment
		if err := ledger.Unmarshal(v, &cm); err != nil {
			panic("company: comment does not decode: " + err.Error())
		}
		if cm.ClientRequest != "" {
			tx.Delete(entity.CommentRequestKey(i.Company, i.ID, string(cm.ClientRequest)))
		}
		tx.Delete(entity.CommentAtKey(i.Company, cm.ID))
		tx.Delete(slices.Clone(k))
	}
}
