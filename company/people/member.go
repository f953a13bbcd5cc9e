// Package people is who may do what: users and their sessions, members and roles,
// invites, keys of the board and of agents, and the org chart. [Authorize] checks every
// command before its handler runs.
package people

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Role is the role of a member in a company. Persisted: do not rename.
type Role string

const (
	RoleOwner    Role = "owner"    // may do everything
	RoleAdmin    Role = "admin"    // hires, invites and admits people
	RoleOperator Role = "operator" // creates and assigns work
	RoleViewer   Role = "viewer"   // only reads
)

// MemberRoles lists all roles.
var MemberRoles = []Role{RoleOwner, RoleAdmin, RoleOperator, RoleViewer}

// A MemberStatus is the state of a membership. Persisted: do not rename.
type MemberStatus string

const (
	MemberPending   MemberStatus = "pending"
	MemberActive    MemberStatus = "active"
	MemberSuspended MemberStatus = "suspended"
	MemberArchived  MemberStatus = "archived" // no longer listed
)

// MemberPermissions lists all permissions that can be granted. Those that no rule checks are
// only stored and shown.
var MemberPermissions = []entity.Permission{entity.CreateAgents, entity.ConfigureAgents, "agents:suggest-changes",
	entity.CreateSkills, "skills:suggest-changes", entity.ManageSpaces,
	"tools:admin", "tools:manage_connections", "tools:manage_profiles", "tools:view_audit", "audit:view_agent_actions",
	"tools:use", "tools:manage_runtime",
	"inbox:manage", entity.InviteUsers, entity.ManageUsers, entity.AssignTasks, "tasks:assign_scope",
	"tasks:manage_active_checkouts", "pipelines:write", entity.ApproveJoins}

// roleGrants are the permissions that each role includes.
var roleGrants = map[Role][]entity.Permission{
	RoleOwner: {entity.ConfigureAgents, entity.CreateAgents, entity.ManageSpaces, entity.ApproveJoins, entity.CreateSkills,
		entity.AssignTasks, "tools:admin", "tools:manage_connections",
		"tools:manage_runtime", "tools:use", entity.InviteUsers, entity.ManageUsers},
	RoleAdmin: {entity.ConfigureAgents, entity.CreateAgents, entity.ManageSpaces, entity.ApproveJoins,
		entity.CreateSkills, entity.AssignTasks, "tools:use", entity.InviteUsers},
	RoleOperator: {entity.AssignTasks},
	RoleViewer:   {},
}

// GrantsOf returns the permissions that a role includes, in alphabetical order.
func GrantsOf(r Role) []entity.Permission { return slices.Sorted(slices.Values(roleGrants[r])) }

// A MemberGrant grants a permission to a member. A grant with a scope is stored and shown,
// but allows nothing.
type MemberGrant struct {
	Permission entity.Permission `cbor:"1,keyasint" json:"permissionKey"`
	Scope      json.RawMessage   `cbor:"2,keyasint,omitempty" json:"scope"`
	By         core.NullText     `cbor:"3,keyasint,omitempty" json:"-"`
	At         core.Time         `cbor:"4,keyasint,omitempty" json:"-"`
}

// A Member is a person's membership of a company. Its ID is derived from both.
type Member struct {
	ID        string           `cbor:"1,keyasint"`
	Company   ledger.CompanyID `cbor:"2,keyasint"`
	User      string           `cbor:"3,keyasint"`
	Status    MemberStatus     `cbor:"4,keyasint"`
	Role      Role             `cbor:"5,keyasint,omitempty"` // "": only the grants
	Grants    []MemberGrant    `cbor:"6,keyasint,omitempty"` // in alphabetical order
	CreatedAt core.Time        `cbor:"7,keyasint"`
	UpdatedAt core.Time        `cbor:"8,keyasint"`
}

// Clone returns a copy that shares no memory with m.
func (m Member) Clone() Member {
	m.Grants = slices.Clone(m.Grants)
	for i := range m.Grants {
		m.Grants[i].Scope = slices.Clone(m.Grants[i].Scope)
	}
	return m
}

var Members = ledger.NewTable[string, Member]("member")

const (
	// MaxMembers bounds the members of a company: lists show all of them.
	MaxMembers = 1_000
	// maxScope bounds the scope of one grant, in bytes.
	maxScope = 2 << 10
)

func MemberID(company ledger.CompanyID, user string) string {
	return core.DerivedID("member", string(company), user)
}

// GrantID returns the ID under which a grant is shown.
func (m Member) GrantID(p entity.Permission) string { return core.DerivedID("grant", m.ID, string(p)) }

// May reports whether the membership allows p.
func (m Member) May(p entity.Permission) bool {
	if m.Status != MemberActive {
		return false
	}
	return m.Role == RoleOwner || slices.ContainsFunc(m.Grants, func(g MemberGrant) bool {
		return g.Permission == p &&
			len(g.Scope) == 0
	})
}

// WithRole returns m with a role and the grants that it includes.
func (m Member) WithRole(r Role, by string, now core.Time) Member {
	m.Role, m.Grants = r, nil
	for _, p := range GrantsOf(r) {
		m.Grants = append(m.Grants, MemberGrant{p, nil, core.NullText(by), now})
	}
	return m
}

// founder is the membership of the user who created a company.
func founder(company ledger.CompanyID, user string, now core.Time) Member {
	return Member{ID: MemberID(company, user), Company: company, User: user, Status: MemberActive, CreatedAt: now,
		UpdatedAt: now}.WithRole(RoleOwner, user, now)
}

// MembershipOf returns a user's membership of a company, whatever its status.
func MembershipOf(tx *ledger.Tx, of ledger.CompanyID, user string) (Member, bool) {
	m, ok := Members.Get(tx, of, MemberID(of, user))
	if !ok && user == LocalBoard {
		if row, there := entity.CompanyOf(tx, of); there && !anyMember(tx, of) {
			return founder(of, user, row.CreatedAt), true
		}
	}
	return m, ok
}

func anyMember(tx *ledger.Tx, company ledger.CompanyID) bool {
	for range Members.All(tx, company) {
		return true
	}
	return false
}

// MembersOf returns the members of a company, newest first, without archived ones. A company
// that was made before there were members has one: the local board.
func MembersOf(tx *ledger.Tx, company ledger.CompanyID) []Member {
	out, any := []Member{}, false
	for _, m := range Members.All(tx, company) {
		if any = true; m.Status != MemberArchived {
			out = append(out, m)
		}
	}
	if !any {
		if m, ok := MembershipOf(tx, company, LocalBoard); ok {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b Member) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// MembershipsOf returns the active memberships of a user, oldest company first.
func MembershipsOf(tx *ledger.Tx, user string) []Member {
	out := []Member{}
	for _, row := range entity.Companies(tx) {
		if m, ok := MembershipOf(tx, row.ID, user); ok && m.Status == MemberActive {
			out = append(out, m)
		}
	}
	return out
}

// MayEnter reports whether a user may see a company.
func MayEnter(tx *ledger.Tx, company ledger.CompanyID, user string) bool {
	if IsAdmin(tx, user) {
		return true
	}
	m, ok := MembershipOf(tx, company, user)
	return ok && m.Status == MemberActive
}

// MayManage reports whether a user has a permission in a company.
func MayManage(tx *ledger.Tx, company ledger.CompanyID, user string, p entity.Permission) bool {
	if IsAdmin(tx, user) {
		return true
	}
	m, ok := MembershipOf(tx, company, user)
	return ok && m.May(p)
}

// owners counts the active owners of a company, not counting one member.
func owners(tx *ledger.Tx, company ledger.CompanyID, beside string) (n int) {
	for _, m := range MembersOf(tx, company) {
		if m.Role == RoleOwner && m.Status == MemberActive && m.ID != beside {
			n++
		}
	}
	return n
}

// Removal reports whether a user may archive a member, and if not, why.
func Removal(tx *ledger.Tx, m Member, by string) (can bool, reason string) {
	switch {
	case m.User == by:
		return false, "You cannot remove yourself."
	case m.Role == RoleOwner && m.Status == MemberActive && owners(tx, m.Company, m.ID) == 0:
		return false, "The company's last owner cannot be removed."
	}
	return true, ""
}

// MayWrite reports whether a user may change anything in a company.
func MayWrite(tx *ledger.Tx, company ledger.CompanyID, user string) bool {
	if IsAdmin(tx, user) {
		return true
	}
	m, ok := MembershipOf(tx, company, user)
	return ok && m.Status == MemberActive && m.Role != RoleViewer
}

// OpenIssuesOfUser returns the IDs of up to most open issues that are assigned to a user. It
// reads all open issues of the company.
func OpenIssuesOfUser(tx *ledger.Tx, of ledger.CompanyID, user string, most int) []string {
	var out []string
	for id, i := range entity.IssueTable.All(tx, of) {
		if i.AssigneeUser == user && !i.Status.Terminal() {
			if out = append(out, id); len(out) == most {
				break
			}
		}
	}
	return out
}

// Rules are the commands and hooks that this package adds to the kernel.
var Rules = company.Rules{
	Kinds: slices.Concat(keyKinds, membershipKinds, memberKinds, inviteKinds, boardKeyKinds, userKinds, accessKinds),
	Forget: map[string]func(tx *ledger.Tx, id string, row []byte){
		"agent-key": func(tx *ledger.Tx, id string, row []byte) {
			tx.Delete(KeyCompanyKey(id))
			tx.Delete(TokenKey(core.DecodeRow[AgentKey](row).Hash))
		},
		"invite": func(tx *ledger.Tx, id string, row []byte) {
			tx.Delete(InviteCompanyKey(id))
			tx.Delete(InviteTokenKey(core.DecodeRow[Invite](row).Hash))
		},
		"join-request": func(tx *ledger.Tx, id string, _ []byte) { tx.Delete(JoinCompanyKey(id)) },
	},
	CompanyStored: func(c *ledger.Context, was, row entity.Company, _ entity.SaveCompany) error {
		if was.ID == "" && core.IsBoard(c) {
			m := founder(row.ID, c.Cmd.Actor.ID, row.CreatedAt)
			Members.Put(c.Tx, row.ID, m.ID, m)
		}
		return nil
	},
	AgentEnded:   revokeKeysOf,
	AgentDeleted: func(c *ledger.Context, a entity.Agent) { dropKeysOf(c.Tx, a) },
	People:       membership{},
	Sealed: func(tx *ledger.Tx, company ledger.CompanyID) (out []conceal.SealedConfig) {
		if company == "" {
			return nil
		}
		for id, j := range JoinRequests.All(tx, company) {
			o := conceal.SealedConfig{Type: "join_request", ID: id, Owner: joinedAgent(id)}
			o.Collect("adapterConfig", j.Defaults)
			out = append(out, o)
		}
		return out
	},
	Reseal: map[string]func(c *ledger.Context, p conceal.Reseal) error{
		"join_request": func(c *ledger.Context, p conceal.Reseal) error {
			j, ok := JoinRequests.Get(c.Tx, c.Cmd.Company, p.ID)
			if !ok {
				return errNoJoin()
			}
			j.Defaults = p.Config(j.Defaults)
			JoinRequests.Put(c.Tx, c.Cmd.Company, p.ID, j)
			return nil
		},
	},
}

// membership implements the hook by which the kernel asks about people.
type membership struct{}

func (membership) Belongs(tx *ledger.Tx, company ledger.CompanyID, user string) bool {
	m, ok := MembershipOf(tx, company, user)
	return Speaks(tx, user) && (ok && m.Status == MemberActive || IsAdmin(tx, user))
}

func (membership) Permitted(tx *ledger.Tx, company ledger.CompanyID, user string, needs entity.Permission) bool {
	m, ok := MembershipOf(tx, company, user)
	return IsAdmin(tx, user) || ok && m.May(needs)
}
