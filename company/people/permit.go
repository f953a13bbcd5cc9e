package people

import (
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

func errNoAccess() error {
	return ledger.Refuse(ledger.Forbidden, nil, "User does not have access to this company")
}

func errViewer() error { return ledger.Refuse(ledger.Forbidden, nil, "Viewer access is read-only") }

// checkPerson rejects commands that a person may not give who authenticated by a session or
// a key. An administrator may give all; a member of the company those that the role and its
// grants allow.
func checkPerson(c *ledger.Context, kind company.Kind) error {
	user, of := c.Cmd.Actor.ID, c.Cmd.Company
	if IsAdmin(c.Tx, user) {
		return nil
	}
	switch {
	case kind.Has(company.Invited):
		return nil
	case kind.Has(company.AdminsOnly) || kind.Has(company.Founds) && !entity.CompanyExists(c.Tx, of):
		return errNotAdmin()
	case of == "" && kind.Has(company.Personal):
		return nil
	case of == "":
		return errNotAdmin()
	}
	m, ok := MembershipOf(c.Tx, of, user)
	switch {
	case !ok || m.Status != MemberActive:
		return errNoAccess()
	case m.Role == RoleViewer:
		return errViewer()
	case kind.Needs != "" && !m.May(kind.Needs):
		return ledger.Refuse(ledger.Forbidden, nil, "Missing permission: %s", kind.Needs)
	case kind.Has(company.LeadersOnly) && m.Role != RoleOwner && m.Role != RoleAdmin:
		return ledger.Refuse(ledger.Forbidden, nil, "Only an owner or an admin of the company may do this")
	}
	return nil
}
