package companytest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// Speak authorises and carries out a command with a credential of its own.
func (d *Desk) Speak(actor ledger.Actor, cred ledger.Credential, kind string, of ledger.CompanyID, payload any) error {
	c := d.Context(Board, kind, payload)
	c.Cmd.Actor, c.Cmd.Credential, c.Cmd.Company = actor, cred, of
	c.Origin, c.Mesh = "n1", "m1"
	if err := people.Authorize(c); err != nil {
		return err
	}
	c.Tx = d.Tx.Child()
	if _, err := d.Mux[kind](c); err != nil {
		return err
	}
	c.Tx.Merge()
	return nil
}

var AsNode, ByNode = ledger.Actor{Type: "system", ID: "auth"}, ledger.Credential{Kind: "node", ID: "n1"}

// SignsIn makes the mesh one where people sign in.
func (d *Desk) SignsIn(t *testing.T) {
	t.Helper()
	if err := d.Speak(ledger.Actor{Type: "user", ID: people.LocalBoard}, ledger.Credential{Kind: "local"}, "instance.auth",
		"", people.SetAuth{Mode: people.Authenticated}); err != nil {
		t.Fatal(err)
	}
}

func TokenHash(n int) string { return fmt.Sprintf("%064x", n) }

// Person signs somebody up; their session is uid(n+1).
func (d *Desk) Person(t *testing.T, n int, name string) (ledger.Actor, ledger.Credential) {
	t.Helper()
	err := d.Speak(AsNode, ByNode, "user.create", "", people.CreateUser{ID: UID(n), Name: name,
		Email: strings.ToLower(name) + "@example.com", Password: "kept of " + name, Session: people.NewSession{ID: UID(n + 1),
			Hash: TokenHash(n)}})
	if err != nil {
		t.Fatal(err)
	}
	return ledger.Actor{Type: "user", ID: UID(n)}, ledger.Credential{Kind: "session", ID: UID(n + 1)}
}
