package people

import (
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// ChangeMember is the payload of member.update. A nil field keeps the value. A new role sets
// the grants that it includes, unless Grants are given.
type ChangeMember struct {
	ID     string         `cbor:"1,keyasint"`
	Role   *Role          `cbor:"2,keyasint,omitempty"` // "" removes the role
	Status *MemberStatus  `cbor:"3,keyasint,omitempty"`
	Grants *[]MemberGrant `cbor:"4,keyasint,omitempty"`
}

// ArchiveMember is the payload of member.archive. The caller has to reassign the member's
// issues first.
type ArchiveMember struct {
	ID         string `cbor:"1,keyasint"`
	Reassigned int    `cbor:"2,keyasint,omitempty"` // number of issues, for the activity log
}

const (
	KindMemberUpdate  = "member.update"
	KindMemberArchive = "member.archive"
	KindMemberSet     = "member.set"
)

var memberKinds = []company.Kind{
	{Name: KindMemberUpdate, From: company.FromBoard, Needs: entity.ManageUsers, Traits: company.EndsKeys,
		Weight: company.Weights.Admitting, Do: ledger.Typed(updateMember)},
	{Name: KindMemberArchive, From: company.FromBoard, Needs: entity.ManageUsers, Traits: company.EndsKeys,
		Weight: company.Weights.Admitting, Do: ledger.Typed(archiveMember)},
	{Name: KindMemberSet, From: company.FromBoard, Traits: company.AdminsOnly | company.EndsKeys,
		Weight: company.Weights.Admitting, Do: ledger.Typed(setMember)},
}

func errNoMember() error { return ledger.Refuse(ledger.NotFound, nil, "Member not found") }

// settledMembers stores the row of a company's implicit member. Otherwise that member would
// disappear when another one is added.
func settledMembers(c *ledger.Context) {
	if m, ok := MembershipOf(c.Tx, c.Cmd.Company, LocalBoard); ok && !anyMember(c.Tx, c.Cmd.Company) {
		Members.Put(c.Tx, m.Company, m.ID, m)
	}
}

func memberIn(c *ledger.Context, id string) (Member, error) {
	settledMembers(c)
	m, ok := Members.Get(c.Tx, c.Cmd.Company, id)
	if !core.IsID(id) || !ok || m.Status == MemberArchived {
		return m, errNoMember()
	}
	return m, nil
}

// rank orders roles. Nobody may give a role above their own.
func rank(r Role) int {
	if n := slices.Index(MemberRoles, r); n >= 0 {
		return len(MemberRoles) - n
	}
	return 0
}

// mayRaise rejects an actor who gives a role above their own, or who changes a member with
// a role above their own.
func mayRaise(c *ledger.Context, roles ...Role) error {
	user := c.Cmd.Actor.ID
	if IsAdmin(c.Tx, user) {
		return nil
	}
	m, _ := MembershipOf(c.Tx, c.Cmd.Company, user)
	for _, r := range roles {
		if rank(r) > rank(m.Role) {
			return ledger.Refuse(ledger.Forbidden, nil, "Only a member of the same role or a higher one may do this")
		}
	}
	return nil
}

func checkGrants(list []MemberGrant) ([]MemberGrant, error) {
	var out []MemberGrant
	for _, g := range list {
		if !slices.Contains(MemberPermissions, g.Permission) {
			return nil, ledger.Refuse(ledger.Invalid, nil, "grants: there is no permission %q", g.Permission)
		}
		scope, err := core.CheckObject("scope", g.Scope, maxScope)
		if err != nil {
			return nil, err
		}
		g.Scope = scope
		if slices.ContainsFunc(out, func(o MemberGrant) bool { return o.Permission == g.Permission }) {
			return nil, ledger.Refuse(ledger.Invalid, nil, "grants: %s is there twice", g.Permission)
		}
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b MemberGrant) int {
		return slices.Compare([]byte(a.Permission), []byte(b.Permission))
	})
	return out, nil
}

func updateMember(c *ledger.Context, p ChangeMember) (any, error) {
	m, err := memberIn(c, p.ID)
	if err != nil {
		return nil, err
	}
	now, by := core.TimeOf(c.Now), c.Cmd.Actor.ID
	was := m
	if p.Role != nil {
		if *p.Role != "" && !slices.Contains(MemberRoles, *p.Role) {
			return nil, ledger.Refuse(ledger.Invalid, nil, "There is no role %q", *p.Role)
		}
		m = m.WithRole(*p.Role, by, now)
	}
	if p.Status != nil {
		if !slices.Contains([]MemberStatus{MemberPending, MemberActive, MemberSuspended}, *p.Status) {
			return nil, ledger.Refuse(ledger.Invalid, nil, "A member cannot be %q", *p.Status)
		}
		m.Status = *p.Status
	}
	if p.Grants != nil {
		if m.Grants, err = checkGrants(*p.Grants); err != nil {
			return nil, err
		}
		for i, g := range m.Grants {
			if !MayManage(c.Tx, m.Company, by, g.Permission) {
				return nil, ledger.Refuse(ledger.Forbidden, nil, "Missing permission: %s", g.Permission)
			}
			m.Grants[i].By, m.Grants[i].At = core.NullText(by), now
		}
	}
	if err := mayRaise(c, was.Role, m.Role); err != nil {
		return nil, err
	}
	if was.Role == RoleOwner && was.Status == MemberActive && (m.Role != RoleOwner || m.Status != MemberActive) &&
		owners(c.Tx, m.Company, m.ID) == 0 {
		return nil, ledger.Refuse(ledger.Conflict, nil, "Cannot remove the last active owner")
	}
	m.UpdatedAt = now
	Members.Put(c.Tx, m.Company, m.ID, m)
	action, keys := "company_member.updated", make([]string, len(m.Grants))
	for i, g := range m.Grants {
		keys[i] = string(g.Permission)
	}
	if p.Grants != nil {
		action = "company_member.permissions_updated"
	}
	c.Record(ledger.Change{Action: action, EntityType: "company_membership", EntityID: m.ID,
		Details: core.Object{}.Str("principalId", m.User).
			Null("membershipRole", string(m.Role)).Str("status", string(m.Status)).List("grants", keys).Close()})
	return m, nil
}

func archiveMember(c *ledger.Context, p ArchiveMember) (any, error) {
	m, err := memberIn(c, p.ID)
	if err != nil {
		return nil, err
	}
	if err := mayRaise(c, m.Role); err != nil {
		return nil, err
	}
	if can, why := Removal(c.Tx, m, c.Cmd.Actor.ID); !can {
		return nil, ledger.Refuse(ledger.Conflict, nil, "%s", why)
	}
	m.Status, m.Grants, m.UpdatedAt = MemberArchived, nil, core.TimeOf(c.Now)
	Members.Put(c.Tx, m.Company, m.ID, m)
	c.Record(ledger.Change{Action: "company_member.archived", EntityType: "company_membership", EntityID: m.ID,
		Details: core.Object{}.Str("principalId", m.User).Int("reassignedIssueCount", int64(max(p.Reassigned, 0))).Close()})
	return m, nil
}

// SetMember is the payload of member.set, by which an administrator of the instance adds a
// user to a company or removes them.
type SetMember struct {
	User string `cbor:"1,keyasint"`
	Role Role   `cbor:"2,keyasint,omitempty"` // "" removes the user
}

func setMember(c *ledger.Context, p SetMember) (any, error) {
	if !IsAdmin(c.Tx, c.Cmd.Actor.ID) {
		return nil, errNotAdmin()
	}
	if p.Role != "" && !slices.Contains(MemberRoles, p.Role) {
		return nil, ledger.Refuse(ledger.Invalid, nil, "There is no role %q", p.Role)
	}
	if _, ok := PersonOf(c.Tx, p.User); !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "User not found")
	}
	settledMembers(c)
	m, there := MembershipOf(c.Tx, c.Cmd.Company, p.User)
	if p.Role == "" {
		if !there || m.Status == MemberArchived {
			return nil, errNoMember()
		}
		if m.Role == RoleOwner && m.Status == MemberActive && owners(c.Tx, m.Company, m.ID) == 0 {
			return nil, ledger.Refuse(ledger.Conflict, nil, "Cannot remove the last active owner")
		}
		m.Status, m.Grants, m.UpdatedAt = MemberArchived, nil, core.TimeOf(c.Now)
		Members.Put(c.Tx, m.Company, m.ID, m)
	} else if err := admit(c, p.User, p.Role, nil); err != nil {
		return nil, err
	}
	c.Record(ledger.Change{Action: "company_member.access_set", EntityType: "company_membership",
		EntityID: MemberID(c.Cmd.Company, p.User),
		Details:  core.Object{}.Str("principalId", p.User).Null("membershipRole", string(p.Role)).Close()})
	return nil, nil
}

func errNotAdmin() error { return ledger.Refuse(ledger.Forbidden, nil, "Instance admin required") }

// admit makes a user a member with a role, or restores an archived member.
func admit(c *ledger.Context, user string, r Role, grants []MemberGrant) error {
	settledMembers(c)
	now, company := core.TimeOf(c.Now), c.Cmd.Company
	m, ok := Members.Get(c.Tx, company, MemberID(company, user))
	if !ok {
		if err := core.HasRoom(Members.All(c.Tx, company), MaxMembers, "members"); err != nil {
			return err
		}
		m = Member{ID: MemberID(company, user), Company: company, User: user, CreatedAt: now}
	}
	m = m.WithRole(r, c.Cmd.Actor.ID, now)
	for _, g := range grants {
		if !slices.ContainsFunc(m.Grants, func(o MemberGrant) bool { return o.Permission == g.Permission }) {
			g.By, g.At = core.NullText(c.Cmd.Actor.ID), now
			m.Grants = append(m.Grants, g)
		}
	}
	m.Status, m.UpdatedAt = MemberActive, now
	Members.Put(c.Tx, company, m.ID, m)
	return nil
}
