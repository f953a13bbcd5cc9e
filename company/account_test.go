package company

import (
	"crypto/sha256"
	"encoding/json"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// Who is suspended is shut out whatever they hold, until they are let in again.
func TestSuspendedUsersAreShutOut(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.signsIn(t)
	ann, byAnn := d.person(t, 10, "Ann")
	bob, byBob := d.person(t, 20, "Bob")
	if err := d.speak(ann, byAnn, "user.claim", "", ClaimInstance{}); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, d.speak(bob, byBob, "user.suspend", "", SuspendUser{User: ann.ID, Suspend: true}), ledger.Forbidden, "")
	wantRefusal(t, d.speak(ann, byAnn, "user.suspend", "", SuspendUser{User: ann.ID, Suspend: true}), ledger.Conflict, "You can not suspend yourself")
	wantRefusal(t, d.speak(ann, byAnn, "user.suspend", "", SuspendUser{User: uid(99), Suspend: true}), ledger.NotFound, "")
	if err := d.speak(ann, byAnn, "user.admin", "", AppointAdmin{User: bob.ID, Admin: true}); err != nil {
		t.Fatal(err)
	}
	key := ledger.Credential{Kind: "board_key", ID: uid(30)}
	if err := d.speak(bob, byBob, "board_key.create", "", CreateBoardKey{ID: uid(30), Name: "k", Hash: tokenHash(30)}); err != nil {
		t.Fatal(err)
	}
	make1 := SaveGoal{ID: uid(31), Title: new("g")}
	if err := d.speak(bob, key, "goal.create", d.company, make1); err != nil {
		t.Fatal(err)
	}
	again := SignIn{User: bob.ID, Password: sha256.Sum256([]byte("kept of Bob")), Session: NewSession{uid(40), tokenHash(40)}}
	for range 2 { // twice is once
		if err := d.speak(ann, byAnn, "user.suspend", "", SuspendUser{User: bob.ID, Suspend: true}); err != nil {
			t.Fatal(err)
		}
	}
	wantRefusal(t, d.speak(bob, byBob, "goal.create", d.company, SaveGoal{ID: uid(32), Title: new("g")}), ledger.Unauthorized, "")
	wantRefusal(t, d.speak(bob, key, "goal.create", d.company, SaveGoal{ID: uid(33), Title: new("g")}), ledger.Unauthorized, "")
	wantRefusal(t, d.speak(asNode, byNode, "user.sign_in", "", again), ledger.Forbidden, "This account is suspended")
	if IsAdmin(d.tx, bob.ID) {
		t.Error("a suspended user administers the mesh")
	}
	// One who is shut out does not count as the administrator who is left.
	wantRefusal(t, d.speak(ann, byAnn, "user.admin", "", AppointAdmin{User: ann.ID}), ledger.Conflict, "The last administrator of the instance can not lose the role")
	if err := d.speak(ann, byAnn, "user.suspend", "", SuspendUser{User: bob.ID}); err != nil {
		t.Fatal(err)
	}
	if err := d.speak(bob, key, "goal.create", d.company, SaveGoal{ID: uid(34), Title: new("g")}); err != nil {
		t.Errorf("the key of one who was let in again: %v", err)
	}
	wantRefusal(t, d.speak(bob, byBob, "goal.create", d.company, SaveGoal{ID: uid(35), Title: new("g")}), ledger.Unauthorized, "")
	if err := d.speak(asNode, byNode, "user.sign_in", "", again); err != nil {
		t.Error(err)
	}
}

func TestWhoMaySignUp(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.signsIn(t)
	set := func(v string) {
		t.Helper()
		d.must(t, board, "instance.settings", PatchSettings{Section: "general", Values: json.RawMessage(`{"signUps":"` + v + `"}`)}, nil)
	}
	up := func(n int, invite string) error {
		return d.speak(asNode, byNode, "user.create", "", CreateUser{ID: uid(n), Name: "x", Email: string(rune('a'+n)) + "@example.com", Password: "kept", Session: NewSession{uid(n + 50), tokenHash(n)}, Invite: invite})
	}
	set(SignUpsClosed)
	if err := up(1, ""); err != nil {
		t.Fatalf("the first of all: %v", err)
	}
	wantRefusal(t, up(2, ""), ledger.Forbidden, "Nobody can sign up here any more")
	invite := func(n int, joins JoinType, until Time) string {
		i := Invite{ID: uid(n), Company: d.company, Hash: tokenHash(n), Joins: joins, Role: RoleViewer, ExpiresAt: until, CreatedAt: 1, UpdatedAt: 1}
		d.tx.Set(inviteCompanyKey(i.ID), []byte(d.company))
		d.tx.Set(inviteTokenKey(i.Hash), []byte(i.ID))
		invites.Put(d.tx, d.company, i.ID, i)
		return i.Hash
	}
	later := TimeOf(d.now) + 1_000_000
	wantRefusal(t, up(2, invite(200, JoinHuman, later)), ledger.Forbidden, "Nobody can sign up here any more")
	set(SignUpsInvited)
	wantRefusal(t, up(3, ""), ledger.Forbidden, "Signing up takes an invite")
	wantRefusal(t, up(3, tokenHash(999)), ledger.Forbidden, "Signing up takes an invite")
	wantRefusal(t, up(3, invite(201, JoinAgent, later)), ledger.Forbidden, "Signing up takes an invite")
	wantRefusal(t, up(3, invite(202, JoinHuman, 1)), ledger.Forbidden, "Signing up takes an invite")
	if err := up(4, invite(203, JoinBoth, later)); err != nil {
		t.Error(err)
	}
	set(SignUpsOpen)
	if err := up(5, ""); err != nil {
		t.Error(err)
	}
}
