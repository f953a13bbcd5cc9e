package companytest

import (
	"testing"

	"github.com/selvage-mesh/selvage/company/entity"
)

func (d *Desk) Goal(t testing.TB, title, parent string) entity.Goal {
	t.Helper()
	var g entity.Goal
	d.Must(t, Board, "goal.create", entity.SaveGoal{ID: d.ID(), Title: &title, Parent: &parent}, &g)
	return g
}
