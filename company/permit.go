package company

import (
	"github.com/selvage-mesh/selvage/ledger"
)

func errNoAccess() error {
	return ledger.Refuse(ledger.Forbidden, nil, "User does not have access to this company")
}

func errViewer() error { return ledger.Refuse(ledger.Forbidden, nil, "Viewer access is read-only") }

// checkPerson refuses a person who came in by a session or a key what they may
// not do: an administrator may do everything, a member of the company what the
// role and its grants allow.
func checkPerson(c *ledger.Context, kind Kind) error {
	user, company := c.Cmd.Actor.ID, c.Cmd.Company
	if IsAdmin(c.Tx, user) {
		return nil
	}
	switch {
	case kind.Has(Invited):
		return nil
	case kind.Has(AdminsOnly) || kind.Has(Founds) && !CompanyExists(c.Tx, company):
		return errNotAdmin()
	case company == "" && kind.Has(Personal):
		return nil
	case company == "":
		return errNotAdmin()
	}
	m, ok := MembershipOf(c.Tx, company, user)
	switch {
	case !ok || m.Status != MemberActive:
		return errNoAccess()
	case m.Role == RoleViewer:
		return errViewer()
	case kind.Needs != "" && !m.May(kind.Needs):
		return ledger.Refuse(ledger.Forbidden, nil, "Missing permission: %s", kind.Needs)
	case kind.Has(LeadersOnly) && m.Role != RoleOwner && m.Role != RoleAdmin:
		return ledger.Refuse(ledger.Forbidden, nil, "Only an owner or an admin of the company may do this")
	}
	return nil
}
