package money

import (
	"cmp"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// TellCost is the payload of run.cost, by which a node tells what a run of its own
// cost, when the command that should have closed the run came too late.
type TellCost struct {
	Run  string         `cbor:"1,keyasint"`
	Cost entity.RunCost `cbor:"2,keyasint"`
}

const KindRunCost = "run.cost"

var runCostKinds = []company.Kind{
	{Name: KindRunCost, From: company.FromNode, Weight: company.Weights.ByNodes, Do: ledger.Typed(tellCost)},
}

func tellCost(c *ledger.Context, p TellCost) (any, error) {
	r, err := company.RunFor(c, p.Run)
	if err != nil {
		return nil, err
	}
	if by := c.Cmd.Actor; by.Type != "node" || by.ID != r.Node {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "run %s was not placed on this node", r.ID)
	}
	return nil, bookRunCost(c, r, &p.Cost)
}

// runCostEvent names the event of what a run told, so that it is booked once.
func runCostEvent(run string) string { return core.DerivedID("run-cost", run) }

// bookRunCost books what a run told, unless it did before. The scopes that it
// counts against may be stopped by it.
func bookRunCost(c *ledger.Context, r entity.Run, told *entity.RunCost) error {
	if told == nil || c.Has(CostIDKey(r.Company, runCostEvent(r.ID))) {
		return nil
	}
	bounded := func(n int64) int64 { return min(max(n, 0), MaxEventTokens) }
	e := CostEvent{ID: runCostEvent(r.ID), Company: r.Company, Agent: r.Agent, Run: core.NullText(r.ID),
		Provider: cmp.Or(told.Provider, "unknown"), Model: cmp.Or(told.Model, "unknown"), BillingType: told.BillingType,
		CostStatus:  "reported",
		InputTokens: bounded(told.Usage.InputTokens), OutputTokens: bounded(told.Usage.OutputTokens),
		CachedInputTokens: bounded(told.Usage.CachedInputTokens),
		Cost:              min(max(told.Cost, 0), core.Cents(core.MaxEventCents)), OccurredAt: core.TimeOf(c.Now),
		CreatedAt: core.TimeOf(c.Now)}
	if !told.Priced {
		e.Cost, e.CostStatus = 0, "unpriced"
	}
	if i, ok := entity.IssueTable.Get(c.Tx, r.Company, r.Context.IssueID); ok && r.Context.IssueID != "" {
		e.Issue, e.Goal = core.NullText(i.ID), core.NullText(i.Goal)
	} else if entity.ProjectExists(c.Tx, r.Company, r.Context.ProjectID) {
		e.Project = core.NullText(r.Context.ProjectID)
	}
	if e.Goal != "" && !entity.GoalExists(c.Tx, r.Company, string(e.Goal)) {
		e.Goal = ""
	}
	e, err := e.complete(c.Tx)
	if err != nil {
		return err
	}
	c.Record(ledger.Change{Action: "cost.reported", EntityType: "cost_event", EntityID: e.ID,
		Details: core.Object{}.Str("model", e.Model).Int("costCents", e.Cost.Cents()).Str("agentId", r.Agent).
			Str("runId", r.ID).Str("costStatus", e.CostStatus).Close()})
	bookCost(c.Tx, e)
	return spendBudgets(c, e)
}
