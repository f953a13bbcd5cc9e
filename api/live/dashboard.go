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
		api.ShowNow(api.Route{Path: "/api/companies/{companyId}/dashboard", Tag: "companies", Summary: "Sum up a company"},
			api.CompanyIn, func(tx *ledger.Tx, c entity.Company, now core.Time) rules.Dashboard {
				return rules.DashboardOf(tx, c.ID, now)
			}),
		api.List(api.Route{Path: "/api/companies/{companyId}/sidebar-badges", Tag: "companies",
			Summary: "Count what waits for the board"}, rules.BadgesOf),
	}
}
