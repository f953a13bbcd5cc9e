// Package people is the routes about who may do what: users, sessions, members, invites,
// keys of the board, and the onboarding of new users and agents.
package people

import (
	"encoding/json"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// maxReassigned bounds the open issues that a removed member may hand over; each takes a
// command.
const maxReassigned = 500

type memberList struct {
	Members []memberRow  `json:"members"`
	Access  memberAccess `json:"access"`
}

// memberAccess says what the caller may do about members.
type memberAccess struct {
	Role    core.NullText `json:"currentUserRole"`
	Manage  bool          `json:"canManageMembers"`
	Invite  bool          `json:"canInviteUsers"`
	Approve bool          `json:"canApproveJoinRequests"`
}

type memberRow struct {
	ID            string              `json:"id"`
	Company       ledger.CompanyID    `json:"companyId"`
	PrincipalType string              `json:"principalType"` // user
	Principal     string              `json:"principalId"`
	Status        people.MemberStatus `json:"status"`
	Role          core.NullText       `json:"membershipRole"`
	CreatedAt     core.Time           `json:"createdAt"`
	UpdatedAt     core.Time           `json:"updatedAt"`
	User          *people.Person      `json:"user"`
	Grants        []grantRow          `json:"grants"`
	Removal       memberRemoval       `json:"removal"`
}

type memberRemoval struct {
	Can    bool          `json:"canArchive"`
	Reason core.NullText `json:"reason"`
}

type grantRow struct {
	ID            string            `json:"id"`
	Company       ledger.CompanyID  `json:"companyId"`
	PrincipalType string            `json:"principalType"`
	Principal     string            `json:"principalId"`
	Permission    entity.Permission `json:"permissionKey"`
	Scope         json.RawMessage   `json:"scope"`
	By            core.NullText     `json:"grantedByUserId"`
	CreatedAt     core.Time         `json:"createdAt"`
	UpdatedAt     core.Time         `json:"updatedAt"`
}

// grantBody is a grant in a body.
type grantBody struct {
	Permission string                   `json:"permissionKey" minLength:"1" maxLength:"100"`
	Scope      api.Opt[json.RawMessage] `json:"scope"`
}

// patchMember changes a member. Without grants, a new role brings its default grants.
type patchMember struct {
	Role   api.Opt[string] `json:"membershipRole" enum:"owner,admin,operator,viewer"`
	Status *string         `json:"status,omitempty" enum:"pending,active,suspended" nullable:"false"`
}

// patchMemberGrants changes a member and the grants.
type patchMemberGrants struct {
	patchMember
	Grants *[]grantBody `json:"grants,omitempty" maxItems:"50" nullable:"false"`
}

// memberPermissions replaces a member's grants.
type memberPermissions struct {
	Grants []grantBody `json:"grants" maxItems:"50"`
}

// archiveBody names who takes over the issues of a removed member.
type archiveBody struct {
	Reassignment *reassignment `json:"reassignment,omitempty"`
}

type reassignment struct {
	Agent api.Opt[string] `json:"assigneeAgentId" format:"uuid"`
	User  api.Opt[string] `json:"assigneeUserId" minLength:"1" maxLength:"200"`
}

type archivedMember struct {
	Member     memberRow `json:"member"`
	Reassigned int       `json:"reassignedIssueCount"`
}

// accessBody lists the companies that a user belongs to.
type accessBody struct {
	Companies []ledger.CompanyID `json:"companyIds" maxItems:"1000"`
}

type companyAccess struct {
	User        people.Person      `json:"user"`
	Admin       bool               `json:"isInstanceAdmin"`
	Companies   []ledger.CompanyID `json:"companyIds"`
	Memberships []membership       `json:"companyAccess"`
}

func MemberRoutes() []api.Route {
	const tag, all = "members", "/api/companies/{companyId}/members"
	const one, user = all + "/{memberId}", "/api/admin/users/{userId}/company-access"
	return []api.Route{
		{Method: "GET", Path: all, Tag: tag, Summary: "List the people of a company, with what they may do", Who: api.Board,
			Out: memberList{}, Handle: listCompanyMembers},
		{Method: "PATCH", Path: one, Tag: tag, Summary: "Change a member's role or status", Who: api.Board, In: patchMember{},
			Out: memberRow{}, Handle: updateMember},
		{Method: "PATCH", Path: one + "/role-and-grants", Tag: tag, Summary: "Change a member's role and grants",
			Who: api.Board, In: patchMemberGrants{}, Out: memberRow{}, Handle: updateMemberGrants},
		{Method: "PATCH", Path: one + "/permissions", Tag: tag, Summary: "Replace a member's grants", Who: api.Board,
			In: memberPermissions{}, Out: memberRow{}, Handle: permitMember},
		{Method: "POST", Path: one + "/archive", Tag: tag, Summary: "Take a member out and hand on their open issues",
			Who: api.Board, In: archiveBody{}, Out: archivedMember{}, Handle: archiveMember},
		api.List(api.Route{Path: "/api/companies/{companyId}/user-directory", Tag: tag,
			Summary: "List the users of a company", Who: api.Board}, directoryOf),
		{Method: "GET", Path: user, Tag: tag, Summary: "Tell which companies a user is in", Who: api.Admin,
			Out: companyAccess{}, Handle: readCompanyAccess},
		{Method: "PUT", Path: user, Tag: tag, Summary: "Say which companies a user is in", Who: api.Admin, In: accessBody{},
			Out: companyAccess{}, Handle: setCompanyAccess},
	}
}

// personOf returns a user as answers show them, also a deleted one.
func personOf(tx *ledger.Tx, id string) *people.Person {
	if id == "" {
		return nil
	}
	if p, ok := people.PersonOf(tx, id); ok {
		return &p
	}
	return nil
}

func showMember(tx *ledger.Tx, rc *api.Request, m people.Member) memberRow {
	row := memberRow{ID: m.ID, Company: m.Company, PrincipalType: "user", Principal: m.User, Status: m.Status,
		Role:      core.NullText(m.Role),
		CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt, User: personOf(tx, m.User), Grants: []grantRow{}}
	for _, g := range m.Grants {
		row.Grants = append(row.Grants, grantRow{ID: m.GrantID(g.Permission), Company: m.Company, PrincipalType: "user",
			Principal: m.User, Permission: g.Permission,
			Scope: api.RawJSON(g.Scope), By: g.By, CreatedAt: g.At, UpdatedAt: g.At})
	}
	can, why := people.Removal(tx, m, rc.Actor.ID)
	row.Removal = memberRemoval{can, core.NullText(why)}
	return row
}

func listCompanyMembers(rc *api.Request) (api.Response, error) {
	out := memberList{Members: []memberRow{}}
	err := api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
		for _, m := range people.MembersOf(tx, row.ID) {
			out.Members = append(out.Members, showMember(tx, rc, m))
		}
		may := func(p entity.Permission) bool { return rc.Trusted() || people.MayManage(tx, row.ID, rc.Actor.ID, p) }
		out.Access = memberAccess{Manage: may(entity.ManageUsers), Invite: may(entity.InviteUsers),
			Approve: may(entity.ApproveJoins)}
		if m, ok := people.MembershipOf(tx, row.ID, rc.Actor.ID); ok && m.Status == people.MemberActive {
			out.Access.Role = core.NullText(m.Role)
		}
		return nil
	})
	return api.OK(out), err
}

func directoryOf(tx *ledger.Tx, of ledger.CompanyID) directory {
	out := directory{Users: []directoryUser{}}
	for _, m := range people.MembersOf(tx, of) {
		if p, ok := people.PersonOf(tx, m.User); ok && m.Status == people.MemberActive {
			out.Users = append(out.Users, directoryUser{m.User, string(m.Status), user(p)})
		}
	}
	return out
}

func grantsOf(list []grantBody) *[]people.MemberGrant {
	out := make([]people.MemberGrant, len(list))
	for i, g := range list {
		out[i].Permission = entity.Permission(g.Permission)
		if g.Scope.Set && !g.Scope.Null {
			out[i].Scope = g.Scope.Value
		}
	}
	return &out
}

func changeMember(rc *api.Request, in patchMember, grants *[]people.MemberGrant) (api.Response, error) {
	p := people.ChangeMember{ID: strings.ToLower(rc.Path("memberId")), Grants: grants}
	if in.Role.Set {
		p.Role = new(people.Role(in.Role.Value))
	}
	if in.Status != nil {
		p.Status = new(people.MemberStatus(*in.Status))
	}
	m, err := api.Do[people.Member](rc, people.KindMemberUpdate, api.CompanyID(rc), p)
	if err != nil {
		return api.Response{}, err
	}
	var r api.Response
	err = rc.View(func(tx *ledger.Tx) error { r = api.OK(showMember(tx, rc, m)); return nil })
	return r, err
}

func updateMember(rc *api.Request) (api.Response, error) {
	in, err := api.Body[patchMember](rc)
	if err != nil {
		return api.Response{}, err
	}
	return changeMember(rc, in, nil)
}

func updateMemberGrants(rc *api.Request) (api.Response, error) {
	in, err := api.Body[patchMemberGrants](rc)
	if err != nil {
		return api.Response{}, err
	}
	var grants *[]people.MemberGrant
	if in.Grants != nil {
		grants = grantsOf(*in.Grants)
	}
	return changeMember(rc, in.patchMember, grants)
}

func permitMember(rc *api.Request) (api.Response, error) {
	in, err := api.Body[memberPermissions](rc)
	if err != nil {
		return api.Response{}, err
	}
	return changeMember(rc, patchMember{}, grantsOf(in.Grants))
}

// archiveMember reassigns the member's open issues one by one, then removes the member.
// An error on the way leaves the member with fewer issues.
func archiveMember(rc *api.Request) (api.Response, error) {
	in, err := api.Body[archiveBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	of, id := api.CompanyID(rc), strings.ToLower(rc.Path("memberId"))
	to := company.UpdateIssue{Assignee: new(string), AssigneeUser: new(string)}
	if r := in.Reassignment; r != nil {
		*to.Assignee, *to.AssigneeUser = strings.ToLower(r.Agent.Or("")), r.User.Or("")
	}
	if *to.Assignee != "" && *to.AssigneeUser != "" {
		return api.Response{}, api.Invalid("reassignment: name an agent or a person, not both")
	}
	var issues []string
	err = rc.View(func(tx *ledger.Tx) error {
		for _, m := range people.MembersOf(tx, of) {
			if m.ID != id {
				continue
			}
			if can, why := people.Removal(tx, m, rc.Actor.ID); !can {
				return api.Conflict(why, nil)
			}
			if a := *to.Assignee; a != "" && entity.CompanyOfAgent(tx, a) != of { // checked even without issues to reassign
				return api.NotFound("Agent not found")
			}
			if u := *to.AssigneeUser; u != "" && !people.MayEnter(tx, of, u) {
				return api.NotFound("Assignee user not found")
			}
			if issues = people.OpenIssuesOfUser(tx, of, m.User, maxReassigned+1); len(issues) > maxReassigned {
				return api.Unprocessable("The member has too many open issues; hand some of them on first", nil)
			}
			return nil
		}
		return api.NotFound("Member not found")
	})
	if err != nil {
		return api.Response{}, err
	}
	for _, to.Issue = range issues {
		if _, err := rc.Submit(company.KindIssueUpdate, of, to); err != nil {
			return api.Response{}, err
		}
	}
	m, err := api.Do[people.Member](rc, people.KindMemberArchive, of,
		people.ArchiveMember{ID: id, Reassigned: len(issues)})
	if err != nil {
		return api.Response{}, err
	}
	var r api.Response
	err = rc.View(func(tx *ledger.Tx) error { r = api.OK(archivedMember{showMember(tx, rc, m), len(issues)}); return nil })
	return r, err
}

func accessOf(tx *ledger.Tx, id string) (out companyAccess, err error) {
	p, ok := people.PersonOf(tx, id)
	if !ok {
		return out, api.NotFound("User not found")
	}
	out = companyAccess{User: p, Admin: people.IsAdmin(tx, id), Companies: []ledger.CompanyID{},
		Memberships: []membership{}}
	for _, m := range people.MembershipsOf(tx, id) {
		out.Companies = append(out.Companies, m.Company)
		out.Memberships = append(out.Memberships, membership{m.Company, core.NullText(m.Role), string(m.Status)})
	}
	return out, nil
}

func readCompanyAccess(rc *api.Request) (r api.Response, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		out, err := accessOf(tx, rc.Path("userId"))
		r = api.OK(out)
		return err
	})
	return r, err
}

func setCompanyAccess(rc *api.Request) (api.Response, error) {
	in, err := api.Body[accessBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	var is companyAccess
	if err := rc.View(func(tx *ledger.Tx) (err error) {
		is, err = accessOf(tx,
			rc.Path("userId"))
		return err
	}); err != nil {
		return api.Response{}, err
	}
	have, want := map[ledger.CompanyID]bool{}, map[ledger.CompanyID]bool{}
	for _, id := range is.Companies {
		have[id] = true
	}
	for i, id := range in.Companies {
		if !api.IsUUID(string(id)) {
			return api.Response{}, api.Invalid("companyIds.%d: a UUID is needed", i)
		}
		if id = ledger.CompanyID(strings.ToLower(string(id))); !want[id] && !have[id] {
			if _, err := rc.Submit(people.KindMemberSet, id, people.SetMember{User: is.User.ID,
				Role: people.RoleOperator}); err != nil {
				return api.Response{}, err
			}
		}
		want[id] = true
	}
	for _, id := range is.Companies {
		if !want[id] {
			if _, err := rc.Submit(people.KindMemberSet, id, people.SetMember{User: is.User.ID}); err != nil {
				return api.Response{}, err
			}
		}
	}
	return readCompanyAccess(rc)
}
