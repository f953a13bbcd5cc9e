package people

import (
	"maps"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A ResourceMembership is which resources of a company a user has left or starred. The user
// has joined every resource that is not listed. It affects what the board shows, not rights.
type ResourceMembership struct {
	Projects  map[string]string `cbor:"1,keyasint,omitempty" json:"projectMemberships"` // left, or joined again
	Agents    map[string]string `cbor:"2,keyasint,omitempty" json:"agentMemberships"`
	Documents map[string]string `cbor:"3,keyasint,omitempty" json:"documentMemberships"`
	Starred   []string          `cbor:"4,keyasint,omitempty" json:"starredIds"`
	UpdatedAt core.Time         `cbor:"5,keyasint" json:"updatedAt"`
}

// Clone returns a copy that shares nothing with m.
func (m ResourceMembership) Clone() ResourceMembership {
	m.Projects, m.Agents, m.Documents, m.Starred = maps.Clone(m.Projects), maps.Clone(m.Agents), maps.Clone(m.Documents),
		slices.Clone(m.Starred)
	return m
}

// JoinResource is the payload of resource.join. It changes the actor's own membership.
type JoinResource struct {
	Kind    string `cbor:"1,keyasint"` // project, agent or document
	ID      string `cbor:"2,keyasint"`
	State   string `cbor:"3,keyasint,omitempty"` // joined, left, or "" to keep the state
	Starred *bool  `cbor:"4,keyasint,omitempty"`
}

// MaxMemberships bounds the resources of each kind that are stored for one user.
const MaxMemberships = 2_000

// resourceMemberships are kept by user.
var resourceMemberships = ledger.NewTable[string, ResourceMembership]("resource-membership")

const KindResourceJoin = "resource.join"

var membershipKinds = []company.Kind{
	{Name: KindResourceJoin, From: company.FromBoard, Weight: company.Weights.Marks, Do: ledger.Typed(joinResource)},
}

// ResourceMembershipOf returns which resources of a company a user has left or starred.
func ResourceMembershipOf(tx *ledger.Tx, company ledger.CompanyID, user string) ResourceMembership {
	m, _ := resourceMemberships.Get(tx, company, core.HashedUser(user))
	for _, of := range []*map[string]string{&m.Projects, &m.Agents, &m.Documents} {
		if *of == nil {
			*of = map[string]string{}
		}
	}
	if m.Starred == nil {
		m.Starred = []string{}
	}
	return m
}

func joinResource(c *ledger.Context, p JoinResource) (any, error) {
	companyID, user := c.Cmd.Company, c.Cmd.Actor.ID
	m := ResourceMembershipOf(c.Tx, companyID, user).Clone()
	var of map[string]string
	there := false
	switch p.Kind {
	case "project":
		of, there = m.Projects, entity.ProjectExists(c.Tx, companyID, p.ID)
	case "agent":
		of, there = m.Agents, entity.AgentExists(c.Tx, companyID, p.ID)
	case "document":
		of, there = m.Documents, core.IsID(p.ID) // documents are stored by issue, so only the form of the ID is checked
	}
	switch {
	case !there:
		return nil, ledger.Refuse(ledger.NotFound, nil, "Resource not found")
	case p.State != "" && p.State != "joined" && p.State != "left":
		return nil, ledger.Refuse(ledger.Invalid, nil, "state is joined or left")
	}
	if p.State != "" {
		of[p.ID] = p.State
	}
	if p.Starred != nil {
		m.Starred = slices.DeleteFunc(m.Starred, func(id string) bool { return id == p.ID })
		if *p.Starred {
			m.Starred = append(m.Starred, p.ID)
		}
	}
	if max(len(of), len(m.Starred)) > MaxMemberships {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "A user can list at most %d resources", MaxMemberships)
	}
	m.UpdatedAt = core.TimeOf(c.Now)
	resourceMemberships.Put(c.Tx, companyID, core.HashedUser(user), m)
	o := core.Object{}.Str("kind", p.Kind).Str("resourceId", p.ID).Null("state", p.State)
	if p.Starred != nil {
		o = o.Bool("starred", *p.Starred)
	}
	c.Record(ledger.Change{Action: "resource_membership.updated", EntityType: "user", EntityID: user, Details: o.Close()})
	return m, nil
}
