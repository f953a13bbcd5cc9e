package agents_test

import (
	"bytes"
	"fmt"
	"image/png"
	"os"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/api/chart"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
)

func chartOf(n, each int) (roots []*people.OrgNode) {
	nodes := make([]*people.OrgNode, n)
	for i := range nodes {
		nodes[i] = &people.OrgNode{Name: fmt.Sprintf("Agent %d", i), Role: "engineer", Status: entity.AgentRunning}
		if i == 0 {
			roots = append(roots, nodes[i])
			continue
		}
		boss := nodes[(i-1)/each]
		boss.Reports = append(boss.Reports, nodes[i])
	}
	return roots
}

func TestThePaintedOrgChartIsTheSameAndBounded(t *testing.T) {
	for name, roots := range map[string][]*people.OrgNode{
		"nobody": nil, "one": chartOf(1, 1), "team": chartOf(9, 3), "wide": chartOf(2000, 1999), "deep": chartOf(1000, 1),
		"large": chartOf(2000, 4),
		"odd names": {{Name: strings.Repeat("Ж", 300), Role: "\x00\xff"}, {Name: ""},
			{Name: "日本\n語", Role: strings.Repeat("W", 200), Status: entity.AgentPaused}},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := chart.PaintOrg("Acme & Söhne", roots)
			if err != nil {
				t.Fatal(err)
			}
			if b, _ := chart.PaintOrg("Acme & Söhne", roots); !bytes.Equal(a, b) {
				t.Error("the same chart gave other bytes")
			}
			c, err := png.DecodeConfig(bytes.NewReader(a))
			if err != nil {
				t.Fatal(err)
			}
			if c.Width*c.Height > chart.MaxOrgPixels || max(c.Width, c.Height) > chart.MaxOrgSide || len(a) > 2<<20 {
				t.Errorf("%d x %d pixels, %d bytes", c.Width, c.Height, len(a))
			}
			if path := os.Getenv("ORG_CHART"); path == name {
				if err := os.WriteFile("org-chart.png", a, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	few := chart.LayOut(chartOf(2000, 1999), 10, 6)
	if last := few.Boxes[0].Kids[10]; len(few.Boxes[0].Kids) != 11 || last.Node != nil || last.More != 1989 {
		t.Errorf("the box of the rest says %+v", last)
	}
}

func TestTheOrgChartIsServedAsAnImageAndTravels(t *testing.T) {
	h := apitest.NewTeam(t)
	in := "/api/companies/" + string(h.Company)
	a := h.Call("GET", in+"/org.png", "").Want(t, 200, "")
	if got := a.Header.Get("Content-Type"); got != "image/png" {
		t.Errorf("content type %q", got)
	}
	if _, err := png.Decode(bytes.NewReader(a.Body)); err != nil {
		t.Error(err)
	}
	out := h.Call("POST", in+"/export", `{}`).Want(t, 200, "images/org-chart.png")
	if !strings.Contains(string(out.Body), `"contentType":"image/png"`) {
		t.Error("the package has no chart")
	}
	h.Call("GET", "/api/companies/11111111-1111-4111-8111-111111111111/org.png", "").Want(t, 404, "Company not found")
}
