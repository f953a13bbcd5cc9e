package people_test

import (
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestRolesAndGrantsDecideWhatAMemberMay(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	d.Enlist(people.LocalBoard, people.RoleOwner)
	for _, r := range people.MemberRoles {
		d.Enlist(string(r), r)
	}
	const none, viewer = "User does not have access to this company", "Viewer access is read-only"
	for kind, want := range map[string]map[string]string{ // what is refused, by user; other users may
		"issue.create":    {"viewer": viewer, "nobody": none},
		"comment.create":  {"viewer": viewer, "nobody": none},
		"agent.pause":     {"viewer": viewer, "nobody": none},
		"agent.create":    {"viewer": viewer, "operator": "Missing permission: agents:create", "nobody": none},
		"agent.terminate": {"viewer": viewer, "operator": "Missing permission: agents:configure", "nobody": none},
		"invite.create":   {"viewer": viewer, "operator": "Missing permission: users:invite", "nobody": none},
		"join.approve":    {"viewer": viewer, "operator": "Missing permission: joins:approve", "nobody": none},
		"member.update": {"viewer": viewer, "operator": "Missing permission: users:manage_permissions",
			"admin": "Missing permission: users:manage_permissions", "nobody": none},
		"budget.set":     {"viewer": viewer, "nobody": none},
		"budget.resolve": {"viewer": viewer, "nobody": none},
		"company.delete": {"viewer": viewer, "operator": "Only an owner or an admin of the company may do this",
			"nobody": none},
		"company.create": {"viewer": "Instance admin required", "operator": "Instance admin required",
			"admin": "Instance admin required", "owner": "Instance admin required", "nobody": "Instance admin required"},
	} {
		for _, user := range []string{"owner", "admin", "operator", "viewer", "nobody", people.LocalBoard} {
			err := d.AsUser(user, kind, d.Company)
			if text := want[user]; text != "" {
				companytest.WantRefusal(t, err, ledger.Forbidden, text)
			} else if err != nil {
				t.Errorf("%s by %s: %v", kind, user, err)
			}
		}
	}
	companytest.WantRefusal(t, d.AsUser("owner", "instance.settings", ""), ledger.Forbidden, "Instance admin required")
	if err := d.AsUser("nobody", "board_key.create", ""); err != nil {
		t.Errorf("a key of one's own: %v", err)
	}
	m := d.Enlist("away", people.RoleOwner)
	m.Status = people.MemberSuspended
	people.Members.Put(d.Tx, d.Company, m.ID, m)
	companytest.WantRefusal(t, d.AsUser("away", "issue.create", d.Company), ledger.Forbidden, none)
	m = d.Enlist("scoped", people.RoleOperator)
	m.Grants = []people.MemberGrant{{Permission: entity.CreateAgents, Scope: []byte(`{"projectId":"x"}`)}}
	people.Members.Put(d.Tx, d.Company, m.ID, m)
	companytest.WantRefusal(t, d.AsUser("scoped", "agent.create", d.Company), ledger.Forbidden,
		"Missing permission: agents:create")
}

func TestTheLastOwnerStays(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	viewer, owner := people.RoleViewer, people.RoleOwner
	me := people.MembersOf(d.Tx, d.Company)[0]
	if me.User != people.LocalBoard || me.Role != people.RoleOwner {
		t.Fatalf("a company from before there were members has %+v", me)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "member.update", people.ChangeMember{ID: me.ID, Role: &viewer},
		nil), ledger.Conflict, "Cannot remove the last active owner")
	companytest.WantRefusal(t, d.Do(companytest.Board, "member.archive", people.ArchiveMember{ID: me.ID}, nil),
		ledger.Conflict, "You cannot remove yourself.")
	bob := d.Enlist("bob", people.RoleOperator)
	if list := people.MembersOf(d.Tx, d.Company); len(list) != 1 {
		t.Fatalf("%d members", len(list)) // written directly, so the implicit member has no row
	}
	d.Must(t, companytest.Board, "member.update", people.ChangeMember{ID: bob.ID, Role: &owner}, &bob)
	if !bob.May(entity.ManageUsers) || len(bob.Grants) != len(people.GrantsOf(people.RoleOwner)) {
		t.Errorf("the new owner is %+v", bob)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "member.update", people.ChangeMember{ID: bob.ID,
		Grants: &[]people.MemberGrant{{Permission: "fly"}}}, nil), ledger.Invalid, `grants: there is no permission "fly"`)
	companytest.WantRefusal(t, d.Do(companytest.Board, "member.update", people.ChangeMember{ID: d.ID()}, nil),
		ledger.NotFound, "Member not found")
}

func TestAnAgentJoinsByAnInviteOnce(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	var i people.Invite
	d.Must(t, companytest.Board, "invite.create", people.CreateInvite{ID: d.ID(), Hash: companytest.HexHash("1"),
		Joins: people.JoinAgent}, &i)
	accept := people.AcceptInvite{ID: d.ID(), Hash: companytest.HexHash("1"), Type: people.JoinAgent, AgentName: "Joiner",
		Adapter: "http", Defaults: []byte(`{"url":"http://x"}`), ClaimHash: companytest.HexHash("2")}
	bad := accept
	bad.Type = people.JoinHuman
	companytest.WantRefusal(t, d.Do(companytest.Board, "invite.accept", bad, nil), ledger.Invalid,
		"Invite does not allow human joins")
	var j people.JoinRequest
	d.Must(t, companytest.Board, "invite.accept", accept, &j)
	accept.ID = d.ID()
	companytest.WantRefusal(t, d.Do(companytest.Board, "invite.accept", accept, nil), ledger.NotFound, "Invite not found")
	if b := rules.BadgesOf(d.Tx, d.Company); b.JoinRequests != 1 {
		t.Errorf("badges %+v", b)
	}
	claim := people.ClaimKey{ID: j.ID, ClaimHash: companytest.HexHash("2"), Key: d.ID(), Hash: companytest.HexHash("3")}
	companytest.WantRefusal(t, d.Do(companytest.Board, "join.claim", claim, nil), ledger.Conflict,
		"Join request must be approved before key claim")
	d.Must(t, companytest.Board, "join.approve", people.DecideJoin{ID: j.ID}, &j)
	companytest.WantRefusal(t, d.Do(companytest.Board, "join.reject", people.DecideJoin{ID: j.ID}, nil), ledger.Conflict,
		"Join request is not pending")
	wrong := claim
	wrong.ClaimHash = companytest.HexHash("4")
	companytest.WantRefusal(t, d.Do(companytest.Board, "join.claim", wrong, nil), ledger.Forbidden, "Invalid claim secret")
	var k people.AgentKey
	d.Must(t, companytest.Board, "join.claim", claim, &k)
	if a, ok := entity.AgentByID(d.Tx, k.Agent); !ok || a.Name != "Joiner" || string(j.Agent) != a.ID {
		t.Errorf("the key %+v is of %+v", k, a)
	}
	claim.Key, claim.Hash = d.ID(), companytest.HexHash("5")
	companytest.WantRefusal(t, d.Do(companytest.Board, "join.claim", claim, nil), ledger.Conflict,
		"Claim secret already used")

	d.Must(t, companytest.Board, "invite.create", people.CreateInvite{ID: d.ID(), Hash: companytest.HexHash("6"),
		Joins: people.JoinBoth}, &i)
	d.Now = d.Now.Add(people.InviteAge)
	accept.Hash = companytest.HexHash("6")
	companytest.WantRefusal(t, d.Do(companytest.Board, "invite.accept", accept, nil), ledger.NotFound, "Invite not found")
	for !company.RemoveRows(d.Tx, d.Company) {
	}
	if _, ok := people.InviteByHash(d.Tx, companytest.HexHash("6")); ok || d.Tx.Has(people.JoinCompanyKey(j.ID)) ||
		d.Tx.Has(people.InviteCompanyKey(i.ID)) {
		t.Error("a deleted company leaves invites behind")
	}
}

func TestBoardKeysAndChallengesEnd(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	var k people.BoardKey
	d.Must(t, companytest.Board, "board_key.create", people.CreateBoardKey{ID: d.ID(), Name: "ci",
		Hash: companytest.HexHash("a")}, &k)
	use := func() error {
		c := d.Context(companytest.Board, "issue.create", nil)
		c.Cmd.Credential = ledger.Credential{Kind: "board_key", ID: k.ID}
		return people.Authorize(c)
	}
	if err := use(); err != nil {
		t.Fatal(err)
	}
	d.Now = d.Now.Add(people.BoardKeyAge)
	companytest.WantRefusal(t, use(), ledger.Unauthorized,
		"Agent token did not verify; obtain fresh credentials and retry")
	d.Must(t, companytest.Board, "board_key.create", people.CreateBoardKey{ID: d.ID(), Name: "ci",
		Hash: companytest.HexHash("b"), ExpiresAt: new(core.Time)}, &k)
	if err := use(); err != nil {
		t.Fatal(err)
	}
	d.Must(t, companytest.Board, "board_key.revoke", people.RevokeBoardKey{ID: k.ID}, nil)
	companytest.WantRefusal(t, use(), ledger.Unauthorized,
		"Agent token did not verify; obtain fresh credentials and retry")
	companytest.WantRefusal(t, d.Do(companytest.Board, "board_key.revoke", people.RevokeBoardKey{ID: d.ID()}, nil),
		ledger.NotFound, "Board API key not found")

	open := func(h string) (c people.Challenge) {
		d.Must(t, companytest.Board, "cli_auth.open", people.OpenChallenge{ID: d.ID(), Hash: companytest.HexHash(h),
			KeyHash: companytest.HexHash("f" + h)[:64], Command: "login", Access: "board"}, &c)
		return c
	}
	h := open("c")
	companytest.WantRefusal(t, d.Do(companytest.Board, "cli_auth.approve", people.DecideChallenge{ID: h.ID,
		Hash: companytest.HexHash("d"), Key: d.ID()}, nil), ledger.NotFound, "CLI auth challenge not found")
	d.Must(t, companytest.Board, "cli_auth.approve", people.DecideChallenge{ID: h.ID, Hash: companytest.HexHash("c"),
		Key: d.ID()}, &h)
	if k, ok := people.BoardKeyByHash(d.Tx, h.KeyHash); !ok || k.User != people.LocalBoard ||
		h.Status(core.TimeOf(d.Now)) != "approved" {
		t.Errorf("approved: %+v, key %+v", h, k)
	}
	late := open("d")
	d.Now = d.Now.Add(people.ChallengeAge + time.Second)
	d.Must(t, companytest.Board, "cli_auth.approve", people.DecideChallenge{ID: late.ID, Hash: companytest.HexHash("d"),
		Key: d.ID()}, &late)
	if late.ApprovedAt != 0 || late.Status(core.TimeOf(d.Now)) != "expired" {
		t.Errorf("late: %+v", late)
	}
	open("e")
	if _, ok := people.ChallengeByID(d.Tx, late.ID, companytest.HexHash("d")); ok {
		t.Error("a challenge outlives its time")
	}
}
