package companytest

import (
	"testing"

	"github.com/selvage-mesh/selvage/company"
)

func (d *Desk) Goal(t testing.TB, title, parent string) company.Goal {
	t.Helper()
	var g company.Goal
	d.Must(t, Board, "goal.create", company.SaveGoal{ID: d.ID(), Title: &title, Parent: &parent}, &g)
	return g
}
