package companytest

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
)

func (d *Desk) Project(name string) string {
	id := d.ID()
	entity.ProjectTable.Put(d.Tx, d.Company, id, entity.Project{ID: id, Company: d.Company, Name: name, Status: "backlog"})
	return id
}

func (d *Desk) Cost(who As, agent string, cents int64) error {
	return d.Do(who, "cost.report", money.ReportCost{Event: money.CostEvent{ID: d.ID(), Agent: agent, Provider: "openai",
		Model: "gpt-5", Cost: core.Cents(cents), OccurredAt: core.TimeOf(d.Now)}}, nil)
}
