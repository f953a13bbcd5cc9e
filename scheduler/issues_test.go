package scheduler

import (
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// issue creates an issue that is assigned to agent and ready to be worked on.
func (m *mesh) issue(of ledger.CompanyID, agent string) string {
	m.t.Helper()
	m.mu.Lock()
	m.salt++
	id := uuid("i", m.salt)
	m.mu.Unlock()
	m.must(board("issue.create", of, company.CreateIssue{ID: id, Title: "work " + id, Status: entity.IssueTodo,
		Assignee: agent}))
	return id
}

func (m *mesh) issueRow(of ledger.CompanyID, id string) (i entity.Issue) {
	_ = m.Ledger.View(func(tx *ledger.Tx) error { i, _ = entity.IssueOf(tx, of, id); return nil })
	return i
}

// Assigning an issue wakes its agent; the issue is checked out when the run
// starts, and free when it ends. A run that says nothing is followed by one
// more, and then a person has to decide.
func TestAnAssignedIssueIsWorkedOnAndNeverForgotten(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 2s", "")
		issue := m.issue(acme, ada)
		all := m.runs(acme)
		if len(all) != 1 || all[0].Source != entity.WakeAssignment || all[0].Context.IssueID != issue {
			t.Fatalf("woken to %+v", all)
		}
		m.untilStatus(all[0].ID, time.Second, entity.RunRunning)
		if i := m.issueRow(acme, issue); i.Status != entity.IssueInProgress || i.CheckoutRun != all[0].ID || i.Fence == 0 {
			t.Errorf("issue is %s, held by %q", i.Status, i.CheckoutRun)
		}
		if r := m.run(all[0].ID); !r.Context.CheckedOut {
			t.Error("the run does not know that the issue was checked out for it")
		}
		m.untilStatus(all[0].ID, 5*time.Second, entity.RunSucceeded)
		time.Sleep(10 * time.Minute)
		all = m.runs(acme)
		if len(all) != 1+entity.MaxFollowups || all[1].RetryOf != core.NullText(all[0].ID) ||
			all[1].Source != entity.WakeAutomation {
			t.Fatalf("%d runs: %+v", len(all), all)
		}
		i := m.issueRow(acme, issue)
		if i.Status != entity.IssueBlocked || i.Held() || i.Comments != 1 {
			t.Errorf("issue is %s with %d comments", i.Status, i.Comments)
		}
	})
}

// A lost node's lock is free in the entry that ends its run, and the work goes
// on elsewhere under the same issue.
func TestALostNodesIssueIsTakenUpElsewhere(t *testing.T) {
	run(t, 3, func(t *testing.T, m *mesh) {
		time.Sleep(2 * time.Second)
		ada := m.agent(acme, "ada", "sleep 60s", "")
		issue := m.issue(acme, ada)
		first := m.untilStatus(m.runs(acme)[0].ID, time.Second, entity.RunRunning)
		victim := m.on(first)
		if victim == 0 {
			m.elect(1)
		}
		m.nodes[victim].setCut(true)
		m.untilStatus(first.ID, 3*testLease, entity.RunInterrupted)
		m.wantAuthority()
		all := m.runs(acme)
		retry := m.untilStatus(all[len(all)-1].ID, 2*time.Second, entity.RunRunning)
		if i := m.issueRow(acme, issue); i.CheckoutRun != retry.ID || i.Assignee != ada {
			t.Errorf("issue is held by %q, want the retry %s", i.CheckoutRun, retry.ID)
		}
		if m.on(retry) == victim || retry.ID == first.ID {
			t.Error("the retry is the lost run")
		}
	})
}

// An issue that was given to somebody else, or closed, before its run began
// needs no run any more.
func TestAWakeWhoseReasonIsGoneIsCancelled(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 5s", `{"heartbeat":{"maxConcurrentRuns":1}}`)
		m.invoke(acme, ada)
		time.Sleep(time.Second)
		issue := m.issue(acme, ada)
		m.must(board("issue.update", acme, company.UpdateIssue{Issue: issue, Status: entity.IssueDone}))
		time.Sleep(20 * time.Second)
		all := m.runs(acme)
		if len(all) != 2 || all[1].Status != entity.RunCancelled || all[1].ErrorCode != "stale_wake" ||
			all[1].StartedAt != 0 {
			t.Errorf("runs %+v", all)
		}
	})
}

// However many runs wait, assigning work never fails; asking for one more does.
func TestAFullQueueRefusesWishesOnly(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 10m", "")
		for range entity.MaxLiveRuns {
			m.invoke(acme, ada)
		}
		if r := m.ask(board("agent.wake", acme, m.wake(ada, entity.WakeOnDemand, "manual"))); r.Refusal == nil ||
			r.Refusal.Code != ledger.TooMany {
			t.Errorf("one more was answered %+v", r.Refusal)
		}
		m.issue(acme, ada)
		if n := len(m.runs(acme)); n != entity.MaxLiveRuns {
			t.Errorf("%d runs, want %d", n, entity.MaxLiveRuns)
		}
		m.pause(acme, ada) // ends them all in one command
		for _, r := range m.runs(acme) {
			if r.Status != entity.RunCancelled {
				t.Fatalf("a run is %s", r.Status)
			}
		}
	})
}
