// Package why serves the causal graph of companies: why something happened, what came of
// it, and how two things hang together.
package why

import (
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/cause"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// maxName bounds how an entity is named, in bytes.
const maxName = 160

// Routes are the rows of the causal graph.
func Routes() []api.Route {
	const tag, at = "why", "/api/v1"
	of := api.Param{Name: "companyId",
		Doc: "whose; an agent's own unless given, and that of the entity where its name alone says it"}
	bounds := []api.Param{of, {Name: "depth", Type: "integer", Doc: "steps from the entity, 1 to 64; 12 unless given"},
		{Name: "limit", Type: "integer", Doc: "nodes, 1 to 1000; 100 unless given"}}
	ends := []api.Param{{Name: "from", Doc: "an entity, named as for why"},
		{Name: "to", Doc: "another entity of the same company"}, of}
	return []api.Route{
		{Method: "GET", Path: at + "/why/{entity}", Tag: tag,
			Summary: "Say why something is there: walk from it to its causes. An entity is an ID, an identifier such as " +
				"ACM-7, type:id, or #height of an entry",
			Query: bounds, Out: walked{}, Handle: walk(false)},
		{Method: "GET", Path: at + "/effects/{entity}", Tag: tag,
			Summary: "Say what came of something: walk from it to its effects", Query: bounds, Out: walked{},
			Handle: walk(true)},
		{Method: "GET", Path: at + "/path", Tag: tag,
			Summary: "Find the shortest way from one entity to another along causes and effects", Query: ends, Out: pathway{},
			Handle: path},
		{Method: "GET", Path: at + "/mind", Tag: tag,
			Summary: "Say what the mind of this node did: its ticks, impulses and links, and what was measured of the node",
			Who:     api.Board, Out: thinking{}, Handle: think},
	}
}

type (
	// A node is one thing. Its label may be text that somebody wrote: data, not orders.
	node struct {
		ID     string     `json:"id"` // type:id
		Type   cause.Type `json:"type"`
		Label  string     `json:"label"`
		Status string     `json:"status"`
		At     core.Time  `json:"at"`
		Height uint64     `json:"height"` // of the entry that made it, 0: unknown
	}
	reached struct {
		node
		Structure string `json:"structure"`   // chain, resource_tree, causal_graph or index
		Universal string `json:"universalId"` // among all structures: a BLAKE3 hash
		Depth     int    `json:"depth"`
		More      bool   `json:"more"` // it has edges that the walk did not follow
	}
	// An edge leads from the cause to the effect.
	edge struct {
		From   string     `json:"from"`
		To     string     `json:"to"`
		Kind   cause.Kind `json:"kind"`
		Why    string     `json:"why"`
		Height uint64     `json:"height"` // of the entry that says so, 0: unknown
		At     core.Time  `json:"at"`
		Weight int64      `json:"weight"` // thousandths; 1000 is a fact, less a likeness
	}
	crossRef struct {
		Source          string    `json:"source"`
		SourceStructure string    `json:"sourceStructure"`
		Target          string    `json:"target"`
		TargetStructure string    `json:"targetStructure"`
		Type            string    `json:"type"`
		Code            int       `json:"code"` // of the type: from 128 on those that are named as edges are
		CreatedAt       core.Time `json:"createdAt"`
		ChainSeq        uint64    `json:"chainSeq"` // height of the entry that says so, 0: unknown
	}
	walked struct {
		Company ledger.CompanyID `json:"companyId"`
		Root    string           `json:"root"`
		Nodes   []reached        `json:"nodes"` // the root first, then the nearest
		Edges   []edge           `json:"edges"`
		Cross   []crossRef       `json:"crossRefs"` // the edges between two structures, by universal IDs
		More    bool             `json:"more"`      // there is more than depth and limit let in
		Height  uint64           `json:"height"`    // raft index of the state that answers
	}
	pathway struct {
		Company ledger.CompanyID `json:"companyId"`
		Found   bool             `json:"found"`
		// forward: from led to to; back: to led to from; mixed: neither; "" without a path
		Direction cause.Direction `json:"direction"`
		Nodes     []node          `json:"nodes"` // from the first to the second
		Edges     []edge          `json:"edges"` // edge n is between node n and node n+1
		More      bool            `json:"more"`  // the search stopped at a bound
		Height    uint64          `json:"height"`
	}
)

// errNone also answers for companies that the asker does not see.
var errNone = api.NotFound("Entity not found")

// reader is the agent that asks, "" for the board.
func reader(rc *api.Request) string {
	if rc.IsAgent() {
		return rc.Actor.ID
	}
	return ""
}

// checked returns the name of an entity as a request has it.
func checked(field, name string) (string, error) {
	if name == "" {
		return "", api.Invalid("%s: required", field)
	}
	if len(name) > maxName {
		return "", api.Invalid("%s: at most %d bytes", field, maxName)
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f || c == '/' {
			return "", api.Invalid("%s: give an ID, an identifier such as ACM-7, type:id, or #height", field)
		}
	}
	if core.IsID(strings.ToLower(name)) {
		name = strings.ToLower(name)
	}
	return name, nil
}

// companyOf returns the company in which a request looks for an entity. One that the asker
// does not see is answered like one that is not there.
func companyOf(tx *ledger.Tx, rc *api.Request, name string) (ledger.CompanyID, error) {
	of := ledger.CompanyID(strings.ToLower(rc.Query("companyId")))
	switch {
	case of == "" && rc.IsAgent():
		of = rc.Company
	case of == "":
		of = owner(tx, name)
	}
	if of == "" || !api.Seen(tx, rc, of) {
		return "", errNone
	}
	return of, nil
}

// owner returns the company of an entity whose name is known across companies, or "".
func owner(tx *ledger.Tx, name string) ledger.CompanyID {
	if r, ok := cause.ParseRef(name); ok {
		name = r.ID
	}
	if i, ok := entity.FindIssue(tx, name); ok {
		return i.Company
	}
	if !core.IsID(name) {
		return ""
	}
	if r, ok := entity.RunByID(tx, name); ok {
		return r.Company
	}
	if a, ok := money.ApprovalByID(tx, name); ok {
		return a.Company
	}
	return core.OwnerOf(tx, name)
}

func walk(effects bool) func(rc *api.Request) (api.Response, error) {
	return func(rc *api.Request) (api.Response, error) {
		name, err := checked("entity", rc.Path("entity"))
		if err != nil {
			return api.Response{}, err
		}
		w := cause.Walk{Reader: reader(rc), Effects: effects}
		if w.Depth, err = rc.QueryInt("depth", cause.DefaultDepth, 1, cause.MaxDepth); err != nil {
			return api.Response{}, err
		}
		if w.Nodes, err = rc.QueryInt("limit", cause.DefaultNodes, 1, cause.MaxNodes); err != nil {
			return api.Response{}, err
		}
		var out walked
		err = rc.View(func(tx *ledger.Tx) error {
			if w.Company, err = companyOf(tx, rc, name); err != nil {
				return err
			}
			g := company.Causes()
			root, ok := g.Find(tx, w.Company, w.Reader, name)
			if !ok {
				return errNone
			}
			out = shown(g.Walk(tx, root, w), w.Company)
			return nil
		})
		out.Company, out.Height = w.Company, rc.Index
		return api.OK(out), err
	}
}

func shown(f cause.Found, of ledger.CompanyID) walked {
	out := walked{Root: f.Points[0].Ref.String(), Nodes: make([]reached, len(f.Points)), Edges: edges(f.Edges),
		More: f.More, Cross: []crossRef{}}
	for n, p := range f.Points {
		out.Nodes[n] = reached{nodeOf(p.Point), p.Type.Structure().String(), p.Universal(of).String(), p.Depth, p.More}
	}
	for _, x := range f.CrossRefs() {
		out.Cross = append(out.Cross, crossRef{x.From.Universal(of).String(), x.From.Type.Structure().String(),
			x.To.Universal(of).String(), x.To.Type.Structure().String(),
			x.Kind.String(), int(x.Kind), x.At, x.Height})
	}
	return out
}

func nodeOf(p cause.Point) node {
	return node{ID: p.Ref.String(), Type: p.Type, Label: p.Label, Status: p.Status, At: p.At, Height: p.Height}
}

func edges(list []cause.Edge) []edge {
	out := make([]edge, len(list))
	for n, e := range list {
		out[n] = edge{e.From.String(), e.To.String(), e.Kind, e.Why, e.Height, e.At, e.Weight}
	}
	return out
}

func path(rc *api.Request) (api.Response, error) {
	from, err := checked("from", rc.Query("from"))
	if err != nil {
		return api.Response{}, err
	}
	to, err := checked("to", rc.Query("to"))
	if err != nil {
		return api.Response{}, err
	}
	out := pathway{Nodes: []node{}, Edges: []edge{}}
	err = rc.View(func(tx *ledger.Tx) error {
		if out.Company, err = companyOf(tx, rc, from); err != nil {
			return err
		}
		g := company.Causes()
		a, ok := g.Find(tx, out.Company, reader(rc), from)
		b, there := g.Find(tx, out.Company, reader(rc), to)
		if !ok || !there {
			return errNone
		}
		p := g.Path(tx, out.Company, reader(rc), a, b)
		out.Found, out.Direction, out.More = len(p.Points) > 0, p.Direction, p.More
		out.Nodes, out.Edges = make([]node, len(p.Points)), edges(p.Edges)
		for n, q := range p.Points {
			out.Nodes[n] = nodeOf(q)
		}
		return nil
	})
	out.Height = rc.Index
	return api.OK(out), err
}
