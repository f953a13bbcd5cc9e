package transport

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/identity"
)

var testGenesis = []byte("the founding of a mesh")

// asked is the configuration of a member of the mesh of testGenesis that decides
// what it is asked by what comes in.
func asked(cfg Config, got chan Asked, decide chan error) Config {
	cfg.Mesh = func() identity.MeshID { return identity.MeshIDOf(testGenesis) }
	cfg.Genesis = func() []byte { return testGenesis }
	cfg.OnAsk = func(a Asked) (func(context.Context) ([]byte, error), error) {
		if string(a.Request) == "one too many" {
			return nil, errors.New("too many wait already")
		}
		got <- a
		return func(ctx context.Context) ([]byte, error) {
			select {
			case err := <-decide:
				return []byte("welcome"), err
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}, nil
	}
	return cfg
}

func founderOf(k *identity.Keys) identity.Roster {
	return func(id identity.NodeID) (ed25519.PublicKey, bool, bool) { return k.Public(), false, id == k.ID() }
}

// Both sides show one code, and the node is let in when somebody says so.
func TestAsk(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		got, decide := make(chan Asked, 1), make(chan error, 1)
		a := open(t, asked(testConfig(w.socket(), ka, newRoster(ka)), got, decide))
		b := open(t, joining(testConfig(w.socket(), kb, nil)))

		m, err := b.Greet(t.Context(), addrOf(a))
		if err != nil {
			t.Fatal(err)
		}
		if m.Node != ka.ID() || !bytes.Equal(m.Genesis, testGenesis) || m.Vouched(founderOf(ka)) != nil {
			t.Errorf("met %s of mesh %s", m.Node.Short(), m.Mesh.Short())
		}
		if m.Vouched(founderOf(testKeys(9))) == nil {
			t.Error("whoever the founder did not let in is believed")
		}
		waits := make(chan struct{})
		type answer struct {
			b   []byte
			err error
		}
		back := make(chan answer, 1)
		go func() {
			b, err := m.Ask(t.Context(), []byte("let me in"), func() { close(waits) })
			back <- answer{b, err}
		}()
		<-waits
		q := <-got
		if q.Code != m.Code || !q.From.Node.Equal(kb.Public()) || string(q.Request) != "let me in" {
			t.Errorf("asked %q with code %s by %s; the node shows %s", q.Request, q.Code, identity.NodeIDOf(q.From.Node).
				Short(), m.Code)
		}
		soon.Until(t, "whoever waits holds no place among handshakes", func() bool { return a.Stats().Handshakes == 0 })
		select {
		case r := <-back:
			t.Fatalf("answered before somebody decided: %q, %v", r.b, r.err)
		case <-time.After(50 * time.Millisecond):
		}
		decide <- nil
		if r := <-back; r.err != nil || string(r.b) != "welcome" {
			t.Errorf("answer: %q, %v", r.b, r.err)
		}

		again, err := b.Greet(t.Context(), addrOf(a))
		if err != nil {
			t.Fatal(err)
		}
		if again.Code == m.Code {
			t.Error("two requests have one code")
		}
		decide <- errors.New("not this one")
		_, err = again.Ask(t.Context(), []byte("let me in"), nil)
		wantRefused(t, err, JoinRefused)
		if err == nil || !strings.Contains(err.Error(), "not this one") {
			t.Errorf("the reason was lost: %v", err)
		}
		if m, err = b.Greet(t.Context(), addrOf(a)); err != nil {
			t.Fatal(err)
		}
		_, err = m.Ask(t.Context(), []byte("one too many"), nil)
		wantRefused(t, err, Busy)
	})
}

// Whoever stands between a node and the mesh shows: the codes differ, and it is
// vouched for by nobody.
func TestManInTheMiddle(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb, km := testKeys(1), testKeys(2), testKeys(3)
		got, heard := make(chan Asked, 1), make(chan Asked, 1)
		a := open(t, asked(testConfig(w.socket(), ka, newRoster(ka)), got, make(chan error)))
		between := open(t, asked(testConfig(w.socket(), km, newRoster(km)), heard, make(chan error)))
		out := open(t, joining(testConfig(w.socket(), km, nil))) // the other face of the man
		b := open(t, joining(testConfig(w.socket(), kb, nil)))

		m, err := b.Greet(t.Context(), addrOf(between))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if m.Vouched(founderOf(ka)) == nil {
			t.Error("whoever stands between is taken for a member")
		}
		on, err := out.Greet(t.Context(), addrOf(a))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go on.Ask(ctx, []byte("let me in"), nil)
		if q := <-got; q.Code == m.Code {
			t.Errorf("the mesh and the node show one code, %s, with a man between", q.Code)
		}
	})
}

// A member of a mesh does not ask, a revoked node is not heard, and a node that
// has no mesh lets nobody in.
func TestWhoMayNotAsk(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		a := open(t, asked(testConfig(w.socket(), ka, r), make(chan Asked, 9), make(chan error)))
		member := open(t, testConfig(w.socket(), testKeys(4), newRoster()))
		_, err := member.Greet(t.Context(), addrOf(a))
		wantRefused(t, err, WrongMesh)

		r.revoke(kb)
		b := open(t, joining(testConfig(w.socket(), kb, nil)))
		_, err = b.Greet(t.Context(), addrOf(a))
		wantRefused(t, err, Revoked)

		_, err = b.Greet(t.Context(), addrOf(open(t, joining(testConfig(w.socket(), testKeys(5), nil)))))
		wantRefused(t, err, Unknown)

		plain := open(t, testConfig(w.socket(), testKeys(6), newRoster()))
		_, err = b.Greet(t.Context(), addrOf(plain))
		wantRefused(t, err, NotAllowed)

		// What claims a mesh that it is not of is found out by the genesis.
		liar := testConfig(w.socket(), testKeys(7), newRoster())
		liar = asked(liar, make(chan Asked, 9), nil)
		liar.Genesis = func() []byte { return []byte("another founding") }
		_, err = b.Greet(t.Context(), addrOf(open(t, liar)))
		wantRefused(t, err, BadIdentity)
	})
}
