package people_test

import (
	"crypto/sha256"
	"encoding/json"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// A suspended user is rejected with every credential until the suspension is lifted.
func TestSuspendedUsersAreShutOut(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	d.SignsIn(t)
	ann, byAnn := d.Person(t, 10, "Ann")
	bob, byBob := d.Person(t, 20, "Bob")
	if err := d.Speak(ann, byAnn, "user.claim", "", people.ClaimInstance{}); err != nil {
		t.Fatal(err)
	}
	companytest.WantRefusal(t, d.Speak(bob, byBob, "user.suspend", "", people.SuspendUser{User: ann.ID, Suspend: true}),
		ledger.Forbidden, "Instance admin required")
	companytest.WantRefusal(t, d.Speak(ann, byAnn, "user.suspend", "", people.SuspendUser{User: ann.ID, Suspend: true}),
		ledger.Conflict, "You can not suspend yourself")
	companytest.WantRefusal(t, d.Speak(ann, byAnn, "user.suspend", "", people.SuspendUser{User: companytest.UID(99),
		Suspend: true}), ledger.NotFound, "User not found")
	if err := d.Speak(ann, byAnn, "user.admin", "", people.AppointAdmin{User: bob.ID, Admin: true}); err != nil {
		t.Fatal(err)
	}
	key := ledger.Credential{Kind: "board_key", ID: companytest.UID(30)}
	if err := d.Speak(bob, byBob, "board_key.create", "", people.CreateBoardKey{ID: companytest.UID(30), Name: "k",
		Hash: companytest.TokenHash(30)}); err != nil {
		t.Fatal(err)
	}
	make1 := entity.SaveGoal{ID: companytest.UID(31), Title: new("g")}
	if err := d.Speak(bob, key, "goal.create", d.Company, make1); err != nil {
		t.Fatal(err)
	}
	again := people.SignIn{User: bob.ID, Password: sha256.Sum256([]byte("kept of Bob")),
		Session: people.NewSession{ID: companytest.UID(40), Hash: companytest.TokenHash(40)}}
	for range 2 { // suspending twice has the effect of once
		if err := d.Speak(ann, byAnn, "user.suspend", "", people.SuspendUser{User: bob.ID, Suspend: true}); err != nil {
			t.Fatal(err)
		}
	}
	companytest.WantRefusal(t, d.Speak(bob, byBob, "goal.create", d.Company, entity.SaveGoal{ID: companytest.UID(32),
		Title: new("g")}), ledger.Unauthorized, "Board authentication required")
	companytest.WantRefusal(t, d.Speak(bob, key, "goal.create", d.Company, entity.SaveGoal{ID: companytest.UID(33),
		Title: new("g")}), ledger.Unauthorized, "Agent token did not verify; obtain fresh credentials and retry")
	companytest.WantRefusal(t, d.Speak(companytest.AsNode, companytest.ByNode, "user.sign_in", "", again),
		ledger.Forbidden, "This account is suspended")
	if people.IsAdmin(d.Tx, bob.ID) {
		t.Error("a suspended user administers the mesh")
	}
	// A suspended administrator does not count as the one who must remain.
	companytest.WantRefusal(t, d.Speak(ann, byAnn, "user.admin", "", people.AppointAdmin{User: ann.ID}), ledger.Conflict,
		"The last administrator of the instance can not lose the role")
	if err := d.Speak(ann, byAnn, "user.suspend", "", people.SuspendUser{User: bob.ID}); err != nil {
		t.Fatal(err)
	}
	if err := d.Speak(bob, key, "goal.create", d.Company, entity.SaveGoal{ID: companytest.UID(34),
		Title: new("g")}); err != nil {
		t.Errorf("the key of one who was let in again: %v", err)
	}
	companytest.WantRefusal(t, d.Speak(bob, byBob, "goal.create", d.Company, entity.SaveGoal{ID: companytest.UID(35),
		Title: new("g")}), ledger.Unauthorized, "Board authentication required")
	if err := d.Speak(companytest.AsNode, companytest.ByNode, "user.sign_in", "", again); err != nil {
		t.Error(err)
	}
}

func TestWhoMaySignUp(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	d.SignsIn(t)
	set := func(v string) {
		t.Helper()
		d.Must(t, companytest.Board, "instance.settings", company.PatchSettings{Section: "general",
			Values: json.RawMessage(`{"signUps":"` + v + `"}`)}, nil)
	}
	up := func(n int, invite string) error {
		return d.Speak(companytest.AsNode, companytest.ByNode, "user.create", "", people.CreateUser{ID: companytest.UID(n),
			Name: "x", Email: string(rune('a'+n)) + "@example.com", Password: "kept",
			Session: people.NewSession{ID: companytest.UID(n + 50), Hash: companytest.TokenHash(n)}, Invite: invite})
	}
	set(people.SignUpsClosed)
	if err := up(1, ""); err != nil {
		t.Fatalf("the first of all: %v", err)
	}
	companytest.WantRefusal(t, up(2, ""), ledger.Forbidden, "Nobody can sign up here any more")
	invite := func(n int, joins people.JoinType, until core.Time) string {
		i := people.Invite{ID: companytest.UID(n), Company: d.Company, Hash: companytest.TokenHash(n), Joins: joins,
			Role: people.RoleViewer, ExpiresAt: until, CreatedAt: 1, UpdatedAt: 1}
		d.Tx.Set(people.InviteCompanyKey(i.ID), []byte(d.Company))
		d.Tx.Set(people.InviteTokenKey(i.Hash), []byte(i.ID))
		people.Invites.Put(d.Tx, d.Company, i.ID, i)
		return i.Hash
	}
	later := core.TimeOf(d.Now) + 1_000_000
	companytest.WantRefusal(t, up(2, invite(200, people.JoinHuman, later)), ledger.Forbidden,
		"Nobody can sign up here any more")
	set(people.SignUpsInvited)
	companytest.WantRefusal(t, up(3, ""), ledger.Forbidden, "Signing up takes an invite")
	companytest.WantRefusal(t, up(3, companytest.TokenHash(999)), ledger.Forbidden, "Signing up takes an invite")
	companytest.WantRefusal(t, up(3, invite(201, people.JoinAgent, later)), ledger.Forbidden, "Signing up takes an invite")
	companytest.WantRefusal(t, up(3, invite(202, people.JoinHuman, 1)), ledger.Forbidden, "Signing up takes an invite")
	if err := up(4, invite(203, people.JoinBoth, later)); err != nil {
		t.Error(err)
	}
	set(people.SignUpsOpen)
	if err := up(5, ""); err != nil {
		t.Error(err)
	}
}
