package company_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
)

// A run that waits says why: what stops it, its agent's limit, or what the nodes lack,
// with what to do when that does not pass by itself.
func TestARunSaysWhyItWaits(t *testing.T) {
	t.Parallel()
	nodes := func(refusals ...string) func(*testing.T, *companytest.Desk, string, entity.Run) {
		return func(t *testing.T, d *companytest.Desk, _ string, r entity.Run) {
			p := company.Placement{}
			for n, why := range refusals {
				p.Candidates = append(p.Candidates, company.Candidate{Node: companytest.UID(n), Refusal: core.NullText(why)})
			}
			if err := d.ByNode("n1", "run.unplaced", company.Unplaced{Run: r.ID, Why: p}); err != nil {
				t.Fatal(err)
			}
		}
	}
	pausedFor := func(reason string) func(*testing.T, *companytest.Desk, string, entity.Run) {
		return func(_ *testing.T, d *companytest.Desk, ada string, _ entity.Run) {
			a, _ := entity.AgentTable.Get(d.Tx, d.Company, ada)
			a.Status, a.PauseReason = entity.AgentPaused, core.NullText(reason)
			entity.AgentTable.Put(d.Tx, a.Company, a.ID, a)
		}
	}
	for name, c := range map[string]struct {
		do           func(*testing.T, *companytest.Desk, string, entity.Run)
		reason, text string
		lasting      bool
	}{
		"nothing told": {func(*testing.T, *companytest.Desk, string, entity.Run) {}, "node", "it waits for a node", false},
		"no program": {nodes("has no program claude", "has no program claude"), "no_node",
			"no node has program claude", true},
		"one is away": {nodes("has no program claude", "is not heard"), "no_node",
			" has no program claude;  is not heard", true},
		"drained":    {nodes("is being drained"), "no_node", "of every node: is being drained", true},
		"no label":   {nodes("lacks label fast"), "no_node", "of every node: lacks label fast", true},
		"no GPU":     {nodes("has no GPU"), "no_node", "no node has a GPU", true},
		"full":       {nodes("has no GPU", "all slots are taken"), "no_slot", " has no GPU;  all slots are taken", false},
		"its budget": {pausedFor("budget"), "budget_paused", "paused by its budget, that of agent Ada", false},
		"paused":     {pausedFor("manual"), "agent_paused", "agent Ada is paused (selvage agent resume)", false},
		"stopped": {func(t *testing.T, d *companytest.Desk, _ string, _ entity.Run) {
			d.Must(t, companytest.Board, "mesh.stop", company.StopAll{Reason: "drill"}, nil)
		},
			"mesh_stopped", "everything is stopped: drill (selvage resume lets it go on)", false},
		"at its limit": {func(_ *testing.T, d *companytest.Desk, ada string, _ entity.Run) {
			for range 20 {
				r, _ := entity.RunOf(d.Tx, d.Company, d.Run(ada))
				r.Session = 7
				d.StoreRun(r)
			}
		}, "concurrency_limit", "its agent has as many runs at work as it may have (maxConcurrentRuns)", false},
	} {
		t.Run(name, func(t *testing.T) {
			d := companytest.NewDesk(t)
			ada := d.Hired("Ada")
			i := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Assignee: ada})
			r := entity.LiveRunsOnIssue(d.Tx, i)[0]
			c.do(t, d, ada, r)
			r, _ = entity.RunOf(d.Tx, d.Company, r.ID)
			now := core.TimeOf(d.Now)
			w, ok := company.WaitOf(d.Tx, r, now)
			if !ok || w.Reason != c.reason || w.Text != c.text || w.Lasting != c.lasting || (w.Do != "") != c.lasting {
				t.Errorf("got %v %+v", ok, w)
			}
			for _, at := range []core.Time{now, now + 60_000} {
				want := c.lasting && at > now
				if all, _ := company.LongWaits(d.Tx, d.Company, at, 60_000, 10); (len(all) == 1) != want {
					t.Errorf("after %d ms, %d long waits", at-now, len(all))
				}
			}
		})
	}
	d := companytest.NewDesk(t)
	if _, ok := company.WaitOf(d.Tx, entity.Run{Status: entity.RunRunning}, core.TimeOf(d.Now)); ok {
		t.Error("a run at work waits")
	}
}

// The issue of a run for which no node has the program says so, once, and what to do.
func TestAnIssueSaysWhichProgramIsMissing(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Hired("Ada")
	i := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Assignee: ada})
	r := entity.LiveRunsOnIssue(d.Tx, i)[0]
	for _, c := range []struct {
		refusal  core.NullText
		comments uint64
	}{{"is being drained", 0}, {"has no program claude", 0}} { // the second changes what was told of the run already
		if err := d.ByNode("n1", "run.unplaced",
			company.Unplaced{Run: r.ID, Why: company.Placement{Candidates: []company.Candidate{{Node: "n",
				Refusal: c.refusal}}}}); err != nil {
			t.Fatal(err)
		}
		if got := d.Load(i.ID).Comments; got != c.comments {
			t.Errorf("after %q the issue has %d comments, want %d", c.refusal, got, c.comments)
		}
	}
	other := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Assignee: ada})
	for range 2 {
		r = entity.LiveRunsOnIssue(d.Tx, other)[0]
		if err := d.ByNode("n1", "run.unplaced",
			company.Unplaced{Run: r.ID, Why: company.Placement{Candidates: []company.Candidate{{Node: "n",
				Refusal: "has no program claude"}}}}); err != nil {
			t.Fatal(err)
		}
	}
	said, err := entity.CommentsOf(d.Tx, d.Load(other.ID), entity.CommentQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if len(said) != 1 || said[0].AuthorType != "system" ||
		!strings.Contains(said[0].Body,
			"no node has program claude. To go on: install claude on a node, or change the adapter: selvage "+
				"agent update \"Ada\"") {
		t.Errorf("the comments are %+v", said)
	}
}

// A run whose issue is held by one that is over waits until that one's node says that
// nothing of it is left, or is lost, and holds up no other.
func TestARunWaitsForTheEndOfTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Hired("Ada")
	held, free := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Assignee: ada}),
		d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Assignee: ada})
	r := entity.LiveRunsOnIssue(d.Tx, held)[0]
	queued := func() (ids []string) {
		for _, q := range entity.QueuedRuns(d.Tx, core.TimeOf(d.Now), "", 10, 10) {
			ids = append(ids, q.ID)
		}
		return ids
	}
	other := entity.LiveRunsOnIssue(d.Tx, free)[0]
	if got := queued(); !slices.Contains(got, r.ID) || !slices.Contains(got, other.ID) {
		t.Fatalf("queued are %v", got)
	}
	before, _ := entity.RunOf(d.Tx, d.Company, d.Run(ada))
	before.Status, before.Session, before.Owed = entity.RunCancelled, 7, true
	d.StoreRun(before)
	next := d.Load(held.ID)
	next.CheckoutRun = before.ID
	company.StoreIssue(d.Tx, d.Load(held.ID), next)
	if w, ok := company.WaitOf(d.Tx, r, core.TimeOf(d.Now)); !ok || w.Reason != "run_ending" || w.Lasting {
		t.Errorf("it waits for %v %+v", ok, w)
	}
	if got := queued(); slices.Contains(got, r.ID) || !slices.Contains(got, other.ID) {
		t.Errorf("while the issue is held, queued are %v", got)
	}
	before.Owed = false
	d.StoreRun(before)
	if got := queued(); !slices.Contains(got, r.ID) {
		t.Errorf("after that, queued are %v", got)
	}
}
