package live

import (
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/ledger"
)

func DashboardRoutes() []api.Route {
	return []api.Route{
		{Method: "GET", Path: "/api/companies/{companyId}/dashboard", Tag: "companies", Summary: "Sum up a company",
			Out: rules.Dashboard{},
			Handle: func(rc *api.Request) (r api.Response, err error) {
				err = api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
					r = api.OK(rules.DashboardOf(tx, row.ID, core.TimeOf(rc.Now())))
					return nil
				})
				return r, err
			}},
		{Method: "GET", Path: "/api/companies/{companyId}/sidebar-badges", Tag: "companies",
			Summary: "Count what waits for the board", Out: rules.Badges{},
			Handle: func(rc *api.Request) (r api.Response, err error) {
				err = api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
					r = api.OK(rules.BadgesOf(tx, row.ID))
					return nil
				})
				return r, err
			}},
	}
}
