package node

import (
	"context"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/llm"
)

// openModels opens the gateway through which the runs of this node call models. The
// node's purse pays: no call is sent without budget.
func (n *Node) openModels(context.Context) error {
	conf := llm.Config{
		View: n.ledger.View, Holds: n.work.worker.Holds, Self: string(n.ID()),
		Mesh: string(n.Mesh()), Open: n.keyring.open, Note: n.noteModelKey, Logger: n.log, Purse: n.work.purse,
		Wall:  n.conf.Wall,
		Weigh: n.Weigh,
		Spent: func(run string, cost core.Money) { n.work.host.Spent(run, int64(cost)) },
	}
	g, err := llm.New(conf)
	if err != nil {
		return err
	}
	n.models = g
	n.opened("models", g.Close)
	return nil
}

// priceOfRun calculates the cost of a run that reported only its usage.
func priceOfRun(tx *ledger.Tx, of ledger.CompanyID, told entity.RunCost) (core.Money, bool) {
	return llm.Reckon(told.Provider, told.Model, told.Usage, money.ModelPricesOf(tx, of), money.ModelPricesOf(tx, ""))
}

// noteModelKey records that a run used a secret of its company as an upstream's key.
func (n *Node) noteModelKey(ctx context.Context, run entity.Run, use secret.SecretUse) error {
	return n.carryOut(ctx, n.command(secret.KindSecretAccess, run.Company, secret.UseSecrets{Run: run.ID,
		Uses: []secret.SecretUse{use}}))
}
