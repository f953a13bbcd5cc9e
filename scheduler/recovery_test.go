package scheduler

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// recovery is the recovery action of an issue that waits for somebody.
func (m *mesh) recovery(of ledger.CompanyID, issue string) (a care.RecoveryAction) {
	_ = m.Ledger.View(func(tx *ledger.Tx) error {
		i, _ := entity.IssueOf(tx, of, issue)
		a, _ = care.ActiveRecovery(tx, i)
		return nil
	})
	return a
}

func (m *mesh) path(of ledger.CompanyID, issue string) (path string) {
	_ = m.Ledger.View(func(tx *ledger.Tx) error {
		i, _ := entity.IssueOf(tx, of, issue)
		path = company.PathOf(tx, i, core.TimeOf(m.now()))
		return nil
	})
	return path
}

// A run that fails on its issue is tried again where that is safe, after some
// time; then, or where another try would meet the same, the issue is blocked with
// a recovery action that says why.
func TestAFailedRunEndsInAVisibleState(t *testing.T) {
	for _, c := range []struct {
		script string
		runs   int
		kind   string
	}{
		{"sleep 1s, fail", 1 + care.MaxFailureRetries, "run_failed"},
		{"sleep 1s, misconfigured", 1, "run_failed"},
		{"sleep 1s, turns", 1 + care.MaxTurnContinuations, "run_failed"},
		{"sleep 1s, hiccup", 1 + entity.MaxTransientRetries, "run_failed"},
		{"sleep 1s", 1 + entity.MaxFollowups, "missing_disposition"},
	} {
		t.Run(c.script, func(t *testing.T) {
			run(t, 1, func(t *testing.T, m *mesh) {
				ada := m.agent(acme, "ada", c.script, "")
				issue := m.issue(acme, ada)
				time.Sleep(8 * time.Minute)
				all := m.runs(acme)
				if len(all) != c.runs {
					t.Errorf("%d runs, want %d", len(all), c.runs)
				}
				for n := 1; n < len(all); n++ {
					if all[n].RetryOf != core.NullText(all[n-1].ID) {
						t.Errorf("run %d is no retry of the one before", n)
					}
					if c.script == "sleep 1s, fail" && all[n].StartedAt-all[n-1].FinishedAt < 30_000 {
						t.Error("the retry did not wait")
					}
				}
				i, a := m.issueRow(acme, issue), m.recovery(acme, issue)
				if i.Status != entity.IssueBlocked || i.Held() || i.Comments != 1 || a.Kind != c.kind || a.Status != "active" ||
					a.OwnerType != "board" {
					t.Errorf("the issue is %s, held %v, %d comments, recovery %q", i.Status, i.Held(), i.Comments, a.Kind)
				}
			})
		})
	}
}

// A run that no node could ever take ends, and its issue goes before the board; one
// that a node which is away might take waits.
func TestARunThatNoNodeCanTakeEnds(t *testing.T) {
	run(t, 2, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 1s", `{"placement":{"gpu":true}}`)
		m.nodes[1].setCut(true)
		time.Sleep(10 * time.Second)
		issue := m.issue(acme, ada)
		time.Sleep(giveUpAfter + 2*time.Minute)
		first := m.runs(acme)[0]
		if first.Status != entity.RunQueued {
			t.Fatalf("the run is %s while a node is away that may take it", first.Status)
		}
		m.nodes[1].setCut(false)
		time.Sleep(giveUpAfter - time.Minute)
		if r := m.run(first.ID); r.Status != entity.RunQueued {
			t.Fatalf("the run is %s early", r.Status)
		}
		time.Sleep(2 * time.Minute)
		r := m.run(first.ID)
		if r.Status != entity.RunFailed || r.ErrorCode != "no_node" || !strings.Contains(string(r.Error), "has no GPU") {
			t.Errorf("the run is %s, %s: %s", r.Status, r.ErrorCode, r.Error)
		}
		if i := m.issueRow(acme, issue); i.Status != entity.IssueBlocked || m.recovery(acme, issue).Kind != "run_failed" {
			t.Errorf("its issue is %s, recovery %q", i.Status, m.recovery(acme, issue).Kind)
		}
	})
}

// What nothing brings on is found: a run that was cancelled leaves its issue in
// progress, and a queue that was full skipped the wake of another. The agent is
// woken once more; when that comes to nothing the board decides.
func TestStrandedIssuesAreFound(t *testing.T) {
	alone(t)
	run(t, 1, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 5m", `{"heartbeat":{"maxConcurrentRuns":50}}`)
		issue := m.issue(acme, ada)
		time.Sleep(time.Second)
		m.must(board("run.cancel", acme, company.Cancel{Run: m.runs(acme)[0].ID}))
		time.Sleep(5 * time.Minute)
		if n := len(m.runs(acme)); n != 1 || m.path(acme, issue) != "" {
			t.Fatalf("%d runs after five minutes, path %q", n, m.path(acme, issue))
		}
		time.Sleep(8 * time.Minute)
		all := m.runs(acme)
		if len(all) != 2 || all[1].Context.WakeReason != "issue_continuation_needed" {
			t.Fatalf("%d runs", len(all))
		}
		m.untilStatus(all[1].ID, time.Minute, entity.RunRunning)
		m.must(board("run.cancel", acme, company.Cancel{Run: all[1].ID})) // again
		time.Sleep(15 * time.Minute)
		if i := m.issueRow(acme, issue); i.Status != entity.IssueBlocked || m.recovery(acme, issue).
			Kind != "stranded_assigned_issue" {
			t.Errorf("the issue is %s, recovery %q", i.Status, m.recovery(acme, issue).Kind)
		}
		// An agent that is no longer there.
		bob := m.agent(acme, "bob", "sleep 5m", "")
		left := m.issue(acme, bob)
		time.Sleep(time.Second)
		m.must(board("agent.terminate", acme, company.ChangeAgent{Agent: bob}))
		time.Sleep(15 * time.Minute)
		if i := m.issueRow(acme, left); i.Status != entity.IssueBlocked || m.recovery(acme, left).Kind != "assignee_gone" {
			t.Errorf("the issue of an agent that is gone is %s, recovery %q", i.Status, m.recovery(acme, left).Kind)
		}
		// One that was handed in, with nobody to look at it.
		dee := m.agent(acme, "dee", "sleep 5m", "")
		handed := m.issue(acme, dee)
		time.Sleep(time.Second)
		m.must(board("issue.update", acme, company.UpdateIssue{Issue: handed, Status: entity.IssueInReview}))
		time.Sleep(20 * time.Minute)
		if i := m.issueRow(acme, handed); i.Status != entity.IssueInReview || m.recovery(acme, handed).
			Kind != "review_without_participant" {
			t.Errorf("the issue that was handed in is %s, recovery %q", i.Status, m.recovery(acme, handed).Kind)
		}
		m.must(board("issue.update", acme, company.UpdateIssue{Issue: handed, Status: entity.IssueDone}))
		if a := m.recovery(acme, handed); a.ID != "" {
			t.Errorf("after it is done it has the recovery %+v", a)
		}
		// One that is paused waits for whoever paused it.
		cy := m.agent(acme, "cy", "sleep 5m", "")
		rests := m.issue(acme, cy)
		m.pause(acme, cy)
		time.Sleep(15 * time.Minute)
		if i := m.issueRow(acme, rests); i.Status == entity.IssueBlocked || m.path(acme, rests) != "paused" {
			t.Errorf("the issue of a paused agent is %s, path %q", i.Status, m.path(acme, rests))
		}
		m.must(board("agent.resume", acme, company.ChangeAgent{Agent: cy}))
		m.until(3*time.Minute, "work goes on", func() bool { return m.path(acme, rests) == "run" })
	})
}

// The liveness rule: whatever happens to agents, runs and nodes, in the end each
// issue of an agent has a run, somebody or something it waits for, or a recovery
// action; no lock is left, and no run is live that nobody carries out.
func TestNoWorkIsForgotten(t *testing.T) {
	seeds, steps := uint64(2), 80
	if testing.Short() { // under the race detector a step costs six times the work
		seeds, steps = 1, 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			run(t, 3, func(t *testing.T, m *mesh) { forgetNothing(t, m, rand.New(rand.NewPCG(seed, 4)), steps) })
		})
	}
}

func forgetNothing(t *testing.T, m *mesh, rng *rand.Rand, steps int) {
	scripts := []string{"sleep 2s", "sleep 2s, fail", "sleep 1s, hiccup", "sleep 20s", "sleep 1s, turns",
		"sleep 1s, misconfigured", "sleep 3m"}
	var agents, issues []string
	for n, s := range scripts {
		agents = append(agents, m.agent(acme, fmt.Sprint("agent", n), s,
			fmt.Sprintf(`{"heartbeat":{"maxConcurrentRuns":%d}}`, 1+n%3)))
	}
	for range steps {
		time.Sleep(time.Duration(rng.IntN(20_000)) * time.Millisecond)
		a := agents[rng.IntN(len(agents))]
		switch rng.IntN(10) {
		case 0, 1, 2, 3:
			id, _ := m.urgent(acme, a, entity.Priorities[rng.IntN(4)])
			issues = append(issues, id)
		case 4:
			if all := m.runs(acme); len(all) > 0 {
				m.ask(board("run.cancel", acme, company.Cancel{Run: all[rng.IntN(len(all))].ID}))
			}
		case 5:
			p := m.nodes[1+rng.IntN(2)]
			p.setCut(!p.isCut())
		case 6:
			m.ask(board("agent.pause", acme, company.ChangeAgent{Agent: a}))
		case 7:
			m.ask(board("agent.resume", acme, company.ChangeAgent{Agent: a}))
		case 8:
			if len(issues) > 0 {
				m.ask(board("issue.update", acme, company.UpdateIssue{Issue: issues[rng.IntN(len(issues))], Assignee: &a}))
			}
		case 9:
			if len(issues) > 0 {
				m.ask(board("issue.update", acme, company.UpdateIssue{Issue: issues[rng.IntN(len(issues))],
					Status: entity.IssueTodo}))
			}
		}
	}
	for _, p := range m.nodes {
		p.setCut(false)
	}
	time.Sleep(45 * time.Minute) // long enough for all that goes on by itself
	paths := map[string]int{}
	for _, id := range issues {
		i, path := m.issueRow(acme, id), m.path(acme, id)
		if paths[path]++; path == "" {
			t.Errorf("nothing brings %s on, which is %s", i.Identifier, i.Status)
		}
		if i.Held() {
			if r := m.run(i.CheckoutRun); !r.Status.Live() {
				t.Errorf("%s is held by a run that is %s", i.Identifier, r.Status)
			}
		}
	}
	for _, r := range m.runs(acme) {
		if r.Status == entity.RunRunning {
			if _, here := m.nodes[max(m.on(r), 0)].adapter.at(r.ID); !here {
				t.Errorf("run %s says that it runs, and nobody carries it out", r.ID)
			}
		}
	}
	if paths["recovery"] == 0 {
		t.Errorf("paths %v: nothing came before the board; the test shows nothing", paths)
	}
	m.wantAuthority()
}

// A run that no node could ever take ends in time, however often the leader changes
// meanwhile: the time counts from when the reasons were told.
func TestChangesOfTheLeaderDoNotPutOffTheEnd(t *testing.T) {
	run(t, 2, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 1s", `{"placement":{"programs":["claude"]}}`)
		time.Sleep(2 * time.Second)
		r := m.invoke(acme, ada)
		for n := range 6 {
			time.Sleep(giveUpAfter / 5)
			m.elect(n % 2)
		}
		time.Sleep(time.Minute)
		if r = m.run(r.ID); r.Status != entity.RunFailed || r.ErrorCode != "no_node" {
			t.Errorf("after 13 minutes and six leaders the run is %s, %s: %+v", r.Status, r.ErrorCode, m.placement(r.ID))
		}
	})
}
