package company

import (
	"fmt"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

func TestComments(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	who := as{ada, d.run(ada)}
	i, other := d.issue(t, CreateIssue{}), d.issue(t, CreateIssue{})
	var ids []string
	for n := range 32 {
		speaker := []as{board, who}[n%2]
		var cm Comment
		d.must(t, speaker, "comment.create", CreateComment{ID: d.id(), Issue: i.ID, Body: fmt.Sprint("no ", n)}, &cm)
		if wantAgent := speaker == who; (cm.AuthorType == "agent") != wantAgent || (cm.AuthorAgent == NullText(ada)) != wantAgent {
			t.Errorf("comment %d is by %s %q", n, cm.AuthorType, cm.AuthorAgent)
		}
		ids = append(ids, cm.ID)
	}
	if got := d.load(i.ID); got.Comments != 32 || got.UpdatedAt != TimeOf(d.now) {
		t.Errorf("the issue counts %d comments, updated at %v", got.Comments, got.UpdatedAt)
	}
	for name, tc := range map[string]struct {
		q           CommentQuery
		first, last string
		n           int
	}{
		"newest first":        {CommentQuery{}, ids[31], ids[0], 32},
		"oldest first":        {CommentQuery{Ascending: true}, ids[0], ids[31], 32},
		"limit":               {CommentQuery{Ascending: true, Limit: 5}, ids[0], ids[4], 5},
		"after, oldest first": {CommentQuery{Ascending: true, After: ids[29]}, ids[30], ids[31], 2},
		"after, newest first": {CommentQuery{After: ids[2]}, ids[1], ids[0], 2},
	} {
		got, err := CommentsOf(d.tx, i, tc.q)
		if err != nil || len(got) != tc.n || got[0].ID != tc.first || got[len(got)-1].ID != tc.last {
			t.Errorf("%s: got %d comments, %v", name, len(got), err)
		}
	}
	if _, err := CommentsOf(d.tx, other, CommentQuery{After: ids[0]}); err == nil {
		t.Error("another issue's comment was taken for a cursor")
	}
	if _, ok := CommentOf(d.tx, d.company, other.ID, ids[0]); ok {
		t.Error("found a comment on another issue")
	}
	wantRefusal(t, d.do(as{ada, ""}, "comment.create", CreateComment{ID: d.id(), Issue: i.ID, Body: "x"}, nil), ledger.Forbidden, "")
}

func TestClientRequestIDMakesOneComment(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	i := d.issue(t, CreateIssue{})
	var a, b Comment
	d.must(t, board, "comment.create", CreateComment{ID: d.id(), Issue: i.ID, Body: "once", ClientRequest: uid(5)}, &a)
	d.must(t, board, "comment.create", CreateComment{ID: d.id(), Issue: i.ID, Body: "once", ClientRequest: uid(5)}, &b)
	if a.ID != b.ID || d.load(i.ID).Comments != 1 {
		t.Errorf("got %s and %s", a.ID, b.ID)
	}
}

func TestDeletedCommentKeepsItsPlace(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	i := d.issue(t, CreateIssue{})
	id := d.id()
	d.must(t, board, "comment.create", CreateComment{ID: id, Issue: i.ID, Body: "secret"}, nil)
	wantRefusal(t, d.do(as{ada, d.run(ada)}, "comment.delete", DeleteComment{Issue: i.ID, ID: id}, nil), ledger.Forbidden, "")
	var cm Comment
	d.must(t, board, "comment.delete", DeleteComment{Issue: i.ID, ID: id}, &cm)
	if cm.Body != "" || cm.DeletedAt == 0 || cm.DeletedByUser != "local-board" {
		t.Errorf("got %+v", cm)
	}
	if all, _ := CommentsOf(d.tx, d.load(i.ID), CommentQuery{}); len(all) != 1 {
		t.Errorf("the thread has %d comments", len(all))
	}
}

func TestReadStates(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	i := d.issue(t, CreateIssue{})
	var first, again ReadState
	d.must(t, board, "issue.read", MarkIssue{Issue: i.ID}, &first)
	d.must(t, board, "issue.read", MarkIssue{Issue: i.ID}, &again)
	if first.ID != again.ID || again.CreatedAt != first.CreatedAt || again.ReadAt <= first.ReadAt {
		t.Errorf("got %+v then %+v", first, again)
	}
	d.must(t, board, "issue.archive", MarkIssue{Issue: i.ID}, nil)
	if !Archived(d.tx, d.load(i.ID), "local-board") {
		t.Error("not archived")
	}
	d.must(t, board, "comment.create", CreateComment{ID: d.id(), Issue: i.ID, Body: "news"}, nil)
	if Archived(d.tx, d.load(i.ID), "local-board") {
		t.Error("news did not bring it back")
	}
	for _, kind := range []string{"issue.unread", "issue.unarchive"} {
		for _, want := range []bool{true, false} {
			var r Removed
			if d.must(t, board, kind, MarkIssue{Issue: i.ID}, &r); r.Removed != want {
				t.Errorf("%s: removed %v, want %v", kind, r.Removed, want)
			}
		}
	}
}
