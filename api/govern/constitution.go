package govern

import (
	"cmp"
	"slices"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// constitutionRoutes show the rules in force, the packs, and what is set for a place.
func constitutionRoutes() []api.Route {
	const tag, at = "governance", "/api/v1/govern"
	return []api.Route{
		{Method: "GET", Path: at + "/rules", Kernel: true, Capability: "govern", Tag: tag,
			Summary: "List the rules in force and what their predicates can read",
			Query:   []api.Param{{Name: "version", Doc: "of the constitution; the one in force unless given", Type: "integer"}},
			Out:     constitution{}, Handle: listRules},
		{Method: "GET", Path: at + "/packs", Kernel: true, Tag: tag, Summary: "List the packs of rules to start from",
			Out: []pack{}, Handle: listPacks},
		{Method: "GET", Path: at + "/packs/{name}", Kernel: true, Tag: tag, Summary: "Show a pack of rules", Out: pack{},
			Handle: readPack},
		{Method: "POST", Path: at + "/packs/{name}/apply", Kernel: true, Tag: tag,
			Summary: "Propose the rules of a pack, and bring them into force where the board has no signing keys",
			Out:     amendment{},
			Who:     api.Admin, Once: true, Handle: applyPack},
		{Method: "GET", Path: at + "/place", Kernel: true, Tag: tag,
			Summary: "Show the environment that is set for a company, a project or the mesh", Query: placeQuery,
			Out: placeShape{}, Handle: readPlace},
		{Method: "PUT", Path: at + "/place", Kernel: true, Tag: tag,
			Summary: "Set the environment of a company, a project or the mesh", In: placeBody{}, Out: placeShape{},
			Who: api.Board, Handle: setPlace},
	}
}

var placeQuery = []api.Param{{Name: "companyId", Doc: "the mesh unless given"},
	{Name: "projectId", Doc: "of the company"}}

type (
	constitution struct {
		Version     uint64     `json:"version"`      // counts the amendments in force, from 1
		Hash        string     `json:"constitution"` // hash of all rules: equal hashes decide alike
		Height      uint64     `json:"height"`       // in force from that entry on
		At          core.Time  `json:"inForceSince"`
		Current     bool       `json:"inForce"`
		Amendment   *string    `json:"amendmentId"` // that made it; null: the genesis
		Pack        *string    `json:"pack"`        // that was applied last
		Environment *string    `json:"environment"` // of the mesh
		Threshold   float64    `json:"threshold"`   // in the mesh
		Keys        []key      `json:"signingKeys"`
		Required    int        `json:"requiredSignatures"`
		Rules       []rule     `json:"rules"`
		Variables   []variable `json:"variables"`
	}
	key struct {
		ID     string `json:"id"`
		Name   string `json:"name"`
		Public []byte `json:"publicKey"`
	}
	rule struct {
		ID        string   `json:"id"`
		Title     string   `json:"title"`
		Branch    string   `json:"branch"`
		Severity  string   `json:"severity"`
		On        []string `json:"on"` // actions and classes; empty: all
		When      string   `json:"when"`
		Reason    string   `json:"reason"`
		Reference *string  `json:"reference"`
		Genesis   bool     `json:"genesis"` // its ID is that of a genesis rule
		Core      bool     `json:"core"`    // no amendment loosens it
	}
	pack struct {
		Name        string  `json:"name"`
		About       string  `json:"about"`
		Environment *string `json:"environment"`
		Count       int     `json:"count"`
		Rules       []rule  `json:"rules"`
	}
	placeShape struct {
		Company     *string `json:"companyId"`
		Project     *string `json:"projectId"`
		Environment *string `json:"environment"`     // null: as further out
		Human       *bool   `json:"humanApproval"`   // null: as further out
		Minutes     uint64  `json:"approvalMinutes"` // 0: as further out
		Threshold   float64 `json:"threshold"`       // that holds there
	}
	placeBody struct {
		Company     string  `json:"companyId,omitempty" format:"uuid" doc:"the mesh unless given"`
		Project     string  `json:"projectId,omitempty" format:"uuid"`
		Environment *string `json:"environment,omitempty" nullable:"false" enum:"dev,staging,prod,none" doc:"none: as further out"`
		Human       *bool   `json:"humanApproval,omitempty" nullable:"false" doc:"false: what a rule blocks is denied, and no person is asked"`
		Minutes     *uint64 `json:"approvalMinutes,omitempty" nullable:"false" maximum:"43200" doc:"how long a command waits for a person; 0: as further out"`
	}
)

// classOf returns the class of a word: none is no class.
func classOf(word string) *governance.EnvironmentClass {
	if word == "none" {
		word = ""
	}
	class := governance.EnvironmentClass(word)
	return &class
}

func orNull[T ~string](s T) *string {
	if s == "" {
		return nil
	}
	text := string(s)
	return &text
}

func ruleOf(r governance.Rule) rule {
	out := rule{ID: r.ID, Title: r.Title, Branch: string(r.Branch), Severity: string(r.Severity),
		On: append([]string{}, r.On...), When: r.When, Reason: r.Reason, Reference: orNull(r.Reference)}
	i := slices.IndexFunc(governance.Genesis(), func(g governance.Rule) bool { return g.ID == r.ID })
	if out.Genesis = i >= 0; out.Genesis {
		out.Core = governance.Genesis()[i].Core()
	}
	return out
}

func listRules(rc *api.Request) (api.Response, error) {
	version, err := rc.QueryInt64("version", 0, 0, 1<<53)
	if err != nil {
		return api.Response{}, err
	}
	return api.Viewed(rc, func(tx *ledger.Tx) (out constitution, err error) {
		now, err := govern.InForce(tx)
		if err != nil {
			return out, err
		}
		s, err := govern.VersionOf(tx, uint64(version))
		if err != nil {
			return out, err
		}
		g, err := govern.GateOf(tx, s)
		if err != nil {
			return out, err
		}
		out = constitution{Version: s.Version, Hash: s.Hash, Height: s.Height, At: s.At, Current: s.Version == now.Version,
			Amendment: orNull(s.Amendment), Pack: orNull(s.Pack),
			Environment: orNull(s.Mesh.Class), Threshold: part(governance.Scope{Class: s.Mesh.Class}.Threshold()), Keys: []key{},
			Required: s.Required(), Rules: []rule{}, Variables: variables()}
		for _, k := range s.Keys {
			out.Keys = append(out.Keys, key{k.ID, k.Name, k.Public})
		}
		for _, r := range g.Rules() {
			out.Rules = append(out.Rules, ruleOf(r))
		}
		return out, nil
	})
}

func variables() []variable {
	out := []variable{}
	for _, v := range governance.Variables() {
		shown := variable{Name: v.Name, Type: v.Type, Branches: []string{}, About: v.About}
		for _, b := range v.Branches {
			shown.Branches = append(shown.Branches, string(b))
		}
		out = append(out, shown)
	}
	return out
}

func packOf(p governance.Pack) pack {
	out := pack{Name: p.Name, About: p.About, Environment: orNull(p.Environment), Count: len(p.Rules), Rules: []rule{}}
	for _, r := range p.Rules {
		out.Rules = append(out.Rules, ruleOf(r))
	}
	return out
}

func listPacks(*api.Request) (api.Response, error) {
	out := []pack{}
	for _, p := range governance.Packs() {
		out = append(out, packOf(p))
	}
	return api.OK(out), nil
}

func readPack(rc *api.Request) (api.Response, error) {
	p, ok := governance.PackOf(rc.Path("name"))
	if !ok {
		return api.Response{}, errNoPack()
	}
	return api.OK(packOf(p)), nil
}

func errNoPack() error { return api.NotFound("Pack not found: GET /api/v1/govern/packs lists them") }

// applyPack proposes a pack. Where an administrator's word is enough, it also comes into force.
func applyPack(rc *api.Request) (api.Response, error) {
	p, ok := governance.PackOf(rc.Path("name"))
	if !ok {
		return api.Response{}, errNoPack()
	}
	draft, alone := govern.Draft{}, false
	err := rc.View(func(tx *ledger.Tx) error {
		s, err := govern.InForce(tx)
		draft = govern.Draft{Title: "Pack " + p.Name, Change: p.ChangeTo(govern.RulesOf(tx, s.Version)), Base: s.Version}
		if !p.Added {
			draft.Environment, draft.Pack = &p.Environment, p.Name
		}
		alone = len(s.Keys) == 0
		return err
	})
	if err != nil {
		return api.Response{}, err
	}
	a, err := api.Do[govern.Amendment](rc, govern.KindPropose, "", draft)
	if err == nil && alone {
		if _, err = rc.Submit(govern.KindSign, "", govern.Sign{Amendment: a.ID}); err == nil {
			_, err = rc.Submit(govern.KindEnact, "", govern.NameAmendment{Amendment: a.ID})
		}
	}
	if err != nil {
		return api.Response{}, err
	}
	return showAmendment(rc, a.ID)
}

func placeOf(tx *ledger.Tx, of ledger.CompanyID, project string) (placeShape, error) {
	s, err := govern.InForce(tx)
	if err != nil {
		return placeShape{}, err
	}
	p := s.Mesh
	if of != "" {
		p = govern.PlaceOf(tx, of, project)
	}
	out := placeShape{Company: orNull(of), Project: orNull(project), Environment: orNull(p.Class), Minutes: p.Wait,
		Threshold: part(govern.ScopeOf(tx, s, of, project).Threshold())}
	if p.Asks != govern.AsOutside {
		asks := p.Asks == govern.Asks
		out.Human = &asks
	}
	return out, nil
}

func readPlace(rc *api.Request) (api.Response, error) {
	company, err := rc.QueryUUID("companyId")
	project, err2 := rc.QueryUUID("projectId")
	if err := cmp.Or(err, err2); err != nil {
		return api.Response{}, err
	}
	return api.Viewed(rc, func(tx *ledger.Tx) (placeShape, error) {
		of := ledger.CompanyID(company)
		if of != "" && !api.Seen(tx, rc, of) {
			return placeShape{}, api.NotFound("Company not found")
		}
		return placeOf(tx, of, project)
	})
}

func setPlace(rc *api.Request) (api.Response, error) {
	in, err := api.Body[placeBody](rc)
	if err != nil {
		return badBody(err)
	}
	p := govern.SetPlace{Project: in.Project, Wait: in.Minutes}
	if in.Environment != nil {
		p.Class = classOf(*in.Environment)
	}
	if in.Human != nil {
		p.Asks = new(govern.AsksNobody)
		if *in.Human {
			p.Asks = new(govern.Asks)
		}
	}
	of := ledger.CompanyID(in.Company)
	err = rc.View(func(tx *ledger.Tx) error {
		if of != "" && !api.Seen(tx, rc, of) {
			return api.NotFound("Company not found")
		}
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	if _, err := rc.Submit(govern.KindPlace, of, p); err != nil {
		return api.Response{}, err
	}
	return api.Viewed(rc, func(tx *ledger.Tx) (placeShape, error) { return placeOf(tx, of, in.Project) })
}
