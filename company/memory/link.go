package memory

import (
	"cmp"
	"slices"

	"github.com/selvage-mesh/selvage/company/cause"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// The leader's node finds records that are alike (see the room mind), and links them by
// one command. Each record of a pair has the other one in its row of likes. When a record
// is forgotten, its likes are removed on both sides.
const (
	// MaxLikes bounds the likes of a record; a better one takes the place of the weakest.
	MaxLikes = 12
	// MaxLinked bounds the records that one command looks at, MaxPairs the pairs it links.
	MaxLinked = 64
	MaxPairs  = 320
	// LeastLike is the least likeness of a link, in thousandths.
	LeastLike = 700
)

// One command touches the row of each record, and of each of its likes, twice.
const _ = uint(ledger.MaxTouched - 2*(MaxLikes+1)*MaxLinked - 4*MaxPairs - 10)

// Link is the payload of memory.link. The node has looked at the changes with the numbers
// After+1 to Through; After must be where the command before ended. Records in Renewed
// were looked at again: their old likes are removed first.
type Link struct {
	After   uint64   `cbor:"1,keyasint"`
	Through uint64   `cbor:"2,keyasint"`
	Renewed []string `cbor:"3,keyasint,omitempty"`
	Pairs   []Pair   `cbor:"4,keyasint,omitempty"`
}

// A Pair is two records that are alike, in thousandths.
type Pair struct {
	A      string `cbor:"1,keyasint"`
	B      string `cbor:"2,keyasint"`
	Weight int64  `cbor:"3,keyasint"`
}

// A like is what one record is like.
type like struct {
	Record string    `cbor:"1,keyasint"`
	Weight int64     `cbor:"2,keyasint"`
	Height uint64    `cbor:"3,keyasint"`
	At     core.Time `cbor:"4,keyasint"`
}

type likes struct {
	List []like `cbor:"1,keyasint"`
}

// Clone returns a copy that shares nothing with l.
func (l likes) Clone() likes { return likes{slices.Clone(l.List)} }

// A Linking says up to which change a company's records were compared.
type Linking struct {
	Through uint64 `cbor:"1,keyasint,omitempty"`
	Pairs   int64  `cbor:"2,keyasint,omitempty"` // linked, ever
}

// KindLink is the command of the mind.
const KindLink = "memory.link"

var (
	likings  = ledger.NewTable[string, likes]("memory-like")
	linkings = ledger.NewTable[string, Linking]("memory-linking")
)

// LinkingOf returns how far the changes of a company were looked at.
func LinkingOf(tx *ledger.Tx, company ledger.CompanyID) Linking {
	l, _ := linkings.Get(tx, company, totalKey)
	return l
}

func link(c *ledger.Context, p Link) (any, error) {
	of := c.Cmd.Company
	now := LinkingOf(c.Tx, of)
	switch {
	case p.After != now.Through:
		return nil, ledger.Refuse(ledger.Conflict, nil, "changes up to %d were looked at, not up to %d", now.Through, p.After)
	case p.Through < p.After || p.Through > CountOf(c.Tx, of).Changes:
		return nil, ledger.Refuse(ledger.Invalid, nil, "through: there is no such change")
	case len(p.Renewed) > MaxLinked || len(p.Pairs) > MaxPairs || len(p.Renewed)+len(p.Pairs) == 0:
		return nil, ledger.Refuse(ledger.Invalid, nil, "renewed and pairs: 1 to %d records, at most %d pairs",
			MaxLinked, MaxPairs)
	}
	for _, id := range p.Renewed {
		unlike(c.Tx, of, id)
	}
	n := int64(0)
	for _, pair := range p.Pairs {
		if pair.Weight < LeastLike || pair.Weight > 1000 {
			return nil, ledger.Refuse(ledger.Invalid, nil, "weight: %d to 1000", LeastLike)
		}
		if join(c, pair) {
			n++
		}
	}
	now.Through, now.Pairs = p.Through, now.Pairs+n
	linkings.Put(c.Tx, of, totalKey, now)
	if first := p.first(c.Tx, of); first != "" {
		c.Record(ledger.Change{Action: "memory.linked", EntityType: "memory", EntityID: first,
			Details: core.Object{}.Int("pairs", n).Close()})
	}
	return nil, nil
}

// first returns the first of the records of p that the company has, or "".
func (p Link) first(tx *ledger.Tx, of ledger.CompanyID) string {
	for _, id := range p.Renewed {
		if there(tx, of, id) {
			return id
		}
	}
	for _, pair := range p.Pairs {
		if there(tx, of, pair.A) {
			return pair.A
		}
	}
	return ""
}

// join links two records, unless one of them is gone or both have better likes.
func join(c *ledger.Context, p Pair) bool {
	of := c.Cmd.Company
	if p.A == p.B || !there(c.Tx, of, p.A) || !there(c.Tx, of, p.B) || !room(c.Tx, of, p.A, p) || !room(c.Tx, of, p.B, p) {
		return false
	}
	for _, side := range [][2]string{{p.A, p.B}, {p.B, p.A}} {
		row, _ := likings.Get(c.Tx, of, side[0])
		row.List = slices.DeleteFunc(row.List, func(l like) bool { return l.Record == side[1] })
		if len(row.List) >= MaxLikes {
			weakest := row.List[len(row.List)-1]
			row.List = row.List[:len(row.List)-1]
			part(c.Tx, of, weakest.Record, side[0])
		}
		row.List = append(row.List, like{side[1], p.Weight, c.Height, core.TimeOf(c.Now)})
		slices.SortStableFunc(row.List, func(a, b like) int {
			return cmp.Or(cmp.Compare(b.Weight, a.Weight),
				cmp.Compare(a.Record, b.Record))
		})
		likings.Put(c.Tx, of, side[0], row)
	}
	return true
}

func there(tx *ledger.Tx, company ledger.CompanyID, id string) bool {
	_, ok := Of(tx, company, id)
	return ok
}

// room reports whether a record takes one more like.
func room(tx *ledger.Tx, company ledger.CompanyID, id string, p Pair) bool {
	row, _ := likings.Get(tx, company, id)
	return len(row.List) < MaxLikes || row.List[len(row.List)-1].Weight < p.Weight ||
		slices.ContainsFunc(row.List, func(l like) bool { return l.Record == p.A || l.Record == p.B })
}

// part takes one record out of the likes of another.
func part(tx *ledger.Tx, company ledger.CompanyID, of, gone string) {
	row, ok := likings.Get(tx, company, of)
	if !ok {
		return
	}
	if row.List = slices.DeleteFunc(row.List, func(l like) bool { return l.Record == gone }); len(row.List) == 0 {
		likings.Delete(tx, company, of)
		return
	}
	likings.Put(tx, company, of, row)
}

// unlike removes all likes of a record.
func unlike(tx *ledger.Tx, company ledger.CompanyID, id string) {
	row, ok := likings.Get(tx, company, id)
	if !ok {
		return
	}
	for _, l := range row.List {
		part(tx, company, l.Record, id)
	}
	likings.Delete(tx, company, id)
}

// alike adds the records that a record is like, which neither caused.
func alike(b *cause.Bag, p cause.Point) {
	row, _ := likings.Get(b.Tx, b.Company, p.ID)
	for _, l := range row.List {
		if !b.Read() || !b.Add(cause.Edge{Kind: cause.Correlates, Why: "is alike", Height: l.Height, At: l.At,
			Weight: l.Weight}, cause.Ref{Type: cause.Memory, ID: l.Record}) {
			return
		}
	}
}

// ChangesAfter returns the records that were stored or went after a number of changes, at
// most limit, and how far that leads. ok is false when that is too long ago to tell.
func ChangesAfter(tx *ledger.Tx, company ledger.CompanyID, after uint64, limit int) (ids []string,
	upTo uint64, ok bool) {
	now := CountOf(tx, company).Changes
	if after > now || now-after >= MaxChanges {
		return nil, now, false
	}
	upTo = min(now, after+uint64(limit))
	for n := after + 1; n <= upTo; n++ {
		ch, ok := changes.Get(tx, company, ledger.Order(n))
		if !ok {
			return nil, now, false
		}
		if !slices.Contains(ids, ch.ID) {
			ids = append(ids, ch.ID)
		}
	}
	return ids, upTo, true
}

// Likes returns how many records a record is like.
func Likes(tx *ledger.Tx, company ledger.CompanyID, id string) int {
	row, _ := likings.Get(tx, company, id)
	return len(row.List)
}
