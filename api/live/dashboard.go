package live

import (
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/ledger"
)

func DashboardRoutes() []api.Route {
	return []api.Route{
		api.List(api.Route{Path: "/api/companies/{companyId}/dashboard", Tag: "companies", Summary: "Sum up a company"},
			func(tx *ledger.Tx, of ledger.CompanyID) rules.Dashboard { return rules.DashboardOf(tx, of, api.Now()) }),
		api.List(api.Route{Path: "/api/companies/{companyId}/sidebar-badges", Tag: "companies",
			Summary: "Count what waits for the board"}, rules.BadgesOf),
	}
}
