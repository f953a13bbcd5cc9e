package scheduler

import (
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// spent is what an agent is booked to have cost.
func (m *mesh) spent(of ledger.CompanyID, agent string) (s core.Money) {
	_ = m.Ledger.View(func(tx *ledger.Tx) error {
		s = money.BudgetOf(tx, of, entity.ScopeAgent, agent, core.TimeOf(m.now())).Lifetime
		return nil
	})
	return s
}

// What an adapter tells that a run cost is booked once: not when the gateway of
// the node was paid for it, and also when the node had lost the run by then.
func TestToldCostsAreBookedOnce(t *testing.T) {
	run(t, 2, func(t *testing.T, m *mesh) {
		time.Sleep(2 * time.Second)
		ada := m.agent(acme, "ada", "sleep 1s, cost", "")
		m.untilStatus(m.invoke(acme, ada).ID, 5*time.Second, entity.RunSucceeded)
		if s := m.spent(acme, ada); s != core.Cents(7) {
			t.Errorf("%d cents are booked, want 7", s.Cents())
		}
		for _, p := range m.nodes {
			p.paid.Store(true)
		}
		m.untilStatus(m.invoke(acme, ada).ID, 5*time.Second, entity.RunSucceeded)
		if s := m.spent(acme, ada); s != core.Cents(7) {
			t.Errorf("%d cents are booked with what the gateway booked, want 7", s.Cents())
		}
		for _, p := range m.nodes {
			p.paid.Store(false)
		}
		bob := m.agent(acme, "bob", "sleep 60s, cost", `{"placement":{"labels":["node=1"]}}`)
		r := m.untilStatus(m.invoke(acme, bob).ID, 5*time.Second, entity.RunRunning)
		m.nodes[1].setCut(true)
		m.untilStatus(r.ID, 3*testLease, entity.RunInterrupted)
		time.Sleep(time.Minute)
		if s := m.spent(acme, bob); s != 0 {
			t.Errorf("%d cents are booked of a node that is cut off", s.Cents())
		}
		m.must(board("agent.pause", acme, company.ChangeAgent{Agent: bob})) // no retry
		m.nodes[1].setCut(false)
		m.until(time.Minute, "what the lost run cost is told", func() bool { return m.spent(acme, bob) == core.Cents(3) })
		time.Sleep(time.Minute)
		if s := m.spent(acme, bob); s != core.Cents(3) {
			t.Errorf("%d cents are booked, want 3", s.Cents())
		}
		m.wantAuthority()
	})
}
