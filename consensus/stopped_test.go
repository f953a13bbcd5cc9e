package consensus

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/selvage-mesh/selvage/ledger"
)

// downgrade raises the mesh's feature level and starts one of its nodes as an older
// program, which does not know that level.
func (m *mesh) downgrade(n *node) {
	m.t.Helper()
	l := m.leader()
	id := string(l.id())
	r, err := l.prop.Submit(m.t.Context(), ledger.Command{Kind: ledger.KindFeatureRaise,
		Actor:      ledger.Actor{Type: "node", ID: id},
		Credential: ledger.Credential{Kind: "node", ID: id},
		Payload:    ledger.Marshal(ledger.FeatureRaise{Level: ledger.FeatureLevel + 1})})
	if err != nil || r.Refusal != nil {
		m.t.Fatal("raise the level:", err, r.Refusal)
	}
	m.same(nil)
	n.stop(false)
	n.level = ledger.FeatureLevel
	n.start()
	if err := n.led.Err(); !errors.Is(err, ledger.ErrUpgrade) {
		m.t.Fatalf("the older program goes on: %v", err)
	}
}

// A node that can not follow says so to the autopilot, which gives its vote to
// another that stands ready, and never back before it is upgraded.
func TestANodeThatCanNotFollowLosesItsVoteToOneThatCan(t *testing.T) {
	bubble(t, 4, nil, func(t *testing.T, m *mesh) {
		var old, spare *node
		for _, n := range m.followers() {
			if n.cons.Stats().Voter {
				old = n
			} else {
				spare = n
			}
		}
		m.downgrade(old)
		m.wait(30*time.Second, "the spare votes in its place", func() bool {
			return spare.cons.Stats().Voter && !m.leader().
				votes(old)
		})
		s, err := m.leader().cons.Autopilot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range s.Seats {
			if is := v.Node == old.id(); v.Halted != is || is && v.Well > 0 {
				t.Errorf("%s: %+v", v.Node.Short(), v)
			}
		}
		time.Sleep(time.Minute)
		if m.leader().votes(old) {
			t.Error("it was given a vote again")
		}
		old.stop(false)
		old.level = 0
		old.start()
		spare.stop(true)
		m.wait(5*time.Minute, "the upgraded node votes again", func() bool { return m.leader().votes(old) })
	})
}

// votes tells whether another has a vote as this node sees it.
func (n *node) votes(o *node) bool {
	for _, s := range n.cons.Servers() {
		if s.Node == o.id() {
			return s.Voter
		}
	}
	return false
}

// Where no other stands ready a node that can not follow keeps its vote, so that
// another may still fail, and is told of; made the leader it never serves, and hands on.
func TestANodeThatCanNotFollowNeverServesAsLeader(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, m *mesh) {
		old := m.followers()[0]
		m.downgrade(old)
		time.Sleep(30 * time.Second)
		l := m.leader()
		if s, err := l.cons.Autopilot(t.Context()); err != nil || s.Healthy || s.Voters != 3 {
			t.Errorf("autopilot: %+v, %v", s, err)
		}
		if err := l.cons.raft.LeadershipTransferToServer(raft.ServerID(old.keys.ServerID()),
			raft.ServerAddress(old.keys.ServerID())).Error(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if old.cons.IsLeader() {
				t.Fatal("a node that can not follow serves as the leader")
			}
		}
		if now := m.leader(); now == old {
			t.Error("it still leads")
		} else if err := now.add(t.Context(), "after"); err != nil {
			t.Error(err)
		}
		// One of the others may fail all the same.
		for _, n := range m.nodes {
			if n != old && n != m.leader() {
				n.stop(true)
				break
			}
		}
		if err := m.leader().add(t.Context(), "later"); err != nil {
			t.Error(err)
		}
	})
}
