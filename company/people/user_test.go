package people_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestNobodyIsTheBoardWherePeopleSignIn(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	local, implied := ledger.Actor{Type: "user", ID: people.LocalBoard}, ledger.Credential{Kind: "local"}
	key := ledger.Credential{Kind: "board_key", ID: companytest.UID(7)}
	people.BoardKeys.Put(d.Tx, companytest.UID(7), people.BoardKey{ID: companytest.UID(7), User: people.LocalBoard,
		Name: "k", Hash: companytest.HexHash("7")})
	work := func(cred ledger.Credential) error {
		return d.Speak(local, cred, "goal.create", d.Company, entity.SaveGoal{ID: d.ID(), Title: new("g")})
	}
	companytest.WantRefusal(t, d.Speak(companytest.AsNode, companytest.ByNode, "user.create", "",
		people.CreateUser{ID: companytest.UID(20), Name: "X", Email: "x@example.com", Password: "p",
			Session: people.NewSession{ID: companytest.UID(21), Hash: companytest.TokenHash(1)}}), ledger.Conflict,
		"Nobody can sign in while the mode is local_trusted")
	for _, cred := range []ledger.Credential{implied, key} {
		if err := work(cred); err != nil {
			t.Fatalf("%s while nobody signs in: %v", cred.Kind, err)
		}
	}
	d.SignsIn(t)
	companytest.WantRefusal(t, work(implied), ledger.Forbidden, "Board access required")
	companytest.WantRefusal(t, work(key), ledger.Unauthorized,
		"Agent token did not verify; obtain fresh credentials and retry")
	companytest.WantRefusal(t, d.Speak(local, implied, "instance.auth", "", people.SetAuth{Mode: people.LocalTrusted}),
		ledger.Forbidden, "Board access required")
	companytest.WantRefusal(t, d.Speak(companytest.AsNode, companytest.ByNode, "instance.auth", "",
		people.SetAuth{Mode: people.LocalTrusted}), ledger.Forbidden, "The actor may not do this")

	ann, in := d.Person(t, 20, "Ann")
	companytest.WantRefusal(t, d.Speak(ann, in, "instance.auth", "", people.SetAuth{Mode: people.LocalTrusted}),
		ledger.Forbidden, "Instance admin required")
	companytest.WantRefusal(t, d.Speak(ann, in, "token.create", "", struct{}{}), ledger.Forbidden,
		"Instance admin required")
	companytest.WantRefusal(t, d.Speak(ann, in, "goal.create", d.Company, entity.SaveGoal{ID: d.ID(), Title: new("g")}),
		ledger.Forbidden, "User does not have access to this company")
	for range 2 { // repeating it changes nothing
		if err := d.Speak(ann, in, "user.claim", "", people.ClaimInstance{}); err != nil {
			t.Fatal(err)
		}
	}
	bob, his := d.Person(t, 30, "Bob")
	companytest.WantRefusal(t, d.Speak(bob, his, "user.claim", "", people.ClaimInstance{}), ledger.Conflict,
		"The instance has its first administrator already")
	companytest.WantRefusal(t, d.Speak(ann, in, "user.admin", "", people.AppointAdmin{User: ann.ID}), ledger.Conflict,
		"The last administrator of the instance can not lose the role")
	companytest.WantRefusal(t, d.Speak(bob, his, "user.admin", "", people.AppointAdmin{User: bob.ID, Admin: true}),
		ledger.Forbidden, "Instance admin required")
	companytest.WantRefusal(t, d.Speak(bob, in, "user.update", "", people.ChangeUser{Name: new("Mallory")}),
		ledger.Unauthorized, "Board authentication required")
	companytest.WantRefusal(t, d.Speak(bob, ledger.Credential{Kind: "session", ID: companytest.UID(99)}, "user.update", "",
		people.ChangeUser{}), ledger.Unauthorized, "Board authentication required")
	if err := d.Speak(ann, in, "user.admin", "", people.AppointAdmin{User: bob.ID, Admin: true}); err != nil {
		t.Fatal(err)
	}
	if err := d.Speak(bob, his, "user.admin", "", people.AppointAdmin{User: ann.ID}); err != nil {
		t.Fatal(err)
	}
	if people.IsAdmin(d.Tx, ann.ID) || !people.IsAdmin(d.Tx, bob.ID) {
		t.Error("Ann still administers, or Bob does not")
	}
	if err := d.Speak(bob, his, "instance.auth", "", people.SetAuth{Mode: people.LocalTrusted}); err != nil {
		t.Fatal(err)
	}
	if err := work(implied); err != nil {
		t.Errorf("after an administrator went back: %v", err)
	}
}

func TestSignInsEnd(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	d.SignsIn(t)
	ann, first := d.Person(t, 20, "Ann")
	rename := func(cred ledger.Credential) error {
		return d.Speak(ann, cred, "user.update", "", people.ChangeUser{Name: new("Anna")})
	}
	in := func(n int) ledger.Credential {
		t.Helper()
		err := d.Speak(companytest.AsNode, companytest.ByNode, "user.sign_in", "",
			people.SignIn{User: ann.ID, Password: sha256.Sum256([]byte("kept of Ann")),
				Session: people.NewSession{ID: companytest.UID(n), Hash: companytest.TokenHash(n)}})
		if err != nil {
			t.Fatal(err)
		}
		return ledger.Credential{Kind: "session", ID: companytest.UID(n)}
	}
	gone := func(what string, creds ...ledger.Credential) {
		t.Helper()
		for _, cred := range creds {
			if r := companytest.Refused(t, rename(cred)); r.Code != ledger.Unauthorized {
				t.Errorf("%s: %v", what, r)
			}
		}
	}
	second := in(40)
	if err := d.Speak(ann, first, "user.sign_out", "", people.SignOut{}); err != nil {
		t.Fatal(err)
	}
	gone("signed out", first)
	if err := rename(second); err != nil {
		t.Errorf("another sign-in: %v", err)
	}
	third := in(41)
	if err := d.Speak(ann, third, "user.password", "", people.ChangePassword{Was: sha256.Sum256([]byte("kept of Ann")),
		Password: "another"}); err != nil {
		t.Fatal(err)
	}
	gone("before the password changed", second)
	if err := rename(third); err != nil {
		t.Errorf("who changed the password: %v", err)
	}
	// A change that was checked against an older password is refused.
	companytest.WantRefusal(t, d.Speak(companytest.AsNode, companytest.ByNode, "user.sign_in", "",
		people.SignIn{User: ann.ID, Password: sha256.Sum256([]byte("kept of Ann")),
			Session: people.NewSession{ID: companytest.UID(42), Hash: companytest.TokenHash(42)}}),
		ledger.Unauthorized, "Invalid email or password")
	companytest.WantRefusal(t, d.Speak(ann, ledger.Credential{Kind: "board_key", ID: companytest.UID(7)}, "user.sign_out",
		"", people.SignOut{}), ledger.Unauthorized, "Agent token did not verify; obtain fresh credentials and retry")

	people.BoardKeys.Put(d.Tx, companytest.UID(7), people.BoardKey{ID: companytest.UID(7), User: ann.ID, Name: "k",
		Hash: companytest.HexHash("7")})
	d.Tx.Set(people.BoardUserKey(ann.ID, companytest.UID(7)), nil)
	key := ledger.Credential{Kind: "board_key", ID: companytest.UID(7)}
	if err := d.Speak(ann, key, "user.revoke", "", people.EndCredentials{User: ann.ID}); err != nil {
		t.Fatal(err)
	}
	gone("all ended", third)
	if err := rename(key); err != nil {
		t.Errorf("a key stays when only sign-ins end: %v", err)
	}
	bob, his := d.Person(t, 50, "Bob")
	companytest.WantRefusal(t, d.Speak(bob, his, "user.revoke", "", people.EndCredentials{User: ann.ID, Keys: true}),
		ledger.Forbidden, "Instance admin required")
	if err := d.Speak(ann, key, "user.revoke", "", people.EndCredentials{User: ann.ID, Keys: true}); err != nil {
		t.Fatal(err)
	}
	gone("keys revoked", key)
	d.Now = d.Now.Add(people.SessionAge)
	if r := companytest.Refused(t, d.Speak(bob, his, "user.update", "",
		people.ChangeUser{})); r.Code != ledger.Unauthorized {
		t.Errorf("expired: %v", r)
	}
}

// After any sequence of commands, each session has its index rows, no user has too many
// sessions, and the token of an ended session is rejected.
func TestSignInsAndTheirRowsAgree(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	d.SignsIn(t)
	r := rand.New(rand.NewPCG(7, 7))
	const thePeople = 3
	kept, live := map[string]string{}, map[string]ledger.Actor{}
	for n := range thePeople {
		a, in := d.Person(t, 100+2*n, "P"+fmt.Sprint(n))
		kept[a.ID], live[in.ID] = "kept of P"+fmt.Sprint(n), a
	}
	pick := func() (ledger.Actor, ledger.Credential) {
		for id, a := range live {
			return a, ledger.Credential{Kind: "session", ID: id}
		}
		return ledger.Actor{Type: "user", ID: companytest.UID(100)}, ledger.Credential{Kind: "session",
			ID: companytest.UID(1)}
	}
	for step := range 600 {
		user := companytest.UID(100 + 2*r.IntN(thePeople))
		var err error
		switch r.IntN(10) {
		case 0:
			a, in := pick()
			err = d.Speak(a, in, "user.sign_out", "", people.SignOut{})
		case 1:
			a, in := pick()
			next := fmt.Sprint("kept ", step)
			if err = d.Speak(a, in, "user.password", "", people.ChangePassword{Was: sha256.Sum256([]byte(kept[a.ID])),
				Password: next}); err == nil {
				kept[a.ID] = next
			}
		case 2:
			if r.IntN(4) == 0 {
				a, in := pick()
				err = d.Speak(a, in, "user.revoke", "", people.EndCredentials{User: a.ID, Keys: true})
			}
		case 3:
			d.Now = d.Now.Add(time.Duration(r.IntN(48)) * time.Hour)
		default:
			err = d.Speak(companytest.AsNode, companytest.ByNode, "user.sign_in", "",
				people.SignIn{User: user, Password: sha256.Sum256([]byte(kept[user])),
					Session: people.NewSession{ID: companytest.UID(10_000 + step), Hash: companytest.TokenHash(step + 1)}})
		}
		if err != nil {
			if c := companytest.Refused(t, err).Code; c != ledger.Unauthorized {
				t.Fatalf("step %d: %v", step, err)
			}
		}
		clear(live)
		of := map[string]int{}
		for id, s := range people.UserSessions.All(d.Tx) {
			of[s.User]++
			if s.Valid(core.TimeOf(d.Now)) {
				live[id] = ledger.Actor{Type: "user", ID: s.User}
			}
			if by, ok := people.SessionByHash(d.Tx, s.Hash); !ok || by != s || !d.Tx.Has(people.UserSessionKey(s.User, id)) {
				t.Fatalf("step %d: session %s has not its rows", step, id)
			}
		}
		tokens, listed := 0, 0
		for range d.Tx.Prefix(people.SessionTokenKey("")) {
			tokens++
		}
		for n := range thePeople {
			user := companytest.UID(100 + 2*n)
			listed += len(people.SessionsOf(d.Tx, user))
			if of[user] > people.MaxUserSessions {
				t.Fatalf("step %d: %d sign-ins of one user", step, of[user])
			}
		}
		if all := of[companytest.UID(100)] + of[companytest.UID(102)] + of[companytest.UID(104)]; tokens != all ||
			listed != all {
			t.Fatalf("step %d: %d sign-ins, %d tokens, %d listed", step, all, tokens, listed)
		}
	}
}
