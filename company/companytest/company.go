package companytest

import (
	"testing"

	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Found creates a company by command and sits down at it.
func (d *Desk) Found(t testing.TB, name string) entity.Company {
	t.Helper()
	var row entity.Company
	d.Company = ledger.CompanyID(d.ID())
	d.Must(t, Board, "company.create", entity.SaveCompany{ID: d.Company, Name: &name}, &row)
	return row
}
