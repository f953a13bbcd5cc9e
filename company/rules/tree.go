package rules

import (
	"cmp"
	"encoding/hex"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// The resource tree is a view of the state; only grants and the last commitment to its root are rows of their own.

// A TreeCommit is a root that was committed on the chain. Every node calculates it when it applies the command, so a
// node whose state differs stores another row, and is found as every difference is.
type TreeCommit struct {
	Root     string    `cbor:"1,keyasint"` // hex
	Vertices int64     `cbor:"2,keyasint"`
	Height   uint64    `cbor:"3,keyasint"` // of the entry
	At       core.Time `cbor:"4,keyasint"`
}

// KindTreeCommit is the kind by which the leader commits the root.
const KindTreeCommit = "resource_tree.commit"

// CommitTree is the payload of resource_tree.commit; SaveTreeGrant of resource_tree.grant, which replaces the grant of
// the same subject on the same path; DropTreeGrant of resource_tree.revoke.
type (
	CommitTree    struct{}
	SaveTreeGrant struct {
		Path     string    `cbor:"1,keyasint"`
		Subject  string    `cbor:"2,keyasint"`
		Role     string    `cbor:"3,keyasint,omitempty"`
		Deny     bool      `cbor:"4,keyasint,omitempty"`
		Delegate bool      `cbor:"5,keyasint,omitempty"`
		Until    core.Time `cbor:"6,keyasint,omitempty"`
	}
	DropTreeGrant struct {
		Path    string `cbor:"1,keyasint"`
		Subject string `cbor:"2,keyasint"`
	}
)

var treeCommits = ledger.NewMeshTable[string, TreeCommit]("tree-root")

const (
	// MaxTreeGrants bounds the grants of a mesh: a decision looks at all of them.
	MaxTreeGrants = 2_000
	// theTree is the ID of the one row about the root.
	theTree = "root"
	// maxSubject bounds a subject, in bytes.
	maxSubject = 256
	// scoredRuns is how many of an agent's last runs its score is blended from, and scoreWeight the thousandths that each
	// new one counts: an older run would move the score by less than 1 in 100.
	scoredRuns  = 16
	scoreWeight = 250
	// briskRun is how long a run takes that counts half in velocity, in ms.
	briskRun = 5 * 60 * 1000
)

var treeRules = company.Rules{Kinds: []company.Kind{
	{Name: "resource_tree.grant", From: company.FromBoard | company.FromAgent, Traits: company.Personal | company.NoWork,
		Weight: company.Weights.Empowering, Target: treeTarget, Do: ledger.Typed(grantTree)},
	{Name: "resource_tree.revoke", From: company.FromBoard | company.FromAgent, Traits: company.Personal | company.NoWork,
		Weight: company.Weights.SetUp, Target: treeTarget, Do: ledger.Typed(revokeTree)},
	{Name: KindTreeCommit, From: company.FromRoster, Traits: company.NoWork, Weight: company.Weights.Upkeep,
		Do: ledger.Typed(commitTree)},
}}

func treeTarget(cmd *ledger.Command) string {
	var p struct {
		Path string `cbor:"1,keyasint"`
	}
	_ = ledger.Unmarshal(cmd.Payload, &p) // the handler refuses what can not be read
	return p.Path
}

// named adds the vertices of paths that nothing but a grant names: hosts, and models that no upstream lists.
func named(tx *ledger.Tx, list []governance.Vertex) []governance.Vertex {
	there := make(map[string]bool, len(list))
	for _, v := range list {
		there[v.Path] = true
	}
	for _, g := range govern.TreeGrants(tx) {
		if !govern.Boundless(g.Path) {
			continue
		}
		var missing []string
		at := g.Path
		for ; at != "/" && !there[at] && govern.Boundless(at); at = path.Dir(at) {
			missing = append(missing, at)
		}
		if !there[at] {
			continue // the company is gone
		}
		for _, p := range missing {
			there[p] = true
			list = append(list, governance.Vertex{Path: p, Kind: governance.Custom, Score: governance.Fresh,
				Facts: []governance.Fact{{Key: "type", Value: "named by a grant"}}})
		}
	}
	return list
}

// Tree returns the resource tree. It lists names of secrets, and nothing else of them.
func Tree(tx *ledger.Tx) (governance.Tree, error) {
	return governance.Plant(named(tx, vertices(tx)))
}

func vertices(tx *ledger.Tx) (out []governance.Vertex) {
	add := func(kind governance.ResourceKind, facts map[string]string, parts ...string) {
		v := governance.Vertex{Path: strings.Join(parts, "/"), Kind: kind, Score: governance.Fresh}
		for k, value := range facts {
			if value != "" {
				v.Facts = append(v.Facts, governance.Fact{Key: k, Value: value})
			}
		}
		slices.SortFunc(v.Facts, func(a, b governance.Fact) int { return strings.Compare(a.Key, b.Key) })
		out = append(out, v)
	}
	for _, p := range governance.Namespaces {
		add(governance.Namespace, nil, p)
	}
	for _, class := range []string{"dev", "staging", "prod"} {
		add(governance.Environment, map[string]string{"class": class}, "/environments", class)
	}
	categories := map[string]bool{}
	for _, t := range skill.Catalogue() {
		at := t.Namespace()
		if !categories[at] {
			categories[at] = true
			add(governance.Namespace, nil, at)
		}
		add(governance.Tool, map[string]string{"action": t.GateAction}, at, t.Name)
	}
	for _, n := range ledger.Roster(tx) {
		if n.Member() {
			add(governance.Device, map[string]string{"name": n.Name, "role": n.Role, "labels": strings.Join(n.Labels, ",")},
				core.PeersPath, string(n.ID))
		}
	}
	models := func(at string, list []money.ModelProvider) {
		for _, p := range list {
			of := at + "/models/" + govern.PathPart(p.Name)
			add(governance.Custom, map[string]string{"type": "model provider", "name": p.Name, "kind": string(p.Kind)}, of)
			seen := map[string]bool{}
			for _, m := range p.Models {
				if name := cmp.Or(m.As, m.Name); !seen[name] && !strings.HasSuffix(name, "*") { // a pattern is no model
					seen[name] = true
					add(governance.Custom, map[string]string{"type": "model", "name": name}, of, govern.PathPart(name))
				}
			}
		}
	}
	models("/network", money.ModelProvidersOf(tx, ""))
	for _, c := range entity.Companies(tx) {
		at := "/companies/" + string(c.ID)
		add(governance.Namespace, map[string]string{"type": "company", "name": c.Name, "prefix": c.IssuePrefix}, at)
		for _, part := range []string{"agents", "environments", "hosts", "models", "secrets", "tools"} {
			add(governance.Namespace, nil, at, part)
		}
		for _, a := range entity.AgentsOf(tx, c.ID, false) {
			add(governance.AgentVertex, map[string]string{"name": a.Name, "role": a.Role, "adapter": a.AdapterType,
				"reports_to": string(a.ReportsTo)}, at, "agents", a.ID)
		}
		for _, e := range place.NamedEnvironments.All(tx, c.ID) {
			add(governance.Environment, map[string]string{"name": e.Name, "driver": e.Driver}, at, "environments", e.ID)
		}
		for _, s := range secret.SecretsOf(tx, c.ID, "company", "") {
			add(governance.Custom, map[string]string{"type": "secret", "name": s.Name}, at, "secrets", s.ID)
		}
		for _, t := range skill.ToolsOf(tx, c.ID) {
			facts := map[string]string{}
			if v, ok := t.Latest(); ok {
				facts["version"], facts["module"] = strconv.FormatUint(uint64(v.Version), 10), v.Hash
			}
			add(governance.Tool, facts, at, "tools", url.PathEscape(t.Name))
		}
		models(at, money.ModelProvidersOf(tx, c.ID))
		if len(out) > governance.MaxVertices {
			return out // refused as too large
		}
	}
	return out
}

// ScoreOf blends the outcomes of an agent's last runs, the oldest first. It is calculated and not stored: equal runs
// give equal scores.
func ScoreOf(tx *ledger.Tx, of ledger.CompanyID, agent string) governance.Score {
	var last []entity.Run
	for r := range entity.RunsOfAgent(tx, of, agent) {
		if !r.Status.Live() && r.StartedAt > 0 && r.Status != entity.RunInterrupted { // a lost node says nothing of the agent
			last = append(last, r)
		}
		if len(last) == scoredRuns {
			break
		}
	}
	s := governance.Fresh
	for _, r := range slices.Backward(last) {
		s = s.Blend(outcomeOf(tx, r), scoreWeight)
	}
	return s
}

// outcomeOf is what one run says about its agent.
func outcomeOf(tx *ledger.Tx, r entity.Run) (o governance.Score) {
	o = governance.Score{Trust: governance.Most, Difficulty: governance.Most / 2}
	i, bound := entity.IssueTable.Get(tx, r.Company, r.Context.IssueID)
	if bound {
		o.Difficulty = map[entity.Priority]governance.Level{"critical": 1000, "high": 750, "medium": 500,
			"low": 250}[i.Priority]
	}
	if r.Status == entity.RunSucceeded {
		o.Performance, o.Reliability = governance.Most, governance.Most
		took := max(int64(r.FinishedAt-r.StartedAt), 0)
		o.Velocity = governance.Level(1000 * briskRun / (briskRun + min(took, 1000*briskRun)))
		if bound && (i.Status == entity.IssueDone || i.Status == entity.IssueInReview) {
			o.Reward = governance.Most
		}
	}
	if r.ErrorCode == "budget_refused" || r.ErrorCode == "auth_required" {
		o.Trust = 0
	}
	return o
}

// LastTreeCommit returns the newest root on the chain.
func LastTreeCommit(tx *ledger.Tx) (TreeCommit, bool) { return treeCommits.Get(tx, theTree) }

// TreeSubjects returns the names that a caller has in grants.
func TreeSubjects(tx *ledger.Tx, actor ledger.Actor) []string {
	out := []string{actor.Type + ":" + actor.ID, "*"}
	if actor.Type == "agent" {
		return append(out, "company:"+string(core.OwnerOf(tx, actor.ID)))
	}
	for _, m := range people.MembershipsOf(tx, actor.ID) {
		if m.Status == people.MemberActive {
			out = append(out, "company:"+string(m.Company))
		}
	}
	return out
}

// TreePolicy returns what decides about a caller: the stored grants, and those that follow from who the caller is.
// An administrator owns everything, an owner or admin of a company administers it, its members use what is in it, its
// viewers and agents read it; everybody reads the kernel's namespaces.
func TreePolicy(tx *ledger.Tx, actor ledger.Actor) []governance.Grant {
	out := TreeImplied(tx, actor)
	for _, g := range govern.TreeGrants(tx) {
		out = append(out, g.Grant())
	}
	return out
}

// TreeImplied are the grants that follow from who the caller is. A stored denial does not take away the right to grant
// and revoke that they give: else who denies everybody could not mend it.
func TreeImplied(tx *ledger.Tx, actor ledger.Actor) (out []governance.Grant) {
	me := actor.Type + ":" + actor.ID
	implied := func(p string, role governance.TreeRole) {
		out = append(out, governance.Grant{Path: p, Subject: me, Role: role, Implied: true})
	}
	for _, p := range []string{"/apps", "/environments", "/kernel"} {
		implied(p, governance.TreeViewer)
	}
	switch actor.Type {
	case "agent":
		implied("/companies/"+string(core.OwnerOf(tx, actor.ID)), governance.TreeViewer)
	case "user":
		if people.IsAdmin(tx, actor.ID) {
			out = nil
			implied("/", governance.TreeOwner)
			break
		}
		for _, m := range people.MembershipsOf(tx, actor.ID) {
			role := governance.TreeOperator
			switch {
			case m.Status != people.MemberActive:
				continue
			case m.Role == people.RoleOwner || m.Role == people.RoleAdmin:
				role = governance.TreeAdmin
			case m.Role == people.RoleViewer:
				role = governance.TreeViewer
			}
			implied("/companies/"+string(m.Company), role)
		}
	}
	return out
}

// checkTreeGrant refuses a grant that is not one.
func checkTreeGrant(tx *ledger.Tx, p SaveTreeGrant, now core.Time) error {
	kind, id, _ := strings.Cut(p.Subject, ":")
	switch {
	case governance.CheckPath(p.Path) != nil:
		return ledger.Refuse(ledger.Invalid, nil, "%s", governance.CheckPath(p.Path))
	case len(p.Subject) > maxSubject || p.Subject != "*" &&
		(id == "" || !slices.Contains([]string{"agent", "user", "company"}, kind)):
		return ledger.Refuse(ledger.Invalid, nil, "subject: want agent:ID, user:ID, company:ID or *")
	case !p.Deny && !slices.Contains(governance.TreeRoles, governance.TreeRole(p.Role)):
		return ledger.Refuse(ledger.Invalid, nil, "role: want viewer, operator, admin or owner")
	case p.Deny && (p.Role != "" || p.Delegate):
		return ledger.Refuse(ledger.Invalid, nil, "deny: a denial has no role and can not be delegated")
	case p.Until != 0 && p.Until <= now:
		return ledger.Refuse(ledger.Invalid, nil, "until: want a time that is to come")
	}
	tree, err := Tree(tx)
	if err != nil {
		return ledger.Refuse(ledger.Unprocessable, nil, "%s", err)
	}
	at := p.Path
	for govern.Boundless(at) {
		at = path.Dir(at)
	}
	if tree.At(at, 0) == nil {
		return ledger.Refuse(ledger.NotFound, nil, "path: there is no %s in the resource tree", p.Path)
	}
	if room := governance.MaxVertices / 2; at != p.Path && tree.Len()+strings.Count(p.Path, "/") > room {
		return ledger.Refuse(ledger.Unprocessable, nil,
			"path: the resource tree has %d vertices; from %d on it takes no more hosts "+
				"and models, so that agents still fit", tree.Len(), room)
	}
	return nil
}

func grantTree(c *ledger.Context, p SaveTreeGrant) (any, error) {
	now := core.TimeOf(c.Now)
	if err := checkTreeGrant(c.Tx, p, now); err != nil {
		return nil, err
	}
	wanted := govern.TreeGrant{Path: p.Path, Subject: p.Subject, Role: p.Role, Deny: p.Deny, Delegate: p.Delegate,
		Until: p.Until}.Grant()
	me := c.Cmd.Actor.Type + ":" + c.Cmd.Actor.ID
	if !governance.MayGrant(TreePolicy(c.Tx, c.Cmd.Actor), TreeSubjects(c.Tx, c.Cmd.Actor), wanted, int64(now)) &&
		!governance.MayGrant(TreeImplied(c.Tx, c.Cmd.Actor), []string{me}, wanted, int64(now)) {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "path: you have no right to grant this on %s", p.Path)
	}
	n, id := len(govern.TreeGrants(c.Tx)), govern.GrantID(p.Path, p.Subject)
	if _, there := govern.TreeGrantOf(c.Tx, p.Path, p.Subject); !there && n >= MaxTreeGrants {
		return nil, ledger.Refuse(ledger.Conflict, nil, "The resource tree has %d grants, which is the most; revoke some", n)
	}
	g := govern.TreeGrant{Path: p.Path, Subject: p.Subject, Role: p.Role, Deny: p.Deny, Delegate: p.Delegate,
		Until: p.Until, By: me, At: now}
	if err := govern.PutTreeGrant(c.Tx, g); err != nil {
		return nil, err
	}
	c.Record(ledger.Change{Action: "resource_tree.granted", EntityType: "resource_tree", EntityID: id,
		Details: core.Object{}.Str("path", p.Path).Str("subject", p.Subject).Str("role", p.Role).
			Bool("deny", p.Deny).Close()})
	return g, nil
}

func revokeTree(c *ledger.Context, p DropTreeGrant) (any, error) {
	id := govern.GrantID(p.Path, p.Subject)
	g, ok := govern.TreeGrantOf(c.Tx, p.Path, p.Subject)
	me := c.Cmd.Actor.Type + ":" + c.Cmd.Actor.ID
	switch {
	case !ok:
		return nil, ledger.Refuse(ledger.NotFound, nil, "subject: %s has no grant on %s", p.Subject, p.Path)
	case g.By != me && !governance.Permits(TreePolicy(c.Tx, c.Cmd.Actor), TreeSubjects(c.Tx, c.Cmd.Actor),
		path.Dir(p.Path), "change", int64(core.TimeOf(c.Now))).Allowed &&
		!governance.Permits(TreeImplied(c.Tx, c.Cmd.Actor), []string{me}, p.Path, "change", int64(core.TimeOf(c.Now))).
			Allowed:
		return nil, ledger.Refuse(ledger.Forbidden, nil, "path: you have no right to revoke this on %s", p.Path)
	}
	govern.DropTreeGrant(c.Tx, g)
	c.Record(ledger.Change{Action: "resource_tree.revoked", EntityType: "resource_tree", EntityID: id,
		Details: core.Object{}.Str("path", p.Path).Str("subject", p.Subject).Close()})
	return g, nil
}

func commitTree(c *ledger.Context, _ CommitTree) (any, error) {
	tree, err := Tree(c.Tx)
	if err != nil {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "%s", err)
	}
	root := tree.Root()
	row := TreeCommit{hex.EncodeToString(root[:]), int64(tree.Len()), c.Height, core.TimeOf(c.Now)}
	treeCommits.Put(c.Tx, theTree, row)
	c.Record(ledger.Change{Action: "resource_tree.committed", EntityType: "resource_tree", EntityID: theTree,
		Details: core.Object{}.Str("root", row.Root).Int("vertices", row.Vertices).Close()})
	return row, nil
}
