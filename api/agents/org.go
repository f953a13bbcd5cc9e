package agents

import (
	"fmt"
	"math"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/chart"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

func OrgRoutes() []api.Route {
	return []api.Route{
		api.List(api.Route{Path: "/api/companies/{companyId}/org", Tag: "companies", Summary: "Read the org chart",
			Out: []people.OrgNode{}}, people.Org),
		{Method: "GET", Path: "/api/companies/{companyId}/org.svg", Tag: "companies", Summary: "Draw the org chart",
			Media: []string{"image/svg+xml"}, Handle: func(rc *api.Request) (r api.Response, err error) {
				err = api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
					r = api.Raw("image/svg+xml; charset=utf-8", drawOrg(row.Name, people.Org(tx, row.ID)))
					return nil
				})
				return r, err
			}},
		{Method: "GET", Path: "/api/companies/{companyId}/org.png", Tag: "companies",
			Summary: "Draw the org chart as an image", Media: []string{"image/png"},
			Handle: func(rc *api.Request) (r api.Response, err error) {
				var title string
				var roots []*people.OrgNode
				err = api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
					title, roots = row.Name, people.Org(tx, row.ID)
					return nil
				})
				if err != nil {
					return r, err
				}
				image, err := chart.PaintOrg(title, roots)
				return api.Raw("image/png", image), err
			}},
	}
}

// drawOrg renders the whole org chart as SVG.
func drawOrg(title string, roots []*people.OrgNode) []byte {
	c := chart.LayOut(roots, math.MaxInt, math.MaxInt)
	var w strings.Builder
	fmt.Fprintf(&w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" `+
		`font-family="sans-serif">`+"\n", c.Width, c.Height, c.Width, c.Height)
	fmt.Fprintf(&w, `<rect width="100%%" height="100%%" fill="#fafaf9"/><text x="%d" y="%d" font-size="20" `+
		`font-weight="bold">%s</text>`+"\n", chart.OrgMargin, chart.OrgMargin+8, chart.Escaped(title, 80))
	for _, b := range c.Boxes {
		b.Draw(&w)
	}
	w.WriteString("</svg>\n")
	return []byte(w.String())
}
