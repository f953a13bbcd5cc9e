package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// urgent creates an issue of a priority that is assigned to agent, and returns
// the run that it makes.
func (m *mesh) urgent(of ledger.CompanyID, agent string, p entity.Priority) (issue string, r entity.Run) {
	m.t.Helper()
	m.mu.Lock()
	m.salt++
	issue = uuid("i", m.salt)
	m.mu.Unlock()
	m.must(board("issue.create", of, company.CreateIssue{ID: issue, Title: "work " + issue, Status: entity.IssueTodo,
		Assignee: agent, Priority: p}))
	all := m.runs(of)
	return issue, all[len(all)-1]
}

// order returns runs in the order in which they started, by what they are called.
func (m *mesh) order(names map[string]string) (out []string) {
	ids := []string{}
	for id := range names {
		if m.run(id).StartedAt != 0 {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return int(m.run(a).StartedAt - m.run(b).StartedAt) })
	for _, id := range ids {
		out = append(out, names[id])
	}
	return out
}

// What is urgent goes first, in the order in which it came, and a run whose issue
// gets another priority moves in the queue.
func TestUrgentWorkGoesFirst(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 2s", `{"heartbeat":{"maxConcurrentRuns":1}}`)
		m.invoke(acme, ada) // keeps it busy
		time.Sleep(500 * time.Millisecond)
		names := map[string]string{}
		add := func(name string, p entity.Priority) (issue string) {
			issue, r := m.urgent(acme, ada, p)
			names[r.ID] = name
			time.Sleep(10 * time.Millisecond)
			return issue
		}
		raised := add("low, then critical", entity.PriorityLow)
		add("low", entity.PriorityLow)
		add("medium", entity.PriorityMedium)
		add("medium too", entity.PriorityMedium)
		add("high", entity.PriorityHigh)
		add("critical", entity.PriorityCritical)
		names[m.invoke(acme, ada).ID] = "by hand"
		m.must(board("issue.update", acme, company.UpdateIssue{Issue: raised, Priority: entity.PriorityCritical}))
		m.until(time.Minute, "all have started", func() bool { return len(m.order(names)) == len(names) })
		got, want := m.order(names), []string{"low, then critical", "critical", "high", "by hand", "medium",
			"medium too", "low"}
		if !slices.Equal(got, want) {
			t.Errorf("started in the order %q, want %q", got, want)
		}
	})
}

// A company with a thousand queued runs does not delay the one run of another
// beyond its turn: the first slot that is free after it came is its own, or the
// one after that.
func TestAThousandQueuedRunsDelayNobodyElse(t *testing.T) {
	alone(t)
	run(t, 1, func(t *testing.T, m *mesh) {
		for n := range 10 {
			of := m.agent(acme, fmt.Sprint("ada", n), "sleep 1s", `{"heartbeat":{"maxConcurrentRuns":50}}`)
			for range entity.MaxLiveRuns {
				m.invoke(acme, of)
			}
		}
		zed := m.agent(zeta, "zed", "sleep 1s", "")
		waiting := func() (n int) {
			for _, r := range m.runs(acme) {
				if r.Status == entity.RunQueued {
					n++
				}
			}
			return n
		}
		for round := range 2 {
			before := waiting()
			r := m.invoke(zeta, zed)
			m.until(5*time.Second, "the single run works", func() bool { return m.run(r.ID).StartedAt != 0 })
			if took := before - waiting(); took > 4 { // the slots of the node
				t.Errorf("round %d: %d runs of the long queue went before", round, took)
			}
			if before < 900 {
				t.Fatalf("only %d runs wait; the test shows nothing", before)
			}
			time.Sleep(3 * time.Second)
		}
	})
}

// In one company the runs of an agent that is at its limit hold up no other agent.
func TestAFullAgentHoldsUpNoOther(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		for _, name := range []string{"ada", "bob"} {
			full := m.agent(acme, name, "sleep 10m", `{"heartbeat":{"maxConcurrentRuns":1}}`)
			for range entity.MaxLiveRuns {
				m.invoke(acme, full)
			}
		}
		cid := m.agent(acme, "cid", "sleep 1s", "")
		m.untilStatus(m.invoke(acme, cid).ID, 3*time.Second, entity.RunSucceeded)
	})
}

// An agent that is woken by time only when there is something to do makes no run
// while there is nothing, and says why it did not; work that comes is done.
func TestAnIdleAgentMakesNoRuns(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 1s",
			`{"heartbeat":{"enabled":true,"intervalSec":30,"skipTimerWhenNoActionableWork":true}}`)
		time.Sleep(10 * time.Minute)
		if n := len(m.runs(acme)); n != 0 {
			t.Errorf("%d runs while there is nothing to do", n)
		}
		skipped := 0
		_ = m.Ledger.View(func(tx *ledger.Tx) error {
			for _, u := range entity.WakeupsOf(tx, acme, ada) {
				if u.Status == entity.WakeSkipped && u.Error == "heartbeat.noActionableWork" {
					skipped++
				}
			}
			return nil
		})
		if skipped < 19 || skipped > 20 {
			t.Errorf("%d wakes were skipped in ten minutes, want one each half minute", skipped)
		}
		m.issue(acme, ada)
		m.until(5*time.Second, "what comes is worked on", func() bool {
			return len(m.runs(acme)) == 1 &&
				m.runs(acme)[0].StartedAt != 0
		})
	})
}
