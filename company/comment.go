package company

import (
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Comment is one message on an issue, by a user, an agent or the system.
// Keys that this system never fills stay null, as the contract has them.
type Comment struct {
	ID             string          `cbor:"1,keyasint" json:"id"`
	Company        string          `cbor:"2,keyasint" json:"companyId"`
	Issue          string          `cbor:"3,keyasint" json:"issueId"`
	AuthorAgent    core.NullText   `cbor:"4,keyasint,omitempty" json:"authorAgentId"`
	AuthorUser     core.NullText   `cbor:"5,keyasint,omitempty" json:"authorUserId"`
	OnBehalfOf     core.NullText   `cbor:"6,keyasint,omitempty" json:"onBehalfOfUserId"`
	AuthorType     string          `cbor:"7,keyasint" json:"authorType"` // user, agent or system
	Run            core.NullText   `cbor:"8,keyasint,omitempty" json:"createdByRunId"`
	DerivedAgent   core.NullText   `cbor:"-" json:"derivedAuthorAgentId"`
	DerivedRun     core.NullText   `cbor:"-" json:"derivedCreatedByRunId"`
	DerivedSource  core.NullText   `cbor:"-" json:"derivedAuthorSource"`
	ClientRequest  core.NullText   `cbor:"9,keyasint,omitempty" json:"clientRequestId"`
	SessionGen     *int            `cbor:"-" json:"conversationSessionGeneration"`
	Body           string          `cbor:"10,keyasint" json:"body"`
	Presentation   json.RawMessage `cbor:"11,keyasint,omitempty" json:"presentation"`
	Metadata       json.RawMessage `cbor:"12,keyasint,omitempty" json:"metadata"`
	DeletedAt      core.Time       `cbor:"13,keyasint,omitempty" json:"deletedAt"`
	DeletedByType  core.NullText   `cbor:"14,keyasint,omitempty" json:"deletedByType"`
	DeletedByAgent core.NullText   `cbor:"15,keyasint,omitempty" json:"deletedByAgentId"`
	DeletedByUser  core.NullText   `cbor:"16,keyasint,omitempty" json:"deletedByUserId"`
	DeletedByRun   core.NullText   `cbor:"17,keyasint,omitempty" json:"deletedByRunId"`
	SourceTrust    core.NullText   `cbor:"-" json:"sourceTrust"`
	CreatedAt      core.Time       `cbor:"18,keyasint" json:"createdAt"`
	UpdatedAt      core.Time       `cbor:"19,keyasint" json:"updatedAt"`
	height         uint64          // of the entry; part of the key
}

// Comments are keyed by "<issue>.<height>.<comment>", so that an issue's lie
// together in the order in which they were agreed. Two indexes find one:
//
//	c/<company>/comment-at/<comment>            its key
//	c/<company>/comment-request/<hash>          its key, by issue and clientRequestId
var Comments = ledger.NewTable[Comment]("comment")

func (cm Comment) rowKey() string { return cm.Issue + "." + ledger.Order(cm.height) + "." + cm.ID }

func CommentAtKey(company, id string) []byte { return ledger.Key("c", company, "comment-at", id) }

func CommentRequestKey(company, issue, request string) []byte {
	return ledger.Key("c", company, "comment-request", core.TextKey(issue+"/"+request))
}

// CommentOf returns one comment of an issue.
func CommentOf(tx *ledger.Tx, company, issue, id string) (Comment, bool) {
	at, ok := tx.Get(CommentAtKey(company, id))
	if !ok {
		return Comment{}, false
	}
	cm, ok := Comments.Get(tx, company, string(at))
	return cm, ok && cm.Issue == issue
}

// A CommentQuery selects comments of one issue.
type CommentQuery struct {
	After     string // a comment's ID: only those that come after it in this order
	Ascending bool   // oldest first; else the newest first
	Limit     int    // 0 is DefaultCommentLimit, at most MaxCommentLimit
}

// CommentsOf returns the comments of i that q selects. An unknown After is
// refused as not found.
func CommentsOf(tx *ledger.Tx, i Issue, q CommentQuery) ([]Comment, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = DefaultCommentLimit
	}
	limit = min(limit, MaxCommentLimit)
	from := Comments.Key(i.Company, i.ID+".")
	to := ledger.PrefixEnd(from)
	if q.After != "" {
		at, ok := tx.Get(CommentAtKey(i.Company, q.After))
		if cm, found := Comments.Get(tx, i.Company, string(at)); !ok || !found || cm.Issue != i.ID {
			return nil, ledger.Refuse(ledger.NotFound, nil, "Comment not found")
		}
		if key := Comments.Key(i.Company, string(at)); q.Ascending {
			from = append(key, 0)
		} else {
			to = key
		}
	}
	out := []Comment{}
	for _, v := range tx.Scan(from, to, !q.Ascending) {
		var cm Comment
		if err := ledger.Unmarshal(v, &cm); err != nil {
			panic("company: comment does not decode: " + err.Error())
		}
		if out = append(out, cm); len(out) == limit {
			break
		}
	}
	return out, nil
}

// CreateComment is the payload of comment.create.
type CreateComment struct {
	ID            string          `cbor:"1,keyasint"`
	Issue         string          `cbor:"2,keyasint"`
	Body          string          `cbor:"3,keyasint"`
	OnBehalfOf    string          `cbor:"4,keyasint,omitempty"`
	ClientRequest string          `cbor:"5,keyasint,omitempty"`
	Presentation  json.RawMessage `cbor:"6,keyasint,omitempty"`
	Metadata      json.RawMessage `cbor:"7,keyasint,omitempty"`
	Reopen        bool            `cbor:"8,keyasint,omitempty"` // by the board: a done or cancelled issue is to do again; an agent's is refused
	// Attachments are those of the issue that belong to the comment from now on.
	Attachments []string `cbor:"9,keyasint,omitempty"`
	Resume      bool     `cbor:"10,keyasint,omitempty"` // see order.go
	Interrupt   bool     `cbor:"11,keyasint,omitempty"` // likewise
	withUpdate  bool     // it came with an update of the issue
}

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
	{Name: KindCommentCreate, From: FromBoard | FromAgent, Traits: Importable | FencesItself | SeldomWork, Do: ledger.Typed(createComment)},
	{Name: KindCommentDelete, From: FromBoard | FromAgent, Traits: SeldomWork, Do: ledger.Typed(deleteComment)},
}

func createComment(c *ledger.Context, p CreateComment) (any, error) {
	i, ok := IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, ErrNoIssue()
	}
	if err := MayComment(c, i); err != nil {
		return nil, err
	}
	if cm, ok := p.said(c.Tx, i); ok {
		return cm, nil
	}
	resume, interrupt, err := p.orders(c, i)
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
		next, _ = IssueTable.Get(c.Tx, i.Company, i.ID)
	}
	if err := wakeForComment(c, next, cm, resume && MayUpdate(c, i) == nil); err != nil {
		return nil, err
	}
	return cm, nil
}

// MayComment lets anybody of the company comment, but an agent only under a run
// of its own that is still going on. What is a part of another command was looked
// at with that one.
func MayComment(c *ledger.Context, i Issue) error {
	a := c.Cmd.Actor
	if a.Type != "agent" || c.Quiet || c.Cmd.Run != "" && RunAlive(c.Tx, i.Company, c.Cmd.Run, a.ID) {
		return nil
	}
	if c.Cmd.Run != "" && i.Held() && i.CheckoutRun != c.Cmd.Run && i.Assignee == a.ID {
		return i.StaleRun(a.ID, c.Cmd.Run)
	}
	return RefuseRunContext()
}

// RefuseRunContext is the 403 for an agent that writes without a live run.
func RefuseRunContext() error {
	const code = "cross_issue_influence_run_context_required"
	return &ledger.Refusal{Code: ledger.Forbidden, ErrCode: code,
		Message: "An agent writes on issues under a run of its own that is still going on; this request named none.",
		Detail: core.Object{}.Str("code", code).Str("boundary", "Heartbeat run context").
			Str("whoCanAct", "this agent, in a request that carries the ID of its running run").
			Str("sanctionedPath", "send the `X-Paperclip-Run-Id` header with the value of `$PAPERCLIP_RUN_ID`, and retry").Close()}
}

// AddComment stores a comment on i and returns i as it is then; the caller
// stores that. The same clientRequestId gives the comment that it made before.
func AddComment(c *ledger.Context, i Issue, p CreateComment) (Issue, Comment, error) {
	company, now := i.Company, core.TimeOf(c.Now)
	if cm, ok := p.said(c.Tx, i); ok {
		return i, cm, nil
	}
	if i.Comments >= MaxComments {
		return i, Comment{}, ledger.Refuse(ledger.Unprocessable, nil, "An issue can have at most %d comments", MaxComments)
	}
	if c.Has(CommentAtKey(company, p.ID)) {
		return i, Comment{}, ledger.Refuse(ledger.Conflict, nil, "Comment ID is taken")
	}
	cm := Comment{ID: p.ID, Company: company, Issue: i.ID, Body: p.Body, OnBehalfOf: core.NullText(p.OnBehalfOf), ClientRequest: core.NullText(p.ClientRequest),
		Presentation: p.Presentation, Metadata: p.Metadata, Run: core.NullText(c.Cmd.Run), CreatedAt: now, UpdatedAt: now, height: c.Height}
	reason := "allow_board_actor"
	switch c.Cmd.Actor.Type {
	case "agent":
		cm.AuthorType, cm.AuthorAgent, reason = "agent", core.NullText(c.Cmd.Actor.ID), "allow_agent_run"
	case "user":
		cm.AuthorType, cm.AuthorUser = "user", core.NullText(c.Cmd.Actor.ID)
	default:
		cm.AuthorType, reason = "system", "allow_system"
	}
	Comments.Put(c.Tx, company, cm.rowKey(), cm)
	c.Set(CommentAtKey(company, cm.ID), []byte(cm.rowKey()))
	if p.ClientRequest != "" {
		c.Set(CommentRequestKey(company, i.ID, p.ClientRequest), []byte(cm.rowKey()))
	}
	c.Record(ledger.Change{Action: "issue.comment_added", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("commentId", cm.ID).Str("identifier", i.Identifier).Str("issueTitle", i.Title).
			Str("bodySnippet", core.Snippet(cm.Body, 120)).Str("authorizationReason", reason).Bool("updated", p.withUpdate).Close()})
	if err := commentAdded(c, i, cm, p.Attachments); err != nil {
		return i, Comment{}, err
	}
	i.Comments++
	i.UpdatedAt = now
	return i, cm, nil
}

// deleteComment empties a comment and keeps its place in the thread. Its author
// or the board may.
func deleteComment(c *ledger.Context, p DeleteComment) (any, error) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	at, ok := c.Get(CommentAtKey(company, p.ID))
	if !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Comment not found")
	}
	cm, ok := Comments.Get(c.Tx, company, string(at))
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
		Comments.Put(c.Tx, company, string(at), cm)
		commentEmptied(c.Tx, cm)
		c.Record(ledger.Change{Action: "issue.comment_deleted", EntityType: "issue", EntityID: cm.Issue,
			Details: core.Object{}.Str("commentId", cm.ID).Close()})
	}
	return cm, nil
}

// dropComments removes the comments of i with their indexes.
func dropComments(tx *ledger.Tx, i Issue) {
	commentsGone(tx, i)
	prefix := Comments.Key(i.Company, i.ID+".")
	for k, v := range tx.Prefix(prefix) {
		var cm Comment
		if err := ledger.Unmarshal(v, &cm); err != nil {
			panic("company: comment does not decode: " + err.Error())
		}
		if cm.ClientRequest != "" {
			tx.Delete(CommentRequestKey(i.Company, i.ID, string(cm.ClientRequest)))
		}
		tx.Delete(CommentAtKey(i.Company, cm.ID))
		tx.Delete(slices.Clone(k))
	}
}
