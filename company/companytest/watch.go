package companytest

import (
	"encoding/json"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Hired is an agent that can be woken.
func (d *Desk) Hired(name string) string {
	id := d.ID()
	entity.AgentTable.Put(d.Tx, d.Company, id, entity.Agent{ID: id, Company: d.Company, Name: name,
		Status: entity.AgentIdle, AdapterType: "process",
		RuntimeConfig: json.RawMessage(`{"heartbeat":{"wakeOnDemand":true,"maxConcurrentRuns":20}}`)})
	return id
}

// OnIssue is a run of an agent that is at work on an issue it has checked out.
func (d *Desk) OnIssue(t testing.TB, agent string, i entity.Issue) As {
	t.Helper()
	who := As{agent, d.Run(agent)}
	r, _ := entity.RunTable.Get(d.Tx, d.Company, who.Run)
	r.Context.IssueID, r.Context.TaskID, r.Context.CheckedOut = i.ID, i.ID, true
	d.StoreRun(r)
	d.Must(t, who, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: agent, Expected: entity.IssueStatuses}, nil)
	return who
}

func (d *Desk) ByLeader(kind string, payload any) error {
	c := d.Context(Board, kind, payload)
	c.Cmd.Actor = ledger.Actor{Type: "node", ID: "n"}
	c.Tx = d.Tx.Child()
	if _, err := d.Mux[kind](c); err != nil {
		return err
	}
	c.Tx.Merge()
	d.Last = c.Changes()
	return nil
}

func (d *Desk) WakesOf(agent string) (reasons []string) {
	for _, u := range entity.WakeupsOf(d.Tx, d.Company, agent) {
		reasons = append(reasons, string(u.Reason))
	}
	return reasons
}

func RunOfDesk(d *Desk, who As) entity.Run {
	r, _ := entity.RunTable.Get(d.Tx, d.Company, who.Run)
	return r
}
