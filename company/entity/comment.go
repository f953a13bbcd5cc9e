package entity

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Comment is one message on an issue, by a user, an agent or the system. Fields of the
// contract without a value here are null.
type Comment struct {
	ID             string           `cbor:"1,keyasint" json:"id"`
	Company        ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Issue          string           `cbor:"3,keyasint" json:"issueId"`
	AuthorAgent    core.NullText    `cbor:"4,keyasint,omitempty" json:"authorAgentId"`
	AuthorUser     core.NullText    `cbor:"5,keyasint,omitempty" json:"authorUserId"`
	OnBehalfOf     core.NullText    `cbor:"6,keyasint,omitempty" json:"onBehalfOfUserId"`
	AuthorType     string           `cbor:"7,keyasint" json:"authorType"` // user, agent or system
	Run            core.NullText    `cbor:"8,keyasint,omitempty" json:"createdByRunId"`
	DerivedAgent   core.NullText    `cbor:"-" json:"derivedAuthorAgentId"`
	DerivedRun     core.NullText    `cbor:"-" json:"derivedCreatedByRunId"`
	DerivedSource  core.NullText    `cbor:"-" json:"derivedAuthorSource"`
	ClientRequest  core.NullText    `cbor:"9,keyasint,omitempty" json:"clientRequestId"`
	SessionGen     *int             `cbor:"-" json:"conversationSessionGeneration"`
	Body           string           `cbor:"10,keyasint" json:"body"`
	Presentation   json.RawMessage  `cbor:"11,keyasint,omitempty" json:"presentation"`
	Metadata       json.RawMessage  `cbor:"12,keyasint,omitempty" json:"metadata"`
	DeletedAt      core.Time        `cbor:"13,keyasint,omitempty" json:"deletedAt"`
	DeletedByType  core.NullText    `cbor:"14,keyasint,omitempty" json:"deletedByType"`
	DeletedByAgent core.NullText    `cbor:"15,keyasint,omitempty" json:"deletedByAgentId"`
	DeletedByUser  core.NullText    `cbor:"16,keyasint,omitempty" json:"deletedByUserId"`
	DeletedByRun   core.NullText    `cbor:"17,keyasint,omitempty" json:"deletedByRunId"`
	SourceTrust    core.NullText    `cbor:"-" json:"sourceTrust"`
	CreatedAt      core.Time        `cbor:"18,keyasint" json:"createdAt"`
	UpdatedAt      core.Time        `cbor:"19,keyasint" json:"updatedAt"`
	Height         uint64           `cbor:"-" json:"-"` // of the entry; part of the key
}

// Comments are keyed by "<issue>.<height>.<comment>", so that an issue's comments lie
// together in their order. Two keys find a comment:
//
//	c/<company>/comment-at/<comment>            its key
//	c/<company>/comment-request/<hash>          its key, by issue and clientRequestId
var Comments = ledger.NewTable[string, Comment]("comment")

func (cm Comment) RowKey() string { return cm.Issue + "." + ledger.Order(cm.Height) + "." + cm.ID }

func CommentAtKey(company ledger.CompanyID, id string) []byte {
	return ledger.Key("c", string(company), "comment-at", id)
}

func CommentRequestKey(company ledger.CompanyID, issue, request string) []byte {
	return ledger.Key("c", string(company), "comment-request", core.TextKey(issue+"/"+request))
}

// CommentOf returns one comment of an issue.
func CommentOf(tx *ledger.Tx, company ledger.CompanyID, issue, id string) (Comment, bool) {
	at, ok := tx.Get(CommentAtKey(company, id))
	if !ok {
		return Comment{}, false
	}
	cm, ok := Comments.Get(tx, company, string(at))
	return cm, ok && cm.Issue == issue
}

// A CommentQuery selects comments of one issue.
type CommentQuery struct {
	After     string // a comment's ID: only comments after it in this order
	Ascending bool   // oldest first; default: newest first
	Limit     int    // 0 is DefaultCommentLimit, at most MaxCommentLimit
}

// CommentsOf returns the comments of i that q selects. An unknown After is refused as not
// found.
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
	// for the board: moves a terminal issue back to todo; refused for agents
	Reopen bool `cbor:"8,keyasint,omitempty"`
	// Attachments are attachments of the issue that become the comment's.
	Attachments []string `cbor:"9,keyasint,omitempty"`
	Resume      bool     `cbor:"10,keyasint,omitempty"` // see order.go
	Interrupt   bool     `cbor:"11,keyasint,omitempty"` // see order.go
	WithUpdate  bool     `cbor:"-" json:"-"`            // part of an update of the issue
}

// RefuseRunContext returns the 403 for an agent that writes without a running run.
func RefuseRunContext() error {
	const code = "cross_issue_influence_run_context_required"
	return &ledger.Refusal{Code: ledger.Forbidden, ErrCode: code,
		Message: "An agent writes on issues under a run of its own that is still going on; this request named none.",
		Detail: core.Object{}.Str("code", code).Str("boundary", "Heartbeat run context").
			Str("whoCanAct", "this agent, in a request that carries the ID of its running run").
			Str("sanctionedPath", "send the `X-Paperclip-Run-Id` header with the value of `$PAPERCLIP_RUN_ID`, and retry").
			Close()}
}
