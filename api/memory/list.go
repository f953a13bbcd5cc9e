package memory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/ledger"
)

// A list has defaultListed memories unless a limit is given, and never more than maxListed.
const (
	defaultListed = 50
	maxListed     = 500
)

var listParams = []api.Param{
	{Name: "companyId", Doc: "whose; an agent's own unless given"},
	{Name: "kind", Doc: "only of this kind"},
	{Name: "tag", Doc: "only with this tag"},
	{Name: "agentId", Doc: "only those of this agent"},
	{Name: "issueId", Doc: "only those that came from this issue"},
	{Name: "limit", Type: "integer", Doc: "at most so many, up to 500; 50 unless given"},
	{Name: "after", Doc: "the list goes on after the memory with this ID, the last of the list before"},
}

// A listing is a part of what a company remembers, the newest first.
type listing struct {
	Memories []shape `json:"memories"`
	Total    int     `json:"total"` // that the asker may read and the filters let pass
	Next     *string `json:"next"`  // what after is for the next part; null: there is none
	Height   uint64  `json:"height"`
}

// A choice says which memories are listed.
type choice struct {
	reader                  string
	kind, tag, agent, issue string
	now                     core.Time
	limit                   int
	after                   string
}

func (c choice) takes(r memory.Record) bool {
	return r.ReadableBy(c.reader) && !r.Expired(c.now) &&
		(c.kind == "" || r.Kind == c.kind) && (c.tag == "" || slices.Contains(r.Tags, c.tag)) &&
		(c.agent == "" || string(r.Agent) == c.agent) && (c.issue == "" || string(r.Issue) == c.issue)
}

// newest orders memories by the time of making, the newest first, and by ID where that is
// the same.
func newest(a, b memory.Record) int {
	return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), strings.Compare(b.ID, a.ID))
}

func list(rc *api.Request) (api.Response, error) {
	of, err := companyOf(rc, "")
	if err != nil {
		return api.Response{}, err
	}
	c := choice{reader: reader(rc), kind: rc.Query("kind"), tag: rc.Query("tag"),
		agent: strings.ToLower(rc.Query("agentId")), issue: strings.ToLower(rc.Query("issueId")),
		now: core.TimeOf(rc.Now()), after: strings.ToLower(rc.Query("after"))}
	if c.limit, err = rc.QueryInt("limit", defaultListed, 1, maxListed); err != nil {
		return api.Response{}, err
	}
	return api.Viewed(rc, func(tx *ledger.Tx) (listing, error) {
		if _, ok := entity.CompanyOf(tx, of); !ok {
			return listing{}, api.NotFound("Company not found")
		}
		out, err := c.listed(tx, of)
		out.Height = rc.Index
		return out, err
	})
}

// listed reads all memories of a company, of which there are at most memory.MaxRecords, and
// keeps at most twice the limit of them.
func (c choice) listed(tx *ledger.Tx, of ledger.CompanyID) (listing, error) {
	out := listing{Memories: []shape{}}
	var from memory.Record
	if c.after != "" {
		r, ok := memory.Of(tx, of, c.after)
		if !ok || !r.ReadableBy(c.reader) {
			return out, api.Invalid("after: no memory that is left has this ID; begin again without it")
		}
		from = r
	}
	var kept []memory.Record
	rest := 0 // those that come after from
	memory.Each(tx, of, func(r memory.Record) bool {
		if !c.takes(r) {
			return true
		}
		out.Total++
		if c.after != "" && newest(from, r) >= 0 {
			return true
		}
		rest++
		if kept = append(kept, r); len(kept) == 2*c.limit {
			slices.SortFunc(kept, newest)
			kept = kept[:c.limit]
		}
		return true
	})
	slices.SortFunc(kept, newest)
	for _, r := range kept[:min(len(kept), c.limit)] {
		out.Memories = append(out.Memories, shapeOf(r))
	}
	if n := len(out.Memories); n < rest {
		out.Next = &out.Memories[n-1].ID
	}
	return out, nil
}
