package api

import (
	"fmt"
	"math"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

func orgRoutes() []Route {
	return []Route{
		{Method: "GET", Path: "/api/companies/{companyId}/org", Tag: "companies", Summary: "Read the org chart", Handle: func(rc *Request) (r Response, err error) {
			err = inCompany(rc, func(tx *ledger.Tx, row company.Company) error {
				r = OK(people.Org(tx, row.ID))
				return nil
			})
			return r, err
		}},
		{Method: "GET", Path: "/api/companies/{companyId}/org.svg", Tag: "companies", Summary: "Draw the org chart", Handle: func(rc *Request) (r Response, err error) {
			err = inCompany(rc, func(tx *ledger.Tx, row company.Company) error {
				r = Raw("image/svg+xml; charset=utf-8", drawOrg(row.Name, people.Org(tx, row.ID)))
				return nil
			})
			return r, err
		}},
		{Method: "GET", Path: "/api/companies/{companyId}/org.png", Tag: "companies", Summary: "Draw the org chart as an image", Handle: func(rc *Request) (r Response, err error) {
			var title string
			var roots []*people.OrgNode
			err = inCompany(rc, func(tx *ledger.Tx, row company.Company) error {
				title, roots = row.Name, people.Org(tx, row.ID)
				return nil
			})
			if err != nil {
				return r, err
			}
			image, err := paintOrg(title, roots)
			return Raw("image/png", image), err
		}},
	}
}

// drawOrg draws an org chart as SVG, with everybody in it.
func drawOrg(title string, roots []*people.OrgNode) []byte {
	c := layOut(roots, math.MaxInt, math.MaxInt)
	var w strings.Builder
	fmt.Fprintf(&w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif">`+"\n", c.width, c.height, c.width, c.height)
	fmt.Fprintf(&w, `<rect width="100%%" height="100%%" fill="#fafaf9"/><text x="%d" y="%d" font-size="20" font-weight="bold">%s</text>`+"\n", orgMargin, orgMargin+8, escaped(title, 80))
	for _, b := range c.boxes {
		b.draw(&w)
	}
	w.WriteString("</svg>\n")
	return []byte(w.String())
}
