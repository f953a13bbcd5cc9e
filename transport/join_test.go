package transport

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/identity"
)

// admitting is the configuration of a member that knows one token and admits
// whoever holds it.
func admitting(cfg Config, token identity.JoinToken) Config {
	cfg.PSK = func(id string) ([]byte, bool) { return token.PSK[:], id == token.ID }
	cfg.OnJoin = func(_ context.Context, from identity.Certificate, tokenID string, request []byte) ([]byte, error) {
		if err := from.Verify(identity.ForNoise); err != nil {
			return nil, err
		}
		if string(request) == "no" {
			return nil, errors.New("the operator said no")
		}
		return fmt.Appendf(nil, "%s by %s: %s", identity.NodeIDOf(from.Node), tokenID, request), nil
	}
	return cfg
}

// joining is the configuration of a node that belongs to no mesh.
func joining(cfg Config) Config {
	cfg.Mesh = func() identity.MeshID { return "" }
	cfg.Member = newRoster().member
	return cfg
}

// Whoever holds the token gets an answer; the member knows who asked.
func TestJoin(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		token := identity.NewJoinToken(testMesh, ka.ID(), nil)
		a := open(t, admitting(testConfig(w.socket(), ka, newRoster(ka)), token))
		b := open(t, joining(testConfig(w.socket(), kb, nil)))
		dead := addrOf(open(t, testConfig(w.socket(), testKeys(3), newRoster()))) // a seed that knows nothing
		request := strings.Repeat("let me in ", 6000)
		got, err := b.Join(t.Context(), []netip.AddrPort{dead, addrOf(a)}, token, []byte(request))
		want := fmt.Sprintf("%s by %s: %s", kb.ID(), token.ID, request)
		if err != nil || string(got) != want {
			t.Fatalf("got %.60q, %v; want %.60q", got, err, want)
		}
		_, err = b.Join(t.Context(), []netip.AddrPort{addrOf(a)}, token, []byte("no"))
		wantRefused(t, err, JoinRefused)
		if err == nil || !strings.Contains(err.Error(), "the operator said no") {
			t.Errorf("the reason was lost: %v", err)
		}
		if s := a.Stats(); s.Joins != 1 || s.Refused["join_refused"] != 1 || s.Accepted != 0 || s.Connections != 0 {
			t.Errorf("counted %d joins, refused %v, %d connections", s.Joins, s.Refused, s.Connections)
		}
		if _, err := b.Join(t.Context(), nil, token, nil); !errors.Is(err, ErrNoAddress) {
			t.Errorf("join without seeds: %v", err)
		}
		if _, err := b.Join(t.Context(), []netip.AddrPort{addrOf(a)}, token, make([]byte, maxJoinRequest+1)); !errors.Is(err,
			ErrFrameTooLarge) {
			t.Errorf("join with a large request: %v", err)
		}
		soon.Until(t, "no handshake is left over", func() bool { return a.Stats().Handshakes == 0 })
	})
}

// A wrong key, an unknown token, another mesh and a revoked node get nothing.
func TestJoinRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		token := identity.NewJoinToken(testMesh, ka.ID(), nil)
		r := newRoster(ka)
		asked := make(chan string, 100)
		cfg := admitting(testConfig(w.socket(), ka, r), token)
		yes := cfg.OnJoin
		cfg.OnJoin = func(ctx context.Context, from identity.Certificate, id string, b []byte) ([]byte, error) {
			asked <- string(b)
			return yes(ctx, from, id, b)
		}
		a, b := open(t, cfg), open(t, joining(testConfig(w.socket(), kb, nil)))
		wrongKey, unknown, elsewhere := token, token, token
		wrongKey.PSK[0]++
		unknown.ID = "another"
		elsewhere.Mesh = "ffffffffffffffffffffffffffffffff"
		for name, c := range map[string]struct {
			token identity.JoinToken
			why   Reason
		}{"wrong key": {wrongKey, BadHandshake}, "unknown token": {unknown, BadHandshake},
			"other mesh": {elsewhere, WrongMesh}} {
			_, err := b.Join(t.Context(), []netip.AddrPort{addrOf(a)}, c.token, []byte("x"))
			t.Log(name, err)
			wantRefused(t, err, c.why)
		}
		r.admit(kb)
		r.revoke(kb)
		_, err := b.Join(t.Context(), []netip.AddrPort{addrOf(a)}, token, []byte("x"))
		wantRefused(t, err, Revoked)
		_, err = a.Join(t.Context(), []netip.AddrPort{addrOf(b)}, token, []byte("x")) // who has no mesh itself
		wantRefused(t, err, WrongMesh)
		if len(asked) != 0 {
			t.Errorf("%d requests came through", len(asked))
		}
		soon.Until(t, "the refusals are counted", func() bool {
			got := a.Stats().Refused
			return got["bad_handshake"] == 2 && got["revoked"] == 1
		})
	})
}

// A token opens the join stream and no other, and makes nobody a member.
func TestTokenOpensNothingElse(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		token := identity.NewJoinToken(testMesh, ka.ID(), nil)
		a := open(t, admitting(testConfig(w.socket(), ka, newRoster(ka)), token))
		b := open(t, joining(testConfig(w.socket(), kb, nil)))
		conn, s := raw(t, b, addrOf(a))
		sh, err := b.shake(conn, hello{patternJoin, token.ID})
		if err != nil {
			t.Fatal(err)
		}
		sh.psk = token.PSK[:]
		_, rec, err := sh.initiate(s, func(party) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := accepted(rec); err != nil {
			t.Fatal(err)
		}
		q, err := conn.OpenStreamSync(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		q.Write([]byte{byte(KindRaft)})
		_, err = q.Read(make([]byte, 1))
		wantRefused(t, byPeer(err), NotAllowed)
	})
}
