package company

import (
	"slices"
	"testing"
)

// A run that waits says why: what stops it, its agent's limit, or what the nodes lack,
// with what to do when that does not pass by itself.
func TestARunSaysWhyItWaits(t *testing.T) {
	t.Parallel()
	nodes := func(refusals ...string) func(*testing.T, *desk, string, Run) {
		return func(t *testing.T, d *desk, _ string, r Run) {
			p := Placement{}
			for n, why := range refusals {
				p.Candidates = append(p.Candidates, Candidate{Node: uid(n), Refusal: NullText(why)})
			}
			if err := d.byNode("n1", "run.unplaced", Unplaced{Run: r.ID, Why: p}); err != nil {
				t.Fatal(err)
			}
		}
	}
	pausedFor := func(reason string) func(*testing.T, *desk, string, Run) {
		return func(_ *testing.T, d *desk, ada string, _ Run) {
			a, _ := agents.Get(d.tx, d.company, ada)
			a.Status, a.PauseReason = AgentPaused, NullText(reason)
			agents.Put(d.tx, a.Company, a.ID, a)
		}
	}
	for name, c := range map[string]struct {
		do           func(*testing.T, *desk, string, Run)
		reason, text string
		lasting      bool
	}{
		"nothing told": {func(*testing.T, *desk, string, Run) {}, "node", "it waits for a node", false},
		"no program":   {nodes("has no program claude", "has no program claude"), "no_node", "no node has program claude", true},
		"one is away":  {nodes("has no program claude", "is not heard"), "no_node", " has no program claude;  is not heard", true},
		"drained":      {nodes("is being drained"), "no_node", "of every node: is being drained", true},
		"no label":     {nodes("lacks label fast"), "no_node", "of every node: lacks label fast", true},
		"no GPU":       {nodes("has no GPU"), "no_node", "no node has a GPU", true},
		"full":         {nodes("has no GPU", "all slots are taken"), "no_slot", " has no GPU;  all slots are taken", false},
		"its budget":   {pausedFor("budget"), "budget_paused", "paused by its budget, that of agent Ada", false},
		"paused":       {pausedFor("manual"), "agent_paused", "agent Ada is paused (selvage agent resume)", false},
		"stopped": {func(t *testing.T, d *desk, _ string, _ Run) {
			d.must(t, board, "mesh.stop", StopAll{Reason: "drill"}, nil)
		},
			"mesh_stopped", "everything is stopped: drill (selvage resume lets it go on)", false},
		"at its limit": {func(_ *testing.T, d *desk, ada string, _ Run) {
			for range 20 {
				r, _ := RunOf(d.tx, d.company, d.run(ada))
				r.Session = 7
				d.storeRun(r)
			}
		}, "concurrency_limit", "its agent has as many runs at work as it may have (maxConcurrentRuns)", false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			ada := d.hired("Ada")
			i := d.issue(t, CreateIssue{Status: IssueTodo, Assignee: ada})
			r := LiveRunsOnIssue(d.tx, i)[0]
			c.do(t, d, ada, r)
			r, _ = RunOf(d.tx, d.company, r.ID)
			now := TimeOf(d.now)
			w, ok := WaitOf(d.tx, r, now)
			if !ok || w.Reason != c.reason || w.Text != c.text || w.Lasting != c.lasting || (w.Do != "") != c.lasting {
				t.Errorf("got %v %+v", ok, w)
			}
			for _, at := range []Time{now, now + 60_000} {
				want := c.lasting && at > now
				if all, _ := LongWaits(d.tx, d.company, at, 60_000, 10); (len(all) == 1) != want {
					t.Errorf("after %d ms, %d long waits", at-now, len(all))
				}
			}
		})
	}
	d := newDesk(t)
	if _, ok := WaitOf(d.tx, Run{Status: RunRunning}, TimeOf(d.now)); ok {
		t.Error("a run at work waits")
	}
}

// A run whose issue is held by one that is over waits until that one's node says that
// nothing of it is left, or is lost, and holds up no other.
func TestARunWaitsForTheEndOfTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.hired("Ada")
	held, free := d.issue(t, CreateIssue{Status: IssueTodo, Assignee: ada}), d.issue(t, CreateIssue{Status: IssueTodo, Assignee: ada})
	r := LiveRunsOnIssue(d.tx, held)[0]
	queued := func() (ids []string) {
		for _, q := range QueuedRuns(d.tx, TimeOf(d.now), "", 10, 10) {
			ids = append(ids, q.ID)
		}
		return ids
	}
	other := LiveRunsOnIssue(d.tx, free)[0]
	if got := queued(); !slices.Contains(got, r.ID) || !slices.Contains(got, other.ID) {
		t.Fatalf("queued are %v", got)
	}
	before, _ := RunOf(d.tx, d.company, d.run(ada))
	before.Status, before.Session, before.Owed = RunCancelled, 7, true
	d.storeRun(before)
	next := d.load(held.ID)
	next.CheckoutRun = before.ID
	storeIssue(d.tx, d.load(held.ID), next)
	if w, ok := WaitOf(d.tx, r, TimeOf(d.now)); !ok || w.Reason != "run_ending" || w.Lasting {
		t.Errorf("it waits for %v %+v", ok, w)
	}
	if got := queued(); slices.Contains(got, r.ID) || !slices.Contains(got, other.ID) {
		t.Errorf("while the issue is held, queued are %v", got)
	}
	before.Owed = false
	d.storeRun(before)
	if got := queued(); !slices.Contains(got, r.ID) {
		t.Errorf("after that, queued are %v", got)
	}
}
