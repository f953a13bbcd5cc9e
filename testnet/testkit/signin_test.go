package testkit

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/client"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/node"
)

// People sign in on one node and are known on all; where they sign out, or are
// thrown out, they are refused on all; and what they typed is nowhere.
func TestSignInsAreEverywhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := Mesh(t, 3, func(i int, c *node.Config) {
		c.Dir = filepath.Join(dir, c.Name)
		if i == 2 {
			c.TLS = node.TLSOn
		}
	})
	b.Must(0, "PUT", "/api/v1/mesh/auth", map[string]string{"mode": people.Authenticated}, nil)
	b.Until("n2 has heard that people sign in", func() bool {
		a, err := b.Call(1, "GET", "/api/companies", nil, nil)
		return err == nil && a.Status == 403
	})
	secrets := canaries{"password": "canary-typed-by-ann", "new password": "canary-typed-later"}
	clients := make([]*client.Client, len(b.Nodes))
	for i, n := range b.Nodes {
		var err error
		trust := client.Trust{}
		if f := n.Fingerprint(); f != "" {
			trust.Fingerprints = []string{f}
		}
		if clients[i], err = client.New(client.Config{Nodes: []string{n.HTTPURL()}, Trust: trust, Attempts: 3}); err != nil {
			t.Fatal(err)
		}
	}
	if f := b.Nodes[2].Fingerprint(); len(f) != 64 || b.Nodes[0].Fingerprint() != "" {
		t.Fatalf("fingerprints %q and %q", b.Nodes[0].Fingerprint(), f)
	}
	stranger, err := client.New(client.Config{Nodes: []string{b.Nodes[2].HTTPURL()}, Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Get(t.Context(), "/api/health", nil); err == nil || !strings.Contains(err.Error(),
		b.Nodes[2].Fingerprint()) {
		t.Errorf("a node whose certificate nobody knows: %v", err)
	}

	ann, err := clients[0].SignUp(t.Context(), "Ann", "ann@example.com", secrets["password"], "")
	if err != nil {
		t.Fatal(err)
	}
	secrets["first session"] = ann.Session
	on := func(i int, session string) *client.Client { return clients[i].With("", session) }
	whoever := func(c *client.Client) (status int) {
		err := c.Get(t.Context(), "/api/auth/get-session", nil)
		if err == nil {
			return http.StatusOK
		}
		no, ok := err.(*client.Error)
		if !ok {
			t.Fatal(err)
		}
		return no.Status
	}
	everywhere := func(what, session string, from *client.Client, want int) {
		t.Helper()
		for i := range b.Nodes {
			c := on(i, session)
			c.Since(from.Height()) // as somebody asks who has seen what was done
			if got := whoever(c); got != want {
				t.Errorf("%s, on n%d: %d, want %d", what, i+1, got, want)
			}
		}
	}
	first := on(0, ann.Session)
	if err := first.Post(t.Context(), "/api/bootstrap/claim", struct{}{}, nil); err != nil {
		t.Fatal(err)
	}
	everywhere("signed up on n1", ann.Session, first, 200)
	// A node asks the others about a session that it has not heard of, so nobody
	// needs to have seen anything.
	again, err := clients[2].SignIn(t.Context(), "ann@example.com", secrets["password"])
	if err != nil {
		t.Fatal(err)
	}
	secrets["second session"] = again.Session
	if got := whoever(on(1, again.Session)); got != 200 {
		t.Errorf("signed in on n3, on n2 at once: %d", got)
	}
	var row struct{ ID string }
	if err := on(1, again.Session).Post(t.Context(), "/api/companies", map[string]string{"name": "Acme"},
		&row); err != nil {
		t.Fatal(err)
	}
	var members []struct {
		Name     string
		Endpoint *struct{ URL, Fingerprint string }
	}
	b.Until("n3 has told where it serves", func() bool {
		if err := on(0, ann.Session).Get(t.Context(), "/api/v1/mesh/members", &members); err != nil {
			t.Fatal(err)
		}
		for _, m := range members {
			if m.Name == "n3" {
				return m.Endpoint != nil && m.Endpoint.Fingerprint == b.Nodes[2].Fingerprint() &&
					m.Endpoint.URL == b.Nodes[2].HTTPURL()
			}
		}
		return false
	})

	second := on(1, again.Session)
	if err := second.SignOut(t.Context()); err != nil {
		t.Fatal(err)
	}
	everywhere("signed out on n2", again.Session, second, 401)
	everywhere("the other sign-in", ann.Session, second, 200)

	third, err := clients[1].SignIn(t.Context(), "ann@example.com", secrets["password"])
	if err != nil {
		t.Fatal(err)
	}
	secrets["third session"] = third.Session
	everywhere("signed in on n2", third.Session, clients[1], 200)
	changed := on(2, third.Session)
	if err := changed.Post(t.Context(), "/api/auth/change-password",
		map[string]string{"currentPassword": secrets["password"], "newPassword": secrets["new password"]}, nil); err != nil {
		t.Fatal(err)
	}
	everywhere("before the password changed", ann.Session, changed, 401)
	everywhere("who changed it", third.Session, changed, 200)
	if _, err := clients[0].SignIn(t.Context(), "ann@example.com", secrets["password"]); err == nil {
		t.Error("the password that was opens")
	}
	var key struct{ Token string }
	if err := changed.Post(t.Context(), "/api/board-api-keys", map[string]string{"name": "k"}, &key); err != nil {
		t.Fatal(err)
	}
	secrets["board key"] = key.Token
	byKey := func(i int) *client.Client { return clients[i].With(key.Token, "") }
	if err := byKey(0).Get(t.Context(), "/api/companies/"+row.ID, nil); err != nil {
		t.Error(err)
	}
	var me struct{ User struct{ ID string } }
	if err := byKey(1).Get(t.Context(), "/api/cli-auth/me", &me); err != nil {
		t.Fatal(err)
	}
	thrown := byKey(0)
	if err := thrown.Post(t.Context(), "/api/admin/users/"+me.User.ID+"/revoke-credentials", struct{}{}, nil); err != nil {
		t.Fatal(err)
	}
	everywhere("revoked", third.Session, thrown, 401)
	for i := range b.Nodes {
		c := byKey(i)
		c.Since(thrown.Height())
		if got := whoever(c); got != 401 {
			t.Errorf("a revoked key on n%d: %d", i+1, got)
		}
	}
	// Without a credential nobody is anybody, on any node.
	for i, c := range clients {
		if got := whoever(c); got != 401 {
			t.Errorf("nobody on n%d: %d", i+1, got)
		}
	}

	// The mesh stays what it is when a node is started again, also alone.
	b.Restart(1)
	if a, err := b.Call(1, "GET", "/api/companies", nil, nil); err != nil || a.Status != 403 {
		t.Errorf("nobody on a node that was started again: %v %d", err, a.Status)
	}

	for i, l := range b.Logs {
		secrets.look(t, "the log of n"+string(rune('1'+i)), l.String())
	}
	for _, n := range b.Nodes {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		b.dead[n] = true
	}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		secrets.look(t, path, string(raw))
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
