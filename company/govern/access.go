package govern

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash/fnv"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// A TreeGrant is one row of the access policy of the resource tree.
type TreeGrant struct {
	Path     string    `cbor:"1,keyasint"`
	Subject  string    `cbor:"2,keyasint"`
	Role     string    `cbor:"3,keyasint,omitempty"`
	Deny     bool      `cbor:"4,keyasint,omitempty"`
	Delegate bool      `cbor:"5,keyasint,omitempty"`
	Until    core.Time `cbor:"6,keyasint,omitempty"` // 0: never
	By       string    `cbor:"7,keyasint"`           // subject
	At       core.Time `cbor:"8,keyasint"`
}

// Grant returns what g says.
func (g TreeGrant) Grant() governance.Grant {
	return governance.Grant{Path: g.Path, Subject: g.Subject, Role: governance.TreeRole(g.Role), Deny: g.Deny,
		Delegate: g.Delegate, Until: int64(g.Until)}
}

// Rows of the mesh, and one of each company that has a policy. They say where the gate has to look:
//
//	tree-grant/<hash>               the grants, by path and subject
//	tree-policy/outside             how many grants are on no company
//	tree-policies/company           how many are on the company, or below it
var (
	treeGrants      = ledger.NewMeshTable[string, TreeGrant]("tree-grant")
	outsidePolicy   = ledger.NewMeshTable[string, kept]("tree-policy")
	companyPolicies = ledger.NewTable[string, kept]("tree-policies")
)

const (
	outsideCompanies = "outside"
	companiesPath    = "/companies/"
)

// GrantID names the grant of a subject on a path.
func GrantID(p, subject string) string {
	h := sha256.Sum256([]byte(p + "\x00" + subject))
	return hex.EncodeToString(h[:16])
}

// TreeGrantOf returns the grant of a subject on a path.
func TreeGrantOf(tx *ledger.Tx, p, subject string) (TreeGrant, bool) {
	return treeGrants.Get(tx, GrantID(p, subject))
}

// TreeGrants returns all grants, by path and subject.
func TreeGrants(tx *ledger.Tx) (out []TreeGrant) {
	for _, g := range treeGrants.All(tx) {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b TreeGrant) int {
		return strings.Compare(a.Path+"\x00"+a.Subject, b.Path+"\x00"+b.Subject)
	})
	return out
}

// PutTreeGrant stores a grant in place of the one of its subject on its path. From the first one on the gate asks the
// policy.
func PutTreeGrant(tx *ledger.Tx, g TreeGrant) error {
	s, err := InForce(tx)
	if err != nil {
		return errUnreadable(err)
	}
	if !s.Policies {
		for _, there := range TreeGrants(tx) { // those that were made before the gate asked
			countPolicy(tx, there.Path, 1)
		}
	}
	if bit := policyBit(g.Path); !s.Policies || s.PolicyOf != 0 && s.PolicyOf&bit != bit {
		s.Policies, s.PolicyOf = true, policyBits(tx)|bit
		constitutions.Put(tx, now, s)
	}
	if _, there := TreeGrantOf(tx, g.Path, g.Subject); !there {
		countPolicy(tx, g.Path, 1)
	}
	treeGrants.Put(tx, GrantID(g.Path, g.Subject), g)
	return nil
}

// DropTreeGrant deletes a grant.
func DropTreeGrant(tx *ledger.Tx, g TreeGrant) {
	treeGrants.Delete(tx, GrantID(g.Path, g.Subject))
	s, err := InForce(tx)
	if err != nil || !s.Policies {
		return
	}
	countPolicy(tx, g.Path, -1)
	if bits := policyBits(tx); bits != s.PolicyOf {
		s.Policies, s.PolicyOf = bits != 0, bits
		constitutions.Put(tx, now, s)
	}
}

// everyCompany are the bits of a grant on no company.
const everyCompany = math.MaxUint64

// policyBit returns the bits of [Constitution.PolicyOf] for a grant: one of 64 for that of a company, by its hash.
func policyBit(p string) uint64 {
	id, below := strings.CutPrefix(p, companiesPath)
	if !below {
		return everyCompany
	}
	id, _, _ = strings.Cut(id, "/")
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return 1 << (h.Sum64() % 64)
}

func policyBits(tx *ledger.Tx) (bits uint64) {
	for _, g := range treeGrants.All(tx) {
		bits |= policyBit(g.Path)
	}
	return bits
}

// countPolicy counts a grant where the gate looks for it.
func countPolicy(tx *ledger.Tx, p string, by int64) {
	id, below := strings.CutPrefix(p, companiesPath)
	id, _, _ = strings.Cut(id, "/")
	of := ledger.CompanyID(id)
	if below && !tx.Has(entity.CompanyTable.Key(of, of)) {
		return // it is gone, with its count
	}
	var n kept
	if below {
		n, _ = companyPolicies.Get(tx, of, ofCompany)
	} else {
		n, _ = outsidePolicy.Get(tx, outsideCompanies)
	}
	n.Count = uint64(max(int64(n.Count)+by, 0))
	switch {
	case below && n.Count > 0:
		companyPolicies.Put(tx, of, ofCompany, n)
	case below:
		companyPolicies.Delete(tx, of, ofCompany)
	case n.Count > 0:
		outsidePolicy.Put(tx, outsideCompanies, n)
	default:
		outsidePolicy.Delete(tx, outsideCompanies)
	}
}

// policed reports whether the policy of the resource tree can say something about acts in a company. For nearly all
// companies without a grant the constitution alone says that it can not.
func policed(tx *ledger.Tx, s Constitution, of ledger.CompanyID) bool {
	if of == "" {
		return s.Policies && (s.PolicyOf == 0 || s.PolicyOf == everyCompany) &&
			outsidePolicy.Look(tx, outsideCompanies) != nil
	}
	return s.Policies && (s.PolicyOf == 0 || s.PolicyOf&policyBit(companiesPath+string(of)) != 0) &&
		(companyPolicies.Look(tx, of, ofCompany) != nil || outsidePolicy.Look(tx, outsideCompanies) != nil)
}

// targetOf returns the path that a command is about.
func targetOf(k company.Kind, cmd *ledger.Command, of ledger.CompanyID) string {
	target := ""
	if k.Target != nil {
		target = k.Target(cmd)
	}
	if target != "" && target[0] != '/' {
		target = companiesPath + string(of) + "/" + target
	}
	if governance.CheckPath(target) != nil {
		return ""
	}
	return target
}

// An Access is what the policy of the resource tree was asked about an act, with the grants that it has for it.
type Access struct {
	Path     string             `cbor:"1,keyasint"`
	Action   string             `cbor:"2,keyasint"` // see [governance.Needed]
	Subjects []string           `cbor:"3,keyasint"` // names of who acts
	Grants   []governance.Grant `cbor:"4,keyasint"`
	At       int64              `cbor:"5,keyasint"`
	// Also are other paths that the act needs the same right on.
	Also []string `cbor:"6,keyasint,omitempty"`
}

// accessOf returns what the policy is asked about an act, nil where no grant concerns it. It is about agents, and where
// the act is about a node it is about people too: those whom a grant there names. What is said of all, or of a company,
// is about agents, so that who closes something to all can still mend it.
func accessOf(tx *ledger.Tx, s Constitution, act governance.Act, class governance.Class, when moment) *Access {
	if !policed(tx, s, act.Company) || act.Agent == "" {
		return nil
	}
	q := &Access{Path: act.Target, Action: governance.Needed(class), At: int64(when.at)}
	switch {
	case when.person && governance.Below(act.Target, core.PeersPath) &&
		!strings.HasPrefix(act.Action, "resource_tree."):
		q.Subjects = []string{aPerson + act.Agent}
	case !when.person && act.Company != "" && entity.AgentTable.Look(tx, act.Company, act.Agent) != nil:
		q.Subjects, q.Also = []string{"agent:" + act.Agent, "company:" + string(act.Company), "*"}, alsoAt(act)
	default:
		return nil
	}
	if governance.CheckPath(q.Path) != nil {
		q.Path = companiesPath + string(act.Company)
	}
	if when.at == 0 {
		q.At = math.MaxInt64
	}
	var seen []string
	for _, at := range append([]string{q.Path}, q.Also...) {
		for ; !slices.Contains(seen, at); at = path.Dir(at) {
			seen = append(seen, at)
			for _, subject := range q.Subjects {
				// A node without a lease may not know that a grant was revoked: none helps there.
				if g := treeGrants.Look(tx, GrantID(at, subject)); g != nil && (g.Deny || !when.adrift) {
					q.Grants = append(q.Grants, g.Grant())
				}
			}
		}
	}
	if len(q.Grants) == 0 {
		return nil
	}
	return q
}

// aPerson begins the name that a person has in grants.
const aPerson = "user:"

// AccessPolicy is the name under which the policy speaks.
const AccessPolicy = "ACCESS-POLICY"

// says returns why the policy denies the act, "" where it does not.
func (q *Access) says() string {
	for _, at := range append([]string{q.Path}, q.Also...) {
		a := governance.Permits(q.Grants, q.Subjects, at, q.Action, q.At)
		if a.By == nil || a.Allowed {
			continue
		}
		who, said := "the agent", " for "+a.By.Subject+" it is denied"
		if strings.HasPrefix(q.Subjects[0], aPerson) {
			who = q.Subjects[0]
		}
		if !a.By.Deny {
			said = " " + a.By.Subject + " is " + string(a.By.Role)
		}
		return who + " may not " + q.Action + " " + at + ": on " + a.By.Path + said
	}
	return ""
}

// hear returns the decision with what the policy says. Where no grant is for who acts it says nothing.
func (q *Access) hear(d governance.Decision) governance.Decision {
	why := q.says()
	if why == "" {
		return d.Heard(governance.Accessing, []string{AccessPolicy})
	}
	return d.Heard(governance.Accessing, []string{AccessPolicy}, governance.Voice{Rule: AccessPolicy,
		Title: "Access policy of the resource tree", Severity: governance.Critical, Verdict: governance.Deny, Reason: why})
}

// RunsAt returns what says why runs of an agent may not be on a node, "" where they may. It is asked when a run is
// placed.
func RunsAt(tx *ledger.Tx, of ledger.CompanyID, agent string, at core.Time) func(node string) string {
	return atNodes(tx, governance.Act{Company: of, Agent: agent}, governance.Work, moment{at: at})
}

// PersonAt returns what says why a person may have no process on a node, "" where they may. It is asked when a declared
// process is placed, and before each start that nobody has just asked for.
func PersonAt(tx *ledger.Tx, person string, at core.Time) func(node string) string {
	return atNodes(tx, governance.Act{Agent: person}, governance.Spawn, moment{at: at, person: true})
}

// atNodes returns what says why the policy denies an act at a node, "" where it does not.
func atNodes(tx *ledger.Tx, act governance.Act, class governance.Class, when moment) func(node string) string {
	s, err := InForce(tx)
	if err != nil {
		return func(string) string { return "the constitution can not be read" }
	}
	if !policed(tx, s, act.Company) {
		return func(string) string { return "" }
	}
	return func(node string) string {
		act.Target = core.NodePath(node)
		q := accessOf(tx, s, act, class, when)
		if q == nil {
			return ""
		}
		return q.says()
	}
}

// Says returns what the access policy says about an act: whether it was asked, and why it denies the act, "" where it
// does not.
func (b *Beside) Says() (asked bool, why string) {
	if b == nil || b.Access == nil {
		return false, ""
	}
	return true, b.Access.says()
}

// DeniedByAccess reports whether a refusal of an act is that of the access policy.
func DeniedByAccess(err error) bool {
	no, ok := errors.AsType[*ledger.Refusal](err)
	var said struct {
		Branch governance.Branch `json:"branch"`
	}
	return ok && json.Unmarshal(no.Detail, &said) == nil && said.Branch == governance.Accessing
}
