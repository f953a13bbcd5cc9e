package company

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A CommentQueue holds the comments that were made on an issue while its agent was
// running. The next run, which is queued, gets them. A person can edit them while that
// run is queued.
type CommentQueue struct {
	Run     entity.Run // the queued run
	Target  string     // the running run on the issue, "" for none
	Entries []entity.Comment
}

// QueueOf returns the queue of an issue: that of the first queued run of the issue's
// agent that has comments.
func QueueOf(tx *ledger.Tx, i entity.Issue) (q CommentQueue, ok bool) {
	for _, r := range entity.LiveRunsOnIssue(tx, i) {
		switch {
		case r.Status == entity.RunRunning:
			q.Target = r.ID
		case !ok && len(r.Context.CommentIDs) > 0:
			q.Run, ok = r, true
		}
	}
	for _, id := range q.Run.Context.CommentIDs {
		if cm, found := entity.CommentOf(tx, i.Company, i.ID, id); found && cm.DeletedAt == 0 {
			q.Entries = append(q.Entries, cm)
		}
	}
	return q, ok && len(q.Entries) > 0
}

// Revision identifies the state of the queue. A change names the revision that it was
// made for.
func (q CommentQueue) Revision() string {
	h := sha256.New()
	for _, part := range []string{q.Run.ID, q.Target} {
		h.Write([]byte(part + "\n"))
	}
	for _, cm := range q.Entries {
		h.Write([]byte(cm.ID + " " + ledger.Order(uint64(cm.UpdatedAt)) + " " + cm.Body + "\n"))
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// ChangeQueue is the payload of queue.edit, .drop, .order and .interrupt.
type ChangeQueue struct {
	Issue    string   `cbor:"1,keyasint"`
	Queue    string   `cbor:"2,keyasint"` // the queued run
	Revision string   `cbor:"3,keyasint"`
	Comment  string   `cbor:"4,keyasint,omitempty"` // for edit and drop
	Body     string   `cbor:"5,keyasint,omitempty"` // for edit
	Order    []string `cbor:"6,keyasint,omitempty"` // for order: all comments of the queue
	Target   string   `cbor:"7,keyasint,omitempty"` // for interrupt: the run to end, "" for none
}

const (
	KindQueueEdit      = "queue.edit"
	KindQueueDrop      = "queue.drop"
	KindQueueOrder     = "queue.order"
	KindQueueInterrupt = "queue.interrupt"
)

var commentQueueKinds = []Kind{
	{Name: KindQueueEdit, From: FromBoard, Weight: Weights.Talk, Do: ledger.Typed(onQueue(editQueued))},
	{Name: KindQueueDrop, From: FromBoard, Weight: Weights.Talk, Do: ledger.Typed(onQueue(dropQueued))},
	{Name: KindQueueOrder, From: FromBoard, Weight: Weights.Talk, Do: ledger.Typed(onQueue(orderQueue))},
	{Name: KindQueueInterrupt, From: FromBoard, Weight: Weights.Talk, Do: ledger.Typed(onQueue(interruptFor))},
}

// onQueue calls a handler with the queue, which must have the revision that the caller saw.
func onQueue(change func(*ledger.Context, entity.Issue, CommentQueue, ChangeQueue) error) func(*ledger.Context,
	ChangeQueue) (any, error) {
	return func(c *ledger.Context, p ChangeQueue) (any, error) {
		i, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
		if !ok {
			return nil, ErrNoIssue()
		}
		q, ok := QueueOf(c.Tx, i)
		if !ok || q.Run.ID != p.Queue || q.Run.Session != 0 {
			return nil, core.RefuseCode(ledger.Conflict, "comment_queue_gone", core.Object{}.Str("issueId", i.ID).Close(),
				"The queued comments are no longer waiting: their run has begun or ended")
		}
		if r := q.Revision(); r != p.Revision {
			return nil, core.RefuseCode(ledger.Conflict, "comment_queue_changed", core.Object{}.Str("issueId", i.ID).
				Str("queueId", q.Run.ID).Str("revision", r).Close(),
				"The queued comments have changed since; look again")
		}
		return nil, change(c, i, q, p)
	}
}

func errNotQueued() error { return ledger.Refuse(ledger.NotFound, nil, "Queued comment not found") }

// entry returns a comment of the queue.
func (q CommentQueue) entry(id string) (entity.Comment, bool) {
	n := slices.IndexFunc(q.Entries, func(cm entity.Comment) bool { return cm.ID == id })
	if n < 0 {
		return entity.Comment{}, false
	}
	return q.Entries[n], true
}

func editQueued(c *ledger.Context, i entity.Issue, q CommentQueue, p ChangeQueue) error {
	cm, ok := q.entry(p.Comment)
	switch {
	case !ok:
		return errNotQueued()
	case string(cm.AuthorUser) != c.Cmd.Actor.ID:
		return ledger.Refuse(ledger.Forbidden, nil, "Only its author can change a comment")
	case p.Body == "" || len(p.Body) > entity.MaxText:
		return ledger.Refuse(ledger.Invalid, nil, "body has 1 to %d bytes", entity.MaxText)
	}
	at, _ := c.Get(entity.CommentAtKey(i.Company, cm.ID))
	cm.Body, cm.UpdatedAt = p.Body, core.TimeOf(c.Now)
	entity.Comments.Put(c.Tx, i.Company, string(at), cm)
	c.Record(ledger.Change{Action: "issue.queued_comment_edited", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("identifier", i.Identifier).Str("commentId", cm.ID).Str("bodySnippet",
			core.Snippet(cm.Body, 120)).Close()})
	return nil
}

// dropQueued deletes a comment before the agent reads it. A queued run without any other
// comment is cancelled.
func dropQueued(c *ledger.Context, i entity.Issue, q CommentQueue, p ChangeQueue) error {
	if _, ok := q.entry(p.Comment); !ok {
		return errNotQueued()
	}
	if _, err := deleteComment(c, DeleteComment{Issue: i.ID, ID: p.Comment}); err != nil {
		return err
	}
	r := q.Run
	r.Context.CommentIDs = slices.DeleteFunc(slices.Clone(r.Context.CommentIDs),
		func(id string) bool { return id == p.Comment })
	if r.Context.CommentID == p.Comment {
		r.Context.CommentID = ""
		if n := len(r.Context.CommentIDs); n > 0 {
			r.Context.CommentID = r.Context.CommentIDs[n-1]
		}
	}
	r.UpdatedAt = core.TimeOf(c.Now)
	entity.RunTable.Put(c.Tx, r.Company, r.ID, r)
	if len(q.Entries) == 1 && r.Context.WakeReason == "issue_commented" && r.Context.ApprovalID == "" &&
		r.Context.InteractionID == "" {
		cancelLive(c, r, "Cancelled: the comment that asked for it was taken back", c.Cmd.Actor)
	}
	return nil
}

func orderQueue(c *ledger.Context, i entity.Issue, q CommentQueue, p ChangeQueue) error {
	had := make([]string, 0, len(q.Entries))
	for _, cm := range q.Entries {
		had = append(had, cm.ID)
	}
	want := slices.Clone(p.Order)
	slices.Sort(had)
	slices.Sort(want)
	if !slices.Equal(had, want) {
		return ledger.Refuse(ledger.Unprocessable, core.Object{}.List("commentIds", had).Close(),
			"orderedCommentIds names each queued comment once")
	}
	r := q.Run
	r.Context.CommentIDs, r.UpdatedAt = slices.Clone(p.Order), core.TimeOf(c.Now)
	r.Context.CommentID = r.Context.CommentIDs[len(r.Context.CommentIDs)-1]
	entity.RunTable.Put(c.Tx, r.Company, r.ID, r)
	c.Record(ledger.Change{Action: "issue.queued_comments_ordered", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("identifier", i.Identifier).List("commentIds", p.Order[:min(len(p.Order), 20)]).Close()})
	return nil
}

// interruptFor ends the running run, so that the run with the comments starts.
func interruptFor(c *ledger.Context, i entity.Issue, q CommentQueue, p ChangeQueue) error {
	if p.Target != q.Target {
		return core.RefuseCode(ledger.Conflict, "comment_queue_changed", core.Object{}.Str("issueId", i.ID).
			Null("targetRunId", q.Target).Close(), "Another run is at work by now, or none")
	}
	c.Record(ledger.Change{Action: "issue.queued_comments_interrupted", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("identifier", i.Identifier).Null("runId", q.Target).Str("queuedRunId", q.Run.ID).Close()})
	if r, ok := entity.RunTable.Get(c.Tx, i.Company, q.Target); ok && r.Status.Live() {
		cancelLive(c, r, "Cancelled for the comments that wait", c.Cmd.Actor)
	}
	return nil
}
