package company

import (
	"strings"

	"github.com/selvage-mesh/selvage/ledger"
)

// needs names the permission that a person who is not an administrator of the
// instance must have in the company for a kind of command. Kinds that are not
// here want a member who is more than a viewer.
var needs = map[string]Permission{
	"agent.create": CreateAgents, "agent.hire": CreateAgents,
	"agent.update": ConfigureAgents, "agent.permissions": ConfigureAgents, "agent.rollback": ConfigureAgents,
	"agent.terminate": ConfigureAgents, "agent.delete": ConfigureAgents, "agent_key.create": ConfigureAgents, "agent_key.revoke": ConfigureAgents,
	"skill.create": CreateSkills, "skill.update": CreateSkills, "skill.delete": CreateSkills, "skill.file": CreateSkills,
	"skill_test.input": CreateSkills, "skill_test.start": CreateSkills, "skill_test.forget": CreateSkills,
	"skill.version": CreateSkills, "skill.fork": CreateSkills, "skill.reset": CreateSkills, "skill.rename": CreateSkills,
	"environment.save": ManageSpaces, "environment.delete": ManageSpaces, "environment.probe": ManageSpaces,
	"exec_workspace.update": ManageSpaces, "runtime_service.control": ManageSpaces, "workspace_op.request": ManageSpaces,
	"invite.create": InviteUsers, "invite.revoke": InviteUsers,
	"join.approve": ApproveJoins, "join.reject": ApproveJoins,
	"member.update": ManageUsers, "member.archive": ManageUsers,
}

// leading are the kinds that only an owner or an admin of the company gives.
var leading = map[string]bool{
	"company.archive": true, "company.pause": true, "company.resume": true, "company.delete": true,
	"model_provider.save": true, "model_provider.remove": true, "model_price.set": true, "model_price.remove": true,
}

// personal are the kinds that a person gives about themselves: with no company,
// they need no more than to be somebody.
var personal = map[string]bool{"board_key.create": true, "board_key.revoke": true, "cli_auth.approve": true, "sidebar.order": true,
	"import_job.begin": true, "import_job.progress": true, "import_job.fail": true}

func errNoAccess() error {
	return ledger.Refuse(ledger.Forbidden, nil, "User does not have access to this company")
}

func errViewer() error { return ledger.Refuse(ledger.Forbidden, nil, "Viewer access is read-only") }

// checkPerson refuses a person who came in by a session or a key what they may
// not do: an administrator may do everything, a member of the company what the
// role and its grants allow.
func checkPerson(c *ledger.Context) error {
	kind, user, company := c.Cmd.Kind, c.Cmd.Actor.ID, c.Cmd.Company
	if IsAdmin(c.Tx, user) {
		return nil
	}
	switch {
	case kind == "invite.accept": // by whom the invite lets in
		return nil
	case kind == "company.create" || kind == "company.import" && !CompanyExists(c.Tx, company) || kind == "member.set":
		return errNotAdmin()
	case company == "" && (personal[kind] || strings.HasPrefix(kind, "user.")):
		return nil
	case company == "":
		return errNotAdmin()
	}
	m, ok := MembershipOf(c.Tx, company, user)
	switch need := needs[kind]; {
	case !ok || m.Status != MemberActive:
		return errNoAccess()
	case m.Role == RoleViewer:
		return errViewer()
	case need != "" && !m.May(need):
		return ledger.Refuse(ledger.Forbidden, nil, "Missing permission: %s", need)
	case leading[kind] && m.Role != RoleOwner && m.Role != RoleAdmin:
		return ledger.Refuse(ledger.Forbidden, nil, "Only an owner or an admin of the company may do this")
	}
	return nil
}
