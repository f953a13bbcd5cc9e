package inbox_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/ledger"
)

// For a company older than the index, the leader's commands build it in steps. The result
// equals an index kept from the start, whatever is written meanwhile.
func TestTheIndexOfInboxesIsMadeForOldCompanies(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	who := []companytest.As{companytest.Board, {Agent: ada, Run: d.Run(ada)}}
	var all []entity.Issue
	for n := range 2*inbox.IndexedIssues + 7 {
		i := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, AssigneeUser: []string{"", "local-board"}[n%2]})
		all = append(all, i)
		for range n % 4 {
			d.Must(t, who[n%2], "comment.create", entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: "x"}, nil)
			d.Now = d.Now.Add(time.Second)
		}
	}
	gone := d.ID()
	d.Must(t, companytest.Board, "comment.create", entity.CreateComment{ID: gone, Issue: all[0].ID, Body: "x"}, nil)
	d.Must(t, companytest.Board, "comment.delete", company.DeleteComment{Issue: all[0].ID, ID: gone}, nil)
	families := func() map[string]string {
		out := map[string]string{}
		for _, name := range []string{"issue-touch", "issue-said"} {
			for k, v := range d.Tx.Prefix(ledger.Key("c", string(d.Company), name, "")) {
				out[string(k)] = string(v)
			}
		}
		return out
	}
	if !inbox.IssuesToIndex(d.Tx, d.Company) { // the fixture's company was made without a command
		t.Fatal("a company of before has nothing to index")
	}
	for k := range families() {
		d.Tx.Delete([]byte(k))
	}
	for n := 0; inbox.IssuesToIndex(d.Tx, d.Company); n++ {
		if n > 5 {
			t.Fatal("it does not end")
		}
		if err := d.ByLeader("issue.index", inbox.IndexIssues{}); err != nil {
			t.Fatal(err)
		}
		for _, i := range []entity.Issue{all[0], all[len(all)-1]} { // one that is done, one that is not
			d.Must(t, companytest.Board, "comment.create", entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: "meanwhile"}, nil)
		}
	}
	companytest.WantRefusal(t, d.ByLeader("issue.index", inbox.IndexIssues{}), ledger.Conflict, "the issues are indexed")
	got := families()
	inbox.Indexings.Delete(d.Tx, d.Company, inbox.TheVoices)
	for k := range got {
		d.Tx.Delete([]byte(k))
	}
	for inbox.IssuesToIndex(d.Tx, d.Company) {
		if err := d.ByLeader("issue.index", inbox.IndexIssues{}); err != nil {
			t.Fatal(err)
		}
	}
	if want := families(); !maps.Equal(got, want) || len(got) < len(all) {
		t.Errorf("%d keys, made at rest %d", len(got), len(want))
	}
	for _, i := range all {
		for _, by := range []string{"local-board"} {
			if got, want := inbox.Spoke(d.Tx, i, inbox.UserVoice(by)),
				byRows(d.Tx, d.Load(i.ID), inbox.IssueFilters{Touched: by}); got && !want {
				t.Errorf("%s: index says %v, rows %v", i.Identifier, got, want)
			}
		}
	}
}

// The index gives the same answers as a scan of all rows, after any sequence of created
// issues, assignments, comments and deletions.
func TestTheIndexOfInboxesIsTrue(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		d := companytest.NewDesk(t)
		rng := rand.New(rand.NewPCG(seed, 3))
		ada, bob := d.Agent("Ada"), d.Agent("Bob")
		who := []companytest.As{companytest.Board, {Agent: ada, Run: d.Run(ada)}, {Agent: bob, Run: d.Run(bob)}}
		var all, comments []string
		pick := func(of []string) string {
			if len(of) == 0 {
				return companytest.UID(1)
			}
			return of[rng.IntN(len(of))]
		}
		for range 120 {
			by, id := who[rng.IntN(len(who))], d.ID()
			switch rng.IntN(8) {
			case 0, 1:
				if d.Do(by, "issue.create", company.CreateIssue{ID: id, Title: id}, nil) == nil {
					all = append(all, id)
				}
			case 2:
				_ = d.Do(companytest.Board, "issue.update", company.UpdateIssue{Issue: pick(all),
					Assignee: new([]string{"", ada, bob}[rng.IntN(3)]), AssigneeUser: new("")}, nil)
			case 3:
				_ = d.Do(companytest.Board, "issue.update", company.UpdateIssue{Issue: pick(all), AssigneeUser: new("local-board"),
					Assignee: new("")}, nil)
			case 4, 5:
				if d.Do(by, "comment.create", entity.CreateComment{ID: id, Issue: pick(all), Body: "x"}, nil) == nil {
					comments = append(comments, id)
				}
			case 6:
				id = pick(comments)
				for _, i := range all {
					_ = d.Do(by, "comment.delete", company.DeleteComment{Issue: i, ID: id}, nil)
				}
			case 7:
				if id = pick(all); rng.IntN(4) == 0 && d.Do(companytest.Board, "issue.delete", company.DeleteIssue{Issue: id},
					nil) == nil {
					all = slices.DeleteFunc(all, func(other string) bool { return other == id })
				}
			}
		}
		for _, q := range []inbox.IssueFilters{{Touched: "local-board"}, {UnreadBy: "local-board"}, {Agent: ada},
			{Agent: bob}, {Touched: "nobody"}} {
			var got, want []string
			for _, i := range inbox.ListIssues(d.Tx, d.Company, inbox.IssueQuery{IssueFilters: q, Limit: entity.MaxIssueLimit}) {
				got = append(got, i.ID)
			}
			for _, id := range all {
				if i := d.Load(id); byRows(d.Tx, i, q) {
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
			d.Must(t, companytest.Board, "issue.delete", company.DeleteIssue{Issue: id}, nil)
		}
		if n := d.Count("issue-touch") + d.Count("issue-said"); n != 0 {
			t.Fatalf("seed %d: %d keys are left", seed, n)
		}
	}
}

// byRows computes the filters from an issue and all its comments, without the index.
func byRows(tx *ledger.Tx, i entity.Issue, f inbox.IssueFilters) bool {
	all, _ := entity.CommentsOf(tx, i, entity.CommentQuery{Limit: entity.MaxCommentLimit})
	mine, others := false, core.Time(0)
	last := core.Time(0)
	for _, cm := range all {
		switch {
		case cm.DeletedAt != 0:
		case f.Agent != "" && string(cm.AuthorAgent) == f.Agent, f.Agent == "" && string(cm.AuthorUser) == f.Toucher():
			mine, last = true, max(last, cm.CreatedAt)
		default:
			others = max(others, cm.CreatedAt)
		}
	}
	if f.Agent != "" {
		return mine || i.CreatedAgent == f.Agent || i.Assignee == f.Agent
	}
	user := f.Toucher()
	touched := mine || i.CreatedUser == user || i.AssigneeUser == user
	if i.CreatedUser == user {
		last = max(last, i.CreatedAt)
	}
	return touched && (f.UnreadBy == "" || last != 0 && others > last)
}

// Authors on one issue are stored individually up to the bound, and deleted with the issue.
func TestVoicesAreBounded(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	i := d.Issue(t, company.CreateIssue{})
	for n := range inbox.MaxVoices + 5 {
		inbox.Hear(d.Tx, entity.Comment{Company: d.Company, Issue: i.ID, AuthorUser: core.NullText(companytest.UID(n)),
			CreatedAt: core.Time(n + 1)})
	}
	if n := inbox.Voices(d.Tx, d.Company, i.ID); n != inbox.MaxVoices+1 {
		t.Errorf("%d rows", n)
	}
	if s := inbox.Heard(d.Tx, i, inbox.UserVoice(companytest.UID(3))); s.Mine != 4 || s.Others != inbox.MaxVoices+5 {
		t.Errorf("standing %+v", s)
	}
	d.Must(t, companytest.Board, "issue.delete", company.DeleteIssue{Issue: i.ID}, nil)
	if n := d.Count("issue-touch") + d.Count("issue-said"); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}
