package ledger

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/identity"
)

// mesh is a world with a ledger that each command goes to at once.
type mesh struct {
	*world
	l   *Ledger
	one *identity.Keys
	seq map[identity.NodeID]uint64
}

func newMesh(t *testing.T) *mesh {
	m := &mesh{world: newWorld(t), l: newLedger(t), seq: map[identity.NodeID]uint64{}}
	m.one = m.found()
	wantOK(t, m.apply(m.l))
	return m
}

// ask submits one command through k and returns its receipt.
func (m *mesh) ask(k *identity.Keys, actor Actor, kind string, payload any) Receipt {
	m.t.Helper()
	m.seq[k.ID()]++
	seq := m.seq[k.ID()]
	m.add(k, session(m.t, m.l, k), seq, seq, m.command(kind, "", actor, payload))
	return m.apply(m.l)[0]
}

func (m *mesh) view(f func(tx *Tx)) { m.t.Helper(); view(m.t, m.l, f) }

func TestGenesisFoundsTheMeshOnce(t *testing.T) {
	m := newMesh(t)
	m.view(func(tx *Tx) {
		g, raw, ok := Founding(tx)
		if !ok || g.Name != "test" || identity.MeshIDOf(raw) != m.mesh || m.l.Position().Mesh != m.mesh {
			t.Errorf("genesis %+v, %v, mesh %s", g, ok, m.l.Position().Mesh)
		}
		n, ok := FindNode(tx, m.one.ID())
		if !ok || n.Name != "one" || n.AdmittedBy != m.one.ID() || n.AdmittedAt != 1 || !n.Member() {
			t.Errorf("founder = %+v, %v", n, ok)
		}
		if k := CurrentKeys(tx); k.Epoch != 1 || k.Wanted {
			t.Errorf("keys = %+v", k)
		}
		if w, ok := WrappedFor(tx, m.one.ID()); !ok || string(w.Gossip) != "gossip" {
			t.Errorf("wrapped = %+v, %v", w, ok)
		}
		if Features(tx) != 1 || RosterVersion(tx) != 1 {
			t.Errorf("features %d, roster version %d", Features(tx), RosterVersion(tx))
		}
	})
	g := Genesis{Name: "again", Founder: newNode(m.one, "one")}
	wantRefusal(t, m.ask(m.one, board, KindGenesis, g), Conflict)
}

func TestGenesisMustBeTheFoundersOwn(t *testing.T) {
	for name, spoil := range map[string]func(*Genesis, *world){
		"another mesh ID": func(g *Genesis, w *world) { g.Name = "changed after the ID was made" },
		"no name":         func(g *Genesis, w *world) { g.Name = ""; w.mesh = identity.MeshIDOf(Marshal(*g)) },
		"another signer": func(g *Genesis, w *world) {
			g.Founder = newNode(keysOf(2), "two")
			w.mesh = identity.MeshIDOf(Marshal(*g))
		},
		"foreign seal key": func(g *Genesis, w *world) {
			g.Founder.SealCert = keysOf(2).Certificate(identity.ForSeal).Encode()
			w.mesh = identity.MeshIDOf(Marshal(*g))
		},
		"noise certificate as seal key": func(g *Genesis, w *world) {
			g.Founder.SealCert = keysOf(1).Certificate(identity.ForNoise).Encode()
			w.mesh = identity.MeshIDOf(Marshal(*g))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, w, k := newLedger(t), newWorld(t), keysOf(1)
			g := Genesis{Name: "test", Founder: newNode(k, "one"), CreatedAt: 1, Wrapped: NodeKeys{Node: k.ID(), Epoch: 1}}
			w.mesh = identity.MeshIDOf(Marshal(g))
			spoil(&g, w)
			w.add(k, 0, 0, 0, w.command(KindGenesis, "", asNode(k), g))
			wantRefusal(t, w.apply(l)[0], Invalid)
			if l.Position().Mesh != "" || l.Position().Height != 0 {
				t.Errorf("position %+v", l.Position())
			}
		})
	}
	l, w, k := newLedger(t), newWorld(t), keysOf(1)
	w.mesh = "000102030405060708090a0b0c0d0e0f"
	w.open(k, "too early")
	wantRefusal(t, w.apply(l)[0], Unavailable)
}

func TestJoinTokens(t *testing.T) {
	m := newMesh(t)
	create := TokenCreate{ID: "tok-1", Sealed: []byte("sealed psk"), Uses: 2, TTL: time.Hour.Milliseconds()}
	wantRefusal(t, m.ask(m.one, asNode(m.one), KindTokenCreate, create), Forbidden)
	for name, spoil := range map[string]func(*TokenCreate){
		"no uses":       func(p *TokenCreate) { p.Uses = 0 },
		"too many uses": func(p *TokenCreate) { p.Uses = MaxTokenUses + 1 },
		"endless":       func(p *TokenCreate) { p.TTL = MaxTokenTTL.Milliseconds() + 1 },
		"no key":        func(p *TokenCreate) { p.Sealed = nil },
		"bad ID":        func(p *TokenCreate) { p.ID = "a/b" },
	} {
		bad := create
		spoil(&bad)
		if r := m.ask(m.one, board, KindTokenCreate, bad); r.Refusal == nil || r.Refusal.Code != Invalid {
			t.Errorf("%s: %+v", name, r)
		}
	}
	wantOK(t, []Receipt{m.ask(m.one, board, KindTokenCreate, create)})
	wantRefusal(t, m.ask(m.one, board, KindTokenCreate, create), Conflict)

	admit := func(n byte, token string) Receipt {
		k := keysOf(n)
		return m.ask(m.one, asNode(m.one), KindNodeAdmit, NodeAdmit{Node: newNode(k, "n"), Token: token,
			Wrapped: NodeKeys{Node: k.ID(), Epoch: 1, Data: []byte("d"), Gossip: []byte("g")}})
	}
	wantRefusal(t, admit(2, "tok-unknown"), Forbidden)
	wantRefusal(t, admit(2, ""), Forbidden) // a node admits nobody without a token
	wantOK(t, []Receipt{admit(2, "tok-1")})
	wantOK(t, []Receipt{admit(2, "tok-1")}) // the same node again uses nothing up
	wantOK(t, []Receipt{admit(3, "tok-1")})
	wantRefusal(t, admit(4, "tok-1"), Forbidden) // used up
	m.view(func(tx *Tx) {
		if tok, ok := FindToken(tx, "tok-1"); !ok || tok.Used != 2 || len(Tokens(tx)) != 1 {
			t.Errorf("token = %+v", tok)
		}
		if n, _ := FindNode(tx, keysOf(3).ID()); n.Token != "tok-1" || n.AdmittedBy != m.one.ID() {
			t.Errorf("node = %+v", n)
		}
		if len(Roster(tx)) != 3 {
			t.Errorf("roster of %d", len(Roster(tx)))
		}
	})
	create.ID = "tok-2"
	m.ask(m.one, board, KindTokenCreate, create)
	wantOK(t, []Receipt{m.ask(m.one, board, KindTokenRevoke, TokenRevoke{ID: "tok-2"})})
	wantRefusal(t, admit(4, "tok-2"), Forbidden) // revoked
	create.ID = "tok-3"
	m.ask(m.one, board, KindTokenCreate, create)
	m.now = m.now.Add(time.Hour)
	wantRefusal(t, admit(4, "tok-3"), Forbidden) // expired, by the mesh's clock
	wantRefusal(t, m.ask(m.one, board, KindTokenRevoke, TokenRevoke{ID: "none"}), NotFound)
	for key, row := range dump(m.l) {
		if strings.HasPrefix(key, "m/token/") && !strings.Contains(row, "sealed psk") {
			t.Errorf("row %s lost its key", key)
		}
	}
}

func TestRevokingANode(t *testing.T) {
	m := newMesh(t)
	two := keysOf(2)
	wantRefusal(t, m.ask(m.one, board, KindNodeRevoke, NodeRevoke{Node: m.one.ID()}), Conflict) // the last one
	wantOK(t, []Receipt{m.ask(m.one, board, KindNodeAdmit, NodeAdmit{Node: newNode(two, "two"),
		Wrapped: NodeKeys{Node: two.ID(), Epoch: 1, Data: []byte("d"), Gossip: []byte("g")}})})
	m.open(two, "x")
	m.apply(m.l)
	s2 := session(t, m.l, two)
	wantRefusal(t, m.ask(two, asNode(two), KindNodeRevoke, NodeRevoke{Node: m.one.ID()}), Forbidden)
	wantRefusal(t, m.ask(m.one, board, KindNodeRevoke, NodeRevoke{Node: keysOf(9).ID()}), NotFound)
	wantOK(t, []Receipt{m.ask(two, asNode(two), KindNodeRevoke, NodeRevoke{Node: two.ID()})}) // it leaves
	m.view(func(tx *Tx) {
		n, _ := FindNode(tx, two.ID())
		s, _ := FindSession(tx, s2)
		_, has := WrappedFor(tx, two.ID())
		if n.Member() || s.EndedAt != n.RevokedAt || has || !CurrentKeys(tx).Wanted || RosterVersion(tx) != n.RevokedAt {
			t.Errorf("node %+v, session %+v, has keys %v, keys %+v", n, s, has, CurrentKeys(tx))
		}
	})
	wantRefusal(t, m.ask(m.one, board, KindNodeAdmit, NodeAdmit{Node: newNode(two, "two")}), Conflict)
	if err := m.l.CheckBatch(EncodeBatch(m.mesh, two.ID(), s2, 9, 9, []Command{m.note("note.put", "a", "")},
		two.Sign)); !errors.Is(err, ErrNotMember) {
		t.Errorf("CheckBatch of a revoked node = %v", err)
	}
}

func TestRotatingKeysNamesTheRoster(t *testing.T) {
	m := newMesh(t)
	var roster uint64
	m.view(func(tx *Tx) { roster = RosterVersion(tx) })
	rotate := func(epoch, roster uint64, ks ...NodeKeys) Receipt {
		return m.ask(m.one, asNode(m.one), KindKeysRotate, KeysRotate{Epoch: epoch, Roster: roster, Wrapped: ks,
			Previous: []byte("old under new")})
	}
	mine := NodeKeys{Node: m.one.ID(), Epoch: 2, Data: []byte("d2"), Gossip: []byte("g2")}
	wantRefusal(t, rotate(3, roster, mine), Conflict)
	wantRefusal(t, rotate(2, roster+1, mine), Conflict)
	wantRefusal(t, rotate(2, roster, mine, mine), Invalid)
	wantRefusal(t, rotate(2, roster, mine, NodeKeys{Node: keysOf(2).ID(), Epoch: 2}), Invalid)
	wantRefusal(t, rotate(2, roster, NodeKeys{Node: m.one.ID(), Epoch: 1}), Conflict)
	wantOK(t, []Receipt{rotate(2, roster, mine)})
	m.view(func(tx *Tx) {
		w, _ := WrappedFor(tx, m.one.ID())
		old, ok := PreviousKey(tx, 1)
		if k := CurrentKeys(tx); k.Epoch != 2 || k.Wanted || string(w.Data) != "d2" || !ok || string(old) != "old under new" {
			t.Errorf("keys %+v, wrapped %+v, previous %q", k, w, old)
		}
	})
}

func TestUntrustedNodesMayNotChangeTheMesh(t *testing.T) {
	m := newMesh(t)
	k := keysOf(2)
	guest := newNode(k, "guest")
	guest.Labels = []string{LabelUntrusted, "gpu", "gpu"}
	admit := func(data []byte) Receipt {
		return m.ask(m.one, board, KindNodeAdmit, NodeAdmit{Node: guest, Wrapped: NodeKeys{Node: k.ID(), Epoch: 1, Data: data,
			Gossip: []byte("g")}})
	}
	wantRefusal(t, admit([]byte("data key")), Forbidden)
	wantOK(t, []Receipt{admit(nil)})
	m.open(k, "x")
	m.apply(m.l)
	wantRefusal(t, m.ask(k, board, KindTokenCreate, TokenCreate{ID: "t", Sealed: []byte("s"), Uses: 1, TTL: 1}), Forbidden)
	wantRefusal(t, m.ask(k, board, KindNodeRevoke, NodeRevoke{Node: m.one.ID()}), Forbidden)
	wantRefusal(t, m.ask(k, asNode(k), KindKeysRotate, KeysRotate{Epoch: 2}), Forbidden)
}

func TestNodeUpdate(t *testing.T) {
	m := newMesh(t)
	two := keysOf(2)
	m.ask(m.one, board, KindNodeAdmit, NodeAdmit{Node: newNode(two, "two")})
	m.open(two, "x")
	m.apply(m.l)
	name, addrs, labels, role := "renamed", []string{"10.0.0.2:9470"}, []string{"zone=b", "gpu", "gpu"}, "voter"
	wantOK(t, []Receipt{m.ask(two, asNode(two), KindNodeUpdate, NodeUpdate{Node: two.ID(), Name: &name,
		Addresses: &addrs})})
	wantRefusal(t, m.ask(two, asNode(two), KindNodeUpdate, NodeUpdate{Node: two.ID(), Labels: &labels}), Forbidden)
	wantRefusal(t, m.ask(two, asNode(two), KindNodeUpdate, NodeUpdate{Node: m.one.ID(), Name: &name}), Forbidden)
	wantOK(t, []Receipt{m.ask(m.one, board, KindNodeUpdate, NodeUpdate{Node: two.ID(), Labels: &labels, Role: &role})})
	bad := "king"
	wantRefusal(t, m.ask(m.one, board, KindNodeUpdate, NodeUpdate{Node: two.ID(), Role: &bad}), Invalid)
	wantRefusal(t, m.ask(m.one, board, KindNodeUpdate, NodeUpdate{Node: keysOf(9).ID()}), NotFound)
	m.view(func(tx *Tx) {
		n, _ := FindNode(tx, two.ID())
		if n.Name != name || n.Role != role || strings.Join(n.Labels, " ") != "gpu zone=b" || n.Addresses[0] != addrs[0] {
			t.Errorf("node = %+v", n)
		}
	})
}

func TestSessionOpenIsRepeatable(t *testing.T) {
	m := newMesh(t)
	s := session(t, m.l, m.one)
	m.open(m.one, "first") // the answer was lost, the node asks again
	if rs := m.apply(m.l); session(t, m.l, m.one) != s || rs[0].Refusal != nil {
		t.Errorf("the same nonce gave another session: %+v", rs)
	}
	m.open(m.one, "second")
	m.apply(m.l)
	m.view(func(tx *Tx) {
		old, _ := FindSession(tx, s)
		now, ok := SessionOf(tx, m.one.ID())
		if old.EndedAt == 0 || !ok || now.ID == s || now.ID != old.EndedAt {
			t.Errorf("old %+v, new %+v", old, now)
		}
	})
	m.add(m.one, 0, 0, 0, m.command(KindSessionOpen, "", board, SessionOpen{"", "x"}))
	wantRefusal(t, m.apply(m.l)[0], Forbidden)
	wantOK(t, []Receipt{m.ask(m.one, board, KindSessionEnd, SessionEnd{Session: session(t, m.l, m.one)})})
	m.view(func(tx *Tx) {
		if s, ok := SessionOf(tx, m.one.ID()); ok {
			t.Errorf("session %+v lasts", s)
		}
	})
}

func TestTimeStepsForwardOnly(t *testing.T) {
	m := newMesh(t)
	to := m.now.Add(48 * time.Hour)
	wantRefusal(t, m.ask(m.one, Actor{"agent", "someone"}, KindTimeStep, TimeStep{To: to.UnixMilli()}), Forbidden)
	wantOK(t, []Receipt{m.ask(m.one, asNode(m.one), KindTimeStep, TimeStep{To: to.Add(-time.Hour).UnixMilli()})})
	wantRefusal(t, m.ask(m.one, board, KindTimeStep, TimeStep{To: m.now.UnixMilli() - 1}), Invalid)
	wantOK(t, []Receipt{m.ask(m.one, board, KindTimeStep, TimeStep{To: to.UnixMilli()})})
	if got := m.l.Time(); !got.Equal(to) {
		t.Errorf("time %v, want %v", got, to)
	}
	// a batch that was stamped before does not turn it back
	r := m.ask(m.one, board, KindTokenRevoke, TokenRevoke{ID: "none"})
	wantRefusal(t, r, NotFound)
	if got := m.l.Time(); !got.Equal(to) {
		t.Errorf("time %v, want %v", got, to)
	}
}

func TestFeatureLevelIsOnlyRaised(t *testing.T) {
	m := newMesh(t)
	wantRefusal(t, m.ask(m.one, board, KindFeatureRaise, FeatureRaise{Level: 1}), Conflict)
	m.l.cfg.Level = 3
	wantOK(t, []Receipt{m.ask(m.one, board, KindFeatureRaise, FeatureRaise{Level: 3})})
	m.view(func(tx *Tx) {
		if Features(tx) != 3 {
			t.Errorf("level %d", Features(tx))
		}
	})
}

// A node raises the level too, a leader that heard of all, but not one that is not
// trusted; and a ledger whose state is of a level that it does not know stops,
// wherever it has the state from.
func TestALevelThatIsNotKnownStopsTheLedger(t *testing.T) {
	m := newMesh(t)
	m.l.cfg.Level = 2
	self := Actor{Type: "node", ID: string(m.one.ID())}
	wantRefusal(t, m.ask(m.one, Actor{Type: "node", ID: string(keysOf(7).ID())}, KindFeatureRaise,
		FeatureRaise{Level: 2}), Forbidden)
	wantOK(t, []Receipt{m.ask(m.one, self, KindFeatureRaise, FeatureRaise{Level: 2})})
	s, err := m.l.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var stream bytes.Buffer
	if _, err := s.WriteTo(&stream); err != nil {
		t.Fatal(err)
	}
	old := newLedger(t, func(c *Config) { c.Level = 1 })
	if err := old.Restore(bytes.NewReader(stream.Bytes())); err != nil || !errors.Is(old.Err(), ErrUpgrade) {
		t.Errorf("restored: %v, %v", err, old.Err())
	}
	if l, err := Open(old.cfg); err != nil || !errors.Is(l.Err(), ErrUpgrade) {
		t.Errorf("opened: %v, %v", err, l.Err())
	}
	founder := newLedger(t, func(c *Config) { c.Level = 1 })
	g := Genesis{Name: "new", Founder: newNode(m.one, "one"), Level: 2}
	b := EncodeBatch(identity.MeshIDOf(Marshal(g)), m.one.ID(), 0, 0, 0,
		[]Command{m.command(KindGenesis, "", self, g)}, m.one.Sign)
	if err := founder.CheckBatch(b); !errors.Is(err, ErrUpgrade) {
		t.Errorf("a genesis: %v", err)
	}
}

func TestLeaderChecksBatches(t *testing.T) {
	m := newMesh(t)
	s := session(t, m.l, m.one)
	encode := func(mesh identity.MeshID, k *identity.Keys, cmds ...Command) []byte {
		return EncodeBatch(mesh, k.ID(), s, 5, 5, cmds, k.Sign)
	}
	good := encode(m.mesh, m.one, m.note("note.put", "a", ""))
	if err := m.l.CheckBatch(good); err != nil {
		t.Error(err)
	}
	flipped := append([]byte(nil), good...)
	flipped[len(flipped)-1] ^= 1
	for name, tt := range map[string]struct {
		b    []byte
		want error
	}{
		"garbage":           {[]byte("x"), ErrBatch},
		"unknown kind":      {encode(m.mesh, m.one, m.note("note.future", "a", "")), ErrUpgrade},
		"another mesh":      {encode("000102030405060708090a0b0c0d0e0f", m.one, m.note("note.put", "a", "")), ErrNotMember},
		"a stranger":        {encode(m.mesh, keysOf(7), m.note("note.put", "a", "")), ErrNotMember},
		"a changed payload": {flipped, ErrBatch},
		"too large":         {make([]byte, 2<<20), ErrBatch},
	} {
		if err := m.l.CheckBatch(tt.b); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	g := Genesis{Name: "again", Founder: newNode(m.one, "one")}
	again := EncodeBatch(identity.MeshIDOf(Marshal(g)), m.one.ID(), 0, 0, 0,
		[]Command{m.command(KindGenesis, "", board, g)}, m.one.Sign)
	if err := m.l.CheckBatch(again); !errors.Is(err, ErrFounded) {
		t.Errorf("genesis again: %v", err)
	}
	if err := newLedger(t).CheckBatch(again); err != nil {
		t.Errorf("genesis of an empty ledger: %v", err)
	}
	if err := newLedger(t).CheckBatch(good); !errors.Is(err, ErrNotMember) {
		t.Errorf("a batch before genesis: %v", err)
	}
}

// An owner key lets in any number of nodes, for any time, until it is revoked.
func TestOwnerKeys(t *testing.T) {
	m := newMesh(t)
	key := identity.OwnerKey{1, 2, 3}
	add := OwnerAdd{ID: key.TokenID(), Sealed: []byte("sealed key")}
	wantRefusal(t, m.ask(m.one, asNode(m.one), KindOwnerAdd, add), Forbidden)
	for name, bad := range map[string]OwnerAdd{
		"no key": {ID: add.ID}, "an ID of another sort": {ID: "tok-1", Sealed: add.Sealed}, "malformed ID": {ID: "owner-/",
			Sealed: add.Sealed},
	} {
		if r := m.ask(m.one, board, KindOwnerAdd, bad); r.Refusal == nil || r.Refusal.Code != Invalid {
			t.Errorf("%s: %+v", name, r)
		}
	}
	wantRefusal(t, m.ask(m.one, board, KindTokenCreate, TokenCreate{ID: add.ID, Sealed: add.Sealed, Uses: 1,
		TTL: 1000}), Invalid)
	wantOK(t, []Receipt{m.ask(m.one, board, KindOwnerAdd, add)})
	wantRefusal(t, m.ask(m.one, board, KindOwnerAdd, add), Conflict)
	admit := func(n byte) Receipt {
		return m.ask(m.one, asNode(m.one), KindNodeAdmit, NodeAdmit{Node: newNode(keysOf(n), "n"), Token: add.ID})
	}
	wantOK(t, []Receipt{admit(2)})
	m.now = m.now.Add(5 * 365 * 24 * time.Hour)
	for n := byte(3); n < 9; n++ {
		wantOK(t, []Receipt{admit(n)})
	}
	m.view(func(tx *Tx) {
		if tok, ok := FindToken(tx, add.ID); !ok || tok.Used != 7 || !tok.Owner || !tok.Usable(m.now.UnixMilli()) {
			t.Errorf("owner key = %+v", tok)
		}
	})
	wantOK(t, []Receipt{m.ask(m.one, board, KindTokenRevoke, TokenRevoke{ID: add.ID})})
	wantRefusal(t, admit(9), Forbidden)
	wantOK(t, []Receipt{m.ask(m.one, board, KindOwnerAdd, add)}) // the operator may take it back
	wantOK(t, []Receipt{admit(9)})
}

// A mesh whose founder holds an owner key knows it from the first moment.
func TestOwnerKeyOfTheFounder(t *testing.T) {
	w, l, one := newWorld(t), newLedger(t), keysOf(1)
	key := identity.OwnerKey{4}
	g := Genesis{Name: "test", Founder: newNode(one, "one"), Wrapped: NodeKeys{Node: one.ID(), Epoch: 1},
		Owner: &OwnerAdd{ID: key.TokenID(), Sealed: []byte("sealed")}}
	w.addNoop()
	w.mesh = identity.MeshIDOf(Marshal(g))
	w.add(one, 0, 0, 0, w.command(KindGenesis, "", asNode(one), g))
	wantOK(t, w.apply(l))
	view(t, l, func(tx *Tx) {
		if tok, ok := FindToken(tx, key.TokenID()); !ok || !tok.Usable(0) {
			t.Errorf("owner key = %+v, %v", tok, ok)
		}
	})
}

// Whoever is thrown out could read what lets others in, and does not come back
// with it. Who leaves takes nothing away.
func TestRevokingTakesTokensAlong(t *testing.T) {
	for name, by := range map[string]func(m *mesh, two *identity.Keys) Receipt{
		"thrown out": func(m *mesh, two *identity.Keys) Receipt {
			return m.ask(m.one, board, KindNodeRevoke, NodeRevoke{Node: two.ID()})
		},
		"left": func(m *mesh, two *identity.Keys) Receipt {
			return m.ask(two, asNode(two), KindNodeRevoke, NodeRevoke{Node: two.ID()})
		},
	} {
		m := newMesh(t)
		two := keysOf(2)
		wantOK(t, []Receipt{m.ask(m.one, board, KindNodeAdmit, NodeAdmit{Node: newNode(two, "two")})})
		m.open(two, "x")
		m.apply(m.l)
		owner := identity.OwnerKey{1}.TokenID()
		wantOK(t, []Receipt{m.ask(m.one, board, KindTokenCreate, TokenCreate{ID: "tok", Sealed: []byte("s"), Uses: 2,
			TTL: time.Hour.Milliseconds()}),
			m.ask(m.one, board, KindOwnerAdd, OwnerAdd{ID: owner, Sealed: []byte("s")})})
		wantOK(t, []Receipt{by(m, two)})
		m.view(func(tx *Tx) {
			for _, id := range []string{"tok", owner} {
				if tok, _ := FindToken(tx, id); tok.Usable(m.now.UnixMilli()) != (name == "left") {
					t.Errorf("%s: token %s usable: %v", name, id, name != "left")
				}
			}
		})
	}
}
