package transport

import "testing"

// Two members reach each other on real sockets, in both directions, over the
// one connection that the first dial made.
func TestTwoNodesOnLoopback(t *testing.T) {
	t.Parallel()
	ka, kb := testKeys(1), testKeys(2)
	r := newRoster(ka, kb)
	a, b := open(t, testConfig(loopback(t), ka, r)), open(t, testConfig(loopback(t), kb, r))
	a.Learn(kb.ID(), addrOf(b))
	wantEcho(t, a, kb.ID())
	wantEcho(t, b, ka.ID())
	if got := a.Stats(); got.Dialled != 1 || got.Accepted != 0 || got.Connections != 1 {
		t.Errorf("a dialled %d, accepted %d, has %d connections; want 1, 0, 1", got.Dialled, got.Accepted, got.Connections)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}
