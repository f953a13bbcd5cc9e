package companytest

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// SessionRows are the ledger's sessions, which a desk has none of.
var SessionRows = ledger.NewMeshTable[string, ledger.Session]("session")

// Open gives a node a session; shut ends it.
func (d *Desk) Open(node string) uint64 {
	d.Height++
	SessionRows.Put(d.Tx, ledger.Order(d.Height), ledger.Session{ID: d.Height, Node: "n"})
	return d.Height
}

func (d *Desk) Shut(session uint64) {
	d.Height++
	SessionRows.Put(d.Tx, ledger.Order(session), ledger.Session{ID: session, Node: "n", EndedAt: d.Height})
}

// OfNode carries out a command of a node.
func (d *Desk) OfNode(node string, session uint64, kind string, payload, out any) error {
	c := d.Context(Board, kind, payload)
	c.Cmd.Actor, c.Session = ledger.Actor{Type: "node", ID: node}, session
	c.Tx = d.Tx.Child()
	v, err := d.Mux[kind](c)
	if err != nil {
		return err
	}
	c.Tx.Merge()
	d.Last = c.Changes()
	if out != nil {
		return ledger.Unmarshal(v, out)
	}
	return nil
}

func (d *Desk) Call(cost core.Money) money.Metered {
	return money.Metered{Event: money.CostEvent{ID: d.ID(), Provider: "p", Model: "m", Cost: cost,
		OccurredAt: core.TimeOf(d.Now)}}
}

func (d *Desk) HeldBy(t entity.ScopeType, id string) core.Money {
	return money.BudgetOf(d.Tx, d.Company, t, id, core.TimeOf(d.Now)).Held
}
