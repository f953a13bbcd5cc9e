package company_test

import (
	"fmt"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestComments(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	who := companytest.As{Agent: ada, Run: d.Run(ada)}
	i, other := d.Issue(t, company.CreateIssue{}), d.Issue(t, company.CreateIssue{})
	var ids []string
	for n := range 32 {
		speaker := []companytest.As{companytest.Board, who}[n%2]
		var cm entity.Comment
		d.Must(t, speaker, "comment.create", entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: fmt.Sprint("no ", n)}, &cm)
		if wantAgent := speaker == who; (cm.AuthorType == "agent") != wantAgent ||
			(cm.AuthorAgent == core.NullText(ada)) != wantAgent {
			t.Errorf("comment %d is by %s %q", n, cm.AuthorType, cm.AuthorAgent)
		}
		ids = append(ids, cm.ID)
	}
	if got := d.Load(i.ID); got.Comments != 32 || got.UpdatedAt != core.TimeOf(d.Now) {
		t.Errorf("the issue counts %d comments, updated at %v", got.Comments, got.UpdatedAt)
	}
	for name, tc := range map[string]struct {
		q           entity.CommentQuery
		first, last string
		n           int
	}{
		"newest first":        {entity.CommentQuery{}, ids[31], ids[0], 32},
		"oldest first":        {entity.CommentQuery{Ascending: true}, ids[0], ids[31], 32},
		"limit":               {entity.CommentQuery{Ascending: true, Limit: 5}, ids[0], ids[4], 5},
		"after, oldest first": {entity.CommentQuery{Ascending: true, After: ids[29]}, ids[30], ids[31], 2},
		"after, newest first": {entity.CommentQuery{After: ids[2]}, ids[1], ids[0], 2},
	} {
		got, err := entity.CommentsOf(d.Tx, i, tc.q)
		if err != nil || len(got) != tc.n || got[0].ID != tc.first || got[len(got)-1].ID != tc.last {
			t.Errorf("%s: got %d comments, %v", name, len(got), err)
		}
	}
	if _, err := entity.CommentsOf(d.Tx, other, entity.CommentQuery{After: ids[0]}); err == nil {
		t.Error("another issue's comment was taken for a cursor")
	}
	if _, ok := entity.CommentOf(d.Tx, d.Company, other.ID, ids[0]); ok {
		t.Error("found a comment on another issue")
	}
	companytest.WantRefusal(t, d.Do(companytest.As{Agent: ada, Run: ""}, "comment.create", entity.CreateComment{ID: d.ID(),
		Issue: i.ID, Body: "x"}, nil), ledger.Forbidden,
		"An agent writes on issues under a run of its own that is still going on; this request named none.")
}

func TestClientRequestIDMakesOneComment(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	i := d.Issue(t, company.CreateIssue{})
	var a, b entity.Comment
	d.Must(t, companytest.Board, "comment.create", entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: "once",
		ClientRequest: companytest.UID(5)}, &a)
	d.Must(t, companytest.Board, "comment.create", entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: "once",
		ClientRequest: companytest.UID(5)}, &b)
	if a.ID != b.ID || d.Load(i.ID).Comments != 1 {
		t.Errorf("got %s and %s", a.ID, b.ID)
	}
}

func TestDeletedCommentKeepsItsPlace(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	i := d.Issue(t, company.CreateIssue{})
	id := d.ID()
	d.Must(t, companytest.Board, "comment.create", entity.CreateComment{ID: id, Issue: i.ID, Body: "secret"}, nil)
	companytest.WantRefusal(t, d.Do(companytest.As{Agent: ada, Run: d.Run(ada)}, "comment.delete",
		company.DeleteComment{Issue: i.ID, ID: id}, nil), ledger.Forbidden,
		"Only the author or the board can delete a comment")
	var cm entity.Comment
	d.Must(t, companytest.Board, "comment.delete", company.DeleteComment{Issue: i.ID, ID: id}, &cm)
	if cm.Body != "" || cm.DeletedAt == 0 || cm.DeletedByUser != "local-board" {
		t.Errorf("got %+v", cm)
	}
	if all, _ := entity.CommentsOf(d.Tx, d.Load(i.ID), entity.CommentQuery{}); len(all) != 1 {
		t.Errorf("the thread has %d comments", len(all))
	}
}

func TestReadStates(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	i := d.Issue(t, company.CreateIssue{})
	var first, again inbox.ReadState
	d.Must(t, companytest.Board, "issue.read", inbox.MarkIssue{Issue: i.ID}, &first)
	d.Must(t, companytest.Board, "issue.read", inbox.MarkIssue{Issue: i.ID}, &again)
	if first.ID != again.ID || again.CreatedAt != first.CreatedAt || again.ReadAt <= first.ReadAt {
		t.Errorf("got %+v then %+v", first, again)
	}
	d.Must(t, companytest.Board, "issue.archive", inbox.MarkIssue{Issue: i.ID}, nil)
	if !inbox.Archived(d.Tx, d.Load(i.ID), "local-board") {
		t.Error("not archived")
	}
	d.Must(t, companytest.Board, "comment.create", entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: "news"}, nil)
	if inbox.Archived(d.Tx, d.Load(i.ID), "local-board") {
		t.Error("news did not bring it back")
	}
	for _, kind := range []string{"issue.unread", "issue.unarchive"} {
		for _, want := range []bool{true, false} {
			var r inbox.Removed
			if d.Must(t, companytest.Board, kind, inbox.MarkIssue{Issue: i.ID}, &r); r.Removed != want {
				t.Errorf("%s: removed %v, want %v", kind, r.Removed, want)
			}
		}
	}
}
