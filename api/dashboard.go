package api

import (
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/ledger"
)

func dashboardRoutes() []Route {
	return []Route{
		{Method: "GET", Path: "/api/companies/{companyId}/dashboard", Tag: "companies", Summary: "Sum up a company", Out: rules.Dashboard{},
			Handle: func(rc *Request) (r Response, err error) {
				err = inCompany(rc, func(tx *ledger.Tx, row company.Company) error {
					r = OK(rules.DashboardOf(tx, row.ID, core.TimeOf(rc.Now())))
					return nil
				})
				return r, err
			}},
		{Method: "GET", Path: "/api/companies/{companyId}/sidebar-badges", Tag: "companies", Summary: "Count what waits for the board", Out: rules.Badges{},
			Handle: func(rc *Request) (r Response, err error) {
				err = inCompany(rc, func(tx *ledger.Tx, row company.Company) error {
					r = OK(rules.BadgesOf(tx, row.ID))
					return nil
				})
				return r, err
			}},
	}
}
