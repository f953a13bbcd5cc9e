package companytest

import (
	"encoding/json"
	"testing"

	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// Boss adds a CEO and returns its ID; its issues come under a run of its own.
func (d *Desk) Boss(t testing.TB) (ceo As) {
	t.Helper()
	name, role := "Cleo", "ceo"
	id := d.ID()
	d.Must(t, Board, "agent.create", entity.SaveAgent{ID: id, Name: &name, Role: &role}, nil)
	return As{id, d.Run(id)}
}

// Ask creates an approval and returns it.
func (d *Desk) Ask(t testing.TB, who As, kind money.ApprovalType, payload string, issues ...string) money.Approval {
	t.Helper()
	var a money.Approval
	d.Must(t, who, "approval.create", money.CreateApproval{ID: d.ID(), Type: kind, Payload: json.RawMessage(payload),
		Issues: issues}, &a)
	return a
}

// Decide gives a verdict ("approve", "reject", "revise", "cancel") by the board.
func (d *Desk) Decide(t testing.TB, verdict, id string) money.Decision {
	t.Helper()
	var v money.Decision
	d.Must(t, Board, "approval."+verdict, money.DecideApproval{Approval: id, Note: "because"}, &v)
	return v
}

func Actions(changes []ledger.Change) (list []string) {
	for _, ch := range changes {
		list = append(list, ch.Action)
	}
	return list
}
