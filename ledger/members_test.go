package ledger

import (
	"errors"
	"testing"
)

func TestRememberedMembersFollowTheRoster(t *testing.T) {
	t.Parallel()
	l, w := newLedger(t), newWorld(t)
	one, two := w.found(), keysOf(2)
	wantOK(t, w.apply(l))
	s := session(t, l, one)
	if _, err := l.member(two.ID()); !errors.Is(err, ErrNotMember) {
		t.Fatalf("a stranger: %v", err)
	}
	w.add(one, s, 1, 1, w.user(KindNodeAdmit, NodeAdmit{Node: newNode(two, "two")}))
	wantOK(t, w.apply(l))
	for range 2 { // read, then remembered
		if n, err := l.member(two.ID()); err != nil || n.Name != "two" {
			t.Fatalf("a member: %q, %v", n.Name, err)
		}
	}
	w.add(one, s, 2, 2, w.user(KindNodeRevoke, NodeRevoke{Node: two.ID()}))
	wantOK(t, w.apply(l))
	if _, err := l.member(two.ID()); !errors.Is(err, ErrNotMember) {
		t.Errorf("after its revocation: %v", err)
	}
}
