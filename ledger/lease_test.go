package ledger

import (
	"strings"
	"testing"
)

// How long a session's lease may be is said by a leader, a later one's word counts,
// and nobody says it below the level, for a session that is over, or without bound.
func TestALaterLeaderSaysHowLongALeaseIs(t *testing.T) {
	m := newMesh(t)
	id := session(t, m.l, m.one)
	node := Actor{Type: "node", ID: string(m.one.ID())}
	say := func(by Actor, session uint64, lease int64, term, count uint64) Receipt {
		return m.ask(m.one, by, KindSessionLease, SessionLease{Session: session, Lease: lease, Mark: LeaseMark{term, count}})
	}
	var bare Session
	m.view(func(tx *Tx) { bare, _ = FindSession(tx, id) })
	wantRefusal(t, say(board, id, 12_000, 1, 1), Forbidden)
	wantRefusal(t, say(node, id+1000, 12_000, 1, 1), NotFound)
	wantRefusal(t, say(node, id, maxLease+1, 1, 1), Invalid)
	wantRefusal(t, say(node, id, -1, 1, 1), Invalid)
	for _, c := range []struct {
		term, count uint64
		ok          bool
	}{{1, 1, true}, {1, 1, false}, {1, 2, true}, {2, 1, true}, {1, 9, false}, {2, 1, false}, {3, 0, true}} {
		if got := say(node, id, 6000+int64(c.term*10+c.count), c.term, c.count).Refusal == nil; got != c.ok {
			t.Errorf("term %d, word %d: taken %v", c.term, c.count, got)
		}
	}
	m.view(func(tx *Tx) {
		want := bare
		want.Lease, want.Leased = 6030, LeaseMark{3, 0}
		if got, _ := FindSession(tx, id); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
	if string(Marshal(bare)) != string(Marshal(Session{ID: bare.ID, Node: bare.Node, Incarnation: bare.Incarnation,
		Nonce: bare.Nonce, Opened: bare.Opened})) || strings.ContainsRune(string(Marshal(Session{})), 9) {
		t.Error("a session without a lease of its own is not stored as it was before the level")
	}
}
