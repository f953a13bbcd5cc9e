package api

import (
	"encoding/xml"
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

// Boxes of the drawn org chart, in pixels.
const (
	boxWidth, boxHeight = 180, 56
	boxGapX, boxGapY    = 24, 48
	orgMargin           = 32
	orgTitle            = 40
)

// A box is an agent with its place in the drawing, or says how many are not drawn.
type box struct {
	node *people.OrgNode
	more int // when node is nil
	x, y int
	kids []*box
}

// A chart is a drawing of an org chart: leaves stand side by side, everybody
// else in the middle above their reports.
type chart struct {
	boxes         []*box
	width, height int
}

// layOut places the boxes. At most wide of those who report to one agent, and
// deep levels below the first, are drawn, and a box with the number of the rest.
func layOut(roots []*people.OrgNode, wide, deep int) chart {
	next, deepest := orgMargin, 0
	var row func(of []*people.OrgNode, depth int) []*box
	put := func(b *box, depth int) *box {
		deepest = max(deepest, depth)
		b.y = orgMargin + orgTitle + depth*(boxHeight+boxGapY)
		if len(b.kids) == 0 {
			b.x = next
			next += boxWidth + boxGapX
		} else {
			b.x = (b.kids[0].x + b.kids[len(b.kids)-1].x) / 2
		}
		return b
	}
	row = func(of []*people.OrgNode, depth int) (out []*box) {
		shown := of
		if depth > deep {
			shown = nil
		} else if len(of) > wide {
			shown = of[:wide]
		}
		for _, n := range shown {
			out = append(out, put(&box{node: n, kids: row(n.Reports, depth+1)}, depth))
		}
		if left := countOrg(of[len(shown):]); left > 0 {
			out = append(out, put(&box{more: left}, depth))
		}
		return out
	}
	c := chart{boxes: row(roots, 0)}
	c.width = max(next-boxGapX+orgMargin, 2*orgMargin+boxWidth)
	c.height = 2*orgMargin + orgTitle + (deepest+1)*boxHeight + deepest*boxGapY
	return c
}

func countOrg(nodes []*people.OrgNode) (n int) {
	for _, o := range nodes {
		n += 1 + countOrg(o.Reports)
	}
	return n
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

var statusColours = map[company.AgentStatus]string{company.AgentRunning: "#2563eb", company.AgentError: "#dc2626", company.AgentPaused: "#d97706"}

func (b *box) draw(w *strings.Builder) {
	middle := b.x + boxWidth/2
	for _, k := range b.kids {
		half := b.y + boxHeight + boxGapY/2
		fmt.Fprintf(w, `<path d="M%d %dV%dH%dV%d" fill="none" stroke="#a8a29e"/>`+"\n", middle, b.y+boxHeight, half, k.x+boxWidth/2, k.y)
		k.draw(w)
	}
	colour, ok := statusColours[b.node.Status]
	if !ok {
		colour = "#16a34a"
	}
	fmt.Fprintf(w, `<g transform="translate(%d, %d)"><rect width="%d" height="%d" rx="8" fill="#fff" stroke="#d6d3d1"/><circle cx="%d" cy="14" r="5" fill="%s"/>`+
		`<text x="12" y="24" font-size="14" font-weight="bold">%s</text><text x="12" y="43" font-size="12" fill="#57534e">%s · %s</text></g>`+"\n",
		b.x, b.y, boxWidth, boxHeight, boxWidth-14, colour, escaped(b.node.Name, 18), escaped(b.node.Role, 14), escaped(string(b.node.Status), 16))
}

// escaped returns at most n characters of a text, for use in SVG.
func escaped(s string, n int) string {
	var w strings.Builder
	_ = xml.EscapeText(&w, []byte(shortened(s, n))) // a builder takes everything
	return w.String()
}

// shortened returns at most n characters of a text.
func shortened(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
