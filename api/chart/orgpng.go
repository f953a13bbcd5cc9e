// Package chart draws the org chart.
package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"slices"
	"strings"
	"sync"

	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/portable"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

const (
	// MaxOrgPixels bounds a painted org chart: its memory is a byte a pixel, and
	// no viewer likes larger images. A company that does not fit is shown in part.
	MaxOrgPixels = 12 << 20
	// MaxOrgSide bounds each side, in pixels.
	MaxOrgSide = 16_000
)

// Colours of the painted org chart, by their index in the palette; those between
// are the steps from one to another that the edges of letters need.
const (
	inkSteps = 16
	sheet    = 0            // behind everything, on to black
	card     = inkSteps     // a box, on to black
	faint    = 2 * inkSteps // a box, on to grey
	line     = 3 * inkSteps
	border   = line + 1
	atRest   = line + 2
	running  = line + 3
	broken   = line + 4
	paused   = line + 5
)

var orgPalette = func() color.Palette {
	hex := func(v uint32) color.RGBA { return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 255} }
	var p color.Palette
	for _, span := range [][2]uint32{{0xfafaf9, 0x1c1917}, {0xffffff, 0x1c1917}, {0xffffff, 0x57534e}} {
		from, to := hex(span[0]), hex(span[1])
		mix := func(a, b uint8, step int) uint8 {
			return uint8((int(a)*(inkSteps-1-step) + int(b)*step) / (inkSteps - 1))
		}
		for step := range inkSteps {
			p = append(p, color.RGBA{mix(from.R, to.R, step), mix(from.G, to.G, step), mix(from.B, to.B, step), 255})
		}
	}
	for _, v := range []uint32{0xa8a29e, 0xd6d3d1, 0x16a34a, 0x2563eb, 0xdc2626, 0xd97706} {
		p = append(p, hex(v))
	}
	return p
}()

var statusInks = map[entity.AgentStatus]uint8{entity.AgentRunning: running, entity.AgentError: broken,
	entity.AgentPaused: paused}

// orgFonts are the parsed fonts: Latin, Greek and Cyrillic letters. Others are
// drawn as an empty frame.
var orgFonts = sync.OnceValues(func() (f [2]*opentype.Font, err error) {
	for i, data := range [][]byte{goregular.TTF, gobold.TTF} {
		if f[i], err = opentype.Parse(data); err != nil {
			return f, fmt.Errorf("font of the org chart: %w", err)
		}
	}
	return f, nil
})

// A painter draws on a palette image. It belongs to one goroutine.
type painter struct {
	to                 *image.Paletted
	title, name, small font.Face
}

// PaintOrg paints an org chart as PNG: the same chart gives the same bytes. One
// that is too large is shown as far as it fits, with the number of those left
// out.
func PaintOrg(title string, roots []*people.OrgNode) ([]byte, error) {
	c := fitOrg(roots)
	fonts, err := orgFonts()
	if err != nil {
		return nil, err
	}
	p := painter{to: image.NewPaletted(image.Rect(0, 0, c.Width, c.Height), orgPalette)}
	for _, f := range []struct {
		face *font.Face
		of   *opentype.Font
		size float64
	}{{&p.title, fonts[1], 20}, {&p.name, fonts[1], 14}, {&p.small, fonts[0], 12}} {
		if *f.face, err = opentype.NewFace(f.of, &opentype.FaceOptions{Size: f.size, DPI: 72,
			Hinting: font.HintingFull}); err != nil {
			return nil, fmt.Errorf("font of the org chart: %w", err)
		}
	}
	p.text(p.title, shortened(title, 80), OrgMargin, OrgMargin+8, c.Width-OrgMargin, sheet)
	for _, b := range c.Boxes {
		p.box(b)
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, p.to); err != nil {
		return nil, fmt.Errorf("org chart: %w", err)
	}
	return out.Bytes(), nil
}

// fitOrg lays a chart out within MaxOrgPixels, with as many as can be.
func fitOrg(roots []*people.OrgNode) (c chart) {
	for _, most := range [][2]int{{1 << 30, 1 << 30}, {40, 20}, {20, 12}, {10, 6}, {6, 4}, {3, 3}, {2, 2}} {
		if c = LayOut(roots, most[0], most[1]); c.Width <= MaxOrgSide && c.Height <= MaxOrgSide &&
			c.Width*c.Height <= MaxOrgPixels {
			break
		}
	}
	return c
}

func (p painter) rect(x, y, w, h int, ink uint8) {
	draw.Draw(p.to, image.Rect(x, y, x+w, y+h), image.NewUniform(orgPalette[ink]), image.Point{}, draw.Src)
}

func (p painter) box(b *box) {
	middle := b.x + boxWidth/2
	for _, k := range b.Kids {
		half, to := b.y+boxHeight+boxGapY/2, k.x+boxWidth/2
		p.rect(middle, b.y+boxHeight, 1, half-b.y-boxHeight, line)
		p.rect(min(middle, to), half, max(middle, to)-min(middle, to)+1, 1, line)
		p.rect(to, half, 1, k.y-half, line)
		p.box(k)
	}
	p.rect(b.x, b.y, boxWidth, boxHeight, border)
	p.rect(b.x+1, b.y+1, boxWidth-2, boxHeight-2, card)
	end := b.x + boxWidth - 12
	if b.Node == nil {
		p.text(p.small, fmt.Sprintf("and %d more", b.More), b.x+12, b.y+33, end, faint)
		return
	}
	about := b.Node.Role
	if b.Node.Status != "" {
		about += " · " + string(b.Node.Status)
		ink, ok := statusInks[b.Node.Status]
		if !ok {
			ink = atRest
		}
		const radius = 5
		for dy := -radius; dy <= radius; dy++ {
			for dx := -radius; dx <= radius; dx++ {
				if dx*dx+dy*dy <= radius*radius {
					p.to.SetColorIndex(b.x+boxWidth-14+dx, b.y+14+dy, ink)
				}
			}
		}
	}
	p.text(p.name, shortened(b.Node.Name, 40), b.x+12, b.y+24, end-14, card)
	p.text(p.small, shortened(about, 40), b.x+12, b.y+43, end, faint)
}

// text writes s from x to at most end, on the colour at which the ink begins.
func (p painter) text(face font.Face, s string, x, y, end int, ink uint8) {
	at := fixed.P(x, y)
	for _, r := range strings.Join(strings.Fields(s), " ") {
		area, mask, from, advance, ok := face.Glyph(at, r)
		if !ok || (at.X+advance).Ceil() > end {
			return
		}
		for dy := range area.Dy() {
			for dx := range area.Dx() {
				_, _, _, alpha := mask.At(from.X+dx, from.Y+dy).RGBA()
				if step := alpha * (inkSteps - 1) / 0xffff; step > 0 {
					p.to.SetColorIndex(area.Min.X+dx, area.Min.Y+dy, ink+uint8(step))
				}
			}
		}
		at.X += advance
	}
}

// OrgOfPackage is the org chart of a package: it has no statuses, which do not
// travel.
func OrgOfPackage(m portable.Manifest) (roots []*people.OrgNode) {
	agents := slices.Clone(m.Agents)
	slices.SortFunc(agents, func(a, b portable.Agent) int { return strings.Compare(a.Slug, b.Slug) })
	nodes := map[string]*people.OrgNode{}
	for _, a := range agents {
		nodes[a.Slug] = &people.OrgNode{Name: a.Name, Role: a.Role}
	}
	for _, a := range agents {
		if a.ReportsTo != nil && nodes[*a.ReportsTo] != nil {
			boss := nodes[*a.ReportsTo]
			boss.Reports = append(boss.Reports, nodes[a.Slug])
		} else {
			roots = append(roots, nodes[a.Slug])
		}
	}
	return roots
}

// Boxes of the drawn org chart, in pixels.
const (
	boxWidth, boxHeight = 180, 56
	boxGapX, boxGapY    = 24, 48
	OrgMargin           = 32
	orgTitle            = 40
)

// A box is an agent with its place in the drawing, or says how many are not drawn.
type box struct {
	Node *people.OrgNode
	More int // when node is nil
	x, y int
	Kids []*box
}

// A chart is a drawing of an org chart: leaves stand side by side, everybody
// else in the middle above their reports.
type chart struct {
	Boxes         []*box
	Width, Height int
}

// LayOut places the boxes. At most wide of those who report to one agent, and
// deep levels below the first, are drawn, and a box with the number of the rest.
func LayOut(roots []*people.OrgNode, wide, deep int) chart {
	next, deepest := OrgMargin, 0
	var row func(of []*people.OrgNode, depth int) []*box
	put := func(b *box, depth int) *box {
		deepest = max(deepest, depth)
		b.y = OrgMargin + orgTitle + depth*(boxHeight+boxGapY)
		if len(b.Kids) == 0 {
			b.x = next
			next += boxWidth + boxGapX
		} else {
			b.x = (b.Kids[0].x + b.Kids[len(b.Kids)-1].x) / 2
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
			out = append(out, put(&box{Node: n, Kids: row(n.Reports, depth+1)}, depth))
		}
		if left := countOrg(of[len(shown):]); left > 0 {
			out = append(out, put(&box{More: left}, depth))
		}
		return out
	}
	c := chart{Boxes: row(roots, 0)}
	c.Width = max(next-boxGapX+OrgMargin, 2*OrgMargin+boxWidth)
	c.Height = 2*OrgMargin + orgTitle + (deepest+1)*boxHeight + deepest*boxGapY
	return c
}

func (b *box) Draw(w *strings.Builder) {
	middle := b.x + boxWidth/2
	for _, k := range b.Kids {
		half := b.y + boxHeight + boxGapY/2
		fmt.Fprintf(w, `<path d="M%d %dV%dH%dV%d" fill="none" stroke="#a8a29e"/>`+"\n", middle, b.y+boxHeight, half,
			k.x+boxWidth/2, k.y)
		k.Draw(w)
	}
	colour, ok := statusColours[b.Node.Status]
	if !ok {
		colour = "#16a34a"
	}
	fmt.Fprintf(w, `<g transform="translate(%d, %d)"><rect width="%d" height="%d" rx="8" fill="#fff" `+
		`stroke="#d6d3d1"/><circle cx="%d" cy="14" r="5" fill="%s"/>`+
		`<text x="12" y="24" font-size="14" font-weight="bold">%s</text><text x="12" y="43" font-size="12" `+
		`fill="#57534e">%s · %s</text></g>`+"\n",
		b.x, b.y, boxWidth, boxHeight, boxWidth-14, colour, Escaped(b.Node.Name, 18), Escaped(b.Node.Role, 14),
		Escaped(string(b.Node.Status), 16))
}

// shortened returns at most n characters of a text.
func shortened(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func countOrg(nodes []*people.OrgNode) (n int) {
	for _, o := range nodes {
		n += 1 + countOrg(o.Reports)
	}
	return n
}

var statusColours = map[entity.AgentStatus]string{entity.AgentRunning: "#2563eb", entity.AgentError: "#dc2626",
	entity.AgentPaused: "#d97706"}

// Escaped returns at most n characters of a text, for use in SVG.
func Escaped(s string, n int) string {
	var w strings.Builder
	_ = xml.EscapeText(&w, []byte(shortened(s, n))) // a builder takes everything
	return w.String()
}
