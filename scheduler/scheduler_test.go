package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

const acme, zeta = "a0000000-0000-4000-8000-000000000001", "e0000000-0000-4000-8000-000000000002"

// A run goes from the board's wish to its outcome, and leaves its agent as it
// was, the phases it went through, and nothing owed.
func TestARunGoesFromWishToOutcome(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 3s", "")
		r := m.invoke(acme, ada)
		if r.Status != entity.RunQueued || r.Source != entity.WakeOnDemand || r.NextEventSeq != 1 {
			t.Errorf("queued as %+v", r)
		}
		r = m.untilStatus(r.ID, time.Second, entity.RunRunning)
		if s := m.status(acme, ada); s != "running" {
			t.Errorf("agent is %s while it runs", s)
		}
		r = m.untilStatus(r.ID, 4*time.Second, entity.RunSucceeded)
		var phases []entity.Phase
		for _, p := range r.Phases {
			phases = append(phases, p.Phase)
		}
		want := []entity.Phase{entity.PhaseWake, entity.PhaseCheckQueue, entity.PhaseExecute, entity.PhaseSleep,
			entity.PhaseReport}
		if !slices.Equal(phases, want) {
			t.Errorf("phases %v, want %v", phases, want)
		}
		if *r.ExitCode != 0 || *r.ProcessPID != 100 || r.LogSHA256 != "hash" || *r.LogBytes != 8 || r.Owed {
			t.Errorf("closed as %+v", r)
		}
		if s := m.status(acme, ada); s != "idle" {
			t.Errorf("agent is %s afterwards", s)
		}
		_ = m.Ledger.View(func(tx *ledger.Tx) error {
			var said []string
			for _, e := range entity.EventsOf(tx, acme, r.ID, 0, 100) {
				said = append(said, string(e.Message))
			}
			if want := []string{"run started", "adapter invocation", "run succeeded",
				"run presentation resolved"}; !slices.Equal(said, want) {
				t.Errorf("events %q, want %q", said, want)
			}
			if u := entity.WakeupsOf(tx, acme, ada); len(u) != 1 || u[0].Status != entity.WakeCompleted {
				t.Errorf("wakeups %+v", u)
			}
			if left := entity.SessionsWithRuns(tx); len(left) != 0 {
				t.Errorf("%d sessions owe runs", len(left))
			}
			return nil
		})
	})
}

func TestAFailedRunLeavesItsAgentInErrorUntilTheNext(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 1s, fail", "")
		r := m.untilStatus(m.invoke(acme, ada).ID, 5*time.Second, entity.RunFailed)
		if r.Error != "Process exited with code 3" || m.status(acme, ada) != "error" {
			t.Errorf("error %q, agent %s", r.Error, m.status(acme, ada))
		}
		m.untilStatus(m.invoke(acme, ada).ID, time.Second, entity.RunRunning)
		if s := m.status(acme, ada); s != "running" {
			t.Errorf("agent is %s", s)
		}
	})
}

// What fails for a passing reason is tried again twice, half a minute apart.
func TestATransientFailureIsRetriedTwice(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		m.invoke(acme, m.agent(acme, "ada", "sleep 1s, hiccup", ""))
		time.Sleep(5 * time.Minute)
		all := m.runs(acme)
		if len(all) != 3 || all[1].StartedAt-all[0].FinishedAt < 30_000 || all[2].RetryOf != core.NullText(all[1].ID) {
			t.Errorf("%d runs: %+v", len(all), all)
		}
	})
}

// Two manual invokes are two runs; other wakes of the same task merge into what
// waits or works already.
func TestWakesCoalesceByTaskAndManualOnesNever(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 10s", "")
		one, two := m.invoke(acme, ada), m.invoke(acme, ada)
		if one.ID == two.ID {
			t.Fatal("two manual invokes gave one run")
		}
		m.untilStatus(one.ID, time.Second, entity.RunRunning)
		m.untilStatus(two.ID, time.Second, entity.RunRunning)
		if n := len(m.nodes[0].worker.Running()); n != 2 {
			t.Errorf("%d runs at work, want 2", n)
		}
		task := func(issue, comment string) entity.Run {
			w := m.wake(ada, entity.WakeAutomation, "system")
			w.Issue, w.Comment = issue, comment
			return m.woken(board("agent.wake", acme, w))
		}
		taskA, taskB := m.issue(acme, ""), m.issue(acme, "")
		comment := func() string {
			id := m.wake(ada, entity.WakeOnDemand, "manual").Wakeup // a free one
			m.must(board("comment.create", acme, entity.CreateComment{ID: id, Issue: taskA, Body: "Look"}))
			return id
		}
		a := task(taskA, "")
		if b := task(taskA, ""); b.ID != a.ID || b.Context.MergedWakes != 1 {
			t.Errorf("second wake of a task gave %s, want %s", b.ID, a.ID)
		}
		if b := task(taskB, ""); b.ID == a.ID {
			t.Error("wakes of two tasks merged")
		}
		m.untilStatus(a.ID, time.Second, entity.RunRunning)
		if b := task(taskA, ""); b.ID != a.ID {
			t.Error("a wake did not merge into the running run of its task")
		}
		// A comment on what runs queues one follow-up, and the next comment joins it.
		first, second := comment(), comment()
		c := task(taskA, first)
		if c.ID == a.ID {
			t.Fatal("a comment was merged into a run that may have read past it")
		}
		if d := task(taskA, second); d.ID != c.ID || !slices.Equal(d.Context.CommentIDs, []string{first, second}) {
			t.Errorf("second comment gave %s with %v", d.ID, d.Context.CommentIDs)
		}
	})
}

func TestAnIdempotentWakeGivesItsFirstRunAgain(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 1s", "")
		ask := func() entity.Run {
			w := m.wake(ada, entity.WakeOnDemand, "manual")
			w.IdempotencyKey = "k1"
			return m.woken(board("agent.wake", acme, w))
		}
		first := ask()
		m.untilStatus(first.ID, 5*time.Second, entity.RunSucceeded)
		if again := ask(); again.ID != first.ID {
			t.Errorf("the same key gave %s, want %s", again.ID, first.ID)
		}
	})
}

func TestAnAgentHasAsManyRunsAtWorkAsItMay(t *testing.T) {
	run(t, 2, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 10s", `{"heartbeat":{"maxConcurrentRuns":2}}`)
		for range 5 {
			m.invoke(acme, ada)
		}
		for range 70 {
			time.Sleep(500 * time.Millisecond)
			if n := len(m.nodes[0].worker.Running()) + len(m.nodes[1].worker.Running()); n > 2 {
				t.Fatalf("%d runs at work, want at most 2", n)
			}
		}
		for _, r := range m.runs(acme) {
			if r.Status != entity.RunSucceeded {
				t.Errorf("run is %s", r.Status)
			}
		}
	})
}

// Work spreads over the nodes, keeps to their slots, and follows an agent's
// wish; a run that fits nowhere waits without holding up others.
func TestPlacementSpreadsAndKeepsToWishes(t *testing.T) {
	run(t, 3, func(t *testing.T, m *mesh) {
		time.Sleep(2 * time.Second) // all have beaten
		nowhere := m.invoke(acme, m.agent(acme, "nowhere", "sleep 9s", `{"placement":{"labels":["gpu"]}}`))
		picky := m.invoke(acme, m.agent(acme, "picky", "sleep 9s", `{"placement":{"labels":["node=2"]}}`))
		ada := m.agent(acme, "ada", "sleep 9s", "")
		for range 11 {
			m.invoke(acme, ada)
		}
		time.Sleep(2 * time.Second)
		for i, p := range m.nodes {
			if n := len(p.worker.Running()); n != 4 {
				t.Errorf("node %d has %d runs, want its 4 slots full", i, n)
			}
		}
		if on := m.on(m.run(picky.ID)); on != 2 {
			t.Errorf("the picky run is on node %d", on)
		}
		if s := m.run(nowhere.ID).Status; s != entity.RunQueued {
			t.Errorf("the run that fits nowhere is %s", s)
		}
	})
}

// With one slot free at a time, companies take turns whatever the length of
// their queues.
func TestCompaniesTakeTurns(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 1s", "")
		zed := m.agent(zeta, "zed", "sleep 1s", "")
		for range 40 {
			m.invoke(acme, ada)
		}
		for range 4 {
			m.invoke(zeta, zed)
		}
		m.until(5*time.Second, "the short queue is served", func() bool {
			return !slices.ContainsFunc(m.runs(zeta), func(r entity.Run) bool { return r.Status != entity.RunSucceeded })
		})
	})
}

// They do so also when there is room for one run at a time, whichever stands first.
func TestCompaniesTakeTurnsOnOneSlot(t *testing.T) {
	for _, c := range [][2]ledger.CompanyID{{acme, zeta}, {zeta, acme}} {
		run(t, 1, func(t *testing.T, m *mesh) {
			hold := m.agent(acme, "hold", "sleep 10m", "")
			for range 3 {
				m.untilStatus(m.invoke(acme, hold).ID, 5*time.Second, entity.RunRunning)
			}
			many, few := m.agent(c[0], "many", "sleep 1s", ""), m.agent(c[1], "few", "sleep 1s", "")
			for range 40 {
				m.invoke(c[0], many)
			}
			var short []string
			for range 4 {
				short = append(short, m.invoke(c[1], few).ID)
			}
			m.until(15*time.Second, "the short queue is served", func() bool {
				return !slices.ContainsFunc(short, func(id string) bool { return m.run(id).Status != entity.RunSucceeded })
			})
		})
	}
}

// A node that is cut off stops its work before its lease is over; only then are
// its runs declared interrupted, and taken up elsewhere.
func TestANodeThatIsCutOffLosesItsRuns(t *testing.T) {
	run(t, 3, func(t *testing.T, m *mesh) {
		time.Sleep(2 * time.Second)
		r := m.invoke(acme, m.agent(acme, "ada", "sleep 60s", `{"placement":{"labels":[]}}`))
		r = m.untilStatus(r.ID, time.Second, entity.RunRunning)
		victim := m.on(r)
		if victim == 0 {
			m.elect(1)
		}
		cutAt := time.Now()
		m.nodes[victim].setCut(true)
		r = m.untilStatus(r.ID, 2*testLease+time.Second, entity.RunInterrupted)
		if r.ErrorCode != "node_lost" {
			t.Errorf("error code %q", r.ErrorCode)
		}
		if d := time.Since(cutAt); d < testLease-2*time.Second {
			t.Errorf("declared lost after %v, before its lease was over", d)
		}
		m.wantAuthority()
		if k, _ := m.nodes[victim].adapter.at(r.ID); k.to-k.from > testLease-testMargin+time.Since(cutAt) {
			t.Errorf("worked from %v to %v", k.from, k.to)
		}
		all := m.runs(acme)
		if len(all) != 2 || all[1].RetryOf != core.NullText(r.ID) || all[1].ProcessLossRetryCount != 1 {
			t.Fatalf("no retry: %+v", all)
		}
		retry := m.untilStatus(all[1].ID, time.Second, entity.RunRunning)
		if m.on(retry) == victim {
			t.Error("the retry went to the node that is gone")
		}
		// It comes back with another session, and works again.
		m.nodes[victim].setCut(false)
		m.until(10*time.Second, "node is back", func() bool { return m.nodes[victim].worker.Holds() })
	})
}

// Work that outlives three nodes is not started a fourth time.
func TestLostWorkIsStartedOverAtMostTwice(t *testing.T) {
	run(t, 4, func(t *testing.T, m *mesh) {
		time.Sleep(2 * time.Second)
		ada := m.agent(acme, "ada", "sleep 10m", "")
		m.invoke(acme, ada)
		for range 4 {
			time.Sleep(time.Second)
			all := m.runs(acme)
			r := all[len(all)-1]
			if r.Status != entity.RunRunning {
				break
			}
			victim := m.on(r)
			if p := m.leading(); p.i == victim {
				m.elect((victim + 1) % 4)
			}
			m.nodes[victim].setCut(true)
			m.untilStatus(r.ID, 3*testLease, entity.RunInterrupted)
			m.nodes[victim].setCut(false)
		}
		if all := m.runs(acme); len(all) != entity.MaxRunAttempts {
			t.Errorf("%d runs, want %d", len(all), entity.MaxRunAttempts)
		}
		if s := m.status(acme, ada); s != "error" {
			t.Errorf("agent is %s", s)
		}
		m.wantAuthority()
	})
}

// A leader that was just elected knows nothing of the leases before it: nobody
// is lost because of the change, and who is silent gets a full lease.
func TestANewLeaderWaitsAFullLease(t *testing.T) {
	run(t, 3, func(t *testing.T, m *mesh) {
		time.Sleep(2 * time.Second)
		var ids []string
		for i := range 3 {
			ids = append(ids, m.invoke(acme, m.agent(acme, fmt.Sprint("on-", i), "sleep 5m",
				fmt.Sprintf(`{"placement":{"labels":["node=%d"]}}`, i))).ID)
		}
		time.Sleep(time.Second)
		for n := range 12 {
			m.elect(n % 2)
			time.Sleep(1700 * time.Millisecond)
		}
		for _, id := range ids {
			if s := m.run(id).Status; s != entity.RunRunning {
				t.Fatalf("run is %s after elections alone", s)
			}
		}
		m.nodes[2].setCut(true)
		time.Sleep(testLease - time.Second)
		m.elect(1)
		elected := time.Now()
		r := m.untilStatus(ids[2], 2*testLease, entity.RunInterrupted)
		if d := time.Since(elected); d < testLease {
			t.Errorf("the new leader waited %v, want a full lease of %v", d, testLease)
		}
		if r.ErrorCode != "node_lost" {
			t.Errorf("error code %s", r.ErrorCode)
		}
		m.wantAuthority()
	})
}

// A worker that is stopped takes its runs down, says so, and another node goes on.
func TestAStoppedNodeHandsItsWorkOver(t *testing.T) {
	run(t, 2, func(t *testing.T, m *mesh) {
		time.Sleep(2 * time.Second)
		r := m.invoke(acme, m.agent(acme, "ada", "sleep 60s", ""))
		r = m.untilStatus(r.ID, time.Second, entity.RunRunning)
		victim := m.on(r)
		m.elect(1 - victim)
		time.Sleep(2 * time.Second)
		m.nodes[victim].halt()
		if r = m.run(r.ID); r.Status != entity.RunInterrupted || r.ErrorCode != "node_stopped" || r.Owed {
			t.Errorf("run is %s (%s)", r.Status, r.ErrorCode)
		}
		m.until(5*time.Second, "another node goes on", func() bool {
			all := m.runs(acme)
			return len(all) == 2 && all[1].Status == entity.RunRunning && m.on(all[1]) != victim
		})
	})
}

func TestACancelledRunIsOverAtOnceAndItsChildrenSoon(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 60s", "")
		r := m.untilStatus(m.invoke(acme, ada).ID, 5*time.Second, entity.RunRunning)
		time.Sleep(time.Second)
		m.must(board("run.cancel", acme, company.Cancel{Run: r.ID}))
		if r = m.run(r.ID); r.Status != entity.RunCancelled || r.Error != "Cancelled by a board operator" || !r.Owed {
			t.Errorf("run is %+v", r)
		}
		m.until(3*time.Second, "children are gone", func() bool { return !m.run(r.ID).Owed })
		if r = m.run(r.ID); r.Status != entity.RunCancelled || r.LogSHA256 == "" {
			t.Errorf("afterwards %s with log %q", r.Status, r.LogSHA256)
		}
		if k, _ := m.nodes[0].adapter.at(r.ID); !k.asked || k.to == 0 {
			t.Error("the adapter was not asked")
		}
		if s := m.status(acme, ada); s != "idle" {
			t.Errorf("agent is %s", s)
		}
		// One that waits is over without any node.
		lone := m.invoke(acme, m.agent(acme, "lone", "sleep 1s", `{"placement":{"labels":["gpu"]}}`))
		m.must(board("run.cancel", acme, company.Cancel{Run: lone.ID}))
		time.Sleep(time.Second)
		if r := m.run(lone.ID); r.Status != entity.RunCancelled || r.Node != "" {
			t.Errorf("run is %+v", r)
		}
	})
}

// Leaders come and go, two believe in themselves at once, and for a while there
// is none: every interval that had a leader fires once, a gap fires once.
func TestTimersFireOncePerInterval(t *testing.T) {
	run(t, 3, func(t *testing.T, m *mesh) {
		began := time.Now()
		m.agent(acme, "ada", "sleep 1s", `{"heartbeat":{"enabled":true,"intervalSec":30}}`)
		for n := range 40 {
			time.Sleep(7500 * time.Millisecond)
			m.elect(n % 3)
			m.nodes[(n+1)%3].lead.Lead(true) // does not know yet that it was deposed
		}
		for _, p := range m.nodes {
			p.lead.Lead(false)
		}
		m.elect(-1)
		passed := int(time.Since(began) / (30 * time.Second))
		if n := len(m.runs(acme)); n != passed && n != passed-1 {
			t.Errorf("%d runs in %v, want %d", n, time.Since(began), passed)
		}
		before := len(m.runs(acme))
		time.Sleep(10 * time.Minute)
		m.elect(2)
		time.Sleep(25 * time.Second)
		if n := len(m.runs(acme)) - before; n < 1 || n > 2 {
			t.Errorf("%d runs after a gap of ten minutes, want the one that was due", n)
		}
		for _, r := range m.runs(acme) {
			if r.Source != entity.WakeTimer {
				t.Errorf("run by %s", r.Source)
			}
		}
	})
}

func TestTimersSkipAndSayWhy(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 45s", `{"heartbeat":{"enabled":true,"intervalSec":30,"maxDailyRuns":3}}`)
		w := m.wake(ada, entity.WakeAutomation, "system")
		w.Task = "something else"
		m.woken(board("agent.wake", acme, w))
		time.Sleep(5 * time.Minute)
		reasons := map[string]int{}
		_ = m.Ledger.View(func(tx *ledger.Tx) error {
			for _, u := range entity.WakeupsOf(tx, acme, ada) {
				reasons[string(u.Status)+" "+string(u.Error)]++
			}
			return nil
		})
		if reasons["skipped heartbeat.run.active"] < 1 || reasons["coalesced "] < 1 ||
			reasons["skipped heartbeat.maxDailyRuns.reached"] < 1 {
			t.Errorf("reasons %v", reasons)
		}
		if n := len(m.runs(acme)); n != 3 {
			t.Errorf("%d runs, want the 3 of the day", n)
		}
	})
}

func TestAPausedAgentIsNotInvokedAndItsRunsEnd(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		ada := m.agent(acme, "ada", "sleep 60s", "")
		r := m.untilStatus(m.invoke(acme, ada).ID, 5*time.Second, entity.RunRunning)
		m.pause(acme, ada)
		got := m.ask(board("agent.wake", acme, m.wake(ada, entity.WakeOnDemand, "manual")))
		if got.Refusal == nil || got.Refusal.Message != "Agent is not invokable in its current state" {
			t.Errorf("answer %+v", got.Refusal)
		}
		if s := m.run(r.ID).Status; s != entity.RunCancelled {
			t.Errorf("its run is %s", s)
		}
	})
}
