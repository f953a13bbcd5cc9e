package company

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// Of a company of before there was an index the leader has one made, bit by bit,
// and it is the one that would have been kept, whatever is written meanwhile.
func TestTheIndexOfInboxesIsMadeForOldCompanies(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	who := []as{board, {ada, d.run(ada)}}
	var all []Issue
	for n := range 2*indexedIssues + 7 {
		i := d.issue(t, CreateIssue{Status: IssueTodo, AssigneeUser: []string{"", "local-board"}[n%2]})
		all = append(all, i)
		for range n % 4 {
			d.must(t, who[n%2], "comment.create", CreateComment{ID: d.id(), Issue: i.ID, Body: "x"}, nil)
			d.now = d.now.Add(time.Second)
		}
	}
	gone := d.id()
	d.must(t, board, "comment.create", CreateComment{ID: gone, Issue: all[0].ID, Body: "x"}, nil)
	d.must(t, board, "comment.delete", DeleteComment{Issue: all[0].ID, ID: gone}, nil)
	families := func() map[string]string {
		out := map[string]string{}
		for _, name := range []string{"issue-touch", "issue-said"} {
			for k, v := range d.tx.Prefix(ledger.Key("c", d.company, name, "")) {
				out[string(k)] = string(v)
			}
		}
		return out
	}
	if !IssuesToIndex(d.tx, d.company) { // the desk's company was made without a command
		t.Fatal("a company of before has nothing to index")
	}
	for k := range families() {
		d.tx.Delete([]byte(k))
	}
	for n := 0; IssuesToIndex(d.tx, d.company); n++ {
		if n > 5 {
			t.Fatal("it does not end")
		}
		if err := d.byLeader("issue.index", IndexIssues{}); err != nil {
			t.Fatal(err)
		}
		for _, i := range []Issue{all[0], all[len(all)-1]} { // one that was done, one that was not
			d.must(t, board, "comment.create", CreateComment{ID: d.id(), Issue: i.ID, Body: "meanwhile"}, nil)
		}
	}
	wantRefusal(t, d.byLeader("issue.index", IndexIssues{}), ledger.Conflict, "")
	got := families()
	indexings.Delete(d.tx, d.company, theVoices)
	for k := range got {
		d.tx.Delete([]byte(k))
	}
	for IssuesToIndex(d.tx, d.company) {
		if err := d.byLeader("issue.index", IndexIssues{}); err != nil {
			t.Fatal(err)
		}
	}
	if want := families(); !maps.Equal(got, want) || len(got) < len(all) {
		t.Errorf("%d keys, made at rest %d", len(got), len(want))
	}
	for _, i := range all {
		for _, by := range []string{"local-board"} {
			if got, want := spoke(d.tx, i, userVoice(by)), byRows(d.tx, d.load(i.ID), IssueFilters{Touched: by}); got && !want {
				t.Errorf("%s: index says %v, rows %v", i.Identifier, got, want)
			}
		}
	}
}

// What the index says of issues is what a look at all rows says, whatever was
// made, assigned, said, deleted.
func TestTheIndexOfInboxesIsTrue(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		d := newDesk(t)
		rng := rand.New(rand.NewPCG(seed, 3))
		ada, bob := d.agent("Ada"), d.agent("Bob")
		who := []as{board, {ada, d.run(ada)}, {bob, d.run(bob)}}
		var all, comments []string
		pick := func(of []string) string {
			if len(of) == 0 {
				return uid(1)
			}
			return of[rng.IntN(len(of))]
		}
		for range 120 {
			by, id := who[rng.IntN(len(who))], d.id()
			switch rng.IntN(8) {
			case 0, 1:
				if d.do(by, "issue.create", CreateIssue{ID: id, Title: id}, nil) == nil {
					all = append(all, id)
				}
			case 2:
				_ = d.do(board, "issue.update", UpdateIssue{Issue: pick(all), Assignee: new([]string{"", ada, bob}[rng.IntN(3)]), AssigneeUser: new("")}, nil)
			case 3:
				_ = d.do(board, "issue.update", UpdateIssue{Issue: pick(all), AssigneeUser: new("local-board"), Assignee: new("")}, nil)
			case 4, 5:
				if d.do(by, "comment.create", CreateComment{ID: id, Issue: pick(all), Body: "x"}, nil) == nil {
					comments = append(comments, id)
				}
			case 6:
				id = pick(comments)
				for _, i := range all {
					_ = d.do(by, "comment.delete", DeleteComment{Issue: i, ID: id}, nil)
				}
			case 7:
				if id = pick(all); rng.IntN(4) == 0 && d.do(board, "issue.delete", DeleteIssue{Issue: id}, nil) == nil {
					all = slices.DeleteFunc(all, func(other string) bool { return other == id })
				}
			}
		}
		for _, q := range []IssueFilters{{Touched: "local-board"}, {UnreadBy: "local-board"}, {Agent: ada}, {Agent: bob}, {Touched: "nobody"}} {
			var got, want []string
			for _, i := range ListIssues(d.tx, d.company, IssueQuery{IssueFilters: q, Limit: MaxIssueLimit}) {
				got = append(got, i.ID)
			}
			for _, id := range all {
				if i := d.load(id); byRows(d.tx, i, q) {
					want = append(want, id)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, %+v: got %v, want %v", seed, q, got, want)
			}
		}
		for _, id := range all {
			d.must(t, board, "issue.delete", DeleteIssue{Issue: id}, nil)
		}
		if n := d.count("issue-touch") + d.count("issue-said"); n != 0 {
			t.Fatalf("seed %d: %d keys are left", seed, n)
		}
	}
}

// byRows is what the filters mean, by a look at an issue and all its comments.
func byRows(tx *ledger.Tx, i Issue, f IssueFilters) bool {
	all, _ := CommentsOf(tx, i, CommentQuery{Limit: MaxCommentLimit})
	mine, others := false, Time(0)
	last := Time(0)
	for _, cm := range all {
		switch {
		case cm.DeletedAt != 0:
		case f.Agent != "" && string(cm.AuthorAgent) == f.Agent, f.Agent == "" && string(cm.AuthorUser) == f.toucher():
			mine, last = true, max(last, cm.CreatedAt)
		default:
			others = max(others, cm.CreatedAt)
		}
	}
	if f.Agent != "" {
		return mine || i.CreatedAgent == f.Agent || i.Assignee == f.Agent
	}
	user := f.toucher()
	touched := mine || i.CreatedUser == user || i.AssigneeUser == user
	if i.CreatedUser == user {
		last = max(last, i.CreatedAt)
	}
	return touched && (f.UnreadBy == "" || last != 0 && others > last)
}

// Many voices on one issue are told apart up to a bound, and go with it.
func TestVoicesAreBounded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	i := d.issue(t, CreateIssue{})
	for n := range MaxVoices + 5 {
		hear(d.tx, Comment{Company: d.company, Issue: i.ID, AuthorUser: NullText(uid(n)), CreatedAt: Time(n + 1)})
	}
	if n := voices(d.tx, d.company, i.ID); n != MaxVoices+1 {
		t.Errorf("%d rows", n)
	}
	if s := heard(d.tx, i, userVoice(uid(3))); s.mine != 4 || s.others != MaxVoices+5 {
		t.Errorf("standing %+v", s)
	}
	d.must(t, board, "issue.delete", DeleteIssue{Issue: i.ID}, nil)
	if n := d.count("issue-touch") + d.count("issue-said"); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}
