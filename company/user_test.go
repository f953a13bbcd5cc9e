package company

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// speak authorises and carries out a command with a credential of its own.
func (d *desk) speak(actor ledger.Actor, cred ledger.Credential, kind, of string, payload any) error {
	c := d.context(board, kind, payload)
	c.Cmd.Actor, c.Cmd.Credential, c.Cmd.Company = actor, cred, of
	c.Origin, c.Mesh = "n1", "m1"
	if err := Authorize(c); err != nil {
		return err
	}
	c.Tx = d.tx.Child()
	if _, err := d.mux[kind](c); err != nil {
		return err
	}
	c.Tx.Merge()
	return nil
}

var asNode, byNode = ledger.Actor{Type: "system", ID: "auth"}, ledger.Credential{Kind: "node", ID: "n1"}

// signsIn makes the mesh one where people sign in.
func (d *desk) signsIn(t *testing.T) {
	t.Helper()
	if err := d.speak(ledger.Actor{Type: "user", ID: LocalBoard}, ledger.Credential{Kind: "local"}, "instance.auth", "", SetAuth{Mode: Authenticated}); err != nil {
		t.Fatal(err)
	}
}

func tokenHash(n int) string { return fmt.Sprintf("%064x", n) }

// person signs somebody up; their session is uid(n+1).
func (d *desk) person(t *testing.T, n int, name string) (ledger.Actor, ledger.Credential) {
	t.Helper()
	err := d.speak(asNode, byNode, "user.create", "", CreateUser{ID: uid(n), Name: name, Email: strings.ToLower(name) + "@example.com", Password: "kept of " + name, Session: NewSession{uid(n + 1), tokenHash(n)}})
	if err != nil {
		t.Fatal(err)
	}
	return ledger.Actor{Type: "user", ID: uid(n)}, ledger.Credential{Kind: "session", ID: uid(n + 1)}
}

func TestNobodyIsTheBoardWherePeopleSignIn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	local, implied := ledger.Actor{Type: "user", ID: LocalBoard}, ledger.Credential{Kind: "local"}
	key := ledger.Credential{Kind: "board_key", ID: uid(7)}
	boardKeys.Put(d.tx, uid(7), BoardKey{ID: uid(7), User: LocalBoard, Name: "k", Hash: hexHash("7")})
	work := func(cred ledger.Credential) error {
		return d.speak(local, cred, "goal.create", d.company, SaveGoal{ID: d.id(), Title: new("g")})
	}
	wantRefusal(t, d.speak(asNode, byNode, "user.create", "", CreateUser{ID: uid(20), Name: "X", Email: "x@example.com", Password: "p", Session: NewSession{uid(21), tokenHash(1)}}), ledger.Conflict, "")
	for _, cred := range []ledger.Credential{implied, key} {
		if err := work(cred); err != nil {
			t.Fatalf("%s while nobody signs in: %v", cred.Kind, err)
		}
	}
	d.signsIn(t)
	wantRefusal(t, work(implied), ledger.Forbidden, "Board access required")
	wantRefusal(t, work(key), ledger.Unauthorized, "")
	wantRefusal(t, d.speak(local, implied, "instance.auth", "", SetAuth{Mode: LocalTrusted}), ledger.Forbidden, "Board access required")
	wantRefusal(t, d.speak(asNode, byNode, "instance.auth", "", SetAuth{Mode: LocalTrusted}), ledger.Forbidden, "")

	ann, in := d.person(t, 20, "Ann")
	wantRefusal(t, d.speak(ann, in, "instance.auth", "", SetAuth{Mode: LocalTrusted}), ledger.Forbidden, "Instance admin required")
	wantRefusal(t, d.speak(ann, in, "token.create", "", struct{}{}), ledger.Forbidden, "Instance admin required")
	wantRefusal(t, d.speak(ann, in, "goal.create", d.company, SaveGoal{ID: d.id(), Title: new("g")}), ledger.Forbidden, "User does not have access to this company")
	for range 2 { // once, however often it is asked
		if err := d.speak(ann, in, "user.claim", "", ClaimInstance{}); err != nil {
			t.Fatal(err)
		}
	}
	bob, his := d.person(t, 30, "Bob")
	wantRefusal(t, d.speak(bob, his, "user.claim", "", ClaimInstance{}), ledger.Conflict, "")
	wantRefusal(t, d.speak(ann, in, "user.admin", "", AppointAdmin{User: ann.ID}), ledger.Conflict, "")
	wantRefusal(t, d.speak(bob, his, "user.admin", "", AppointAdmin{User: bob.ID, Admin: true}), ledger.Forbidden, "Instance admin required")
	wantRefusal(t, d.speak(bob, in, "user.update", "", ChangeUser{Name: new("Mallory")}), ledger.Unauthorized, "Board authentication required")
	wantRefusal(t, d.speak(bob, ledger.Credential{Kind: "session", ID: uid(99)}, "user.update", "", ChangeUser{}), ledger.Unauthorized, "Board authentication required")
	if err := d.speak(ann, in, "user.admin", "", AppointAdmin{User: bob.ID, Admin: true}); err != nil {
		t.Fatal(err)
	}
	if err := d.speak(bob, his, "user.admin", "", AppointAdmin{User: ann.ID}); err != nil {
		t.Fatal(err)
	}
	if IsAdmin(d.tx, ann.ID) || !IsAdmin(d.tx, bob.ID) {
		t.Error("Ann still administers, or Bob does not")
	}
	if err := d.speak(bob, his, "instance.auth", "", SetAuth{Mode: LocalTrusted}); err != nil {
		t.Fatal(err)
	}
	if err := work(implied); err != nil {
		t.Errorf("after an administrator went back: %v", err)
	}
}

func TestSignInsEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.signsIn(t)
	ann, first := d.person(t, 20, "Ann")
	rename := func(cred ledger.Credential) error {
		return d.speak(ann, cred, "user.update", "", ChangeUser{Name: new("Anna")})
	}
	in := func(n int) ledger.Credential {
		t.Helper()
		err := d.speak(asNode, byNode, "user.sign_in", "", SignIn{User: ann.ID, Password: sha256.Sum256([]byte("kept of Ann")), Session: NewSession{uid(n), tokenHash(n)}})
		if err != nil {
			t.Fatal(err)
		}
		return ledger.Credential{Kind: "session", ID: uid(n)}
	}
	gone := func(what string, creds ...ledger.Credential) {
		t.Helper()
		for _, cred := range creds {
			if r := refused(t, rename(cred)); r.Code != ledger.Unauthorized {
				t.Errorf("%s: %v", what, r)
			}
		}
	}
	second := in(40)
	if err := d.speak(ann, first, "user.sign_out", "", SignOut{}); err != nil {
		t.Fatal(err)
	}
	gone("signed out", first)
	if err := rename(second); err != nil {
		t.Errorf("another sign-in: %v", err)
	}
	third := in(41)
	if err := d.speak(ann, third, "user.password", "", ChangePassword{Was: sha256.Sum256([]byte("kept of Ann")), Password: "another"}); err != nil {
		t.Fatal(err)
	}
	gone("before the password changed", second)
	if err := rename(third); err != nil {
		t.Errorf("who changed the password: %v", err)
	}
	// A node that saw the password that was is too late.
	wantRefusal(t, d.speak(asNode, byNode, "user.sign_in", "", SignIn{User: ann.ID, Password: sha256.Sum256([]byte("kept of Ann")), Session: NewSession{uid(42), tokenHash(42)}}),
		ledger.Unauthorized, "Invalid email or password")
	wantRefusal(t, d.speak(ann, ledger.Credential{Kind: "board_key", ID: uid(7)}, "user.sign_out", "", SignOut{}), ledger.Unauthorized, "")

	boardKeys.Put(d.tx, uid(7), BoardKey{ID: uid(7), User: ann.ID, Name: "k", Hash: hexHash("7")})
	d.tx.Set(boardUserKey(ann.ID, uid(7)), nil)
	key := ledger.Credential{Kind: "board_key", ID: uid(7)}
	if err := d.speak(ann, key, "user.revoke", "", EndCredentials{User: ann.ID}); err != nil {
		t.Fatal(err)
	}
	gone("all ended", third)
	if err := rename(key); err != nil {
		t.Errorf("a key stays when only sign-ins end: %v", err)
	}
	bob, his := d.person(t, 50, "Bob")
	wantRefusal(t, d.speak(bob, his, "user.revoke", "", EndCredentials{User: ann.ID, Keys: true}), ledger.Forbidden, "Instance admin required")
	if err := d.speak(ann, key, "user.revoke", "", EndCredentials{User: ann.ID, Keys: true}); err != nil {
		t.Fatal(err)
	}
	gone("keys revoked", key)
	d.now = d.now.Add(SessionAge)
	if r := refused(t, d.speak(bob, his, "user.update", "", ChangeUser{})); r.Code != ledger.Unauthorized {
		t.Errorf("expired: %v", r)
	}
}

// Whatever people do, each sign-in has its rows, no user has too many, and no
// token opens what has ended.
func TestSignInsAndTheirRowsAgree(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.signsIn(t)
	r := rand.New(rand.NewPCG(7, 7))
	const people = 3
	kept, live := map[string]string{}, map[string]ledger.Actor{}
	for n := range people {
		a, in := d.person(t, 100+2*n, "P"+fmt.Sprint(n))
		kept[a.ID], live[in.ID] = "kept of P"+fmt.Sprint(n), a
	}
	pick := func() (ledger.Actor, ledger.Credential) {
		for id, a := range live {
			return a, ledger.Credential{Kind: "session", ID: id}
		}
		return ledger.Actor{Type: "user", ID: uid(100)}, ledger.Credential{Kind: "session", ID: uid(1)}
	}
	for step := range 600 {
		user := uid(100 + 2*r.IntN(people))
		var err error
		switch r.IntN(10) {
		case 0:
			a, in := pick()
			err = d.speak(a, in, "user.sign_out", "", SignOut{})
		case 1:
			a, in := pick()
			next := fmt.Sprint("kept ", step)
			if err = d.speak(a, in, "user.password", "", ChangePassword{Was: sha256.Sum256([]byte(kept[a.ID])), Password: next}); err == nil {
				kept[a.ID] = next
			}
		case 2:
			if r.IntN(4) == 0 {
				a, in := pick()
				err = d.speak(a, in, "user.revoke", "", EndCredentials{User: a.ID, Keys: true})
			}
		case 3:
			d.now = d.now.Add(time.Duration(r.IntN(48)) * time.Hour)
		default:
			err = d.speak(asNode, byNode, "user.sign_in", "", SignIn{User: user, Password: sha256.Sum256([]byte(kept[user])), Session: NewSession{uid(10_000 + step), tokenHash(step + 1)}})
		}
		if err != nil {
			if c := refused(t, err).Code; c != ledger.Unauthorized {
				t.Fatalf("step %d: %v", step, err)
			}
		}
		clear(live)
		of := map[string]int{}
		for id, s := range userSessions.All(d.tx) {
			of[s.User]++
			if s.Valid(TimeOf(d.now)) {
				live[id] = ledger.Actor{Type: "user", ID: s.User}
			}
			if by, ok := SessionByHash(d.tx, s.Hash); !ok || by != s || !d.tx.Has(userSessionKey(s.User, id)) {
				t.Fatalf("step %d: session %s has not its rows", step, id)
			}
		}
		tokens, listed := 0, 0
		for range d.tx.Prefix(sessionTokenKey("")) {
			tokens++
		}
		for n := range people {
			user := uid(100 + 2*n)
			listed += len(sessionsOf(d.tx, user))
			if of[user] > MaxUserSessions {
				t.Fatalf("step %d: %d sign-ins of one user", step, of[user])
			}
		}
		if all := of[uid(100)] + of[uid(102)] + of[uid(104)]; tokens != all || listed != all {
			t.Fatalf("step %d: %d sign-ins, %d tokens, %d listed", step, all, tokens, listed)
		}
	}
}
