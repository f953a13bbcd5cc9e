package ledger

import (
	"errors"
	"testing"

	"github.com/selvage-mesh/selvage/identity"
)

// epoch adds the founding of an epoch by k, whatever p leaves open filled in.
func (m *mesh) epoch(k *identity.Keys, change func(*EpochFound)) Receipt {
	m.t.Helper()
	height, head := m.l.Head()
	p := EpochFound{Epoch: 2, Founder: newNode(k, "again"), Reason: EpochRecovered, Height: height, Head: head,
		Wrapped: NodeKeys{Node: k.ID(), Epoch: 1, Data: []byte("d"), Gossip: []byte("g")}, At: 7}
	if change != nil {
		change(&p)
	}
	raw := m.add(k, 0, 0, 0, m.command(KindEpoch, "", asNode(k), p))
	if err := m.l.CheckBatch(raw); !errors.Is(err, ErrFounded) {
		m.t.Errorf("a leader would let it pass: %v", err)
	}
	if err := m.l.CheckEpoch(raw, k.ID()); err != nil {
		m.t.Errorf("the founder's own check: %v", err)
	}
	return m.apply(m.l)[0]
}

func (m *mesh) admit(k *identity.Keys, labels ...string) {
	m.t.Helper()
	token := TokenCreate{ID: "t" + k.ID().Short(), Sealed: []byte("s"), Uses: 1, TTL: 1000}
	wantOK(m.t, []Receipt{m.ask(m.one, board, KindTokenCreate, token)})
	n := newNode(k, "n")
	n.Labels = labels
	wantOK(m.t, []Receipt{m.ask(m.one, asNode(m.one), KindNodeAdmit, NodeAdmit{Node: n, Token: token.ID})})
	m.open(k, "of "+string(k.ID()))
	wantOK(m.t, m.apply(m.l))
}

// A survivor goes on alone: the others stay members, the keys are to be
// replaced, and the chain verifies across the border.
func TestSurvivorFoundsAnEpoch(t *testing.T) {
	m := newMesh(t)
	two := keysOf(2)
	m.admit(two)
	wantOK(t, []Receipt{m.epoch(two, nil)})
	m.view(func(tx *Tx) {
		e := CurrentEpoch(tx)
		if e.Number != 2 || e.Founder != two.ID() || e.Reason != EpochRecovered || e.At != 7 ||
			e.Height != m.l.Position().Height {
			t.Errorf("epoch %+v", e)
		}
		if n, _ := FindNode(tx, m.one.ID()); !n.Member() {
			t.Error("the other node was struck off")
		}
		if !CurrentKeys(tx).Wanted {
			t.Error("the old keys are not to be replaced")
		}
	})
	wantRefusal(t, m.epoch(two, nil),
		Conflict) // it is epoch 2 already
	wantRefusal(t, m.epoch(two, func(p *EpochFound) { p.Epoch = 3; p.Height-- }),
		Conflict) // made for another state
	wantRefusal(t, m.epoch(two, func(p *EpochFound) { p.Epoch = 3; p.Reason = "because" }),
		Invalid) // unknown reason
	wantRefusal(t, m.epoch(keysOf(9), func(p *EpochFound) { p.Epoch = 3; p.Wrapped = NodeKeys{} }),
		Forbidden) // a stranger
	wantRefusal(t, m.ask(two, asNode(two), KindEpoch, EpochFound{Epoch: 3}),
		Forbidden) // in a session
	if _, err := m.l.Verify(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// Whoever a member vouched for founds an epoch from a backup; everyone else is
// off the roster then.
func TestBackupFoundsAnEpoch(t *testing.T) {
	m := newMesh(t)
	warrant, three := keysOf(8), keysOf(3)
	m.admit(keysOf(2))
	m.admit(keysOf(4), LabelUntrusted)
	chain := func(by *identity.Keys) []byte {
		w, err := by.Admit(m.mesh, warrant.Public(), 5)
		if err != nil {
			t.Fatal(err)
		}
		a, err := warrant.Admit(m.mesh, three.Public(), 5)
		if err != nil {
			t.Fatal(err)
		}
		return identity.EncodeAdmissions([]identity.Admission{a, w})
	}
	restored := func(by *identity.Keys) func(*EpochFound) {
		return func(p *EpochFound) { p.Reason, p.Alone, p.Admissions = EpochRestored, true, chain(by) }
	}
	wantRefusal(t, m.epoch(three, restored(keysOf(7))), Forbidden)
	wantRefusal(t, m.epoch(three, restored(keysOf(4))), Forbidden)
	wantOK(t, []Receipt{m.epoch(three, restored(keysOf(2)))})
	m.view(func(tx *Tx) {
		for _, n := range Roster(tx) {
			if n.Member() != (n.ID == three.ID()) {
				t.Errorf("%s: member %v", n.Name, n.Member())
			}
		}
		if n, _ := FindNode(tx, three.ID()); n.AdmittedBy != keysOf(2).ID() {
			t.Errorf("vouched for by %s", n.AdmittedBy.Short())
		}
		if w, ok := WrappedFor(tx, three.ID()); !ok || string(w.Data) != "d" {
			t.Errorf("wrapped %+v", w)
		}
	})
	m.open(three, "life of three")
	wantOK(t, m.apply(m.l))
	wantRefusal(t, m.epoch(keysOf(2), func(p *EpochFound) { p.Epoch = 3 }), Conflict) // struck off
	if _, err := m.l.Verify(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
