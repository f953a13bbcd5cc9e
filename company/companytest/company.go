package companytest

import (
	"testing"

	"github.com/selvage-mesh/selvage/company"
)

// Found creates a company by command and sits down at it.
func (d *Desk) Found(t testing.TB, name string) company.Company {
	t.Helper()
	var row company.Company
	d.Company = d.ID()
	d.Must(t, Board, "company.create", company.SaveCompany{ID: d.Company, Name: &name}, &row)
	return row
}
