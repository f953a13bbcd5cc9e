package weftos

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// maxBranches bounds the vertices of one answer.
	maxBranches = 1_000
	treeTag     = "resource tree"
)

// TreeRoutes show the resource tree, and who may do what in it.
func TreeRoutes() []api.Route {
	const at = "/api/v1/tree"
	where := []api.Param{{Name: "path", Doc: "from which vertex on, such as /companies; / unless given"},
		{Name: "subject", Doc: "agent:ID, user:ID, company:ID or *"}}
	return []api.Route{
		{Method: "GET", Path: at, Kernel: true, Tag: treeTag,
			Summary: "Read the root of the resource tree, and what lies below a path", Out: treeAnswer{}, Handle: readTree,
			Query: []api.Param{where[0], {Name: "depth", Type: "integer",
				Doc: "how many levels below the path, 0 to 16; 1 unless given"}}},
		{Method: "GET", Path: at + "/access", Kernel: true, Tag: treeTag,
			Summary: "Ask whether somebody may do an action on a path, and which grant decides", Out: accessAnswer{},
			Handle: readAccess,
			Query: []api.Param{where[0], {Name: "action", Doc: "read, use, change or own; read unless given"},
				{Name: "subject", Doc: "agent:ID or user:ID, for who may change the path; the caller unless given"}}},
		{Method: "GET", Path: at + "/grants", Kernel: true, Tag: treeTag, Summary: "List the grants at a path and below it",
			Out: []treeGrant{}, Query: where[:1], Handle: listGrants},
		{Method: "POST", Path: at + "/grants", Kernel: true, Tag: treeTag, Status: 201,
			Summary: "Say what somebody may do on a path and below it, in place of what was said before", In: treeGrantBody{},
			Out: treeGrant{}, Handle: saveGrant},
		{Method: "DELETE", Path: at + "/grants", Kernel: true, Tag: treeTag, Summary: "Take a grant back", Out: treeGrant{},
			Query: where, Handle: dropGrant},
		{Method: "POST", Path: at + "/commit", Kernel: true, Tag: treeTag, Who: api.Admin,
			Summary: "Commit the root of the resource tree on the chain", Out: treeCommit{}, Handle: commitTree},
	}
}

type (
	treeScore struct {
		Trust       float64 `json:"trust"`
		Performance float64 `json:"performance"`
		Difficulty  float64 `json:"difficulty"`
		Reward      float64 `json:"reward"`
		Reliability float64 `json:"reliability"`
		Velocity    float64 `json:"velocity"`
	}
	treeVertex struct {
		Path     string            `json:"path"`
		Kind     string            `json:"kind" enum:"namespace,service,agent,device,topic,container,app,tool,environment,custom"`
		Metadata map[string]string `json:"metadata"`
		Hash     string            `json:"merkle_hash"` // of the vertex and everything below it
		Children int               `json:"children"`
		Scoring  treeScore         `json:"scoring"`
	}
	treeCommit struct {
		Root     string    `json:"root"`
		Vertices int64     `json:"vertices"`
		Height   uint64    `json:"height"` // of the entry
		At       core.Time `json:"at"`
	}
	treeAnswer struct {
		Root      string       `json:"root"` // hash of the whole tree, also of what the caller may not see
		Vertices  int          `json:"vertices"`
		Path      string       `json:"path"`
		Depth     int          `json:"depth"`
		Nodes     []treeVertex `json:"nodes"`     // the one at the path first
		More      bool         `json:"more"`      // there are more than an answer holds: ask for a path below
		Committed *treeCommit  `json:"committed"` // the newest root on the chain
		Unchanged bool         `json:"unchanged"` // the root is the one on the chain
	}
	treeGrant struct {
		Path     string    `json:"path"`
		Subject  string    `json:"subject"`
		Role     *string   `json:"role"` // null: a denial
		Deny     bool      `json:"deny"`
		Delegate bool      `json:"delegate"`
		Until    core.Time `json:"until"`
		By       string    `json:"by,omitempty"`
		At       core.Time `json:"at"`
	}
	accessAnswer struct {
		Path    string     `json:"path"`
		Action  string     `json:"action"`
		Subject string     `json:"subject"`
		Allowed bool       `json:"allowed"`
		Reason  string     `json:"reason"`
		Grant   *treeGrant `json:"grant"` // that decided; one that nobody made follows from who the subject is
		Names   []string   `json:"names"` // that the subject has in grants
	}
	treeGrantBody struct {
		Path     string `json:"path" minLength:"1" maxLength:"1024" maxBytes:"1024"`
		Subject  string `json:"subject" minLength:"1" maxLength:"256" maxBytes:"256" doc:"agent:ID, user:ID, company:ID for everybody of a company, or * for all"`
		Role     string `json:"role,omitempty" enum:"viewer,operator,admin,owner" doc:"viewer reads, operator uses, admin changes, owner all of it"`
		Deny     bool   `json:"deny,omitempty" doc:"takes everything away, in place of a role"`
		Delegate bool   `json:"delegate,omitempty" doc:"who has it may grant as much to others, here or below"`
		Until    string `json:"until,omitempty" format:"date-time" doc:"when it ends; never unless given"`
	}
)

func scoringOf(s governance.Score) treeScore {
	part := func(l governance.Level) float64 { return float64(l) / float64(governance.Most) }
	return treeScore{part(s.Trust), part(s.Performance), part(s.Difficulty), part(s.Reward), part(s.Reliability),
		part(s.Velocity)}
}

func treeCommitOf(c rules.TreeCommit) *treeCommit {
	return &treeCommit{c.Root, c.Vertices, c.Height, c.At}
}

func grantOf(g govern.TreeGrant) treeGrant {
	out := treeGrant{Path: g.Path, Subject: g.Subject, Deny: g.Deny, Delegate: g.Delegate, Until: g.Until,
		By: g.By, At: g.At}
	if g.Role != "" {
		out.Role = &g.Role
	}
	return out
}

// pathOf reads ?path=.
func pathOf(rc *api.Request) (string, error) {
	p := rc.Query("path")
	if p == "" {
		p = "/"
	}
	if err := governance.CheckPath(p); err != nil {
		return "", api.Invalid("%s", err)
	}
	return p, nil
}

// A sight is what a caller may see of the tree.
type sight struct {
	grants   []governance.Grant
	own      []governance.Grant // that follow from who the caller is
	subjects []string
	now      int64
}

func sightOf(tx *ledger.Tx, rc *api.Request) sight {
	return sight{rules.TreePolicy(tx, rc.Actor), rules.TreeImplied(tx, rc.Actor), rules.TreeSubjects(tx, rc.Actor),
		int64(core.TimeOf(rc.Now()))}
}

// may reports whether a caller may do an action on a path. Who could take a denial back is not kept from seeing it.
func (s sight) may(path, action string) bool {
	return governance.Permits(s.grants, s.subjects, path, action, s.now).Allowed ||
		governance.Permits(s.own, s.subjects, path, "change", s.now).Allowed
}

// shows reports whether a caller may know of a path: one that may be read, or a namespace above one.
func (s sight) shows(path string) bool {
	if s.may(path, "read") {
		return true
	}
	for _, g := range s.grants {
		if path != g.Path && governance.Below(g.Path, path) && s.may(g.Path, "read") {
			return true
		}
	}
	return false
}

func readTree(rc *api.Request) (api.Response, error) {
	p, err := pathOf(rc)
	if err != nil {
		return api.Response{}, err
	}
	depth, err := rc.QueryInt("depth", 1, 0, governance.MaxTreeDepth)
	if err != nil {
		return api.Response{}, err
	}
	out := treeAnswer{Path: p, Depth: depth, Nodes: []treeVertex{}}
	err = rc.View(func(tx *ledger.Tx) error {
		tree, err := rules.Tree(tx)
		if err != nil {
			return api.Unprocessable(err.Error(), nil)
		}
		root, seen := tree.Root(), sightOf(tx, rc)
		out.Root, out.Vertices = hex.EncodeToString(root[:]), tree.Len()
		if c, ok := rules.LastTreeCommit(tx); ok {
			out.Committed, out.Unchanged = treeCommitOf(c), c.Root == out.Root
		}
		for _, b := range tree.At(p, depth) {
			switch {
			case !seen.shows(b.Path):
			case len(out.Nodes) == maxBranches:
				out.More = true
			default:
				out.Nodes = append(out.Nodes, vertexOf(tx, b, seen.may(b.Path, "read")))
			}
		}
		if len(out.Nodes) == 0 {
			return api.NotFound("There is no " + p + " in the resource tree that you may see")
		}
		return nil
	})
	return api.OK(out), err
}

// vertexOf shows a vertex. Of one that only leads to what the caller may read, it shows no content.
func vertexOf(tx *ledger.Tx, b governance.Branching, content bool) treeVertex {
	v := treeVertex{Path: b.Path, Kind: string(b.Kind), Metadata: map[string]string{}, Hash: hex.EncodeToString(b.Hash[:]),
		Children: b.Children}
	if content {
		for _, f := range b.Facts {
			v.Metadata[f.Key] = f.Value
		}
	}
	score := b.Score
	if parts := strings.Split(b.Path, "/"); content && b.Kind == governance.AgentVertex && len(parts) == 5 {
		score = rules.ScoreOf(tx, ledger.CompanyID(parts[2]), parts[4])
	}
	v.Scoring = scoringOf(score)
	return v
}

func readAccess(rc *api.Request) (api.Response, error) {
	p, err := pathOf(rc)
	if err != nil {
		return api.Response{}, err
	}
	out := accessAnswer{Path: p, Action: rc.Query("action"), Subject: rc.Actor.Type + ":" + rc.Actor.ID}
	if out.Action == "" {
		out.Action = "read"
	}
	who := rc.Actor
	if given := rc.Query("subject"); given != "" && given != out.Subject {
		kind, id, _ := strings.Cut(given, ":")
		if id == "" || kind != "agent" && kind != "user" {
			return api.Response{}, api.Invalid("subject: want agent:ID or user:ID")
		}
		who, out.Subject = ledger.Actor{Type: kind, ID: id}, given
	}
	err = rc.View(func(tx *ledger.Tx) error {
		if seen := sightOf(tx, rc); who != rc.Actor && !seen.may(p, "change") {
			return api.Forbidden("subject: only who may change a path asks about others on it")
		}
		if _, ok := entity.AgentByID(tx, who.ID); who.Type == "agent" && !ok {
			return entity.ErrNoAgent()
		}
		s := sight{rules.TreePolicy(tx, who), nil, rules.TreeSubjects(tx, who), int64(core.TimeOf(rc.Now()))}
		d := governance.Permits(s.grants, s.subjects, p, out.Action, s.now)
		out.Allowed, out.Names, out.Reason = d.Allowed, s.subjects, "no grant on "+p+" or above it names the subject"
		if d.By == nil {
			return nil
		}
		g := treeGrant{Path: d.By.Path, Subject: d.By.Subject, Deny: d.By.Deny, Delegate: d.By.Delegate,
			Until: core.Time(d.By.Until)}
		out.Reason = "denied on " + g.Path
		if !g.Deny {
			g.Role = new(string(d.By.Role))
			out.Reason = *g.Role + " of " + g.Path
		}
		out.Grant = &g
		return nil
	})
	return api.OK(out), err
}

func listGrants(rc *api.Request) (api.Response, error) {
	p, err := pathOf(rc)
	if err != nil {
		return api.Response{}, err
	}
	out := []treeGrant{}
	err = rc.View(func(tx *ledger.Tx) error {
		seen := sightOf(tx, rc)
		for _, g := range govern.TreeGrants(tx) {
			if governance.Below(g.Path, p) && seen.may(g.Path, "read") {
				out = append(out, grantOf(g))
			}
		}
		return nil
	})
	return api.OK(out), err
}

func saveGrant(rc *api.Request) (api.Response, error) {
	in, err := api.Body[treeGrantBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	p := rules.SaveTreeGrant{Path: in.Path, Subject: in.Subject, Role: in.Role, Deny: in.Deny, Delegate: in.Delegate}
	if in.Until != "" {
		at, err := time.Parse(time.RFC3339Nano, in.Until)
		if err != nil {
			return api.Response{}, api.Invalid("until: want a date and time")
		}
		p.Until = core.TimeOf(at)
	}
	g, err := api.Do[govern.TreeGrant](rc, "resource_tree.grant", "", p)
	return api.OK(grantOf(g)), err
}

func dropGrant(rc *api.Request) (api.Response, error) {
	p, err := pathOf(rc)
	if err != nil {
		return api.Response{}, err
	}
	g, err := api.Do[govern.TreeGrant](rc, "resource_tree.revoke", "",
		rules.DropTreeGrant{Path: p, Subject: rc.Query("subject")})
	return api.OK(grantOf(g)), err
}

func commitTree(rc *api.Request) (api.Response, error) {
	c, err := api.Do[rules.TreeCommit](rc, rules.KindTreeCommit, "", rules.CommitTree{})
	return api.OK(treeCommitOf(c)), err
}
