package company

import (
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

func hexHash(digit string) string { return strings.Repeat(digit, 64) }

// enlist makes a user a member by hand.
func (d *desk) enlist(user string, r Role) Member {
	m := Member{ID: memberID(d.company, user), Company: d.company, User: user, Status: MemberActive, CreatedAt: TimeOf(d.now), UpdatedAt: TimeOf(d.now)}.withRole(r, LocalBoard, TimeOf(d.now))
	members.Put(d.tx, d.company, m.ID, m)
	return m
}

// asUser is what Authorize says to a user with a session.
func (d *desk) asUser(user, kind, of string) error {
	c := d.context(board, kind, nil)
	c.Cmd.Actor, c.Cmd.Credential, c.Cmd.Company = ledger.Actor{Type: "user", ID: user}, ledger.Credential{Kind: "board_key", ID: uid(7)}, of
	boardKeys.Put(d.tx, uid(7), BoardKey{ID: uid(7), User: user, Name: "k", Hash: hexHash("7")})
	return Authorize(c)
}

func TestRolesAndGrantsDecideWhatAMemberMay(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.enlist(LocalBoard, RoleOwner)
	for _, r := range MemberRoles {
		d.enlist(string(r), r)
	}
	const none, viewer = "User does not have access to this company", "Viewer access is read-only"
	for kind, want := range map[string]map[string]string{ // what is refused, by user; others may
		"issue.create":    {"viewer": viewer, "nobody": none},
		"comment.create":  {"viewer": viewer, "nobody": none},
		"agent.pause":     {"viewer": viewer, "nobody": none},
		"agent.create":    {"viewer": viewer, "operator": "Missing permission: agents:create", "nobody": none},
		"agent.terminate": {"viewer": viewer, "operator": "Missing permission: agents:configure", "nobody": none},
		"invite.create":   {"viewer": viewer, "operator": "Missing permission: users:invite", "nobody": none},
		"join.approve":    {"viewer": viewer, "operator": "Missing permission: joins:approve", "nobody": none},
		"member.update":   {"viewer": viewer, "operator": "Missing permission: users:manage_permissions", "admin": "Missing permission: users:manage_permissions", "nobody": none},
		"budget.set":      {"viewer": viewer, "nobody": none},
		"budget.resolve":  {"viewer": viewer, "nobody": none},
		"company.delete":  {"viewer": viewer, "operator": "Only an owner or an admin of the company may do this", "nobody": none},
		"company.create":  {"viewer": "Instance admin required", "operator": "Instance admin required", "admin": "Instance admin required", "owner": "Instance admin required", "nobody": "Instance admin required"},
	} {
		for _, user := range []string{"owner", "admin", "operator", "viewer", "nobody", LocalBoard} {
			err := d.asUser(user, kind, d.company)
			if text := want[user]; text != "" {
				wantRefusal(t, err, ledger.Forbidden, text)
			} else if err != nil {
				t.Errorf("%s by %s: %v", kind, user, err)
			}
		}
	}
	wantRefusal(t, d.asUser("owner", "instance.settings", ""), ledger.Forbidden, "Instance admin required")
	if err := d.asUser("nobody", "board_key.create", ""); err != nil {
		t.Errorf("a key of one's own: %v", err)
	}
	m := d.enlist("away", RoleOwner)
	m.Status = MemberSuspended
	members.Put(d.tx, d.company, m.ID, m)
	wantRefusal(t, d.asUser("away", "issue.create", d.company), ledger.Forbidden, none)
	m = d.enlist("scoped", RoleOperator)
	m.Grants = []MemberGrant{{Permission: CreateAgents, Scope: []byte(`{"projectId":"x"}`)}}
	members.Put(d.tx, d.company, m.ID, m)
	wantRefusal(t, d.asUser("scoped", "agent.create", d.company), ledger.Forbidden, "Missing permission: agents:create")
}

func TestTheLastOwnerStays(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	viewer, owner := RoleViewer, RoleOwner
	me := MembersOf(d.tx, d.company)[0]
	if me.User != LocalBoard || me.Role != RoleOwner {
		t.Fatalf("a company from before there were members has %+v", me)
	}
	wantRefusal(t, d.do(board, "member.update", ChangeMember{ID: me.ID, Role: &viewer}, nil), ledger.Conflict, "Cannot remove the last active owner")
	wantRefusal(t, d.do(board, "member.archive", ArchiveMember{ID: me.ID}, nil), ledger.Conflict, "You cannot remove yourself.")
	bob := d.enlist("bob", RoleOperator)
	if list := MembersOf(d.tx, d.company); len(list) != 1 {
		t.Fatalf("%d members", len(list)) // by hand, so nothing settled the implicit one
	}
	d.must(t, board, "member.update", ChangeMember{ID: bob.ID, Role: &owner}, &bob)
	if !bob.May(ManageUsers) || len(bob.Grants) != len(GrantsOf(RoleOwner)) {
		t.Errorf("the new owner is %+v", bob)
	}
	wantRefusal(t, d.do(board, "member.update", ChangeMember{ID: bob.ID, Grants: &[]MemberGrant{{Permission: "fly"}}}, nil), ledger.Invalid, "")
	wantRefusal(t, d.do(board, "member.update", ChangeMember{ID: d.id()}, nil), ledger.NotFound, "Member not found")
}

func TestAnAgentJoinsByAnInviteOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var i Invite
	d.must(t, board, "invite.create", CreateInvite{ID: d.id(), Hash: hexHash("1"), Joins: JoinAgent}, &i)
	accept := AcceptInvite{ID: d.id(), Hash: hexHash("1"), Type: JoinAgent, AgentName: "Joiner", Adapter: "http", Defaults: []byte(`{"url":"http://x"}`), ClaimHash: hexHash("2")}
	bad := accept
	bad.Type = JoinHuman
	wantRefusal(t, d.do(board, "invite.accept", bad, nil), ledger.Invalid, "Invite does not allow human joins")
	var j JoinRequest
	d.must(t, board, "invite.accept", accept, &j)
	accept.ID = d.id()
	wantRefusal(t, d.do(board, "invite.accept", accept, nil), ledger.NotFound, "Invite not found")
	if b := BadgesOf(d.tx, d.company); b.JoinRequests != 1 {
		t.Errorf("badges %+v", b)
	}
	claim := ClaimKey{ID: j.ID, ClaimHash: hexHash("2"), Key: d.id(), Hash: hexHash("3")}
	wantRefusal(t, d.do(board, "join.claim", claim, nil), ledger.Conflict, "Join request must be approved before key claim")
	d.must(t, board, "join.approve", DecideJoin{ID: j.ID}, &j)
	wantRefusal(t, d.do(board, "join.reject", DecideJoin{ID: j.ID}, nil), ledger.Conflict, "Join request is not pending")
	wrong := claim
	wrong.ClaimHash = hexHash("4")
	wantRefusal(t, d.do(board, "join.claim", wrong, nil), ledger.Forbidden, "Invalid claim secret")
	var k AgentKey
	d.must(t, board, "join.claim", claim, &k)
	if a, ok := AgentByID(d.tx, k.Agent); !ok || a.Name != "Joiner" || string(j.Agent) != a.ID {
		t.Errorf("the key %+v is of %+v", k, a)
	}
	claim.Key, claim.Hash = d.id(), hexHash("5")
	wantRefusal(t, d.do(board, "join.claim", claim, nil), ledger.Conflict, "Claim secret already used")

	d.must(t, board, "invite.create", CreateInvite{ID: d.id(), Hash: hexHash("6"), Joins: JoinBoth}, &i)
	d.now = d.now.Add(InviteAge)
	accept.Hash = hexHash("6")
	wantRefusal(t, d.do(board, "invite.accept", accept, nil), ledger.NotFound, "Invite not found")
	for !removeRows(d.tx, d.company) {
	}
	if _, ok := InviteByHash(d.tx, hexHash("6")); ok || d.tx.Has(joinCompanyKey(j.ID)) || d.tx.Has(inviteCompanyKey(i.ID)) {
		t.Error("a deleted company leaves invites behind")
	}
}

func TestBoardKeysAndChallengesEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var k BoardKey
	d.must(t, board, "board_key.create", CreateBoardKey{ID: d.id(), Name: "ci", Hash: hexHash("a")}, &k)
	use := func() error {
		c := d.context(board, "issue.create", nil)
		c.Cmd.Credential = ledger.Credential{Kind: "board_key", ID: k.ID}
		return Authorize(c)
	}
	if err := use(); err != nil {
		t.Fatal(err)
	}
	d.now = d.now.Add(BoardKeyAge)
	wantRefusal(t, use(), ledger.Unauthorized, "")
	d.must(t, board, "board_key.create", CreateBoardKey{ID: d.id(), Name: "ci", Hash: hexHash("b"), ExpiresAt: new(Time)}, &k)
	if err := use(); err != nil {
		t.Fatal(err)
	}
	d.must(t, board, "board_key.revoke", RevokeBoardKey{ID: k.ID}, nil)
	wantRefusal(t, use(), ledger.Unauthorized, "")
	wantRefusal(t, d.do(board, "board_key.revoke", RevokeBoardKey{ID: d.id()}, nil), ledger.NotFound, "Board API key not found")

	open := func(h string) (c Challenge) {
		d.must(t, board, "cli_auth.open", OpenChallenge{ID: d.id(), Hash: hexHash(h), KeyHash: hexHash("f" + h)[:64], Command: "login", Access: "board"}, &c)
		return c
	}
	h := open("c")
	wantRefusal(t, d.do(board, "cli_auth.approve", DecideChallenge{ID: h.ID, Hash: hexHash("d"), Key: d.id()}, nil), ledger.NotFound, "CLI auth challenge not found")
	d.must(t, board, "cli_auth.approve", DecideChallenge{ID: h.ID, Hash: hexHash("c"), Key: d.id()}, &h)
	if k, ok := BoardKeyByHash(d.tx, h.KeyHash); !ok || k.User != LocalBoard || h.Status(TimeOf(d.now)) != "approved" {
		t.Errorf("approved: %+v, key %+v", h, k)
	}
	late := open("d")
	d.now = d.now.Add(ChallengeAge + time.Second)
	d.must(t, board, "cli_auth.approve", DecideChallenge{ID: late.ID, Hash: hexHash("d"), Key: d.id()}, &late)
	if late.ApprovedAt != 0 || late.Status(TimeOf(d.now)) != "expired" {
		t.Errorf("late: %+v", late)
	}
	open("e")
	if _, ok := ChallengeByID(d.tx, late.ID, hexHash("d")); ok {
		t.Error("a challenge outlives its time")
	}
}
