package scheduler

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// agent hires an agent that follows a script of [fake], into a company that is
// founded when it is not there.
func (m *mesh) agent(of ledger.CompanyID, name, script, runtime string) string {
	m.t.Helper()
	m.mu.Lock()
	m.salt++
	id := uuid("a", m.salt)
	m.mu.Unlock()
	var there bool
	_ = m.Ledger.View(func(tx *ledger.Tx) error { _, there = entity.CompanyOf(tx, of); return nil })
	if !there {
		m.must(board("company.create", of, entity.SaveCompany{ID: of, Name: new("Company " + string(of))}))
	}
	config := entity.SaveAgent{ID: id, Name: &name, AdapterType: new("process"),
		AdapterConfig: json.RawMessage(`{"command":"` + script + `"}`)}
	if runtime != "" {
		config.RuntimeConfig = json.RawMessage(runtime)
	}
	m.must(board("agent.create", of, config))
	return id
}

func (m *mesh) status(of, agent string) (s entity.AgentStatus) {
	_ = m.Ledger.View(func(tx *ledger.Tx) error {
		a, _ := entity.AgentByID(tx, agent)
		s = a.Status
		return nil
	})
	return s
}

func (m *mesh) pause(of ledger.CompanyID, agent string) {
	m.t.Helper()
	m.must(board("agent.pause", of, company.ChangeAgent{Agent: agent}))
}
