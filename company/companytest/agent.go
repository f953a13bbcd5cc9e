package companytest

import (
	"testing"

	"github.com/selvage-mesh/selvage/company/entity"
)

// Hire creates an agent by command.
func (d *Desk) Hire(t testing.TB, name, boss string) string {
	t.Helper()
	id := d.ID()
	d.Must(t, Board, "agent.create", entity.SaveAgent{ID: id, Name: &name, ReportsTo: &boss}, nil)
	return id
}
